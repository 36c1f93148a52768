"""The libraries compiled by numba, UMAP and PaCMAP, behind one lock and prepared in the background.

numba's default threading layer ends the whole process if two threads run its parallel loops at once, so that every
call needs the lock. The first import and fit of umap-learn take about 10 to 20 s on a new machine, and 3 s once numba
has kept what it compiled on disk; `warm_up` does both in its own thread, so that nobody waits. Above 4,096 points
umap-learn searches neighbours with pynndescent, which compiles for another half minute when first used: that is left to
the first large map, which has a progress bar.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from components.arrays import Float32

if TYPE_CHECKING:
    from umap import UMAP

_LOCK = threading.Lock()
_ready: dict[str, threading.Event] = {"umap": threading.Event(), "pacmap": threading.Event()}
_start_lock = threading.Lock()
_started = False
log = logging.getLogger(__name__)
# For each seeded map umap-learn warns that a seed limits it to one thread, even if one thread was requested.
warnings.filterwarnings("ignore", message="n_jobs value .* overridden", category=UserWarning)


def warm_up() -> None:
    """Import and compile UMAP in the background; the first call starts it, later ones do nothing."""
    global _started
    with _start_lock:
        if _started:
            return
        _started = True
    try:
        threading.Thread(target=_warm, name="UMAP warms up", daemon=True).start()
    except RuntimeError as problem:  # the system allows no more threads: the next call tries again
        _started = False
        log.warning("UMAP could not be warmed up", exc_info=problem)


def is_ready(method: str) -> bool:
    """Whether "umap" or "pacmap" is compiled, so that a small map is fast."""
    return _ready[method].is_set()


def compile_umap() -> None:
    """Import and compile UMAP now, for the path from PCA and for the path from given points."""
    points = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    for start in (None, points[:, :2]):
        umap(points, dims=2, n_neighbors=5, min_dist=0.1, metric="cosine", seed=0, start=start, learning_rate=1.0)


def _warm() -> None:
    try:
        compile_umap()
    except Exception:
        log.exception("UMAP could not be prepared")  # the first map will show the error to a person


@cache
def _umap_class() -> type[UMAP]:
    """umap-learn's class, whose slowest functions are compiled once a machine instead of once a process.

    umap-learn keeps none of its compiled functions on disk (pynndescent keeps its own), so that each process would
    compile for about 20 s. numba looks for them beside the library's files or, where these cannot be written, in the
    user's cache folder; they belong to one processor and one version of the source. The layout's function has a
    private name: requirements.txt pins the version.
    """
    import umap
    from umap import layouts, umap_, utils

    for compiled in (
        utils.fast_knn_indices,
        utils.submatrix,
        umap_.smooth_knn_dist,
        umap_.compute_membership_strengths,
        layouts._nb_optimize_layout_euclidean_single_epoch,
    ):
        compiled.enable_caching()
    return umap.UMAP


def umap(
    vectors: Float32,
    *,
    dims: int,
    n_neighbors: int,
    min_dist: float,
    metric: str,
    seed: int,
    start: Float32 | None,
    learning_rate: float,
) -> tuple[Float32, Callable[[Float32], Float32]]:
    """UMAP's coordinates [token, dims], and a function that places other vectors among them.

    Starts from PCA, or from `start`. Reproducible: with a seed umap-learn runs in one thread.
    """
    with _LOCK:
        reducer = _umap_class()(
            n_components=dims,
            n_neighbors=n_neighbors,
            min_dist=min_dist,
            metric=metric,
            random_state=seed,
            n_jobs=1,
            init="pca" if start is None else start,
            learning_rate=learning_rate,
        ).fit(vectors)
        points = np.asarray(reducer.embedding_, np.float32)
        _ready["umap"].set()

    def place(others: Float32) -> Float32:
        with _LOCK:
            return np.asarray(reducer.transform(others), np.float32)

    return points, place


def pacmap(vectors: Float32, *, dims: int, n_neighbors: int, seed: int, start: Float32 | None) -> Float32:
    """PaCMAP's coordinates [token, dims], starting from PCA or from `start`."""
    with _LOCK:
        from pacmap import PaCMAP

        logging.getLogger("pacmap").setLevel(logging.ERROR)  # it logs for each map that a seed is set
        reducer = PaCMAP(n_components=dims, n_neighbors=n_neighbors, random_state=seed)
        initial: Any = "pca" if start is None else start
        points = np.asarray(reducer.fit_transform(vectors, init=initial), np.float32)
        _ready["pacmap"].set()
        return points
