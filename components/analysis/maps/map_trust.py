"""How far a map can be trusted: whether neighbours in the map are neighbours in the space, and the true neighbours.

Trustworthiness (Venna & Kaski 2001, "Neighborhood preservation in nonlinear projection methods"): 1 if all of
a token's k neighbours in the map are among its k neighbours in the space; each wrong neighbour lowers it by its
distance rank in the space; about 0.5 for random positions. It is no share of neighbours: a map whose wrong neighbours
are all a little further away in the space is trustworthy although most of its neighbours are wrong. Neighbourhood
overlap is such a share: of the k nearest in the map, those among the k nearest in the space, where whatever is as near as the
last of these counts: equal vectors (the same word in a static model) may come in any order. Trustworthiness equals
scikit-learn's if all tokens are examined; of many tokens a seeded sample of 1,000 is examined, against all others.

What they do not say: whether distances, sizes of groups or gaps between groups are true. In most maps they are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.analysis.maps.projection import Metric
from components.arrays import Float32, Float64, Int64, unit

NEIGHBOURS = 10
SEEN = 5  # neighbours that the eye takes in
FEW_NEIGHBOURS = 3  # with fewer neighbours per token the measures are not meaningful
HALF = 0.5  # of the nearest neighbours: with a smaller overlap, most of them differ
EXAMINED = 1_000  # tokens
_EQUAL = 1e-9  # squared distances that differ by less, as a share of the mean squared length, differ by rounding
_SAME_COSINE = 1e-6  # float32 cosines that differ by less are equal


@dataclass(frozen=True)
class MapTrust:
    """How far one map can be trusted."""

    trustworthiness: float  # up to 1
    overlap: float  # 0..1
    chance: float  # the overlap of random positions
    neighbours: int  # k
    kept: float = float(
        "nan"
    )  # of the `seen` nearest in the map, how many are among the `seen` nearest in the space, on average
    seen: int = SEEN

    @property
    def words(self) -> str:
        """The trustworthiness in words, and whether most of the nearest neighbours differ."""
        if self.neighbours < FEW_NEIGHBOURS:
            return "not meaningful for so few tokens"
        for least, words in (
            (0.95, "very good: tokens side by side in the map are hardly ever far apart in the model"),
            (0.88, "good: tokens side by side in the map are rarely far apart in the model"),
            (0.75, "fair: some tokens side by side in the map are far apart in the model"),
        ):
            if self.trustworthiness >= least:
                return words + (", but most of the nearest neighbours differ" if self.overlap < HALF else "")
        return "poor: many tokens side by side in the map are far apart in the model"


def map_trust(
    vectors: NDArray[Any], points: Float32, metric: Metric = "cosine", k: int = NEIGHBOURS, seed: int = 0
) -> MapTrust:
    """The trust in a map `points` [token, dims] of `vectors` [token, dim]; k is always below half of the tokens."""
    count = len(points)
    k = max(1, min(k, (count - 1) // 2))
    rows = np.arange(count)
    if count > EXAMINED:
        rows = np.sort(np.random.default_rng(seed).choice(count, EXAMINED, replace=False))
    vectors = np.asarray(vectors, np.float32)
    if metric == "cosine":
        vectors = unit(vectors)
    penalty = shared = kept = 0.0
    seen = max(1, min(SEEN, count - 1))
    equal = _EQUAL * float(np.einsum("td,td->t", vectors, vectors).mean())
    for part in np.array_split(rows, max(1, len(rows) * count // 10_000_000)):
        true, drawn = _distances(vectors, part), _distances(points, part)  # [row, token]
        nearest = _first(drawn, max(k, seen))  # in the map, [row, neighbour]
        limits = np.take_along_axis(true, nearest, axis=1)  # their distances in the space
        # The rank in the space, from 0, of each neighbour in the map: how many tokens are nearer.
        ranks = np.stack([np.count_nonzero(true < limits[:, [place]] - equal, axis=1) for place in range(k)], axis=1)
        penalty += float(np.maximum(0, ranks + 1 - k).sum())
        # Equal vectors may come in any order: whatever is as near as the last of the nearest counts.
        in_order = np.partition(true, sorted({k - 1, seen - 1}), axis=1)
        shared += float((limits[:, :k] <= in_order[:, [k - 1]] + equal).sum())
        kept += float((limits[:, :seen] <= in_order[:, [seen - 1]] + equal).sum())
    worst = len(rows) * k * (2 * count - 3 * k - 1) / 2  # the penalty if the farthest tokens are shown as the nearest
    return MapTrust(1 - penalty / worst, shared / (len(rows) * k), k / (count - 1), k, kept=kept / len(rows), seen=seen)


def _first(distances: Float64, count: int) -> Int64:
    """The nearest of each row, nearest first and lower numbers first among equals, int64 [row, count]."""
    limits = np.partition(distances, count - 1, axis=1)[:, [count - 1]]
    chosen = np.empty((len(distances), count), np.int64)
    for row, (own, limit) in enumerate(zip(distances, limits, strict=True)):
        within = np.flatnonzero(own <= limit)
        chosen[row] = within[np.argsort(own[within], kind="stable")][:count]
    return chosen


def _distances(vectors: NDArray[np.floating], rows: Int64) -> Float64:
    """Squared Euclidean distances of some rows to all, float64 [row, token]; infinity to itself."""
    vectors = np.asarray(vectors, np.float64)
    squares = (vectors**2).sum(axis=1)
    distances = squares[rows][:, None] + squares[None] - 2 * (vectors[rows] @ vectors.T)
    distances[np.arange(len(rows)), rows] = np.inf
    return distances


def true_neighbours(vectors: NDArray[Any], token: int, k: int = NEIGHBOURS) -> tuple[Int64, Float32]:
    """The k tokens with the highest cosine to one token in the space, [k] rows and [k] cosines, highest first.

    Of equal ones those with lower numbers.
    """
    directions = unit(np.asarray(vectors, np.float32))
    cosines = directions @ directions[token]
    cosines[token] = -np.inf
    nearest = np.argsort(-cosines, kind="stable")[: min(k, len(cosines) - 1)]
    return nearest, np.clip(cosines[nearest], -1, 1)


def equally_near(vectors: NDArray[Any], token: int, k: int = NEIGHBOURS) -> int:
    """How many tokens have at least the cosine of the last of `true_neighbours`; more than k where equal ones are not shown."""
    nearest, cosines = true_neighbours(vectors, token, len(vectors) - 1)
    return int(np.count_nonzero(cosines >= cosines[min(k, len(nearest)) - 1] - _SAME_COSINE)) if len(nearest) else 0
