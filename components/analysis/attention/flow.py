"""The effect of attention weights: attention rollout through all blocks, and attention weighted by vector norms.

Rollout (Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3): a block's output is
its input (the residual) plus the output of attention, so that one block mixes tokens as 0.5 A + 0.5 I, where A is the
mean over heads; several blocks mix as the product of these. Row q says from which input tokens the vector of q comes.

Norms (Kobayashi et al. 2020, "Attention is Not Only a Weight", section 3): attention adds alpha f(x) to the
query's vector, where f(x) = (x W_V + b_V) W_O is the key's transformed value in this head. Its length
||alpha f(x)|| is the size of the key's contribution, and in BERT the keys with large weights ([CLS], [SEP], punctuation)
often have short f(x). For all heads together the vectors are summed before the length is computed, because they can
cancel. So can the contributions of several keys: what they add up to may be shorter than any of them.

Norms through all blocks (Kobayashi et al. 2021, "Incorporating Residual and Normalization Layers into Analysis of Masked
Language Models", section 3): what token j gives to token i in a block is the length of all that comes from j, the residual
included where j is i, behind the norm after attention. Lengths as shares of a row, multiplied through the blocks as rollout
does, say from which input tokens a vector comes. The residual's share is measured here, not half by decree, and a heavy
weight on a short vector counts little. The feed-forward part stays at its token.

What they do not show: rollout treats residual and attention as equally strong, and all heads and values as equal,
so that it becomes more uniform with depth in every model. Norms of one block cover only its attention: residual,
norms and the feed-forward part come with it or after it and can undo it, and a long vector need
not matter for the result. Shares of lengths leave out that contributions can cancel. None explains a prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from components.arrays import Float32, Float64

if TYPE_CHECKING:
    from components.model.contributions.block_norms import BlockNorms
    from components.model.inside import InsideBlocks


class LinearNorm(Protocol):
    """What of a norm counts here, as `VectorNorm` has it."""

    @property
    def scale(self) -> Float64:
        """[dim]"""

    @property
    def is_centred(self) -> bool:
        """Whether the mean is subtracted (LayerNorm; not RMSNorm)."""


def rollout(attentions: np.ndarray, residual: float = 0.5) -> Float64:
    """Attentions [block, head, query, key] multiplied through: float64 [block, query, key].

    Entry [b, q, k] is the share of token q's vector after block b (layer b+1) that comes from token k at layer
    0. Each row sums to 1. `residual` is the share of the residual in each block, 0.5 in the paper; with 1 no token
    is mixed with another. Raises ValueError for a residual outside 0..1 or attentions of another shape.
    """
    if not 0 <= residual <= 1:
        raise ValueError(f"the residual's share is {residual}, expected 0 to 1")
    if attentions.ndim != 4 or attentions.shape[2] != attentions.shape[3]:
        raise ValueError(f"attentions [block, head, query, key] were expected, not of shape {attentions.shape}")
    if not len(attentions):
        return np.empty((0, *attentions.shape[2:]))
    own = residual * np.eye(attentions.shape[2])
    return through_blocks((1 - residual) * heads.mean(axis=0, dtype=np.float64) + own for heads in attentions)


def through_blocks(mixes: Iterable[np.ndarray]) -> Float64:
    """How each block mixes tokens, [query, key], multiplied through: float64 [block, query, key].

    Entry [b, q, k] is the share of token q's vector after block b that comes from token k at layer 0. Rows are divided by
    their sums first, so that rounding errors do not accumulate over the blocks.
    """
    flow: list[Float64] = []
    for mix in mixes:
        total = np.asarray(mix.sum(axis=1, keepdims=True), np.float64)
        shares = np.asarray(mix / np.where(total > 0, total, 1), np.float64)  # [query, key]
        flow.append(shares @ flow[-1] if flow else shares)
    return np.array(flow)


def block_shares(weights: np.ndarray, vectors: np.ndarray, residual: np.ndarray, norm: LinearNorm | None) -> Float64:
    """Which share of a token's vector behind a block's attention comes from each token, float64 [query, key]; rows sum to 1.

    From attentions [head, query, key], transformed values f(x) [head, key, dim], the vectors that the residual carries
    [token, dim], and the norm that follows, None where there is none. The norm divides all parts of a vector by the same
    number, which changes no share: what it does besides is to subtract the mean, if it is `is_centred`, and to scale.
    Biases belong to no token and are left out. Raises ValueError if the shapes do not fit.
    """

    def behind_the_norm(parts: np.ndarray) -> Float64:
        wide = np.asarray(parts, np.float64)
        if norm is None:
            return wide
        centred = wide - wide.mean(axis=-1, keepdims=True) if norm.is_centred else wide
        return np.asarray(centred * norm.scale, np.float64)

    values, own = behind_the_norm(vectors), behind_the_norm(residual)
    lengths = summed_norms(weights, values)
    # A token gives itself the residual too, which adds to what attention brings before the length is taken.
    to_itself = np.einsum("hii,hid->id", np.asarray(weights, np.float64), values) + own
    np.fill_diagonal(lengths, np.linalg.norm(to_itself, axis=-1))
    total = lengths.sum(axis=1, keepdims=True)
    return np.asarray(lengths / np.where(total > 0, total, 1), np.float64)


def norm_flow(attentions: np.ndarray, inside: InsideBlocks, norms: BlockNorms) -> Float64:
    """Norms through all blocks: float64 [block, query, key], as `rollout` has it; rows sum to 1.

    From attentions [block, head, query, key], the record of the same input (`Backend.inside`), and the model's norms
    (`Backend.block_norms`). Where norms come first, none follows attention before the residual is added.
    """
    return through_blocks(
        block_shares(
            weights,
            inside.value_contributions(block),
            inside.hidden_states[block],
            norms.blocks[block][0] if norms.blocks else None,
        )
        for block, weights in enumerate(attentions)
    )


def median_of_others(values: np.ndarray, special: np.ndarray, token: int, keys: Sequence[int]) -> Float64:
    """What other words take from each of the `keys`, as a median, [key]; NaN where there are none.

    `values` [query, key] are those of the whole input. Neither the token nor the key itself counts, nor a special token.
    """
    queries = np.arange(len(values))
    found = [values[~special & (queries != token) & (queries != key), key] for key in keys]
    return np.array([np.median(column) if len(column) else np.nan for column in found])


def weighted_norms(attentions: np.ndarray, value_norms: np.ndarray) -> Float32:
    """||alpha f(x)|| of every head: what each key adds to each query, float32 [block, head, query, key].

    From attentions [block, head, query, key] and the norms of the transformed values, ||f(x)||, [block, head,
    key]: alpha is not negative and can be taken out of the norm. The unit is length in the model's vector space;
    rows do not sum to 1. Raises ValueError if the shapes do not fit.
    """
    if attentions.shape[:2] + attentions.shape[3:] != value_norms.shape:
        raise ValueError(f"norms of shape {value_norms.shape} do not fit attentions of shape {attentions.shape}")
    return np.multiply(attentions, value_norms[:, :, None, :], dtype=np.float32)


def summed_norms(weights: np.ndarray, vectors: np.ndarray) -> Float64:
    """||sum over heads of alpha f(x)||: what each key adds to each query in one block, float64 [query, key].

    From attentions [head, query, key] and transformed values f(x) [head, key, dim]. The output projection's bias belongs
    to no key and is left out. Raises ValueError if the shapes do not fit.

    For every key the squared norm is a^T G a, where a contains the weights of the heads and G [head, head] the dot
    products of their values for this key: no array of size query x key x dim is needed.
    """
    if weights.shape[::2] != vectors.shape[:2]:
        raise ValueError(f"values of shape {vectors.shape} do not fit attentions of shape {weights.shape}")
    by_key = np.asarray(vectors, np.float64).transpose(1, 0, 2)  # [key, head, dim]
    products = by_key @ by_key.transpose(0, 2, 1)  # [key, head, head]
    by_query = np.asarray(weights, np.float64).transpose(2, 1, 0)  # [key, query, head]
    squares = ((by_query @ products) * by_query).sum(axis=-1)  # [key, query]
    # Heads that cancel leave a rounding error, which may be negative.
    return np.sqrt(np.maximum(squares, 0)).T
