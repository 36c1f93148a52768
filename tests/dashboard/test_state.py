"""The table of settings: what an address carries, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.runtime.state.query_params_proxy import QueryParamsProxy
from streamlit.testing.v1 import AppTest

from components.errors import UserError
from components.model.contributions.path_products import MOST_STEPS
from dashboard import ready_made, settings, state
from dashboard.declared import table
from dashboard.declared.view import SMALL_CORPUS, SMALL_MODEL

OF_VIEWS = {
    name: value
    for view in table.VIEWS.values()
    for example in view.examples
    for name, value in example.items()
    if value not in (table.SETTING[name].default, SMALL_CORPUS, SMALL_MODEL)
}
OPEN_VIEWS = {
    table.view_setting(page.key): table.views_of(page.key)[-1].key
    for page in table.PAGES
    if len(table.views_of(page.key)) > 1
}
# Of every setting a value that is not its default: that of an example state, or one that no view has, or a text that an
# address must take as it is.
EXAMPLES = {
    **OPEN_VIEWS,
    **OF_VIEWS,
    "model": "google-bert/bert-base-uncased",
    "model2": "distilbert/distilbert-base-uncased",
    "cross_encoder": "cross-encoder/qnli-electra-base",
    "tried_cross_encoder": "cross-encoder/qnli-electra-base",
    "corpus": "0123456789abcdef0123456789abcdef",
    "graded_source": "file",
    "graded_query_field": "narrative",
    "graded_document_fields": "title",
    "score_label": "entailment",
    "sense_source": "corpus",
    "sts_source": "file",
    "relevant_by": "marks",
    "clinic_source": "file",
    "sentences": ("A & b = c?", "日本語 😀", 'quotes " and <b>'),
    "typed_queries": ("a & b = <c>?", "日本語 😀"),
    "third_text": "a & b = <c>?",
    "query": "a & b = <c>?",
    "hybrid_with": ("maxsim", "m.3.mean"),
    "fusion_by": "z",
    "runs": ("m.6.mean", "m2.12.cls", "bm25", "rr.100.m.6.mean", "ms.20.m2.12.cls", "fz25d50.bm25.m.6.mean"),
    "patches": ("h3.5", "t4.2", "a2", "f5"),
    "compared_models": ("distilbert/distilbert-base-uncased", "embedded-cross-encoder"),
    "threshold": -1250,
    "map_find": "bank & <b>",
    "vocabulary_query": "##ing",
    "pair_query": "a & b = <c>?",
    "training_data": "demo:nli",
    "second_stage": "rerank",
}
SETTINGS = {setting.name: setting for setting in table.SETTINGS}


def test_every_setting_has_an_example_that_is_not_its_default() -> None:
    assert EXAMPLES.keys() == SETTINGS.keys()
    assert all(EXAMPLES[name] != setting.default for name, setting in SETTINGS.items())


def test_labels_are_words_and_name_settings() -> None:
    assert all(re.fullmatch("[A-Za-z ]+", setting.label) for setting in table.SETTINGS)
    assert [SETTINGS[name].label for name in ("meaning_view", "sense_word", "chosen_heads")] == [
        "view",
        "word",
        "chosen heads",
    ]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_value_survives_the_address(name: str) -> None:
    setting = SETTINGS[name]
    shown = setting.show(EXAMPLES[name])
    assert all(isinstance(text, str) for text in shown)
    assert setting.parse(shown) == EXAMPLES[name]


def test_short_keys_are_unique_in_every_view() -> None:
    for view in table.VIEWS:
        keys = [setting.short for setting in table.settings_in(view)]
        assert len(keys) == len(set(keys)), view
        assert not {state.PACKED, table.VIEW} & set(keys)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("model", ["../../etc/passwd"]),
        ("model", ["/no/such/folder"]),
        ("model", ["a b c"]),
        ("model", ["x", "y"]),
        ("sentences", ["word"] * 65),
        ("sentences", ["x" * 20_001]),
        ("tokens", ["-1"]),
        ("tokens", ["1.5"]),
        ("tokens", ["٣"]),  # a digit, but not one of ours
        ("tokens", ["9" * 40]),
        ("centred", ["yes"]),
        ("pooling", ["median"]),
        ("layer", ["__import__('os')"]),
        ("meaning_view", ["facts"]),
    ],
)
def test_nonsense_is_refused(name: str, values: list[str]) -> None:
    with pytest.raises((ValueError, UserError)):
        SETTINGS[name].parse(values)


def test_sentences_keep_their_text_but_not_line_breaks_or_invalid_characters() -> None:
    parse = SETTINGS["sentences"].parse
    assert parse(["two\nlines", "  ", "tab\there"]) == ("two lines", "tab\there")
    assert parse(["half \ud83d emoji"]) == ("half \ufffd emoji",)
    assert parse([""]) == ()


def test_a_folder_that_exists_is_a_model(tmp_path: Path) -> None:
    assert SETTINGS["model"].parse([str(tmp_path)]) == str(tmp_path.resolve())


def test_the_ready_made_sets_are_complete() -> None:
    sets = ready_made.ready_made_sets()
    asked_for = {
        "bank": 3,
        "bank-accounts": 3,
        "weather": 3,
        "vehicles": 3,
        "idiom": 3,
        "outcome": 3,
        "pair": 2,
        "three-groups": 9,
        "five": 5,
        "nine-scenes": 9,
        "red-cat": 2,
        "cloze": 3,
    }
    assert {key: len(sets[key].sentences) for key in asked_for} == asked_for
    assert len(sets) >= len(asked_for) + 8
    assert sets["bank"].sentences == (
        "We will rob a bank next week!",
        "The children skipped stones by the bank of the river.",
        "I put money in the bank.",
    )
    for item in sets.values():
        assert len(item.look_for) > 30
        assert settings.clean_sentences(list(item.sentences)) == item.sentences


def test_one_bound_of_the_steps_and_of_the_seed() -> None:
    by_name = {setting.name: setting for setting in table.SETTINGS}
    for name, most in (("split_steps", MOST_STEPS), ("experiment_seed", settings.MOST_EXPERIMENT_SEED)):
        assert by_name[name].parse([str(most)]) == most
        with pytest.raises(ValueError, match=f"{most:,}"):
            by_name[name].parse([str(most + 1)])


def with_many_keys() -> None:
    import streamlit as st

    from dashboard import state

    unknown = {f"x{number}": ["1"] for number in range(12)}
    state.apply("meaning", {"v": ["sentence-pairs"], **unknown, "l": ["?"], "pool": ["?"]})
    st.session_state["found"] = state.apply_chosen({f"y{number}": ["1"] for number in range(4)})


def with_several_views() -> None:
    from dashboard import state

    state.apply("home", {"v": ["hits", "one-word"]})
    state.apply("search", {"v": ["hits", "corpus"]})
    state.apply("home", {"v": ["home"]})


def test_an_address_that_names_two_views_says_so_on_every_page() -> None:
    app = AppTest.from_function(with_several_views).run()
    assert [notice.text for notice in app.session_state["_notices"]] == [
        "The link's value for the view (“v=hits, one-word”) was ignored: it is given more than once.",
        "The link's value for the view (“v=hits, corpus”) was ignored: it is given more than once.",
    ]


def test_of_many_unknown_keys_three_are_named() -> None:
    app = AppTest.from_function(with_many_keys).run()
    assert not app.exception
    kept = str(app.session_state["_notices"])
    assert "This page does not use the link's “x0”, “x1”, “x10” and 9 more." in kept
    assert kept.count("was ignored") == 2
    assert app.session_state["found"] == ["There is no setting “y0”, “y1”, “y2” and 1 more."]


def with_other_sentences() -> None:
    import streamlit as st

    from dashboard import state

    state.put("sentences", ("One.", "Two.", "Three."))
    state.put("sentence_a", 2)
    state.put("sentence_b", 3)
    found = []
    for sentences in (("One.", "Two, edited.", "Three."), ("One.", "Two.")):
        state.put("sentences", sentences)
        found.append((state.peek("sentence_a"), state.peek("sentence_b")))
    st.session_state["found"] = found


def test_a_chosen_sentence_stays_chosen_while_it_is_there() -> None:
    """Also the last one, as A, which counts from 0, and as B, which counts from 1."""
    app = AppTest.from_function(with_other_sentences).run()
    assert not app.exception
    assert app.session_state["found"] == [(2, 3), (0, None)]


def test_an_address_is_written_again_where_a_click_came_before_the_last_one_arrived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The browser's address is then already the page's, and becomes the one that is still on its way to it."""

    def page() -> None:
        from dashboard import state

        state.read_address("inside")
        state.write_address("inside")

    written: list[dict[str, list[str]]] = []
    send = QueryParamsProxy.from_dict

    def record(self: QueryParamsProxy, address: dict[str, list[str]]) -> None:
        written.append(address)
        send(self, address)

    monkeypatch.setattr(QueryParamsProxy, "from_dict", record)
    block, facts = {"v": ["block"]}, {"v": ["model-facts"]}
    app = AppTest.from_function(page)
    app.query_params["v"] = "block"
    opened = table.view_setting("inside")
    app.run()
    app.run()
    assert written == []
    app.session_state[opened] = "model-facts"
    app.run()
    assert written == [facts]
    app.session_state[opened] = "block"
    app.query_params["v"] = "block"
    app.run()
    assert written == [facts, block]
    app.run()
    assert written == [facts, block]


@pytest.mark.parametrize(
    ("chosen", "most", "published", "length"),
    [
        (None, 512, 256, None),
        (100, 512, 256, 100),
        (900, 512, 256, 512),  # no more than the model can read
        (2, 512, 256, 3),
        (256, 512, 256, None),  # as published
        (900, 256, 256, None),
    ],
)
def test_the_length_of_the_session_is_within_what_a_model_reads(
    monkeypatch: pytest.MonkeyPatch, chosen: int | None, most: int, published: int, length: int | None
) -> None:
    monkeypatch.setattr("streamlit.session_state", {"max_length": chosen})
    assert state.length_within(most, published) == length


def test_a_sentence_that_is_gone_is_nobodys_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, object] = {"sentence_a": 1, "sentence_b": 2}
    monkeypatch.setattr("streamlit.session_state", session)
    state.put("sentences", ("one", "two"))
    assert (session["sentence_a"], session["sentence_b"]) == (1, 2)  # A counts from 0, B from 1
    state.put("sentences", ("one",))
    assert (session["sentence_a"], session["sentence_b"]) == (0, None)


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("k", ["1", "100"], ["0", "101"]),
        ("max_length", ["3", "100000"], ["2", "100001"]),
        ("sentence_a", ["0", "63"], ["64"]),
        ("sentence_b", ["0", "64"], ["65"]),
        ("fusion_weight", ["0", "100"], ["101"]),
        ("reranked_hits", ["10", "100"], ["101"]),
        ("lesson", ["two-banks", "two-banks.1"], ["two-banks.0", "two-banks.99", "no-such-lesson.1"]),
        ("class_code", ["a-1"], ["A 1", "x" * 25]),
        ("corpus", ["0" * 32], ["0" * 31, "0" * 33, "G" * 32]),
        ("percentiles", ["0", "1"], ["2", ""]),
    ],
)
def test_the_ends_of_what_an_address_may_say(name: str, taken: list[str], refused: list[str]) -> None:
    parse = SETTINGS[name].parse
    for text in taken:
        parse([text])
    for text in refused:
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
            parse([text])


@pytest.mark.parametrize(
    ("name", "most", "make"),
    [
        ("sentences", 64, "sentence {}".format),
        ("typed_queries", settings.MOST_QUERIES, "query {}".format),
        ("runs", settings.MOST_RUNS, "m.{}.mean".format),
        ("compared_models", settings.MOST_COMPARED - 1, "someone/model-{}".format),
        ("patches", settings.MOST_PATCHES, "a{}".format),
    ],
)
def test_as_many_as_there_may_be_and_one_more(name: str, most: int, make: Callable[[int], str]) -> None:
    values = [make(number) for number in range(most)]
    assert SETTINGS[name].parse(values) == tuple(values)
    with pytest.raises(ValueError, match="more than"):
        SETTINGS[name].parse([*values, make(most)])


def test_what_is_named_twice_counts_once() -> None:
    assert SETTINGS["runs"].parse(["bm25", "m.6.mean", "bm25"]) == ("bm25", "m.6.mean")
    assert SETTINGS["compared_models"].parse(["a/b", "a/b"]) == ("a/b",)
    assert SETTINGS["runs"].parse([""]) == SETTINGS["compared_models"].parse([""]) == ()


def test_of_many_wrong_values_three_are_named_and_the_others_counted() -> None:
    def page() -> None:
        from dashboard import state

        state.apply("search", {"v": ["hits"], "k": ["0"], "sim": ["x"], "l": ["?"], "pool": ["?"], "pct": ["?"]})

    app = AppTest.from_function(page).run()
    said = [notice.text for notice in app.session_state["_notices"]]
    assert len(said) == 4
    assert said[-1] == "2 more values of the link were ignored."
