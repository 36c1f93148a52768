"""Maps are made once, layer by layer, and nothing is lost by a stop."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from components.analysis.maps import drawing as drawing_module
from components.analysis.maps.drawing import MapMaker
from components.analysis.maps.map_trust import map_trust
from components.analysis.maps.projection import MapOptions, layer_map, start_map
from components.analysis.maps.token_set import MapToken, TokenSet
from components.jobs import Lane, Queue, Stopped

PCA = MapOptions("pca")


@pytest.fixture
def tokens() -> TokenSet:
    vectors = np.random.default_rng(0).normal(size=(4, 30, 8)).astype(np.float32)
    places = tuple(MapToken(0, at, str(at), str(at), at, at + 1, False) for at in range(30))
    return TokenSet(("some",), ("text" * 20,), places, (0, 1, 2, 3), vectors, len(places))


def map_maker(most_waiting: int = 16, keep: int = 50) -> MapMaker:
    lane = Lane(newest_first=True, most_waiting=most_waiting)
    return MapMaker(Queue({"maps": lane, "quick maps": lane}), keep)


@pytest.fixture
def maker() -> MapMaker:
    return map_maker()


def ended(drawing) -> bool:
    return all(job.finished.wait(30) for job in drawing.jobs.values())


@pytest.fixture
def maps_made(monkeypatch):
    """layer_map notes its options, and waits at `gate` for methods other than PCA; these give PCA's map, which is quick."""
    made, gate = [], threading.Event()

    def noted(vectors, options, start, is_stopped, progress):
        if options.method != "pca":
            assert gate.wait(20)
        if is_stopped():
            raise Stopped
        made.append(options)
        return layer_map(vectors, PCA, start, is_stopped, progress)

    monkeypatch.setattr(drawing_module, "layer_map", noted)
    monkeypatch.setattr(drawing_module, "start_map", lambda vectors, options, *rest: start_map(vectors, PCA, *rest))
    return made, gate


def test_maps_are_what_the_projection_gives(maker, tokens):
    drawing = maker.request(tokens, PCA, [0, 3])
    assert drawing.wait(20)
    assert list(drawing.maps) == [0, 3]
    start = start_map(tokens.vectors, PCA)
    for layer in (0, 3):
        expected = layer_map(tokens.at(layer), PCA, start)
        np.testing.assert_array_equal(drawing.maps[layer].points, expected)
        assert drawing.maps[layer].trust == map_trust(tokens.at(layer), expected)
        assert not drawing.maps[layer].points.flags.writeable
        assert drawing.maps[layer].nbytes == expected.nbytes
    assert drawing.fraction == 1
    assert drawing.is_complete
    assert not drawing.is_at_work


def test_what_is_there_is_never_made_again(maker, tokens, maps_made, monkeypatch):
    starts = []
    monkeypatch.setattr(drawing_module, "start_map", lambda *given: starts.append(1) or start_map(*given))
    first = maker.request(tokens, PCA, [0, 3])
    assert first.wait(20)
    again = maker.request(tokens, PCA, [3, 0, 3])
    assert again.maps[0] is first.maps[0]
    assert again.is_complete
    assert len(maps_made[0]) == 2
    assert maker.request(tokens, PCA, [1]).wait(20)
    assert len(maps_made[0]) == 3
    assert len(starts) == 1


def test_two_sessions_that_ask_at_once_share_the_work(maker, tokens, maps_made):
    made, gate = maps_made
    drawings = [maker.request(tokens, MapOptions("tsne"), [0, 1], person) for person in range(5)]
    gate.set()
    assert all(drawing.wait(30) for drawing in drawings)
    assert len(made) == 2


def test_a_joint_map_has_both_layers_in_order(maker, tokens):
    drawing = maker.request(tokens, PCA, [(0, 2)])
    assert drawing.wait(20)
    points = drawing.maps[0, 2].points
    assert points.shape == (60, 2)
    both = np.concatenate([tokens.at(0), tokens.at(2)])
    np.testing.assert_array_equal(points, layer_map(both, PCA, None))


def test_a_stop_keeps_what_is_there_and_goes_on_when_told(maker, tokens, maps_made):
    made, gate = maps_made
    options = MapOptions("tsne")
    gate.set()
    assert maker.request(tokens, options, [0], "me").wait(20)
    gate.clear()
    drawing = maker.request(tokens, options, [0, 1, 2], "me")
    assert drawing.is_at_work
    maker.stop(drawing, "me")
    assert drawing.is_stopped_for("me")
    gate.set()
    assert ended(drawing)
    assert list(drawing.maps) == [0]
    assert drawing.error is None  # a stop is none
    assert not maker.request(tokens, options, [1], "me").wait(0.2)  # it holds until somebody takes it back
    maker.forget(drawing, "me")
    assert maker.request(tokens, options, [0, 1, 2], "me").wait(20)
    assert len(made) == 3


def test_a_stop_is_of_one_person(maker, tokens, maps_made):
    gate = maps_made[1]
    drawings = [maker.request(tokens, MapOptions("tsne"), [0], person) for person in ("me", "you")]
    maker.stop(drawings[0], "me")
    assert [drawings[0].is_stopped_for(person) for person in ("me", "you")] == [True, False]
    gate.set()
    assert drawings[1].wait(20)


def test_an_error_is_kept_for_the_page(maker, tokens, monkeypatch):
    def broken(*_):
        raise RuntimeError("no map today")

    monkeypatch.setattr(drawing_module, "layer_map", broken)
    drawing = maker.request(tokens, PCA, [0])
    assert not drawing.wait(20)
    assert str(drawing.error) == "no map today"
    assert not drawing.is_at_work
    assert maker.request(tokens, PCA, [0]).error is drawing.error


def test_the_least_recently_used_map_goes(tokens):
    maker = map_maker(keep=2)
    first, second = (maker.request(tokens, PCA, [layer]) for layer in (0, 1))
    assert first.wait(20)
    assert second.wait(20)
    assert maker.request(tokens, PCA, [0]).maps[0] is first.maps[0]  # used again: the other one is the older now
    assert maker.request(tokens, PCA, [2]).wait(20)
    assert maker.request(tokens, PCA, [0]).maps[0] is first.maps[0]
    again = maker.request(tokens, PCA, [1])
    assert again.wait(20)
    assert again.maps[1] is not second.maps[1]


def test_options_a_method_does_not_read_make_no_new_map(maker, tokens, maps_made):
    def jobs(*options):
        return {maker.request(tokens, one, [0]).jobs[0] for one in options}

    assert len(jobs(PCA, MapOptions("pca", n_neighbors=40, min_dist=0.5, seed=3))) == 1
    assert len(jobs(MapOptions("tsne"), MapOptions("tsne", min_dist=0.5))) == 1
    assert len(jobs(MapOptions("tsne"), MapOptions("tsne", n_neighbors=5))) == 2
    assert len(jobs(MapOptions("umap", min_dist=0.5), MapOptions())) == 2
    for job in maker.jobs.under_way():
        maker.jobs.stop(job)
    maps_made[1].set()


def test_the_newest_request_is_made_first_and_a_long_line_is_cut(tokens, maps_made):
    made, gate = maps_made
    maker = map_maker(most_waiting=3)
    drawings = [maker.request(tokens, MapOptions("tsne", seed=seed), [0], "me") for seed in range(6)]
    dropped = [drawing for drawing in drawings if not drawing.is_at_work]
    assert len(dropped) in (2, 3)  # three wait, and one is at work if its thread was quick
    assert not any(drawing.is_stopped_for("me") for drawing in dropped)
    assert maker.request(tokens, MapOptions("tsne", seed=4), [0], "me").jobs[0] is drawings[4].jobs[0]
    gate.set()
    assert all(ended(drawing) for drawing in drawings)
    order = [options.seed for options in made]
    assert order[-3:] == [4, 5, 3]  # asked for last, newest, oldest
    again = maker.request(tokens, dropped[0].jobs[0].key[1], [0], "me")
    assert again.wait(20)  # what was dropped is made when it is asked for again


def test_pca_does_not_wait_behind_slower_maps(maker, tokens, maps_made):
    late = maker.request(tokens, MapOptions("tsne"), [0])
    assert maker.request(tokens, PCA, [0]).wait(10)
    assert not late.maps
    maps_made[1].set()
    assert late.wait(30)


def test_a_stop_after_the_work_was_done_stops_nothing_new(maker, tokens):
    drawing = maker.request(tokens, PCA, [0], "me")
    assert drawing.wait(20)
    maker.stop(drawing, "me")
    assert not drawing.is_stopped_for("me")
    assert maker.request(tokens, PCA, [0, 1], "me").wait(20)


def test_progress_is_over_all_maps_that_are_wanted(maker, tokens, monkeypatch):
    placed, go_on = threading.Event(), threading.Event()

    def half(vectors, options, start, is_stopped, progress):
        progress(15, 30)
        placed.set()
        assert go_on.wait(20)
        return layer_map(vectors, options, start, is_stopped, progress)

    monkeypatch.setattr(drawing_module, "layer_map", half)
    drawing = maker.request(tokens, PCA, [0, 1])
    assert placed.wait(20)
    assert drawing.fraction == 0.25
    go_on.set()
    assert drawing.wait(20)
    assert drawing.fraction == 1
