"""The second stage of Evaluate's runs: the first hits of a model's vectors, re-ranked by a cross-encoder or by MaxSim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from components.numbers import counted
from components.retrieval.evaluation import pair_runs, run_record, second_stage
from dashboard.jobs import evaluation
from dashboard.jobs.evaluation import PairIndexes, Timing

if TYPE_CHECKING:
    from components.arrays import Float32, Int64
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.index.folder import VectorIndex
    from dashboard.jobs.reranking import SecondStage


@dataclass(frozen=True, eq=False)
class Candidates:
    """The first hits of each query, in the first stage's order, with the second stage's scores."""

    rows: Int64  # [query, candidate] numbers of documents
    scores: Float32  # [query, candidate]
    made: str  # when, in UTC

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.scores.nbytes


@dataclass(frozen=True, eq=False)
class TwoStages:
    """A search by a model's layer and pooling, and what re-ranks its first hits. It needs no session."""

    backend: Backend  # of the first stage
    layer: int
    pooling: Pooling
    k: int  # candidates of a query
    second: SecondStage

    @property
    def key(self) -> tuple[object, ...]:
        """What the scores depend on, besides the texts and the indexes."""
        return (self.k, self.layer, self.pooling, self.second.key)

    @property
    def name(self) -> str:
        """The second stage in words; not escaped."""
        is_of_layer = self.second.kind == "maxsim" and not self.second.is_trained_max_sim
        return f"first {self.k} re-ranked by {'MaxSim' if is_of_layer else self.second.title}"

    def candidates(
        self,
        documents: VectorIndex,
        queries: VectorIndex,
        texts: Sequence[str],
        query_texts: Sequence[str],
        own: Int64 | None,
        report_progress: ReportProgress,
        is_stopped: IsStopped,
    ) -> Candidates:
        """The candidates and their scores; `own` as for `second_stage.candidates`. Raises Stopped."""
        query_vectors, vectors = (index.engine(self.layer, self.pooling).vectors for index in (queries, documents))
        rows = second_stage.candidates(query_vectors, vectors, self.k, is_stopped, own)
        second = self.second
        score = (
            partial(second_stage.candidate_scores, self._pair_scores)
            if second.kind == "rerank"
            else partial(
                second_stage.max_sim_candidate_scores, second.backend, second.layer, max_length=second.max_length
            )
        )
        scores = score(query_texts, texts, rows, progress=report_progress, is_stopped=is_stopped)
        return Candidates(rows, scores, run_record.now())

    def _pair_scores(
        self, queries: Sequence[str], documents: Sequence[str], *, progress: ReportProgress, is_stopped: IsStopped
    ) -> Float32:
        return self.second.pair_scores(queries, documents, progress, is_stopped)


@dataclass(frozen=True, eq=False)
class SearchTexts:
    """What is searched, and by what."""

    documents: Texts
    queries: Sequence[str]
    content_hash: str  # of both, and of the correct answers
    own: Int64 | None = None  # documents that are left out of one query's ranking (`second_stage.candidates`)


def candidates(
    stages: TwoStages, indexes: tuple[VectorIndex, VectorIndex], searched: SearchTexts, where: str
) -> Candidates:
    """The candidates of all queries with their scores; `indexes` are those of documents and queries. Raises NotReady."""
    documents, queries = indexes
    return evaluation.result(
        ("second stage", documents.folder.name, queries.folder.name, searched.content_hash, *stages.key),
        f"{counted(len(searched.queries), 'query', 'queries')}: {stages.name}",
        partial(stages.candidates, documents, queries, searched.documents.texts, searched.queries, searched.own),
        where,
    )


def pair_run(stages: TwoStages, pairs: Pairs, indexes: PairIndexes, found: Candidates) -> Run:
    """The record of a run in two stages over pairs."""
    first = evaluation.vector_run(stages.backend, pairs, indexes, stages.layer, stages.pooling)
    second, scorer = stages.second, stages.second.backend
    is_cross = second.kind == "rerank"
    system = {**first.system, "kind": "re-ranked" if is_cross else "MaxSim", "candidates": stages.k}
    settings = dict(first.settings)
    if is_cross:
        system |= {"cross_encoder": scorer.spec.key, "cross_encoder_revision": scorer.revision}
        settings["cross_encoder_max_length"] = second.max_length or scorer.own_max_length
        if second.label is not None:
            system["cross_encoder_label"] = scorer.pair_labels()[second.label]
    elif second.is_trained_max_sim:
        system |= {"late_interaction": scorer.spec.key, "late_interaction_revision": scorer.revision}
    milliseconds, made = timing(stages, pairs, indexes, found).known() or (None, found.made)
    return replace(
        first,
        name=f"{first.name}, {stages.name}",
        system=system,
        settings=settings,
        ranks=second_stage.either_ranks(first.ranks, found.rows, found.scores, pairs.gold),
        milliseconds=milliseconds,
        made=made,
    )


def timing(stages: TwoStages, pairs: Pairs, indexes: PairIndexes, found: Candidates) -> Timing:
    """The time per query of both stages."""
    documents, texts, queries = indexes.documents, pairs.documents.texts, pairs.queries.texts

    def milliseconds(is_stopped: IsStopped) -> float:
        def score(number: int, rows: Int64) -> object:
            own = [texts[row] for row in rows]
            return stages.second.scores(queries[number], own, is_stopped=is_stopped)

        first = pair_runs.vector_milliseconds(stages.backend, documents, queries, is_stopped)
        return first + pair_runs.second_milliseconds(score, found.rows, is_stopped)

    return Timing(
        ("speed", documents.folder.name, indexes.queries.folder.name, *map(str, stages.key)),
        f"Measuring the time per query of {stages.backend.spec.title}, {stages.name}",
        milliseconds,
    )
