"""Why a sentence matches: the best document token for each query token (late interaction, ColBERT's MaxSim).

Khattab and Zaharia 2020, equation 3: score(q, d) = sum over query tokens i of max over document tokens j of
cos(q_i, d_j). It is not symmetric: further content of the document costs nothing. Models with one vector per
sentence are not trained for it; here it illustrates which tokens are similar, and is not how the hit was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.analysis.block_change import positions_of
from components.arrays import Float32, Int64, unit
from components.model.trace import Trace


@dataclass(frozen=True, eq=False)
class MaxSim:
    """Token similarities of a query and a document."""

    matrix: Float32  # [query token, document token]: cosines
    query_positions: tuple[int, ...]  # of the rows, in the model's input
    document_positions: tuple[int, ...]  # of the columns

    @property
    def best(self) -> Int64:
        """For each query token the column of its best document token, int64 [query token]."""
        return self.matrix.argmax(axis=1)

    @property
    def total(self) -> float:
        """The sum of the best cosines: ColBERT's score."""
        return float(self.matrix.max(axis=1).sum(dtype=np.float64))

    @property
    def mean(self) -> float:
        """The total divided by the number of query tokens: 1 if each has an identical direction in the document."""
        return self.total / len(self.matrix)

    @property
    def weights(self) -> Float32:
        """How well each document token matches, float32 [document token] in 0..1: its best cosine, 0 if it is no best match."""
        weights = np.zeros(self.matrix.shape[1], np.float32)
        np.maximum.at(weights, self.best, self.matrix.max(axis=1))
        return np.clip(weights, 0, 1)


def max_sim(query: Float32, document: Float32) -> Float32:
    """Cosines of token vectors [query token, dim] and [document token, dim]: float32 [query token, document token]."""
    return unit(query) @ unit(document).T


def of_trace(trace: Trace, layer: int, query: int = 0, document: int = 1, include_special: bool = False) -> MaxSim:
    """MaxSim of two sentences of a trace at a layer. Raises ValueError if one has no token left."""
    all_positions = [positions_of(trace, sentence, include_special) for sentence in (query, document)]
    if not all(all_positions):
        raise ValueError("a text without tokens of its own has nothing to match")
    vectors = [
        trace.hidden_states[layer, sentence, list(positions)]
        for sentence, positions in zip((query, document), all_positions, strict=True)
    ]
    return MaxSim(max_sim(*vectors), *all_positions)
