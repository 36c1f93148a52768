"""Retrieval with graded relevance for every layer and pooling, from one embedding pass over documents and queries.

What is embedded, and why in float32: components.retrieval.evaluation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from components.model.embedding.embedder import EmbedOptions
from components.model.trace import Pooling
from components.retrieval.evaluation.graded.collection import GradedSet
from components.retrieval.evaluation.graded.ranks import RelevantRanks, vector_relevant_ranks
from components.retrieval.evaluation.grid import Progress, embed_grid

if TYPE_CHECKING:
    from components.model.backend import Backend


@dataclass(frozen=True, eq=False)
class GradedRun:
    """The relevant documents' ranks of one layer and pooling."""

    model: str
    revision: str
    layer: int
    pooling: Pooling
    ranks: RelevantRanks


def graded_runs(
    backend: Backend,
    graded: GradedSet,
    options: EmbedOptions,
    query_options: EmbedOptions | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[GradedRun]:
    """A run for each layer and pooling of the options.

    `progress(done, total)` counts texts that are embedded. Raises Cancelled.
    """
    total = len(graded.documents) + len(graded.queries)

    def tell(done: int, _: int) -> None:
        if progress is not None:
            progress(done, total)

    def tell_more(done: int, _: int) -> None:
        tell(len(graded.documents) + done, total)

    with tempfile.TemporaryDirectory(prefix="bert-internals-", ignore_cleanup_errors=True) as folder:
        documents = embed_grid(backend, graded.documents, options, Path(folder), tell, cancelled)
        queries = embed_grid(backend, graded.queries, query_options or options, Path(folder), tell_more, cancelled)
        for at, layer in enumerate(options.layers):
            for place, pooling in enumerate(options.poolings):
                ranks = vector_relevant_ranks(
                    queries[at, place], documents[at, place], graded.grades, cancelled=cancelled
                )
                yield GradedRun(backend.spec.key, backend.revision, layer, pooling, ranks)
