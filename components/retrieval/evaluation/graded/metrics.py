"""Retrieval measures where a query has many relevant documents of several grades, from their ranks alone.

For all but nDCG, a grade of 1 or more means relevant. Values equal those of trec_eval for the same rankings (Voorhees
and Harman 2005; Manning, Raghavan and Schütze 2008, chapter 8). Intervals and paired tests over the values per query:
components.retrieval.evaluation.metrics.

What they do not show: whether documents that nobody judged are relevant; they count as not relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float64, Int64
from components.retrieval.evaluation.graded.ranks import RelevantRanks
from components.retrieval.evaluation.ranks import NOT_FOUND, inverse

LEVELS = 11  # recall 0.0, 0.1, ... 1.0


def average_precision(relevant: RelevantRanks) -> Float64:
    """The mean, over a query's relevant documents, of the precision at their ranks, float64 [query].

    Its mean over queries is MAP (Manning, Raghavan and Schütze 2008, section 8.4), which measures the whole ranking with
    most weight on its beginning. 0 for a query without a relevant document.
    """
    return _sums(relevant, _precisions(relevant)) / np.maximum(_sizes(relevant), 1)


def reciprocal_rank(relevant: RelevantRanks) -> Float64:
    """1 / rank of the first relevant document, float64 [query] (Voorhees 1999); 0 where there is none or it is not found."""
    values = np.zeros(len(relevant))
    some = _sizes(relevant) > 0
    values[some] = inverse(relevant.ranks[relevant.starts[:-1][some]])
    return values


def ndcg(relevant: RelevantRanks, k: int = 10) -> Float64:
    """Discounted gain of the first k divided by that of the best possible order, float64 [query].

    The gain of a document is its grade, divided by log2(1 + rank); the ideal has all judged documents of the query,
    highest grade first, up to rank k as well (Järvelin and Kekäläinen 2002, with the discount in use since Burges et al.
    2005; not their gain of 2^grade - 1). 0 where nothing is relevant.
    """
    queries = _queries(relevant)
    best = np.lexsort((-relevant.grades, queries))
    ideal = _gains(relevant, relevant.grades[best], _positions(relevant), k)
    return _gains(relevant, relevant.grades, relevant.ranks, k) / np.where(ideal == 0, 1, ideal)


def precision(relevant: RelevantRanks, k: int = 10) -> Float64:
    """The share of the first k that is relevant, float64 [query]; below 1 where fewer than k documents are relevant."""
    return _sums(relevant, relevant.ranks <= _cut(k)) / k


def recall(relevant: RelevantRanks, k: int = 100) -> Float64:
    """The share of a query's relevant documents among the first k, float64 [query]; 0 where there are none."""
    return _sums(relevant, relevant.ranks <= _cut(k)) / np.maximum(_sizes(relevant), 1)


def interpolated_precision(relevant: RelevantRanks) -> Float64:
    """The best precision at any rank with at least this recall, float64 [query, level of recall 0.0, 0.1, .. 1.0].

    The mean over queries is the 11-point precision-recall curve (Manning, Raghavan and Schütze 2008, section 8.4).
    In a few cases trec_eval's rounding takes one document less than the recall needs, such as 2 of 3 for 0.7.
    """
    sizes = _sizes(relevant)
    values = np.zeros((len(relevant), LEVELS))
    best = _precisions(relevant)
    # The best from here on: from a query's last relevant document back to its first.
    for length in range(1, int(sizes.max(initial=0))):
        rows = (relevant.starts[1:] - 1 - length)[sizes > length]
        best[rows] = np.maximum(best[rows], best[rows + 1])
    some = sizes > 0
    for level in range(LEVELS):
        # The recall of level / 10 needs this many documents; in whole numbers, since 0.3 * 10 is less than 3.
        needed = np.maximum(-(-level * sizes[some] // (LEVELS - 1)), 1)
        values[some, level] = best[relevant.starts[:-1][some] + needed - 1]
    return values


MEASURES: Mapping[str, Callable[[RelevantRanks], Float64]] = MappingProxyType(
    {
        "nDCG@10": ndcg,  # first: the only one that uses the grades
        "MRR": reciprocal_rank,
        "P@10": precision,
        "Recall@10": lambda relevant: recall(relevant, 10),
        "Recall@100": recall,
        "MAP": average_precision,
    }
)


def graded_summary(relevant: RelevantRanks) -> dict[str, Any]:
    """Means over queries in per cent with two decimals, and the number of queries. Raises ValueError without one."""
    if not len(relevant):
        raise ValueError("no query to take a mean of")
    means = {name: round(100 * float(measure(relevant).mean()), 2) for name, measure in MEASURES.items()}
    return {
        "map": means["MAP"],
        "mrr": means["MRR"],
        "ndcg@10": means["nDCG@10"],
        "p@10": means["P@10"],
        "recall": {"10": means["Recall@10"], "100": means["Recall@100"]},
        "precision_at_recall": (100 * interpolated_precision(relevant).mean(axis=0)).round(2).tolist(),  # 0, 0.1, .. 1
        "n": len(relevant),
    }


def _cut(k: int) -> int:
    if k < 1:
        raise ValueError(f"k is {k}, at least 1 was expected")
    return k


def _sizes(relevant: RelevantRanks) -> Int64:
    """Relevant documents of each query, int64 [query]."""
    return np.diff(relevant.starts)


def _queries(relevant: RelevantRanks) -> Int64:
    """The query of each judgement, int64 [judged]."""
    return np.repeat(np.arange(len(relevant)), _sizes(relevant))


def _positions(relevant: RelevantRanks) -> Int64:
    """The position among the query's relevant documents, from 1, int64 [judged]."""
    return np.arange(1, len(relevant.ranks) + 1) - np.repeat(relevant.starts[:-1], _sizes(relevant))


def _precisions(relevant: RelevantRanks) -> Float64:
    """The precision at the rank of each relevant document, float64 [judged]; 0 for one that is not found."""
    return np.where(relevant.ranks == NOT_FOUND, 0.0, _positions(relevant) / relevant.ranks)


def _sums(relevant: RelevantRanks, values: NDArray[Any]) -> Float64:
    """The sum of values [judged] over each query, float64 [query]."""
    return np.bincount(_queries(relevant), weights=values, minlength=len(relevant)).astype(np.float64)


def _gains(relevant: RelevantRanks, grades: Int64, ranks: Int64, k: int) -> Float64:
    """Discounted gain of grades at ranks up to k, float64 [query]."""
    return _sums(relevant, np.where(ranks <= _cut(k), grades / np.log2(1 + ranks), 0))
