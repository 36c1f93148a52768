"""Exact nearest neighbours: every vector is compared, so the result is what faster engines approximate.

Cosine divides a dot product by both lengths. Dot product alone favours long vectors: in models trained with it (MS
MARCO's dot models) the length expresses relevance; in others it mostly favours the same sentences for every query. Zero
vectors have no direction; their cosine counts as 0.

One query is one matrix-vector product. The speed of numpy's product is limited by reading memory, so nothing exact is
faster.

What it does not show: relevance. The nearest vector need not belong to a relevant sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Int64
from components.errors import InputError

Similarity = Literal["cosine", "dot"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
_BLOCK_CELLS = 1 << 22  # scores computed together for many queries: 16 MB
_BLOCK_ROWS = 16_384  # vectors converted together from float16 to float32


@dataclass(frozen=True, eq=False)
class Hits:
    """The best sentences of each query, best first; equal scores by number."""

    indices: Int64  # [query, hit]
    scores: Float32  # [query, hit]


class ExactSearch:
    """All vectors of one layer and pooling, [sentence, dim] in float32 or float16, perhaps a memory map."""

    def __init__(self, vectors: NDArray[np.floating], norms: Float32 | None = None) -> None:
        self.vectors = vectors
        self.norms: Float32 = row_norms(vectors) if norms is None else norms

    def scores(self, query: Float32, similarity: Similarity = "cosine") -> Float32:
        """Every sentence's score for one query [dim], float32 [sentence]."""
        query = np.ascontiguousarray(query, np.float32)
        if query.shape != self.vectors.shape[1:]:
            raise ValueError(f"a query of {self.vectors.shape[1]} numbers was expected, not of shape {query.shape}")
        if self.vectors.dtype == np.float32:
            products = np.asarray(self.vectors @ query, np.float32)
        else:
            products = np.empty(len(self.vectors), np.float32)
            for start in range(0, len(products), _BLOCK_ROWS):
                part = self.vectors[start : start + _BLOCK_ROWS].astype(np.float32)
                products[start : start + _BLOCK_ROWS] = part @ query
        if _checked(similarity) == "dot":
            return products
        return _divided(products, self.norms * np.float32(np.linalg.norm(query)))

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        """The k best sentences for each query [query, dim], or all if there are fewer. Raises InputError for k < 1."""
        if k < 1:
            raise InputError(f"k is {k}.", "At least 1 was expected.", "Choose 1 or more.")
        queries = np.atleast_2d(np.asarray(queries, np.float32))
        if len(queries) == 1:
            scores = self.scores(queries[0], similarity)
            best = top(scores, k)
            return Hits(best[None], scores[best][None])
        return self._many(queries, k, _checked(similarity))

    def _many(self, queries: Float32, k: int, similarity: Similarity) -> Hits:
        """Blocks of vectors are compared with all queries; the best so far are kept."""
        lengths = np.linalg.norm(queries, axis=1).astype(np.float32)
        best = np.empty((len(queries), 0), np.int64)
        values = np.empty((len(queries), 0), np.float32)
        step = max(256, _BLOCK_CELLS // max(1, len(queries)))
        for start in range(0, len(self.vectors), step):
            block = np.asarray(self.vectors[start : start + step], np.float32)
            scores = queries @ block.T  # [query, vector of the block]
            if similarity == "cosine":
                scores = _divided(scores, lengths[:, None] * self.norms[None, start : start + step])
            numbers = np.broadcast_to(np.arange(start, start + len(block)), scores.shape)
            best, values = _keep(np.hstack([best, numbers]), np.hstack([values, scores]), k)
        return Hits(best, values)


def row_norms(vectors: NDArray[np.floating]) -> Float32:
    """Euclidean lengths, float32 [sentence], block by block."""
    norms = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), _BLOCK_ROWS):
        norms[start : start + _BLOCK_ROWS] = np.linalg.norm(
            np.asarray(vectors[start : start + _BLOCK_ROWS], np.float32), axis=1
        )
    return norms


def top(scores: Float32, k: int) -> Int64:
    """Indices of the k highest scores, best first and lower indices first among equals, int64 [k or fewer]."""
    k = min(k, len(scores))
    if k == 0:
        return np.empty(0, np.int64)
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > least)
    # argpartition would take any of those that equal the last one.
    chosen = np.concatenate([above, np.flatnonzero(scores == least)[: k - len(above)]])
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def _keep(numbers: Int64, scores: Float32, k: int) -> tuple[Int64, Float32]:
    """The k best columns of each row; among equal scores, numbers rise from left to right."""
    if scores.shape[1] > 4 * k:
        # Values below the k-th highest of their row are dropped; the stable sort orders ties.
        least = np.partition(scores, scores.shape[1] - k, axis=1)[:, -k][:, None]
        most = int((scores >= least).sum(axis=1).max())
        order = np.argsort(scores < least, axis=1, kind="stable")[:, :most]
        numbers, scores = np.take_along_axis(numbers, order, axis=1), np.take_along_axis(scores, order, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(numbers, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _divided(products: np.ndarray, lengths: np.ndarray) -> Float32:
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines: Float32 = np.divide(products, lengths, dtype=np.float32)
    if not lengths.all():
        cosines[lengths == 0] = 0
    return cosines


def _checked(similarity: str) -> Similarity:
    if similarity not in SIMILARITIES:
        raise InputError(
            f"The similarity {similarity!r} is not available.",
            f"One of these was expected: {', '.join(SIMILARITIES)}.",
            "Choose one of these.",
        )
    return "dot" if similarity == "dot" else "cosine"
