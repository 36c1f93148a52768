"""Rotary positions: by which angle a position turns queries and keys, and what this does to their product.

A query and a key are read as points of head_dim / 2 planes. At position m each point is turned by m times the speed of its
plane (Su et al. 2021, "RoFormer", section 3.2). Of two points that are turned by angles, the product depends on the difference
of the angles only. So the score of a query at position m and a key at n depends on m - n, and moving both by the same
number of positions changes nothing:

    score(m - n) = scale * sum over planes of |q| |k| cos(angle between them + (m - n) * speed)

Fast planes tell neighbours apart, slow ones hardly change over a whole text.

What it does not show: what the model uses a distance for. The curve of a query and a key is that of their contents; in
another context the same words have other queries and keys.
"""

from __future__ import annotations

import numpy as np

from components.arrays import Float32, Float64


def angles(speeds: Float64, positions: int) -> Float64:
    """The angle in radians by which each position 0..positions-1 turns each pair of dimensions, [position, pair]."""
    return np.asarray(np.arange(positions)[:, None] * speeds, np.float64)


def base_of(speeds: Float64) -> float:
    """The base theta of speeds theta^(-2i / head_dim), from the slowest pair; NaN for a single pair."""
    pairs = len(speeds)
    return float(speeds[-1] ** (-pairs / (pairs - 1))) if pairs > 1 else float("nan")


def score_by_distance(
    query: Float32, key: Float32, distance: int, speeds: Float64, distances: np.ndarray, scale: float
) -> Float64:
    """The score that a query and a key would have at other distances, [distance].

    `query` and `key` [head_dim] are those after rotation, at positions whose difference is `distance` (query minus key).
    """
    query_points, key_points = (_points(vector) for vector in (query, key))
    products = query_points * key_points.conj() * np.exp(-1j * distance * speeds)  # [pair], at distance 0
    turned = np.exp(1j * np.asarray(distances)[:, None] * speeds) @ products  # [distance]
    return np.asarray(scale * turned.real, np.float64)


def _points(vector: Float32) -> np.ndarray:
    """A vector [head_dim] as points of the complex plane, [pair]: dimensions d and d + head_dim / 2 belong together."""
    half = len(vector) // 2
    wide = vector.astype(np.float64)
    return wide[:half] + 1j * wide[half:]
