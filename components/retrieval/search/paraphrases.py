"""The most similar pairs of a corpus (paraphrase mining), without ever holding all similarities.

36,000 sentences have 648 million pairs, a matrix of 5 GB. Here blocks of rows are compared with blocks of columns above
the diagonal, and only pairs that can still be among the best are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, unit
from components.jobs import IsStopped, ReportProgress, Stopped

_ROWS = 2048


@dataclass(frozen=True)
class SimilarPair:
    first: int  # numbers in the corpus, first < second
    second: int
    cosine: float


def most_similar_pairs(
    vectors: NDArray[np.floating],
    k: int = 100,
    texts: Sequence[str] | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> tuple[SimilarPair, ...]:
    """The k pairs of different sentences with the highest cosine, best first; ties by number.

    With `texts`, pairs of identical sentences are left out. `progress(done, total)` counts blocks. Raises Stopped.
    """
    count = len(vectors)
    starts = range(0, count, _ROWS)
    total, done = len(starts) * (len(starts) + 1) // 2, 0
    best = np.empty((0, 2), np.int64)
    scores = np.empty(0, np.float32)
    least = np.float32(-np.inf)
    text_ids = (
        None if texts is None else np.unique(np.array(texts, object), return_inverse=True)[1]
    )  # equal for equal texts
    for row in starts:
        left = _directions(vectors, row, _ROWS)
        for column in starts[starts.index(row) :]:
            if is_stopped():
                raise Stopped
            block = left @ _directions(vectors, column, _ROWS).T  # [row, column]
            if row == column:
                block[np.tril_indices(len(block))] = -np.inf
            if text_ids is not None:
                block[text_ids[row : row + _ROWS, None] == text_ids[None, column : column + _ROWS]] = -np.inf
            least_here = least
            if least == -np.inf:  # fewer than k pairs so far: the k best of this block are enough
                rank = block.size - min(k, block.size)
                least_here = np.partition(block, rank, axis=None)[rank]
            pairs = np.argwhere((block >= least_here) & (block > -np.inf))
            values = block[pairs[:, 0], pairs[:, 1]]
            pairs += (row, column)
            best, scores = np.vstack([best, pairs]), np.concatenate([scores, values])
            order = np.lexsort((best[:, 1], best[:, 0], -scores))[:k]
            best, scores = best[order], scores[order]
            if len(scores) == k:
                least = scores[-1]
            done += 1
            progress(done, total)
    return tuple(
        SimilarPair(int(first), int(second), float(score)) for (first, second), score in zip(best, scores, strict=True)
    )


def nearest_cosines(vectors: NDArray[np.floating], texts: Sequence[str], rows: int = 2_048) -> Float32:
    """The cosine of each sentence with the nearest other one, float32 [sentence]; NaN where there is no other.

    Texts that are identical to a sentence do not count as other ones. So many `rows` of cosines are in memory at once.
    """
    ids = np.unique(np.array(texts, object), return_inverse=True)[1]
    directions, nearest = unit(np.asarray(vectors, np.float32)), [np.empty(0, np.float32)]
    for start in range(0, len(vectors), rows):
        block = directions[start : start + rows] @ directions.T  # [row, sentence]
        block[ids[start : start + rows, None] == ids] = np.nan  # itself, too
        nearest.append(np.fmax.reduce(block, axis=1))  # without the NaN
    return np.concatenate(nearest)


def _directions(vectors: NDArray[np.floating], start: int, count: int) -> Float32:
    return unit(np.asarray(vectors[start : start + count], np.float32))
