"""The weight of a fusion chosen on one half of the queries and measured on the other.

The best of several weights is found on the same queries on which it is reported: its value flatters it. So queries are split
in two by lot (seeded); the weight with the best mean on the first half is measured on the second, with an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.arrays import Float64
from components.retrieval.evaluation.metrics import Interval, interval

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the words


@dataclass(frozen=True)
class ChosenWeight:
    """A weight and what it is worth on queries that did not choose it."""

    place: int  # the number of the weight
    chosen_on: float  # its mean on the half that chose it, 0..1
    measured: Interval  # its mean on the other half
    first_alone: Interval  # the mean of the first weight (vectors alone) on that other half


def chosen_weight(values: Sequence[Float64], seed: int = 0) -> ChosenWeight | None:
    """The first of the best weights on one half of the queries; None for fewer than 4 queries.

    `values` [weight][query] are a measure's values 0..1 by query.
    """
    of = np.array(values)
    if of.shape[1] < 4:
        return None
    order = np.random.default_rng(seed).permutation(of.shape[1])
    choosing, other = order[: len(order) // 2], order[len(order) // 2 :]
    means = of[:, choosing].mean(axis=1)
    place = int(np.flatnonzero(means >= means.max() - 1e-12)[0])
    return ChosenWeight(place, float(means[place]), interval(of[place, other]), interval(of[0, other]))
