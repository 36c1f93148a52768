"""One pass over an input with the activations at every site where `patched` can replace them.

The sites are explained there. `components.model.inside` records what a block computes; this records only what can be
replaced, and the heads before the output projection mixes them.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from components.arrays import ArrayRecord, Float32
from components.model import loading
from components.model.architecture.modules import Place
from components.model.loaded import LoadedModel, numpy_of
from components.model.trace import TokenizedSentence

Site = Literal["layer", "head", "attention", "feed_forward"]


@dataclass(frozen=True, eq=False)
class Activations(ArrayRecord):
    """What one input has at every site; all arrays are read-only."""

    sentence: TokenizedSentence
    layers: Float32  # [layer 0..L, token, dim]
    heads: Float32  # [block, token, head, head_dim]
    attention: Float32  # [block, token, dim]
    feed_forward: Float32  # [block, token, dim]

    def at(self, site: Site, number: int, head: int | None = None) -> Float32:
        """The activation of all tokens at a site, float32 [token, dim or head_dim]."""
        arrays = {"layer": self.layers, "attention": self.attention, "feed_forward": self.feed_forward}
        values: Float32 = self.heads[number, :, head] if site == "head" else arrays[site][number]
        return values


def activations(model: LoadedModel, sentence: TokenizedSentence) -> Activations:
    """One pass over one text or pair of texts; nothing is replaced. Raises ModelError for states that are not finite."""
    model.need("blocks")
    blocks, heads, tokens = model.modules.blocks, model.facts.heads, len(sentence)
    dim = model.facts.hidden_size
    inner = blocks[0].attention_dense.in_features
    layers = np.full((len(blocks) + 1, tokens, dim), np.nan, np.float32)  # NaN, so that what no hook wrote shows
    parts = {name: np.full((len(blocks), tokens, dim), np.nan, np.float32) for name in ("attention", "feed_forward")}
    mixed = np.full((len(blocks), tokens, inner), np.nan, np.float32)
    inputs = unpadded_inputs(model, sentence)
    wanted = list(zip(model.modules.layers, layers, strict=True))
    for block, modules in enumerate(blocks):
        wanted += [(place, parts[name][block]) for name, place in modules.added.items()]
        wanted.append((Place(modules.attention_dense, "input"), mixed[block]))
    targets: dict[tuple[int, str], tuple[Place, list[Float32]]] = {}  # blocks may share their modules
    for place, target in wanted:
        targets.setdefault((id(place.module), place.end), (place, []))[1].append(target)
    with model.forward_pass(), ExitStack() as hooks:
        for place, arrays in targets.values():
            reader = _TensorReader(arrays)
            if place.end == "input":
                hooks.callback(place.module.register_forward_pre_hook(reader.before).remove)
            else:
                hooks.callback(place.module.register_forward_hook(reader.after).remove)
        model.encoder(**inputs)
    if not np.isfinite(layers).all():
        raise loading.not_finite(model.spec.title)
    return Activations(sentence, layers, mixed.reshape(len(blocks), tokens, heads, -1), **parts)


def unpadded_inputs(model: LoadedModel, sentence: TokenizedSentence, rows: int = 1) -> dict[str, torch.Tensor]:
    """The model's arguments for the same input in each row. There is no padding, so that there is nothing to mask."""
    ids, _, segments = model.tokenization.arrays([sentence])
    if segments is not None and not model.tokenization.gives_segments:
        segments = np.zeros_like(segments)  # as the bulk path does: libraries train the model without them then
    inputs = model.tensors(ids, None, segments)
    return {name: tensor.expand(rows, -1) for name, tensor in inputs.items()}


class _TensorReader:
    """Hooks that copy a module's tensors [1, token, dim] into the targets [token, dim], one after another.

    A module that several blocks share is called once for each. With chunk_size_feed_forward in its configuration, a model
    runs the feed-forward part several times, each time for the next few tokens.
    """

    def __init__(self, targets: list[Float32]) -> None:
        self._targets, self._written = targets, 0

    def before(self, module: Any, arguments: tuple[torch.Tensor, ...]) -> None:
        self._read(arguments[0])

    def after(self, module: Any, arguments: Any, output: torch.Tensor) -> None:
        self._read(output)

    def _read(self, tensor: torch.Tensor) -> None:
        call, first = divmod(self._written, len(self._targets[0]))
        self._targets[call][first : first + tensor.shape[1]] = numpy_of(tensor[0])
        self._written += tensor.shape[1]
