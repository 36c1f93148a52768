"""The cosine of two texts, split into the contributions of pairs of tokens at the same layer. Exact, and no forward pass.

With mean pooling a text's vector is the mean of its tokens' vectors, so that the cosine is a sum over all pairs:

    cos(a, b) = sum over i, j of  x_i . y_j / (n_a n_b |a| |b|)

The [CLS] vector is one token's, so that all of the cosine is one cell. The maximum takes each dimension from one token,
which then has all of that dimension's product (if several tokens share the maximum, the first has it). This linear form of
pooling is exact and well known; Moeller, Nikolaev and Pado 2023 compare their attributions with it. Joined poolings add what
each token adds to each of them. For the model's own vector the split is that of the vectors before what follows the pooling,
such as Dense layers, and what this changes is a term of its own.

What it does not show: what the words as typed contribute. At layers above 0 each token's vector has something of all other
tokens in it; special tokens have no content of their own, and still large contributions.
"""

from __future__ import annotations

import numpy as np

from components.analysis.pooling import pool, pooled_for_head
from components.analysis.why.ledger import Ledger, Term, token_parts
from components.arrays import Float32, Float64, cosine
from components.model.trace import Pooling, SentenceHead, Trace

HEAD_TERM = "what follows the pooling"


def token_ledger(trace: Trace, layer: int, pooling: Pooling, first: int = 0, second: int = 1) -> Ledger:
    """The ledger of two sentences of a trace. Raises ValueError for a layer or pooling that does not exist."""
    if not 0 <= layer <= trace.n_layers or pooling not in trace.poolings:
        raise ValueError(f"layer {layer} with pooling {pooling!r} does not exist")
    before, final = pooled_pair(trace, layer, pooling, first, second)
    parts = [
        tokens * weights for (tokens, weights) in (token_weights(trace, layer, pooling, row) for row in (first, second))
    ]
    contributions = token_contributions(parts[0], parts[1])
    value, pooled_value = cosine_of(final), cosine_of(before)
    return Ledger(
        token_parts(trace.sentences[first]),
        token_parts(trace.sentences[second]),
        contributions,
        (Term(HEAD_TERM, value - pooled_value),) if pooling == "own" else (),
        value,
        (float(np.linalg.norm(final[0])), float(np.linalg.norm(final[1]))),
        layer,
        pooling,
    )


def token_contributions(first: Float64, second: Float64) -> Float64:
    """What each pair of tokens adds to the cosine of two vectors, float64 [first token, second token].

    `first` and `second` are what each token adds to the two vectors, [token, dim] each. A cosine with a zero vector counts
    as 0, and so do its parts.
    """
    scale = float(np.linalg.norm(first.sum(axis=0)) * np.linalg.norm(second.sum(axis=0)))
    return np.asarray(first @ second.T / (scale or 1.0))


def pooled_pair(trace: Trace, layer: int, pooling: Pooling, first: int, second: int) -> tuple[Float64, Float64]:
    """The vectors of two sentences before the Dense layers and after them, each float64 [2, dim].

    Both are the same but for the model's own vector.
    """
    rows = [first, second]
    final = pool(trace, pooling)[layer, rows].astype(np.float64)
    if pooling == "own" and trace.head is not None:
        return pooled_for_head(trace, trace.head)[layer, rows].astype(np.float64), final
    return final, final


def cosine_of(vectors: Float64) -> float:
    """The cosine of two vectors [2, dim]."""
    return float(cosine(vectors[0], vectors[1]))


def token_weights(trace: Trace, layer: int, pooling: Pooling, sentence: int) -> tuple[Float64, Float64]:
    """The vectors of a sentence's tokens and the weight of each number in the pooled vector, each float64 [token, dim].

    Their product sums to the pooled vector, for "own" to the vector before what follows the pooling. Where several poolings
    are joined, the vectors are repeated once for each.
    """
    states = trace.hidden_states[:, sentence, : len(trace.sentences[sentence])]
    if pooling == "own" and trace.head is not None:
        return head_weights(trace.head, states, layer, trace.sentences[sentence].prompt_tokens)
    vectors = states[layer].astype(np.float64)
    return vectors, pooling_weights(vectors, pooling)


def head_weights(head: SentenceHead, states: Float32, layer: int, prompt_tokens: int) -> tuple[Float64, Float64]:
    """The same for the model's own vector of one text, whose `states` are [layer, token, dim]."""
    vectors = head.token_vectors(np.ascontiguousarray(states), layer).astype(np.float64)
    return np.tile(vectors, len(head.modes)), head.weights(vectors, prompt_tokens)


def pooling_weights(vectors: np.ndarray, pooling: Pooling) -> Float64:
    """How much of each token's value in each dimension a pooled vector takes, float64 [token, dim].

    The pooled vector of token vectors [token, dim] is the sum over the tokens of these weights times them. Raises
    ValueError for the model's own vector, which is not such a sum.
    """
    weights = np.zeros(vectors.shape)
    if pooling == "mean":
        weights[:] = 1 / len(vectors)
    elif pooling == "cls":
        weights[0] = 1
    elif pooling == "last":
        weights[-1] = 1
    elif pooling == "max":
        weights[vectors.argmax(axis=0), np.arange(vectors.shape[1])] = 1
    else:
        raise ValueError(f"{pooling!r} is no weighted sum of tokens")
    return weights
