"""How far a map can be believed: whether what is near in the picture is near in the space, and the true neighbours.

Trustworthiness (Venna & Kaski 2001, "Neighborhood preservation in nonlinear projection methods"): 1 when every one of
a token's k neighbours in the map is among its k neighbours in the space, less for each stranger by how far away it is
in the space; 0.5 or so for places at random. Neighbourhood overlap: the share of the k nearest in the space that are
among the k nearest in the map. Equal to scikit-learn's `trustworthiness` where all tokens are looked at; of many, a
seeded sample of 1,000 is looked at, against all others.

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
FEW_NEIGHBOURS = 3  # of fewer neighbours each the measures say little
LOOKED_AT = 1_000  # tokens


@dataclass(frozen=True)
class MapTrust:
    """What holds of one map."""

    trustworthiness: float  # up to 1
    overlap: float  # 0..1
    chance: float  # the overlap that places at random would have
    neighbours: int  # k

    @property
    def words(self) -> str:
        """The trustworthiness in words."""
        if self.neighbours < FEW_NEIGHBOURS:
            return "which says little of so few tokens"
        for least, said in (
            (0.95, "very good: nearly all neighbours in the picture are neighbours in the model"),
            (0.88, "good: most neighbours in the picture are neighbours in the model"),
            (0.75, "fair: many neighbours in the picture are strangers in the model"),
        ):
            if self.trustworthiness >= least:
                return said
        return "poor: being close in this picture means little"


def map_trust(
    vectors: NDArray[Any], points: Float32, metric: Metric = "cosine", k: int = NEIGHBOURS, seed: int = 0
) -> MapTrust:
    """Of vectors [token, dim] and their places [token, dims]; k shrinks below half of the tokens where there are few."""
    count = len(points)
    k = max(1, min(k, (count - 1) // 2))
    rows = np.arange(count)
    if count > LOOKED_AT:
        rows = np.sort(np.random.default_rng(seed).choice(count, LOOKED_AT, replace=False))
    vectors = np.asarray(vectors, np.float32)
    if metric == "cosine":
        vectors = unit(vectors)
    strangers = shared = 0.0
    for part in np.array_split(rows, max(1, len(rows) * count // 10_000_000)):
        true, seen = _distances(vectors, part), _distances(points, part)  # [row, token]
        near_true, near_seen = (np.argpartition(kind, k - 1, axis=1)[:, :k] for kind in (true, seen))
        # How many are nearer in the space than each neighbour in the map: its rank there, from 0.
        limits = np.take_along_axis(true, near_seen, axis=1)  # [row, k]
        ranks = np.stack([np.count_nonzero(true < limits[:, [column]], axis=1) for column in range(k)], axis=1)
        strangers += float(np.maximum(0, ranks + 1 - k).sum())
        shared += sum(len(np.intersect1d(one, other)) for one, other in zip(near_true, near_seen, strict=True))
    worst = len(rows) * k * (2 * count - 3 * k - 1) / 2  # the sum when the farthest ones are shown as the nearest
    return MapTrust(1 - strangers / worst, shared / (len(rows) * k), k / (count - 1), k)


def _distances(vectors: Float32, rows: Int64) -> Float32:
    """Squared Euclidean distances of some rows to all, float32 [row, token]; to itself infinity."""
    squares = (vectors**2).sum(axis=1)
    distances = squares[rows][:, None] + squares[None] - 2 * (vectors[rows] @ vectors.T)
    distances[np.arange(len(rows)), rows] = np.inf
    return distances


def true_neighbours(vectors: NDArray[Any], token: int, k: int = NEIGHBOURS) -> tuple[Int64, Float32]:
    """The k tokens nearest to one by cosine in the space, [k] rows and [k] cosines, nearest first."""
    directions = unit(np.asarray(vectors, np.float32))
    cosines = directions @ directions[token]
    cosines[token] = -np.inf
    k = min(k, len(cosines) - 1)
    nearest = np.argpartition(-cosines, k - 1)[:k]
    nearest = nearest[np.argsort(-cosines[nearest], kind="stable")]
    return nearest, np.clip(cosines[nearest], -1, 1)
