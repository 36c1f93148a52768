"""The rank of each query's correct answer among all documents, by cosine or dot product, without keeping similarities.

Ties count against the query: a document with the same score as the correct answer comes before it. Otherwise vectors
that are the same for all sentences (such as the [CLS] vector at layer 0) would seem to retrieve perfectly. Float32 sums
vary by some 1e-7 with their order, and [CLS] vectors of low layers differ by no more: every score within 1e-5 of the
correct answer's is computed again in float64 and compared there.

Dot products are taken with queries of length 1 and documents divided by the length of the longest, which changes no
rank. No product is then larger than 1, so that the same tolerances hold.

What it does not show: whether another document would have been just as good an answer. Only the correct answer counts.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.search.exact import NEAR, SAME, exact_directions

NOT_FOUND = 2**31 - 1  # the rank of a text that a word ranking does not find: beyond every k, and 1 / rank counts as 0
TIED = 1e-6  # scores of one pair each, by words or by a cross-encoder: equal if they differ by less, or by this share
QUERIES_PER_BLOCK, _DOCUMENTS = 512, 8_192  # a block of similarities: 16 MB
_FEW = 0.02  # share of a block up to which its pairs are compared one by one


class ScoresDocuments(Protocol):
    """The part of a `Ranker` that ranks are computed with."""

    def scores(self, query: str) -> Float32:
        """float32 [document], the higher the better."""
        ...

    def floor(self, query: str) -> float:
        """The score of a document that has nothing in common with the query."""
        ...


def tolerance(scores: NDArray[np.floating] | float) -> NDArray[np.floating] | float:
    """How much lower than each score another one can be and still count as equal: TIED, or that share of a larger one."""
    return TIED * np.maximum(1.0, np.abs(scores))


def inverse(ranks: Int64) -> Float64:
    """1 / rank, float64 with the shape of `ranks`; 0 for what is not found."""
    return np.where(ranks == NOT_FOUND, 0.0, 1 / ranks.astype(np.float64))


def gold_ranks(
    queries: NDArray[np.floating],
    documents: NDArray[np.floating],
    gold: Int64 | None = None,
    progress: ReportProgress | None = None,
    is_stopped: IsStopped = lambda: False,
    cosine: bool = True,
) -> Int64:
    """Ranks from 1, int64 [query], of document `gold[query]` (by default the document with the query's number).

    Vectors [query, dim] and [document, dim], of any length; a zero vector's cosine is 0. With `cosine` false they are
    ranked by the plain dot product, which favours long documents. `progress(done, total)` counts queries. Raises
    InputError for vectors with NaN or infinity, and Stopped once `is_stopped()` is true, checked before each block of
    queries.
    """
    gold = np.arange(len(queries)) if gold is None else np.asarray(gold, np.int64)
    if len(gold) != len(queries) or (len(gold) and not 0 <= gold.min() <= gold.max() < len(documents)):
        raise ValueError(f"{len(queries)} numbers of {len(documents)} documents were expected")
    longest = None if cosine else longest_of(documents)
    directions = float32_directions(documents, longest)
    ranks = np.empty(len(queries), np.int64)
    for start in range(0, len(queries), QUERIES_PER_BLOCK):
        if is_stopped():
            raise Stopped
        rows = slice(start, start + QUERIES_PER_BLOCK)
        ranks[rows] = _ranks_of(np.asarray(queries[rows], np.float32), directions, documents, gold[rows], longest)
        if progress is not None:
            progress(min(start + QUERIES_PER_BLOCK, len(queries)), len(queries))
    return ranks


def _ranks_of(
    queries: Float32, directions: Float32, documents: NDArray[np.floating], gold: Int64, longest: float | None
) -> Int64:
    exact_queries = exact_directions(queries)
    targets = np.einsum("qd,qd->q", exact_queries, exact_directions(documents[gold], longest))  # float64 [query]
    queries = exact_queries.astype(np.float32)
    low, high = (targets - NEAR).astype(np.float32)[:, None], (targets + NEAR).astype(np.float32)[:, None]
    before = np.zeros(len(queries), np.int64)
    # The same memory for every block: new memory would cost as much as the comparison.
    size = len(queries) * min(_DOCUMENTS, len(directions))
    score_memory, mark_memory = np.empty(size, np.float32), np.empty(size, np.bool_)
    for start in range(0, len(directions), _DOCUMENTS):
        block = directions[start : start + _DOCUMENTS]
        shape, cells = (len(queries), len(block)), len(queries) * len(block)
        scores = np.matmul(queries, block.T, out=score_memory[:cells].reshape(shape))  # [query, document of the block]
        np.greater_equal(scores, low, out=mark_memory[:cells].reshape(shape))
        near_or_above = np.flatnonzero(mark_memory[:cells])  # on two axes it would take as long as the products
        if len(near_or_above) <= _FEW * cells:
            rows, columns = np.divmod(near_or_above, len(block))
            above = scores[rows, columns] > high[rows, 0]
            np.add.at(before, rows[above], 1)
            rows, columns = rows[~above], columns[~above] + start
            own = columns != gold[rows]
            rows, columns = rows[own], columns[own]
            products = np.einsum("pd,pd->p", exact_queries[rows], exact_directions(documents[columns], longest))
            np.add.at(before, rows[products >= targets[rows] - SAME], 1)
            continue
        # Too many scores are nearly equal: the whole block is computed again in float64.
        exact = exact_queries @ exact_directions(documents[start : start + _DOCUMENTS], longest).T
        ahead = exact >= targets[:, None] - SAME
        in_block = (gold >= start) & (gold < start + _DOCUMENTS)
        ahead[in_block, gold[in_block] - start] = False
        before += np.count_nonzero(ahead, axis=1)
    return before + 1


def longest_of(documents: NDArray[np.floating]) -> float:
    """The length of the longest vector; 1 where all are zeros."""
    blocks = (documents[start : start + _DOCUMENTS] for start in range(0, len(documents), _DOCUMENTS))
    return max((float(np.linalg.norm(block.astype(np.float64), axis=-1).max()) for block in blocks), default=0.0) or 1.0


def float32_directions(vectors: NDArray[np.floating], longest: float | None = None) -> Float32:
    """`exact_directions` rounded to float32, block by block."""
    directions = np.empty(vectors.shape, np.float32)
    for start in range(0, len(vectors), _DOCUMENTS):
        directions[start : start + _DOCUMENTS] = exact_directions(vectors[start : start + _DOCUMENTS], longest)
    return directions
