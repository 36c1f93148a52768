"""Vectors of many sentences: one forward pass per batch gives every requested layer and pooling.

It is fast for these reasons, each measured: batches of sentences of similar length, filled to a number of tokens, so
that little work is spent on padding; bfloat16 if a short trial shows that it is faster on the chip (mean cosine to
float32 0.9999, 3 times faster with AVX512-BF16), except for [CLS] below the last layer; weights arranged for the chip
once (components.model.embedding.packing); plain matrix products instead of the fused attention for short sentences,
except in bfloat16 on chips with AMX; and pooling inside the batch, so that no hidden state is kept longer.

Sentences are processed in blocks and sorted within a block: memory stays bounded, and a caller that stores the blocks
can continue after the last complete one. The model's lock is held for one batch at a time (about 0.1 s), so that pages
opened in the meantime wait no longer than that (components.model.embedding.batch_size).

What it does not give: token vectors (components.model.embedding.token_vectors), and results that are equal to the last
bit: padding and the order of additions change float32 results by about 1e-6.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, get_args

import numpy as np
import torch

from components.arrays import Float32, Int64
from components.errors import InputError, ModelError
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.model import loading
from components.model.architecture import memory
from components.model.device import empty_cache, failures_in_words, has_fast_half, name_of, on_device, rules_of
from components.model.elsewhere import Elsewhere
from components.model.embedding import packing
from components.model.embedding.batch_pooling import pooled_states, weighted_shares
from components.model.embedding.batch_size import CPU_TOKENS, measured_tokens
from components.model.embedding.options import SENTENCES_PER_BLOCK, EmbedOptions, EmbedReport, Precision, Resolved
from components.model.files.sentence_config import Role, prompt_for
from components.model.head import PublishedHead
from components.model.loaded import LoadedModel

Sink = Callable[[Int64, Float32], None]
_Forward = Callable[[Sequence[Sequence[int]], EmbedOptions], Float32]
Item = TypeVar("Item")  # what a batch consists of: the ids of a sentence, for example

BATCHES_TO_GROW = 8  # that fit, until batches become larger again after memory ran out
TRIAL_WIDTH = 64  # tokens of a text with which the size of batches is measured
TEXTS_PER_PIECE = 256  # that another process computes at once: progress and Stop come between two pieces
BULK_TOKENS = 1024  # batches of at least this size use a packed copy of the model's weights
SHORT_WIDTH = 96  # tokens: up to this length plain matrix products are faster on most CPUs than the fused attention
MIN_SPEEDUP = 1.25  # bfloat16 must be this much faster to be chosen
MIN_WIDTH = 128  # of the hidden states; products of narrower models are so short that chance would decide the trial
log = logging.getLogger(__name__)
# oneDNN keeps its preparations for the last 1,024 shapes, which took over a gigabyte after 36,000 sentences, and was slower
# than few. Products of packed weights have 19 numbers of rows and mostly 3 sizes. It reads this variable when first used.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


class Embedder:
    """The bulk path of a model, used by `Backend.embed` and the like."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self._modules: dict[tuple[Resolved, bool, bool], Any] = {}  # by precision, packed, short
        self._most_tokens = CPU_TOKENS  # of a batch; measured on other devices, at the first bulk work
        self._token_budget = self._most_tokens  # smaller for a while after memory ran out
        self._batches_since = 0  # batches that fitted since then
        self._measured: dict[Resolved, int] = {}  # tokens of a batch by precision, on another device than a CPU
        self.elsewhere: Elsewhere | None = None  # another process that computes, where there is one

    def options(
        self,
        layers: Sequence[int] | None = None,
        poolings: Sequence[str] | None = None,
        max_length: int | None = None,
        precision: Precision = "auto",
        role: Role | None = None,
    ) -> EmbedOptions:
        """Everything that `embed` is to do. Left out: the last layer, the model's own pooling and maximum length.

        With the precision "auto" it is the faster one, but float32 where [CLS] below the last layer is among the vectors:
        there they are so similar for all sentences that bfloat16 changes which are nearest (at the included model's layer
        3, about one in seven of the nearest ten).

        `role` puts the model's own prompt for queries or documents in front, if it has one, and takes the length that its
        files give this role; without a role they are those of any text. Raises InputError.
        """
        model = self.model
        last = model.facts.layers
        chosen_layers = (last,) if layers is None else tuple(sorted(set(layers)))
        if not chosen_layers or not set(chosen_layers) <= set(model.text_layers):
            offered = f"the layers 0 to {last}" if len(model.text_layers) > 1 else f"text vectors of layer {last} alone"
            raise InputError(
                f"The layers {', '.join(map(str, layers or ())) or '(none)'} are not available.",
                f"{model.spec.title} has {offered}.",
                "Choose one or more of these.",
            )
        names = (model.own_pooling,) if poolings is None else poolings
        chosen_poolings = tuple(name for name in model.poolings if name in names)
        unknown = [name for name in names if name not in model.poolings]
        if unknown or not chosen_poolings:
            raise InputError(
                f"The pooling {', '.join(map(repr, unknown)) or '(none)'} is not available.",
                f"{model.spec.title} has these poolings: {', '.join(model.poolings)}.",
                "Choose one or more of these.",
            )
        length = model.tokenization.check_length(model.own_length(role) if max_length is None else max_length)
        is_delicate = "cls" in chosen_poolings and chosen_layers[0] < last
        resolved: Resolved = "float32" if precision == "auto" and is_delicate else self.resolve(precision)
        return EmbedOptions(chosen_layers, chosen_poolings, length, resolved, prompt_for(model.sentence_config, role))

    def working_bytes(self, options: EmbedOptions) -> int:
        """Approximate memory of a run besides the model and its result: a copy of the weights, and one batch."""
        facts = self.model.facts
        number_bytes = memory.BFLOAT16 if options.precision == "bfloat16" else memory.FLOAT32
        every_layer = options.layers != (facts.layers,)
        batch = memory.batch_bytes(facts, self._token_budget, number_bytes, every_layer)
        return number_bytes * facts.parameters + batch

    def embed_weighted(
        self,
        texts: Sequence[str],
        weights: Float32,
        options: EmbedOptions,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Float32:
        """Means weighted by each token's own weight, float32 [layer, text, dim], not normalised; for example by idf.

        `weights` is float32 [vocabulary], by token id, none negative; special tokens have weights too. A text whose
        weights sum to 0 gets its plain mean. The poolings of the options are ignored. Raises as `Backend.embed` does.
        """
        if weights.shape != (self.model.facts.vocabulary_size,) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(f"{self.model.facts.vocabulary_size} weights, none negative, were expected")
        (shares,) = on_device([torch.tensor(weights, dtype=torch.float32)], self.model.device)
        result = np.empty((len(options.layers), len(texts), self.model.facts.hidden_size), np.float32)

        def keep(rows: Int64, vectors: Float32) -> None:
            result[:, rows] = vectors[:, 0]

        means = replace(options, poolings=("mean",))
        self.stream(texts, means, keep, None, progress, is_stopped, partial(self._forward, weights=shares))
        return result

    def stream(
        self,
        texts: Sequence[str],
        options: EmbedOptions,
        sink: Sink,
        token_budget: int | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
        forward: _Forward | None = None,
    ) -> EmbedReport:
        """Pass each batch to `sink(rows [n], vectors [layer, pooling, n, dim])`; rows are indices into `texts`.

        `progress(done, total)` counts sentences and is called after each batch. Raises Stopped if `is_stopped()`
        is true before a batch, or before some texts or a piece of a long one are tokenized; errors of `sink` are passed on.
        `forward` computes the vectors of a batch.
        """

        if forward is None and self.elsewhere is not None and self.elsewhere.is_there:
            return self._stream_elsewhere(self.elsewhere, texts, options, sink, token_budget, progress, is_stopped)

        def vectors_of(ids: Sequence[Sequence[int]]) -> Float32:
            return (forward or self._forward)(ids, options)

        done = tokens = truncated = 0
        for start in range(0, len(texts), SENTENCES_PER_BLOCK):
            block = (options.prompt + text for text in texts[start : start + SENTENCES_PER_BLOCK])
            ids, was_truncated = self.model.tokenization.encode_many(block, options.max_length, is_stopped)
            truncated += sum(was_truncated)
            lengths = [len(row) for row in ids]
            for rows, vectors in self.in_batches(ids, lengths, vectors_of, token_budget, is_stopped, options.precision):
                sink(rows + start, vectors)
                done += len(rows)
                tokens += sum(lengths[row] for row in rows)
                progress(done, len(texts))
        return EmbedReport(tokens, truncated)

    def collect(
        self,
        texts: Sequence[str],
        options: EmbedOptions,
        token_budget: int | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> tuple[Float32, EmbedReport]:
        """As `stream`, with all vectors in one array, float32 [layer, pooling, text, dim]."""
        size = self.model.vector_size(options.poolings)
        result = np.empty((len(options.layers), len(options.poolings), len(texts), size), np.float32)

        def keep(rows: Int64, vectors: Float32) -> None:
            result[:, :, rows] = vectors

        return result, self.stream(texts, options, keep, token_budget, progress, is_stopped)

    def _stream_elsewhere(
        self,
        elsewhere: Elsewhere,
        texts: Sequence[str],
        options: EmbedOptions,
        sink: Sink,
        token_budget: int | None,
        progress: ReportProgress,
        is_stopped: IsStopped,
    ) -> EmbedReport:
        """`stream` by another process, in pieces; pieces that it does not take are computed here."""
        tokens = truncated = 0
        for start in range(0, len(texts), TEXTS_PER_PIECE):
            if is_stopped():
                raise Stopped
            piece = texts[start : start + TEXTS_PER_PIECE]
            answer = elsewhere.embed(piece, options)
            if answer is None:

                def shifted(rows: Int64, vectors: Float32, start: int = start) -> None:
                    sink(rows + start, vectors)

                here = part_of(progress, start, len(texts))
                report = self.stream(piece, options, shifted, token_budget, here, is_stopped, self._forward)
            else:
                vectors, report = answer
                sink(np.arange(start, start + len(piece)), vectors)
                progress(start + len(piece), len(texts))
            tokens, truncated = tokens + report.tokens, truncated + report.truncated
        return EmbedReport(tokens, truncated)

    def in_batches(
        self,
        items: Sequence[Item],
        lengths: Sequence[int],
        forward: Callable[[Sequence[Item]], Float32],
        token_budget: int | None = None,
        is_stopped: IsStopped = lambda: False,
        precision: Resolved = "float32",
    ) -> Iterator[tuple[Int64, Float32]]:
        """Rows of `items` in batches of similar length (in tokens), each with what `forward` computes for these items.

        `precision` is that of `forward`, on which the size of a batch depends without a `token_budget`. Raises Stopped if
        `is_stopped()` is true before a batch, ModelError for a result that is not finite.
        """
        if token_budget is None and rules_of(self.model.device).measures_batches and sum(lengths) > CPU_TOKENS:
            self._measure_batches(precision)
        for rows in self._batches(lengths, token_budget):
            for part, result in self._run(rows, items, is_stopped, forward):
                if not np.isfinite(result).all():
                    raise loading.not_finite(self.model.spec.title)
                yield part, result

    def _batches(self, lengths: Sequence[int], token_budget: int | None) -> Iterator[Int64]:
        """Rows in batches of similar length, longest first, each within a budget of tokens including padding.

        Once a batch is a third full, it ends where sentences get shorter: without padding there is nothing to mask,
        which saves more time than full batches do.
        """
        order = np.argsort(-np.asarray(lengths), kind="stable")
        ordered = np.asarray(lengths)[order]
        start = 0
        while start < len(order):
            # The budget is read again for each batch, because it shrinks when memory runs out.
            budget = self._token_budget if token_budget is None else token_budget
            count = max(1, budget // max(1, int(ordered[start])))  # a text may have no token where none are special
            last = ordered[start : start + count][-1]
            if last != ordered[start]:
                # The positions within the batch where sentences get shorter.
                ends = np.flatnonzero(np.diff(ordered[start : start + count])) + 1
                full_enough = ends[ends * ordered[start] >= budget // 3]
                count = int(full_enough[0]) if len(full_enough) else count
            yield order[start : start + count]
            start += count

    def _run(
        self,
        rows: Int64,
        items: Sequence[Item],
        is_stopped: IsStopped,
        forward: Callable[[Sequence[Item]], Float32],
    ) -> Iterator[tuple[Int64, Float32]]:
        """One batch, in halves if it does not fit into the accelerator's memory."""
        if is_stopped():
            raise Stopped
        result = None
        try:
            with failures_in_words(self.model.device):
                result = forward([items[row] for row in rows])
        except ModelError as problem:
            if len(rows) == 1 or problem.kind != "memory":
                raise
        if result is not None:
            self._fitted()
            yield rows, result
            return
        # Not in the handler: while the error exists, its traceback keeps the memory that was too much.
        self._token_budget, self._batches_since = max(512, self._token_budget // 2), 0
        log.warning(
            "out of memory with %d sentences: continuing with %d tokens per batch", len(rows), self._token_budget
        )
        empty_cache()
        half = len(rows) // 2
        for part in (rows[:half], rows[half:]):
            yield from self._run(part, items, is_stopped, forward)

    def _measure_batches(self, precision: Resolved) -> None:
        """Before bulk work on another device than a CPU: how large batches are there, measured once for each precision."""
        model = self.model
        if precision not in self._measured:
            plain = EmbedOptions((model.facts.layers,), model.poolings[:1], model.tokenization.max_length, precision)
            self._measured[precision] = measured_tokens(
                name_of(model.device), f"{model.spec.key} {model.revision}", precision, partial(self._seconds, plain)
            )
        if self._measured[precision] != self._most_tokens:
            self._most_tokens = self._token_budget = self._measured[precision]

    def _seconds(self, options: EmbedOptions, tokens: int) -> float:
        """How long a batch of so many tokens takes, at its second time: at the first kernels are chosen."""
        width = min(TRIAL_WIDTH, options.max_length)
        ids = [[token % self.model.facts.vocabulary_size for token in range(width)]] * max(1, tokens // width)
        for _ in range(2):
            with self.model.lock, failures_in_words(self.model.device):  # to wait for its turn is no part of the time
                started = time.perf_counter()
                self._forward(ids, options)
                seconds = time.perf_counter() - started
        return seconds

    def computed_on(self) -> dict[str, str | int]:
        """The device's name and the tokens of a batch, where that was measured; else empty."""
        if not self._measured:
            return {}
        return {"device": name_of(self.model.device), "tokens_per_batch": self._most_tokens}

    def _fitted(self) -> None:
        """After some batches that fitted, batches are larger again: a shortage may have been another program's."""
        self._batches_since += 1
        if self._batches_since >= BATCHES_TO_GROW and self._token_budget < self._most_tokens:
            self._token_budget, self._batches_since = min(self._most_tokens, 2 * self._token_budget), 0

    def _forward(
        self, ids: Sequence[Sequence[int]], options: EmbedOptions, weights: torch.Tensor | None = None
    ) -> Float32:
        """Pooled vectors of one batch, float32 [layer, pooling, sentence, dim]; `weights` [vocabulary] for its means."""
        model = self.model
        tokens, mask, segments = model.tokenization.padded(ids)
        inputs = model.tensors(tokens, mask, segments)
        with model.forward_pass():
            module = self.module(options.precision, tokens.shape[1], tokens.size)
            return self._pooled(module, inputs, bool(mask.all()), options, weights).cpu().numpy()

    def _pooled(
        self,
        module: Any,
        inputs: dict[str, torch.Tensor],
        is_full: bool,
        options: EmbedOptions,
        weights: torch.Tensor | None,
    ) -> torch.Tensor:
        """The pooled vectors of one batch, without padding if it `is_full`."""
        model = self.model
        keep = inputs["attention_mask"] > 0  # [sentence, token]
        lengths = keep.sum(dim=1)
        if is_full:  # there is nothing to mask
            del inputs["attention_mask"]
        head = model.head if "own" in options.poolings else None
        only_last = options.layers == (model.facts.layers,) and (head is None or head.layer_shares is None)
        output = module(**inputs, output_hidden_states=not only_last)
        layers = [output.last_hidden_state] if only_last else [output.hidden_states[layer] for layer in options.layers]
        share = keep.float() / lengths.clamp(min=1)[:, None]  # [sentence, token]; no token: the mean is 0
        if weights is not None:
            share = weighted_shares(share, weights[inputs["input_ids"]])
        if head is None:
            return pooled_states(layers, options.poolings, keep, lengths, share)
        return self._with_own(head, options, layers, output.hidden_states, keep, lengths, share)

    def _with_own(
        self,
        head: PublishedHead,
        options: EmbedOptions,
        layers: Sequence[torch.Tensor],
        every: Sequence[torch.Tensor] | None,
        keep: torch.Tensor,
        lengths: torch.Tensor,
        share: torch.Tensor,
    ) -> torch.Tensor:
        """As pooled_states, where the poolings include the model's own vector; `every` are the states of all layers."""
        poolings, start = options.poolings, head.pooling
        wanted = (start if name == "own" else name for name in poolings)
        known = tuple(dict.fromkeys(name for name in wanted if name is not None))
        # [layer, plain pooling, sentence, hidden]
        pooled = pooled_states(layers, known, keep, lengths, share) if known else None
        if start is not None and pooled is not None:
            own = head.own(pooled[:, known.index(start)])  # [layer, sentence, size]
        else:
            first = torch.full_like(lengths, self.model.prompt_tokens(options.prompt))
            own = torch.stack(
                [
                    head.vectors(states, keep, first, every if layer == self.model.facts.layers else None)
                    for layer, states in zip(options.layers, layers, strict=True)
                ]
            )
        dim = self.model.vector_size(poolings)
        parts = [own if name == "own" or pooled is None else pooled[:, known.index(name)] for name in poolings]
        return torch.stack([torch.nn.functional.pad(part, (0, dim - part.shape[-1])) for part in parts], dim=1)

    def module(self, precision: Resolved, width: int, tokens: int) -> Any:
        """The module tree for a batch of `tokens`, `width` per sentence: packed or not, fused or plain attention.

        For the bulk path only, under the model's lock.
        """
        if not self.model.structure.has_blocks:  # a table: nothing to multiply
            return self.model.encoder
        if not rules_of(self.model.device).arranges_weights:
            return self._twin(precision, False, False)
        # A query uses the model's own weights in float32, so that it needs no second copy of them.
        packed = (precision == "bfloat16" or tokens >= BULK_TOKENS) and self._trial(precision)[1]
        # With AMX a product of a new shape takes longest to prepare, and the fused attention needs none: a tenth faster. By
        # the chip and not by a trial: close calls would differ between processes, whose vectors must be equal.
        is_fused = precision == "bfloat16" and torch.cpu._is_amx_tile_supported()
        return self._twin(precision, packed, width <= SHORT_WIDTH and not is_fused)

    def _twin(self, precision: Resolved, packed: bool, short: bool) -> Any:
        """A twin of the encoder, created when first needed; twins share weights where possible."""
        key = (precision, packed, short)
        if key not in self._modules:
            if short:
                self._modules[key] = loading.short_twin(self._twin(precision, packed, False), self.model.structure)
            else:
                encoder = self.model.encoder
                encoder = loading.half_copy(encoder) if precision == "bfloat16" else encoder
                self._modules[key] = packing.packed_copy(encoder) if packed else encoder
        return self._modules[key]

    def resolve(self, precision: Precision) -> Resolved:
        """The precision itself, or the better one for "auto". Raises InputError for an unknown one."""
        if precision not in get_args(Precision):
            raise InputError(
                f"The precision {precision!r} is unknown.",
                f"The precisions are {', '.join(get_args(Precision))}.",
                "Choose one of these.",
            )
        return self.best_precision() if precision == "auto" else precision

    def best_precision(self) -> Resolved:
        """bfloat16 if it is clearly faster in a short trial of products of this size, else float32; measured once."""
        if not self.model.structure.has_blocks or self.model.facts.hidden_size < MIN_WIDTH:
            return "float32"
        known = has_fast_half(self.model.device)
        if known is not None:
            return "bfloat16" if known else "float32"
        with self.model.lock:
            seconds, plain_seconds = self._trial("bfloat16")[0], self._trial("float32")[0]
        return "bfloat16" if seconds * MIN_SPEEDUP < plain_seconds else "float32"

    def _trial(self, precision: Resolved) -> tuple[float, bool]:
        """Seconds for one of the model's matrix products, and whether packing helps."""
        width, inner = self.model.facts.hidden_size, self.model.facts.feed_forward_size
        return packing.trial(width, inner, getattr(torch, precision))
