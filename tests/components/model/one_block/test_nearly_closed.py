"""The share of nearly closed inner dimensions, by hand."""

from __future__ import annotations

import numpy as np

from components.model.one_block import nearly_closed


def test_nearly_closed_is_a_share_of_the_largest_of_the_same_token():
    activations = np.array([[20.0, 1.0, -1.0, 1.1], [-200.0, 9.0, 11.0, 0.0]], np.float32)
    assert nearly_closed.closed_limit(activations).tolist() == [1.0, 10.0]
    assert nearly_closed.closed_share(activations).tolist() == [0.5, 0.5]
    assert nearly_closed.closed_share(np.zeros((3, 4), np.float32)).tolist() == [1, 1, 1]


def test_what_gelu_makes_of_negative_inputs_takes_no_part():
    activations = np.array([1.7, 0.09, 0.08, -0.17, -0.16, -0.5], np.float32)  # none of GELU's is as low as the last
    assert nearly_closed.closed_share(activations) == 3 / 6
