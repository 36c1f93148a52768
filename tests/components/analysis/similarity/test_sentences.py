import json
from itertools import pairwise

import numpy as np
import pytest

from components.analysis.pooling import pool
from components.analysis.similarity.sentences import SentencePair, SentenceSimilarity, sentence_similarity
from components.model.trace import POOLINGS
from tests.support.places import ASSETS

SETS = json.loads((ASSETS / "sets.json").read_text(encoding="utf-8"))
THREE_GROUPS = next(entry["sentences"] for entry in SETS if entry["key"] == "three-groups")
GROUP = np.repeat([0, 1, 2], 3)
SHUFFLED = [4, 0, 8, 2, 6, 5, 1, 7, 3]  # no two of a group side by side


@pytest.fixture
def corners():
    """East, north, north-east, west: cosines 0, 1, -1 and the diagonal of a square."""
    return sentence_similarity(np.array([[2, 0], [0, 1], [3, 3], [-1, 0]]))


# The matrix and the list of pairs


def test_similarities_worked_out_on_paper(corners):
    half = np.sqrt(0.5)
    expected = [[1, 0, half, -1], [0, 1, half, 0], [half, half, 1, -half], [-1, 0, -half, 1]]
    np.testing.assert_allclose(corners.matrix, expected, atol=1e-12)


def test_the_matrix_is_symmetric_to_the_last_bit():
    matrix = sentence_similarity(np.random.default_rng(0).normal(size=(40, 384)).astype(np.float32)).matrix
    np.testing.assert_array_equal(matrix, matrix.T)
    assert not matrix.flags.writeable


def test_every_pair_once_and_the_most_similar_first(corners):
    pairs = corners.pairs()
    assert [(pair.first, pair.second) for pair in pairs] == [(0, 2), (1, 2), (0, 1), (1, 3), (2, 3), (0, 3)]
    assert [pair.similarity for pair in pairs] == pytest.approx([np.sqrt(0.5)] * 2 + [0, 0, -np.sqrt(0.5), -1])


def test_pairs_of_a_larger_set_equal_its_upper_triangle():
    found = sentence_similarity(np.random.default_rng(1).normal(size=(20, 8)))
    pairs = found.pairs()
    assert len(pairs) == len({(pair.first, pair.second) for pair in pairs}) == 190
    assert all(pair.first < pair.second and pair.similarity == found.matrix[pair.first, pair.second] for pair in pairs)
    assert all(one.similarity >= other.similarity for one, other in pairwise(pairs))


def test_ties_stay_in_reading_order():
    same = SentenceSimilarity(np.ones((4, 4)))
    assert [(pair.first, pair.second) for pair in same.pairs()] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    nearly = np.ones((4, 4)) - 1e-8 * np.arange(16)[::-1].reshape(4, 4)  # equal but for rounding
    assert SentenceSimilarity(nearly).pairs()[0] == SentencePair(0, 1, nearly[0, 1])


def test_a_sentence_without_a_vector_comes_last_everywhere():
    vectors = np.array([[np.nan, np.nan], [1, 0], [np.nan, 0], [1, 0.1], [0, 1]])
    found = sentence_similarity(vectors)
    assert found.pairs()[0] == SentencePair(1, 3, found.matrix[1, 3])
    assert np.isnan([pair.similarity for pair in found.pairs()]).tolist() == [False] * 3 + [True] * 7
    order = found.clustered_order()
    assert order[3:] == (0, 2)
    assert sorted(order[:3]) == [1, 3, 4]
    assert abs(order.index(1) - order.index(3)) == 1


# The order


def test_groups_made_by_hand_come_side_by_side():
    """Four directions at right angles, five noisy sentences each, mixed up."""
    random = np.random.default_rng(3)
    group = random.permutation(np.repeat(np.arange(4), 5))
    vectors = np.eye(4)[group] + 0.1 * random.normal(size=(20, 4))
    order = sentence_similarity(vectors).clustered_order()
    assert sorted(order) == list(range(20))
    assert sum(group[one] != group[other] for one, other in pairwise(order)) == 3


def test_neighbours_on_a_line_are_put_in_its_order():
    """Vectors that turn step by step: each branch is turned so that its ends meet their neighbours."""
    angles = np.radians([0, 10, 21, 33, 46, 60, 75])
    mixed = np.random.default_rng(4).permutation(7)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)[mixed]
    order = [int(mixed[row]) for row in sentence_similarity(vectors).clustered_order()]
    assert order in (list(range(7)), list(range(6, -1, -1)))


def average_linkage(matrix: np.ndarray) -> list[set[int]]:
    """Every group that is made on the way to one: always of the two with the highest mean similarity."""
    groups, made = [{row} for row in range(len(matrix))], []
    while len(groups) > 1:
        one, other = max(
            ((a, b) for a in range(len(groups)) for b in range(a)),
            key=lambda pair: matrix[np.ix_(list(groups[pair[0]]), list(groups[pair[1]]))].mean(),
        )
        made.append(groups[one] | groups[other])
        groups = [group for at, group in enumerate(groups) if at not in {one, other}] + [made[-1]]
    return made


@pytest.mark.parametrize("seed", range(4))
def test_every_group_of_average_linkage_stays_together(seed):
    found = sentence_similarity(np.random.default_rng(seed).normal(size=(14, 5)))
    place = {row: at for at, row in enumerate(found.clustered_order())}
    groups = average_linkage(found.matrix)
    assert len(groups[-1]) == 14
    for group in groups:
        places = [place[row] for row in group]
        assert max(places) - min(places) == len(group) - 1


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_sentences_stay_as_they_are(count):
    found = sentence_similarity(np.eye(3)[:count])
    assert found.clustered_order() == tuple(range(count))
    assert len(found.pairs()) == count * (count - 1) // 2


def test_equal_sentences_have_an_order_too():
    assert sorted(sentence_similarity(np.ones((5, 3))).clustered_order()) == [0, 1, 2, 3, 4]


def test_the_matrix_in_another_order(corners):
    moved = corners.ordered([2, 0, 3, 1])
    for row, one in enumerate([2, 0, 3, 1]):
        for column, other in enumerate([2, 0, 3, 1]):
            assert moved[row, column] == corners.matrix[one, other]
    np.testing.assert_array_equal(corners.ordered(range(4)), corners.matrix)


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 4], [0, 1, 2, 3, 3]])
def test_an_order_that_is_none_is_refused(corners, order):
    with pytest.raises(ValueError, match="not an order of 4 sentences"):
        corners.ordered(order)


# The three groups of three questions


@pytest.fixture(scope="module")
def three_groups(embedded):
    return embedded.run(THREE_GROUPS)


def within_and_between(matrix: np.ndarray, group: np.ndarray = GROUP) -> tuple[np.ndarray, np.ndarray]:
    """Cosines of pairs of one group, and of pairs of two."""
    first, second = np.triu_indices(len(group), 1)
    same = group[first] == group[second]
    values = matrix[first, second]
    return values[same], values[~same]


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_every_pair_of_a_group_is_closer_than_any_of_two_groups_at_every_layer(three_groups, pooling, special):
    for vectors in pool(three_groups, pooling, special):
        within, between = within_and_between(sentence_similarity(vectors).matrix)
        assert (len(within), len(between)) == (9, 27)
        assert within.min() > between.max()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_groups_at_the_last_layer_with_every_pooling(three_groups, pooling):
    within, between = within_and_between(sentence_similarity(pool(three_groups, pooling)[-1]).matrix)
    assert within.min() > between.max() + 0.15


def test_mean_vectors_of_the_last_layer_put_the_groups_far_apart(three_groups):
    """The pooling this model was trained with: 0.81 and more within a group, 0.15 and less between groups."""
    found = sentence_similarity(pool(three_groups, "mean")[-1])
    within, between = within_and_between(found.matrix)
    assert within.min() > 0.8
    assert between.max() < 0.15
    assert {(GROUP[pair.first], GROUP[pair.second]) for pair in found.pairs()[:9]} == {(0, 0), (1, 1), (2, 2)}
    assert all(GROUP[pair.first] != GROUP[pair.second] for pair in found.pairs()[9:])


@pytest.mark.parametrize("layer", range(7))
def test_mixed_up_groups_are_put_side_by_side(three_groups, layer):
    vectors = pool(three_groups, "mean")[layer][SHUFFLED]
    group = GROUP[SHUFFLED]
    assert all(one != other for one, other in pairwise(group))
    order = sentence_similarity(vectors).clustered_order()
    assert sorted(order) == list(range(9))
    assert sum(group[one] != group[other] for one, other in pairwise(order)) == 2
