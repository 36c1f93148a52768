"""The libraries that compile themselves with numba: UMAP and PaCMAP, behind one lock, warmed in the background.

numba's default threading layer ends the whole process when two threads run its parallel loops at once, so one lock is
around every call. umap-learn's first import and fit take some 10 to 20 s; `warm_up` does both in a thread of its own,
so that nobody waits. Above 4,096 points umap-learn searches neighbours with pynndescent, which compiles for another
half minute when it is first used: that is left to the first large map, which has a progress bar.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from components.arrays import Float32

_LOCK = threading.Lock()
_ready: dict[str, threading.Event] = {"umap": threading.Event(), "pacmap": threading.Event()}
_start_lock = threading.Lock()
_started = False
log = logging.getLogger(__name__)
# umap-learn says with each seeded map that a seed keeps it to one thread, also where one thread was asked for.
warnings.filterwarnings("ignore", message="n_jobs value .* overridden", category=UserWarning)


def warm_up() -> None:
    """Import and compile UMAP in the background; the first call starts it, later ones do nothing."""
    global _started
    with _start_lock:
        if _started:
            return
        _started = True
    threading.Thread(target=_warm, name="UMAP warms up", daemon=True).start()


def is_ready(method: str) -> bool:
    """Whether "umap" or "pacmap" is compiled, so that a small map takes no longer than its own work."""
    return _ready[method].is_set()


def _warm() -> None:
    points = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    try:
        for start in (None, points[:, :2]):
            umap(points, dims=2, n_neighbors=5, min_dist=0.1, metric="cosine", seed=0, start=start, learning_rate=1.0)
    except Exception:
        log.exception("UMAP could not be made ready")  # the first map will say so to a person


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

    From PCA, or from `start`. Repeatable: a seed makes umap-learn run in one thread.
    """
    with _LOCK:
        from umap import UMAP

        reducer = UMAP(
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

    def put(others: Float32) -> Float32:
        with _LOCK:
            return np.asarray(reducer.transform(others), np.float32)

    return points, put


def pacmap(vectors: Float32, *, dims: int, n_neighbors: int, seed: int, start: Float32 | None) -> Float32:
    """PaCMAP's coordinates [token, dims], from PCA or from `start`."""
    with _LOCK:
        from pacmap import PaCMAP

        _quiet()
        reducer = PaCMAP(n_components=dims, n_neighbors=n_neighbors, random_state=seed)
        begin: Any = "pca" if start is None else start
        points = np.asarray(reducer.fit_transform(vectors, init=begin), np.float32)
        _ready["pacmap"].set()
        return points


def _quiet() -> None:
    """PaCMAP tells the log that a seed is set, each time."""
    logging.getLogger("pacmap").setLevel(logging.ERROR)
