"""Runs of Evaluate that rank by words and vectors together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from components.jobs import Stoppable
from components.retrieval.evaluation import run_record
from components.retrieval.fusion.ranks import ScoresOf, ranker_scores, vector_scores
from components.retrieval.search.lexical import TITLES
from dashboard.jobs import evaluation
from dashboard.jobs.evaluation import PairIndexes, Timing

if TYPE_CHECKING:
    from components.jobs import IsCancelled, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.fusion.scores import Fusion
    from components.retrieval.index.folder import VectorIndex
    from dashboard.jobs.rankers import WordRanking


class RanksByFusions(Protocol):
    """Pairs or graded relevance: what knows the correct answers."""

    @property
    def content_hash(self) -> str: ...

    def ranks_by_fusions(
        self, runs: Sequence[ScoresOf], fusions: Sequence[Fusion], progress: ReportProgress, is_cancelled: IsCancelled
    ) -> Sequence[Ranks]: ...


def fused_ranks(
    answers: RanksByFusions,
    texts: tuple[Sequence[str], Sequence[str]],
    indexes: tuple[VectorIndex, VectorIndex],
    cell: tuple[int, Pooling],
    ranking: WordRanking,
    fusions: Sequence[Fusion],
    where: str,
) -> Sequence[Ranks]:
    """The ranks of the correct answers by each fusion of a layer and pooling with a ranking by words. Raises NotReady.

    `texts` and `indexes` are those of the documents and of the queries.
    """
    documents, queries = indexes

    def work(report_progress: ReportProgress, is_cancelled: IsCancelled) -> Sequence[Ranks]:
        vectors = vector_scores(queries.engine(*cell).vectors, documents.engine(*cell).vectors)
        words = ranker_scores(ranking.make(Stoppable(texts[0], is_cancelled)), texts[1])
        return answers.ranks_by_fusions([vectors, words], fusions, report_progress, is_cancelled)

    return evaluation.result(
        (
            "fused",
            documents.folder.name,
            queries.folder.name,
            answers.content_hash,
            ranking.kind,
            *cell,
            tuple(fusions),
        ),
        f"{len(texts[1]):,} queries: vectors and {TITLES[ranking.kind]} together",
        work,
        where,
    )


def pair_ranks(
    pairs: Pairs,
    indexes: PairIndexes,
    cell: tuple[int, Pooling],
    ranking: WordRanking,
    fusions: Sequence[Fusion],
    where: str,
) -> Sequence[Ranks]:
    """The same over pairs. Raises NotReady."""
    texts = pairs.documents.texts, pairs.queries.texts
    return fused_ranks(pairs, texts, (indexes.documents, indexes.queries), cell, ranking, fusions, where)


def pair_run(
    backend: Backend,
    pairs: Pairs,
    indexes: PairIndexes,
    cell: tuple[int, Pooling],
    ranking: WordRanking,
    fusion: Fusion,
    where: str,
) -> Run:
    """The record of a fused run over pairs. Raises NotReady."""
    first, words = evaluation.vector_run(backend, pairs, indexes, *cell), evaluation.word_run(ranking, pairs)
    (ranks,) = pair_ranks(pairs, indexes, cell, ranking, [fusion], where)
    method: dict[str, str | int | float] = {"method": "rrf", "k": fusion.rank_constant}
    if fusion.method != "rrf":
        method = {"method": "weighted", "normalised": fusion.method, "weight": fusion.weights[1]}
    milliseconds, made = timing(backend, pairs, indexes, ranking).known() or (None, run_record.now())
    return replace(
        first,
        name=f"{first.name} + {words.name}, "
        + ("by ranks" if fusion.method == "rrf" else f"{100 * fusion.weights[1]:g} % words"),
        system={**first.system, "kind": "fused", "fused": ranking.kind, **method},
        versions={**first.versions, **words.versions},
        ranks=ranks,
        milliseconds=milliseconds,
        index_bytes=None
        if first.index_bytes is None or words.index_bytes is None
        else first.index_bytes + words.index_bytes,
        made=made,
    )


def timing(backend: Backend, pairs: Pairs, indexes: PairIndexes, ranking: WordRanking) -> Timing:
    """The time per query of both rankings; the sum of their scores takes next to none."""
    both = evaluation.vector_timing(backend, pairs, indexes), evaluation.word_timing(ranking, pairs)
    return Timing(
        ("speed", "fused", *(part for each in both for part in each.key)),
        f"Measuring the time per query of {backend.spec.title} with {TITLES[ranking.kind]}",
        lambda is_cancelled: sum(each.measure(is_cancelled) for each in both),
    )
