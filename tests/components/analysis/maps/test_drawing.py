"""Maps are made once, layer by layer, and nothing is lost by a cancel."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from components.analysis.maps import map_shelf
from components.analysis.maps.map_shelf import MapShelf
from components.analysis.maps.map_trust import map_trust
from components.analysis.maps.projection import MapOptions, layer_map, start_map
from components.analysis.maps.token_set import MapToken, TokenSet
from components.jobs import Cancelled

PCA = MapOptions("pca")


@pytest.fixture
def tokens() -> TokenSet:
    vectors = np.random.default_rng(0).normal(size=(4, 30, 8)).astype(np.float32)
    places = tuple(MapToken(0, at, str(at), str(at), at, at + 1, False) for at in range(30))
    return TokenSet(("some",), ("text" * 20,), places, (0, 1, 2, 3), vectors, 30)


def test_maps_are_what_the_projection_gives(tokens):
    drawing = MapShelf().request(tokens, PCA, [0, 3])
    assert drawing.idle.wait(20)
    assert sorted(drawing.maps) == [0, 3]
    start = start_map(tokens.vectors, PCA)
    for layer in (0, 3):
        expected = layer_map(tokens.at(layer), PCA, start)
        np.testing.assert_array_equal(drawing.maps[layer].points, expected)
        assert drawing.maps[layer].trust == map_trust(tokens.at(layer), expected)
        assert not drawing.maps[layer].points.flags.writeable
    assert drawing.fraction == 1


def test_what_is_there_is_never_made_again(tokens, monkeypatch):
    made = []
    whole = map_shelf.layer_map
    monkeypatch.setattr(map_shelf, "layer_map", lambda *given: made.append(1) or whole(*given))
    shelf = MapShelf()
    first = shelf.request(tokens, PCA, [0, 3])
    first.idle.wait(20)
    again = shelf.request(tokens, PCA, [3, 0, 3])
    assert again is first
    assert again.has([0, 3])
    assert len(made) == 2
    shelf.request(tokens, PCA, [1]).idle.wait(20)
    assert len(made) == 3


def test_two_sessions_that_ask_at_once_share_the_work(tokens, monkeypatch):
    made, gate = [], threading.Event()
    whole = map_shelf.layer_map

    def slow(*given):
        gate.wait(10)
        made.append(1)
        return whole(*given)

    monkeypatch.setattr(map_shelf, "layer_map", slow)
    shelf = MapShelf()
    drawings = [shelf.request(tokens, PCA, [0, 1]) for _ in range(5)]
    gate.set()
    assert all(drawing.idle.wait(20) for drawing in drawings)
    assert len(made) == 2


def test_a_joint_map_has_both_layers_in_order(tokens):
    drawing = MapShelf().request(tokens, PCA, [(0, 2)])
    drawing.idle.wait(20)
    points = drawing.joint[0, 2].points
    assert points.shape == (60, 2)
    both = np.concatenate([tokens.at(0), tokens.at(2)])
    np.testing.assert_array_equal(points, layer_map(both, PCA, None))


def test_a_cancel_keeps_what_is_there_and_goes_on_when_told(tokens, monkeypatch):
    whole = map_shelf.layer_map
    shelf = MapShelf()

    def stops(vectors, options, start, cancelled, progress):
        if drawing.maps:
            drawing.cancel.set()
            if cancelled():
                raise Cancelled
        return whole(vectors, options, start, cancelled, progress)

    drawing = shelf.request(tokens, PCA, [])
    monkeypatch.setattr(map_shelf, "layer_map", stops)
    shelf.request(tokens, PCA, [0, 1, 2])
    drawing.idle.wait(20)
    assert sorted(drawing.maps) == [0]
    assert drawing.cancelled
    monkeypatch.setattr(map_shelf, "layer_map", whole)
    shelf.request(tokens, PCA, [1]).idle.wait(5)
    assert not drawing.has([1])  # a cancel holds until somebody takes it back
    shelf.forget(drawing)
    shelf.request(tokens, PCA, [0, 1, 2]).idle.wait(20)
    assert drawing.has([0, 1, 2])


def test_an_error_is_kept_for_the_page(tokens, monkeypatch):
    def broken(*_):
        raise RuntimeError("no map today")

    monkeypatch.setattr(map_shelf, "layer_map", broken)
    drawing = MapShelf().request(tokens, PCA, [0])
    drawing.idle.wait(20)
    assert str(drawing.error) == "no map today"
    assert drawing.waiting == []


def test_the_least_recently_used_drawing_goes(tokens):
    shelf = MapShelf(capacity=2)
    options = [MapOptions("tsne", seed=seed) for seed in range(4)]
    drawings = {seed: shelf.request(tokens, options[seed], [0]) for seed in (0, 1)}
    assert all(drawing.idle.wait(20) for drawing in drawings.values())
    assert shelf.request(tokens, options[0], [0]) is drawings[0]  # used again: the other one is the older now
    drawings[2] = shelf.request(tokens, options[2], [0])
    assert drawings[2].idle.wait(20)
    shelf.request(tokens, options[3], []).idle.wait(20)
    assert shelf.request(tokens, options[2], []) is drawings[2]
    assert shelf.request(tokens, options[1], []) is not drawings[1]


def test_options_a_method_does_not_read_make_no_new_map(tokens):
    shelf = MapShelf()
    first = shelf.request(tokens, MapOptions("pca"), [0])
    assert shelf.request(tokens, MapOptions("pca", n_neighbors=40, min_dist=0.5, seed=3), [0]) is first
    other = shelf.request(tokens, MapOptions("tsne"), [])
    assert shelf.request(tokens, MapOptions("tsne", min_dist=0.5), []) is other
    assert shelf.request(tokens, MapOptions("tsne", n_neighbors=5), []) is not other
    assert shelf.request(tokens, MapOptions("umap", min_dist=0.5), []) is not shelf.request(tokens, MapOptions(), [])


def test_the_newest_request_is_made_first_and_a_long_line_is_cut(tokens, monkeypatch):
    order, gate = [], threading.Event()
    whole = map_shelf.layer_map

    def noted(vectors, options, *rest):
        if options.seed >= 100:  # another test's shelf may still be at work
            gate.wait(10)
            order.append(options.seed - 100)
        return whole(vectors, options, *rest)

    monkeypatch.setattr(map_shelf, "layer_map", noted)
    shelf = MapShelf(capacity=3)
    drawings = [shelf.request(tokens, MapOptions("tsne", seed=100 + seed), [0]) for seed in range(6)]
    gate.set()
    assert all(drawing.idle.wait(30) for drawing in drawings)
    assert sorted(order)[-3:] == [3, 4, 5]
    assert len(order) <= 4  # one was under way, three waited; the others were dropped
    assert order.index(5) < order.index(3)


def test_pca_does_not_wait_behind_slower_maps(tokens, monkeypatch):
    gate = threading.Event()
    whole = map_shelf.layer_map

    def slow(vectors, options, *rest):
        if options.method != "pca":
            gate.wait(20)
        return whole(vectors, options, *rest)

    monkeypatch.setattr(map_shelf, "layer_map", slow)
    shelf = MapShelf()
    late = shelf.request(tokens, MapOptions("tsne"), [0])
    assert shelf.request(tokens, PCA, [0]).idle.wait(10)
    assert not late.maps
    gate.set()
    assert late.idle.wait(30)


def test_a_stop_after_the_work_was_done_stops_nothing_new(tokens):
    shelf = MapShelf()
    drawing = shelf.request(tokens, PCA, [0])
    assert drawing.idle.wait(20)
    drawing.cancel.set()
    assert shelf.request(tokens, PCA, [1]).idle.wait(20)
    assert drawing.has([0, 1])
