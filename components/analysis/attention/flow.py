"""The effect of attention weights: attention rollout through all blocks, and attention weighted by vector norms.

Rollout (Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3): a block's output is
its input (the residual) plus the output of attention, so that one block mixes tokens as 0.5 A + 0.5 I, where A is the
mean over heads; several blocks mix as the product of these. Row q says from which input tokens the vector of q comes.

Norms (Kobayashi et al. 2020, "Attention is Not Only a Weight", section 3): attention adds alpha f(x) to the
query's vector, where f(x) = (x W_V + b_V) W_O is the key's transformed value in this head. Its length
||alpha f(x)|| is the size of the key's contribution, and in BERT the keys with large weights ([CLS], [SEP], punctuation)
often have short f(x). For all heads together the vectors are summed before the length is computed, because they can
cancel. So can the contributions of several keys: what they add up to may be shorter than any of them.

What they do not show: rollout treats residual and attention as equally strong, and all heads and values as equal,
so that it becomes more uniform with depth in every model. Norms cover only one block's attention: residual,
norms and the feed-forward part come with it or after it and can undo it (Kobayashi et al. 2021), and a long vector need
not matter for the result. Neither explains a prediction.
"""

from __future__ import annotations

import numpy as np

from components.arrays import Float32, Float64


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
    tokens = attentions.shape[2]
    flow = np.empty((len(attentions), tokens, tokens))
    total_mix = np.eye(tokens)  # [token, token at layer 0]
    for block, heads in enumerate(attentions):
        mixed = (1 - residual) * heads.mean(axis=0, dtype=np.float64) + residual * np.eye(tokens)  # [query, key]
        mixed /= mixed.sum(
            axis=1, keepdims=True
        )  # rounding errors of the attentions must not accumulate over the blocks
        total_mix = mixed @ total_mix
        flow[block] = total_mix
    return flow


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
