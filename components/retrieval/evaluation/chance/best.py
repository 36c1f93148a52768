"""Which of several candidates may be the best, how often each is first, and how much choosing the best flatters it.

The candidates were measured on the same queries, and other queries would have given other values. Queries are drawn anew,
with replacement, and every candidate is measured on each draw. A candidate *may be the best* if its distance to every other
one is no larger than distances that such draws produce by chance: the largest one over all others, in 95 of 100 draws
(simultaneous comparison with the best: Hsu 1981; Mogstad, Romano, Shaikh and Wilhelm 2024, by resampling).

Choosing flatters: the best of many on some queries is partly the luckiest on them. The queries are halved at random, the
best candidate is chosen on one half and measured on both; the mean difference is what choosing on half of the queries adds.

What it does not show: what other kinds of queries would give. With all queries the choice flatters less than with half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float64

DRAWS, HALVES = 2_000, 1_000
LEVEL = 0.95
_SAME = 1e-12  # means within this are equal: the same values, added in another order
_AT_ONCE = 4_000_000  # numbers drawn together


@dataclass(frozen=True, eq=False)
class BestOf:
    """Candidates compared with the best of them."""

    means: Float64  # [candidate], over all queries
    first: (
        Float64  # [candidate]: the share of draws in which it is first; candidates that are first together share a draw
    )
    may_be_best: np.ndarray  # bool [candidate]
    chosen_half: float  # the mean of the candidate that is best on a half of the queries, on this half
    other_half: float  # the same candidate's on the other half

    @property
    def flatters(self) -> float:
        """By how much a candidate that was chosen on some queries does better on them than on others."""
        return self.chosen_half - self.other_half


def best_of(values: Float64, seed: int = 0, draws: int = DRAWS, halves: int = HALVES) -> BestOf:
    """Compare candidates by their values [candidate, query], higher is better.

    With a single query nothing can be halved: both halves are the query. Raises ValueError without a candidate or a query.
    """
    candidates, queries = values.shape
    if not candidates or not queries:
        raise ValueError(f"{candidates} candidates and {queries} queries: at least one of both was expected")
    numbers = np.random.default_rng(seed)
    means = values.mean(axis=1)
    drawn = np.empty((draws, candidates))  # the means of each draw
    step = max(1, _AT_ONCE // queries)
    for start in range(0, draws, step):
        count = min(step, draws - start)
        counts = numbers.multinomial(queries, np.full(queries, 1 / queries), size=count)  # [draw, query]
        drawn[start : start + count] = counts @ values.T / queries
    is_first = drawn >= drawn.max(axis=1, keepdims=True) - _SAME
    first = (is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0)
    may_be_best = np.array([_may_be_best(drawn, means, candidate) for candidate in range(candidates)])
    chosen, other = _halved(values, numbers, halves)
    return BestOf(means, first, may_be_best, chosen, other)


def _may_be_best(drawn: Float64, means: Float64, candidate: int) -> bool:
    """Whether no candidate is further above this one than draws of the queries explain; `drawn` [draw, candidate]."""
    gaps = means - means[candidate]
    by_chance = (drawn - drawn[:, [candidate]] - gaps).max(axis=1)
    return bool(gaps.max() <= np.quantile(by_chance, LEVEL) + _SAME)


def _halved(values: Float64, numbers: np.random.Generator, halves: int) -> tuple[float, float]:
    """The mean of the candidate that is best on one half of the queries, on this half and on the other one."""
    queries = values.shape[1]
    if queries < 2:
        highest = float(values.max())
        return highest, highest
    on_chosen, on_other = np.empty(halves), np.empty(halves)
    for number in range(halves):
        order = numbers.permutation(queries)
        one, other = order[: queries // 2], order[queries // 2 :]
        of_one = values[:, one].mean(axis=1)
        best = numbers.choice(np.flatnonzero(of_one >= of_one.max() - _SAME))
        on_chosen[number], on_other[number] = of_one[best], values[best, other].mean()
    return float(on_chosen.mean()), float(on_other.mean())
