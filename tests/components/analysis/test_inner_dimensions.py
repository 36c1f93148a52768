"""Inner dimensions of a feed-forward part, by hand."""

from __future__ import annotations

import numpy as np

from components.analysis import inner_dimensions


def test_nearly_closed_is_a_share_of_the_largest_of_the_same_token():
    activations = np.array([[20.0, 1.0, -1.0, 1.1], [-200.0, 9.0, 11.0, 0.0]], np.float32)
    assert inner_dimensions.closed_limit(activations).tolist() == [1.0, 10.0]
    assert inner_dimensions.closed_share(activations).tolist() == [0.5, 0.5]
    assert inner_dimensions.closed_share(np.zeros((3, 4), np.float32)).tolist() == [1, 1, 1]


def test_the_strongest_by_size_without_the_sign():
    products = np.array([0.5, -3.0, 0.0, 3.0, 1.0], np.float32)
    assert inner_dimensions.strongest(products, 3) == (1, 3, 4)
    assert inner_dimensions.strongest(products, 9) == (1, 3, 4, 0, 2)


def test_how_many_hold_half():
    assert inner_dimensions.half_from(np.array([1.0, 1.0, 1.0, 1.0], np.float32)) == 2
    assert inner_dimensions.half_from(np.array([0.1, -5.0, 0.2], np.float32)) == 1
