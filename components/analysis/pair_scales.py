"""The scales on which a cross-encoder's outputs are read: raw logits, sigmoid, or softmax over the labels.

The scoring head gives a logit z for each label, any real number. Two functions turn logits into numbers from 0 to 1:

    sigmoid(z) = 1 / (1 + exp(-z))          of each label alone: the usual choice for one label
    softmax(z)_i = exp(z_i) / sum_j exp(z_j)  all labels together sum to 1: the usual choice for several labels

Both keep the order of one label's logits in the first case; in the second, a label's share also depends on the others.

What they do not show: probabilities of being relevant. Numbers from 0 to 1 are called calibrated if of the pairs with 0.8
some 80 % are right; nothing in the training ensures that (Guo et al. 2017).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from components.arrays import Float64

Scale = Literal["logit", "sigmoid", "softmax"]
SCALES: tuple[Scale, ...] = ("logit", "sigmoid", "softmax")


def scales_for(labels: int) -> tuple[Scale, ...]:
    """The scales that say something for a head with this many labels: of one label, the softmax is always 1."""
    return ("logit", "sigmoid") if labels == 1 else ("logit", "softmax")


def on_scale(logits: np.ndarray, scale: Scale) -> Float64:
    """Logits [pair, label] on a scale, float64 [pair, label]."""
    z = np.asarray(logits, np.float64)
    if scale == "logit":
        return z
    if scale == "sigmoid":
        tail = np.exp(-np.abs(z))  # never overflows
        return np.where(z >= 0, 1 / (1 + tail), tail / (1 + tail))
    shares = np.exp(z - z.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)
