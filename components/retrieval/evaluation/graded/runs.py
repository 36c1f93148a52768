"""Retrieval with graded relevance for every layer and pooling, from one embedding pass over documents and queries.

What is embedded, and why in float32: components.retrieval.evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from components.arrays import Float32
from components.jobs import IsCancelled, ReportProgress
from components.model.embedding.embedder import EmbedOptions
from components.retrieval.evaluation.graded.collection import GradedSet
from components.retrieval.evaluation.graded.ranks import RelevantRanks, vector_relevant_ranks
from components.retrieval.evaluation.grid import RetrievalRun, ranked_grid

if TYPE_CHECKING:
    from components.model.backend import Backend


def graded_runs(
    backend: Backend,
    graded: GradedSet,
    options: EmbedOptions,
    query_options: EmbedOptions | None = None,
    progress: ReportProgress | None = None,
    is_cancelled: IsCancelled = lambda: False,
) -> Iterator[RetrievalRun[RelevantRanks]]:
    """A run for each layer and pooling of the options.

    `progress(done, total)` counts texts that are embedded. Raises Cancelled.
    """

    def rank(queries: Float32, documents: Float32) -> RelevantRanks:
        return vector_relevant_ranks(queries, documents, graded.grades, is_cancelled=is_cancelled)

    return ranked_grid(backend, graded.documents, graded.queries, rank, options, query_options, progress, is_cancelled)
