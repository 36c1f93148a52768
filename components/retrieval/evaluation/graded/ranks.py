"""The ranks of each query's relevant documents among all documents, without keeping the matrix of similarities.

As in components.retrieval.evaluation.ranks, ties count against the ranking: of documents with equal scores, those that
are not relevant come first, then lower grades before higher grades. A method that gives all documents the same score gets
the worst order. Cosines within 1e-5 of a relevant document's are computed again in float64 and compared there.

How: each block of similarities is sorted by query, and the ranks of all relevant documents of a query are found by
bisection: a query with 500 relevant documents takes hardly longer than a query with one.

A document that a word ranking gives no more than a text without a word of the query is not found: NOT_FOUND is its rank.
So is a relevant document that the corpus lacks (`with_missing`).

A query that is itself a document of the corpus would find itself first: its own document can be left out of its ranking, as
BEIR does where both have one id (Thakur et al. 2021).

What it does not show: the order of documents that are not relevant, which no measure of graded relevance needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64, arrays_of
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.evaluation.ranks import NOT_FOUND, float32_directions, longest_of
from components.retrieval.search.exact import NEAR, SAME, exact_directions

TIED_SHARE = 1e-6  # scores of a word ranking are equal if they differ by less than this share of the query's largest
NONE = -1  # in place of a document's number
_QUERIES, _DOCUMENTS = 512, 8_192  # a block of similarities: 16 MB, and the same for their sorted copy
_FEW = 0.02  # share of a block up to which its pairs are compared one by one
_PAIRS = 8_192  # pairs compared together: 50 MB at 384 dimensions

Grades = Sequence[Mapping[int, int]]


@dataclass(frozen=True, eq=False)
class RelevantRanks:
    """Ranks of the relevant documents, query after query, best first; those of query q are starts[q] to starts[q + 1]."""

    ranks: Int64  # [judged], from 1, among all documents; NOT_FOUND, which comes last, for what a word ranking does not find
    grades: Int64  # [judged], 1 or more
    starts: Int64  # [query + 1]
    # [judged], their numbers, NONE for those that the corpus lacks; empty where only the ranks are known.
    documents: Int64 = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.starts) - 1

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in arrays_of(self))


@dataclass(frozen=True)
class _Judged:
    """Relevant documents of some queries in ranking order, ties in the worst order."""

    rows: Int64  # [judged], the query's number among these
    documents: Int64  # [judged]
    grades: Int64  # [judged]
    targets: Float64  # [judged], the lowest score among those tied with it


def vector_relevant_ranks(
    queries: NDArray[np.floating],
    documents: NDArray[np.floating],
    grades: Grades,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    cosine: bool = True,
    own: Int64 | None = None,
) -> RelevantRanks:
    """Ranks by the cosine of vectors [query, dim] and [document, dim], of any length; a zero vector's cosine is 0.

    With `cosine` false they are ranked by the plain dot product. `grades[q]` maps the numbers of documents to grades of 1 or
    more, and `own` [query] are the numbers of documents that are left out of one query's ranking, or NONE. `progress(done,
    total)` counts queries. Raises Stopped once `is_stopped()` is true, checked before each block of queries.
    """
    _check(grades, len(queries), len(documents))
    own = _checked_own(own, grades)
    longest = None if cosine else longest_of(documents)
    directions = float32_directions(documents, longest)
    parts: list[_Judged] = []
    before: list[Int64] = []
    for start in range(0, len(queries), _QUERIES):
        if is_stopped():
            raise Stopped
        block = exact_directions(queries[start : start + _QUERIES])
        rows, columns, levels = _flat(grades[start : start + _QUERIES])
        judged = _judged(rows, columns, levels, _cosines(block, documents, rows, columns, longest), SAME)
        left_out = own[start : start + _QUERIES]
        before.append(_others_before(block, directions, documents, judged, longest, left_out))
        parts.append(judged)
        progress(min(start + _QUERIES, len(queries)), len(queries))
    return _ranks(parts, before, [len(each) for each in grades])


def ranker_relevant_ranks(
    score: Callable[[str], NDArray[np.floating]],
    queries: Sequence[str],
    grades: Grades,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    tied: float = TIED_SHARE,
    floor: Callable[[str], float] = lambda query: -np.inf,
    own: Int64 | None = None,
) -> RelevantRanks:
    """Ranks by the scores [document] that `score` gives for a query, highest first.

    `floor` is the score of a document that has nothing in common with a query: documents with no more are not found. `own` is
    as for `vector_relevant_ranks`.

    Scores that differ by less than the share `tied` of the query's largest are equal: float32 sums vary with their order by
    a millionth. `progress(done, total)` counts queries. Raises Stopped once `is_stopped()` is true.
    """
    if len(grades) != len(queries):
        raise ValueError(f"{len(grades)} queries' grades for {len(queries)} queries")
    own = _checked_own(own, grades)
    parts: list[_Judged] = []
    before: list[Int64] = []
    missing: list[NDArray[np.bool_]] = []
    for number, query in enumerate(queries):
        if is_stopped():
            raise Stopped
        scores = np.asarray(score(query), np.float64)
        _check(grades[number : number + 1], 1, len(scores))
        tolerance = tied * float(np.abs(scores).max(initial=0))
        rows, columns, levels = _flat(grades[number : number + 1])
        judged = _judged(rows, columns, levels, scores[columns], tolerance)
        others = np.delete(scores, columns if own[number] == NONE else np.append(columns, own[number]))
        others.sort()
        before.append(len(others) - np.searchsorted(others, judged.targets - tolerance))
        parts.append(judged)
        missing.append(scores[judged.documents] <= floor(query) + tolerance)
        progress(number + 1, len(queries))
    found = _ranks(parts, before, [len(each) for each in grades])
    found.ranks[np.concatenate([*missing, np.empty(0, np.bool_)])] = NOT_FOUND
    return found


def with_missing(found: RelevantRanks, missing: Sequence[Sequence[int]]) -> RelevantRanks:
    """The ranks with further relevant documents, which the corpus lacks: the grades [query] of those of each query.

    No ranking finds them, and they count in all that a measure divides by, as in trec_eval. Their number is NONE.
    """
    sizes = np.fromiter(map(len, missing), np.int64, len(missing))
    if not sizes.any():
        return found
    grades = np.fromiter((grade for each in missing for grade in each), np.int64, int(sizes.sum()))
    places = np.repeat(found.starts[1:], sizes)  # behind the query's own
    return RelevantRanks(
        np.insert(found.ranks, places, NOT_FOUND),
        np.insert(found.grades, places, grades),
        found.starts + np.concatenate([[0], np.cumsum(sizes)]),
        np.insert(found.documents, places, NONE),
    )


def _checked_own(own: Int64 | None, grades: Grades) -> Int64:
    """The documents that are left out [query]. Raises ValueError for another number of them, and for one that is relevant."""
    own = np.full(len(grades), NONE) if own is None else np.asarray(own, np.int64)
    if len(own) != len(grades) or any(
        number != NONE and number in each for number, each in zip(own.tolist(), grades, strict=True)
    ):
        raise ValueError(
            f"a document that is left out was expected for each of {len(grades)} queries, none of them relevant"
        )
    return own


def _check(grades: Grades, queries: int, documents: int) -> None:
    """Raise ValueError unless each query has grades, all of documents that exist."""
    if len(grades) != queries:
        raise ValueError(f"{len(grades)} queries' grades for {queries} queries")
    for each in grades:
        if each and not (min(each) >= 0 and max(each) < documents and min(each.values()) > 0):
            raise ValueError(f"grades above 0 of {documents} documents were expected")


def _flat(grades: Grades) -> tuple[Int64, Int64, Int64]:
    """Query, document and grade of all judgements, int64 [judged] each."""
    sizes = [len(each) for each in grades]
    rows = np.repeat(np.arange(len(grades)), sizes)
    documents = np.fromiter((document for each in grades for document in each), np.int64, len(rows))
    return rows, documents, np.fromiter((grade for each in grades for grade in each.values()), np.int64, len(rows))


def _judged(rows: Int64, columns: Int64, levels: Int64, scores: Float64, tolerance: float) -> _Judged:
    """Judgements in ranking order: by query, then by falling score, then among ties by rising grade."""
    order = np.lexsort((-scores, rows))
    rows, columns, levels, scores = rows[order], columns[order], levels[order], scores[order]
    # A tie continues as long as each score equals the one before it; all of a tie get its lowest score.
    opens = np.ones(len(rows), np.bool_)
    opens[1:] = (rows[1:] != rows[:-1]) | (scores[:-1] - scores[1:] > tolerance)
    tie = np.cumsum(opens) - 1
    last = np.append(np.flatnonzero(opens)[1:], len(rows))[: len(rows)] - 1  # none of no judgement
    inside = np.lexsort((levels, tie))
    return _Judged(rows[inside], columns[inside], levels[inside], scores[last][tie])


def _ranks(parts: Sequence[_Judged], before: Sequence[Int64], sizes: Sequence[int]) -> RelevantRanks:
    """A rank counts the documents before it that are not relevant, and the relevant ones up to it."""
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    own = np.arange(1, starts[-1] + 1) - np.repeat(starts[:-1], sizes)
    others = np.concatenate([*before, np.empty(0, np.int64)])
    levels = np.concatenate([*(part.grades for part in parts), np.empty(0, np.int64)])
    documents = np.concatenate([*(part.documents for part in parts), np.empty(0, np.int64)])
    return RelevantRanks(others + own, levels, starts, documents)


def _others_before(
    exact_queries: Float64,
    directions: Float32,
    documents: NDArray[np.floating],
    judged: _Judged,
    longest: float | None,
    own: Int64,
) -> Int64:
    """How many documents that are not relevant, nor those left out, score at least as much as each target, int64 [judged]."""
    lead = np.searchsorted(judged.rows, np.arange(len(exact_queries) + 1))  # where each query's judgements begin
    low, high = ((judged.targets + shift).astype(np.float32) for shift in (-NEAR, NEAR))
    exactly = judged.targets - SAME
    before = np.zeros(len(judged.rows), np.int64)
    queries = exact_queries.astype(np.float32)
    size = len(exact_queries) * min(_DOCUMENTS, len(directions))
    score_memory, sorted_memory = np.empty(size, np.float32), np.empty(size, np.float32)  # the same for every block
    for start in range(0, len(directions), _DOCUMENTS):
        block = directions[start : start + _DOCUMENTS]
        shape, cells = (len(exact_queries), len(block)), len(exact_queries) * len(block)
        scores = np.matmul(queries, block.T, out=score_memory[:cells].reshape(shape))  # [query, document of the block]
        in_block = (judged.documents >= start) & (judged.documents < start + len(block))
        relevant = judged.rows[in_block], judged.documents[in_block] - start
        is_own = (own >= start) & (own < start + len(block))
        left_out = np.flatnonzero(is_own), own[is_own] - start
        scores[relevant] = scores[left_out] = -np.inf
        ordered = sorted_memory[:cells].reshape(shape)
        np.copyto(ordered, scores)
        ordered.sort(axis=1)
        above, near = _bisect(ordered, lead, high, "right"), _bisect(ordered, lead, low, "left")
        unsettled = np.flatnonzero(near > above)
        if (near - above)[unsettled].sum() <= _FEW * cells:
            before += above
            before[unsettled] += _settled(
                exact_queries, documents, judged, unsettled, scores, low, high, start, longest
            )
            continue
        # Too many scores are nearly equal: the whole block is computed again in float64.
        exact = exact_queries @ exact_directions(documents[start : start + _DOCUMENTS], longest).T
        exact[relevant] = exact[left_out] = -np.inf
        exact.sort(axis=1)
        before += _bisect(exact, lead, exactly, "left")
    return before


def _bisect(ordered: NDArray[np.floating], lead: Int64, values: NDArray[np.floating], side: str) -> Int64:
    """How many sorted scores of its query are above each value (with side "left", or equal to it), int64 [judged]."""
    counts = np.empty(len(values), np.int64)
    for row, scores in enumerate(ordered):
        own = slice(lead[row], lead[row + 1])
        counts[own] = len(scores) - scores.searchsorted(values[own], side)
    return counts


def _settled(
    exact_queries: Float64,
    documents: NDArray[np.floating],
    judged: _Judged,
    unsettled: Int64,
    scores: Float32,
    low: Float32,
    high: Float32,
    start: int,
    longest: float | None,
) -> Int64:
    """How many documents with nearly a target's score in float32 reach it in float64, int64 [unsettled]."""
    reaching = np.zeros(len(unsettled), np.int64)
    waiting: list[tuple[Int64, Int64]] = []  # (number among the unsettled, document) of each pair
    count = 0
    for number, target in enumerate(unsettled):
        row = scores[judged.rows[target]]
        columns = np.flatnonzero((row >= low[target]) & (row <= high[target])) + start
        waiting.append((np.full(len(columns), number), columns))
        count += len(columns)
        if count >= _PAIRS or number + 1 == len(unsettled):
            numbers, near = (np.concatenate(each) for each in zip(*waiting, strict=True))
            rows = judged.rows[unsettled[numbers]]
            reach = _cosines(exact_queries, documents, rows, near, longest) >= judged.targets[unsettled[numbers]] - SAME
            np.add.at(reaching, numbers[reach], 1)
            waiting, count = [], 0
    return reaching


def _cosines(
    queries: Float64, documents: NDArray[np.floating], rows: Int64, columns: Int64, longest: float | None
) -> Float64:
    """The cosine of each pair of a query and a document, float64 [pair]; a share of the dot product with `longest`."""
    cosines = np.empty(len(rows))
    for start in range(0, len(rows), _PAIRS):
        part = slice(start, start + _PAIRS)
        cosines[part] = np.einsum("pd,pd->p", queries[rows[part]], exact_directions(documents[columns[part]], longest))
    return cosines
