"""The bar of sentences and its editor: what is typed, chosen, moved, and what a browser may send."""

from __future__ import annotations

import json
from typing import Any

from streamlit.testing.v1 import AppTest

from dashboard import ready_made
from tests.support.pages import Open, go_to, setting, type_sentences


def editor(app: AppTest) -> dict[str, Any]:
    """What the page sent to its editor."""
    sent = [json.loads(item.proto.json) for item in app.get("bidi_component") if item.proto.json]
    return next(data for data in sent if "placeholder" in data)


def bar_label(app: AppTest) -> str:
    return next(item.label for item in app.expander if item.label.startswith("**Sentences**"))


def test_what_is_typed_is_not_sent_back_over_what_a_person_types(open_page: Open) -> None:
    app = open_page("tokens")
    version = editor(app)["version"]
    type_sentences(app, "a river bank\n\n  \na money")
    assert app.session_state["sentences"] == ("a river bank", "a money")
    assert editor(app)["version"] == version
    assert editor(app)["text"] == "a river bank\n\n  \na money"
    assert "a river bank  ·  a money" in bar_label(app)


def test_a_choice_replaces_the_text_of_the_editor(open_page: Open) -> None:
    app = type_sentences(open_page("tokens"), "one sentence")
    version = editor(app)["version"]
    app.selectbox(key="w_set_own").set_value("bank").run()
    bank = ready_made.ready_made_sets()["bank"].sentences
    assert app.session_state["sentences"] == bank
    assert editor(app)["version"] > version
    assert editor(app)["text"] == "\n".join(bank)
    # The same text again, typed over the set, counts as typed anew.
    type_sentences(app, "one sentence")
    assert app.session_state["sentences"] == ("one sentence",)


def test_text_that_arrives_with_a_page_change_is_applied(open_page: Open) -> None:
    app = open_page("tokens")
    app.session_state["sentence_editor"] = {"edit": {"version": 1, "text": "typed just before"}}
    go_to(app, "layers")
    assert app.session_state["sentences"] == ("typed just before",)
    assert app.query_params["s"] == "typed just before"


def test_what_no_editor_sends_changes_nothing(open_page: Open) -> None:
    app = open_page("tokens")
    before = setting(app, "sentences")
    for sent in ({"edit": "text"}, {"edit": None}, {"edit": ["a"]}, {"other": 1}, {}):
        app.session_state["sentence_editor"] = sent
        app.run()
        assert not app.exception, sent
        assert setting(app, "sentences") == before, sent


def test_markup_in_a_sentence_is_inert_in_the_bar(open_page: Open) -> None:
    app = type_sentences(open_page("tokens"), "# **big** <b>x</b> :red[y] https://example.com")
    label = bar_label(app)
    assert "\\*\\*big\\*\\*" in label
    assert "\\<b\\>" in label
    assert "https://" not in label


def test_projector_mode_keeps_the_bar(open_page: Open) -> None:
    app = open_page("layers", proj="1")
    type_sentences(app, "a cat sat\na cat ran")
    assert app.session_state["sentences"] == ("a cat sat", "a cat ran")
    assert app.query_params["s"] == ["a cat sat", "a cat ran"]
