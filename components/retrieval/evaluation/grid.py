"""Retrieval on pairs of texts at every layer and pooling from one embedding pass.

Each pair's second text (a headline) is the query, all first texts are the documents, and its own is the right one.
Embeddings are float32: bfloat16 moves near neighbours. Large grids lie in a file that is mapped into memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from components.arrays import Float32, Int64
from components.errors import InputError
from components.model.embedding.disk import reserve_array
from components.model.embedding.embedder import EmbedOptions
from components.model.trace import Pooling
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.evaluation.pair_runs import pairs_of_corpus
from components.retrieval.evaluation.ranks import gold_ranks

if TYPE_CHECKING:
    from components.model.backend import Backend

IN_MEMORY = 512 << 20  # bytes of a grid; larger ones go into a file
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class RetrievalRun:
    """The ranks of one layer and pooling."""

    model: str
    revision: str
    layer: int
    pooling: Pooling
    ranks: Int64  # [query], from 1


def retrieval_runs(
    backend: Backend,
    documents: Sequence[str],
    queries: Sequence[str],
    options: EmbedOptions,
    query_options: EmbedOptions | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[RetrievalRun]:
    """A run for each layer and pooling of the options; query i's right document is document i.

    `progress(done, total)` counts texts that are embedded. Raises EmbeddingCancelled or EvaluationCancelled.
    """
    if len(documents) != len(queries) or not len(documents):
        raise ValueError(f"{len(documents)} documents and {len(queries)} queries: as many of both were expected")
    total = len(documents) + len(queries)
    with tempfile.TemporaryDirectory(prefix="bert-internals-", ignore_cleanup_errors=True) as folder:
        grids = []
        for at, (texts, chosen) in enumerate(((documents, options), (queries, query_options or options))):

            def tell(done: int, _: int, before: int = at * len(documents)) -> None:
                if progress is not None:
                    progress(before + done, total)

            grids.append(embed_grid(backend, texts, chosen, Path(folder), tell, cancelled))
        for at, layer in enumerate(options.layers):
            for place, pooling in enumerate(options.poolings):
                ranks = gold_ranks(grids[1][at, place], grids[0][at, place], cancelled=cancelled)
                yield RetrievalRun(backend.spec.key, backend.revision, layer, pooling, ranks)


def embed_grid(
    backend: Backend,
    texts: Sequence[str],
    options: EmbedOptions,
    folder: Path,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Float32:
    """Vectors [layer, pooling, text, dim], float32, in memory or, from 512 MB on, in a file of the folder."""
    shape = (len(options.layers), len(options.poolings), len(texts), backend.facts.hidden_size)
    if 4 * int(np.prod(shape)) <= IN_MEMORY:
        return backend.embed(texts, options=options, progress=progress, cancelled=cancelled)
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

    backend.embed_into(texts, options, keep, progress=progress, cancelled=cancelled)
    return grid


def compressed_pairs(corpus: Corpus) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Documents and queries of a corpus with a column "compressed", and how many rows lack a query."""
    pairs = pairs_of_corpus(corpus)
    return pairs.documents.texts, pairs.queries.texts, pairs.left_out
