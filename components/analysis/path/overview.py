"""The path of every token through all layers, and how much it takes from each token in every block.

Attention adds to a query i, of a key j, the sum over the heads h of attention[h, i, j] f_h(x_j), where f_h(x) is the value
times the head's rows of the output matrix (components.model.inside). The length of this vector is how much i takes from j
(Kobayashi et al. 2020, section 3). A weight alone does not say it: a key with a high weight and a short value adds little.

What it does not show: vectors that are taken may cancel each other, and the residual and the norm follow. So the lengths do
not add up to the length of what attention adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float32, read_only
from components.model.inside import InsideBlocks
from components.model.trace import TokenizedSentence, Trace


@dataclass(frozen=True, eq=False)
class PathOverview:
    """One sentence or pair on its way through all layers, without padding; arrays are read-only."""

    sentence: TokenizedSentence
    layers: Float32  # [layer 0..L, token, dim]
    parts: dict[str, Float32]  # what layer 0 is summed from, by name, [token, dim, or a size of their own]
    took: Float32 | None  # [block, query, key]: how much the query takes from each key; None without blocks

    def __post_init__(self) -> None:
        read_only(self.layers)
        for part in self.parts.values():
            read_only(part)
        if self.took is not None:
            read_only(self.took)


def overview(trace: Trace, sentence: int, record: InsideBlocks | None) -> PathOverview:
    """The path of a sentence of a trace; its layers are those of `record` where there is one.

    So the layers of a pass that looks only left are its own. A static model has no record. Raises IndexError for a sentence
    that does not exist, and ValueError for a record of other tokens or without attentions, or a trace without embedding parts.
    """
    tokens = trace.sentences[sentence]
    if trace.embedding_parts is None:
        raise ValueError("this trace has no embedding parts")
    parts = {name: part[sentence, : len(tokens)] for name, part in trace.embedding_parts.named.items()}
    if record is None:
        return PathOverview(tokens, trace.hidden_states[:, sentence, : len(tokens)], parts, None)
    if record.sentence.tokens != tokens.tokens:
        raise ValueError("the record is of other tokens than the trace")
    if record.attentions is None:
        raise ValueError("this record has no attentions")
    took = np.stack(
        [taken(weights, record.value_contributions(block)) for block, weights in enumerate(record.attentions)]
    )
    return PathOverview(tokens, record.hidden_states, parts, took)


def taken(weights: Float32, contributions: Float32) -> Float32:
    """How much each query takes from each key in one block, float32 [query, key].

    `weights` are its attentions [head, query, key], `contributions` what each head gives of each key, [head, key, dim]. The
    square of the length of a sum is the sum of all products of its terms, so the vectors of all queries and keys, which would
    take tokens x tokens x dim numbers, are never there.
    """
    vectors = contributions.astype(np.float64).swapaxes(0, 1)  # [key, head, dim]
    products = vectors @ vectors.swapaxes(1, 2)  # [key, head, head]
    shares = weights.astype(np.float64).transpose(2, 0, 1)  # [key, head, query]
    squares = (shares * (products @ shares)).sum(axis=1)  # [key, query]
    return np.sqrt(np.maximum(squares, 0)).T.astype(np.float32)  # rounding may give less than 0
