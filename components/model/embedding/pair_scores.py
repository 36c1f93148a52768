"""Scores of pairs of texts by a cross-encoder, which reads both texts together (Nogueira and Cho 2019).

A cross-encoder has no vector for a single text: each query goes through the model once with each document, so that it can
score some candidates of a fast ranking again, but not search a corpus. The scores are raw logits: their order is what the
model was trained for. What a logit of 2 means differs from model to model.

The bulk path makes it fast: batches of pairs of similar length, and the embedder's modules (packed weights, a plain
attention for short pairs) below the published head. In bfloat16 only the encoder's blocks lose digits: pooler and head
work in float32, because logits of 8 bits would tie.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from components.arrays import Float32
from components.errors import ModelError
from components.jobs import IsStopped, ReportProgress
from components.model.architecture.modules import Pool
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK, Precision, Resolved
from components.model.files.sentence_config import prompt_for
from components.model.loaded import numpy_of
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
    precision: Precision = "float32",
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
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
        precision=precision,
        token_budget=token_budget,
        progress=progress,
        is_stopped=is_stopped,
    )
    return logits[:, label or 0]


def pair_logits(
    embedder: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    *,
    max_length: int | None = None,
    truncation: Truncation = "longest_first",
    precision: Precision = "float32",
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The logits of each query with the document of the same number, float32 [pair, label].

    A reranker's published prompt (`default_prompt_name`) stands before each query, as CrossEncoder.predict puts it there. Both
    together are truncated to `max_length` tokens (the model's own by default), the longer text first or only the
    document (`truncation`). `precision` is that of the encoder's blocks; "auto" is bfloat16 where that is faster.
    `progress(done, total)` counts pairs. Raises ModelError for a model that is not a cross-encoder, InputError for an
    impossible length or precision, ValueError for unequal numbers of texts, Stopped.
    """
    if len(queries) != len(documents):
        raise ValueError(f"{len(queries)} queries and {len(documents)} documents: equal numbers were expected")
    model = embedder.model
    length = model.own_max_length if max_length is None else max_length
    prompt = prompt_for(model.sentence_config, None) if model.is_cross_encoder else ""
    queries = [prompt + query for query in queries] if prompt else queries
    resolved = embedder.resolve(precision)
    scores = np.empty((len(queries), len(label_names(embedder))), np.float32)
    done = 0
    for start in range(0, len(queries), SENTENCES_PER_BLOCK):
        block = slice(start, start + SENTENCES_PER_BLOCK)
        pairs = model.tokenization.encode_pairs(queries[block], documents[block], length, truncation, is_stopped)
        lengths = [len(ids) for ids, _ in pairs]
        for rows, logits in embedder.in_batches(
            pairs, lengths, partial(_logits, embedder, resolved), token_budget, is_stopped, resolved
        ):
            scores[rows + start] = logits
            done += len(rows)
            progress(done, len(queries))
    return scores


def _logits(embedder: Embedder, precision: Resolved, pairs: Sequence[tuple[list[int], list[int]]]) -> Float32:
    """The logits of one batch of (ids, segments), float32 [pair, label]."""
    model = embedder.model
    ids, mask, segments = model.tokenization.padded([ids for ids, _ in pairs], [segments for _, segments in pairs])
    head = model.pair_scorer()
    inputs = model.tensors(ids, None if mask.all() else mask, segments)  # without padding there is nothing to mask
    with model.forward_pass():
        scorer = _with_encoder(head, embedder.module(precision, ids.shape[1], ids.size), model.modules.pool)
        return numpy_of(scorer(**inputs).logits)


def _with_encoder(scorer: Any, encoder: torch.nn.Module, pool: Pool | None) -> Any:
    """The scorer over another copy of its encoder; its head is the same module, in float32."""
    own = getattr(scorer, scorer.base_model_prefix)
    if encoder is own:
        return scorer
    shell = copy.copy(scorer)
    shell._modules = {
        **scorer._modules,
        scorer.base_model_prefix: _Float32States(encoder, pool),
    }
    return shell


class _Float32States(torch.nn.Module):
    """An encoder in any precision whose last hidden state is float32, float32 [pair, token, dim], as its pooled vector is."""

    def __init__(self, encoder: torch.nn.Module, pool: Pool | None) -> None:
        super().__init__()
        self.encoder, self.pool = encoder, pool

    def forward(self, *inputs: Any, **options: Any) -> Any:
        output = self.encoder(*inputs, **options)
        output.last_hidden_state = output.last_hidden_state.float()
        if self.pool is not None:
            output.pooler_output = self.pool(output.last_hidden_state)
        return output
