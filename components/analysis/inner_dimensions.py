"""Inner dimensions of a feed-forward part: how many take part for a token, and which give most.

A gate near 0 closes its dimension: whatever the other projection gives, nothing of it is added. Without gates, an activation
near 0 does the same. Activations of a trained model are often sparse in this sense (Li et al. 2023, "The Lazy Neuron
Phenomenon"); with ReLU they are 0 exactly, with GELU or SiLU only nearly.

What it does not show: what a dimension stands for, and how long the vector is that it adds, which also depends on its row of
the last matrix.
"""

from __future__ import annotations

import numpy as np

from components.arrays import Float32, Float64

NEARLY_CLOSED = 0.05  # of the largest absolute activation of the same token


def closed_share(activations: Float32) -> Float64:
    """The share of inner dimensions that are nearly closed for each token: [..., inner] to [...], 0..1."""
    sizes = np.abs(activations)
    return np.asarray((sizes <= closed_limit(activations)[..., None]).mean(axis=-1), np.float64)


def closed_limit(activations: Float32) -> Float64:
    """The absolute activation up to which a dimension counts as nearly closed: [..., inner] to [...]."""
    return np.asarray(NEARLY_CLOSED * np.abs(activations).max(axis=-1).astype(np.float64), np.float64)


def strongest(products: Float32, count: int) -> tuple[int, ...]:
    """The inner dimensions [inner] with the largest absolute products, largest first."""
    return tuple(int(dimension) for dimension in np.argsort(-np.abs(products), kind="stable")[:count])


def half_from(products: Float32) -> int:
    """The smallest number of inner dimensions that hold half of the sum of squared products [inner]."""
    squares = np.sort(products.astype(np.float64) ** 2)[::-1]
    return int(np.searchsorted(np.cumsum(squares), squares.sum() / 2) + 1)
