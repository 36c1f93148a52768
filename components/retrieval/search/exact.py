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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64, cosine, unit
from components.errors import InputError

# Of the two distances the score is the negative one, as in sentence-transformers: more is more similar.
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
EVERY_SIMILARITY: tuple[Similarity, ...] = get_args(Similarity)
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "dot")  # those that are products, by which every engine can search
NEAR = 1e-5  # float32 scores that differ by less are compared in float64
MOST_TIES = 3  # groups of equal hits that are named
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
        if is_distance(checked_similarity(similarity)):
            return self._distances(query, similarity)
        products = self._products(query)
        if similarity == "dot":
            return products
        return _divided(products, self.norms * np.float32(np.linalg.norm(query)))

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine", rows: Int64 | None = None) -> Hits:
        """The k best sentences for each query [query, dim], or all if there are fewer.

        `rows`, ascending, are the numbers of those that are looked at; by default all. Raises InputError for k < 1 and for
        vectors with values that are not finite.
        """
        if k < 1:
            raise InputError(f"k is {k}.", "A search returns at least 1 hit.", "Choose 1 or more.")
        queries = np.atleast_2d(np.asarray(queries, np.float32))
        if len(queries) == 1:
            return self.hits_of(queries[0], self.scores(queries[0], similarity), k, similarity, rows)
        lengths = np.linalg.norm(queries, axis=1).astype(np.float32)
        parts: list[Hits] = []
        step = max(1, _CELLS // max(1, len(self.vectors)))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            if is_distance(checked_similarity(similarity)):
                parts += [
                    self.hits_of(query, self.scores(query, similarity), k, similarity, rows) for query in queries[part]
                ]
                continue
            scores = self._products(queries[part])  # [query, sentence]
            if similarity == "cosine":
                scores = _divided(scores, lengths[part, None] * self.norms[None])
            parts += [
                self.hits_of(query, own, k, similarity, rows) for query, own in zip(queries[part], scores, strict=True)
            ]
        if not parts:
            nothing = np.empty((0, min(k, len(self.vectors))))
            return Hits(nothing.astype(np.int64), nothing, np.empty(0, np.int64), np.empty(0, np.int64))
        return Hits(
            *(
                np.concatenate([getattr(hits, name) for hits in parts])
                for name in ("indices", "scores", "tied", "tied_shown")
            )
        )

    def hits_of(
        self,
        query: Float32,
        scores: Float32,
        k: int,
        similarity: Similarity = "cosine",
        rows: Int64 | None = None,
    ) -> Hits:
        """The hits of one query [dim] with its `scores` [sentence], as `search` returns them."""
        if rows is not None:
            scores = scores[rows]
        k = min(k, len(scores))
        if k == 0:
            return Hits(np.empty((1, 0), np.int64), np.empty((1, 0)), np.zeros(1, np.int64), np.zeros(1, np.int64))
        size = self._size(query, similarity)
        if not np.isfinite(scores).all():
            raise not_finite()
        least = float(np.partition(scores, len(scores) - k)[len(scores) - k])
        candidates = np.flatnonzero(scores >= np.float32(least - NEAR * size))
        return self._settled(query, candidates if rows is None else rows[candidates], k, similarity, size)

    def among(self, query: Float32, candidates: Int64, k: int, similarity: Similarity = "cosine") -> Hits:
        """The k best of some candidates [candidate] for one query [dim], with their scores in float64.

        It is what an engine that only finds candidates ends with. Ties are counted among the candidates. Raises InputError
        as `search` does.
        """
        query = np.ascontiguousarray(query, np.float32)
        candidates = np.unique(np.asarray(candidates, np.int64))
        if not np.isfinite(query).all() or not np.isfinite(self.norms[candidates]).all():
            raise not_finite()
        k, size = min(k, len(candidates)), self._size(query, checked_similarity(similarity))
        if k == 0:
            return Hits(np.empty((1, 0), np.int64), np.empty((1, 0)), np.zeros(1, np.int64), np.zeros(1, np.int64))
        return self._settled(query, candidates, k, similarity, size)

    def _size(self, query: Float32, similarity: Similarity) -> float:
        """What the rounding error of a score grows with: the vectors' lengths, but for a cosine."""
        if similarity == "cosine":
            return 1.0
        own, longest = float(np.linalg.norm(query)), float(self.norms.max(initial=0))
        if similarity == "dot":
            return own * longest or 1.0
        return (own + longest) * (len(query) ** 0.5 if similarity == "manhattan" else 1.0) or 1.0

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
        wide = exact_directions(query) if similarity == "cosine" else query.astype(np.float64)
        exact = np.empty(len(numbers))
        for start in range(0, len(numbers), _EXACT_ROWS):
            vectors = self.vectors[numbers[start : start + _EXACT_ROWS]].astype(np.float64)
            if is_distance(similarity):
                exact[start : start + _EXACT_ROWS] = _negative_distances(vectors, wide, similarity)
                continue
            products = np.einsum("sd,d->s", vectors, wide)
            if similarity == "cosine":
                lengths = np.sqrt(np.einsum("sd,sd->s", vectors, vectors))
                products /= np.where(lengths == 0, 1, lengths)
            exact[start : start + _EXACT_ROWS] = products
        return exact

    def _distances(self, query: Float32, similarity: Similarity) -> Float32:
        """The negative distance of every sentence from one query [dim], float32 [sentence]."""
        scores = np.empty(len(self.vectors), np.float32)
        for start in range(0, len(self.vectors), _BLOCK_ROWS):
            part = self.vectors[start : start + _BLOCK_ROWS].astype(np.float32)
            scores[start : start + _BLOCK_ROWS] = _negative_distances(part, query, similarity)
        return scores

    def _products(self, queries: Float32) -> Float32:
        """Dot products of one query [dim] or several [query, dim], float32 [sentence] or [query, sentence]."""
        if self.vectors.dtype == np.float32:
            return np.asarray(queries @ self.vectors.T, np.float32)
        products = np.empty((*queries.shape[:-1], len(self.vectors)), np.float32)
        for start in range(0, len(self.vectors), _BLOCK_ROWS):
            part = self.vectors[start : start + _BLOCK_ROWS].astype(np.float32)
            products[..., start : start + _BLOCK_ROWS] = queries @ part.T
        return products


class VectorRanker:
    """A ranking of all vectors for texts whose own are at hand, by a similarity that no product of vectors gives."""

    def __init__(
        self,
        texts: Sequence[str],
        queries: NDArray[np.floating],
        documents: NDArray[np.floating],
        similarity: Similarity,
    ) -> None:
        """`queries` [query, dim] are the vectors of `texts`."""
        self._queries = {text: np.asarray(vector, np.float32) for text, vector in zip(texts, queries, strict=True)}
        self._engine, self._similarity = ExactSearch(documents), checked_similarity(similarity)

    def scores(self, query: str) -> Float32:
        """The score of every vector for one of the texts, float32 [document].

        Raises InputError for vectors that are not finite.
        """
        scores = self._engine.scores(self._queries[query], self._similarity)
        if not np.isfinite(scores).all():
            raise not_finite()
        return scores

    def floor(self, query: str) -> float:
        """No distance is so large that a document has nothing in common with a query."""
        return -np.inf


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


def ties_note(scores: NDArray[np.floating]) -> str:
    """What to say of the hits of one query, [hit] from the first on, of which some have equal scores; empty if none have."""
    if not len(scores):
        return ""
    groups = np.cumsum(np.diff(scores, prepend=scores[0]) < -SAME * np.maximum(1.0, np.abs(scores)))
    sizes = np.bincount(groups)
    said = [
        f"{size} hits have the same score ({places})"
        for size, places in zip(
            sizes,
            (f"ranks {end - size + 1} to {end}" for size, end in zip(sizes, np.cumsum(sizes), strict=True)),
            strict=True,
        )
        if size > 1
    ]
    if not said:
        return ""
    shown = "; ".join(said[:MOST_TIES]) + (
        f"; and {len(said) - MOST_TIES} further ties" if len(said) > MOST_TIES else ""
    )
    return f"{shown}. Equal hits are in the order of the corpus, which means nothing."


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


def pair_similarity(first: Float64, second: Float64, similarity: Similarity) -> Float64:
    """The similarity of the vectors of each pair, float64 [pair]; of a distance, the negative one."""
    if is_distance(similarity):
        order = 1 if similarity == "manhattan" else 2
        return np.asarray(-np.linalg.norm(first - second, ord=order, axis=1), np.float64)
    return np.asarray((first * second).sum(axis=1) if similarity == "dot" else cosine(first, second), np.float64)


def for_cosines(
    queries: NDArray[np.floating], documents: NDArray[np.floating], similarity: Similarity
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Vectors whose cosines order documents as a similarity of `queries` [query, dim] and `documents` [document, dim] does.

    A Euclidean distance orders documents as the dot product with [d, -|d|^2 / 2] of a query with a further 1 does; and a dot
    product as a cosine does once a further number, which is 0 in each query, makes all documents equally long. Raises
    InputError for the Manhattan distance, for which there are none.
    """
    if checked_similarity(similarity) == "cosine":
        return queries, documents
    checked_product("dot" if similarity == "euclidean" else similarity, "An evaluation")
    asked, told = (np.asarray(vectors, np.float64) for vectors in (queries, documents))
    if similarity == "euclidean":
        asked = np.hstack([asked, np.ones((len(asked), 1))])
        told = np.hstack([told, -(told**2).sum(axis=1, keepdims=True) / 2])
    squares = (told**2).sum(axis=1, keepdims=True)
    told = np.hstack([told, np.sqrt(np.maximum(squares.max(initial=0) - squares, 0))])
    return np.hstack([asked, np.zeros((len(asked), 1))]), told


def is_distance(similarity: str) -> bool:
    """Whether a similarity is a negative distance, and no product of two vectors."""
    return similarity in ("euclidean", "manhattan")


def _negative_distances(vectors: np.ndarray, query: np.ndarray, similarity: Similarity) -> np.ndarray:
    """Of vectors [sentence, dim] from one query [dim], [sentence]; from the differences, which keeps their digits."""
    order = 1 if similarity == "manhattan" else 2
    return np.asarray(-np.linalg.norm(vectors - query, ord=order, axis=1))


def _divided(products: np.ndarray, lengths: np.ndarray) -> Float32:
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines: Float32 = np.divide(products, lengths, dtype=np.float32)
    if not lengths.all():
        cosines[lengths == 0] = 0
    return cosines


def checked_similarity(similarity: str) -> Similarity:
    """A similarity by its name. Raises InputError for another name."""
    for known in EVERY_SIMILARITY:
        if similarity == known:
            return known
    raise InputError(
        f"The similarity {similarity!r} is not available.",
        f"The similarities are {', '.join(EVERY_SIMILARITY)}.",
        "Choose one of these.",
    )


def checked_product(similarity: str, engine: str) -> Similarity:
    """The same for an engine that compares by products alone. Raises InputError for a distance too."""
    checked = checked_similarity(similarity)
    if is_distance(checked):
        raise InputError(
            f"{engine} does not search by the {checked} distance.",
            "It finds neighbours by the cosine or the dot product.",
            "Search exactly, or choose cosine or dot.",
        )
    return checked
