"""Re-ranking: the first hits of a fast ranking in the order of a slower, usually better score (Nogueira and Cho 2019).

The first stage compares one vector per text and can search a whole corpus. The second stage reads the query with each
candidate: a cross-encoder reads both texts in one pass, late interaction (MaxSim; Khattab and Zaharia 2020) compares the
vectors of their tokens. It sees only the candidates: a correct answer that the first stage left out is not found again.

What the scores do not show: anything across queries. Only the order within one query's candidates is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.similarity.late_interaction import max_sim
from components.arrays import Float32, unit
from components.jobs import part_of

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.files.sentence_config import Role


def late_interaction_scores(
    backend: Backend,
    query: str,
    documents: Sequence[str],
    layer: int,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The MaxSim of a query with each document, float32 [document].

    Each text goes through the model once, behind the model's own prompt for queries or documents if it has one, truncated
    to `max_length` tokens (the model's own by default), and `progress(done, total)` counts these texts. See
    `late_interaction_vectors` for the vectors. Raises InputError for a layer or a length that the model does not have,
    Stopped.
    """
    total = 1 + len(documents)
    (own,) = late_interaction_vectors(
        backend, [query], "query", layer, max_length, part_of(progress, 0, total), is_stopped
    )
    others = late_interaction_vectors(
        backend, documents, "document", layer, max_length, part_of(progress, 1, total), is_stopped
    )
    return trained_scores(backend, own, others)


def late_interaction_vectors(
    backend: Backend,
    texts: Sequence[str],
    role: Role,
    layer: int,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Sequence[Float32]:
    """The vectors of each text's tokens that MaxSim compares, each float32 [token, dim].

    Those of a model that was trained for late interaction are its own, whatever the layer; of other models they are the
    hidden states of a layer, without special tokens, and scaled to length 1: once, whatever they are compared with.
    """
    if backend.late_interaction is not None:
        return backend.multi_vectors(texts, role, max_length=max_length, progress=progress, is_stopped=is_stopped)
    return [unit(own) for own in backend.own_token_vectors(texts, layer, max_length, progress, is_stopped, role=role)]


def trained_scores(backend: Backend, query: Float32, documents: Sequence[Float32]) -> Float32:
    """The score of a query's vectors [token, dim] with each document's, of `late_interaction_vectors`, float32 [document].

    A model that was trained for late interaction compares them by the dot product, others by the cosine.
    """
    trained, scores = backend.late_interaction, max_sim_scores(query, documents, is_scaled=True)
    return scores / np.float32(max(1, len(query))) if trained is not None and trained.is_mean else scores


def max_sim_scores(query: Float32, documents: Sequence[Float32], is_scaled: bool = False) -> Float32:
    """The sum over query tokens of the best cosine with a document's tokens, float32 [document].

    `query` is [token, dim] and each document [token, dim]; a text without tokens has nothing to match and scores 0.
    Khattab and Zaharia 2020, equation 3, with the vectors scaled to length 1 unless they are as they should be compared
    (`is_scaled`).
    """
    totals = np.zeros(len(documents), np.float32)
    for row, document in enumerate(documents):
        if len(query) and len(document):
            products = query @ document.T if is_scaled else max_sim(query, document)
            totals[row] = products.max(axis=1).sum(dtype=np.float64)
    return totals
