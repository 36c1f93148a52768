"""Recall@1 of a search by vectors, before and after MaxSim looks again at the first hits, and what that look costs.

The ranks are those of `evaluation.second_stage`: a right text outside of the candidates keeps its rank, and ties count against
the query. Comparing is timed with the token vectors in memory, as a search engine for late interaction keeps them: what they
take is given beside, in float32 like a text's one vector.

What it does not show: other data. The same look helps on one collection and harms on another.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Int64, read_only, wilson
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.evaluation.second_stage import candidate_scores, candidates, second_ranks
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.rerank import late_interaction_vectors, trained_scores

if TYPE_CHECKING:
    from components.arrays import Float32
    from components.model.backend import Backend
    from components.model.trace import Pooling

DEPTHS = (5, 10, 20, 50)  # candidates of a query
CROSS_DEPTHS = (5, 10, 20)  # a cross-encoder reads each of them with the query
TIMED_QUERIES = 20
FLOAT_BYTES = 4  # of a float32 number


@dataclass(frozen=True, eq=False)
class Reordered:
    """The rankings before and after a second look at the first hits, of queries with one right text each."""

    rankings: Mapping[int, Ranking]  # by the number of candidates; 0: by vectors, before the second look

    @property
    def nbytes(self) -> int:
        return sum(self.ranks(depth).nbytes for depth in self.rankings)

    @property
    def depths(self) -> tuple[int, ...]:
        """The numbers of candidates, the fewest first."""
        return tuple(sorted(self.rankings)[1:])

    def ranks(self, depth: int = 0) -> Int64:
        """The rank of each query's right text, [query], from 1."""
        return first_ranks(self.rankings[depth].ranks)

    def first_place(self, depth: int = 0) -> float:
        """Recall@1 in per cent, by vectors alone (depth 0) or after so many candidates were looked at again."""
        return 100 * float(np.mean(self.ranks(depth) == 1))

    def interval(self, depth: int = 0) -> tuple[float, float]:
        """Its 95 % interval (Wilson), in per cent."""
        low, high = wilson(np.array([self.first_place(depth) / 100]), len(self.ranks()))
        return 100 * float(low[0]), 100 * float(high[0])

    def repaired(self, depth: int) -> int:
        """The queries whose right text comes first only after the second look."""
        return int(np.count_nonzero((self.ranks() > 1) & (self.ranks(depth) == 1)))

    def harmed(self, depth: int) -> int:
        """The queries whose right text comes first only before it."""
        return int(np.count_nonzero((self.ranks() == 1) & (self.ranks(depth) > 1)))

    def enough(self) -> int:
        """The fewest candidates with which as many right texts come first as with the most."""
        most = self.first_place(self.depths[-1])
        return next(depth for depth in self.depths if self.first_place(depth) >= most - 1e-9)


@dataclass(frozen=True, eq=False)
class SecondLook(Reordered):
    """What MaxSim makes of the ranks, and what that costs."""

    milliseconds: Mapping[int, float]  # of comparing so many candidates with a query, the median of some
    query_milliseconds: float  # of encoding a query and searching all texts, the median of some
    vector_bytes: float  # of one text
    token_bytes: float  # of one text's token vectors, the mean


def by_cross_encoder(
    backend: Backend,
    scorer: Backend,
    queries: Sequence[str],
    texts: Sequence[str],
    gold: Int64,
    layer: int,
    pooling: Pooling,
    depths: Sequence[int] = CROSS_DEPTHS,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Reordered:
    """Search `texts` for each query by the vectors of a layer and pooling, and re-rank the first hits by a cross-encoder.

    `gold` [query] is the number of each query's right text. `progress(done, total)` counts the pairs that `scorer` reads.
    Raises as the models do, Stopped.
    """
    depths = sorted({min(depth, len(texts)) for depth in depths})

    def vectors(some: Sequence[str], role: str) -> Float32:
        options = backend.embed_options([layer], [pooling], None, "float32", role=role)  # type: ignore[arg-type]
        return np.asarray(backend.embed(some, options=options, is_stopped=is_stopped)[0, 0], np.float32)

    by, of = vectors(texts, "document"), vectors(queries, "query")
    first = gold_ranks(of, by, gold)
    rows = candidates(of, by, depths[-1], is_stopped)
    scores = candidate_scores(scorer.score_pairs, queries, texts, rows, progress, is_stopped)
    return Reordered(_rankings(first, rows, scores, gold, depths))


def second_look(
    backend: Backend,
    queries: Sequence[str],
    texts: Sequence[str],
    gold: Int64,
    layer: int,
    pooling: Pooling,
    max_length: int | None = None,
    depths: Sequence[int] = DEPTHS,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> SecondLook:
    """Search `texts` for each query by the vectors of a layer and pooling, and look at the first hits again by MaxSim.

    `gold` [query] is the number of each query's right text. Each text goes through the model twice: once for its vector, and
    once for those of its tokens. `progress(done, total)` counts these passes. Raises as the model does, Stopped.
    """
    depths = sorted({min(depth, len(texts)) for depth in depths})
    total, done = 2 * (len(queries) + len(texts)), 0

    def vectors(some: Sequence[str], role: str) -> Float32:
        nonlocal done
        options = backend.embed_options([layer], [pooling], max_length, "float32", role=role)  # type: ignore[arg-type]
        found = backend.embed(some, options=options, progress=part_of(progress, done, total), is_stopped=is_stopped)[
            0, 0
        ]
        done += len(some)
        return np.asarray(found, np.float32)

    def token_vectors(some: Sequence[str], role: str) -> Sequence[Float32]:
        nonlocal done
        found = late_interaction_vectors(
            backend,
            some,
            role,  # type: ignore[arg-type]
            layer,
            max_length,
            part_of(progress, done, total),
            is_stopped,
        )
        done += len(some)
        return found

    by, of = vectors(texts, "document"), vectors(queries, "query")
    first = gold_ranks(of, by, gold)
    rows = candidates(of, by, depths[-1], is_stopped)
    tokens, asked = token_vectors(texts, "document"), token_vectors(queries, "query")
    scores = np.empty(rows.shape, np.float32)
    for query, own in enumerate(rows):
        if is_stopped():
            raise Stopped
        scores[query] = trained_scores(backend, asked[query], [tokens[row] for row in own])
    timed = range(min(TIMED_QUERIES, len(queries)))
    options = backend.embed_options([layer], [pooling], max_length, "float32", role="query")
    unit = by / np.maximum(np.linalg.norm(by, axis=1, keepdims=True), 1e-12)

    def search(query: int) -> None:
        (unit @ backend.embed([queries[query]], options=options)[0, 0, 0]).argmax()

    def compare(query: int, depth: int) -> None:
        trained_scores(backend, asked[query], [tokens[row] for row in rows[query, :depth]])

    return SecondLook(
        _rankings(first, rows, scores, gold, depths),
        {depth: _median(lambda query, depth=depth: compare(query, depth), timed) for depth in depths},
        _median(search, timed),
        float(by.shape[1] * FLOAT_BYTES),
        float(np.mean([vectors_of.size for vectors_of in tokens])) * FLOAT_BYTES,
    )


def _rankings(first: Int64, rows: Int64, scores: Float32, gold: Int64, depths: Sequence[int]) -> dict[int, Ranking]:
    after = {depth: second_ranks(first, rows[:, :depth], scores[:, :depth], gold) for depth in depths}
    return rankings_of({0: first, **after})


def rankings_of(ranks: Mapping[int, Int64]) -> dict[int, Ranking]:
    """What `Reordered` holds, from ranks [query] by the number of candidates."""
    names = {depth: f"first {depth} re-ranked" if depth else "vectors" for depth in ranks}
    return {depth: Ranking(names[depth], ranks=read_only(np.asarray(each, np.int64))) for depth, each in ranks.items()}


def _median(work: object, queries: range) -> float:
    """Median milliseconds of some work for each of some queries; the first warms up and is not counted."""
    seconds = []
    for query in (0, *queries):
        started = time.perf_counter()
        work(query)  # type: ignore[operator]
        seconds.append(time.perf_counter() - started)
    return 1000 * float(np.median(seconds[1:]))
