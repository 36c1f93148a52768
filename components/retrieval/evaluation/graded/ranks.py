"""The ranks of each query's relevant documents among all, without ever keeping the matrix of similarities.

As in components.retrieval.evaluation.ranks, ties count against the ranking: among documents with equal scores those that
are not relevant stand first, then lower grades before higher ones. A method that cannot tell documents apart gets the worst
order, not a lucky one. Cosines within 1e-5 of a relevant document's are computed again in float64 and settled there.

How: each block of similarities is sorted by query, so that all of a query's relevant documents find their ranks by
bisection: a query with 500 of them costs hardly more than one with a single one.

What it does not show: the order of documents that are not relevant, which no measure of graded relevance needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64
from components.jobs import Cancelled, IsCancelled, ReportProgress
from components.retrieval.evaluation.ranks import NEAR, SAME, exact_directions

ALIKE = 1e-6  # float32 scores of a ranker this close are equal, as a share of the query's largest
_QUERIES, _DOCUMENTS = 512, 8_192  # a block of similarities: 16 MB, and as much sorted
_FEW = 0.02  # share of a block up to which pairs are settled one by one
_PAIRS = 8_192  # pairs settled together: 50 MB at 384 dimensions

Grades = Sequence[Mapping[int, int]]


@dataclass(frozen=True, eq=False)
class RelevantRanks:
    """Ranks of the relevant documents, query behind query, the best first: query q has starts[q] up to starts[q + 1]."""

    ranks: Int64  # [judged], from 1, among all documents
    grades: Int64  # [judged], 1 or more
    starts: Int64  # [query + 1]

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class _Judged:
    """Relevant documents of some queries in ranking order, ties in the worst one."""

    rows: Int64  # [judged], the query's number among these
    documents: Int64  # [judged]
    grades: Int64  # [judged]
    targets: Float64  # [judged], the least score of those that are tied with it


def vector_relevant_ranks(
    queries: NDArray[np.floating],
    documents: NDArray[np.floating],
    grades: Grades,
    progress: ReportProgress | None = None,
    is_cancelled: IsCancelled = lambda: False,
) -> RelevantRanks:
    """Ranks by the cosine of vectors [query, dim] and [document, dim], of any length; a zero vector's cosine is 0.

    `grades[q]` maps places among the documents to grades of 1 or more. `progress(done, total)` counts queries. Raises
    Cancelled once `is_cancelled()` is true, asked before each block of queries.
    """
    _check(grades, len(queries), len(documents))
    directions = np.empty(documents.shape, np.float32)
    for start in range(0, len(documents), _DOCUMENTS):
        directions[start : start + _DOCUMENTS] = exact_directions(documents[start : start + _DOCUMENTS])
    parts: list[_Judged] = []
    before: list[Int64] = []
    for start in range(0, len(queries), _QUERIES):
        if is_cancelled():
            raise Cancelled
        asked = exact_directions(queries[start : start + _QUERIES])
        rows, places, levels = _flat(grades[start : start + _QUERIES])
        judged = _judged(rows, places, levels, _cosines(asked, documents, rows, places), np.full(len(rows), SAME))
        before.append(_others_before(asked, directions, documents, judged))
        parts.append(judged)
        if progress is not None:
            progress(min(start + _QUERIES, len(queries)), len(queries))
    return _ranks(parts, before, [len(each) for each in grades])


def ranker_relevant_ranks(
    score: Callable[[str], Float32],
    queries: Sequence[str],
    grades: Grades,
    progress: ReportProgress | None = None,
    is_cancelled: IsCancelled = lambda: False,
) -> RelevantRanks:
    """Ranks by the scores [document] that `score` gives for a query, the higher the better.

    Scores within a millionth of the query's largest are equal: float32 sums differ by as much with their order.
    `progress(done, total)` counts queries. Raises Cancelled once `is_cancelled()` is true.
    """
    if len(grades) != len(queries):
        raise ValueError(f"{len(grades)} queries' grades for {len(queries)} queries")
    parts: list[_Judged] = []
    before: list[Int64] = []
    for number, query in enumerate(queries):
        if is_cancelled():
            raise Cancelled
        scores = np.asarray(score(query), np.float64)
        _check(grades[number : number + 1], 1, len(scores))
        tolerance = ALIKE * float(np.abs(scores).max(initial=0))
        rows, places, levels = _flat(grades[number : number + 1])
        judged = _judged(rows, places, levels, scores[places], np.full(len(rows), tolerance))
        others = np.delete(scores, places)
        others.sort()
        before.append(len(others) - np.searchsorted(others, judged.targets - tolerance))
        parts.append(judged)
        if progress is not None:
            progress(number + 1, len(queries))
    return _ranks(parts, before, [len(each) for each in grades])


def _check(grades: Grades, queries: int, documents: int) -> None:
    """Raise ValueError unless there are grades for each query, of documents that are there."""
    if len(grades) != queries:
        raise ValueError(f"{len(grades)} queries' grades for {queries} queries")
    for each in grades:
        if each and not (min(each) >= 0 and max(each) < documents and min(each.values()) > 0):
            raise ValueError(f"grades above 0 of places among {documents} documents were expected")


def _flat(grades: Grades) -> tuple[Int64, Int64, Int64]:
    """Query, document and grade of all judgements, int64 [judged] each."""
    sizes = [len(each) for each in grades]
    rows = np.repeat(np.arange(len(grades)), sizes)
    documents = np.fromiter((document for each in grades for document in each), np.int64, len(rows))
    return rows, documents, np.fromiter((grade for each in grades for grade in each.values()), np.int64, len(rows))


def _judged(rows: Int64, places: Int64, levels: Int64, scores: Float64, tolerance: Float64) -> _Judged:
    """Judgements in ranking order: by query, score downwards, and among tied ones grade upwards."""
    order = np.lexsort((-scores, rows))
    rows, places, levels, scores = rows[order], places[order], levels[order], scores[order]
    # A tie goes on as long as each is as good as the one before: then all have the worst one's score.
    opens = np.ones(len(rows), np.bool_)
    opens[1:] = (rows[1:] != rows[:-1]) | (scores[:-1] - scores[1:] > tolerance[1:])
    tie = np.cumsum(opens) - 1
    last = np.append(np.flatnonzero(opens)[1:], len(rows)) - 1
    inside = np.lexsort((levels, tie))
    return _Judged(rows[inside], places[inside], levels[inside], scores[last][tie])


def _ranks(parts: Sequence[_Judged], before: Sequence[Int64], sizes: Sequence[int]) -> RelevantRanks:
    """Documents before each that are not relevant, and relevant ones up to it, make its rank."""
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    own = np.arange(1, starts[-1] + 1) - np.repeat(starts[:-1], sizes)
    others = np.concatenate([*before, np.empty(0, np.int64)])
    levels = np.concatenate([*(part.grades for part in parts), np.empty(0, np.int64)])
    return RelevantRanks(others + own, levels, starts)


def _others_before(asked: Float64, directions: Float32, documents: NDArray[np.floating], judged: _Judged) -> Int64:
    """How many documents that are not relevant score at least as much as each target, int64 [judged]."""
    lead = np.searchsorted(judged.rows, np.arange(len(asked) + 1))  # where each query's judgements begin
    low, high = ((judged.targets + shift).astype(np.float32) for shift in (-NEAR, NEAR))
    exactly = judged.targets - SAME
    before = np.zeros(len(judged.rows), np.int64)
    queries = asked.astype(np.float32)
    size = len(asked) * min(_DOCUMENTS, len(directions))
    room, sorted_room = np.empty(size, np.float32), np.empty(size, np.float32)  # the same memory for every block
    for start in range(0, len(directions), _DOCUMENTS):
        block = directions[start : start + _DOCUMENTS]
        shape, cells = (len(asked), len(block)), len(asked) * len(block)
        scores = np.matmul(queries, block.T, out=room[:cells].reshape(shape))  # [query, document of the block]
        in_block = (judged.documents >= start) & (judged.documents < start + len(block))
        relevant = judged.rows[in_block], judged.documents[in_block] - start
        scores[relevant] = -np.inf
        ordered = sorted_room[:cells].reshape(shape)
        np.copyto(ordered, scores)
        ordered.sort(axis=1)
        above, near = _bisect(ordered, lead, high, "right"), _bisect(ordered, lead, low, "left")
        unsettled = np.flatnonzero(near > above)
        if (near - above)[unsettled].sum() <= _FEW * cells:
            before += above
            before[unsettled] += _settled(asked, documents, judged, unsettled, scores, low, high, start)
            continue
        # Hardly anything can be told apart here: the block once more in float64.
        exact = asked @ exact_directions(documents[start : start + _DOCUMENTS]).T
        exact[relevant] = -np.inf
        exact.sort(axis=1)
        before += _bisect(exact, lead, exactly, "left")
    return before


def _bisect(ordered: NDArray[np.floating], lead: Int64, values: NDArray[np.floating], side: str) -> Int64:
    """How many of its query's sorted scores are above each value ("left": or equal to it), int64 [judged]."""
    counts = np.empty(len(values), np.int64)
    for row, scores in enumerate(ordered):
        own = slice(lead[row], lead[row + 1])
        counts[own] = len(scores) - scores.searchsorted(values[own], side)
    return counts


def _settled(
    asked: Float64,
    documents: NDArray[np.floating],
    judged: _Judged,
    unsettled: Int64,
    scores: Float32,
    low: Float32,
    high: Float32,
    start: int,
) -> Int64:
    """Of the documents too near to a target to tell in float32, how many reach it in float64, int64 [unsettled]."""
    reaching = np.zeros(len(unsettled), np.int64)
    waiting: list[tuple[Int64, Int64]] = []  # (place among the unsettled, document) of each pair
    count = 0
    for number, target in enumerate(unsettled):
        row = scores[judged.rows[target]]
        columns = np.flatnonzero((row >= low[target]) & (row <= high[target])) + start
        waiting.append((np.full(len(columns), number), columns))
        count += len(columns)
        if count >= _PAIRS or number + 1 == len(unsettled):
            numbers, near = (np.concatenate(each) for each in zip(*waiting, strict=True))
            rows = judged.rows[unsettled[numbers]]
            reach = _cosines(asked, documents, rows, near) >= judged.targets[unsettled[numbers]] - SAME
            np.add.at(reaching, numbers[reach], 1)
            waiting, count = [], 0
    return reaching


def _cosines(asked: Float64, documents: NDArray[np.floating], rows: Int64, places: Int64) -> Float64:
    """The cosine of each pair of a query and a document, float64 [pair]."""
    cosines = np.empty(len(rows))
    for start in range(0, len(rows), _PAIRS):
        part = slice(start, start + _PAIRS)
        cosines[part] = np.einsum("pd,pd->p", asked[rows[part]], exact_directions(documents[places[part]]))
    return cosines
