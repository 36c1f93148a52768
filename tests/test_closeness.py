"""What counts as the same float32 numbers, and what is said of those that are not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support.closeness import assert_close


def test_what_another_order_of_a_sum_changes_passes() -> None:
    numbers = np.random.default_rng(0).normal(size=(3, 400)).astype(np.float32)
    turned = [sum(row[::-1], np.float32(0)) for row in numbers]
    assert_close(turned, numbers.sum(axis=1))
    assert_close(torch.tensor(numbers, requires_grad=True), numbers.astype(np.float64) + 4e-6)
    assert_close(numbers / numbers, 1)  # one number for all
    assert_close(100_000 * numbers + 1, 100_000 * numbers)  # of the largest number, as float32 rounds
    assert_close([1, None, float("-inf")], np.array([1, np.nan, -np.inf], np.float32))
    assert_close(np.zeros((0, 3)), np.zeros((0, 3)))
    assert_close(2, 2.000001)


@pytest.mark.parametrize(
    ("actual", "expected", "told"),
    [
        (
            [[0.5, 0.1], [0.2, 0.30001]],
            [[0.5, 0.100002], [0.2, 0.3]],
            r"0\.30001, expected 0\.3, at \[1, 1\].*1e-05 .*5e-06",
        ),
        (0.00001, 0, r"at \[\]"),
        (-100.002, -100, "difference of 0.002 where 0.0005 is allowed"),
        ([1, 1], [[1, 1]], r"shape \(2,\), expected \(1, 2\)"),
        ([1, 1], [1], r"shape \(2,\), expected \(1,\)"),
        (1, [1, 1], r"shape \(\), expected \(2,\)"),
        ([1, float("nan")], [1, 1], r"nan, expected 1, at \[1\]"),
        ([1, 1], [float("nan"), 1], r"1, expected nan, at \[0\]"),
        ([float("inf"), 1], [float("-inf"), 1], r"inf, expected -inf, at \[0\]"),
        ([float("inf"), 1], [1e30, 1], r"inf, expected 1e\+30, at \[0\]"),
    ],
    ids=lambda value: None,
)
def test_anything_else_fails_and_says_where(actual: object, expected: object, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_close(actual, expected)


def test_another_tolerance_and_a_name() -> None:
    assert_close(0.5, 0.5009, 1e-3)
    with pytest.raises(AssertionError, match=r"layer 2: 0\.5, expected"):
        assert_close(0.5, 0.5011, 1e-3, "layer 2")
