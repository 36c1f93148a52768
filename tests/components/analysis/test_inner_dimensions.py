"""Inner dimensions of a feed-forward part, by hand."""

from __future__ import annotations

import numpy as np

from components.analysis import inner_dimensions


def test_the_strongest_by_size_without_the_sign():
    products = np.array([0.5, -3.0, 0.0, 3.0, 1.0], np.float32)
    assert inner_dimensions.strongest(products, 3) == (1, 3, 4)
    assert inner_dimensions.strongest(products, 9) == (1, 3, 4, 0, 2)


def test_how_many_hold_half():
    assert inner_dimensions.half_from(np.array([1.0, 1.0, 1.0, 1.0], np.float32)) == 2
    assert inner_dimensions.half_from(np.array([0.1, -5.0, 0.2], np.float32)) == 1
