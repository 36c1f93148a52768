"""A decoder that was published for text vectors: Search and Evaluate use it, and the other pages say why they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.page_states import small_corpus
from tests.support import decoder_models
from tests.support.pages import Open, at_rest, figures, go_to, texts

TEXTS = ["The cat sat on the bank.", "a bank by the river", "we put money in the bank"]
WORK = {
    "search": ("hits", "many-queries", "similar-pairs"),
    "evaluate": ("layer-grid", "compare-runs", "graded-relevance", "sentence-similarity"),
    "model": ("model-facts", "available-models"),
}
REFUSED = {
    "home": "",
    "tokens": "pieces",
    "model": "output-vectors",
    "layers": "one-word",
    "heatmaps": "block",
    "attention": "attention-matrix",
    "map": "two-layers",
    "evaluate": "pooling-lab",
    "pairs": "retrieve-rerank",
    "why": "score-split",
    "training": "training-data",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder_models.save_qwen3(tmp_path_factory.mktemp("qwen3") / "tiny-qwen3")


def test_search_and_evaluate_use_it(open_page: Open, folder: Path) -> None:
    app = open_page("home", m=str(folder), s=TEXTS, q="money in the bank", why="3")
    app.session_state["corpus"] = small_corpus()
    for page, views in WORK.items():
        for view in views:
            app = at_rest(go_to(app, view))
            assert not app.exception, (page, view, app.exception)
            assert [item.value for item in app.error] == [], (page, view)
            if (page, view) == ("search", "hits"):
                assert "Layer 3, Last token, cosine" in texts(app)
            if page == "evaluate":
                assert figures(app), view


def test_what_needs_tokens_is_not_offered_on_search(open_page: Open, folder: Path) -> None:
    app = at_rest(
        open_page("search", m=str(folder), q="money in the bank", why="3", vs="maxsim", corpus=small_corpus())
    )
    assert not app.exception
    assert [item.value for item in app.error] == []
    assert "MaxSim compares vectors of tokens, and" in texts(app)
    assert "Single tokens are not compared" in texts(app)


def test_the_other_pages_say_why(open_page: Open, folder: Path) -> None:
    app = open_page("home", m=str(folder), s=TEXTS)
    for page, view in REFUSED.items():
        if view:
            go_to(app, view)
        assert not app.exception, (page, app.exception)
        assert [item.value for item in app.error] == [], page
        assert "is a decoder, in which a token sees only those before it" in texts(app), page
        assert not figures(app), page
