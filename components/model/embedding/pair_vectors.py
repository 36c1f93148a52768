"""Vectors of pairs of texts that a model reads together: [CLS] query [SEP] document [SEP], pooled at any layer.

In such a vector every token of the document has already attended to the query, and the other way round, as in a
cross-encoder (Nogueira and Cho 2019), which scores the last layer's [CLS] vector. The price is the same: one pass for each
pair, and no vector of a text by itself. Any encoder can read a pair, also one that was never trained to score pairs.

What it does not give: the model's own Dense layers, which were trained on single texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from components.arrays import Float32
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress
from components.model.embedding.batch_pooling import pooled_states
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK, EmbedOptions


def embed_pairs(
    embedder: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    layers: Sequence[int] | None = None,
    poolings: Sequence[str] = ("cls",),
    *,
    max_length: int | None = None,
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The vectors of each query read with the document of the same number, float32 [layer, pooling, pair, dim].

    Computed in float32 and not normalised; the last layer by default. The special tokens and both texts count in a mean
    and a maximum; padding does not. Layers and poolings come in the order of `Embedder.options`: rising layers, and mean
    before [CLS] before maximum. Both texts together are truncated to `max_length` tokens (the model's own by default),
    the longer text first. `progress(done, total)` counts pairs. Raises InputError for layers, poolings (the model's own
    vector among them) and lengths that are not available, ValueError for unequal numbers of texts, Stopped.
    """
    if len(queries) != len(documents):
        raise ValueError(f"{len(queries)} queries and {len(documents)} documents: equal numbers were expected")
    if "own" in poolings:
        raise InputError(
            "The model's own vector is not available for two texts that are read together.",
            "Its Dense layers were trained on single texts.",
            "Choose mean, cls or max.",
        )
    model = embedder.model
    options = embedder.options(layers, poolings, max_length, precision="float32")
    result = np.empty((len(options.layers), len(options.poolings), len(queries), model.facts.hidden_size), np.float32)
    done = 0
    for start in range(0, len(queries), SENTENCES_PER_BLOCK):
        block = slice(start, start + SENTENCES_PER_BLOCK)
        pairs = model.tokenization.encode_pairs(
            queries[block], documents[block], options.max_length, is_stopped=is_stopped
        )
        lengths = [len(ids) for ids, _ in pairs]
        for rows, vectors in embedder.in_batches(
            pairs,
            lengths,
            lambda batch: _vectors(embedder, batch, options),
            token_budget,
            is_stopped,
            options.precision,
        ):
            result[:, :, rows + start] = vectors
            done += len(rows)
            progress(done, len(queries))
    return result


def _vectors(embedder: Embedder, pairs: Sequence[tuple[list[int], list[int]]], options: EmbedOptions) -> Float32:
    """Pooled vectors of one batch of (ids, segments), float32 [layer, pooling, pair, dim]."""
    model = embedder.model
    ids, mask, segments = model.tokenization.padded([ids for ids, _ in pairs], [segments for _, segments in pairs])
    tensors = model.tensors(ids, mask, segments)
    with model.forward_pass():
        return _pooled(embedder.module(options.precision, ids.shape[1], ids.size), tensors, options)


def _pooled(module: Any, tensors: dict[str, torch.Tensor], options: EmbedOptions) -> Float32:
    states = module(**tensors, output_hidden_states=True).hidden_states
    keep = tensors["attention_mask"] > 0  # [pair, token]
    lengths = keep.sum(dim=1)
    share = keep.float() / lengths[:, None]
    pooled = pooled_states([states[layer] for layer in options.layers], options.poolings, keep, lengths, share)
    return pooled.cpu().numpy()
