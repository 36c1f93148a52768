"""Numbers as single bytes for drawing, with a known error.

A screen shows 256 steps of a colour or an opacity, so that a byte loses nothing visible. Everything is done in
numpy: converting millions of floats to text would hold Python's lock for half a second.
"""

from __future__ import annotations

import numpy as np

_CLIPPED = 1e-3  # how far rounding errors may take a weight outside 0..1


def quantise_weights(weights: np.ndarray) -> np.ndarray:
    """Weights 0..1 as uint8 0..255 of the same shape; value / 255 is within 1/510 (half a step) of the weight.

    Raises ValueError if a weight is not a number from 0 to 1.
    """
    low, high = float(weights.min()), float(weights.max())
    if not (low >= -_CLIPPED and high <= 1 + _CLIPPED):  # NaN fails too
        raise ValueError(f"attention weights must be from 0 to 1, but these are from {low:g} to {high:g}")
    return np.rint(np.clip(weights, 0, 1) * 255).astype(np.uint8)


def quantise_vectors(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors [..., dim] as int8 of the same shape and float32 scales [...]; value * scale approximates them.

    The error of each element is at most 1/254 (half a step of 1/127) of the largest absolute value of its vector. Raises
    ValueError if an element is not finite.
    """
    scales = np.abs(vectors).max(axis=-1) / 127
    if not np.isfinite(scales).all():
        raise ValueError("queries and keys must be finite numbers")
    steps = np.rint(vectors / np.where(scales > 0, scales, 1)[..., None])
    return steps.astype(np.int8), scales.astype("<f4")
