"""Retrieval at every layer and pooling from one embedding pass.

Embeddings are float32, because bfloat16 changes the order of near neighbours. Large grids are kept in a file that is
mapped into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from components.arrays import Float32, Int64
from components.errors import InputError
from components.folders import temporary_folder
from components.jobs import IsStopped, ReportProgress, part_of
from components.model.embedding.disk import unnamed_array
from components.model.embedding.options import EmbedOptions
from components.model.trace import Pooling
from components.retrieval.evaluation.layer_grid import LayerGrid
from components.sizes import in_words

if TYPE_CHECKING:
    from components.model.backend import Backend

IN_MEMORY = 512 << 20  # bytes; larger grids are kept in a file
Ranks = TypeVar("Ranks")  # the ranks of all queries, in the form that the ranking function returns


def retrieval_runs(
    backend: Backend,
    documents: Sequence[str],
    queries: Sequence[str],
    rank: Callable[..., Ranks],
    options: EmbedOptions,
    query_options: EmbedOptions | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    embed_into: Callable[..., object] | None = None,
) -> Iterator[tuple[int, Pooling, Ranks]]:
    """Layer, pooling and ranks of each run: one for each layer and pooling of the options.

    `rank(query_vectors [query, dim], document_vectors [document, dim], is_stopped=)` is `gold_ranks`, or
    `vector_relevant_ranks` with its grades. `embed_into` embeds as `Backend.embed_into`, the default, does.
    `progress(done, total)` counts embedded texts. Raises Stopped.
    """
    total = len(documents) + len(queries)
    with temporary_folder() as folder:
        sides = ((documents, options, 0), (queries, query_options or options, len(documents)))
        document_grid, query_grid = (
            _embed_grid(backend, texts, own_options, folder, part_of(progress, before, total), is_stopped, embed_into)
            for texts, own_options, before in sides
        )
        for layer, pooling in document_grid.cells:
            vectors = query_grid.of(layer, pooling), document_grid.of(layer, pooling)
            yield layer, pooling, rank(*vectors, is_stopped=is_stopped)


def _embed_grid(
    backend: Backend,
    texts: Sequence[str],
    options: EmbedOptions,
    folder: Path,
    progress: ReportProgress,
    is_stopped: IsStopped,
    embed_into: Callable[..., object] | None,
) -> LayerGrid:
    """Vectors [layer, pooling, text, dim], float32: in memory, or above 512 MB in a file of the folder."""
    shape = (len(options.layers), len(options.poolings), len(texts), backend.vector_size(options.poolings))
    if 4 * int(np.prod(shape)) <= IN_MEMORY:
        grid: Any = np.empty(shape, np.float32)
    else:
        grid = _grid_file(shape, folder)

    def keep(rows: Int64, vectors: Float32) -> None:
        grid[:, :, rows] = vectors

    (embed_into or backend.embed_into)(texts, options, keep, progress=progress, is_stopped=is_stopped)
    return LayerGrid(options.layers, options.poolings, grid)


def _grid_file(shape: tuple[int, ...], folder: Path) -> Any:
    """An array of this shape in a new file of the folder. Raises InputError without enough space."""
    try:
        return unnamed_array(folder, shape, np.float32)
    except OSError as problem:
        raise InputError(
            f"{in_words(4 * int(np.prod(shape)))} of vectors could not be kept in {folder}: {problem.strerror or problem}.",
            "That much free space is needed.",
            "Choose fewer layers or poolings, or set TMPDIR to a folder on a larger disk.",
        ) from problem
