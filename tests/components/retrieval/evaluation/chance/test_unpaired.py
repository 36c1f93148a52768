"""Newcombe's interval and Fisher's test, against published values, scipy and computations of their own."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.optimize import brentq

from components.retrieval.evaluation.chance import unpaired
from tests.support.closeness import assert_close

Z = 1.959963984540054


def _wilson_ends(count: int, cases: int) -> tuple[float, float]:
    """The shares from which the observed one is Z of their own standard errors away, found by solving for them."""
    share = count / cases

    def distance(of: float) -> float:
        return (share - of) ** 2 - Z**2 * of * (1 - of) / cases

    low = 0.0 if count == 0 else brentq(distance, 1e-15, share * (1 - 1e-12))
    high = 1.0 if count == cases else brentq(distance, share + 1e-12, 1 - 1e-15)
    return low, high


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    # Newcombe 1998, table II, method 10.
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((10, 10, 0, 20), 0.6791, 1.0),
        ((10, 10, 0, 10), 0.6075, 1.0),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((0, 10, 0, 10), -0.2775, 0.2775),
    ],
)
def test_newcombes_interval_is_that_of_his_table(counts: tuple[int, int, int, int], low: float, high: float) -> None:
    found = unpaired.difference(*counts)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_newcombes_interval_follows_from_the_ends_of_both_shares() -> None:
    numbers = np.random.default_rng(0)
    for _ in range(50):
        n, m = (int(each) for each in numbers.integers(1, 200, size=2))
        a, b = int(numbers.integers(0, n + 1)), int(numbers.integers(0, m + 1))
        (l1, u1), (l2, u2), p, q = _wilson_ends(a, n), _wilson_ends(b, m), a / n, b / m
        found = unpaired.difference(a, n, b, m)
        assert_close(found.low, p - q - ((p - l1) ** 2 + (u2 - q) ** 2) ** 0.5, tolerance=1e-9)
        assert_close(found.high, p - q + ((u1 - p) ** 2 + (q - l2) ** 2) ** 0.5, tolerance=1e-9)
        assert -1 <= found.low <= found.value <= found.high <= 1


def test_fishers_p_value_adds_the_tables_that_are_no_more_probable() -> None:
    numbers = np.random.default_rng(1)
    for _ in range(30):
        n, m = (int(each) for each in numbers.integers(1, 40, size=2))
        a, b = int(numbers.integers(0, n + 1)), int(numbers.integers(0, m + 1))
        have = a + b
        ways = {k: comb(n, k) * comb(m, have - k) for k in range(max(0, have - m), min(n, have) + 1)}
        expected = sum(each for each in ways.values() if each <= ways[a]) / comb(n + m, have)
        assert_close(unpaired.fisher(a, n, b, m), expected, tolerance=1e-9)


@pytest.mark.parametrize("counts", [(0, 0, 1, 2), (3, 2, 0, 1), (-1, 2, 0, 1), (0, 1, 2, 1)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int, int]) -> None:
    for function in (unpaired.difference, unpaired.fisher):
        with pytest.raises(ValueError, match="two groups of cases were expected"):
            function(*counts)
