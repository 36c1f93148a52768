"""Maps: vectors of hundreds of dimensions projected to two or three, so that they can be seen.

Methods: PCA (Pearson 1901; the directions of largest variance), t-SNE (van der Maaten & Hinton 2008), UMAP (McInnes,
Healy & Melville 2018) and PaCMAP (Wang et al. 2021). PCA is a linear projection and keeps large distances; the
others keep neighbours but not distances: the gap between two groups and the size of a group are not meaningful.

The maps of the same tokens at several layers must not rotate or flip from layer to layer: every layer's map starts
from the map of each token's mean direction over the layers, with the same seed, and is then aligned to it by
Procrustes (Schoenemann 1966). Measured on 200 and 1,000 tokens of the demo corpus, as the mean move of
a token from layer to layer as a share of the map's extent, with two identical layers at the end:

    each map from its neighbour's, Procrustes     0.12 and 0.09; identical layers still move by 0.09 and 0.10
    each map from PCA, Procrustes on the last     0.12 and 0.09; identical layers do not move
    AlignedUMAP                                   0.06 at 200, but identical layers move by 0.07, and 10 times the time
    each map from the common start, rate 1        0.11 and 0.07; identical layers do not move
    each map from the common start, rate 0.5      0.11 and 0.065; identical layers do not move   <- this one

Trustworthiness was the same for all (0.89 and 0.92). Identical layers do not move because their maps have the same
input. Since every map is aligned to the start and not to its neighbour, a layer's map does not depend on which
others were requested.

What a map does not show: which of the lost distances matter. components.analysis.maps.map_trust measures how far a
map can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from components.analysis.maps import numba_work
from components.arrays import Float32, unit
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, Stopped

Method = Literal["umap", "pca", "tsne", "pacmap"]
Metric = Literal["cosine", "euclidean"]
METHODS: tuple[Method, ...] = ("umap", "pca", "tsne", "pacmap")
METRICS: tuple[Metric, ...] = ("cosine", "euclidean")

FEWEST = 4  # points: umap-learn raises TypeError for three
FEWEST_PACMAP = 6  # points: it needs distant neighbours too
FEW = 200  # points: fewer are drawn by PCA unless a person chooses, since the other methods invent groups where there are few
FITTED = 5_000  # points that are fitted; further points are placed among them
_PLACED = 5_000  # points placed at once, between two calls of `is_stopped`
_NEAREST = 5  # neighbours that determine a point's position if the method cannot place points itself
_RATE = 0.5  # UMAP's learning rate: half its default, for maps that start near their result


@dataclass(frozen=True)
class MapOptions:
    """Everything besides the vectors that determines a map."""

    method: Method = "umap"
    dims: int = 2  # 2 or 3
    n_neighbors: int = 15  # UMAP's and PaCMAP's; t-SNE's perplexity
    min_dist: float = 0.1  # UMAP's
    metric: Metric = "cosine"
    seed: int = 0

    def effective(self) -> MapOptions:
        """The options with everything its method ignores set to the default, so that equal maps have equal options."""
        if self.method == "pca":
            return MapOptions("pca", self.dims, metric=self.metric)
        return self if self.method == "umap" else replace(self, min_dist=MapOptions.min_dist)


def start_map(vectors: NDArray[Any], options: MapOptions, is_stopped: IsStopped = lambda: False) -> Float32:
    """The common start of all layers' maps, from vectors [layer, token, dim]: the map of the mean directions."""
    total = np.zeros(vectors.shape[1:], np.float32)
    for layer in vectors:  # one at a time: the array may be a file of many layers
        total += unit(np.asarray(layer, np.float32))
    return normalised(project(total, options, None, is_stopped=is_stopped))


def layer_map(
    vectors: NDArray[Any],
    options: MapOptions,
    start: Float32 | None,
    is_stopped: IsStopped = lambda: False,
    progress: ReportProgress = lambda done, total: None,
) -> Float32:
    """The map of one layer's vectors [token, dim], float32 [token, dims]; aligned to `start` where there is one.

    It is centred, and the root mean square of its points' distances from the centre is 1. The same vectors, options
    and start give the same map. `progress(done, total)` counts points. Raises InputError for fewer than 4 points,
    Stopped.
    """
    points = normalised(project(np.asarray(vectors, np.float32), options, start, is_stopped, progress))
    return points if start is None else align(points, start)


def align(points: Float32, target: Float32) -> Float32:
    """Rotate and mirror points so that they come as close to the target as possible (orthogonal Procrustes).

    Both centred, [token, dims]. Nothing is scaled.
    """
    left, _, right = np.linalg.svd(points.T.astype(np.float64) @ target)
    return (points @ (left @ right)).astype(np.float32)


def check_count(count: int, method: Method = "umap") -> None:
    """Raise InputError if there are too few points for a map."""
    fewest = FEWEST_PACMAP if method == "pacmap" else FEWEST
    if count < fewest:
        raise InputError(
            f"There {'is' if count == 1 else 'are'} {count} token{'' if count == 1 else 's'} to map.",
            f"{'PaCMAP needs' if method == 'pacmap' else 'A map needs'} at least {fewest}.",
            "Add a sentence" + (", or choose another method." if count >= FEWEST else "."),
        )


def project(
    vectors: Float32,
    options: MapOptions,
    start: Float32 | None,
    is_stopped: IsStopped = lambda: False,
    progress: ReportProgress = lambda done, total: None,
) -> Float32:
    """The method's own coordinates, float32 [token, dims], neither centred nor aligned.

    Of more than 5,000 tokens a seeded sample is fitted (PCA and PaCMAP use all), and the others are placed among
    them: by UMAP's transform, or at the mean of the nearest 5 that t-SNE placed.
    """
    count = len(vectors)
    check_count(count, options.method)
    if is_stopped():
        raise Stopped
    if not np.ptp(vectors, axis=0).any():  # all vectors are equal: one point
        return np.zeros((count, options.dims), np.float32)
    if options.metric == "cosine":
        vectors = unit(vectors)
    if options.method == "pca":
        return _pca(vectors, options)
    if options.method == "pacmap":
        # For unit vectors the Euclidean distance, which PaCMAP uses, increases with the cosine distance.
        neighbours = max(2, min(options.n_neighbors, count // 2))
        return numba_work.pacmap(vectors, dims=options.dims, n_neighbors=neighbours, seed=options.seed, start=start)
    if count <= FITTED:
        return _fit(vectors, options, start)[0]
    rows = np.sort(np.random.default_rng(options.seed).choice(count, FITTED, replace=False))
    fitted, place_others = _fit(vectors[rows], options, None if start is None else start[rows])
    result = np.empty((count, options.dims), np.float32)
    result[rows] = fitted
    others = np.setdiff1d(np.arange(count), rows)
    for first in range(0, len(others), _PLACED):
        if is_stopped():
            raise Stopped
        progress(FITTED + first, count)
        batch = others[first : first + _PLACED]
        result[batch] = place_others(vectors[batch])
    return result


def _fit(vectors: Float32, options: MapOptions, start: Float32 | None) -> tuple[Float32, Callable[[Float32], Float32]]:
    """UMAP's or t-SNE's map of all these vectors, and a function that places others."""
    if options.method == "umap":
        return numba_work.umap(
            vectors,
            dims=options.dims,
            n_neighbors=min(options.n_neighbors, len(vectors) - 1),
            min_dist=options.min_dist,
            metric=options.metric,
            seed=options.seed,
            start=start,
            learning_rate=1.0 if start is None else _RATE,
        )
    from sklearn.manifold import TSNE

    # t-SNE expects a start whose first axis has a standard deviation of 0.0001 (see its `init`).
    initial: Any = "pca" if start is None else start / max(1e-12, float(start[:, 0].std())) * 1e-4
    coordinates = TSNE(
        n_components=options.dims,
        perplexity=max(1.0, min(options.n_neighbors, (len(vectors) - 1) / 3)),
        metric=options.metric,
        random_state=options.seed,
        init=initial,
    ).fit_transform(vectors)
    points = np.asarray(coordinates, np.float32)
    return points, lambda others: _between_nearest(others, vectors, points)


def _between_nearest(others: Float32, known: Float32, points: Float32) -> Float32:
    """The mean position of the nearest known vectors of each."""
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=_NEAREST).fit(known).kneighbors(others, return_distance=False)
    return points[nearest].mean(axis=1)


def _pca(vectors: Float32, options: MapOptions) -> Float32:
    from sklearn.decomposition import PCA

    # Exact and fast for many points of few dimensions; the other exact solver is faster for few points.
    solver = "covariance_eigh" if len(vectors) > vectors.shape[1] else "full"
    kept = min(options.dims, vectors.shape[1])
    points = PCA(kept, svd_solver=solver).fit_transform(vectors)
    result = np.zeros((len(vectors), options.dims), np.float32)
    result[:, :kept] = points
    return result


def normalised(points: Float32) -> Float32:
    """Centred, with a root mean square radius of 1 (or all at the centre)."""
    centred = points - points.mean(axis=0, dtype=np.float64)
    radius = float(np.sqrt((centred**2).sum(axis=1).mean()))
    return (centred / (radius if radius > 1e-12 else 1.0)).astype(np.float32)
