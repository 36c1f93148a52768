"""What our browser components send is checked on the server: only what was drawn has an effect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from components.analysis.attention.head_patterns import RankedHead
from dashboard import state
from dashboard.ui import browser, controls
from dashboard.views.attention import summaries
from dashboard.views.attention.head_tiles import head_tiles
from dashboard.views.evaluate import grid, queries
from dashboard.views.layers import word_choice
from dashboard.views.search.hit_list import Hit, hit_list
from tests.dashboard.page_states import small_corpus
from tests.support.pages import BANK, Open, backend, choose_view

JUNK: list[Any] = [
    None,
    True,
    "0",
    1.0,
    {"0": 0},
    [],
    [0],
    [0, 0, 0],
    [None, None],
    ["0", "0"],
    [0.0, 0],
    [True, False],
]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Draws a component, then lets the browser send a value; returns what its callback was called with."""

    def sent(draw: Callable[[Callable[..., None]], None], trigger: str, value: Any) -> list[Any]:
        found: dict[str, Any] = {}
        received: list[Any] = []
        monkeypatch.setattr(browser, "web_component", lambda *_: lambda **arguments: found.update(arguments))
        draw(lambda *given: received.append(given))
        monkeypatch.setattr(browser.st, "session_state", {"drawn": {trigger: value}})
        found[f"on_{trigger}_change"]()
        return received

    return sent


@pytest.mark.parametrize("value", JUNK)
def test_a_name_must_be_a_text_of_those_that_are_known(value: Any) -> None:
    for names in (("lines", "matrix"), {"lines": 1}, frozenset({"lines"})):
        assert not browser.is_one_of(value, names)
        assert browser.is_one_of("lines", names)


def test_a_chip_must_be_a_token_of_its_row(calls: Callable[..., list[Any]]) -> None:
    sentences = backend().tokenize(BANK[:2])
    rows = [browser.ChipRow(3, sentences[0]), browser.ChipRow(5, sentences[1])]
    length = len(sentences[0])

    def draw(on_click: Callable[..., None]) -> None:
        browser.chips(rows, "drawn", on_click)

    for value in [*JUNK, [3, length], [3, -1], [-1, 0], [0, 0], [10**30, 0]]:
        assert calls(draw, "clicked", value) == [], value
    assert calls(draw, "clicked", [3, length - 1]) == [(3, length - 1)]
    assert calls(draw, "clicked", [5, 0]) == [(5, 0)]


def test_a_tile_must_be_a_head_of_the_model(calls: Callable[..., list[Any]]) -> None:
    def draw(on_click: Callable[..., None]) -> None:
        head_tiles(np.zeros((2, 3, 1, 1)), "drawn", [""] * 6, on_click, label="", selected=(0, 0), height=300)

    for value in [*JUNK, [2, 0], [0, 3], [-1, 0], [0, -1]]:
        assert calls(draw, "clicked", value) == [], value
    assert calls(draw, "clicked", [1, 2]) == [(1, 2)]


def test_a_hit_must_be_in_the_list(calls: Callable[..., list[Any]]) -> None:
    hits = [Hit(1, 7, "a", 0.5), Hit(2, 0, "b", 0.4)]

    def draw(on_pick: Callable[..., None]) -> None:
        hit_list(hits, "drawn", on_pick=on_pick, on_mark=None, pick_hint="")

    def draw_marks(on_mark: Callable[..., None]) -> None:
        hit_list(hits, "drawn", on_pick=lambda _: None, on_mark=on_mark, pick_hint="")

    for value in [*JUNK, 1, -1, 8]:
        assert calls(draw, "picked", value) == [], value
    assert calls(draw, "picked", 0) == [(0,)]
    for value in [*JUNK, [1, 1], [-1, 1], [7, 2], [7, -2], [7, None]]:
        assert calls(draw_marks, "marked", value) == [], value
    assert [calls(draw_marks, "marked", [7, mark])[0] for mark in (1, 0, -1)] == [(7, True), (7, False), (7, None)]


def test_a_tick_must_be_the_value_that_was_drawn(calls: Callable[..., list[Any]]) -> None:
    for value in [*JUNK, 0, 2, -1]:
        assert calls(partial(browser.ticker, "drawn", 1), "tick", value) == [], value
    assert calls(partial(browser.ticker, "drawn", 1), "tick", 1) == [(1,)]


def test_a_row_of_the_ranking_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[int, int]] = []
    monkeypatch.setattr(summaries, "open_head", lambda block, head: opened.append((block, head)))
    best = [RankedHead(1, 2, 0.5), RankedHead(3, 4, 0.4)]

    cells = [*([(row, "block")] for row in (2, -1, "0", None, True, 1)), [()], [], None, 3, {"0": 1}]
    for selection in (*({"cells": sent} for sent in cells), {}):
        monkeypatch.setattr(summaries.st, "session_state", {"patterns_table": {"selection": selection}})
        summaries._open_ranked(best)
    assert opened == [(3, 4)]


def test_what_a_figure_says_was_selected_may_be_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser's message without a list of points, or with others, ended in the red box of an error."""
    nothing: list[Any] = [None, 5, [], {"selection": None}, {"selection": {}}, {"selection": {"points": {"0": 1}}}]
    nothing += [{"selection": {"points": [sent]}} for sent in (None, "customdata", [], {}, {"customdata": {"0": 1}})]
    odd: list[Any] = [None, "1", True, [], [[1]], [float("nan")], [float("inf"), 1], [0.5]]
    nothing += [{"selection": {"points": [{"customdata": sent}]}} for sent in odd]
    for event in nothing:
        monkeypatch.setattr(browser.st, "session_state", {"figure": event})
        assert browser.place_selected("figure") == ()
    for sent, place in ((3, (3,)), ([2, 1.0, "text"], (2, 1)), ([-1, 2**70], (-1, 2**70))):
        monkeypatch.setattr(browser.st, "session_state", {"figure": {"selection": {"points": [{"customdata": sent}]}}})
        assert browser.place_selected("figure") == place
    monkeypatch.setattr(browser.st, "session_state", {})
    assert browser.place_selected("figure") == ()


@pytest.mark.parametrize("rows", [[3], [-1], ["0"], [None], [[0]], [True], {"0": 0}, 7, None])
def test_a_row_of_a_table_of_queries_must_be_in_it(monkeypatch: pytest.MonkeyPatch, rows: Any) -> None:
    session: dict[str, Any] = {"queries_by_rank": {"selection": {"rows": rows}}, "opened": 12}
    monkeypatch.setattr(browser.st, "session_state", session)
    queries._open([12, 40, 7])
    assert session["opened"] is None


@pytest.mark.parametrize("cell", [[6, 0], [0, 3], [-1, 0], [0], 1, "ab", [None, 0], [[1], 2], {"0": 1}])
def test_a_point_of_the_grid_must_be_one_of_its_cells(monkeypatch: pytest.MonkeyPatch, cell: Any) -> None:
    session: dict[str, Any] = {"grid_figure": {"selection": {"points": [{"customdata": cell}]}}}
    monkeypatch.setattr(browser.st, "session_state", session)
    grid._clicked("grid_figure", (0, 1, 2, 3, 4, 5), ("mean", "cls", "max"))
    assert session.keys() == {"grid_figure"}


def test_negative_positions_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = backend().tokenize(BANK[:1])
    monkeypatch.setattr(state.st, "session_state", {"second_token": -1, "tokens": (-1,), "_anchors": None})
    monkeypatch.setattr(controls.st, "warning", lambda *_, **__: None)
    assert word_choice._second(sentences[0], 1, whole=False) >= 0
    assert controls.positions(sentences, backend())[0] >= 0


@pytest.mark.parametrize(
    ("page", "values"),
    [
        ("attention", {"inside_view": "attention-matrix", "block": -1, "head": -1}),
        ("attention", {"inside_view": "all-heads", "block": -1, "head": -1}),
        ("attention", {"inside_view": "mask-token", "masked": -1}),
        ("search", {"why": -1}),
    ],
)
def test_negative_numbers_of_a_session_are_not_used(open_page: Open, page: str, values: dict[str, Any]) -> None:
    app = open_page(page, session={"corpus": small_corpus(), **values})
    assert not app.exception
    assert not app.error
    assert not any("number -1" in item.value for item in app.subheader)


def test_a_block_beyond_the_model_views_first_blocks_stays_chosen(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashboard.views.attention import single_heads

    whole = single_heads._sent
    monkeypatch.setattr(
        single_heads, "_sent", lambda *given: (4, 12) if given[1] == "model" else whole(*given)
    )  # as for a long text: four of six blocks are drawn
    app = open_page("attention", v="head-view", b="5", h="0")
    choose_view(app, "model-view")
    assert not app.exception
    assert not app.warning
    first = app.number_input(key="w_block")
    assert (first.label, first.value, first.max) == ("First block drawn", 2, 2)
    choose_view(app, "head-view")
    assert app.number_input(key="w_block").value == 5
    assert app.session_state["block"] == 5
