"""The vectors of a query that fit an index: same model, revision and maximum length, and the model's query prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from components.arrays import Float32
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress
from components.model.trace import Pooling
from components.retrieval.index.folder import IndexInfo

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions


def query_vectors(
    backend: Backend,
    queries: Sequence[str],
    info: IndexInfo,
    token_budget: int | None = 1,
    is_stopped: IsStopped = lambda: False,
    progress: ReportProgress = lambda done, total: None,
) -> Mapping[tuple[int, Pooling], Float32]:
    """(layer, pooling) to vectors [query, dim], for every layer and pooling of the index, from one pass per query.

    In float32, and each query by itself: in a batch with others its vectors would differ by some 1e-6, and a query would
    not have the same vectors alone and among many. Where that does not matter, another `token_budget` (that of `embed`; None
    is the usual one) takes many together, ten times as fast. Raises InputError if the index was made with another model or
    revision, or says so and has vectors of another size, and Stopped. `progress(done, total)` counts queries.
    """
    if (backend.spec.key, backend.revision) != (info.model, info.revision):
        raise InputError(
            f"The index was made with {info.model} at revision {info.revision}.",
            f"The query is embedded by {backend.spec.key} at revision {backend.revision}, and vectors of different models "
            "cannot be compared.",
            "Build the index again.",
        )
    options = query_options(backend, info.options)
    # [layer, pooling, query, dim]
    vectors = backend.embed(
        queries, options=options, token_budget=token_budget, progress=progress, is_stopped=is_stopped
    )
    if vectors.shape[-1] != info.dim:  # an index from somebody else can say anything of its model
        raise InputError(
            f"The index has vectors of {info.dim:,} numbers, and {info.model} has {vectors.shape[-1]:,}.",
            "The vectors of an index are those of its model.",
            "Build the index again.",
        )
    return {
        (layer, pooling): vectors[row, column]
        for row, layer in enumerate(options.layers)
        for column, pooling in enumerate(options.poolings)
    }


def query_options(backend: Backend, documents: EmbedOptions) -> EmbedOptions:
    """How a query is read that is compared with documents read by these options.

    With the model's own prompt for queries, and their length where the documents have theirs; in float32.
    """
    own, asked = (backend.embed_options(role=role, precision="float32") for role in ("document", "query"))
    length = asked.max_length if documents.max_length == own.max_length else documents.max_length
    return replace(documents, precision="float32", prompt=asked.prompt, max_length=length)
