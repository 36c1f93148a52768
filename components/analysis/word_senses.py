"""How well the senses of a word are separated at each layer, and groups of its occurrences without labels.

Two measures over the occurrences of one word, both by cosine. The silhouette (Rousseeuw 1987): for each occurrence,
how much closer its own sense is than the nearest other sense, from -1 to 1, and 0 if they are not separated. The
accuracy of the nearest neighbour, leaving out each occurrence in turn: how often the most similar other occurrence
has the same sense; compare it with the accuracy of always answering the most frequent sense. As in Wiedemann et al.
(2019), "Does BERT make any sense?".

What they do not show: that the model uses these senses. With about ten occurrences per sense, one occurrence changes
the accuracy by several points. At layer 0 a word's vectors differ only by position: ties there count as guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Int64, unit
from components.jobs import IsStopped, Stopped

_TIE = 1e-5  # cosines this close count as equal, because vectors are stored in float16
MOST_CLUSTERS = 6
TYPICAL = 3


@dataclass(frozen=True, eq=False)
class SenseCurve:
    """The measures at each layer."""

    silhouette: Float32  # [layer]
    accuracy: Float32  # [layer], 0..1
    majority: float  # the share of the most frequent sense

    @property
    def best(self) -> int:
        """The layer with the highest accuracy; on a tie, the one with the highest silhouette."""
        return int(np.lexsort((self.silhouette, self.accuracy))[-1])


@dataclass(frozen=True, eq=False)
class Cluster:
    """A group of similar occurrences."""

    members: Int64
    typical: Int64  # the members most similar to the mean, most similar first


def sense_curve(vectors: NDArray[Any], senses: Sequence[str]) -> SenseCurve:
    """The measures for vectors [layer, occurrence, dim] and the sense of each occurrence.

    Raises ValueError with fewer than two senses, or fewer than two occurrences of each of them on average.
    """
    _, labels = np.unique(np.asarray(senses), return_inverse=True)
    counts = np.bincount(labels)
    if len(counts) < 2 or len(labels) < 2 * len(counts):
        raise ValueError("at least two senses, and more than one occurrence of each, were expected")
    from sklearn.metrics import silhouette_score

    silhouettes, accuracies = [], []
    for layer in vectors:
        directions = unit(np.asarray(layer, np.float32))
        silhouettes.append(silhouette_score(directions, labels, metric="cosine"))
        accuracies.append(nearest_neighbour_accuracy(directions, labels))
    return SenseCurve(
        np.array(silhouettes, np.float32), np.array(accuracies, np.float32), float(counts.max() / counts.sum())
    )


def nearest_neighbour_accuracy(directions: Float32, labels: Int64) -> float:
    """How often the nearest other vector, by cosine of unit vectors, has the same label; on a tie, the share that has."""
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines >= cosines.max(axis=1, keepdims=True) - _TIE
    same = labels[:, None] == labels[None]
    return float(((nearest & same).sum(axis=1) / nearest.sum(axis=1)).mean())


@dataclass(frozen=True, eq=False)
class NearestOther:
    """The nearest other occurrence of each, by cosine."""

    rows: Int64  # [occurrence]; of equally near ones one of another sense, if there is any
    cosines: Float32  # [occurrence]
    same: Float32  # [occurrence]: of the equally near ones, the share that has the same sense, 0..1


def nearest_other(vectors: NDArray[Any], senses: Sequence[str]) -> NearestOther:
    """The nearest other occurrence of each of some vectors [occurrence, dim], at least two, with its sense."""
    directions = unit(np.asarray(vectors, np.float32))
    _, labels = np.unique(np.asarray(senses), return_inverse=True)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines >= cosines.max(axis=1, keepdims=True) - _TIE
    same = labels[:, None] == labels[None]
    # A tie counts against: of equally near ones, the first of another sense.
    rows = np.argmax(np.where(nearest, 1.0, 0.0) + np.where(nearest & ~same, 1.0, 0.0), axis=1)
    shares = (nearest & same).sum(axis=1) / nearest.sum(axis=1)
    found = np.clip(cosines[np.arange(len(rows)), rows], -1, 1)
    return NearestOther(rows, found.astype(np.float32), shares.astype(np.float32))


def by_chance(senses: Sequence[str]) -> float:
    """How often an occurrence drawn at random among the others has the same sense, 0..1."""
    _, labels = np.unique(np.asarray(senses), return_inverse=True)
    counts = np.bincount(labels)[labels]
    return float(((counts - 1) / (len(labels) - 1)).mean()) if len(labels) > 1 else float("nan")


def clusters(vectors: NDArray[Any], seed: int = 0, is_stopped: IsStopped = lambda: False) -> list[Cluster]:
    """Groups of occurrences at one layer, [occurrence, dim], largest first: k-means on directions.

    Their number, from 2 to 6, is the one with the best silhouette. Raises ValueError for fewer than 4 occurrences,
    and Stopped once `is_stopped()` is true, checked before each number.
    """
    if len(vectors) < 4:
        raise ValueError(f"{len(vectors)} occurrences cannot be grouped; at least 4 were expected")
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    directions = unit(np.asarray(vectors, np.float32))
    if not np.ptp(directions, axis=0).any():
        return [_cluster(directions, np.arange(len(directions)))]
    best, best_score = np.zeros(len(directions), np.int64), -2.0
    for count in range(2, min(MOST_CLUSTERS, len(directions) - 1) + 1):
        if is_stopped():
            raise Stopped
        labels = KMeans(count, n_init=5, random_state=seed).fit_predict(directions)
        if len(np.unique(labels)) < 2:
            continue
        score = silhouette_score(directions, labels, metric="cosine")
        if score > best_score + 1e-6:
            best, best_score = labels, score
    groups = [_cluster(directions, np.flatnonzero(best == label)) for label in np.unique(best)]
    return sorted(groups, key=lambda cluster: -len(cluster.members))


def _cluster(directions: Float32, members: Int64) -> Cluster:
    mean = directions[members].mean(axis=0)
    order = np.argsort(-(directions[members] @ mean), kind="stable")
    return Cluster(members, members[order[:TYPICAL]])
