"""From the tokens' vectors of the last layer to the sentence's vector: pooling, and what the model has after it.

A mean is a sum of shares: every token, special ones too, has the same share, as in the model's own vector (components.analysis.
pooling). For [CLS] or the last token, one token has it all. A maximum takes each number from the token where it is largest, so
that there is no share of a token. Published Dense layers, and scaling between or after them, are steps of their own
(components.model.head). Scaling alone changes no cosine, and is not done here, as in `Backend.embed`.

What it does not show: which tokens matter. Equal shares of a mean do not mean equal influence: vectors have different lengths,
and each of them has already taken from the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.analysis.why.token_ledger import head_weights
from components.arrays import Float32, Float64, read_only
from components.model.trace import Pooling, Trace


@dataclass(frozen=True, eq=False)
class SentenceSteps:
    """How one sentence's vector is made; arrays are read-only."""

    pooling: Pooling  # of the tokens' vectors: mean, cls, max or last; "own" for another
    weights: Float64 | None  # [token]: the share of each token; None for a maximum, and where there are several
    pooled: Float32  # [pooled]
    steps: tuple[tuple[str, Float32], ...]  # what follows, in order, each by its name in plain words, [size]
    vector: Float32  # [size]: the result of the last step

    def __post_init__(self) -> None:
        if self.weights is not None:
            read_only(self.weights)
        for array in (self.pooled, self.vector, *(vector for _, vector in self.steps)):
            read_only(array)


def sentence_steps(trace: Trace, sentence: int, pooling: Pooling, last_layer: Float32 | None = None) -> SentenceSteps:
    """The steps to the vector of one sentence of a trace.

    `pooling` is the model's own (`Backend.own_pooling`) or another that it offers; "own" is made as it was published.
    `last_layer` are the tokens' vectors [token, dim] of another pass over the sentence, such as one that looks only left.
    Raises IndexError for a sentence that does not exist; ValueError for a pooling that the trace does not offer, and for
    vectors of another shape than the trace's.
    """
    length = len(trace.sentences[sentence])
    own = trace.hidden_states[-1, sentence, :length]
    states = own if last_layer is None else last_layer
    if states.shape != own.shape:
        raise ValueError(f"vectors of the shape {own.shape} were expected, not {states.shape}")
    head = trace.head if pooling == "own" else None
    kind = pooling if head is None else head.pooling or "own"
    if head is not None and head.pooling is None:
        every = np.concatenate([trace.hidden_states[:-1, sentence, :length], states[None]])
        vectors, parts = head_weights(head, every, trace.n_layers, trace.sentences[sentence].prompt_tokens)
        pooled = np.asarray((vectors * parts).sum(axis=0), np.float32)
        weights = parts[:, 0] if (parts == parts[:, :1]).all() else None
    else:
        weights = _shares(kind, length)
        wide: Float64 = states.astype(np.float64)
        pooled = np.asarray(wide.max(axis=0) if weights is None else weights @ wide, np.float32)
    steps = () if head is None else head.steps(pooled)
    return SentenceSteps(kind, weights, pooled, steps, steps[-1][1] if steps else pooled)


def _shares(pooling: Pooling, tokens: int) -> Float64 | None:
    """The share of each token [token]; None for a maximum. Raises ValueError for a pooling without a rule."""
    if pooling == "max":
        return None
    if pooling == "mean":
        return np.full(tokens, 1 / tokens)
    if pooling not in ("cls", "last"):
        raise ValueError(f"unknown pooling {pooling!r}")
    shares = np.zeros(tokens)
    shares[0 if pooling == "cls" else -1] = 1.0
    return shares
