"""Collapse, overfitting and divergence, recognised from numbers."""

from __future__ import annotations

import math

import pytest

from components.training.notices import is_collapsed, is_diverged, is_overfitting


@pytest.mark.parametrize(
    ("cosines", "expected"),
    [
        ([0.1, 0.4, 0.97], True),
        ([0.1, 0.4, 0.9], False),  # not yet
        ([0.97, 0.97, 0.98], False),  # it was so before training
        ([0.93, 0.96], False),  # hardly more than before
        ([0.99], False),
        ([0.1, 0.99, 0.5], False),  # it has recovered
        ([0.1, math.nan], False),
        ([], False),
    ],
)
def test_collapse(cosines, expected):
    assert is_collapsed(cosines) is expected


FALLING = [1.0, 0.8, 0.6, 0.4, 0.3, 0.2]


@pytest.mark.parametrize(
    ("validation", "training", "expected"),
    [
        ([1.0, 0.7, 0.8, 0.9, 1.0, 1.1], FALLING, True),
        ([1.0, 0.7, 0.8, 0.9], FALLING[:4], False),  # two evaluations are not enough
        ([1.0, 0.7, 0.701, 0.702, 0.703, 0.704], FALLING, False),  # within the tolerance
        ([1.0, 0.7, 0.9, 0.9, 0.85, 0.8], FALLING, False),  # falling again
        ([1.0, 0.7, 0.8, 0.9, 1.0, 1.1], FALLING[::-1], False),  # both rise: not learned by heart
        ([1.0, 0.7, 0.8, 0.9, 1.0, 1.1], [1.0, 0.3, 0.4, 0.5, 0.6, 0.7], False),  # rising since, if lower than at first
        ([1.0, 0.9, 0.8, 0.7, 0.6, 0.5], FALLING, False),
        ([1.0, 0.7, math.nan, 0.9, 1.0, 1.1], FALLING, False),
        ([], [], False),
    ],
)
def test_overfitting(validation, training, expected):
    assert is_overfitting(validation, training) is expected


def test_lists_of_different_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="2 validation losses and 1 training"):
        is_overfitting([1.0, 2.0], [1.0])


def test_divergence():
    assert [is_diverged(loss) for loss in (0.0, 1e30, math.inf, math.nan)] == [False, False, True, True]
