"""Inner dimensions that are nearly closed: for each token the share of those that take no part.

A gate near 0 closes its dimension: whatever the other projection gives, nothing of it is added. Without gates, an activation
near 0 does the same. So does what GELU or SiLU makes of a negative input: a little below 0, however far below the input is.
Activations of a trained model are often sparse in this sense (Li et al. 2023, "The Lazy Neuron Phenomenon"); with ReLU they
are 0 exactly, with GELU or SiLU only nearly.
"""

from __future__ import annotations

import numpy as np

from components.arrays import Float32, Float64

NEARLY_CLOSED = 0.05  # of the largest absolute activation of the same token
LOWEST = 0.28  # GELU gives at least −0.17, SiLU at least −0.28


def closed_share(activations: Float32) -> Float64:
    """The share of inner dimensions that are nearly closed for each token: [..., inner] to [...], 0..1."""
    limit = closed_limit(activations)[..., None]
    closed = (activations <= limit) & (activations >= -np.maximum(limit, LOWEST))
    return np.asarray(closed.mean(axis=-1), np.float64)


def closed_limit(activations: Float32) -> Float64:
    """The activation up to which a dimension counts as nearly closed: [..., inner] to [...]."""
    return np.asarray(NEARLY_CLOSED * np.abs(activations).max(axis=-1).astype(np.float64), np.float64)
