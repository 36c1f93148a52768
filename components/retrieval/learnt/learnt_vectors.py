"""The vectors from which a ranking is learnt, of each text by itself or of each pair read together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from components.arrays import Float32, Float64, Int64, read_only, unit
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.model.trace import Pooling

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.learnt.learnt_ranking import JudgedPairs, LearntFunction

Reading = Literal["apart", "together"]
READINGS: tuple[Reading, ...] = get_args(Reading)
LEARNT_POOLINGS: tuple[Pooling, ...] = ("mean", "cls")  # in the order of the arrays


@dataclass(frozen=True, eq=False)
class LearntVectors:
    """A model's vectors of the texts of some pairs, read-only.

    Read "apart": `first` are those of the queries, `second` of the documents. Read "together": `first` are those of the
    pairs, and `second` has none.
    """

    reading: Reading
    layers: tuple[int, ...]
    poolings: tuple[Pooling, ...]
    first: Float32  # [layer, pooling, query or pair, dim]
    second: Float32  # [layer, pooling, document, dim]

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.second.nbytes

    def _of(self, side: Float32, layer: int, pooling: Pooling) -> Float32:
        return side[self.layers.index(layer), self.poolings.index(pooling)]

    def features(self, pairs: JudgedPairs, layer: int, pooling: Pooling) -> Float32:
        """The features of each pair, float32 [pair, dim]: q * d of texts read apart, else the vector of the pair."""
        first = self._of(self.first, layer, pooling)
        if self.reading == "together":
            return first
        second = self._of(self.second, layer, pooling)
        return first[pairs.query_rows] * second[pairs.document_rows]

    def ranking(
        self,
        learnt: LearntFunction,
        layer: int,
        pooling: Pooling,
        queries: Int64,
        is_stopped: IsStopped = lambda: False,
    ) -> Float64:
        """The learnt function's scores of all documents for some queries, float64 [query, document].

        Only for vectors read apart: those read together exist for the candidates alone. Raises Stopped.
        """
        first, second = (self._of(side, layer, pooling) for side in (self.first, self.second))
        scores = np.empty((len(queries), len(second)))
        for number, query in enumerate(queries):
            if is_stopped():
                raise Stopped
            scores[number] = learnt.score(first[query] * second)
        return scores

    def cosines(self, layer: int, pooling: Pooling, queries: Int64) -> Float64:
        """The cosines of all documents with some queries, float64 [query, document]: the ranking with nothing learnt."""
        first, second = (np.asarray(self._of(side, layer, pooling), np.float64) for side in (self.first, self.second))
        return np.asarray(unit(first[queries]) @ unit(second).T, np.float64)


def needed_bytes(backend: Backend, pairs: JudgedPairs, reading: Reading) -> int:
    """Memory of the vectors of every layer."""
    rows = len(pairs) if reading == "together" else len(pairs.queries) + len(pairs.documents)
    return 4 * (backend.facts.layers + 1) * len(LEARNT_POOLINGS) * rows * backend.facts.hidden_size


def vectors_of(
    backend: Backend,
    pairs: JudgedPairs,
    reading: Reading,
    layers: Sequence[int] | None = None,
    *,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> LearntVectors:
    """[CLS] and mean of the texts at some layers (every layer by default), in float32.

    Texts read apart get the model's own prompts for queries and documents, if it has any. `progress(done, total)` counts
    texts or pairs. Raises InputError, Stopped.
    """
    chosen = range(backend.facts.layers + 1) if layers is None else layers
    length = backend.own_max_length if max_length is None else max_length
    if reading == "together":
        options = backend.embed_options(chosen, LEARNT_POOLINGS, length, "float32")
        first = backend.embed_pairs(
            *pairs.texts(), chosen, LEARNT_POOLINGS, max_length=length, progress=progress, is_stopped=is_stopped
        )
        second = np.empty((*first.shape[:2], 0, first.shape[3]), np.float32)
    else:
        total = len(pairs.queries) + len(pairs.documents)
        options = backend.embed_options(chosen, LEARNT_POOLINGS, length, "float32", role="query")
        first = backend.embed(
            pairs.queries, options=options, progress=part_of(progress, 0, total), is_stopped=is_stopped
        )
        second = backend.embed(
            pairs.documents,
            options=backend.embed_options(chosen, LEARNT_POOLINGS, length, "float32", role="document"),
            progress=part_of(progress, len(pairs.queries), total),
            is_stopped=is_stopped,
        )
    return LearntVectors(
        reading,
        options.layers,
        options.poolings,
        read_only(first),
        read_only(second),
    )


def from_indexes(documents: VectorIndex, queries: VectorIndex, pairs: JudgedPairs) -> LearntVectors | None:
    """The vectors of texts read apart, taken from the indexes of a collection and its queries, without a forward pass.

    They have the layers of the documents' index; None unless both indexes hold [CLS] and mean of these layers in float32.
    """
    info = documents.info
    layers = info.options.layers
    cells = [(layer, pooling) for layer in layers for pooling in LEARNT_POOLINGS]
    if any(cell not in index.engines for index in (documents, queries) for cell in cells):
        return None
    if any(
        index.info.dtype != "float32" or index.info.options.precision != "float32" for index in (documents, queries)
    ):
        return None
    sides = [
        np.stack([index.engine(*cell).vectors[numbers] for cell in cells])
        for index, numbers in ((queries, pairs.query_numbers), (documents, pairs.document_numbers))
    ]
    first, second = (side.reshape(len(layers), len(LEARNT_POOLINGS), -1, info.dim) for side in sides)
    return LearntVectors(
        "apart",
        layers,
        LEARNT_POOLINGS,
        read_only(first),
        read_only(second),
    )
