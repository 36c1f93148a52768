"""What the Evaluate page waits for: evaluations in the background, and the indexes and ranks of pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from components.arrays import Int64
from components.model.trace import Pooling
from components.retrieval.evaluation import pair_runs, run_record
from components.retrieval.evaluation.run_record import Run, RunData
from components.retrieval.index.build import versions
from components.retrieval.search import lexical
from components.retrieval.search.words import WORDS_ARE
from dashboard import caching
from dashboard.jobs import embedding, progress, rankers
from dashboard.ui.wording import POOLING_NAMES

if TYPE_CHECKING:
    from components.jobs import Work
    from components.model.backend import Backend
    from components.retrieval.evaluation.layer_grid import LayerGrid
    from components.retrieval.evaluation.pair_runs import Pairs, Texts
    from components.retrieval.index.folder import VectorIndex


class NoResult(Exception):
    """There is nothing to go on with; why has been drawn. `waiting`: an evaluation is under way, others come after it."""

    def __init__(self, waiting: bool = False) -> None:
        super().__init__("no result")
        self.waiting = waiting


@dataclass(frozen=True, eq=False)
class PairIndexes:
    """Both sides of a set of pairs as one model's vectors, and the ranks that follow."""

    documents: VectorIndex
    queries: VectorIndex
    ranks: LayerGrid  # [layer, pooling, query]


def result(key: tuple[object, ...], title: str, work: Work, where: str, short: bool = False) -> Any:
    """What a job came to. Raises NoResult while it runs (its progress is drawn) or after it failed (the reason is).

    `where` keys what is drawn; `short` is for statistics over ranks that are there: they wait for no embedding.
    """
    jobs = caching.evaluations()
    job = jobs.request(key, title, work, person=caching.person(), lane="statistics" if short else None)
    is_there = progress.ready(jobs, job, doing="evaluating", stop_key=f"stop_job_{where}", again_key=f"again_{where}")
    if not is_there:
        raise NoResult(waiting=not short and progress.is_awaited(job))
    return job.result


def both_sides(backend: Backend, documents: Texts, queries: Texts, where: str) -> tuple[VectorIndex, VectorIndex]:
    """The float32 indexes of documents and queries. Raises NoResult while they are on their way."""
    first = embedding.index_of(backend, documents, where, exact=True)
    second = None if first is None else embedding.queries_of(backend, queries, first.info, where)
    if first is None or second is None:
        raise NoResult
    return first, second


def pair_indexes(backend: Backend, pairs: Pairs, where: str) -> PairIndexes:
    """Documents, queries and ranks at every layer and pooling that is there. Raises NoResult."""
    documents, queries = both_sides(backend, pairs.documents, pairs.queries, where)
    ranks = result(
        ("ranks", documents.folder.name, queries.folder.name),
        f"Ranking {len(pairs):,} queries at every layer and pooling",
        lambda tell, cancelled: pair_runs.grid_ranks(documents, queries, tell, cancelled),
        where,
    )
    return PairIndexes(documents, queries, ranks)


def vector_run(backend: Backend, pairs: Pairs, indexes: PairIndexes, layer: int, pooling: Pooling, where: str) -> Run:
    """One layer and pooling as a record, with what a query takes. Raises NoResult while that is measured."""
    info = indexes.documents.info
    milliseconds, made = result(
        ("speed", indexes.documents.folder.name, indexes.queries.folder.name),
        "Timing some queries",
        lambda tell, cancelled: (
            pair_runs.vector_milliseconds(backend, indexes.documents, pairs.queries.texts),
            run_record.now(),
        ),
        f"speed_{where}",
    )
    return Run(
        name=vector_name(backend, layer, pooling),
        system={"kind": "vectors", "model": info.model, "revision": info.revision, "layer": layer, "pooling": pooling},
        data=_data(pairs),
        settings={
            "precision": "float32",
            "similarity": "cosine",
            "max_length": info.options.max_length,
            "document_prompt": info.options.prompt,
            "query_prompt": indexes.queries.info.options.prompt,
            "bootstrap_seed": 0,
        },
        versions=dict(info.versions),
        ranks=indexes.ranks.of(layer, pooling).astype(np.int64),
        milliseconds=milliseconds,
        index_bytes=info.sentences * info.dim * 4,
        made=made,
    )


def vector_name(backend: Backend, layer: int, pooling: str) -> str:
    return f"{backend.spec.title}, layer {layer}, {POOLING_NAMES[pooling]}"


def word_run(backend: Backend, pairs: Pairs, kind: str) -> Run:
    """One word ranking as a record. Raises NoResult while it is run."""
    ranking = rankers.word_ranking(backend, kind)  # the session is read here: the worker has none

    def work(tell: Callable[[int, int], None], cancelled: Callable[[], bool]) -> tuple[Int64, float, int, str]:
        ranker = ranking.make(pairs.documents.texts)
        ranks = pair_runs.ranker_ranks(ranker, pairs.queries.texts, progress=tell, is_cancelled=cancelled)
        return ranks, pair_runs.ranker_milliseconds(ranker, pairs.queries.texts), ranker.nbytes, run_record.now()

    title = lexical.TITLES[kind]
    ranks, milliseconds, size, made = result(
        ("words", kind, ranking.source, pairs.content_hash),
        f"{title}: ranking {len(pairs):,} queries",
        work,
        f"words_{kind}",
    )
    return Run(
        name=title,
        system={"kind": kind, **_parameters(kind), **({"vectors": ranking.source} if ranking.source else {})},
        data=_data(pairs),
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


def _parameters(kind: str) -> Mapping[str, float]:
    known: dict[str, dict[str, float]] = {
        "bm25": {"k1": lexical.K1, "b": lexical.B},
        "jm": {"lambda": lexical.LAMBDA},
        "lsa": {"dimensions": lexical.LSA_DIMENSIONS},
    }
    return known.get(kind, {})


def _data(pairs: Pairs) -> RunData:
    return RunData(pairs.name, len(pairs.documents), len(pairs.queries), pairs.content_hash)
