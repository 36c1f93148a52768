"""Inner dimensions of a feed-forward part: which give most for a token, and how many hold half of what is given.

What it does not show: what a dimension stands for, and how long the vector is that it adds, which also depends on its row of
the last matrix.
"""

from __future__ import annotations

import numpy as np

from components.arrays import Float32


def strongest(products: Float32, count: int) -> tuple[int, ...]:
    """The inner dimensions [inner] with the largest absolute products, largest first."""
    return tuple(int(dimension) for dimension in np.argsort(-np.abs(products), kind="stable")[:count])


def half_from(products: Float32) -> int:
    """The smallest number of inner dimensions that hold half of the sum of squared products [inner]."""
    squares = np.sort(products.astype(np.float64) ** 2)[::-1]
    return int(np.searchsorted(np.cumsum(squares), squares.sum() / 2) + 1)
