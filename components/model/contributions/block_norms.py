"""The norms of a model as numbers, so that an analysis can pass parts of a vector through them.

LayerNorm(x) = scale * (x - mean(x)) / sqrt(var(x) + epsilon) + shift (Ba, Kiros and Hinton 2016). With the denominator held
at its value it is linear, so that what it does to a sum is the sum of what it does to the parts. RMSNorm (Zhang and Sennrich
2019) divides by the root of the mean square instead: no mean is subtracted, and there is no shift.

In `BlockNorms` only norms that a token's vector itself goes through count. Where the parts of a block normalise what they read,
the vector goes around these norms, and only one after the last block changes it. `applied_norms` has all of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from components.arrays import Float64, arrays_of, read_only
from components.model.architecture.modules import EncoderModules
from components.model.loaded import numpy_of


@dataclass(frozen=True, eq=False)
class VectorNorm:
    """A LayerNorm, or (not centred) an RMSNorm."""

    scale: Float64  # [dim]
    shift: Float64  # [dim]
    epsilon: float
    is_centred: bool

    def __post_init__(self) -> None:
        for array in arrays_of(self):
            read_only(array)

    def __call__(self, vectors: Float64) -> Float64:
        """The normalised vectors [.., dim]."""
        centred = vectors - vectors.mean(-1, keepdims=True) if self.is_centred else vectors
        return centred / self.deviation(vectors)[..., None] * self.scale + self.shift

    def deviation(self, vectors: Float64) -> Float64:
        """The denominator for each of the vectors [.., dim], float64 [..]."""
        spread = vectors.var(axis=-1) if self.is_centred else (vectors**2).mean(axis=-1)
        result: Float64 = np.sqrt(spread + self.epsilon)
        return result


# Where in a block a norm stands. Before a part: the part reads a normalised copy. Final: after the last block.
NormPlace = Literal["before attention", "after attention", "before feed-forward", "after feed-forward", "final"]


@dataclass(frozen=True, eq=False)
class AppliedNorm(VectorNorm):
    """A norm with its place in a block."""

    place: NormPlace


@dataclass(frozen=True, eq=False)
class BlockNorms:
    """The norms that a token's vector goes through on its way through the blocks."""

    blocks: tuple[tuple[VectorNorm, VectorNorm], ...]  # after attention, after feed-forward; empty if norms come first
    final: VectorNorm | None  # after the last block


def block_norms(modules: EncoderModules) -> BlockNorms:
    """The norms of an encoder, block 0 first."""
    structure = modules.structure

    def numbers(norm: Any) -> VectorNorm:
        return vector_norm(norm, is_centred=structure.norm == "LayerNorm")

    after = () if structure.normalises_first else modules.blocks
    return BlockNorms(
        tuple((numbers(block.attention_norm), numbers(block.feed_forward_norm)) for block in after),
        None if modules.final_norm is None else numbers(modules.final_norm),
    )


def applied_norms(modules: EncoderModules, number: int) -> tuple[AppliedNorm, ...]:
    """All norms of a block in the order in which they are applied; in the last block the final norm is among them.

    Raises IndexError for a block that does not exist.
    """
    if not 0 <= number < len(modules.blocks):
        raise IndexError(f"block {number} is not within 0..{len(modules.blocks) - 1}")
    block, structure = modules.blocks[number], modules.structure
    norms: list[tuple[NormPlace, Any]] = (
        [("before attention", block.attention_norm), ("before feed-forward", block.feed_forward_norm)]
        if structure.normalises_first
        else [("after attention", block.attention_norm), ("after feed-forward", block.feed_forward_norm)]
    )
    if number == len(modules.blocks) - 1:
        norms.append(("final", modules.final_norm))
    found = [(place, vector_norm(norm, structure.norm == "LayerNorm")) for place, norm in norms if norm is not None]
    return tuple(AppliedNorm(norm.scale, norm.shift, norm.epsilon, norm.is_centred, place) for place, norm in found)


def vector_norm(norm: Any, is_centred: bool = True) -> VectorNorm:
    """A norm of the library as numbers."""
    scale = np.asarray(numpy_of(norm.weight), np.float64)
    bias = getattr(norm, "bias", None)
    shift = np.zeros_like(scale) if bias is None else np.asarray(numpy_of(bias), np.float64)
    epsilon = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon  # as RMSNorm calls it
    return VectorNorm(scale, shift, float(epsilon), is_centred)
