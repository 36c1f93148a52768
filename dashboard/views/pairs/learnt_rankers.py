"""The rankings that are compared with a learnt one, and the jobs that make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import streamlit as st

from components.errors import InputError
from components.retrieval.learnt import comparison, learnt_ranking, learnt_vectors
from components.retrieval.learnt.comparison import RANKING_MEASURES, LearntRanking
from components.sizes import in_words
from dashboard import caching
from dashboard.jobs import evaluation, requests, reranking
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, messages, model_gate
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.arrays import Float64
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.evaluation.graded.ranks import RelevantRanks
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.learnt.comparison import LearningChoice, LearningSet
    from components.retrieval.learnt.learnt_vectors import LearntVectors, Reading
    from components.retrieval.rankings.ranking import Ranking

CHANCE = "By chance"
CROSS_ENCODER = "Cross-encoder"
READING = {"apart": "one by one", "together": "together"}
MOST_BYTES = 512 << 20  # of the vectors of one model: the server keeps those of two
MOST_LEARNING_BYTES = 2 << 30  # of memory while a ranking is learnt


Indexes = tuple["VectorIndex", "VectorIndex"]  # of documents and queries


@dataclass(frozen=True, eq=False)
class LearntSource:
    """One model's vectors, what was learnt from them, and what names both in the keys of further jobs."""

    key: tuple[object, ...]
    vectors: LearntVectors
    learnt: LearntRanking


@dataclass(frozen=True)
class MeasuredRanking:
    """A ranking of the test queries' documents by its name, with a measure's value for each query, by measure."""

    name: str
    values: Mapping[str, Float64]  # by the name of the measure: [test query]
    is_learnt: bool = False

    @property
    def is_cosine(self) -> bool:
        """Whether it compares the same vectors without learning."""
        return self.name.startswith("Cosine")

    @classmethod
    def of(cls, ranking: Ranking) -> MeasuredRanking:
        values = {name: measure(cast("RelevantRanks", ranking.ranks)) for name, measure in RANKING_MEASURES.items()}
        return cls(ranking.name, values, isinstance(ranking, LearntRanking))


def candidates_of(
    request: EmbedRequest, graded: GradedSet, most: int
) -> tuple[LearningSet, tuple[object, ...], Indexes]:
    """The pairs of a collection, what names them, and the model's indexes. Raises NotReady until they are chosen."""
    documents, queries = evaluation.both_indexes(request, graded.document_texts, graded.query_texts, "learnt")
    key = ("learnt", documents.folder.name, queries.folder.name, graded.content_hash, most)
    candidates = requests.prepared(
        key,
        f"Choosing the candidates of {min(most, len(graded.queries)):,} queries",
        lambda report_progress, is_stopped: _chosen(
            graded, documents, queries, request.backend, most, report_progress, is_stopped
        ),
        "learnt_pairs",
    )
    return candidates, key, (documents, queries)


def _chosen(
    graded: GradedSet,
    documents: VectorIndex,
    queries: VectorIndex,
    backend: Backend,
    most: int,
    report_progress: ReportProgress,
    is_stopped: IsStopped,
) -> LearningSet:
    cell = reranking.cell_of(backend, documents)
    search, vectors = documents.engine(*cell), queries.engine(*cell).vectors
    return comparison.choose_candidates(
        graded,
        lambda query: search.scores(np.asarray(vectors[query], np.float32)),
        most,
        check=check_choosing,
        progress=report_progress,
        is_stopped=is_stopped,
    )


def of_model(
    request: EmbedRequest,
    candidates: LearningSet,
    key: tuple[object, ...],
    reading: Reading,
    choice: LearningChoice,
    where: str,
    indexes: Indexes | None = None,
) -> LearntSource:
    """What is learnt from a model's vectors. Raises NotReady."""
    backend, pairs = request.backend, candidates.pairs
    vectors_key = (
        "learnt vectors",
        backend.spec.key,
        backend.revision,
        reading,
        pairs.content_hash,
        request.max_length,
    )
    check_learning(candidates, backend.facts.hidden_size)
    needed = learnt_vectors.needed_bytes(backend, pairs, reading)
    if needed > MOST_BYTES:
        raise InputError(
            f"The vectors of {counted(len(pairs), 'pair')} at every layer of {backend.spec.title} "
            f"take {in_words(needed, binary=True)}.",
            f"This view keeps at most {in_words(MOST_BYTES, binary=True)}.",
            "Choose fewer queries under “Options”.",
        )
    texts = (
        counted(len(pairs), "pair")
        if reading == "together"
        else f"{counted(len(pairs.queries), 'query', 'queries')} and {counted(len(pairs.documents), 'document')}"
    )
    length = request.max_length

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> LearntVectors:
        if indexes is not None and reading == "apart":
            known = learnt_vectors.from_indexes(*indexes, pairs)  # of a small collection they hold every layer
            if known is not None and known.layers[-1] == backend.facts.layers == len(known.layers) - 1:
                return known
        return learnt_vectors.vectors_of(
            backend, pairs, reading, max_length=length, progress=report_progress, is_stopped=is_stopped
        )

    vectors = requests.prepared(
        vectors_key,
        f"{backend.spec.title} reads {texts}",
        work,
        f"learnt_vectors_{where}",
        jobs=caching.learnt_vectors(),
    )
    return _source(vectors_key, vectors, candidates, key, choice, where)


def _source(
    vectors_key: tuple[object, ...],
    vectors: LearntVectors,
    candidates: LearningSet,
    key: tuple[object, ...],
    choice: LearningChoice,
    where: str,
) -> LearntSource:
    all_keys = (*key, *vectors_key)
    learnt = requests.prepared(
        (*all_keys, choice),
        f"Learning from {counted(len(candidates.pairs), 'pair')}",
        lambda _, is_stopped: choice.learnt(vectors, candidates, is_stopped),
        f"learnt_{where}",
    )
    return LearntSource(all_keys, vectors, learnt)


def check_choosing(queries: int, documents: int) -> None:
    """Raise InputError where the scores of all documents for all queries would take too much memory."""
    needed = learnt_ranking.choosing_bytes(queries, documents)
    if needed > MOST_LEARNING_BYTES:
        raise InputError(
            f"The scores of {counted(documents, 'document')} for {counted(queries, 'query', 'queries')} "
            f"take {in_words(needed, binary=True)} "
            "of memory.",
            f"This view uses at most {in_words(MOST_LEARNING_BYTES, binary=True)}.",
            "Choose fewer queries under “Options”.",
        )


def check_learning(candidates: LearningSet, dim: int) -> None:
    """Raise InputError where learning from vectors of so many numbers would take too much memory."""
    pairs = candidates.pairs
    needed = learnt_ranking.learning_bytes(len(pairs), dim, len(candidates.split.test), len(pairs.documents))
    if needed > MOST_LEARNING_BYTES:
        raise InputError(
            f"Learning from {counted(len(pairs), 'pair')} with {dim:,} features each "
            f"takes {in_words(needed, binary=True)} of memory.",
            f"This view uses at most {in_words(MOST_LEARNING_BYTES, binary=True)}.",
            "Choose fewer queries under “Options”.",
        )


def references(candidates: LearningSet, main: LearntSource) -> list[MeasuredRanking]:
    """The rankings that nothing was learnt for."""
    unlearnt = [] if main.learnt.unlearnt is None else [main.learnt.unlearnt]
    rankings = [*unlearnt, *candidates.references()]
    return [*map(MeasuredRanking.of, rankings), MeasuredRanking(CHANCE, candidates.random)]


def other_encoders(
    backend: Backend,
    candidates: LearningSet,
    key: tuple[object, ...],
    reading: Reading,
    choice: LearningChoice,
) -> list[MeasuredRanking]:
    """The same, learnt from the vectors of the second model."""
    second = model_gate.second_model("blocks")
    if second is None:
        return []
    last = second.facts.layers  # the same layer in a model with another number of layers: its last for the last
    own = replace(choice, layer=last if choice.layer == backend.facts.layers else min(choice.layer, last))
    rankers = []
    with frame.figure("learnt_second"):
        request = EmbedRequest.of_session(second, exact=True)
        source = of_model(request, candidates, key, reading, own, "m2")
        rankers.append(MeasuredRanking.of(replace(source.learnt, name=own.name(second.spec.title))))
    return rankers


def cross_encoder(candidates: LearningSet, key: tuple[object, ...]) -> list[MeasuredRanking]:
    """The cross-encoder, which sorts the test queries' candidates again; nothing until it has read them."""
    scorer = model_gate.cross_encoder()
    if scorer is None:
        return []
    if len(scorer.pair_labels()) > 1:
        st.caption(
            f"{messages.escape(scorer.spec.title)} gives several numbers for a pair, so it is not compared here."
        )
        return []
    pairs, rows = candidates.pairs, candidates.test_rows
    length = controls.length_for(scorer)
    all_keys = (*key, "cross-encoder", scorer.spec.key, scorer.revision, length)

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> np.ndarray:
        is_over = requests.unless_left(all_keys, is_stopped)
        return scorer.score_pairs(*pairs.texts(rows), max_length=length, progress=report_progress, is_stopped=is_over)

    rankers = []
    with frame.figure("learnt_cross_encoder"):
        scores = requests.prepared(
            all_keys,
            f"{scorer.spec.title} reads {counted(len(rows), 'candidate')}",
            work,
            "learnt_cross_encoder",
        )
        rankers.append(MeasuredRanking.of(candidates.reranked(CROSS_ENCODER, scores)))
    return rankers
