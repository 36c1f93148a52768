"""Passes in which chosen activations are replaced, many such experiments in one batch.

An experiment is a list of replacements: the state of some tokens at a layer, the output of an attention head, or what a
block's attention or feed-forward part adds. All experiments of a batch read the same input, once per row, and each row
gets replacements of its own: the 72 heads of a small model are 72 rows of a single forward pass. Everything after a
replaced activation is computed anew from it (Vig et al. 2020; Meng et al. 2022).

    layer l      the state of the tokens at layer l, as in a trace; layer 0 is replaced before the first block
    head h       of block b: its weighted values, before the output projection mixes the heads
    attention    of block b: after the output projection, before residual and LayerNorm
    feed-forward of block b: after its second dense layer, before residual and LayerNorm

The replacements are made by hooks on the library's own modules. Hooks on a shared model fire for everybody's passes, so
they are placed, used and removed under the model's lock, also if the pass fails. The lock is held for one chunk of rows
at a time: other sessions' passes go in between.

What it does not do: padding. All rows have the same length, so that no position is padding and no mask is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from components.arrays import Float32
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model import loading
from components.model.architecture.modules import EncoderModules, Place, numbers_of_uses
from components.model.device import on_device
from components.model.embedding.batch_pooling import pooled_states
from components.model.interventions.activations import Site, unpadded_inputs
from components.model.loaded import LoadedModel, numpy_of
from components.model.trace import Pooling, TokenizedSentence

CHUNK_TOKENS = 3_072  # of one pass, all rows together


@dataclass(frozen=True, eq=False)
class Replacement:
    """One activation of an input, and the values that it gets."""

    site: Site
    number: int  # a layer 0..L, or a block 0..L-1
    positions: tuple[int, ...]  # the tokens whose activation is replaced
    values: Float32  # [position, dim]; of a head [position, head_dim]
    head: int | None = None


Experiment = Sequence[Replacement]  # an empty one changes nothing


def patched_vectors(
    model: LoadedModel,
    sentence: TokenizedSentence,
    experiments: Sequence[Experiment],
    pooling: Pooling,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The vector of one text at the last layer after each experiment, float32 [experiment, dim], not normalised.

    `progress(done, total)` counts experiments. Raises IndexError for a token, layer, block or head that does not exist,
    ModelError for vectors that are not finite, Stopped.
    """
    head = model.head if pooling == "own" else None
    mixes = head is not None and head.layer_shares is not None
    tokens = len(sentence)

    def read(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        output = model.encoder(**inputs, output_hidden_states=mixes)
        states: torch.Tensor = output.last_hidden_state  # [row, token, dim]
        keep = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        lengths = keep.sum(dim=1)
        if head is not None:
            first = torch.full_like(lengths, sentence.prompt_tokens)
            return head.vectors(states, keep, first, output.hidden_states if mixes else None)
        return pooled_states([states], (pooling,), keep, lengths, keep.float() / tokens)[0, 0]

    return _in_chunks(model, sentence, experiments, read, progress, is_stopped)


def patched_logits(
    model: LoadedModel,
    sentence: TokenizedSentence,
    experiments: Sequence[Experiment],
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The logits of a pair of texts after each experiment, float32 [experiment, label].

    As `patched_vectors`, for a cross-encoder. Raises ModelError for a model without a scoring head.
    """
    scorer = model.pair_scorer()

    def read(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        logits: torch.Tensor = scorer(**inputs).logits
        return logits

    return _in_chunks(model, sentence, experiments, read, progress, is_stopped)


def _in_chunks(
    model: LoadedModel,
    sentence: TokenizedSentence,
    experiments: Sequence[Experiment],
    read: Callable[[dict[str, torch.Tensor]], torch.Tensor],
    progress: ReportProgress,
    is_stopped: IsStopped,
) -> Float32:
    """What `read` makes of each experiment's pass, float32 [experiment, dim]."""
    for experiment in experiments:
        for replacement in experiment:
            _check(model, sentence, replacement)
    per_pass = max(1, CHUNK_TOKENS // len(sentence))
    results: list[Float32] = []
    for start in range(0, len(experiments), per_pass):
        if is_stopped():
            raise Stopped
        chunk = experiments[start : start + per_pass]
        inputs, changes = unpadded_inputs(model, sentence, len(chunk)), _changes(model, chunk)
        with model.forward_pass(), _placed(model.modules, changes, len(sentence)):
            results.append(numpy_of(read(inputs)))
        if not np.isfinite(results[-1]).all():
            raise loading.not_finite(model.spec.title)
        progress(start + len(chunk), len(experiments))
    return np.concatenate(results) if results else np.empty((0, 0), np.float32)


def _check(model: LoadedModel, sentence: TokenizedSentence, replacement: Replacement) -> None:
    facts, tokens = model.facts, len(sentence)
    most = facts.layers if replacement.site == "layer" else facts.layers - 1
    if not 0 <= replacement.number <= most:
        raise IndexError(f"{replacement.site} {replacement.number} is not within 0..{most}")
    if not all(0 <= position < tokens for position in replacement.positions):
        raise IndexError(f"positions {replacement.positions} are not all within 0..{tokens - 1}")
    if (replacement.site == "head") != (replacement.head is not None):
        raise ValueError("a head's number is needed for a head, and for nothing else")
    if replacement.head is not None and not 0 <= replacement.head < facts.heads:
        raise IndexError(f"head {replacement.head} is not within 0..{facts.heads - 1}")


@dataclass(eq=False)
class _Change:
    """What is written into one module's tensor [row, token, head, dim], where all but heads count as one head."""

    rows: torch.Tensor  # int64 [change]
    positions: torch.Tensor  # int64 [change]
    heads: torch.Tensor  # int64 [change]
    values: torch.Tensor  # float32 [change, dim]
    of_heads: int  # how many the last axis is cut into


def _changes(model: LoadedModel, experiments: Sequence[Experiment]) -> dict[tuple[Site, int], _Change]:
    """All replacements of a batch by the place where they are made, on the model's device."""
    collected: dict[tuple[Site, int], list[tuple[int, Replacement]]] = {}
    for row, experiment in enumerate(experiments):
        for replacement in experiment:
            if replacement.positions:
                collected.setdefault((replacement.site, replacement.number), []).append((row, replacement))
    changes = {}
    for place, items in collected.items():
        # A cell that a row names twice has the last value: which write wins would not be certain in a tensor.
        cells = {
            (row, position, item.head or 0): value
            for row, item in items
            for position, value in zip(item.positions, item.values, strict=True)
        }
        indices = torch.tensor(list(cells), dtype=torch.int64)  # [change, (row, position, head)]
        values = torch.from_numpy(np.stack(list(cells.values()))).float()
        indices, values = on_device([indices, values], model.device)
        of_heads = model.facts.heads if place[0] == "head" else 1
        changes[place] = _Change(indices[:, 0], indices[:, 1], indices[:, 2], values, of_heads)
    return changes


@contextmanager
def _placed(modules: EncoderModules, changes: dict[tuple[Site, int], _Change], tokens: int) -> Iterator[None]:
    """Hooks that make these changes in a pass within this context; every hook is removed at its end."""
    with ExitStack() as hooks:
        for (site, number), change in changes.items():
            places = _places(modules, site)
            place = places[number]
            writer = _Writer(change, tokens, numbers_of_uses([each.module for each in places])[number])
            if place.end == "input":
                handle = place.module.register_forward_pre_hook(writer.before)
            else:
                handle = place.module.register_forward_hook(writer.after)
            hooks.callback(handle.remove)
        yield


def _places(modules: EncoderModules, site: Site) -> list[Place]:
    """Where the activations of a site are, by layer or by block."""
    if site == "layer":
        return list(modules.layers)
    if site == "head":
        return [Place(block.attention_dense, "input") for block in modules.blocks]
    return [block.added[site] for block in modules.blocks]


class _Writer:
    """Hooks that return a module's tensor [row, token, head, dim] with the changes made.

    With chunk_size_feed_forward in its configuration a model runs the feed-forward part several times in a pass, each
    time for the next few tokens: the positions are then counted from the first of them. Where blocks share a module, it is
    called once for each, and the changes are made in the call of this number only.
    """

    def __init__(self, change: _Change, tokens: int, call: int) -> None:
        self._change, self._tokens, self._call, self._seen = change, tokens, call, 0

    def before(self, module: Any, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (self._written(arguments[0]), *arguments[1:])

    def after(self, module: Any, arguments: Any, output: torch.Tensor) -> torch.Tensor:
        return self._written(output)

    def _written(self, tensor: torch.Tensor) -> torch.Tensor:
        change, count = self._change, tensor.shape[1]
        call, first = divmod(self._seen, self._tokens)
        self._seen += count
        if call != self._call:
            return tensor
        here = (change.positions >= first) & (change.positions < first + count)
        changed = tensor.clone()
        by_head = changed.view(*tensor.shape[:2], change.of_heads, -1)  # [row, token, head, dim]
        by_head[change.rows[here], change.positions[here] - first, change.heads[here]] = change.values[here].to(
            tensor.dtype
        )
        return changed
