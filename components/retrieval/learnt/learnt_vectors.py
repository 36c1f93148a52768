"""The vectors from which a ranking is learnt, of each text by itself or of each pair read together; saved as one .npz file.

The file lets a machine with a GPU make the vectors, and another one learn from them. It names the model, its revision,
layers and poolings, and the hash of the pairs (`JudgedPairs.content_hash`): vectors of other texts, or of the same texts in
another order, are refused. To make one:

    from pathlib import Path
    from components.model.backend import Backend
    from components.retrieval.learnt import learnt_ranking, learnt_vectors

    pairs = learnt_ranking.read_pairs(Path("pairs.json").read_bytes())
    vectors = learnt_vectors.vectors_of(Backend.load("google-bert/bert-base-uncased"), pairs, "together")
    Path("vectors.npz").write_bytes(learnt_vectors.write_vectors(vectors))

A file is opened without unpickling anything, and its size in memory is checked before it is read.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np

from components.arrays import Float32, Float64, Int64, read_arrays, read_only, unit
from components.errors import InputError, first_line
from components.jobs import Cancelled, IsCancelled, ReportProgress, part_of
from components.model.trace import Pooling
from components.retrieval.corpora.readers.limits import EXPANDED_BYTES, MOST_EXPANSION
from components.retrieval.learnt.learnt_ranking import (
    Combination,
    JudgedPairs,
    LearntRanking,
    combined,
)
from components.sizes import in_words

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.index.folder import VectorIndex

Reading = Literal["apart", "together"]
READINGS: tuple[Reading, ...] = get_args(Reading)
LEARNT_POOLINGS: tuple[Pooling, ...] = ("mean", "cls")  # in the order of the arrays
KIND, FORMAT = "BERT Internals vectors of pairs", 1
MOST_BYTES = 512 << 20  # of a file's vectors in memory
_MOST_NUMBERS = 1_000  # layers or poolings that a file may name


@dataclass(frozen=True, eq=False)
class LearntVectors:
    """A model's vectors of the texts of some pairs, read-only.

    Read "apart": `first` are those of the queries, `second` of the documents. Read "together": `first` are those of the
    pairs, and `second` has none.
    """

    model: str
    revision: str
    reading: Reading
    layers: tuple[int, ...]
    poolings: tuple[Pooling, ...]
    max_length: int  # tokens, of one text or of both together
    pairs_hash: str
    first: Float32  # [layer, pooling, query or pair, dim]
    second: Float32  # [layer, pooling, document, dim]

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.second.nbytes

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything: two files of the same model can hold other numbers."""
        head = (self.model, self.revision, self.reading, self.layers, self.poolings, self.max_length, self.pairs_hash)
        content = hashlib.sha256(repr((*head, self.first.shape, self.second.shape)).encode())
        for side in (self.first, self.second):
            content.update(np.ascontiguousarray(side).data)
        return content.hexdigest()

    def _of(self, side: Float32, layer: int, pooling: Pooling) -> Float32:
        return side[self.layers.index(layer), self.poolings.index(pooling)]

    def features(self, pairs: JudgedPairs, layer: int, pooling: Pooling, combination: Combination) -> Float32:
        """The features of each pair, float32 [pair, feature]; vectors read together need no combination."""
        first = self._of(self.first, layer, pooling)
        if self.reading == "together":
            return first
        second = self._of(self.second, layer, pooling)
        return combined(first[pairs.query_rows], second[pairs.document_rows], combination)

    def ranking(
        self,
        learnt: LearntRanking,
        layer: int,
        pooling: Pooling,
        combination: Combination,
        queries: Int64,
        is_cancelled: IsCancelled = lambda: False,
    ) -> Float64:
        """The learnt function's scores of all documents for some queries, float64 [query, document].

        Only for vectors read apart: those read together exist for the candidates alone. Raises Cancelled.
        """
        first, second = (self._of(side, layer, pooling) for side in (self.first, self.second))
        scores = np.empty((len(queries), len(second)))
        for number, query in enumerate(queries):
            if is_cancelled():
                raise Cancelled
            scores[number] = learnt.score(combined(np.broadcast_to(first[query], second.shape), second, combination))
        return scores

    def cosines(self, layer: int, pooling: Pooling, queries: Int64) -> Float64:
        """The cosines of all documents with some queries, float64 [query, document]: the ranking with nothing learnt."""
        first, second = (np.asarray(self._of(side, layer, pooling), np.float64) for side in (self.first, self.second))
        return np.asarray(unit(first[queries]) @ unit(second).T, np.float64)


def needed_bytes(backend: Backend, pairs: JudgedPairs, reading: Reading) -> int:
    """Memory of the vectors of every layer, and size of their file."""
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
    is_cancelled: IsCancelled = lambda: False,
) -> LearntVectors:
    """[CLS] and mean of the texts at some layers (every layer by default), in float32.

    Texts read apart get the model's own prompts for queries and documents, if it has any. `progress(done, total)` counts
    texts or pairs. Raises InputError, Cancelled.
    """
    chosen = range(backend.facts.layers + 1) if layers is None else layers
    length = backend.own_max_length if max_length is None else max_length
    if reading == "together":
        options = backend.embed_options(chosen, LEARNT_POOLINGS, length, "float32")
        first = backend.embed_pairs(
            *pairs.texts(), chosen, LEARNT_POOLINGS, max_length=length, progress=progress, is_cancelled=is_cancelled
        )
        second = np.empty((*first.shape[:2], 0, first.shape[3]), np.float32)
    else:
        total = len(pairs.queries) + len(pairs.documents)
        options = backend.embed_options(chosen, LEARNT_POOLINGS, length, "float32", role="query")
        first = backend.embed(
            pairs.queries, options=options, progress=part_of(progress, 0, total), is_cancelled=is_cancelled
        )
        second = backend.embed(
            pairs.documents,
            options=backend.embed_options(chosen, LEARNT_POOLINGS, length, "float32", role="document"),
            progress=part_of(progress, len(pairs.queries), total),
            is_cancelled=is_cancelled,
        )
    return LearntVectors(
        backend.spec.key,
        backend.revision,
        reading,
        options.layers,
        options.poolings,
        length,
        pairs.content_hash,
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
        info.model,
        info.revision,
        "apart",
        layers,
        LEARNT_POOLINGS,
        info.options.max_length,
        pairs.content_hash,
        read_only(first),
        read_only(second),
    )


def write_vectors(vectors: LearntVectors) -> bytes:
    """The vectors and what they are of, as an uncompressed .npz file."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        kind=np.array(KIND),
        format=np.array(FORMAT),
        model=np.array(vectors.model),
        revision=np.array(vectors.revision),
        reading=np.array(vectors.reading),
        layers=np.array(vectors.layers, np.int64),
        poolings=np.array(vectors.poolings),
        max_length=np.array(vectors.max_length),
        pairs_hash=np.array(vectors.pairs_hash),
        first=vectors.first,
        second=vectors.second,
    )
    return buffer.getvalue()


def read_vectors(content: bytes, name: str, most_bytes: int = MOST_BYTES) -> LearntVectors:
    """The vectors of a file. Raises InputError with the reason for a file that cannot be used."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        if size > most_bytes:
            raise ValueError(f"it takes {in_words(size)} in memory, and at most {in_words(most_bytes)} are read")
        if size > max(EXPANDED_BYTES, MOST_EXPANSION * len(content)):
            raise ValueError(f"it expands to more than {MOST_EXPANSION} times its {len(content):,} bytes")
        arrays = read_arrays(content, most_bytes)
        if str(arrays["kind"]) != KIND or int(arrays["format"]) != FORMAT:
            raise ValueError("it has other content, or another format")
        if any(arrays[name].size > _MOST_NUMBERS for name in ("layers", "poolings")):
            raise ValueError("it names too many layers or poolings")
        vectors = LearntVectors(
            str(arrays["model"]),
            str(arrays["revision"]),
            cast("Reading", _one_of(str(arrays["reading"]), READINGS)),
            tuple(int(layer) for layer in np.atleast_1d(arrays["layers"])),
            tuple(
                cast("Pooling", _one_of(str(pooling), LEARNT_POOLINGS)) for pooling in np.atleast_1d(arrays["poolings"])
            ),
            int(arrays["max_length"]),
            str(arrays["pairs_hash"]),
            *(read_only(arrays[side]) for side in ("first", "second")),
        )
        _check(vectors)
    except Exception as problem:  # a damaged archive fails in many ways
        raise InputError(
            f"{name} cannot be used ({first_line(problem, most=120)}).",
            "A file of vectors (.npz) that this dashboard, or its function write_vectors, has saved is expected.",
            "Choose another file, or save it again.",
        ) from problem
    return vectors


def check_fit(vectors: LearntVectors, pairs: JudgedPairs, name: str) -> None:
    """Raise InputError unless the vectors of a file are of these pairs."""
    if vectors.pairs_hash != pairs.content_hash:
        raise InputError(
            f"The vectors of {name} are of other texts.",
            "Vectors of the same queries and candidates, in the same order, are needed.",
            "Choose the collection, numbers and seed with which the pairs were saved, or save the pairs again.",
        )
    is_together = vectors.reading == "together"
    expected = (len(pairs), 0) if is_together else (len(pairs.queries), len(pairs.documents))
    counts = vectors.first.shape[2], vectors.second.shape[2]
    if counts != expected:
        sides = ("pairs", "other texts") if is_together else ("queries", "documents")
        found, needed = (
            " and ".join(f"{count:,} {side}" for count, side in zip(numbers, sides, strict=True))
            for numbers in (counts, expected)
        )
        raise InputError(
            f"{name} has the vectors of {found}.",
            f"The vectors of {needed} are needed.",
            "Make the vectors again from the saved pairs.",
        )


def _check(vectors: LearntVectors) -> None:
    """Raise ValueError unless all arrays have the shapes and types that the names promise."""
    head = (len(vectors.layers), len(vectors.poolings))
    if not vectors.layers or list(vectors.layers) != sorted(set(vectors.layers)) or vectors.layers[0] < 0:
        raise ValueError("its layers do not rise")
    if not vectors.poolings or len(set(vectors.poolings)) < len(vectors.poolings):
        raise ValueError("its poolings repeat")
    for side in (vectors.first, vectors.second):
        if side.dtype != np.float32 or side.ndim != 4 or side.shape[:2] != head or not np.isfinite(side).all():
            raise ValueError("its vectors have another shape or type, or are not finite")
    if vectors.first.shape[3] != vectors.second.shape[3]:
        raise ValueError("its vectors have different lengths")


def _one_of(value: str, options: Sequence[str]) -> str:
    if value not in options:
        raise ValueError(f"{value[:20]!r} is not one of {', '.join(options)}")
    return value
