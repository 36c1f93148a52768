"""Measures for retrieval where correct answers are not graded, their intervals, and tests between runs.

Recall@k: the share of queries with a correct answer among the first k hits (also called accuracy@k and success@k; where
each query has one correct answer, it is the recall). MRR: the mean of 1 / rank of the first correct answer. nDCG@10: with
one correct answer the mean of 1 / log2(1 + rank) for ranks up to 10, since the ideal gain of one document is 1 (Jarvelin
and Kekalainen 2002); with several, of all of them (components.retrieval.evaluation.graded.metrics).

The interval of a share of queries (Recall@k) is Wilson's (1927), which Brown, Cai and DasGupta (2001, "Interval Estimation
for a Binomial Proportion") recommend for few queries: unlike a bootstrap, it is never of width 0 if all queries have one
result. Other measures get a seeded percentile bootstrap over queries (Efron 1979; Sakai 2006 for retrieval), but for 40
queries or fewer, and for equal values, Wilson's too: values between 0 and 1 with mean m vary by at most m (1 - m) (Bhatia
and Davis 2000), as a share does, so that it is then rather too wide than too narrow.

Two runs over the same queries are compared by a randomisation test (Smucker, Allan and Carterette 2007): the p-value is
how often a difference at least as large appears when each query's two results are swapped at random.

What they do not show: results for queries that are drawn in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from components.arrays import Float64, Int64, wilson
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.graded.ranks import RelevantRanks
from components.retrieval.evaluation.ranks import NOT_FOUND, inverse

# The rank of each query's correct answer [query], from 1 or NOT_FOUND; or where queries have several, those of all of them.
Ranks = Int64 | RelevantRanks

CUTOFFS = (1, 5, 10, 20, 50)
RESAMPLES = 1_000
LEVEL = 0.95
FEW_QUERIES = 40  # a bootstrap of fewer is too narrow; Brown, Cai and DasGupta (2001) draw the line for Wilson here too
ALPHA = 0.05  # p-values below count as significant
_AT_ONCE = 4_000_000  # numbers drawn together


@dataclass(frozen=True)
class Interval:
    """A mean over queries and its 95 % interval; 0..1, and -1..1 for a difference or a correlation."""

    value: float
    low: float
    high: float


def first_ranks(ranks: Ranks) -> Int64:
    """The rank of each query's first correct answer, int64 [query]."""
    return ranks.ranks[ranks.starts[:-1]] if isinstance(ranks, RelevantRanks) else ranks


def finds_nothing(ranks: Ranks) -> bool:
    """Whether no query finds a correct answer at all: of a word ranking, that none shares a word with one of its own."""
    return len(ranks) > 0 and bool((first_ranks(ranks) == NOT_FOUND).all())


def recall(ranks: Ranks, k: int) -> Float64:
    """1 for each query with a correct answer among the first k hits, else 0, float64 [query]."""
    if k < 1:
        raise ValueError(f"k is {k}, at least 1 was expected")
    return (first_ranks(ranks) <= k).astype(np.float64)


def reciprocal_rank(ranks: Ranks) -> Float64:
    """1 / rank of the first correct answer, float64 [query]; 0 where none is found."""
    return inverse(first_ranks(ranks))


def ndcg(ranks: Ranks, k: int = 10) -> Float64:
    """Discounted gain of the correct answers by that of the best order, float64 [query]; none beyond rank k."""
    if isinstance(ranks, RelevantRanks):
        return graded_metrics.ndcg(ranks, k)
    return np.where(ranks <= k, 1 / np.log2(1 + ranks.astype(np.float64)), 0.0)


def recall_curve(ranks: Ranks, most: int) -> Float64:
    """Recall@1 to Recall@most, float64 [most]."""
    counts = np.bincount(np.minimum(first_ranks(ranks), most + 1), minlength=most + 2)[1 : most + 1]
    return counts.cumsum() / max(1, len(ranks))


def precision_curve(ranks: Ranks, most: int) -> Float64:
    """The share of correct answers among the first 1 to `most` hits, float64 [most]; Recall@k / k with one correct answer."""
    every = ranks.ranks if isinstance(ranks, RelevantRanks) else ranks
    counts = np.bincount(np.minimum(every, most + 1), minlength=most + 2)[1 : most + 1]
    return counts.cumsum() / np.arange(1, most + 1) / max(1, len(ranks))


MEASURES: Mapping[str, Callable[[Ranks], Float64]] = {
    **{f"Recall@{k}": partial(recall, k=k) for k in CUTOFFS},
    "MRR": reciprocal_rank,
    "nDCG@10": ndcg,
}


def recall_band(ranks: Ranks, most: int) -> tuple[Float64, Float64]:
    """The 95 % interval of each point of the recall curve, two float64 [most]. Raises ValueError without a query."""
    return wilson(recall_curve(ranks, most), len(ranks))


def holm(p_values: Sequence[float], among: int | None = None) -> list[float]:
    """p-values of several comparisons, adjusted to limit the chance of any false positive (Holm 1979).

    `among` is the number of comparisons from which these were selected, by default their own number. Comparing k runs with
    the best of them involves all k (k - 1) / 2 pairs, since the best was found on the same queries. Raises ValueError for
    fewer comparisons than p-values.
    """
    tests = len(p_values) if among is None else among
    if tests < len(p_values):
        raise ValueError(f"{len(p_values)} comparisons of {tests}")
    adjusted, highest = [0.0] * len(p_values), 0.0
    for order, test in enumerate(np.argsort(p_values, kind="stable")):
        highest = max(highest, min(1.0, (tests - order) * p_values[test]))
        adjusted[test] = highest
    return adjusted


def shown_p(value: float, raw: float, resamples: int = 10 * RESAMPLES) -> str:
    """An adjusted p-value as text; where the test's own p-value (`raw`) is its smallest possible one, an upper bound."""
    number = f"{value:.3f}" if value >= 0.001 else f"{value:.4f}"
    return f"< {number}" if raw <= 1.5 / (resamples + 1) and value < 1 else number


def interval(values: Float64, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The mean of per-query values 0..1 with its 95 % interval. Raises ValueError without a query."""
    if not len(values):
        raise ValueError("no query to take a mean of")
    mean = float(values.mean())
    is_share = bool(np.isin(values, (0.0, 1.0)).all())
    if is_share or len(values) <= FEW_QUERIES or np.ptp(values) == 0:
        low, high = wilson(np.array([mean]), len(values))
        return Interval(mean, float(low[0]), float(high[0]))
    return _bootstrapped(values, seed, resamples)


def difference_interval(differences: Float64, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The mean of paired differences per query, -1..1, with its 95 % bootstrap interval. Raises ValueError without a query.

    Wilson's interval is for values between 0 and 1.
    """
    if not len(differences):
        raise ValueError("no query to take a mean of")
    return _bootstrapped(differences, seed, resamples)


def _bootstrapped(values: Float64, seed: int, resamples: int) -> Interval:
    mean = float(values.mean())
    # To draw queries with replacement is to draw how many of them have each value: one multinomial draw per resample.
    distinct, counts = np.unique(values, return_counts=True)
    numbers, means = np.random.default_rng(seed), np.empty(resamples)
    step = max(1, _AT_ONCE // len(distinct))
    for start in range(0, resamples, step):
        drawn = numbers.multinomial(len(values), counts / len(values), size=min(step, resamples - start))
        means[start : start + len(drawn)] = drawn @ distinct / len(values)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(mean, float(low), float(high))


def randomisation_test(first: Float64, second: Float64, seed: int = 0, resamples: int = 10 * RESAMPLES) -> float:
    """Two-sided p-value of the difference between two runs' means over the same queries, [query] each.

    Never 0: with n swaps the smallest is 1 / (n + 1). Raises ValueError for runs with different numbers of queries.
    """
    if len(first) != len(second) or not len(first):
        raise ValueError(f"{len(first)} and {len(second)} queries: equal numbers above 0 were expected")
    differences = first - second
    differences = differences[differences != 0]  # a swap of equal results changes nothing
    observed_sum = float(differences.sum())
    numbers = np.random.default_rng(seed)
    as_large, step = 0, max(1, _AT_ONCE // max(1, len(differences)))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        bits = np.frombuffer(numbers.bytes(-(-count * len(differences) // 8)), np.uint8)
        swapped = np.unpackbits(bits, count=count * len(differences)).reshape(count, len(differences))
        sums = observed_sum - 2 * (swapped.astype(np.float64) @ differences)
        as_large += int(np.count_nonzero(np.abs(sums) >= abs(observed_sum) - 1e-9))
    return (as_large + 1) / (resamples + 1)


def summary(ranks: Ranks, cutoffs: Sequence[int] = CUTOFFS) -> dict[str, object]:
    """Recall at the cut-offs, MRR and nDCG@10, in per cent with two decimals, and the number of queries."""

    def per_cent(values: Float64) -> float:
        return round(100 * float(values.mean()), 2)

    return {
        "recall": {str(k): per_cent(recall(ranks, k)) for k in cutoffs},
        "mrr": per_cent(reciprocal_rank(ranks)),
        "ndcg@10": per_cent(ndcg(ranks)),
        "n": len(ranks),
    }
