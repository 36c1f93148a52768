"""How far a map can be trusted: whether neighbours in the map are neighbours in the space, and the true neighbours.

Trustworthiness (Venna & Kaski 2001, "Neighborhood preservation in nonlinear projection methods"): 1 if all of
a token's k neighbours in the map are among its k neighbours in the space; each wrong neighbour lowers it by its
distance rank in the space; about 0.5 for random positions. It is no share of neighbours: a map whose wrong neighbours
are all a little further away in the space is trustworthy although most of its neighbours are wrong. Neighbourhood
overlap is such a share: of the k nearest in the space, those among the k nearest in the map. Trustworthiness equals
scikit-learn's if all tokens are examined; of many tokens a seeded sample of 1,000 is examined, against all others.

What they do not say: whether distances, sizes of groups or gaps between groups are true. In most maps they are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.analysis.maps.projection import Metric
from components.arrays import Float32, Int64, unit

NEIGHBOURS = 10
SEEN = 5  # neighbours that the eye takes in
FEW_NEIGHBOURS = 3  # with fewer neighbours per token the measures are not meaningful
HALF = 0.5  # of the nearest neighbours: with a smaller overlap, most of them differ
EXAMINED = 1_000  # tokens
_EQUAL = 2e-5  # squared distances of unit vectors that differ by rounding


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
    for part in np.array_split(rows, max(1, len(rows) * count // 10_000_000)):
        true, drawn = _distances(vectors, part), _distances(points, part)  # [row, token]
        near_true, near_seen = (np.argpartition(kind, k - 1, axis=1)[:, :k] for kind in (true, drawn))
        # The rank in the space, from 0, of each neighbour in the map: how many tokens are nearer.
        limits = np.take_along_axis(true, near_seen, axis=1)  # [row, k]
        ranks = np.stack([np.count_nonzero(true < limits[:, [column]], axis=1) for column in range(k)], axis=1)
        penalty += float(np.maximum(0, ranks + 1 - k).sum())
        shared += sum(len(np.intersect1d(*rows)) for rows in zip(near_true, near_seen, strict=True))
        # Equal vectors may come in any order: whatever is as near as the last of the nearest counts.
        reach = np.partition(true, seen - 1, axis=1)[:, [seen - 1]] + _EQUAL
        eye = np.argpartition(drawn, seen - 1, axis=1)[:, :seen]
        kept += float((np.take_along_axis(true, eye, axis=1) <= reach).sum())
    worst = len(rows) * k * (2 * count - 3 * k - 1) / 2  # the penalty if the farthest tokens are shown as the nearest
    return MapTrust(1 - penalty / worst, shared / (len(rows) * k), k / (count - 1), k, kept=kept / len(rows), seen=seen)


def _distances(vectors: Float32, rows: Int64) -> Float32:
    """Squared Euclidean distances of some rows to all, float32 [row, token]; infinity to itself."""
    squares = (vectors**2).sum(axis=1)
    distances = squares[rows][:, None] + squares[None] - 2 * (vectors[rows] @ vectors.T)
    distances[np.arange(len(rows)), rows] = np.inf
    return distances


def true_neighbours(vectors: NDArray[Any], token: int, k: int = NEIGHBOURS) -> tuple[Int64, Float32]:
    """The k tokens with the highest cosine to one token in the space, [k] rows and [k] cosines, highest first."""
    directions = unit(np.asarray(vectors, np.float32))
    cosines = directions @ directions[token]
    cosines[token] = -np.inf
    k = min(k, len(cosines) - 1)
    nearest = np.argpartition(-cosines, k - 1)[:k]
    nearest = nearest[np.argsort(-cosines[nearest], kind="stable")]
    return nearest, np.clip(cosines[nearest], -1, 1)
