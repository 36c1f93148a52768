"""The modules of an encoder, by what they do: the record that each family builds from its own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from components.model.architecture.structure import Structure


@dataclass(frozen=True, eq=False)
class Place:
    """A tensor [sentence, token, dim] of the forward pass: what goes into a module, or what comes out of it."""

    module: torch.nn.Module
    end: Literal["input", "output"] = "output"


@dataclass(frozen=True, eq=False)
class Projection:
    """The rows of a linear layer that give the queries, keys or values: all of them, or a part of a fused layer."""

    linear: torch.nn.Linear
    first: int
    size: int

    @property
    def rows(self) -> slice:
        """Where they are in the layer's output."""
        return slice(self.first, self.first + self.size)

    @property
    def weight(self) -> torch.Tensor:
        """[size, dim], as PyTorch stores it."""
        return self.linear.weight[self.rows]

    @property
    def bias(self) -> torch.Tensor | None:
        """[size], or None."""
        return None if self.linear.bias is None else self.linear.bias[self.rows]


def whole(linear: Any) -> Projection:
    """A linear layer that gives one of queries, keys and values."""
    return Projection(linear, 0, int(linear.out_features))


@dataclass(frozen=True, eq=False)
class Gate:
    """The first step of a gated feed-forward part: activation(gate) times value, dimension by dimension (Shazeer 2020).

    As GeGLU and SwiGLU, after the activation function: GELU or SiLU.
    """

    gate: Projection
    value: Projection
    activation: Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class BlockModules:
    """The modules of one encoder block, in the order of the forward pass.

    If the norms come after (as in BERT), after attention = attention_norm(block's input + attention output), and the block's
    output is feed_forward_norm(after attention + feed-forward output). If they come first (as in ModernBERT), attention
    reads attention_norm(block's input), the feed-forward part reads feed_forward_norm(after attention), and both outputs are
    added as they are.
    """

    query: Projection
    key: Projection
    value: Projection
    attention_dense: torch.nn.Linear  # the output projection, which mixes the heads
    attention_norm: torch.nn.Module | None  # None: attention reads the block's input itself (ModernBERT's first block)
    feed_forward_dense: torch.nn.Linear  # the last of the feed-forward part, back to the hidden size
    feed_forward_norm: torch.nn.Module
    after_attention: Place  # the token's vector between the two parts
    output: Place  # the block's output; layer b+1, unless a final norm follows
    gate: Gate | None = None  # None: the feed-forward part is two dense layers with an activation function between them

    @property
    def added(self) -> dict[str, Place]:
        """What each of the two parts adds to the token's vector."""
        return {"attention": Place(self.attention_dense), "feed_forward": Place(self.feed_forward_dense)}


Pool = Callable[[torch.Tensor], torch.Tensor]  # the last layer [sentence, token, dim] to [sentence, dim]
# cos and sin of a token's angles, [token, head_dim] each, for every block
Rotations = list[tuple[torch.Tensor, torch.Tensor]]
# From queries and keys [head, token, head_dim] of a block: named terms [head, query, key] that are added to their products.
ScoreTerms = Callable[[int, torch.Tensor, torch.Tensor], dict[str, torch.Tensor]]


@dataclass(frozen=True, eq=False)
class EncoderModules:
    """An encoder by what its modules do. It belongs to one module tree: a copy of the model needs one of its own."""

    structure: Structure
    blocks: tuple[BlockModules, ...]
    blocks_path: str  # of the list of blocks, within the model
    layer_zero: Place
    tables: Mapping[str, torch.nn.Embedding]  # of `structure.layer_zero_parts`
    layer_zero_steps: tuple[torch.nn.Module, ...]  # of `structure.layer_zero_steps`
    final_norm: torch.nn.Module | None = None
    rotations: Callable[[int], Rotations] | None = None  # for a number of tokens; only where positions are rotary
    score_terms: ScoreTerms | None = None  # only where positions enter by them
    score_scale: float | None = None  # of the products; None: 1 / sqrt(head_dim)
    pool: Pool | None = None  # the pooler: the last layer to [sentence, dim]
    first_blocks: Callable[[int], Any] | None = (
        None  # where the encoder cannot simply be given a shorter list of blocks
    )
    mask_names: tuple[str, ...] = ()  # by block: what the library calls its mask; none where all blocks have the same
    mask_reader: torch.nn.Module | None = None  # what takes a mask for each query, where the encoder itself does not

    @property
    def layers(self) -> tuple[Place, ...]:
        """Where each hidden state is, layer 0 to L."""
        states = [self.layer_zero, *(block.output for block in self.blocks)]
        if self.final_norm is not None:
            states[-1] = Place(self.final_norm)
        return tuple(states)


def block_with_norms_first(
    projections: Sequence[Projection],
    attention_dense: Any,
    attention_norm: Any,
    feed_forward_dense: Any,
    feed_forward_norm: Any,
    block: Any,
    gate: Gate | None = None,
) -> BlockModules:
    """The record of a block whose parts normalise what they read; `block` itself gives its output.

    `projections` are those of queries, keys and values.
    """
    query, key, value = projections
    return BlockModules(
        query,
        key,
        value,
        attention_dense,
        attention_norm,
        feed_forward_dense,
        feed_forward_norm,
        after_attention=Place(feed_forward_norm, "input"),
        output=Place(block),
        gate=gate,
    )


def numbers_of_uses(modules: list[torch.nn.Module]) -> list[int]:
    """For each of these, how often the same module was there before it: blocks may share their weights."""
    return [sum(other is module for other in modules[:number]) for number, module in enumerate(modules)]
