"""The shapes of a model's matrices, for a drawing of it to one scale, and how many parameters each kind of part has.

The counts are sums over the model's own named parameters (`parameter_parts`), so that they add up to all of them; the shapes
are those of the matrices alone, without biases and norms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from components.model.architecture.modules import BlockModules, EncoderModules, Projection
from components.model.architecture.parameters import parameter_parts
from components.model.architecture.record import modules_of

# Names of the parts of `ParameterPart`, and what a drawing calls them.
_KINDS = {
    "word": "pieces",
    "position": "positions",
    "segment": "segments",
    "task": "tasks",
    "projection": "projection",
    "attention": "attention",
    "feed-forward": "feed-forward",
    "layer norm": "norms",
    "relative positions": "distances",
    "pooler": "pooler",
}


@dataclass(frozen=True)
class BlockMatrix:
    """A matrix of a block. One side is the hidden size; the other, `inner`, is what it turns it into, or from."""

    name: str
    hidden: int
    inner: int

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return self.hidden * self.inner


@dataclass(frozen=True)
class BlockShape:
    """The matrices of a block, in the order of the forward pass."""

    attention: tuple[BlockMatrix, ...]  # queries, keys, values, output
    feed_forward: tuple[BlockMatrix, ...]
    weights: int  # the number of the weights that it uses: blocks may share them


@dataclass(frozen=True)
class Shapes:
    """A model as matrices. A table is (rows, size)."""

    hidden: int
    tables: dict[str, tuple[int, int]]  # by kind: "pieces", "positions", "segments", ...
    projection: tuple[int, int] | None  # from the size of the tables to the hidden size, if they differ
    blocks: tuple[BlockShape, ...]
    heads: int
    heads_per_key: int
    counts: dict[str, int]  # parameters by kind; their sum is all of them

    @property
    def total(self) -> int:
        """All parameters of the model."""
        return sum(self.counts.values())


def shapes_of(model: torch.nn.Module) -> Shapes:
    """The shapes of an encoder, a decoder of which only text vectors are shown, or a table of static vectors."""
    modules = modules_of(model)
    counts: dict[str, int] = {}
    for part in parameter_parts(model):
        kind = _KINDS.get(part.part, part.part)
        counts[kind] = counts.get(kind, 0) + part.count
    tables = {
        _KINDS.get(part, part): (int(table.num_embeddings), int(table.embedding_dim))
        for part, table in modules.tables.items()
    }
    config: Any = model.config
    steps = dict(zip(modules.structure.layer_zero_steps, modules.layer_zero_steps, strict=True))
    projection: Any = steps.get("projection")
    return Shapes(
        hidden=int(config.hidden_size),
        tables=tables,
        projection=None if projection is None else (int(projection.in_features), int(projection.out_features)),
        blocks=_blocks(modules),
        heads=int(config.num_attention_heads),
        heads_per_key=modules.structure.heads_per_key,
        counts=counts,
    )


def _blocks(modules: EncoderModules) -> tuple[BlockShape, ...]:
    return tuple(
        BlockShape(_attention(block), _feed_forward(block), weights)
        for block, weights in zip(modules.blocks, modules.structure.block_weights, strict=True)
    )


def _attention(block: BlockModules) -> tuple[BlockMatrix, ...]:
    def read(name: str, projection: Projection) -> BlockMatrix:
        return BlockMatrix(name, int(projection.linear.in_features), projection.size)

    dense = block.attention_dense
    return (
        read("Q", block.query),
        read("K", block.key),
        read("V", block.value),
        BlockMatrix("O", int(dense.out_features), int(dense.in_features)),
    )


def _feed_forward(block: BlockModules) -> tuple[BlockMatrix, ...]:
    dense = block.feed_forward_dense
    hidden, inner = int(dense.out_features), int(dense.in_features)
    first = ("in",) if block.gate is None else ("gate", "in")
    return (*(BlockMatrix(name, hidden, inner) for name in first), BlockMatrix("out", hidden, inner))
