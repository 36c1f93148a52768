"""Retrieval at every layer and pooling from one embedding pass.

Embeddings are float32: bfloat16 moves near neighbours. Large grids lie in a file that is mapped into memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from components.arrays import Float32, Int64
from components.errors import InputError
from components.jobs import IsCancelled, ReportProgress
from components.model.embedding.disk import reserve_array
from components.model.embedding.embedder import EmbedOptions
from components.model.trace import Pooling
from components.retrieval.evaluation.layer_grid import LayerGrid
from components.retrieval.evaluation.ranks import gold_ranks

if TYPE_CHECKING:
    from components.model.backend import Backend

IN_MEMORY = 512 << 20  # bytes of a grid; larger ones go into a file
Ranks = TypeVar("Ranks")  # of all queries, as whatever ranks them gives them


@dataclass(frozen=True, eq=False)
class RetrievalRun(Generic[Ranks]):
    """The ranks of one layer and pooling."""

    model: str
    revision: str
    layer: int
    pooling: Pooling
    ranks: Ranks


def retrieval_runs(
    backend: Backend,
    documents: Sequence[str],
    queries: Sequence[str],
    options: EmbedOptions,
    query_options: EmbedOptions | None = None,
    progress: ReportProgress | None = None,
    is_cancelled: IsCancelled = lambda: False,
) -> Iterator[RetrievalRun[Int64]]:
    """A run for each layer and pooling of the options, ranks from 1 [query]; query i's right document is document i.

    `progress(done, total)` counts texts that are embedded. Raises Cancelled.
    """
    if len(documents) != len(queries) or not len(documents):
        raise ValueError(f"{len(documents)} documents and {len(queries)} queries: as many of both were expected")

    def rank(query_vectors: Float32, document_vectors: Float32) -> Int64:
        return gold_ranks(query_vectors, document_vectors, is_cancelled=is_cancelled)

    return ranked_grid(backend, documents, queries, rank, options, query_options, progress, is_cancelled)


def ranked_grid(
    backend: Backend,
    documents: Sequence[str],
    queries: Sequence[str],
    rank: Callable[[Float32, Float32], Ranks],
    options: EmbedOptions,
    query_options: EmbedOptions | None,
    progress: ReportProgress | None,
    is_cancelled: IsCancelled,
) -> Iterator[RetrievalRun[Ranks]]:
    """What `rank` makes of the vectors [query, dim] and [document, dim] of each layer and pooling, one after another."""
    total = len(documents) + len(queries)

    def tell(before: int) -> ReportProgress:
        return lambda done, _: progress(before + done, total) if progress is not None else None

    with tempfile.TemporaryDirectory(prefix="bert-internals-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        document_grid = embed_grid(backend, documents, options, folder, tell(0), is_cancelled)
        query_grid = embed_grid(backend, queries, query_options or options, folder, tell(len(documents)), is_cancelled)
        for layer, pooling in document_grid.cells:
            ranks = rank(query_grid.of(layer, pooling), document_grid.of(layer, pooling))
            yield RetrievalRun(backend.spec.key, backend.revision, layer, pooling, ranks)


def embed_grid(
    backend: Backend,
    texts: Sequence[str],
    options: EmbedOptions,
    folder: Path,
    progress: ReportProgress | None = None,
    is_cancelled: IsCancelled = lambda: False,
) -> LayerGrid:
    """Vectors [layer, pooling, text, dim], float32, in memory or, from 512 MB on, in a file of the folder."""
    shape = (len(options.layers), len(options.poolings), len(texts), backend.vector_size(options.poolings))
    if 4 * int(np.prod(shape)) <= IN_MEMORY:
        vectors = backend.embed(texts, options=options, progress=progress, cancelled=is_cancelled)
        return LayerGrid(options.layers, options.poolings, vectors)
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    try:
        reserve_array(path, shape, np.float32)
    except OSError as problem:
        raise InputError(
            f"{4 * np.prod(shape) / 1e9:,.1f} GB of vectors could not be kept in {folder}: {problem.strerror or problem}.",
            "That much free room was expected.",
            "Choose fewer layers or poolings, or set TMPDIR to a folder on a larger disk.",
        ) from problem
    grid: Any = np.lib.format.open_memmap(path, mode="r+")

    def keep(rows: Int64, vectors: Float32) -> None:
        grid[:, :, rows] = vectors

    backend.embed_into(texts, options, keep, progress=progress, cancelled=is_cancelled)
    return LayerGrid(options.layers, options.poolings, grid)
