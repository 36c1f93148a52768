"""ColBERT: a vector for every token of a text, which late interaction compares (Khattab and Zaharia 2020).

A model that was trained for it turns the hidden states of the last layer into shorter vectors by a Dense layer, and scales
them to length 1. The score of a query and a document is MaxSim, the sum over the query's tokens of the largest dot
product with a token of the document: see components.retrieval.search.rerank. Tokens of the document that the model was
published to leave out (punctuation marks, as a rule) have no vector. A model may mark queries and documents by a token in
front, and may extend queries by [MASK] tokens: the vectors of these count too, as further terms of the query that the
model fills in. By default the attention of the other tokens does not see them.

Folders are those that sentence-transformers' MultiVectorEncoder saves, or PyLate did: see
components.model.files.other_vectors. As for SPLADE (see sparse_vectors.py there), the library's class is not used to read
them, because a Dense layer without model.safetensors would be read from a pickle.

What it does not do: pool tokens. A model that needs it is refused, and so is Stanford's own format.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.arrays import Float32
from components.errors import ModelError
from components.jobs import IsStopped, ReportProgress
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.model.files.other_vectors import LateInteraction, RoleReading
from components.model.files.sentence_config import Role
from components.model.loaded import LoadedModel, numpy_of

_Row = tuple[list[int], int]  # the ids of a text, and how many of them the attention sees


def multi_vectors(
    embedder: Embedder,
    texts: Sequence[str],
    role: Role,
    *,
    max_length: int | None = None,
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> list[Float32]:
    """The token vectors of each text, each float32 [token, dim], as encode_query and encode_document give.

    `role` decides on the prompt, the marker, the published length and the tokens that are left out. A query of a fixed
    published length keeps that length, whatever `max_length` is. `progress(done, total)` counts texts. Raises ModelError
    for a model that was not published for late interaction or needs what is not done here, InputError for an impossible
    length, Stopped.
    """
    model = embedder.model
    trained = _trained(model)
    reading = trained.readings[role]
    result: list[Float32] = [np.empty((0, 0), np.float32)] * len(texts)
    done = 0
    for start in range(0, len(texts), SENTENCES_PER_BLOCK):
        rows_ids = _rows(model, reading, texts[start : start + SENTENCES_PER_BLOCK], max_length, is_stopped)
        for rows, vectors in embedder.in_batches(
            rows_ids,
            [len(ids) for ids, _ in rows_ids],
            lambda batch: _vectors(model, trained, batch),
            token_budget,
            is_stopped,
        ):
            for row, of_text in zip(rows.tolist(), vectors, strict=True):
                ids = np.array(rows_ids[row][0])
                result[start + row] = of_text[: len(ids)][_has_vector(reading, ids)]
            done += len(rows)
            progress(done, len(texts))
    return result


def multi_vector_pieces(
    embedder: Embedder, text: str, role: Role, *, max_length: int | None = None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The pieces of the tokens that `multi_vectors` gives a vector for, and their positions in the model's input.

    It costs no forward pass. Raises as `multi_vectors` does.
    """
    model = embedder.model
    reading = _trained(model).readings[role]
    ((row, _),) = _rows(model, reading, [text], max_length)
    positions = np.flatnonzero(_has_vector(reading, np.array(row))).tolist()
    return tuple(model.tokenization.vocabulary[row[position]] for position in positions), tuple(positions)


def _trained(model: LoadedModel) -> LateInteraction:
    if model.late_interaction is not None:
        return model.late_interaction
    reason = model.not_given or "it was not published for late interaction in this format"
    raise ModelError(
        "unsupported",
        f"{model.spec.title} gives no vectors for late interaction, because {reason}.",
        "A model that sentence-transformers' MultiVectorEncoder or PyLate saved was expected.",
        "Choose such a model, or compare the hidden states of this one.",
    )


def _rows(
    model: LoadedModel,
    reading: RoleReading,
    texts: Sequence[str],
    max_length: int | None,
    is_stopped: IsStopped = lambda: False,
) -> list[_Row]:
    """What the encoder reads of each text. Raises Stopped."""
    length = reading.max_length if max_length is None else max_length
    expansion = reading.expansion
    if expansion is not None:
        length = expansion.length if expansion.is_fixed else max(length, expansion.length)
    tokenization = model.tokenization
    before = len(tokenization.frame[0])
    if reading.marker is not None:  # it takes the place of a token of the text
        length = max(length - 1, tokenization.frame_length + 1)
    rows: list[_Row] = []
    for ids in tokenization.encode_many((reading.prompt + text for text in texts), length, is_stopped)[0]:
        if reading.marker is not None:
            ids = [*ids[:before], reading.marker, *ids[before:]]
        seen = len(ids)
        if expansion is not None:
            ids = [*ids, *[expansion.token] * (expansion.length - seen)]
            seen = len(ids) if expansion.is_attended else seen
        rows.append((ids, seen))
    return rows


def _has_vector(reading: RoleReading, ids: np.ndarray) -> np.ndarray:
    """Whether each token of a text has a vector, bool [token]."""
    is_kept = ~np.isin(ids, reading.left_out)
    return is_kept & np.isin(ids, reading.kept_only) if reading.kept_only else is_kept


def _vectors(model: LoadedModel, trained: LateInteraction, batch: Sequence[_Row]) -> Float32:
    """The vectors of one batch, padding included, float32 [text, token, dim]."""
    rows_ids = [ids for ids, _ in batch]
    ids, mask, segments = model.tokenization.padded(rows_ids)
    for row, (_, seen) in enumerate(batch):
        mask[row, seen:] = 0
    tensors = model.tensors(ids, mask, segments)
    with model.forward_pass():
        layers = trained.layers.to(model.device)
        return numpy_of(layers(model.encoder(**tensors).last_hidden_state.float()))
