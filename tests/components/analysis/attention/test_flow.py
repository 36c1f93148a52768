import numpy as np
import pytest
import torch

from components.analysis.attention.flow import block_shares, median_of_others, norm_flow, rollout, weighted_norms
from components.analysis.attention.flow import summed_norms as summed_norms_of_block
from components.analysis.attention.weights import of_sentence
from components.model.backend import Backend
from components.model.catalog import ModelSpec
from components.model.trace import TraceOptions
from tests.support import plain_encoder as plain
from tests.support.tiny import DISTINCT, tiny_model


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


# Norms through all blocks


def plain_shares(text: str) -> np.ndarray:
    """Kobayashi et al. 2021 by torch on the included model, with every vector in full: [block, query, key]."""
    _, model = plain._loaded()
    reference, found = plain.run(text), []
    with torch.inference_mode():
        for block, layer in enumerate(model.encoder.layer):
            vectors, attention = (
                torch.tensor(values[block]).double() for values in (reference.vectors, reference.attention)
            )
            count, dim = vectors.shape
            part = layer.attention.self.value
            value = (vectors @ part.weight.double().T + part.bias.double()).view(count, 12, dim // 12)
            output = layer.attention.output.dense.weight.double().view(dim, 12, dim // 12)
            parts = torch.einsum("hij,hjd->ijd", attention, torch.einsum("nhk,dhk->hnd", value, output))
            parts[torch.arange(count), torch.arange(count)] += vectors
            norm = layer.attention.output.LayerNorm
            whole = parts.sum(1) + layer.attention.output.dense.bias.double()
            spread = torch.sqrt(whole.var(-1, unbiased=False) + norm.eps)[:, None, None]
            lengths = ((parts - parts.mean(-1, keepdim=True)) / spread * norm.weight.double()).norm(dim=-1)
            found.append((lengths / lengths.sum(-1, keepdim=True)).numpy())
    return np.array(found)


def test_norms_through_all_blocks_equal_torch(embedded):
    text = "The trophy does not fit in the suitcase because it is too big."
    shares = plain_shares(text)
    expected = [shares[0]]
    for share in shares[1:]:
        expected.append(share @ expected[-1])
    trace, inside = embedded.trace([text], attentions=True), embedded.inside(text)
    found = norm_flow(of_sentence(trace, 0), inside, embedded.block_norms())
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-12)
    # As the prototype measured it: "it" is no more "trophy" than other words are.
    assert np.round(100 * found[-1, 10, [2, 8, 10]]).tolist() == [15, 13, 5]


@pytest.mark.parametrize("architecture", DISTINCT)
def test_shares_of_every_structure_are_those_of_the_parts_behind_the_norm(architecture):
    backend = Backend(ModelSpec(f"tiny-{architecture}", "folder", architecture), "0", *tiny_model(architecture))
    inside, norms = backend.inside("the cat sat on"), backend.block_norms()
    attention = inside.attentions.astype(np.float64)
    found = norm_flow(inside.attentions, inside, norms)
    previous = np.eye(attention.shape[-1])
    for block in range(len(attention)):
        values, vectors = inside.value_contributions(block), inside.hidden_states[block].astype(np.float64)
        parts = np.einsum("hqk,hkd->qkd", attention[block], values.astype(np.float64))  # [query, key, dim]
        parts[range(len(vectors)), range(len(vectors))] += vectors
        bias = inside.projection.bias[block].astype(np.float64)
        if norms.blocks:  # the parts, the bias and the shift add up to the vector behind the norm
            norm = norms.blocks[block][0]
            deviation = norm.deviation(parts.sum(axis=1) + bias)[:, None, None]
            behind = [
                (x - x.mean(axis=-1, keepdims=True) if norm.is_centred else x) * norm.scale for x in (parts, bias)
            ]
            parts, bias = behind[0] / deviation, behind[1] / deviation[:, 0] + norm.shift
        np.testing.assert_allclose(parts.sum(axis=1) + bias, inside.after_attention[block], atol=2e-5)
        lengths = np.linalg.norm(parts, axis=-1)
        previous = lengths / lengths.sum(axis=1, keepdims=True) @ previous
        np.testing.assert_allclose(found[block], previous, atol=1e-6)


def test_a_token_that_looks_only_at_itself_stays_itself(random_values):
    residual = np.random.default_rng(3).normal(size=(5, 7))
    shares = block_shares(np.tile(np.eye(5), (4, 1, 1)), random_values[0], residual, None)
    np.testing.assert_allclose(shares, np.eye(5), atol=1e-12)
    # Vectors that cancel leave nothing to share out.
    silent = block_shares(np.zeros((4, 5, 5)), random_values[0], np.zeros((5, 7)), None)
    assert (silent == 0).all()


def test_what_the_other_words_take_is_a_median_without_the_two_and_special_tokens():
    values = np.arange(36.0).reshape(6, 6)
    special = np.array([True, False, False, False, False, True])
    found = median_of_others(values, special, 2, [1, 2, 5])
    np.testing.assert_allclose(found, [np.median([19, 25]), np.median([8, 20, 26]), np.median([11, 23, 29])])
    assert np.isnan(median_of_others(values[:3, :3], special[:3], 2, [1])).all()  # no third word
