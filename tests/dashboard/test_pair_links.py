"""The links from a pair of texts to the pages that show how a model reads them together."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from components.model.tokenization import MAX_CHARACTERS
from dashboard import pair_links
from dashboard.ready_made import ready_made_sets
from dashboard.views.pairs import given
from tests.support.pages import Open, go_to, setting, texts, type_sentences

QUERY, DOCUMENT = "volcano erupted", "Lava ran down\nthe mountain."
READ = (QUERY, "Lava ran down the mountain.")


@pytest.fixture
def pair_page(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens Pairs with a row of links to this pair (or another one) as its view."""

    def opened(first: str = QUERY, second: str = DOCUMENT, model: str = "") -> AppTest:
        monkeypatch.setattr(given, "given", lambda backend: pair_links.draw(first, second, model=model))
        return open_page("pairs")

    return opened


FIRST_VIEWS = [views[0] for views in pair_links._VIEWS.values()]


@pytest.mark.parametrize("view", FIRST_VIEWS)
def test_each_view_opens_with_the_pair_as_its_two_sentences(pair_page: Open, view: str) -> None:
    app = pair_page()
    app.button(key=f"pair_in_{view}").click().run()
    assert not app.exception
    assert not app.error
    assert setting(app, "sentences") == READ  # one line each
    assert (setting(app, "sentence_a"), setting(app, "sentence_b"), setting(app, "reading")) == (0, 2, "together")
    assert app.title[0].value != "What is a cross-encoder given?"


def test_a_view_that_shows_no_pair_gives_way_to_one_that_does(pair_page: Open) -> None:
    app = pair_page()
    for name, value in (("text_view", "vocabulary"), ("inside_view", "inside-block"), ("map_source", "corpus")):
        app.session_state[name] = value
    app.button(key="pair_in_pieces").click().run()
    assert setting(app, "text_view") == "pieces"
    for view, name, value in (("block", "inside_view", "inside-block"), ("two-layers", "map_source", "sentences")):
        go_to(app, "one-input")
        app.button(key=f"pair_in_{view}").click().run()
        assert setting(app, name) == value


def test_sentences_that_hold_both_texts_stay(pair_page: Open) -> None:
    app = pair_page("b two", "a one")
    app.session_state["sentences"] = ("a one", "between", "b two")
    app.button(key="pair_in_all-heads").click().run()
    assert setting(app, "sentences") == ("a one", "between", "b two")
    assert (setting(app, "sentence_a"), setting(app, "sentence_b")) == (2, 1)


def test_own_sentences_are_kept_until_they_are_wanted_back(pair_page: Open) -> None:
    app = pair_page()
    go_to(app, "pieces")
    own = ("My first sentence.", "My second sentence.")
    type_sentences(app, "\n".join(own))
    go_to(app, "one-input")
    app.button(key="pair_in_pieces").click().run()
    assert "in place of your 2 sentences" in texts(app)
    go_to(app, "one-input")
    assert "in place of" not in texts(app)  # a page without the bar that the message names
    app.button(key="pair_in_block").click().run()  # a pair in place of itself
    app.button(key="bring_back").click().run()
    assert setting(app, "sentences") == own
    assert "bring_back" not in [button.key for button in app.button]
    assert "in place of" not in texts(app)  # the message is gone with its button, though some seconds have not passed


def test_ready_made_sentences_are_replaced_without_a_message(pair_page: Open) -> None:
    app = pair_page()
    assert setting(app, "sentences") in (None, ready_made_sets()["bank"].sentences)
    app.button(key="pair_in_pieces").click().run()
    assert "in place of" not in texts(app)
    assert "bring_back" not in [button.key for button in app.button]


@pytest.mark.parametrize("second", ["  ", "x" * MAX_CHARACTERS])
def test_a_pair_that_the_pages_cannot_show_has_no_links(pair_page: Open, second: str) -> None:
    app = pair_page(second=second)
    assert all(app.button(key=f"pair_in_{view}").disabled for view in FIRST_VIEWS)


def test_a_row_of_links_can_name_the_model_that_reads_the_pair(pair_page: Open) -> None:
    app = pair_page(model="embedded-cross-encoder")
    assert "read by" in texts(app)
    app.button(key="pair_in_pieces").click().run()
    assert setting(app, "model") == "embedded-cross-encoder"


def test_a_second_sentence_is_b_where_there_was_only_one(open_page: Open) -> None:
    app = open_page("meaning", v="score-split", s=["The dog bit the man."])
    assert not app.exception
    assert setting(app, "sentence_b") is None  # A with itself is nobody's choice
    app.session_state["sentences"] = ("The dog bit the man.", "The man bit the dog.")
    app.run()
    assert not app.exception
    assert setting(app, "sentence_b") == 2
    assert app.selectbox(key="w_sentence_b").value == 2


def test_one_sentence_that_was_compared_with_itself_is_read_alone_elsewhere(open_page: Open) -> None:
    app = open_page("meaning", v="score-split", s=["The dog bit the man."])
    go_to(app, "all-heads")
    assert not app.exception
    assert "Sentence B:" not in texts(app)
    assert setting(app, "sentence_b") is None


@pytest.mark.parametrize("view", ["all-heads", "block", "inside-block"])
def test_a_sentence_b_is_named_beside_sentence_a(open_page: Open, view: str) -> None:
    pair = ["The dog *bit* the man.", f"The man bit the dog {'again and ' * 9}again."]
    app = open_page("inside", v=view, s=pair, sb="2")
    assert not app.exception
    named = next(caption.value for caption in app.caption if caption.value.startswith("Sentence B:"))
    assert named == "Sentence B: 2\u2002The man bit the dog again and again and…"
    assert "Sentence B:" not in texts(open_page("inside", v=view, s=[*pair, "A third."]))
