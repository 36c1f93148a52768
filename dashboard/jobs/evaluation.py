"""What evaluation waits for: evaluations in the background, and the indexes and ranks of pairs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from components.jobs import Stoppable, Stopped
from components.model.trace import POOLING_NAMES, Pooling
from components.numbers import counted
from components.retrieval.evaluation import pair_runs, run_record, similarities
from components.retrieval.evaluation.run_record import Run, RunData
from components.retrieval.index.build import versions
from components.retrieval.search import lexical
from components.words.unicode_words import WORDS_ARE
from dashboard import caching
from dashboard.jobs import embedding, requests
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.requests import NotReady

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.evaluation.layer_grid import LayerGrid
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs, Texts
    from components.retrieval.evaluation.similarities import Retrieval
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity
    from dashboard.jobs.rankers import WordRanking

Result = TypeVar("Result")
log = logging.getLogger(__name__)


_ONLY_KNOWN: ContextVar[bool] = ContextVar("whether no evaluation is requested", default=False)


@contextmanager
def only_known() -> Iterator[None]:
    """Within it no evaluation is requested: `result` gives those that are there, and raises a NotReady without a job else."""
    token = _ONLY_KNOWN.set(True)
    try:
        yield
    finally:
        _ONLY_KNOWN.reset(token)


@dataclass(frozen=True, eq=False)
class PairIndexes:
    """A model's vectors of the documents and queries of some pairs, and the ranks of the correct answers."""

    documents: VectorIndex
    queries: VectorIndex
    ranks: LayerGrid  # [layer, pooling, query], or RelevantRanks [layer, pooling]

    @property
    def both(self) -> tuple[VectorIndex, VectorIndex]:
        """The vectors of the documents, and of the queries."""
        return self.documents, self.queries

    def ranks_of(self, layer: int, pooling: Pooling) -> Ranks:
        """The ranks of the correct answers by one layer and pooling. Raises KeyError for one that is not embedded."""
        ranks: Ranks = self.ranks.of(layer, pooling)
        return ranks.astype(np.int64) if isinstance(ranks, np.ndarray) else ranks


def result(
    key: tuple[object, ...],
    title: str,
    work: Callable[[ReportProgress, IsStopped], Result],
    where: str,
    short: bool = False,
) -> Result:
    """The result of an evaluation. Raises NotReady.

    `where` keys the widgets; `short` is for statistics over known ranks, which do not wait for any embedding.
    """
    jobs = caching.evaluations()
    if _ONLY_KNOWN.get():
        known = jobs.find(key)
        if known is None or not known.finished.is_set() or known.error is not None:
            raise NotReady
        kept: Result = known.result
        return kept
    job = jobs.request(key, title, work, person=caching.person(), lane="statistics" if short else None)
    value: Result = requests.result_of(
        jobs, job, doing="evaluating", stop_key=f"stop_job_{where}", again_key=f"again_{where}"
    )
    return value


def is_under_way(missing: NotReady) -> bool:
    """Whether an evaluation is what a result waits for: other evaluations come after it."""
    return missing.is_under_way and missing.awaited is not None and missing.awaited.jobs is caching.evaluations()


def both_indexes(
    request: EmbedRequest, documents: Texts, queries: Texts, where: str
) -> tuple[VectorIndex, VectorIndex]:
    """The float32 indexes of documents and queries. Raises NotReady until both are there."""
    document_index = embedding.index_of(request, documents, where)
    return document_index, embedding.queries_of(request, queries, document_index.info, where)


def pair_indexes(request: EmbedRequest, pairs: Pairs, where: str) -> PairIndexes:
    """Documents, queries and ranks at every layer and pooling that is embedded. Raises NotReady."""
    documents, queries = both_indexes(request, pairs.documents, pairs.queries, where)
    ranks = result(
        ("ranks", documents.folder.name, queries.folder.name, pairs.content_hash),
        f"Ranking {counted(len(pairs), 'query', 'queries')} at every layer and pooling",
        lambda report_progress, is_stopped: pair_runs.grid_ranks(
            documents, queries, report_progress, is_stopped, pairs
        ),
        where,
    )
    return PairIndexes(documents, queries, ranks)


def retrieved(
    pairs: Pairs, documents: VectorIndex, queries: VectorIndex, layer: int, pooling: Pooling, name: str, where: str
) -> Mapping[Similarity, Retrieval]:
    """What cosine and dot product retrieve of pairs at one layer and pooling; `name` is the run's. Raises NotReady."""
    by, of = documents.engine(layer, pooling), queries.engine(layer, pooling).vectors
    return result(
        ("similarities", documents.folder.name, queries.folder.name, pairs.content_hash, layer, pooling),
        f"{name}: ranking {counted(len(of), 'query', 'queries')} by cosine and dot product",
        lambda report_progress, is_stopped: similarities.by_each_similarity(
            of, by, report_progress, is_stopped, pairs.ranks_by_vectors
        ),
        where,
    )


@dataclass(frozen=True, eq=False)
class Timing:
    """How the time per query of some runs is measured; `key` names what it depends on."""

    key: tuple[str, ...]
    title: str
    measure: Callable[[IsStopped], float]  # milliseconds per query; may raise Stopped

    def known(self) -> tuple[float | None, str] | None:
        """Milliseconds per query and when they were measured; None before that, no milliseconds if it failed."""
        job = caching.evaluations().find(self.key)
        if job is None or not job.finished.is_set():
            return None
        measured: tuple[float | None, str] | None = job.result
        return measured


def vector_timing(backend: Backend, pairs: Pairs, indexes: PairIndexes) -> Timing:
    """The time per query by vectors, the same at every layer and pooling."""
    return Timing(
        ("speed", indexes.documents.folder.name, indexes.queries.folder.name),
        f"Measuring the time per query of {backend.spec.title}",
        lambda is_stopped: pair_runs.vector_milliseconds(backend, indexes.documents, pairs.queries.texts, is_stopped),
    )


def word_timing(ranking: WordRanking, pairs: Pairs) -> Timing:
    """The time per query of a word ranking."""
    kind = ranking.kind
    return Timing(
        ("speed", kind, ranking.source, pairs.content_hash),
        f"Measuring the time per query of {lexical.TITLES[kind]}",
        lambda is_stopped: pair_runs.ranker_milliseconds(
            ranking.make(Stoppable(pairs.documents.texts, is_stopped)), pairs.queries.texts, is_stopped
        ),
    )


def measure_times(timings: Iterable[Timing]) -> bool:
    """Measure the times that are not known, once nothing else runs; returns whether some are still not known.

    Other work would lengthen a time. One that another job disturbed is measured again.
    """
    jobs, queue = caching.evaluations(), caching.queue()

    def work(timing: Timing) -> Callable[..., tuple[float | None, str] | None]:
        def run(_: ReportProgress, is_stopped: IsStopped) -> tuple[float | None, str] | None:
            was_alone = queue.works_on_one()
            try:
                milliseconds = timing.measure(is_stopped)
            except Stopped:
                raise
            except Exception as problem:
                log.warning("measuring a time failed", exc_info=problem)
                return None, run_record.now()  # for good: the time of the failure belongs to the run's record
            return (milliseconds, run_record.now()) if was_alone and queue.works_on_one() else None

        return run

    unknown = [timing for timing in timings if timing.known() is None]
    if unknown and not queue.under_way():
        for timing in unknown:
            disturbed = jobs.find(timing.key)
            if disturbed is not None:
                jobs.drop([disturbed])
            jobs.request(timing.key, timing.title, work(timing))  # nobody waits for it: no progress, no Stop
    return bool(unknown)


def vector_run(backend: Backend, pairs: Pairs, indexes: PairIndexes, layer: int, pooling: Pooling) -> Run:
    """The record of one layer and pooling."""
    info = indexes.documents.info
    milliseconds, made = vector_timing(backend, pairs, indexes).known() or (None, run_record.now())
    return Run(
        name=f"{backend.spec.title}, layer {layer}, {POOLING_NAMES[pooling]}",
        system={"kind": "vectors", "model": info.model, "revision": info.revision, "layer": layer, "pooling": pooling},
        data=data_of(pairs),
        settings={
            "precision": "float32",
            "similarity": "cosine",
            "max_length": info.options.max_length,
            "document_prompt": info.options.prompt,
            "query_prompt": indexes.queries.info.options.prompt,
            "bootstrap_seed": 0,
        },
        versions=dict(info.versions),
        ranks=indexes.ranks_of(layer, pooling),
        milliseconds=milliseconds,
        index_bytes=info.sentences * _numbers_per_vector(backend, pooling) * 4,
        made=made,
    )


def _numbers_per_vector(backend: Backend, pooling: Pooling) -> int:
    """The length of a vector of this pooling by itself; in an index, shorter ones are padded with zeros."""
    head = backend.loaded.head
    return head.size if head is not None and pooling == "own" else backend.facts.hidden_size


def word_ranks(
    ranking: WordRanking, answers: Pairs | GradedSet, documents: Sequence[str], queries: int
) -> tuple[Ranks, int, str]:
    """The ranks of the correct answers by a word ranking, its bytes of memory, and when it was made. Raises NotReady."""

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[Ranks, int, str]:
        ranker = ranking.make(Stoppable(documents, is_stopped))
        ranks = answers.ranks_by_words(ranker, report_progress, is_stopped)
        return ranks, ranker.nbytes, run_record.now()

    return result(
        ("words", ranking.kind, ranking.source, answers.content_hash),
        f"{lexical.TITLES[ranking.kind]}: ranking {counted(queries, 'query', 'queries')}",
        work,
        f"words_{ranking.kind}",
    )


def word_run(ranking: WordRanking, pairs: Pairs) -> Run:
    """The record of one word ranking. Raises NotReady."""
    kind, vectors = ranking.kind, {"vectors": ranking.source} if ranking.source else {}
    ranks, size, made = word_ranks(ranking, pairs, pairs.documents.texts, len(pairs))
    milliseconds, made = word_timing(ranking, pairs).known() or (None, made)
    return Run(
        name=lexical.TITLES[kind],
        system={"kind": kind, **_PARAMETERS.get(kind, {}), **vectors},
        data=data_of(pairs),
        settings={"words": WORDS_ARE, "bootstrap_seed": 0},
        versions=versions(_LIBRARIES.get(kind, ("numpy",))),
        ranks=ranks,
        milliseconds=milliseconds,
        index_bytes=size,
        made=made,
    )


_LIBRARIES = {
    "bow": ("numpy", "scipy", "scikit-learn"),
    "tfidf": ("numpy", "scipy", "scikit-learn"),
    "lsa": ("numpy", "scipy", "scikit-learn"),
    "bm25": ("numpy", "bm25s"),
    "jm": ("numpy", "scipy", "scikit-learn"),
}


_PARAMETERS: dict[str, dict[str, float]] = {
    "bm25": {"k1": lexical.K1, "b": lexical.B},
    "jm": {"lambda": lexical.LAMBDA},
    "lsa": {"dimensions": lexical.LSA_DIMENSIONS},
}


def data_of(pairs: Pairs) -> RunData:
    """What a run over pairs was measured on."""
    return RunData(pairs.name, len(pairs.documents), len(pairs.queries), pairs.content_hash)
