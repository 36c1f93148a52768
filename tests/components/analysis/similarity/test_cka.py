from itertools import permutations

import numpy as np
import pytest

from components.analysis.similarity import cka
from components.analysis.similarity.cka import MOST_TOKENS, layer_cka
from components.errors import InputError
from tests.support.closeness import assert_close

SENTENCES = (
    "What should I do to improve my English ?",
    "How can I earn money online?",
    "The children skipped stones by the bank of the river.",
    "I put money in the bank.",
    "He decided to bite the bullet and apologize.",
    "A good night's sleep helps students remember what they learned.",
    "The train to the coast leaves at seven in the morning.",
    "Nobody expected the old bridge to hold after the storm.",
)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def by_definition(x: np.ndarray, y: np.ndarray) -> float:
    """HSIC with centring matrices, as in equation 3 and 4 of Kornblith et al. 2019."""
    n = len(x)
    centring = np.eye(n) - np.ones((n, n)) / n

    def hsic(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.trace(a @ a.T @ centring @ b @ b.T @ centring)) / (n - 1) ** 2

    return hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y))


def turned(vectors: np.ndarray, seed: int = 9) -> np.ndarray:
    """Vectors turned (and perhaps mirrored) by a random orthogonal matrix."""
    rotation, _ = np.linalg.qr(normal(vectors.shape[1], vectors.shape[1], seed=seed))
    return vectors @ rotation


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Of one layer each, [n, dim1] and [n, dim2]; all n rows count."""
    return float(layer_cka(first[None], second[None], most=len(first)).matrix[0, 0])


# The value


def test_worked_out_on_paper():
    """Four corners of a square: x alone against both axes is 1 / sqrt(2), x against y is nothing."""
    square = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)
    x, y = square[:, :1], square[:, 1:]
    assert linear_cka(square, square) == pytest.approx(1, abs=1e-12)
    assert linear_cka(x, square) == pytest.approx(np.sqrt(0.5), abs=1e-12)
    assert linear_cka(x, y) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("n", "dim1", "dim2"), [(60, 8, 5), (40, 5, 90), (30, 20, 20)])
def test_equals_the_papers_definition(n, dim1, dim2):
    x = normal(n, dim1) + 3
    y = normal(n, dim2, seed=1) + x[:, :1]
    assert linear_cka(x, y) == pytest.approx(by_definition(x, y), abs=1e-10)
    assert linear_cka(y, x) == pytest.approx(linear_cka(x, y), abs=1e-12)


def test_turning_scaling_and_moving_change_nothing():
    x, y = normal(50, 6), normal(50, 9, seed=1) + 0.3
    y[:, :6] += x
    value = linear_cka(x, y)
    assert linear_cka(turned(x), y) == pytest.approx(value, abs=1e-10)
    assert linear_cka(-2.5 * x, y) == pytest.approx(value, abs=1e-10)
    assert linear_cka(x + 100, y) == pytest.approx(value, abs=1e-9)
    assert linear_cka(x, 3 * turned(x) - 7) == pytest.approx(1, abs=1e-10)


def test_stretching_one_direction_does():
    """Unlike a regression, CKA cares how large each direction is (Kornblith et al., section 2)."""
    x = normal(200, 4)
    assert linear_cka(x, x * [10, 1, 1, 1]) < 0.8


def test_an_order_of_rows_for_both_changes_nothing_and_for_one_everything():
    x = normal(300, 5)
    shuffled = np.random.default_rng(2).permutation(300)
    assert linear_cka(x[shuffled], turned(x)[shuffled]) == pytest.approx(1, abs=1e-10)
    assert linear_cka(x[shuffled], x) < 0.1


def test_equal_vectors_have_no_value():
    x = normal(20, 3)
    assert np.isnan(linear_cka(x, np.ones((20, 4))))
    assert np.isnan(linear_cka(x, np.ones((20, 4)) + 1e-8 * normal(20, 4)))  # equal up to rounding


# Layers


@pytest.fixture
def layers():
    """Five layers of 40 tokens in 6 dimensions, each made from the one before."""
    stack = [normal(40, 6)]
    for seed in range(1, 5):
        stack.append(stack[-1] + 0.7 * normal(40, 6, seed=seed))
    return np.array(stack, np.float32)


def test_every_pair_of_layers(layers):
    found = layer_cka(layers)
    assert found.tokens == 40
    for one in range(5):
        for other in range(5):
            assert_close(found.matrix[one, other], by_definition(layers[one], layers[other]))
    np.testing.assert_allclose(np.diagonal(found.matrix), 1, atol=1e-12)
    np.testing.assert_allclose(found.matrix, found.matrix.T, atol=1e-12)
    assert (np.diff(found.matrix[0]) < 0).all()  # layers further apart are less alike


def test_two_models_of_other_depth_and_width(layers):
    other = normal(3, 40, 11, seed=8)
    other[:, :, :6] += 2 * layers[[0, 2, 4]]
    found = layer_cka(layers, other)
    assert found.matrix.shape == found.chance.shape == (5, 3)
    for one in range(5):
        for two in range(3):
            assert_close(found.matrix[one, two], by_definition(layers[one], other[two]))
    assert found.matrix.argmax(axis=0).tolist() == [0, 2, 4]  # each layer finds the one it was made from
    np.testing.assert_allclose(layer_cka(other, layers).matrix, found.matrix.T, atol=1e-12)


def test_a_second_run_that_is_the_first_gives_the_same(layers):
    np.testing.assert_allclose(layer_cka(layers, layers.copy()).matrix, layer_cka(layers).matrix, atol=1e-12)


@pytest.mark.parametrize(("n", "dim"), [(30, 50), (50, 30)])
def test_both_ways_to_compute_agree(n, dim, monkeypatch):
    a, b = normal(3, n, dim), normal(2, n, dim, seed=4)
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    monkeypatch.setattr(cka, "CHUNK", 4 * 5 * n)  # a few rows at a time
    for one, other in zip(cka.by_tokens(a, b), cka.by_dimensions(a, b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    for one, other in zip(cka.by_tokens(a, a), cka.by_dimensions(a, a), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize(("n", "dim", "way"), [(20, 300, "by_tokens"), (900, 4, "by_dimensions")])
def test_the_cheaper_way_is_taken(n, dim, way, monkeypatch):
    other = {"by_tokens": "by_dimensions", "by_dimensions": "by_tokens"}[way]
    monkeypatch.setattr(cka, other, None)  # calling it would be an error
    stack = normal(3, n, 4) @ normal(4, dim, seed=1)  # 4 directions, so that 20 tokens suffice
    np.testing.assert_allclose(np.diagonal(layer_cka(stack).matrix), 1, atol=1e-12)


def test_of_many_tokens_a_fixed_sample_is_taken():
    stack = normal(2, MOST_TOKENS + 500, 6)
    stack[1] = turned(stack[0]) + 0.5 * stack[1]
    sampled, whole = layer_cka(stack), layer_cka(stack, most=10_000)
    assert (sampled.tokens, whole.tokens) == (MOST_TOKENS, MOST_TOKENS + 500)
    np.testing.assert_array_equal(sampled.matrix, layer_cka(stack).matrix)
    np.testing.assert_allclose(sampled.matrix, whole.matrix, atol=0.02)
    assert linear_cka(stack[0], stack[1]) == pytest.approx(whole.matrix[0, 1], abs=1e-12)  # here all rows count


def test_a_layer_of_equal_vectors_has_no_values_and_leaves_the_others_alone(layers):
    layers[2] = layers[2, 0]
    found = layer_cka(layers)
    assert np.isnan(found.matrix[2]).all()
    assert np.isnan(found.matrix[:, 2]).all()
    assert np.isnan(found.chance[2]).all()
    assert np.isfinite(np.delete(np.delete(found.matrix, 2, 0), 2, 1)).all()


# Chance, and how many tokens are enough


def test_chance_is_the_mean_over_all_matchings():
    x, y = normal(5, 3), normal(5, 2, seed=1)
    values = [by_definition(x, y[list(order)]) for order in permutations(range(5))]
    assert layer_cka(x[None], y[None]).chance[0, 0] == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("dim", [10, 24])
def test_unrelated_vectors_have_the_value_the_thresholds_are_made_of(dim):
    """dim / (n + dim): 0.5 at n = dim, 0.1 at n = 9 dim."""
    for times, expected in ((1, 0.5), (3, 0.25), (9, 0.1)):
        n = times * dim
        found = [
            layer_cka(normal(1, n, dim, seed=2 * seed), normal(1, n, dim, seed=2 * seed + 1)) for seed in range(20)
        ]
        assert np.mean([one.matrix[0, 0] for one in found]) == pytest.approx(expected, abs=0.02)
        assert np.mean([one.chance[0, 0] for one in found]) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("n", "judgement"), [(24, "too few"), (120, "few"), (600, "enough")])
def test_random_vectors_are_judged_as_their_numbers_are(n, judgement):
    dim = 40
    assert layer_cka(normal(2, n, dim)).judgement == judgement


def test_vectors_that_use_few_directions_need_fewer_tokens():
    stack = normal(2, 200, 5) @ normal(5, 300, seed=1)  # 5 directions of 300
    assert layer_cka(stack).judgement == "enough"


def test_the_layer_that_uses_most_directions_is_the_one_that_counts():
    narrow, wide = normal(60, 2) @ normal(2, 80, seed=1), normal(60, 80, seed=2)
    assert layer_cka(narrow[None]).judgement == "enough"
    assert layer_cka(np.stack([narrow, wide])).judgement == layer_cka(wide[None]).judgement == "too few"


def test_unrelated_vectors_with_few_tokens_look_the_same_and_are_refused():
    x, y = normal(1, 20, 400), normal(1, 20, 400, seed=1)
    assert by_definition(x[0], y[0]) > 0.9
    with pytest.raises(InputError) as caught:
        layer_cka(x, y)
    assert "20 tokens" in caught.value.problem
    assert "hundred" in caught.value.expected
    assert "Add sentences" in caught.value.fix
    with pytest.raises(InputError):
        linear_cka(x[0], y[0])


@pytest.mark.parametrize("n", [0, 1, 2])
def test_two_tokens_or_fewer_tell_nothing(n):
    with pytest.raises(InputError, match="one token" if n == 1 else f"{n} tokens"):
        layer_cka(normal(3, n, 4))


def test_all_layers_of_equal_vectors_are_missing_and_not_enough():
    found = layer_cka(np.ones((2, 30, 4)))
    assert np.isnan(found.matrix).all()
    assert found.judgement == "too few"


def test_rows_must_match(layers):
    with pytest.raises(ValueError, match="40 and 39"):
        layer_cka(layers, layers[:, :39])


# The embedded model


def test_layers_of_the_embedded_model(embedded):
    sample = embedded.run(SENTENCES)
    found = layer_cka(sample.hidden_states[:, ~sample.special_mask])  # of [layer, token, dim]
    assert found.matrix.shape == (7, 7)
    assert (found.judgement, found.tokens) == ("few", 79)
    assert (found.matrix > found.chance + 0.2).all()
    others = np.where(np.eye(7, dtype=bool), 0, found.matrix)
    assert (abs(others.argmax(axis=1) - np.arange(7)) == 1).all()  # every layer is most like a neighbour
    assert (np.diff(found.matrix[0, :6]) < 0).all()  # and less and less like the embeddings
    assert (others[6, :6] < np.diagonal(found.matrix, -1)[:5].min()).all()  # the last stands apart


def test_cls_is_the_same_at_layer_0_and_has_no_values_there(embedded):
    found = layer_cka(embedded.run(SENTENCES).hidden_states[:, :, 0])
    assert np.isnan(found.matrix[0]).all()
    assert np.isfinite(found.matrix[1:, 1:]).all()
    assert found.judgement == "too few"  # eight sentences


def test_the_arrays_cannot_be_changed(layers):
    found = layer_cka(layers)
    assert not found.matrix.flags.writeable
    assert not found.chance.flags.writeable


@pytest.mark.parametrize("tokens", [40, 60, 200])
def test_the_tokens_needed_bring_chance_below_a_tenth(tokens: int) -> None:
    """Of unrelated normal vectors in 30 dimensions, 270 are needed, however many there are now."""
    few = layer_cka(normal(2, tokens, 30))
    assert few.judgement != "enough"
    assert few.needed == pytest.approx(270, rel=0.1)
    assert layer_cka(normal(2, 300, 30)).judgement == "enough"
    assert layer_cka(normal(2, few.needed, 30)).chance.max() == pytest.approx(cka.FEW, abs=0.01)


def test_801_tokens_may_be_too_few() -> None:
    compared = layer_cka(normal(2, 801, 100))
    assert compared.judgement == "few"
    assert 880 < compared.needed < 920
    enough = layer_cka(normal(2, 1_000, 20))
    assert enough.judgement == "enough"
    assert enough.needed == 1_000


# Without the bias


def hsic1(x: np.ndarray, y: np.ndarray) -> float:
    """Equation 5 of Song et al. 2012, from Gram matrices with zeros on their diagonals, which need not be centred."""
    n = len(x)
    k, m = x @ x.T, y @ y.T
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    ones = np.ones(n)
    products = np.trace(k @ m)
    sums = ones @ k @ ones * (ones @ m @ ones) / ((n - 1) * (n - 2))
    return float((products + sums - 2 / (n - 2) * (ones @ k @ m @ ones)) / (n * (n - 3)))


def debiased_cka(first: np.ndarray, second: np.ndarray) -> float:
    return float(layer_cka(first[None], second[None], most=len(first)).debiased[0, 0])


@pytest.mark.parametrize(("n", "dim1", "dim2"), [(60, 8, 5), (40, 5, 60), (25, 12, 12)])
def test_debiased_equals_the_papers_definition(n, dim1, dim2):
    x = normal(n, dim1) + 3
    y = normal(n, dim2, seed=1) + x[:, :1]
    expected = hsic1(x, y) / np.sqrt(hsic1(x, x) * hsic1(y, y))
    assert debiased_cka(x, y) == pytest.approx(expected, abs=1e-10)
    assert debiased_cka(y, x) == pytest.approx(expected, abs=1e-10)


def test_debiased_with_itself_is_1_however_it_is_turned_scaled_and_moved():
    x, y = normal(50, 6), normal(50, 9, seed=1)
    y[:, :6] += x
    assert debiased_cka(x, x) == pytest.approx(1, abs=1e-12)
    assert debiased_cka(x, 3 * turned(x) - 7) == pytest.approx(1, abs=1e-9)
    assert debiased_cka(-2.5 * turned(x) + 4, y) == pytest.approx(debiased_cka(x, y), abs=1e-9)


def test_unrelated_vectors_are_near_0_only_without_the_bias():
    """Fifty draws of 40 vectors in 20 dimensions: by chance CKA is 20 / 60."""
    drawn = [(normal(40, 20, seed=2 * seed), normal(40, 20, seed=2 * seed + 1)) for seed in range(50)]
    assert np.mean([linear_cka(x, y) for x, y in drawn]) == pytest.approx(1 / 3, abs=0.03)
    assert np.mean([debiased_cka(x, y) for x, y in drawn]) == pytest.approx(0, abs=0.03)


def test_debiased_of_all_layers_and_of_a_layer_without_values(layers):
    layers[2] = layers[2, 0]
    found = layer_cka(layers).debiased
    known = [0, 1, 3, 4]
    assert np.isnan(found[2]).all()
    np.testing.assert_allclose(np.diagonal(found)[known], 1, atol=1e-12)
    for one in known:
        for other in known:
            expected = hsic1(layers[one], layers[other]) / np.sqrt(
                hsic1(layers[one], layers[one]) * hsic1(layers[other], layers[other])
            )
            assert found[one, other] == pytest.approx(expected, abs=1e-5)


def test_of_three_tokens_there_is_no_debiased_value():
    line = np.array([[0.0], [1.0], [5.0]])
    assert np.isnan(debiased_cka(line, line))
