"""Passes that another process computes: what a model asks of it, and the part of a joint pass that each asker gets.

Several dashboards can share one accelerator in this way (components.distributed.serving). Only records and arrays cross:
texts and options there, a Trace or vectors back. What hooks or gradients need is computed where the dashboard runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from components.arrays import Float32
from components.model.embedding.options import EmbedOptions, EmbedReport
from components.model.trace import EmbeddingParts, Trace, TraceOptions


class Elsewhere(Protocol):
    """The passes of one model in another process. None instead of a result: it cannot be had now, compute it here."""

    @property
    def is_there(self) -> bool:
        """Whether it has this model and can be asked now."""

    def trace(self, texts: Sequence[str], pairs: Sequence[str | None] | None, options: TraceOptions) -> Trace | None:
        """As `Backend.run`, without the model's own Dense layers (`Trace.head`). Raises UserError."""

    def embed(self, texts: Sequence[str], options: EmbedOptions) -> tuple[Float32, EmbedReport] | None:
        """Vectors of texts, float32 [layer, pooling, text, dim], and their counts. Raises UserError."""


def part_of_trace(trace: Trace, start: int, stop: int) -> Trace:
    """The sentences `start` to `stop` - 1 as a trace of their own, padded to the longest of them; arrays are copies.

    For traces without attentions and without mask logits; raises ValueError for others. Values of tokens differ from those of
    a pass of their own by rounding, since the padding of a joint pass is longer (about 1e-6).
    """
    if trace.attentions is not None or trace.mask_logits is not None:
        raise ValueError("a trace with attentions or mask logits is not divided")
    sentences = trace.sentences[start:stop]
    width = max(map(len, sentences))

    def part(array: np.ndarray) -> np.ndarray:  # [sentence, token, ...]
        return array[start:stop, :width].copy()

    parts = trace.embedding_parts
    segments, pooled = trace.token_type_ids, trace.pooler_output
    return replace(
        trace,
        sentences=sentences,
        input_ids=part(trace.input_ids),
        attention_mask=part(trace.attention_mask),
        token_type_ids=None if segments is None else part(segments),
        hidden_states=trace.hidden_states[:, start:stop, :width].copy(),
        embedding_parts=None
        if parts is None
        else EmbeddingParts(**{name: part(array) for name, array in parts.named.items()}),
        pooler_output=None if pooled is None else pooled[start:stop].copy(),
    )
