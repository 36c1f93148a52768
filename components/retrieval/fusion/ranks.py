"""The ranks of correct answers by fused rankings, a block of queries at a time, so that no matrix of all scores is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.evaluation.graded.ranks import NONE, Grades, RelevantRanks, ranker_relevant_ranks
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import NOT_FOUND, TIED, ScoresDocuments, longest_of, tolerance
from components.retrieval.fusion.scores import Fusion, RunScores
from components.retrieval.search.exact import exact_directions

ScoresOf = Callable[[slice], RunScores]  # what a run says of all texts for the queries of a slice
_CELLS = 1 << 21  # scores of a block of queries: 16 MB for each run, and a few times that while they are sorted


def vector_scores(queries: NDArray[np.floating], documents: NDArray[np.floating], cosine: bool = True) -> ScoresOf:
    """Cosines in float64 of vectors [query, dim] and [document, dim]; otherwise dot products by the longest length.

    Every text is ranked. Raises InputError for vectors that are not finite.
    """
    directions = exact_directions(documents, None if cosine else longest_of(documents))

    def scores(block: slice) -> RunScores:
        products = exact_directions(queries[block]) @ directions.T
        return RunScores(products, np.ones(products.shape, np.bool_))

    return scores


def ranker_scores(ranker: ScoresDocuments, queries: Sequence[str]) -> ScoresOf:
    """The scores of a ranking of its own, as by words; a text with no more than one without a word of the query is not ranked.

    A ranking that ranks every text, as by distances, has the floor -inf.
    """

    def scores(block: slice) -> RunScores:
        rows = np.array([ranker.scores(query) for query in queries[block]], np.float64)
        floors = np.array([[ranker.floor(query)] for query in queries[block]])
        finite = np.where(np.isfinite(floors), floors, 0.0)
        least = np.where(np.isfinite(floors), finite + tolerance(finite), floors)
        return RunScores(rows, rows > least, TIED)

    return scores


def reranked_scores(
    first: ScoresOf, rows: Int64, scores: NDArray[np.floating], own_documents: Int64 | None = None
) -> ScoresOf:
    """The scores of a second stage, of which other texts than the candidates are not ranked.

    `first` is the first stage; `rows` and `scores` are the candidates [query, candidate]. Nor is a candidate ranked that
    shares its score of the first stage with a text that is none. `own_documents` [query] are left out of one query's
    ranking, as for `fused_ranks`.
    """

    def of(block: slice) -> RunScores:
        is_ranked = (
            _without(first(block), None if own_documents is None else own_documents[block])
            .first(rows.shape[1])
            .is_ranked
        )
        of_candidates = scores[block].astype(np.float64)
        lowest = of_candidates.min(axis=1, keepdims=True)
        of_all = np.repeat(lowest - 3 * TIED * np.maximum(1.0, np.abs(lowest)), is_ranked.shape[1], axis=1)
        is_candidate = np.zeros_like(is_ranked)
        np.put_along_axis(of_all, rows[block], of_candidates, axis=1)
        np.put_along_axis(is_candidate, rows[block], True, axis=1)
        return RunScores(of_all, is_ranked & is_candidate, TIED)

    return of


def fused_ranks(
    runs: Sequence[ScoresOf],
    fusions: Sequence[Fusion],
    shape: tuple[int, int],
    answers: Int64 | Grades | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    own_documents: Int64 | None = None,
) -> list[Ranks]:
    """The ranks of the correct answers by each fusion of the same runs, from 1; NOT_FOUND where no run ranks an answer.

    `shape` is the number of queries and of documents. `answers` are the number of each query's correct answer [query], by
    default the query's own; or for several answers the grades of each query, which gives RelevantRanks. Those of
    `own_documents` [query] are left out of one query's ranking (graded relevance). `progress(done, total)` counts queries.
    Raises Stopped, checked before each block.
    """
    queries, documents = shape
    answers = np.arange(queries) if answers is None else answers
    parts: list[list[Ranks]] = [[] for _ in fusions]
    step = max(1, _CELLS // max(1, documents))
    for start in range(0, queries, step):
        if is_stopped():
            raise Stopped
        block = slice(start, min(start + step, queries))
        left_out = None if own_documents is None else own_documents[block]
        scored = [_without(scores(block), left_out) for scores in runs]
        for fusion, blocks in zip(fusions, parts, strict=True):
            blocks.append(_ranks(fusion.of(scored), answers[block], left_out))
        progress(block.stop, queries)
    return [_joined(blocks) for blocks in parts]


def _without(run: RunScores, own_documents: Int64 | None) -> RunScores:
    """The run with a query's own document behind all others, which are ranked as if it were not there."""
    if own_documents is None:
        return run
    rows, scores, is_ranked = np.flatnonzero(own_documents != NONE), run.scores.copy(), run.is_ranked.copy()
    lowest = scores[rows].min(axis=1)
    scores[rows, own_documents[rows]] = lowest - 3 * run.tied * np.maximum(1.0, np.abs(lowest))
    is_ranked[rows, own_documents[rows]] = False
    return RunScores(scores, is_ranked, run.tied)


def _ranks(run: RunScores, answers: Int64 | Grades, own_documents: Int64 | None) -> Ranks:
    if isinstance(answers, np.ndarray):
        rows = np.arange(len(answers))
        targets = run.scores[rows, answers][:, None]
        least = targets - run.tied * np.maximum(1.0, np.abs(targets))
        return np.where(run.is_ranked[rows, answers], np.count_nonzero(run.scores >= least, axis=1), NOT_FOUND)
    each = iter(run.scores)
    ranks = ranker_relevant_ranks(lambda _: next(each), [""] * len(answers), answers, tied=run.tied, own=own_documents)
    rows = np.repeat(np.arange(len(answers)), np.diff(ranks.starts))
    ranks.ranks[~run.is_ranked[rows, ranks.documents]] = NOT_FOUND
    return ranks


def _joined(parts: Sequence[Ranks]) -> Ranks:
    """The ranks of blocks of queries as those of all queries."""
    several = [part for part in parts if isinstance(part, RelevantRanks)]
    if not several:
        return np.concatenate([np.empty(0, np.int64), *(part for part in parts if isinstance(part, np.ndarray))])
    sizes = np.concatenate([np.diff(part.starts) for part in several])
    ranks, grades, documents = (
        np.concatenate([getattr(part, name) for part in several]) for name in ("ranks", "grades", "documents")
    )
    return RelevantRanks(ranks, grades, np.concatenate([[0], np.cumsum(sizes)]), documents)
