"""Two runs on the same queries, each of which a run answers or not: the difference of their shares, and what is chance.

The interval is Tango's (1998, "Equivalence test and confidence interval for the difference in proportions for the
paired-sample design"): the differences from which the observed one is as far as 1.96 of their own standard errors. Unlike a
bootstrap it is never of width 0, and it needs only the numbers of queries that one run answers and the other does not.
The test is McNemar's exact one: among these queries, how often a split at least as uneven comes from tossing coins.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, exp, inf, lgamma, log, sqrt
from statistics import NormalDist

from components.retrieval.evaluation.metrics import Interval

_Z = NormalDist().inv_cdf(0.975)
_STEPS = 60  # halvings of an interval of width 2: below 1e-17


def difference(gained: int, lost: int, queries: int) -> Interval:
    """The difference of two shares with its 95 % interval, -1..1.

    `gained` queries only the first run answers, `lost` only the second, of `queries`. Raises ValueError if these are more
    than there are queries, or if there is none.
    """
    if queries < 1 or min(gained, lost) < 0 or gained + lost > queries:
        raise ValueError(f"{gained} and {lost} of {queries} queries: their sum must not be more, and none below 0")
    value = (gained - lost) / queries

    def distance(of: float) -> float:
        """How many standard errors the observed difference lies above a difference."""
        a = 2 * queries
        b = -gained - lost + (2 * queries - gained + lost) * of
        c = -lost * of * (1 - of)
        share = (sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)  # of queries that only the second answers, given `of`
        variance = queries * (2 * share + of * (1 - of))
        above = gained - lost - queries * of
        if variance > 0:
            return above / sqrt(variance)
        return copysign(inf, above) if above else 0.0

    low = _where(lambda of: distance(of) <= _Z, -1.0, value)
    high = _where(lambda of: distance(of) < -_Z, value, 1.0)
    return Interval(value, min(low, value), max(high, value))


def _where(is_beyond: Callable[[float], bool], low: float, high: float) -> float:
    """The number between `low` and `high` from which on `is_beyond` is true."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return high


def mcnemar(gained: int, lost: int) -> float:
    """The two-sided p-value of McNemar's exact test, 1 where no query tells the runs apart."""
    count = gained + lost
    if not count:
        return 1.0
    fewer = min(gained, lost)
    tail = sum(
        exp(lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1) - count * log(2)) for k in range(fewer + 1)
    )
    return min(1.0, 2 * tail)
