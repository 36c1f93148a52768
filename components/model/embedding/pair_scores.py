"""Scores of pairs of texts by a cross-encoder, which reads both texts together (Nogueira and Cho 2019).

A cross-encoder has no vector for a single text: each query goes through the model once with each document, so that it can
score some candidates of a fast ranking again, but not search a corpus. The scores are raw logits: their order is what the
model was trained for. What a logit of 2 means differs from model to model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.arrays import Float32
from components.errors import ModelError
from components.jobs import IsCancelled, ReportProgress
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.model.loaded import LoadedModel
from components.model.tokenization import Truncation


def label_names(embedder: Embedder) -> tuple[str, ...]:
    """The published names of the head's outputs, [label]: one for a score, three for entailment.

    A model without names has LABEL_0, LABEL_1, ... Raises ModelError for a model without a head.
    """
    names = embedder.model.pair_scorer().config.id2label
    return tuple(str(names[number]) for number in range(len(names)))


def score_pairs(
    embedder: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    *,
    label: int | None = None,
    max_length: int | None = None,
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> Float32:
    """One logit for each query with the document of the same number, float32 [pair]: the one to rank by.

    As `pair_logits`, of which it takes the only label, or the one with the number `label`. Raises ModelError also for
    a model with several labels if `label` is None.
    """
    names = label_names(embedder)
    if label is None and len(names) > 1:
        raise ModelError(
            "unsupported",
            f"{embedder.model.spec.title} gives {len(names)} numbers for a pair of texts ({', '.join(names)[:200]}).",
            "A ranking needs one number.",
            "Choose the label to rank by, or another cross-encoder.",
        )
    logits = pair_logits(
        embedder,
        queries,
        documents,
        max_length=max_length,
        token_budget=token_budget,
        progress=progress,
        is_cancelled=is_cancelled,
    )
    return logits[:, label or 0]


def pair_logits(
    embedder: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    *,
    max_length: int | None = None,
    truncation: Truncation = "longest_first",
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> Float32:
    """The logits of each query with the document of the same number, float32 [pair, label], in float32 precision.

    Both together are truncated to `max_length` tokens (the model's own by default), the longer text first
    or only the document (`truncation`).
    `progress(done, total)` counts pairs. Raises ModelError for a model that is not a cross-encoder, InputError for an
    impossible length, ValueError for unequal numbers of texts, Cancelled.
    """
    if len(queries) != len(documents):
        raise ValueError(f"{len(queries)} queries and {len(documents)} documents: equal numbers were expected")
    model = embedder.model
    length = model.own_max_length if max_length is None else max_length
    scores = np.empty((len(queries), len(label_names(embedder))), np.float32)
    done = 0
    for start in range(0, len(queries), SENTENCES_PER_BLOCK):
        block = slice(start, start + SENTENCES_PER_BLOCK)
        pairs = model.tokenization.encode_pairs(queries[block], documents[block], length, truncation)
        lengths = [len(ids) for ids, _ in pairs]
        for rows, logits in embedder.in_batches(
            pairs, lengths, lambda batch: _logits(model, batch), token_budget, is_cancelled
        ):
            scores[rows + start] = logits
            done += len(rows)
            progress(done, len(queries))
    return scores


def _logits(model: LoadedModel, pairs: Sequence[tuple[list[int], list[int]]]) -> Float32:
    """The logits of one batch of (ids, segments), float32 [pair, label]."""
    tokenization, scorer = model.tokenization, model.pair_scorer()
    ids, mask, segments = tokenization.padded([ids for ids, _ in pairs], [segments for _, segments in pairs])
    with model.forward_pass():
        logits: Float32 = scorer(**model.tensors(ids, mask, segments)).logits.float().cpu().numpy()
    return logits
