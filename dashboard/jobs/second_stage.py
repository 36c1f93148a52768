"""The second stage of Evaluate's runs: the first hits of a model's vectors, re-ranked by a cross-encoder or by MaxSim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from components.retrieval.evaluation import pair_runs, run_record, second_stage
from components.retrieval.search.rerank import late_interaction_scores
from dashboard.jobs import evaluation
from dashboard.jobs.evaluation import PairIndexes, Timing

if TYPE_CHECKING:
    from components.arrays import Float32, Int64
    from components.jobs import IsCancelled, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.index.folder import VectorIndex

Kind = Literal["rr", "ms"]  # re-ranked by the cross-encoder; by MaxSim over the token vectors of the model's layer


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
class SecondStage:
    """What is done with the first hits of a model's layer and pooling. It needs no session."""

    kind: Kind
    k: int
    backend: Backend  # of the first stage
    layer: int
    pooling: Pooling
    cross_encoder: Backend | None  # only of the kind "rr"

    @property
    def key(self) -> tuple[object, ...]:
        """What the scores depend on, besides the texts and the indexes."""
        scorer = self.cross_encoder
        return (self.kind, self.k, self.layer, self.pooling, *((scorer.spec.key, scorer.revision) if scorer else ()))

    @property
    def name(self) -> str:
        return f"first {self.k} re-ranked by {self.cross_encoder.spec.title if self.cross_encoder else 'MaxSim'}"

    def candidates(
        self,
        documents: VectorIndex,
        queries: VectorIndex,
        texts: Sequence[str],
        query_texts: Sequence[str],
        report_progress: ReportProgress,
        is_cancelled: IsCancelled,
    ) -> Candidates:
        """The candidates and their scores. Raises Cancelled."""
        query_vectors, vectors = (index.engine(self.layer, self.pooling).vectors for index in (queries, documents))
        rows = second_stage.candidates(query_vectors, vectors, self.k, is_cancelled)
        score = (
            partial(second_stage.candidate_scores, self.cross_encoder.score_pairs)
            if self.cross_encoder is not None
            else partial(
                second_stage.max_sim_candidate_scores,
                self.backend,
                self.layer,
                max_length=documents.info.options.max_length,
            )
        )
        scores = score(query_texts, texts, rows, progress=report_progress, is_cancelled=is_cancelled)
        return Candidates(rows, scores, run_record.now())

    def score_one(self, query: str, texts: Sequence[str], max_length: int) -> object:
        """The scores of one query's candidates, as a person waits for them."""
        if self.cross_encoder is not None:
            return self.cross_encoder.score_pairs([query] * len(texts), texts)
        return late_interaction_scores(self.backend, query, texts, self.layer, max_length)


def candidates(
    stage: SecondStage,
    indexes: tuple[VectorIndex, VectorIndex],
    texts: Sequence[str],
    query_texts: Sequence[str],
    content_hash: str,
    where: str,
) -> Candidates:
    """The candidates of all queries with their scores; `indexes` are those of documents and queries. Raises NoResult."""
    documents, queries = indexes
    return evaluation.result(
        ("second stage", documents.folder.name, queries.folder.name, content_hash, *stage.key),
        f"{len(query_texts):,} queries: {stage.name}",
        partial(stage.candidates, documents, queries, texts, query_texts),
        where,
    )


def pair_run(stage: SecondStage, pairs: Pairs, indexes: PairIndexes, found: Candidates) -> Run:
    """The record of a run in two stages over pairs."""
    first = evaluation.vector_run(stage.backend, pairs, indexes, stage.layer, stage.pooling)
    system = {**first.system, "kind": "re-ranked" if stage.cross_encoder else "MaxSim", "candidates": stage.k}
    if stage.cross_encoder is not None:
        scorer = stage.cross_encoder
        system |= {
            "cross_encoder": scorer.spec.key,
            "cross_encoder_revision": scorer.revision,
            "cross_encoder_max_length": scorer.own_max_length,
        }
    milliseconds, made = timing(stage, pairs, indexes, found).known() or (None, found.made)
    return replace(
        first,
        name=f"{first.name}, {stage.name}",
        system=system,
        ranks=second_stage.second_ranks(first.ranks, found.rows, found.scores),
        milliseconds=milliseconds,
        made=made,
    )


def timing(stage: SecondStage, pairs: Pairs, indexes: PairIndexes, found: Candidates) -> Timing:
    """The time per query of both stages."""
    documents, texts, queries = indexes.documents, pairs.documents.texts, pairs.queries.texts
    rows, max_length = found.rows, documents.info.options.max_length

    def milliseconds() -> float:
        first = pair_runs.vector_milliseconds(stage.backend, documents, queries)
        return first + pair_runs.second_milliseconds(
            lambda number: stage.score_one(queries[number], [texts[row] for row in rows[number]], max_length),
            len(queries),
        )

    return Timing(
        ("speed", documents.folder.name, indexes.queries.folder.name, *map(str, stage.key)),
        f"Measuring the time per query of {stage.backend.spec.title}, {stage.name}",
        milliseconds,
    )
