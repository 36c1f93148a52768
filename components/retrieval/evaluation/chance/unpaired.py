"""Two groups of different cases, each of which has a property or not: the difference of their shares, and what is chance.

The interval is Newcombe's (1998, "Interval estimation for the difference between independent proportions", method 10): the
distances from each share to the ends of its own Wilson interval, added as squares. It stays within -1 and 1, and has a
width also where a share is 0 or 1. The test is Fisher's exact one: with the numbers of cases of both groups, and of those
that have the property, held fixed, how often chance alone gives a table that is no more probable than this one.
"""

from __future__ import annotations

import numpy as np

from components.arrays import wilson
from components.retrieval.evaluation.metrics import Interval


def difference(first: int, first_cases: int, second: int, second_cases: int) -> Interval:
    """The first group's share minus the second's with its 95 % interval, -1..1.

    `first` of `first_cases` have the property, and `second` of `second_cases`. Raises ValueError without a case in one of
    the groups, and for more cases with the property than there are.
    """
    _check(first, first_cases, second, second_cases)
    one, other = first / first_cases, second / second_cases
    (low_one,), (high_one,) = wilson(np.array([one]), first_cases)
    (low_other,), (high_other,) = wilson(np.array([other]), second_cases)
    value = one - other
    below = float(np.hypot(one - low_one, high_other - other))
    above = float(np.hypot(high_one - one, other - low_other))
    return Interval(value, value - below, value + above)


def fisher(first: int, first_cases: int, second: int, second_cases: int) -> float:
    """The two-sided p-value of Fisher's exact test, with the arguments of `difference`. Raises ValueError as it does."""
    from scipy.stats import fisher_exact

    _check(first, first_cases, second, second_cases)
    table = [[first, first_cases - first], [second, second_cases - second]]
    return float(fisher_exact(table).pvalue)


def _check(first: int, first_cases: int, second: int, second_cases: int) -> None:
    if min(first_cases, second_cases) < 1 or not (0 <= first <= first_cases and 0 <= second <= second_cases):
        raise ValueError(f"{first} of {first_cases} and {second} of {second_cases}: two groups of cases were expected")
