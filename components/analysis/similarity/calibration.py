"""What a cosine means in a model: the share of unrelated pairs that are less similar.

A cosine of 0.6 is high for one model, layer and pooling and low for another, because hidden states fill a narrow cone
(Ethayarajh 2019). The share of unrelated pairs with a lower cosine has the same meaning everywhere: 0.5 is an ordinary
pair, and 0.99 is one that few unrelated pairs reach.

The share is an estimate from a sample. Its pairs have sentences in common and are not independent, so that the usual
interval for a proportion would be too narrow: the variance of the share counts every sentence once (Aronow, Samii and
Assenova 2015, "Cluster-Robust Variance Estimation for Dyadic Data", equation 3). The interval is then Wilson's (1927)
for as many independent pairs as give that variance.

It does not show whether two texts mean the same: texts on one subject, or with the same words, lie above most unrelated
pairs too. It holds for texts like those of the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from components.arrays import Float32, Float64, Int64, read_only, unit, wilson
from components.numbers import number


@dataclass(frozen=True)
class Standing:
    """Where one cosine stands among those of unrelated pairs."""

    share: float  # of the unrelated pairs that are less similar, 0 to 1; half of those that are equally similar count
    low: float  # the 95 % interval of the share
    high: float
    pairs: int  # unrelated pairs in the sample
    sentences: int  # different sentences among them


def percentile(share: float) -> str:
    """A share of pairs in words: never 100 %, because a sample cannot show that no pair is more similar."""
    return "> 99.99 %" if share > 0.9999 else f"{100 * share:.2f} %" if share > 0.99 else f"{100 * share:.1f} %"


def rounded(share: float) -> str:
    """The same with one decimal."""
    return "> 99.9 %" if share >= 0.9995 else f"{100 * share:.1f} %"


def beside(cosine: float, pairs: str, mean: float, high: float) -> str:
    """Where some pairs lie, `high` being the cosine below which 95 % of them are, and whether one cosine is not above it."""
    level = f"mean {number(mean, 2)}, 95 % below {number(high, 2)}"
    return f"{pairs}: {level}" if cosine > high else f"not above 95 % of {pairs} ({level})"


@dataclass(frozen=True, eq=False)
class Calibration:
    """The cosines of unrelated pairs, with the two sentences of each pair."""

    cosines: Float32  # [pair], without NaN
    first: Int64  # [pair]: the number of the sentence
    second: Int64  # [pair]

    @property
    def is_known(self) -> bool:
        """Whether there is an unrelated pair to compare with."""
        return len(self.cosines) > 0

    def shares(self, cosines: Any) -> Float64:
        """The share of unrelated pairs that are less similar, for any array of cosines; NaN where a cosine is NaN."""
        values = np.asarray(cosines, np.float64)
        if not self.is_known:
            return np.full(values.shape, np.nan)
        below = np.searchsorted(self._ordered, values, side="left")
        below = below + np.searchsorted(self._ordered, values, side="right")
        return np.where(np.isnan(values), np.nan, below / (2 * len(self._ordered)))

    @cached_property
    def _ordered(self) -> Float64:
        return np.sort(self.cosines).astype(np.float64)

    def quantiles(self, percents: Sequence[float] = (5, 50, 95)) -> Float64:
        """The cosines below which these percentages of the unrelated pairs lie, [percent]; NaN without pairs."""
        if not self.is_known:
            return np.full(len(percents), np.nan)
        return np.asarray(np.percentile(self._ordered, percents), np.float64)

    def standing(self, cosine: float) -> Standing:
        """The share of one cosine with its interval. Raises ValueError without unrelated pairs, or for NaN."""
        if not self.is_known or np.isnan(cosine):
            raise ValueError("there is nothing to compare")
        share = float(self.shares(cosine))
        count, members = len(self.cosines), np.unique(np.concatenate([self.first, self.second]))
        # 0.5 for an equal cosine, as in the share.
        deviations = np.sign(cosine - self.cosines.astype(np.float64)) / 2 + 0.5 - share
        last = int(members[-1]) + 1
        sums = np.bincount(self.first, deviations, last) + np.bincount(self.second, deviations, last)
        variance = float((sums**2).sum() - (deviations**2).sum()) / count**2
        # No fewer than the pairs that could be formed if no two shared a sentence, and no more than there are.
        fewest = max(1.0, len(members) / 2)
        independent = fewest if variance <= 0 else min(max(share * (1 - share) / variance, fewest), count)
        low, high = wilson(np.array([share]), independent)
        return Standing(share, float(low[0]), float(high[0]), count, len(members))


def of_pairs(cosines: Any, first: Any, second: Any) -> Calibration:
    """The calibration from the cosines of some pairs [pair]; those without a cosine (NaN) are left out."""
    known = ~np.isnan(cosines)
    return Calibration(
        read_only(np.asarray(cosines, np.float32)[known]),
        read_only(np.asarray(first, np.int64)[known]),
        read_only(np.asarray(second, np.int64)[known]),
    )


def of_vectors(vectors: Any, names: Sequence[object]) -> Calibration:
    """All pairs of some vectors [thing, dim] whose `names` (their texts, for example) are different.

    Memory grows with the square of their number: 1,000 vectors give up to 499,500 pairs, 10 MB.
    """
    directions = unit(np.asarray(vectors, np.float64))
    cosines = np.clip(directions @ directions.T, -1.0, 1.0)
    first, second = np.triu_indices(len(directions), k=1)
    numbers = np.unique([str(name) for name in names], return_inverse=True)[1]
    differ = numbers[first] != numbers[second]
    return of_pairs(cosines[first, second][differ], first[differ], second[differ])
