"""Maps of the same points at several layers that turn as little as possible from one to the next.

Each layer's map has the two principal axes of the directions. Their signs and order are chance: each map is turned, and
mirrored where needed, to lie as close as possible to the one after it (orthogonal Procrustes).
"""

from __future__ import annotations

import numpy as np

from components.arrays import Float64, unit


def turned_maps(vectors: np.ndarray) -> Float64:
    """Maps [layer, point, 2] of vectors [layer, point, dim], each within -1..1."""
    maps = []
    for layer in np.asarray(vectors, np.float64):
        directions = unit(layer)
        left, sizes, _ = np.linalg.svd(directions - directions.mean(axis=0), full_matrices=False)
        maps.append(left[:, :2] * sizes[:2])
    for number in range(len(maps) - 2, -1, -1):
        left, _, right = np.linalg.svd(maps[number].T @ maps[number + 1])
        maps[number] = maps[number] @ left @ right
    return np.stack([layer / max(float(np.abs(layer).max()), 1e-12) for layer in maps])
