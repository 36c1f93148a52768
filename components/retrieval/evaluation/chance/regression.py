"""Whether a run is significantly worse than a recorded one on the same queries: a test for every change of a search.

Recall@1 is compared by McNemar's exact test, MRR by a randomisation test over queries with one seed, and both p-values are
adjusted by Holm's method, since either may fail the run. It is worse if a measure has fallen with an adjusted p-value below
0.05.

What it does not show: that a run is as good. Few queries show only large losses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.retrieval.evaluation.chance.paired import mcnemar
from components.retrieval.evaluation.metrics import ALPHA, Ranks, first_ranks, holm, randomisation_test, reciprocal_rank


@dataclass(frozen=True)
class Regression:
    """A run against an earlier one; measures from 0 to 1."""

    recall_before: float  # Recall@1
    recall: float
    gained: int  # queries whose correct answer is first now, and was not
    lost: int
    p_recall: float  # adjusted
    mrr_before: float
    mrr: float
    p_mrr: float  # adjusted

    @property
    def is_worse(self) -> bool:
        has_lost_recall = self.lost > self.gained and self.p_recall < ALPHA
        return has_lost_recall or (self.mrr < self.mrr_before and self.p_mrr < ALPHA)


def compared(before: Ranks, now: Ranks, seed: int = 0) -> Regression:
    """A run against an earlier one, by the ranks of the same queries. Raises ValueError for other numbers of queries."""
    if len(before) != len(now):
        raise ValueError(f"{len(before)} queries before and {len(now)} now: the same were expected")
    was_first, is_first = first_ranks(before) == 1, first_ranks(now) == 1
    gained, lost = int(np.sum(is_first & ~was_first)), int(np.sum(was_first & ~is_first))
    old, new = reciprocal_rank(before), reciprocal_rank(now)
    p_recall, p_mrr = holm([mcnemar(gained, lost), randomisation_test(old, new, seed)])
    return Regression(
        float(was_first.mean()),
        float(is_first.mean()),
        gained,
        lost,
        p_recall,
        float(old.mean()),
        float(new.mean()),
        p_mrr,
    )
