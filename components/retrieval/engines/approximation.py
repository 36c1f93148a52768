"""What approximation loses: which of the k nearest sentences a faster or smaller engine does not find, and what it takes.

The exact search is the reference, so that this is no measure of relevance: a lost sentence may have been of no use. Recall@k
of a query is the share of its k exact hits that are found. A sentence with the same score as the k-th hit is as good as it:
where several sentences tie, it does not matter which of them are found.

Where the sentences of the corpus are the queries themselves, each would be its own nearest, which nearly every way finds: it is
left out, and one hit more is searched.

Recall depends on the vectors alone. Graphs are built here with one thread, in the order of the corpus, so that the same
vectors always give the same figures. Times do not: they are measured by themselves, when a person asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Float64, Int64, read_only
from components.jobs import Stopped, part_of
from components.retrieval.engines import graph
from components.retrieval.engines.contract import Engine, EngineFacts, ExactEngine, StoredVectors
from components.retrieval.engines.graph import GraphSettings
from components.retrieval.engines.smaller import Smaller, SmallerEngine
from components.retrieval.search.exact import SAME

if TYPE_CHECKING:
    from components.arrays import Float32
    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.search.exact import Hits, Similarity

K = 10
MOST_QUERIES = 500  # of which a recall is known to 0.2 points; the first ones of the corpus
TIMED_QUERIES = 50
GRAPH_EXPANSIONS = (16, 64, 256)
RESCORED = (1, 4, 10)  # times K candidates of bits
PARTS_KEPT = (2, 4, 8)  # of the dimensions, as dim / n
_TOGETHER = 32  # queries searched between two looks at Stop


@dataclass(frozen=True)
class Approximation:
    """One way to search. `code` names it in addresses, `family` what belongs together in a figure."""

    code: str
    family: str
    name: str
    smaller: Smaller | None = None
    graph: GraphSettings | None = None

    def reads_all(self, count: int) -> bool:
        """Whether as many candidates are compared by their full vectors as there are texts, so that it is exact.

        A graph's walk keeps its own number of candidates; bits are scored again for so many times K of them.
        """
        kept = self.graph.expansion_search if self.graph is not None else 0
        rescored = K * self.smaller.rescored if self.smaller is not None else 0
        return max(kept, rescored) >= count


@dataclass(frozen=True)
class LostHit:
    """An exact hit that was not found."""

    rank: int  # from 1
    row: int  # of the sentence
    score: float


@dataclass(frozen=True, eq=False)
class Approximated:
    """What one way finds."""

    approximation: Approximation
    facts: EngineFacts
    bytes_per_vector: float
    found: Int64  # [query, hit], best first by the true scores
    recall: Float64  # [query], 0..1

    @property
    def mean(self) -> float:
        """The mean Recall@k, 0..1."""
        return float(self.recall.mean())


@dataclass(frozen=True, eq=False)
class HitLosses:
    """What several ways find of the same queries' exact hits."""

    k: int
    similarity: Similarity
    exact: Hits  # [query, hit]
    exact_bytes: float  # per vector
    ways: tuple[Approximated, ...]
    left_out: tuple[Approximation, ...] = ()  # ways that read all texts, of which nothing could be lost

    def of(self, code: str) -> Approximated | None:
        """The way of a code; None if it was not compared."""
        return next((way for way in self.ways if way.approximation.code == code), None)

    def lost(self, way: Approximated, query: int) -> tuple[LostHit, ...]:
        """The exact hits of a query that a way does not find, best first.

        Of hits that tie with the last one, as many are named as are missing: which of them, means nothing.
        """
        hits, found = self.exact.indices[query], set(way.found[query].tolist())
        count = round(len(hits) * (1 - float(way.recall[query])))
        missing = [place for place, row in enumerate(hits.tolist()) if row not in found]
        scores = self.exact.scores[query]
        return tuple(LostHit(place + 1, int(hits[place]), float(scores[place])) for place in missing[:count])


def approximations(dim: int, with_graph: bool) -> tuple[Approximation, ...]:
    """The ways that are compared for vectors of so many dimensions; graphs only where usearch is installed."""
    ways = [
        Approximation("float16", "float16", "float16", Smaller("float16")),
        Approximation("int8", "int8", "int8", Smaller("int8")),
    ]
    for times in RESCORED:
        name = "bits" if times == 1 else f"bits, best {times * K}"
        ways.append(Approximation(f"bits-{times}", "bits", name, Smaller("bits", rescored=times)))
    for part in PARTS_KEPT:
        if dim // part:
            name = f"first numbers: {dim // part}"
            ways.append(Approximation(f"first-{part}", "first", name, Smaller("first", dim // part)))
    if with_graph:
        for expansion in GRAPH_EXPANSIONS:
            settings = GraphSettings(expansion_search=expansion)
            ways.append(Approximation(f"hnsw-{expansion}", "hnsw", f"HNSW {expansion}", graph=settings))
    return tuple(ways)


def compared(stored: StoredVectors) -> tuple[tuple[Approximation, ...], tuple[Approximation, ...]]:
    """The ways that are compared for a collection, and those that are left out since they would read all of its texts."""
    ways = approximations(stored.dim, graph.is_installed())
    left_out = tuple(way for way in ways if way.reads_all(len(stored)))
    return tuple(way for way in ways if way not in left_out), left_out


def recalls(exact: Hits, found: Hits, sizes: Float64 | None = None) -> Float64:
    """Recall@k of each query, 0..1, float64 [query], for the same k; 1 where there is nothing to find.

    A found sentence counts if its score reaches that of the last exact hit. `sizes` [query] are the largest possible scores,
    by which rounding grows: 1 for cosines.
    """
    if not exact.indices.shape[1]:
        return np.ones(len(exact.indices))
    rounding = SAME * (np.ones(len(exact.indices)) if sizes is None else sizes)
    least = exact.scores[:, -1] - rounding
    return np.asarray((found.scores >= least[:, None]).mean(axis=1))


def losses(
    stored: StoredVectors,
    queries: Float32,
    similarity: Similarity = "cosine",
    ways: Sequence[Approximation] | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    own: bool = False,
) -> HitLosses:
    """What each way finds for queries [query, dim]; `progress(done, total)` counts vectors and queries together.

    `ways` are those of `compared` by default. With `own`, query i is sentence i, which is no hit of itself. Raises Stopped,
    and InputError for values that are not finite, or for a graph without usearch.
    """
    ways, left_out = compared(stored) if ways is None else (ways, ())
    engines = _Engines(stored, similarity, ways, is_stopped)
    total, searched = engines.to_build + len(queries) * (len(ways) + 1), 0
    exact = _searched(ExactEngine(stored), queries, similarity, part_of(progress, 0, total), is_stopped, own)
    sizes = np.ones(len(queries))
    if similarity == "dot":
        sizes = np.linalg.norm(queries, axis=1).astype(np.float64) * float(stored.exact.norms.max(initial=0))
    found: list[Approximated] = []
    for way in ways:
        searched += len(queries)
        engine = engines.of(way, part_of(progress, searched, total))
        report = part_of(progress, engines.built + searched, total)
        hits = _searched(engine, queries, similarity, report, is_stopped, own)
        found.append(
            Approximated(
                way,
                engine.facts,
                engine.facts.per_vector(len(stored)),
                read_only(hits.indices),
                read_only(recalls(exact, hits, sizes)),
            )
        )
    bytes_per_vector = ExactEngine(stored).facts.per_vector(len(stored))
    return HitLosses(exact.indices.shape[1], similarity, exact, bytes_per_vector, tuple(found), left_out)


def _searched(
    engine: Engine,
    queries: Float32,
    similarity: Similarity,
    progress: ReportProgress,
    is_stopped: IsStopped,
    own: bool,
) -> Hits:
    """The K best of each query, with a look at Stop now and then."""
    found = []
    for start in range(0, max(1, len(queries)), _TOGETHER):
        if is_stopped():
            raise Stopped
        found.append(engine.search(queries[start : start + _TOGETHER], K + own, similarity))
        progress(min(start + _TOGETHER, len(queries)), len(queries))
    names = ("indices", "scores", "tied", "tied_shown")
    hits = type(found[0])(*(np.concatenate([getattr(hits, name) for hits in found]) for name in names))
    return _without_own(hits) if own else hits


def _without_own(hits: Hits) -> Hits:
    """One hit less for each query: itself, or the last where it is not among them. The counts of ties stay those of all."""
    is_own = hits.indices == np.arange(len(hits.indices))[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    indices, scores = (part[~is_own].reshape(len(part), -1) for part in (hits.indices, hits.scores))
    return replace(hits, indices=indices, scores=scores)


def times(
    stored: StoredVectors,
    queries: Float32,
    similarity: Similarity = "cosine",
    ways: Sequence[Approximation] | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median milliseconds of a query by each way's code, and by "exact"; the first TIMED_QUERIES queries, one by one.

    The vector of the query is known, and the engine is built. The first query is searched once before. Errors as `losses`.
    """
    ways = compared(stored)[0] if ways is None else ways
    queries, measured = queries[:TIMED_QUERIES], {}
    engines = _Engines(stored, similarity, ways, is_stopped)
    total = engines.to_build + len(queries) * (len(ways) + 1)
    for number, (code, way) in enumerate([("exact", None), *((way.code, way) for way in ways)]):
        searched = number * len(queries)
        engine = engines.of(way, part_of(progress, searched, total))
        engine.search(queries[:1], K, similarity)
        seconds = []
        for row in range(len(queries)):
            if is_stopped():
                raise Stopped
            began = clock()
            engine.search(queries[row : row + 1], K, similarity)
            seconds.append(clock() - began)
        progress(engines.built + searched + len(queries), total)
        measured[code] = 1_000 * float(np.median(seconds))
    return measured


class _Engines:
    """Makes the engine of each way; an expansion needs no graph of its own."""

    def __init__(
        self, stored: StoredVectors, similarity: Similarity, ways: Sequence[Approximation], is_stopped: IsStopped
    ) -> None:
        self._stored, self._similarity, self._is_stopped = stored, similarity, is_stopped
        self._graphs: dict[GraphSettings, graph.GraphEngine] = {}
        self.to_build = len(stored) * len(
            {self._of_file(way.graph) for way in ways if way.graph is not None}
        )  # vectors

    @property
    def built(self) -> int:
        """How many vectors were added to graphs."""
        return len(self._graphs) * len(self._stored)

    def of(self, way: Approximation | None, progress: ReportProgress) -> Engine:
        """The engine of a way, or the exact one. Raises Stopped and InputError."""
        if way is None or (way.graph is None and way.smaller is None):
            return ExactEngine(self._stored)
        if way.smaller is not None:
            return SmallerEngine(self._stored, way.smaller)
        assert way.graph is not None
        settings, before = self._of_file(way.graph), self.built
        if settings not in self._graphs:
            self._graphs[settings] = graph.build(
                self._stored,
                self._similarity,
                settings,
                lambda done, total: progress(before + done, total),
                self._is_stopped,
                threads=1,
            )
        return self._graphs[settings].with_expansion(way.graph.expansion_search)

    @staticmethod
    def _of_file(settings: GraphSettings) -> GraphSettings:
        """The settings that a graph is built with, without that of a search."""
        return GraphSettings(settings.precision, settings.connectivity, settings.expansion_add)
