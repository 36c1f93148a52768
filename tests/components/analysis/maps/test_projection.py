"""Maps: repeatable, centred, aligned, and steady where nothing changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from components.analysis.maps import numba_work, projection
from components.analysis.maps.projection import METHODS, METRICS, MapOptions, align, layer_map, start_map
from components.arrays import unit
from components.errors import InputError
from components.jobs import Stopped


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """Three groups that part over four layers; the last two layers are identical: [layer, token, dim]."""
    random = np.random.default_rng(3)
    middle = np.repeat(random.normal(size=(3, 24)), 20, axis=0)
    noise = random.normal(size=(60, 24))
    layers = [noise + strength * middle for strength in (0.5, 1.5, 3.0)]
    return np.array([*layers, layers[-1]], np.float32)


def extent(points: np.ndarray) -> float:
    return float(np.linalg.norm(np.ptp(points, axis=0)))


def maps_of(vectors: np.ndarray, options: MapOptions) -> list[np.ndarray]:
    """The map of each layer; the last two layers are the same, and the one before them is another."""
    start = start_map(vectors, options)
    maps = [layer_map(layer, options, start) for layer in vectors]
    for one in maps:
        assert one.shape == (60, options.dims)
        assert one.dtype == np.float32
        np.testing.assert_allclose(one.mean(axis=0), 0, atol=1e-5)
        assert np.sqrt((one**2).sum(axis=1).mean()) == pytest.approx(1, abs=1e-4)
    assert np.linalg.norm(maps[-1] - maps[-2], axis=1).max() < 0.01 * extent(maps[-2])
    assert np.linalg.norm(maps[-2] - maps[-3], axis=1).max() > 0.01 * extent(maps[-3])
    return maps


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_map_and_identical_layers_stay(vectors, method):
    one, other = (maps_of(vectors, MapOptions(method, seed=4)) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
def test_identical_layers_stay_in_three_dimensions_too(vectors, method):
    maps_of(vectors[1:], MapOptions(method, 3, seed=4))


def test_another_seed_gives_another_map_by_umap(vectors):
    one, other = (layer_map(vectors[2], MapOptions(seed=seed), None) for seed in (0, 1))
    assert np.abs(one - other).max() > 0.01


@pytest.mark.parametrize("method", METHODS)
def test_groups_that_are_apart_are_apart_in_the_map(vectors, method):
    options = MapOptions(method)
    points = layer_map(vectors[2], options, start_map(vectors, options))
    centres = points.reshape(3, 20, 2).mean(axis=1)
    nearest = np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(axis=1)
    assert (nearest == np.repeat(range(3), 20)).mean() > 0.95


@pytest.mark.parametrize("metric", METRICS)
def test_pca_equals_scikit_learns_up_to_a_turn(vectors, metric):
    found = layer_map(vectors[1], MapOptions("pca", metric=metric), None)
    source = unit(vectors[1]) if metric == "cosine" else vectors[1]
    theirs = PCA(2).fit_transform(source).astype(np.float32)
    theirs /= np.sqrt((theirs**2).sum(axis=1).mean())
    np.testing.assert_allclose(align(theirs, found), found, atol=1e-4)


def test_align_undoes_a_turn_and_a_mirror():
    random = np.random.default_rng(0)
    for dims in (2, 3):
        target = random.normal(size=(30, dims)).astype(np.float32)
        target -= target.mean(axis=0)
        turn = np.linalg.qr(random.normal(size=(dims, dims)))[0]
        turn[:, 0] *= -1
        np.testing.assert_allclose(align((target @ turn).astype(np.float32), target), target, atol=1e-5)


def test_alignment_never_stretches(vectors):
    options = MapOptions("pca")
    alone = layer_map(vectors[0], options, None)
    aligned = layer_map(vectors[0], options, start_map(vectors, options))
    before, after = (np.linalg.norm(p[:, None] - p[None], axis=2) for p in (alone, aligned))
    np.testing.assert_allclose(before, after, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_three_points_or_fewer_are_a_message(method, count):
    with pytest.raises(InputError, match=r"token.*to map"):
        layer_map(np.ones((count, 8), np.float32), MapOptions(method), None)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [4, 6, 7, 20])
def test_few_points_have_a_map(method, count):
    vectors = np.random.default_rng(count).normal(size=(2, count, 8)).astype(np.float32)
    options = MapOptions(method)
    if method == "pacmap" and count < projection.FEWEST_PACMAP:
        with pytest.raises(InputError):
            layer_map(vectors[0], options, None)
        return
    points = layer_map(vectors[1], options, start_map(vectors, options))
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) == count


@pytest.mark.parametrize("method", METHODS)
def test_the_same_vector_throughout_is_one_place(method):
    assert not layer_map(np.ones((9, 8), np.float32), MapOptions(method), None).any()


@pytest.mark.parametrize("method", ["umap", "tsne"])
def test_of_many_points_a_sample_is_fitted_and_the_others_are_placed_near_their_own(monkeypatch, method):
    monkeypatch.setattr(projection, "FITTED", 90)
    monkeypatch.setattr(projection, "_PLACED", 40)
    random = np.random.default_rng(1)
    groups = np.repeat(range(3), 60)
    vectors = (8 * random.normal(size=(3, 16))[groups] + random.normal(size=(180, 16))).astype(np.float32)
    told = []
    points = layer_map(vectors, MapOptions(method), None, progress=lambda done, total: told.append((done, total)))
    assert told == [(90, 180), (130, 180), (170, 180)]
    centres = np.stack([points[groups == group].mean(axis=0) for group in range(3)])
    nearest = np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(axis=1)
    assert (nearest == groups).mean() > 0.95
    np.testing.assert_array_equal(points, layer_map(vectors, MapOptions(method), None))


def test_a_stop_is_heard_before_the_fit_and_between_parts(monkeypatch, vectors):
    with pytest.raises(Stopped):
        layer_map(vectors[0], MapOptions(), None, is_stopped=lambda: True)
    monkeypatch.setattr(projection, "FITTED", 20)
    monkeypatch.setattr(projection, "_PLACED", 10)
    told = []
    with pytest.raises(Stopped):
        layer_map(
            vectors[0],
            MapOptions("tsne"),
            None,
            is_stopped=lambda: len(told) >= 2,
            progress=lambda done, _: told.append(done),
        )
    assert told == [20, 30]


def test_umap_is_ready_after_it_was_used(vectors):
    layer_map(vectors[0], MapOptions(), None)
    assert numba_work.is_ready("umap")


def test_a_warm_up_that_could_not_start_is_tried_again(monkeypatch):
    started = []

    def start(thread):
        started.append(thread.name)
        if len(started) == 1:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(numba_work, "_started", False)
    monkeypatch.setattr(numba_work.threading.Thread, "start", start)
    for _ in range(3):
        numba_work.warm_up()
    assert len(started) == 2


def test_what_umap_compiles_is_kept_for_the_next_process(vectors):
    from umap import layouts, umap_, utils

    layer_map(vectors[0], MapOptions("umap"), start_map(vectors, MapOptions("umap")))
    for compiled in (
        utils.fast_knn_indices,
        umap_.smooth_knn_dist,
        umap_.compute_membership_strengths,
        layouts._nb_optimize_layout_euclidean_single_epoch,
    ):
        kept = compiled.stats.cache_path
        assert kept is not None, compiled
        assert list(Path(kept).glob(f"*{compiled.py_func.__name__}*.nbc")), compiled


def test_two_threads_may_map_at_once(vectors):
    """numba's workqueue ends the process when two fits run at once; the lock keeps them apart."""
    from concurrent.futures import ThreadPoolExecutor

    jobs = [MapOptions("umap"), MapOptions("pacmap"), MapOptions("umap", seed=2), MapOptions("pacmap", seed=2)]
    alone = [layer_map(vectors[1], options, None) for options in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda options: layer_map(vectors[1], options, None), jobs))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
