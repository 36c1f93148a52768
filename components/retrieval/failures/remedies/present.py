"""How the queries are ranked now: by the vectors of one layer and pooling, which every remedy is compared with.

Vectors are shared among remedies: one pass gives those of all layers and poolings that are asked for, and a remedy that changes
a query or a prompt embeds only what it changes. Ranks are those of `evaluate`: of the first right text among all, equal scores
counting against the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from components.arrays import Int64, read_only
from components.jobs import IsStopped, ReportProgress
from components.model.trace import Pooling
from components.retrieval.evaluation.grid import retrieval_runs
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.evaluation.pair_runs import Pairs
from components.retrieval.fusion.ranks import ScoresOf, fused_ranks, vector_scores
from components.retrieval.fusion.scores import Fusion, RunScores
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.exact import ExactSearch, Similarity, for_cosines

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions

Cell = tuple[int, Pooling]  # a layer and a pooling
FLOAT_BYTES = 4
Vectors = tuple[Any, Any]  # [query, dim] and [document, dim], compared by the cosine


@dataclass(frozen=True)
class Failure:
    """A query whose right texts all rank after another one."""

    query: str
    rank: int  # of its best right text
    right_text: str  # the one of its right texts that is nearest
    rival: str  # the nearest text that is not right


@dataclass(frozen=True, eq=False)
class Present:
    """The queries and texts as they are ranked now, and the vectors of further layers and poolings of the same pass."""

    backend: Backend
    pairs: Pairs
    query_options: EmbedOptions  # of the present layer and pooling alone
    document_options: EmbedOptions
    cell: Cell
    vectors: dict[Cell, Vectors] = field(repr=False)
    ranking: Ranking = field(repr=False)  # with the ranks of all right texts
    similarity: Similarity = "cosine"  # that the vectors' cosines stand for

    @property
    def now(self) -> Int64:
        """[query]: the rank of the first right text."""
        return first_ranks(self.ranking.ranks)

    @property
    def present_vectors(self) -> Vectors:
        """Those by which the queries are ranked now."""
        return self.vectors[self.cell]

    def failures(self) -> tuple[Failure, ...]:
        """The failed queries, with the lowest rank of their right text first."""
        now, engine = self.now, ExactSearch(np.asarray(self.document_vectors, np.float32))
        texts, found = self.pairs.documents.texts, []
        for query in np.flatnonzero(now > 1).tolist():
            scores = engine.scores(np.asarray(self.query_vectors[query], np.float32))
            own = list(self.pairs.answers_of(query))
            right = own[int(np.argmax(scores[own]))]
            scores[own] = -np.inf
            found.append(Failure(self.queries[query], int(now[query]), texts[right], texts[int(np.argmax(scores))]))
        return tuple(sorted(found, key=lambda failure: -failure.rank))

    def dim_of(self, documents: Any) -> int:
        """The numbers of a text's vector among `documents`, without those that `for_cosines` adds."""
        return int(documents.shape[1]) - {"cosine": 0, "dot": 1}.get(self.similarity, 2)

    @property
    def bytes_per_text(self) -> float:
        """Of a text's present vector, in float32, without the zeros that follow it among vectors of several poolings."""
        return float(FLOAT_BYTES * self.backend.vector_size((self.cell[1],)))

    @property
    def queries(self) -> tuple[str, ...]:
        return self.pairs.queries.texts

    @property
    def query_vectors(self) -> Any:
        return self.vectors[self.cell][0]

    @property
    def document_vectors(self) -> Any:
        return self.vectors[self.cell][1]

    def asked(
        self,
        queries: Sequence[str],
        prompt: str | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Any:
        """The vectors of other queries, or of these behind another prompt, as the present ones are made: [query, dim]."""
        options = self.query_options if prompt is None else replace(self.query_options, prompt=prompt)
        vectors = self.backend.embed(queries, options=options, progress=progress, is_stopped=is_stopped)[0, 0]
        # Among several poolings, zeros follow shorter vectors.
        short = self.dim_of(self.document_vectors) - vectors.shape[1]
        vectors = np.pad(vectors, ((0, 0), (0, short)))
        # What a document gets does not depend on the queries.
        return for_cosines(vectors, np.zeros((1, vectors.shape[1])), self.similarity)[0]

    def asked_alone(self, query: str, prompt: str | None = None) -> Any:
        """The vector of one query, [dim]."""
        return self.asked([query], prompt)[0]

    def at(self, cell: Cell) -> Present:
        """The same with the queries embedded at another layer and pooling; the ranks stay those of the present one."""
        options = replace(self.query_options, layers=(cell[0],), poolings=(cell[1],))
        return replace(self, query_options=options, cell=cell)


def present(
    backend: Backend,
    pairs: Pairs,
    query_options: EmbedOptions,
    document_options: EmbedOptions,
    every_cell: bool = False,
    similarity: Similarity | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Present:
    """Embed the queries and texts, and rank them by the last layer and the last pooling of the options.

    With `every_cell` the pass keeps the vectors of every layer and pooling of the model. `similarity` is that by which texts
    are ranked, by default the model's own. `progress(done, total)` counts texts. Raises Stopped, and InputError as embedding
    does.
    """
    cell: Cell = (document_options.layers[-1], document_options.poolings[-1])
    alone = [replace(each, layers=(cell[0],), poolings=(cell[1],)) for each in (query_options, document_options)]
    for_queries, for_documents = alone
    if every_cell:
        layers, poolings = tuple(backend.text_layers), backend.poolings
        for_queries, for_documents = (replace(each, layers=layers, poolings=poolings) for each in alone)
    by = compared_by(backend) if similarity is None else similarity

    def kept(queries: Any, documents: Any, is_stopped: IsStopped) -> Vectors:
        return for_cosines(queries, documents, by)

    runs = retrieval_runs(
        backend, pairs.documents.texts, pairs.queries.texts, kept, for_documents, for_queries, progress, is_stopped
    )
    vectors = {(layer, pooling): both for layer, pooling, both in runs}
    ranks = pairs.ranks_by_vectors(*vectors[cell], is_stopped=is_stopped)
    return Present(backend, pairs, alone[0], alone[1], cell, vectors, Ranking("as it is now", ranks=ranks), by)


def compared_by(backend: Backend) -> Similarity:
    """The similarity by which a model is evaluated: as it was published, but the cosine for the Manhattan distance."""
    similarity = backend.sentence_config.similarity
    return "cosine" if similarity == "manhattan" else similarity


def ranks_by(pairs: Pairs, runs: Sequence[ScoresOf], fusions: Sequence[Fusion], is_stopped: IsStopped) -> list[Int64]:
    """For each fusion of the runs the rank of each query's first right text, int64 [query]. Raises Stopped."""
    shape = len(pairs), len(pairs.documents)
    answers = pairs.grades if pairs.has_several else pairs.gold
    every = fused_ranks(runs, fusions, shape, answers, is_stopped=is_stopped)
    return [read_only(np.array(first_ranks(ranks))) for ranks in every]


def changed_by_another(now: Vectors, new: Sequence[Vectors], taken: Int64) -> list[ScoresOf]:
    """For each of the `new` vectors the present cosines and what they change in those of another query, `taken` [query]: the
    control of a remedy that replaces all scores. What the new vectors share is computed once for a block of queries."""
    own, others_now = vector_scores(*now), vector_scores(now[0][taken], now[1])

    @lru_cache(maxsize=1)
    def without_another(start: int, stop: int) -> RunScores:
        run, other = own(slice(start, stop)), others_now(slice(start, stop))
        return RunScores(run.scores - other.scores, run.is_ranked)

    def changed(by: ScoresOf, block: slice) -> RunScores:
        run = without_another(block.start, block.stop)
        return RunScores(run.scores + by(block).scores, run.is_ranked)

    return [partial(changed, vector_scores(queries[taken], documents)) for queries, documents in new]
