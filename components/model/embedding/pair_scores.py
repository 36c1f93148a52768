"""Scores of pairs of texts by a cross-encoder, which reads both texts together (Nogueira and Cho 2019).

A cross-encoder has no vector for a single text: each query goes through the model once with each document, so that it can
score some candidates of a fast ranking again, but not search a corpus. The scores are raw logits: their order is what the
model was trained for. What a logit of 2 means differs from model to model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.arrays import Float32
from components.jobs import IsCancelled, ReportProgress
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.model.loaded import LoadedModel


def score_pairs(
    embedder: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    *,
    max_length: int | None = None,
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> Float32:
    """One logit for each query with the document of the same number, float32 [pair], in float32 precision.

    Both together are truncated to `max_length` tokens (the model's own by default), the longer text first.
    `progress(done, total)` counts pairs. Raises ModelError for a model that is not a cross-encoder with one output,
    InputError for an impossible length, ValueError for unequal numbers of texts, Cancelled.
    """
    if len(queries) != len(documents):
        raise ValueError(f"{len(queries)} queries and {len(documents)} documents: equal numbers were expected")
    model = embedder.model
    model.pair_scorer()  # refuses other models before any work
    length = model.own_max_length if max_length is None else max_length
    scores = np.empty(len(queries), np.float32)
    done = 0
    for start in range(0, len(queries), SENTENCES_PER_BLOCK):
        block = slice(start, start + SENTENCES_PER_BLOCK)
        pairs = model.tokenization.encode_pairs(queries[block], documents[block], length)
        lengths = [len(ids) for ids, _ in pairs]
        for rows, logits in embedder.in_batches(
            pairs, lengths, lambda batch: _logits(model, batch), token_budget, is_cancelled
        ):
            scores[rows + start] = logits
            done += len(rows)
            progress(done, len(queries))
    return scores


def _logits(model: LoadedModel, pairs: Sequence[tuple[list[int], list[int]]]) -> Float32:
    """The logits of one batch of (ids, segments), float32 [pair]."""
    tokenization, scorer = model.tokenization, model.pair_scorer()
    ids, mask, segments = tokenization.padded([ids for ids, _ in pairs], [segments for _, segments in pairs])
    with model.forward_pass():
        logits: Float32 = scorer(**model.tensors(ids, mask, segments)).logits[:, 0].float().cpu().numpy()
    return logits
