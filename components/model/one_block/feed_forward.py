"""The inner dimensions of the feed-forward parts: what each dimension gives for each token, and which gate lets through.

The feed-forward part of a BERT is two dense layers with an activation function between them (Vaswani et al. 2017, section
3.3):

    feed_forward_output = activation(x W_1 + b_1) W_2 + b_2

A gated one has a third matrix, and multiplies two projections dimension by dimension (Shazeer 2020, "GLU Variants Improve
Transformer"; GeGLU with GELU, SwiGLU with SiLU):

    feed_forward_output = (activation(x W_gate) * (x W_value)) W_2

In both, each row of W_2 is a vector of the hidden size that is added in proportion to its inner dimension (Geva et al. 2021,
"Transformer Feed-Forward Layers Are Key-Value Memories"). The tests hold both formulas for every architecture.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from components.arrays import ArrayRecord, Float32, Float64
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model import inside
from components.model.architecture.modules import Place
from components.model.device import on_device
from components.model.interventions.only_left import looking_left
from components.model.loaded import LoadedModel, numpy_of
from components.model.one_block.nearly_closed import closed_share
from components.model.trace import TokenizedSentence

MOST_BYTES = (
    32 << 20
)  # of the inner dimensions of all blocks together; where they take more, those of one block are kept


@dataclass(frozen=True, eq=False)
class FeedForward(ArrayRecord):
    """The inner dimensions of feed-forward parts for one input, without padding; arrays are read-only.

    Of a short input they are kept for all blocks, of a long one for a single block (`kept_blocks`).
    """

    sentence: TokenizedSentence
    first_block: int  # of those that are kept
    activations: Float32  # [kept block, token, inner]: what the activation function gives; in a gated part, the gates
    values: Float32 | None  # [kept block, token, inner]: what the gates are multiplied with; None where there are none
    closed_shares: Float64  # [block, token], of all blocks: the share of inner dimensions that are nearly closed, 0..1
    only_left: bool = False  # in this pass a token attended only to itself and to those before it

    @property
    def kept_blocks(self) -> range:
        """The blocks whose inner dimensions are kept."""
        return range(self.first_block, self.first_block + len(self.activations))

    def activations_of(self, block: int) -> Float32:
        """The activations, or gates, of a block that is kept, [token, inner]. Raises ValueError for another one."""
        return self.activations[self.kept_blocks.index(block)]

    def values_of(self, block: int) -> Float32 | None:
        """What the gates of a block that is kept are multiplied with, [token, inner]; None without gates."""
        return None if self.values is None else self.values[self.kept_blocks.index(block)]

    def products(self, block: int) -> Float32:
        """What the last dense layer of a block that is kept reads, float32 [token, inner]."""
        values = self.values_of(block)
        return self.activations_of(block) if values is None else self.activations_of(block) * values


def kept_blocks(model: LoadedModel, tokens: int, block: int) -> range:
    """The blocks whose inner dimensions are kept of so many tokens: all, or only this one if all would take too much.

    Raises IndexError for a block that does not exist.
    """
    blocks = len(model.modules.blocks)
    if not 0 <= block < blocks:
        raise IndexError(f"block {block} is not within 0..{blocks - 1}")
    return range(blocks) if size_in_bytes(model, tokens, blocks) <= MOST_BYTES else range(block, block + 1)


def size_in_bytes(model: LoadedModel, tokens: int, kept: int) -> int:
    """The size (nbytes) of the record of so many tokens and kept blocks, before anything is computed."""
    blocks = model.modules.blocks
    inner = int(blocks[0].feed_forward_dense.in_features) * (1 if blocks[0].gate is None else 2)
    return 4 * kept * tokens * inner + 8 * len(blocks) * tokens


def feed_forward(
    model: LoadedModel,
    sentence: TokenizedSentence,
    kept: range,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    only_left: bool = False,
) -> FeedForward:
    """One pass over one text or pair of texts. Of the blocks that are not kept, no more than one is in memory at a time.

    `only_left`: with a mask that hides from each token those after it (`interventions.only_left`).
    `progress(done, total)` counts blocks; after each, passes of other threads go first. Raises Stopped once `is_stopped()`
    is true.
    """
    blocks, tokens = model.modules.blocks, len(sentence)
    inner = int(blocks[0].feed_forward_dense.in_features)
    gates = [block.gate for block in blocks if block.gate is not None]
    # NaN, so that an element that no hook wrote can never be mistaken for a result.
    projected = np.full((tokens, inner), np.nan, np.float32)  # of the block that is running
    multiplied = np.full((tokens, inner), np.nan, np.float32)
    activations = np.full((len(kept), tokens, inner), np.nan, np.float32)
    values = np.full((len(kept), tokens, inner), np.nan, np.float32) if gates else None
    shares = np.full((len(blocks), tokens), np.nan, np.float64)
    done, written = 0, 0  # blocks, and tokens of the next one
    thread = threading.get_ident()

    def copy_next() -> None:
        """Place the hooks for the next block. They are removed at its end, so that only this pass meets them."""
        if gates:
            inside.copy_into([projected], [gates[done].gate], hooks)
            inside.copy_into([multiplied], [gates[done].value], hooks)
        else:
            inside.copy_into([projected], [Place(blocks[done].feed_forward_dense, "input")], hooks)

    def end(module: Any, arguments: Any, output: torch.Tensor) -> None:
        """After each call of a last dense layer: one call is a block, or a few of its tokens (chunk_size_feed_forward)."""
        nonlocal done, written
        if threading.get_ident() != thread:  # a pass that was let in
            return
        written += output.shape[1]
        if written < tokens:
            return
        hooks.close()
        block, written, done = done, 0, done + 1
        given = projected
        if gates:
            given = numpy_of(gates[block].activation(*on_device([torch.from_numpy(projected)], model.device)))
        shares[block] = closed_share(given)
        if block in kept:
            activations[kept.index(block)] = given
            if values is not None:
                values[kept.index(block)] = multiplied
        progress(done, len(blocks))
        if is_stopped():
            raise Stopped
        if done < len(blocks):
            model.let_others_in()
            copy_next()

    tensors = model.tensors(*model.tokenization.arrays([sentence]))
    # In the order in which they are removed: first those of a block, which `end` removes too, then `end` itself.
    with model.forward_pass(), ExitStack() as ends, ExitStack() as hooks:
        copy_next()
        for dense in {id(block.feed_forward_dense): block.feed_forward_dense for block in blocks}.values():
            ends.callback(dense.register_forward_hook(end).remove)
        with looking_left(model.encoder, tensors) if only_left else nullcontext(tensors) as arguments:
            model.encoder(**arguments)
    return FeedForward(sentence, kept.start, activations, values, shares, only_left)
