"""Fusion: one ranking out of two or three, by the sum of a term for each.

- Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): weight / (k + rank), k = 60. Only the ranks count. A run that
  did not rank a text adds nothing to it.
- Weighted sums (Fox and Shaw 1994; Bruch, Gai and Ingber 2023): weight x normalised score, over all texts of a query:
  (score - lowest) / (highest - lowest), or (score - mean) / standard deviation. A run that gives every text the same score
  adds 0. A text that a run did not rank counts as having the run's lowest score.

Ties follow the rule of components.retrieval.evaluation.ranks: of texts with equal scores each has the last rank of them, and a
text in which a word ranking finds nothing of the query has none. A run of weight 0 is left out; where one run is left, the
result is that run itself.

What it does not show: whether a sum suits runs whose scores mean different things. Min-max and z only give them one range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float64, Int64
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.search.exact import SAME

Method = Literal["rrf", "minmax", "z"]
METHODS: tuple[Method, ...] = get_args(Method)
RRF_K = 60


@dataclass(frozen=True, eq=False)
class RunScores:
    """What one run says of all texts for some queries."""

    scores: Float64  # [query, text], the higher the better; every one finite
    is_ranked: NDArray[np.bool_]  # [query, text]; a word ranking does not rank a text without a word of the query
    tied: float = SAME  # a score is equal to those that are lower by at most this, or by this share of a larger one

    @cached_property
    def _ranked(self) -> tuple[Int64, Float64]:
        ranks, lowest = np.empty(self.scores.shape, np.int64), np.empty(self.scores.shape)
        for query, scores in enumerate(self.scores):
            rising = np.sort(scores)
            places = np.searchsorted(rising, scores - self.tied * np.maximum(1.0, np.abs(scores)))
            ranks[query], lowest[query] = len(scores) - places, rising[places]
        return np.where(self.is_ranked, ranks, NOT_FOUND), lowest

    @property
    def ranks(self) -> Int64:
        """The rank of every text from 1, [query, text]: of a tie the last one; NOT_FOUND for what is not ranked."""
        return self._ranked[0]

    @property
    def settled(self) -> Float64:
        """The scores [query, text], of a tie the lowest one, so that equal texts stay equal in a sum."""
        return self._ranked[1]

    @property
    def completed(self) -> Float64:
        """The settled scores [query, text], where a text that is not ranked has the lowest score of all."""
        return np.where(self.is_ranked, self.settled, self.settled.min(axis=1, keepdims=True))

    @property
    def is_flat(self) -> NDArray[np.bool_]:
        """Whether all texts have one score [query], so that the run prefers none."""
        return np.ptp(self.completed, axis=1) == 0

    def first(self, depth: int | None) -> RunScores:
        """The same run with only its first `depth` texts ranked; a tie that does not fit whole is left out whole."""
        if depth is None:
            return self
        return RunScores(self.scores, self.ranks <= depth, self.tied)


@dataclass(frozen=True)
class Fusion:
    """How runs are put together. Raises ValueError for weights below 0, or without one above 0."""

    method: Method = "rrf"
    weights: tuple[float, ...] = (1.0, 1.0)  # [run]
    rank_constant: int = RRF_K  # k of reciprocal rank fusion
    depth: int | None = None  # how many texts of each run count; None for all

    def __post_init__(self) -> None:
        if not all(np.isfinite(weight) and weight >= 0 for weight in self.weights) or not any(self.weights):
            raise ValueError(f"weights of at least 0, and one above, were expected, not {self.weights}")

    def of(self, runs: Sequence[RunScores]) -> RunScores:
        """The runs as one run. Raises ValueError for another number of runs than of weights."""
        counting = [run for run, weight in zip(runs, self.weights, strict=True) if weight]
        if len(counting) == 1:
            return counting[0].first(self.depth)
        is_ranked = np.logical_or.reduce([run.first(self.depth).is_ranked for run in counting])
        sums = self.terms(runs).sum(axis=0)
        return RunScores(np.where(is_ranked, sums, sums.min(axis=1, keepdims=True) - 1), is_ranked)

    def terms(self, runs: Sequence[RunScores]) -> Float64:
        """What each run adds to each text, float64 [run, query, text]."""
        first_texts = [run.first(self.depth) for run in runs]
        if self.method == "rrf":
            return np.array(
                [
                    reciprocal_ranks(run.ranks, weight, self.rank_constant)
                    for run, weight in zip(first_texts, self.weights, strict=True)
                ]
            )
        return np.array(
            [weight * _normalised(run, self.method) for run, weight in zip(first_texts, self.weights, strict=True)]
        )


def weighted(
    words: float, kinds: int = 1, method: Method = "minmax", depth: int | None = None, rank_constant: int = RRF_K
) -> Fusion:
    """Vectors and rankings by words, of so many kinds, by scores, or by reciprocal ranks with weights.

    `words` is the weight that the words have together, in equal shares: from 0 (vectors alone) to 1 (words alone).
    """
    return Fusion(method, (1 - words, *(words / kinds,) * kinds), rank_constant, depth)


def reciprocal_ranks(ranks: Int64, weight: float = 1.0, k: int = RRF_K) -> Float64:
    """weight / (k + rank), float64 with the shape of `ranks`; 0 for NOT_FOUND."""
    return np.where(ranks == NOT_FOUND, 0.0, weight / (k + ranks.astype(np.float64)))


def _normalised(run: RunScores, method: Method) -> Float64:
    """The scores of each query on one scale, float64 [query, text]; 0 where all are equal."""
    scores, is_flat = run.completed, run.is_flat[:, None]
    if method == "minmax":
        start, width = scores.min(axis=1, keepdims=True), np.ptp(scores, axis=1, keepdims=True)
    else:
        start, width = scores.mean(axis=1, keepdims=True), scores.std(axis=1, keepdims=True)
    return np.where(is_flat, 0.0, (scores - start) / np.where(is_flat, 1.0, width))
