import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from components.analysis.first_look.words import interest
from components.analysis.matched_words import word_vectors
from components.analysis.similarity.cosines import (
    LayerCurves,
    centred,
    cosine_matrix,
    pair_curves,
)
from components.arrays import cosine
from tests.support.closeness import assert_close

# The figures of the task: layers 0..6 of the embedded model, the word "bank" in the bank set.
BANK_CURVES = {
    (0, 1): [0.966, 0.878, 0.841, 0.834, 0.836, 0.882, 0.773],
    (0, 2): [0.988, 0.964, 0.897, 0.883, 0.893, 0.913, 0.856],
    (1, 2): [0.989, 0.921, 0.849, 0.818, 0.810, 0.835, 0.745],
}


@pytest.fixture
def random_vectors():
    return np.random.default_rng(7).normal(size=(4, 5, 16)).astype(np.float32)  # [layer, n, dim]


def test_cosine_of_vectors_worked_out_on_paper():
    east, north, west, steep = [1, 0], [0, 2], [-3, 0], [3, 4]
    assert cosine(east, north) == 0
    assert cosine(east, west) == -1
    assert cosine(east, [5, 0]) == 1
    assert cosine(east, steep) == pytest.approx(0.6)
    assert cosine([east, west], [steep, steep]).tolist() == pytest.approx([0.6, -0.6])


def test_cosine_equals_torch(random_vectors):
    a, b = random_vectors[:, :3], random_vectors[:, 1:4]
    theirs = cosine_similarity(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64), dim=-1)
    np.testing.assert_allclose(cosine(a, b), theirs, atol=1e-12)


def test_cosine_ignores_length_and_stays_within_one():
    vector = np.float32([0.1, 0.7, -0.3])
    for scale in (1e-30, 1e-3, 1e3, 1e30):
        assert cosine(vector, vector.astype(np.float64) * scale) == pytest.approx(1, abs=1e-12)
        assert cosine(vector, vector.astype(np.float64) * scale) <= 1


def test_zero_vectors_have_the_cosine_0_and_missing_ones_none():
    matrix = cosine_matrix(np.array([[[0.0, 0.0], [np.nan, 1.0], [3.0, 4.0]]]))[0]
    np.testing.assert_allclose(matrix, [[0, np.nan, 0], [np.nan, np.nan, np.nan], [0, np.nan, 1]], atol=1e-12)


def test_the_matrix_holds_the_cosine_of_every_pair(random_vectors):
    matrix = cosine_matrix(random_vectors)
    assert matrix.shape == (4, 5, 5)
    np.testing.assert_allclose(matrix, cosine(random_vectors[:, :, None], random_vectors[:, None, :]), atol=1e-12)
    np.testing.assert_allclose(np.diagonal(matrix, axis1=1, axis2=2), 1, atol=1e-12)


def test_curves_take_all_pairs_in_reading_order(random_vectors):
    curves = pair_curves(random_vectors[:, :3], ["a", "b", "c"])
    assert curves.pairs == ((0, 1), (0, 2), (1, 2))
    assert curves.labels == ("a – b", "a – c", "b – c")
    for row, (one, other) in enumerate(curves.pairs):
        for layer in range(4):
            assert curves.values[row, layer] == cosine(random_vectors[layer, one], random_vectors[layer, other])


def test_curves_of_chosen_pairs(random_vectors):
    names = list("abcde")
    chosen = pair_curves(random_vectors, names, [(4, 0), (2, 2)])
    assert chosen.labels == ("e – a", "c – c")
    np.testing.assert_array_equal(chosen.values[0], pair_curves(random_vectors, names, [(0, 4)]).values[0])
    np.testing.assert_allclose(chosen.values[1], 1, atol=1e-12)


def test_no_pairs_give_no_curves_but_know_their_layers(random_vectors):
    for curves in (pair_curves(random_vectors, list("abcde"), []), pair_curves(random_vectors[:, :1], ["a"])):
        assert curves.values.shape == (0, 4)
        assert curves.labels == ()
        assert curves.lowest.tolist() == curves.highest.tolist() == []


def test_names_must_match_the_vectors(random_vectors):
    with pytest.raises(ValueError, match="5 vectors but 2 names"):
        pair_curves(random_vectors, ["a", "b"])


def test_lowest_and_highest_layer_of_each_curve():
    nan = np.nan
    curves = LayerCurves(
        ("falls", "rises", "ties", "gaps", "empty"),
        ((0, 1),) * 5,
        np.array([[3, 2, 1], [-1, 0, 1], [1, 0, 1], [nan, -0.5, -0.2], [nan, nan, nan]], dtype=float),
    )
    assert curves.lowest.tolist() == [2, 0, 1, 1, 0]
    assert curves.highest.tolist() == [0, 2, 0, 2, 0]


def test_centred_curves_worked_out_on_paper():
    # Seen from (1, 1), the points (2, 1) and (1, 3) lie east and north, and (0, 1) lies west.
    vectors = np.float32([[[2, 1], [1, 3], [0, 1]]])
    curves = pair_curves(vectors, list("enw"), centre=np.array([[1, 1]]))
    assert curves.values[:, 0].tolist() == [0, -1, 0]
    assert vectors.tolist() == [[[2, 1], [1, 3], [0, 1]]]


def test_each_layer_has_its_own_centre(random_vectors):
    centre = random_vectors.mean(axis=1)  # [layer, dim]
    curves = pair_curves(random_vectors, list("abcde"), centre=centre)
    for layer in range(4):
        theirs = cosine(random_vectors[layer, 1] - centre[layer], random_vectors[layer, 3] - centre[layer])
        assert_close(curves.values[curves.pairs.index((1, 3)), layer], theirs)
    np.testing.assert_allclose(centred(random_vectors, centre).sum(axis=1), 0, atol=1e-5)


def test_a_vector_that_is_the_centre_up_to_rounding_is_missing():
    vectors = np.float32([[[1, 1], [1.000001, 1], [1.001, 1]]])
    shifted = centred(vectors, np.float32([[1, 1]]))
    assert np.isnan(shifted[0, :2]).all()
    assert shifted[0, 2, 0] == pytest.approx(0.001, rel=1e-3)
    assert np.isnan(pair_curves(vectors, list("abc"), centre=np.float32([[1, 1]])).values).all()


def test_a_word_of_several_pieces_is_their_mean_and_one_of_none_is_missing(bank_trace):
    vectors = word_vectors(bank_trace, [(0, (1, 2)), (1, ())])
    np.testing.assert_array_equal(vectors[:, 0], bank_trace.hidden_states[:, 0, 1:3].mean(axis=1))
    assert np.isnan(vectors[:, 1]).all()


def test_the_bank_curves_of_the_embedded_model(bank_trace):
    positions = interest(bank_trace.sentences).positions
    vectors = word_vectors(bank_trace, [(row, [position]) for row, position in enumerate(positions)])
    curves = pair_curves(vectors, ["bank"] * 3)
    assert curves.pairs == tuple(BANK_CURVES)
    np.testing.assert_allclose(curves.values, list(BANK_CURVES.values()), atol=0.002)
    assert curves.lowest.tolist() == [6, 6, 6]
    assert curves.highest.tolist() == [0, 0, 0]
