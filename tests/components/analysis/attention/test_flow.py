import numpy as np
import pytest

from components.analysis.attention.flow import rollout, weighted_norms
from components.analysis.attention.flow import summed_norms as summed_norms_of_block
from components.analysis.attention.weights import of_sentence
from components.model.trace import TraceOptions


def random_attention(*shape: int, seed: int = 11) -> np.ndarray:
    """Rows that sum to 1, float64 [..., query, key]."""
    weights = np.random.default_rng(seed).random(shape)
    return weights / weights.sum(axis=-1, keepdims=True)


def summed_norms(attentions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """[block, query, key]."""
    return np.array([summed_norms_of_block(*block) for block in zip(attentions, values, strict=True)])


@pytest.fixture
def random_values():
    return np.random.default_rng(12).normal(size=(3, 4, 5, 7))  # [block, head, key, dim]


# Rollout


def test_tokens_that_look_at_themselves_stay_themselves():
    flow = rollout(np.tile(np.eye(4), (3, 2, 1, 1)))
    np.testing.assert_array_equal(flow, np.tile(np.eye(4), (3, 1, 1)))


def test_two_tokens_by_hand():
    """Both look at token 0 in both blocks: 0.5 A + 0.5 I is [[1, 0], [.5, .5]], and its square halves again."""
    attention = np.tile([[1.0, 0.0], [1.0, 0.0]], (2, 1, 1, 1))
    np.testing.assert_allclose(rollout(attention), [[[1, 0], [0.5, 0.5]], [[1, 0], [0.75, 0.25]]])


def test_blocks_that_differ_are_multiplied_in_their_order():
    """Block 0 swaps, block 1 looks at token 0: 0.5 [[2, 0], [1, 1]] times 0.5 [[1, 1], [1, 1]]."""
    attention = np.array([[[[0, 1], [1, 0]]], [[[1, 0], [1, 0]]]], dtype=float)
    np.testing.assert_allclose(rollout(attention)[0], [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(rollout(attention)[1], [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(rollout(attention[::-1])[0], [[1, 0], [0.5, 0.5]])
    np.testing.assert_allclose(rollout(attention[::-1])[1], [[0.75, 0.25], [0.75, 0.25]])


def test_uniform_attention_by_hand():
    """U U = U, so after b blocks what stays of the token itself is a half to the b-th, and the rest is even."""
    tokens = 5
    even = np.full((4, 3, tokens, tokens), 1 / tokens)
    for block, flow in enumerate(rollout(even), start=1):
        stayed = 0.5**block
        np.testing.assert_allclose(flow, stayed * np.eye(tokens) + (1 - stayed) / tokens, atol=1e-12)


def test_heads_are_averaged_first():
    attention = random_attention(2, 4, 6, 6)
    np.testing.assert_allclose(rollout(attention), rollout(attention.mean(axis=1, keepdims=True)), atol=1e-12)


def test_rollout_equals_a_plain_product():
    attention = random_attention(3, 2, 4, 4)
    one, two, three = (0.5 * block.mean(axis=0) + 0.5 * np.eye(4) for block in attention)
    np.testing.assert_allclose(rollout(attention)[2], three @ two @ one, atol=1e-12)


def test_the_residual_by_itself_and_attention_by_itself():
    attention = random_attention(2, 3, 4, 4)
    np.testing.assert_allclose(rollout(attention, residual=1), np.tile(np.eye(4), (2, 1, 1)))
    first, second = attention.mean(axis=1)
    np.testing.assert_allclose(rollout(attention, residual=0)[1], second @ first, atol=1e-12)


def test_rows_sum_to_one_even_when_attentions_are_off():
    rounded = np.round(random_attention(6, 4, 9, 9), 2).astype(np.float32)
    np.testing.assert_allclose(rollout(rounded).sum(axis=-1), 1, atol=1e-12)


def test_rollout_of_a_real_trace(tiny_backends):
    run = tiny_backends["bert"].run(["the cat sat on the bank"], options=TraceOptions(attentions=True))
    flow = rollout(of_sentence(run, 0))
    assert flow.shape == (3, 8, 8)
    assert (flow >= 0).all()
    np.testing.assert_allclose(flow.sum(axis=-1), 1, atol=1e-12)


@pytest.mark.parametrize("residual", [-0.1, 1.1])
def test_a_share_outside_the_whole_is_refused(residual):
    with pytest.raises(ValueError, match="expected 0 to 1"):
        rollout(random_attention(1, 1, 2, 2), residual)


def test_attentions_of_one_head_alone_are_refused():
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        rollout(np.eye(3))
    with pytest.raises(ValueError, match=r"\(1, 1, 2, 3\)"):
        rollout(np.ones((1, 1, 2, 3)))


# Norms


def test_norms_by_hand():
    """Two keys with values of length 5 and 1: a quarter of the long one outweighs three quarters of the short one."""
    attention = np.array([[[[0.25, 0.75], [0.0, 1.0]]]])
    values = np.array([[[[3.0, 4.0], [0.0, 1.0]]]])
    expected = [[[[1.25, 0.75], [0, 1]]]]
    np.testing.assert_allclose(weighted_norms(attention, np.linalg.norm(values, axis=-1)), expected)
    np.testing.assert_allclose(summed_norms(attention, values), np.array(expected)[:, 0])


def test_heads_add_up_or_cancel_by_hand():
    """Two heads, equal weights 0.5: the same value doubles, opposite ones vanish, right angles give the diagonal."""
    attention = np.full((1, 2, 2, 2), 0.5)
    length = weighted_norms(attention, np.ones((1, 2, 2)))
    np.testing.assert_allclose(length, 0.5)
    for second, expected in (([1, 0], 1), ([-1, 0], 0), ([0, 1], np.sqrt(0.5))):
        values = np.array([[[[1, 0], [1, 0]], [second, second]]], dtype=float)
        np.testing.assert_allclose(summed_norms(attention, values), expected, atol=1e-12)


def test_one_head_sums_to_itself(random_values):
    attention, values = random_attention(3, 1, 5, 5), random_values[:, :1]
    norms = weighted_norms(attention, np.linalg.norm(values, axis=-1))
    np.testing.assert_allclose(summed_norms(attention, values), norms[:, 0], rtol=1e-6)


def test_norms_equal_the_vectors_built_in_full(random_values):
    attention = random_attention(3, 4, 5, 5)
    moved = attention[..., None] * random_values[:, :, None]  # [block, head, query, key, dim]
    norms = np.linalg.norm(random_values, axis=-1)
    np.testing.assert_allclose(weighted_norms(attention, norms), np.linalg.norm(moved, axis=-1), rtol=1e-6)
    np.testing.assert_allclose(summed_norms(attention, random_values), np.linalg.norm(moved.sum(axis=1), axis=-1))


def test_together_heads_add_no_more_than_each_by_itself(random_values):
    attention = random_attention(3, 4, 5, 5)
    each = weighted_norms(attention, np.linalg.norm(random_values, axis=-1)).sum(axis=1)
    assert (summed_norms(attention, random_values) <= each * (1 + 1e-6)).all()


def test_longer_values_give_norms_longer_by_as_much(random_values):
    attention = random_attention(3, 4, 5, 5)
    np.testing.assert_allclose(summed_norms(attention, 3 * random_values), 3 * summed_norms(attention, random_values))


def test_a_token_without_attention_or_value_adds_nothing(random_values):
    attention = random_attention(3, 4, 5, 5)
    attention[..., 2] = 0
    random_values[:, :, 4] = 0
    for norms in (
        weighted_norms(attention, np.linalg.norm(random_values, axis=-1)),
        summed_norms(attention, random_values),
    ):
        assert (norms[..., 2] == 0).all()
        assert (norms[..., 4] == 0).all()
        assert (norms[..., [0, 1, 3]] > 0).all()


def test_values_that_do_not_fit_are_refused(random_values):
    attention = random_attention(3, 4, 5, 5)
    with pytest.raises(ValueError, match=r"\(3, 4, 6\)"):
        weighted_norms(attention, np.ones((3, 4, 6)))
    with pytest.raises(ValueError, match=r"\(3, 5, 7\)"):
        summed_norms(attention, random_values[:, :3])
