"""From queries and keys to attention: the scores of one head, what they are summed from, and their softmax.

attention(i, j) = softmax over j of score(i, j), over the keys j that the query i may attend to (Vaswani et al. 2017). In BERT
the score is the scaled product of query and key. DeBERTa adds two products with vectors of the distance (He et al. 2021,
"disentangled"), MPNet a number for the distance. Where positions enter by rotation (Su et al. 2021), they are already in
queries and keys.

What it does not show: a score by itself means little. Only differences between the scores of one query count, since adding
the same number to all of them leaves its attention as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from components.arrays import Float64, read_only
from components.model.inside import InsideBlocks


@dataclass(frozen=True, eq=False)
class HeadScores:
    """The scores of one head over one input."""

    parts: Mapping[str, Float64]  # each [query, key]; their sum is the score
    allowed: NDArray[np.bool_]  # [query, key]: the keys that a query may attend to

    @property
    def total(self) -> Float64:
        """The scores, [query, key]; also of keys that the query may not attend to."""
        return np.asarray(sum(self.parts.values()), np.float64)

    @property
    def attention(self) -> Float64:
        """The softmax of the scores, [query, key]; 0 outside the window."""
        return softmax(self.total, self.allowed)


def head_scores(record: InsideBlocks, block: int, head: int, window: int | None = None) -> HeadScores:
    """The scores of a head; `record` needs the terms of the scores (`score_terms`) where the model has some.

    `window` is the block's (`Structure.windows`). Raises IndexError for a block or head that does not exist.
    """
    parts = {name: read_only(values.astype(np.float64)) for name, values in record.score_parts(block, head).items()}
    return HeadScores(parts, in_window(len(record.sentence), window))


def in_window(tokens: int, window: int | None) -> NDArray[np.bool_]:
    """Which keys each query may attend to, bool [query, key]: those at most `window` positions away, or all."""
    positions = np.arange(tokens)
    distances = np.abs(positions[:, None] - positions)
    return read_only(distances <= (tokens if window is None else window))


def softmax(scores: Float64, allowed: NDArray[np.bool_]) -> Float64:
    """The shares of each row [..., key] among its allowed keys; each row needs one at least."""
    return np.asarray(special.softmax(np.where(allowed, scores, -np.inf), axis=-1), np.float64)
