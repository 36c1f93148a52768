"""Every page with a static model: it opens, or says why it has nothing to show and which pages work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.declared import table
from tests.dashboard.page_states import small_corpus
from tests.support import static_models
from tests.support.pages import Open, at_rest, figures, go_to, settled, texts

TEXTS = ["The cat sat on the bank.", "a bank by the river", "we put money in the bank"]
# A static model has vectors of tokens and of texts, and no blocks.
WORK = [key for key, view in table.VIEWS.items() if view.is_framed and view.needs != "blocks"]
REFUSED = [key for key, view in table.VIEWS.items() if view.needs == "blocks"]
NEXT = {
    "text": "Next: Inside.",
    "inside": "Next: Meaning.",
    "meaning": "Next: Search.",
    "diagnose": "Back to the start",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return static_models.save_model2vec(tmp_path_factory.mktemp("static") / "tiny-static")


def _show(app: AppTest, view: str) -> AppTest:
    app = at_rest(go_to(app, view))
    assert not app.exception, (view, app.exception)
    assert [item.value for item in app.error] == [], view
    return app


def _leads_on(app: AppTest, view: str) -> None:
    """The foot of a page leads to the next one that the model has."""
    if (page := table.place_of(view)) in NEXT:
        assert app.get("page_link")[-1].proto.label.startswith(NEXT[page]), view


def test_views_that_work_say_nothing_about_blocks_and_lead_on(open_page: Open, folder: Path) -> None:
    app, drawn = open_page("home", m=str(folder), s=TEXTS), set()
    app.session_state["corpus"] = small_corpus()
    app.session_state["query"] = "money in the bank"
    for view in WORK:
        _show(app, view)
        _leads_on(app, view)
        said = texts(app)
        assert "has no blocks" not in said, view
        if view == "input-tensors":
            assert "a piece has the same vector wherever it stands" in said
            words = ("attention scores", "separator", "in each block", "no token attends")
            assert not any(word in said for word in words)
            assert "the mean of a text leaves it out" in said
        assert app.session_state["model"] == str(folder)
        if figures(app):
            drawn.add(view)
    assert drawn >= {"two-layers", "hits", "layer-grid", "sentence-similarity"}


def test_views_that_need_blocks_say_so_and_lead_on(open_page: Open, folder: Path) -> None:
    app = open_page("home", m=str(folder), s=TEXTS)
    assert "has no blocks: it is a table" in texts(app)
    assert not figures(app)
    for view in REFUSED:
        _show(app, view)
        _leads_on(app, view)
        assert "has no blocks: it is a table" in texts(app), view
        assert not figures(app), view
        (title,) = app.title  # only why, and what to do
        assert title.value.endswith(": another model is needed")
        assert "Attention is not explanation" not in texts(app)
    app.button(key="use_included").click().run()
    assert app.session_state["model"] == "embedded"
    assert "has no blocks" not in texts(app)


def test_other_pages_open_and_the_second_model_is_left_out_where_blocks_are_compared(
    open_page: Open, folder: Path, tiny_folder: Callable[[str], Path]
) -> None:
    app = open_page("layers", m=str(tiny_folder("bert")), m2=str(folder), s=TEXTS)
    assert not app.exception
    assert "is not compared here. It has no blocks" in texts(app)
    assert figures(app)
    app.session_state["model"] = str(folder)
    for page in ("lessons", "about"):
        _show(app, page)


def test_one_map_whose_equal_pieces_are_one_point(open_page: Open, folder: Path) -> None:
    app = settled(open_page("map", m=str(folder), s=TEXTS, v="two-layers", method="pca"))
    assert len(figures(app)) == 1
    points = np.array(
        [(x, y) for trace in figures(app)[0]["data"] for x, y in zip(trace["x"], trace["y"], strict=True)]
    )
    banks = [row for row, text in enumerate(_hovers(figures(app)[0])) if "bank" in text.split("<br>")[0]]
    assert len(banks) == 3
    np.testing.assert_allclose(points[banks], points[banks[:1]].repeat(3, axis=0), atol=1e-5)


def _hovers(figure: dict[str, Any]) -> list[str]:
    return [str(text) for trace in figure["data"] for text in trace["text"]]
