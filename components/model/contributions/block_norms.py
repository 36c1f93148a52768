"""The LayerNorms of a model's blocks as numbers, so that an analysis can pass parts of a vector through them.

LayerNorm(x) = scale * (x - mean(x)) / sqrt(var(x) + epsilon) + shift (Ba, Kiros and Hinton 2016). With the denominator held
at its value it is linear, so that what it does to a sum is the sum of what it does to the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from components.arrays import Float64, arrays_of, read_only
from components.model.architecture import block_modules
from components.model.loaded import numpy_of


@dataclass(frozen=True, eq=False)
class BlockNorms:
    """Both LayerNorms of every block: 0 after attention, 1 after the feed-forward part."""

    scale: Float64  # [block, norm, dim]
    shift: Float64  # [block, norm, dim]
    epsilon: Float64  # [block, norm]

    def __post_init__(self) -> None:
        for array in arrays_of(self):
            read_only(array)


def block_norms(model: Any) -> BlockNorms:
    """The LayerNorms of an encoder's blocks, block 0 first."""
    norms = [(modules.attention_norm, modules.feed_forward_norm) for modules in block_modules(model)]
    scale, shift = (
        np.array([[numpy_of(getattr(norm, name)) for norm in pair] for pair in norms], np.float64)
        for name in ("weight", "bias")
    )
    return BlockNorms(scale, shift, np.array([[norm.eps for norm in pair] for pair in norms], np.float64))
