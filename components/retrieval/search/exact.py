"""Exact nearest neighbours: every vector is compared, so the result is what faster engines approximate.

Cosine divides a dot product by both lengths. Dot product alone favours long vectors: in models trained with it (MS
MARCO's dot models) the length expresses relevance; in others it mostly favours the same sentences for every query. Zero
vectors have no direction; their cosine counts as 0.

One query is one matrix-vector product. The speed of numpy's product is limited by reading memory, so nothing exact is
faster. Float32 sums vary by some 1e-7 with their order, and [CLS] vectors of low layers differ by no more: every
sentence whose score is within 1e-5 of the k-th best is compared again in float64. The order of the hits then does not
depend on how many queries are searched together, and it agrees with components.retrieval.evaluation.ranks, which uses
the same rule.

What it does not show: relevance. The nearest vector need not belong to a relevant sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64, unit
from components.errors import InputError

Similarity = Literal["cosine", "dot"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
NEAR = 1e-5  # float32 scores that differ by less are compared in float64
SAME = 1e-12  # float64 scores that differ by less are equal
_CELLS = 1 << 25  # scores of several queries computed together: 128 MB
_BLOCK_ROWS = 16_384  # vectors converted together from float16 to float32
_EXACT_ROWS = 1_024  # vectors converted together to float64: 3 MB at 384 dimensions, which fit a cache


@dataclass(frozen=True, eq=False)
class Hits:
    """The best sentences of each query, best first; equal scores by number."""

    indices: Int64  # [query, hit]
    scores: Float64  # [query, hit]
    tied: Int64  # [query]: the sentences of the corpus with the same score as the query's last hit, itself included
    tied_shown: Int64  # [query]: how many of them are hits


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
        products = self._products(query)
        if checked_similarity(similarity) == "dot":
            return products
        return _divided(products, self.norms * np.float32(np.linalg.norm(query)))

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        """The k best sentences for each query [query, dim], or all if there are fewer.

        Raises InputError for k < 1 and for vectors with values that are not finite.
        """
        if k < 1:
            raise InputError(f"k is {k}.", "A search returns at least 1 hit.", "Choose 1 or more.")
        queries = np.atleast_2d(np.asarray(queries, np.float32))
        if len(queries) == 1:
            return self.hits_of(queries[0], self.scores(queries[0], similarity), k, similarity)
        lengths = np.linalg.norm(queries, axis=1).astype(np.float32)
        found: list[Hits] = []
        step = max(1, _CELLS // max(1, len(self.vectors)))
        for start in range(0, len(queries), step):
            rows = slice(start, start + step)
            scores = self._products(queries[rows])  # [query, sentence]
            if checked_similarity(similarity) == "cosine":
                scores = _divided(scores, lengths[rows, None] * self.norms[None])
            found += [self.hits_of(query, own, k, similarity) for query, own in zip(queries[rows], scores, strict=True)]
        if not found:
            nothing = np.empty((0, min(k, len(self.vectors))))
            return Hits(nothing.astype(np.int64), nothing, np.empty(0, np.int64), np.empty(0, np.int64))
        return Hits(
            *(
                np.concatenate([getattr(hits, name) for hits in found])
                for name in ("indices", "scores", "tied", "tied_shown")
            )
        )

    def hits_of(self, query: Float32, scores: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        """The hits of one query [dim] with its `scores` [sentence], as `search` returns them."""
        k = min(k, len(scores))
        if k == 0:
            return Hits(np.empty((1, 0), np.int64), np.empty((1, 0)), np.zeros(1, np.int64), np.zeros(1, np.int64))
        # A dot product's rounding error grows with the vectors' lengths.
        size = 1.0
        if similarity == "dot":
            size = float(np.linalg.norm(query)) * float(self.norms.max()) or 1.0
        if not np.isfinite(scores).all():
            raise not_finite()
        least = float(np.partition(scores, len(scores) - k)[len(scores) - k])
        candidates = np.flatnonzero(scores >= np.float32(least - NEAR * size))
        return self._settled(query, candidates, k, similarity, size)

    def among(self, query: Float32, candidates: Int64, k: int, similarity: Similarity = "cosine") -> Hits:
        """The k best of some candidates [candidate] for one query [dim], with their scores in float64.

        It is what an engine that only finds candidates ends with. Ties are counted among the candidates. Raises InputError
        as `search` does.
        """
        query = np.ascontiguousarray(query, np.float32)
        candidates = np.unique(np.asarray(candidates, np.int64))
        if not np.isfinite(query).all() or not np.isfinite(self.norms[candidates]).all():
            raise not_finite()
        k, size = min(k, len(candidates)), 1.0
        if k == 0:
            return Hits(np.empty((1, 0), np.int64), np.empty((1, 0)), np.zeros(1, np.int64), np.zeros(1, np.int64))
        if checked_similarity(similarity) == "dot":
            size = float(np.linalg.norm(query)) * float(self.norms.max()) or 1.0
        return self._settled(query, candidates, k, similarity, size)

    def _settled(self, query: Float32, candidates: Int64, k: int, similarity: Similarity, size: float) -> Hits:
        """The k best candidates, which ascend, in float64; scores are equal if they differ by less than SAME of `size`."""
        exact = self._exact(query, candidates, similarity)
        order = np.argsort(-exact, kind="stable")
        # A tie continues as long as each score equals the one before it.
        tie = np.cumsum(np.diff(exact[order], prepend=exact[order[0]]) < -SAME * size)
        order = order[np.lexsort((order, tie))]  # among equals, lower numbers first
        tied = np.array([np.count_nonzero(tie == tie[k - 1])])
        shown = np.array([np.count_nonzero(tie[:k] == tie[k - 1])])
        return Hits(candidates[order[:k]][None], exact[order[:k]][None], tied, shown)

    def _exact(self, query: Float32, numbers: Int64, similarity: Similarity) -> Float64:
        """The scores of some sentences, computed in float64 one by one, float64 [sentence]."""
        wide = query.astype(np.float64) if similarity == "dot" else exact_directions(query)
        exact = np.empty(len(numbers))
        for start in range(0, len(numbers), _EXACT_ROWS):
            vectors = self.vectors[numbers[start : start + _EXACT_ROWS]].astype(np.float64)
            products = np.einsum("sd,d->s", vectors, wide)
            if similarity == "cosine":
                lengths = np.sqrt(np.einsum("sd,sd->s", vectors, vectors))
                products /= np.where(lengths == 0, 1, lengths)
            exact[start : start + _EXACT_ROWS] = products
        return exact

    def _products(self, queries: Float32) -> Float32:
        """Dot products of one query [dim] or several [query, dim], float32 [sentence] or [query, sentence]."""
        if self.vectors.dtype == np.float32:
            return np.asarray(queries @ self.vectors.T, np.float32)
        products = np.empty((*queries.shape[:-1], len(self.vectors)), np.float32)
        for start in range(0, len(self.vectors), _BLOCK_ROWS):
            part = self.vectors[start : start + _BLOCK_ROWS].astype(np.float32)
            products[..., start : start + _BLOCK_ROWS] = queries @ part.T
        return products


def tie_note(tied: int, shown: int, at_least: bool = False) -> str:
    """What to say when more sentences have the score of the last hit than are shown; empty if there are none.

    `at_least`: not every sentence was compared, so that there may be more.
    """
    if tied <= shown:
        return ""
    return (
        f"{'At least ' if at_least else ''}{tied:,} sentences have the same score as the last hit, and {shown} of them are "
        "shown. They are in the order of the corpus: which of them are shown, and in which order, means nothing."
    )


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


def exact_directions(vectors: NDArray[np.floating], longest: float | None = None) -> Float64:
    """Vectors in float64, divided by `longest` or each by its own length; zeros stay zeros.

    Raises InputError for vectors with NaN or infinity, which have no rank.
    """
    doubled = np.asarray(vectors, np.float64)
    if not np.isfinite(doubled).all():
        raise not_finite()
    return unit(doubled) if longest is None else doubled / longest


def not_finite() -> InputError:
    """The error for vectors with NaN or infinity."""
    return InputError(
        "Some vectors contain values that are not finite.",
        "Only finite numbers can be ranked.",
        "Choose another model or precision.",
    )


def _divided(products: np.ndarray, lengths: np.ndarray) -> Float32:
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines: Float32 = np.divide(products, lengths, dtype=np.float32)
    if not lengths.all():
        cosines[lengths == 0] = 0
    return cosines


def checked_similarity(similarity: str) -> Similarity:
    """A similarity by its name. Raises InputError for another name."""
    if similarity not in SIMILARITIES:
        raise InputError(
            f"The similarity {similarity!r} is not available.",
            f"The similarities are {', '.join(SIMILARITIES)}.",
            "Choose one of these.",
        )
    return "dot" if similarity == "dot" else "cosine"
