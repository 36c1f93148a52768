"""A decoder that was published for text vectors: Search and Diagnose use it, and the other pages say why they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.declared import table
from tests.dashboard.page_states import small_corpus
from tests.support import decoder_models
from tests.support.pages import Open, at_rest, figures, go_to, texts

TEXTS = ["The cat sat on the bank.", "a bank by the river", "we put money in the bank"]
# A decoder has vectors of texts only. What views of these show by other models is left out, and what needs a large corpus.
UNUSED = {"approximation", "compare-models", "search-kinds"}
WORK = [key for key, view in table.VIEWS.items() if view.is_framed and view.needs == "texts" and key not in UNUSED]
REFUSED = [key for key, view in table.VIEWS.items() if view.needs != "texts"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder_models.save_qwen3(tmp_path_factory.mktemp("qwen3") / "tiny-qwen3")


def test_views_of_texts_use_it(open_page: Open, folder: Path) -> None:
    app = open_page("home", m=str(folder), s=TEXTS, why="3")
    app.session_state["corpus"] = small_corpus()
    app.session_state["query"] = "money in the bank"
    for view in WORK:
        app = at_rest(go_to(app, view))
        assert not app.exception, (view, app.exception)
        assert [item.value for item in app.error] == [], view
        if view == "hits":
            assert "Layer 3, Last token, cosine" in texts(app)
        if view in {"layer-grid", "compare-runs", "sentence-similarity"}:
            assert figures(app), view


def test_what_needs_tokens_is_not_offered_on_search(open_page: Open, folder: Path) -> None:
    app = at_rest(
        open_page("search", m=str(folder), q="money in the bank", why="3", vs="maxsim", corpus=small_corpus())
    )
    assert not app.exception
    assert [item.value for item in app.error] == []
    assert "MaxSim compares vectors of tokens, and" in texts(app)
    assert "Single tokens are not compared" in texts(app)


def test_the_other_views_say_why(open_page: Open, folder: Path) -> None:
    app = open_page("home", m=str(folder), s=TEXTS)
    for view in ("home", *REFUSED):
        go_to(app, view)
        assert not app.exception, (view, app.exception)
        assert [item.value for item in app.error] == [], view
        assert "is a decoder, in which a token sees only those before it" in texts(app), view
        assert not figures(app), view
