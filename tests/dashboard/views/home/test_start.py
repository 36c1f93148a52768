"""Start: what stands there before a sentence is typed, what a sentence becomes, and where its links lead."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components.numbers import number
from dashboard import settings, state
from dashboard.declared import table
from dashboard.jobs.requests import NotReady
from dashboard.views.home import examples, start, typed, whole
from dashboard.views.home.stored import stored
from tests.support import static_models
from tests.support.pages import Open, at_rest, backend, figures, setting, settled, texts

JUNK = [None, "", "1", 1.5, True, {"0": 0}, [], [0], [0, 0, 0], [None, None], ["0", "0"], [True, False]]
TROPHY = list(examples.TROPHY)
BANK = list(state.default("sentences"))


def part(app: AppTest, name: str) -> dict[str, Any] | None:
    """The data of one of the parts that the browser draws; None if it is not drawn."""
    found = [item for item in app.get("bidi_component") if item.proto.component_name == f"bert_internals_start_{name}"]
    return json.loads(found[0].proto.json) if found else None


def sentence(app: AppTest) -> dict[str, Any]:
    """The sentence's part, once all of its figures are there."""
    found = part(settled(app), "sentence")
    assert found is not None
    return found


def index_of(data: dict[str, Any], text: str, row: int = 0) -> int:
    """The number of the first word with this piece in a sentence."""
    return next(int(piece["word"]) for piece in data["rows"][row]["pieces"] if piece["text"] == text)


def test_before_a_sentence_two_pictures_stand_that_no_model_drew(open_page: Open) -> None:
    passes = backend().forward_passes
    app = open_page("home")
    field, pictures = part(app, "field"), part(app, "stored")
    assert field is not None
    assert pictures is not None
    assert (field["text"], field["shown"]) == ("", False)
    assert [chip["label"] for chip in field["chips"]] == [
        "A bank by a river",
        "What does “it” mean?",
        "Good, and not good",
        "Search in your own words",
    ]
    assert pictures["senses"]["says"].startswith("“bank” in 20 sentences")
    assert len(pictures["senses"]["maps"]) == stored().senses.apart + 1
    assert [strip["name"] for strip in pictures["blindness"]["strips"]] == ["42 negations", "44 paraphrases"]
    assert [part["text"] for part in pictures["blindness"]["pairs"][0]["second"] if part["new"]] == ["not"]
    assert "".join(part["text"] for part in pictures["blindness"]["pairs"][1]["second"]) == (
        stored().blindness.paraphrase.second
    )
    assert part(app, "sentence") is None
    assert app.query_params == {}
    assert backend().forward_passes == passes
    other = "the included model, and not with the chosen one"
    assert other not in texts(app)
    assert other in texts(open_page("home", m="embedded-cross-encoder"))


def test_pictures_of_other_weights_are_not_shown(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(stored(), revision="sha256:0123456789ab")
    for module, name, value in ((start, "stored", lambda: other), (whole, "revision", lambda: other.revision)):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, value)
            app = open_page("home")
            drawn = {item.proto.component_name for item in app.get("bidi_component")}
            assert not {"bert_internals_path", "bert_internals_start_stored"} & drawn
            assert [item.value for item in app.info] == [start.OUTDATED]
            assert not [item for item in app.caption if "numbers above" in item.value]
            assert "start_to_failures" not in [button.key for button in open_page("home", s=list(examples.GOOD)).button]
    assert not open_page("home").info


def test_an_example_leads_on_to_the_picture_that_answers_it(open_page: Open) -> None:
    app = open_page("home", s=list(examples.GOOD))
    assert "To this model the opposite is nearer than the paraphrase" in texts(app)
    app.button(key="start_to_failures").click().run()
    assert (setting(app, "meaning_view"), setting(app, "clinic_kind")) == ("known-failures", "negation")
    app = open_page("home", s=list(examples.BANK), look="1")
    app.button(key="start_to_senses").click().run()
    assert (setting(app, "meaning_view"), setting(app, "sense_word")) == ("word-senses", "bank")
    assert not [
        button
        for button in open_page("home", s=TROPHY).button
        if button.key in ("start_to_senses", "start_to_failures")
    ]


def test_a_sentence_becomes_its_pieces_and_three_figures_of_a_word(open_page: Open) -> None:
    app = open_page("home", s=TROPHY)
    data, trace = sentence(app), backend().trace(TROPHY, attentions=True)
    assert part(app, "stored") is None
    assert [piece["text"] for piece in data["rows"][0]["pieces"]] == [
        token.piece for token in trace.sentences[0].tokens
    ]
    assert data["rows"][0]["pieces"][0]["word"] == -1  # [CLS] is no word
    word = data["words"][data["chosen"]]
    assert word["text"] == "it"
    looks = word["looks"]
    (target,) = [row for row in looks["rows"] if row["strong"]]
    query, key = (
        next(token.position for token in trace.sentences[0].tokens if token.piece == piece)
        for piece in ("it", target["name"])
    )
    assert trace.attentions is not None
    assert target["weight"] == pytest.approx(
        float(trace.attentions[looks["block"], 0, looks["head"], query, key]), abs=1e-4
    )
    assert f"gives “{target['name']}” {target['shown']}" in looks["says"]
    assert [line["name"] for line in word["changes"]["lines"]] == ["its start", "the others"]
    assert all(len(line["values"]) == 7 for line in word["changes"]["lines"])
    assert len(word["nearest"]["words"]) == 5
    for found in word["nearest"]["words"]:
        assert found["text"][found["start"] : found["end"]]
    assert part(app, "field")["text"] == TROPHY[0]  # type: ignore[index]
    assert [chip["pressed"] for chip in part(app, "field")["chips"][:3]] == [False, True, False]  # type: ignore[index]


def test_a_word_that_occurs_elsewhere_is_compared_with_it(open_page: Open) -> None:
    data = sentence(open_page("home", look="1"))
    word = data["words"][data["chosen"]]
    assert (word["text"], data["chosen"]) == ("bank", index_of(data, "bank", 1))
    assert word["twins"] == [index_of(data, "bank", 0), index_of(data, "bank", 2)]
    assert [line["name"] for line in word["changes"]["lines"]] == ["in 1", "in 3"]
    least = min(word["changes"]["lines"], key=lambda line: line["values"][-1])
    assert f"{least['shown']} at the end" in word["changes"]["says"]
    assert least["shown"] == number(least["values"][-1], 2)


def test_the_address_holds_the_sentences_and_the_word(open_page: Open) -> None:
    app = open_page("home", s=["The boat left the bank.", "A bank lends."], n="1", t=["5", "2"])
    data = sentence(app)
    assert data["chosen"] == index_of(data, "bank", 1)
    assert (app.query_params["n"], app.query_params["t"]) == ("1", ["5", "2"])
    # One that its sentence does not have is none: the word of the rule is shown.
    other = sentence(open_page("home", s=["The boat left the bank.", "A bank lends."], n="1", t=["5", "99"]))
    assert other["words"][other["chosen"]]["text"] == "bank"


@pytest.mark.parametrize(
    ("values", "is_typed"),
    [
        ({}, False),
        ({"looked": True}, True),
        ({"looked": False}, False),
        ({"sentences": ("A sentence of one's own.",)}, True),
        ({"sentences": ("A sentence of one's own.",), "looked": False}, False),
        ({"sentences": (), "looked": True}, False),
    ],
)
def test_when_the_sentences_are_shown(open_page: Open, values: dict[str, Any], is_typed: bool) -> None:
    app = open_page("home", session=values)
    assert (part(app, "stored") is None) == is_typed
    own = [chip["label"] for chip in part(app, "field")["chips"] if chip["key"] == "own"]  # type: ignore[index]
    is_offered = bool(values.get("sentences")) and not is_typed  # what is shown need not be offered
    assert own == (["Yours: A sentence of one's own."] if is_offered else [])


def taken(text: str, session: dict[str, Any]) -> AppTest:
    """A session after a text was typed into the field."""

    def script() -> None:
        import streamlit as st

        from dashboard.views.home import start

        start._take(st.session_state["typed_text"])

    app = AppTest.from_function(script)
    for name, value in {**session, "typed_text": text}.items():
        app.session_state[name] = value
    return app.run()


def test_what_is_typed_becomes_the_sentences_of_the_session() -> None:
    app = taken("A bank lends. The bank is muddy.", {"tokens": (1, 2), "sentence": 1, "_anchors": {}})
    assert app.session_state["sentences"] == ("A bank lends.", "The bank is muddy.")
    assert (app.session_state["tokens"], app.session_state["sentence"], app.session_state["looked"]) == ((), None, True)
    assert setting(app, "_anchors") is None


def test_what_is_shown_already_keeps_its_word_and_nothing_is_no_sentence() -> None:
    shown = {"sentences": ("a bank", "a river"), "looked": True, "tokens": (2, 2), "sentence": 1}
    app = taken("a bank | a river", shown)
    assert (app.session_state["tokens"], app.session_state["sentence"]) == ((2, 2), 1)
    assert setting(taken(" | ", {}), "looked") is None


def test_dots_in_place_of_a_word_of_one_sentence_are_a_gap_and_it_is_said() -> None:
    app = taken("My grandmother baked a ... for me.", {})
    assert app.session_state["sentences"] == ("My grandmother baked a ___ for me.",)
    assert "a gap to guess" in app.session_state["_notices"][0].text
    for typed_text, shown in (
        ("The ... I saw was red.", "The ___ I saw was red."),
        ("He was born in ... 1990.", "He was born in ___ 1990."),
        ("... I saw was red.", "___ I saw was red."),
    ):
        assert taken(typed_text, {}).session_state["sentences"] == (shown,)
    for text in (
        "My grandmother baked a ___ for me.",
        "Well... no.",
        "He thought ... no. | She left.",
        "No ... | He did ...",
    ):
        app = taken(text, {})
        assert " | ".join(app.session_state["sentences"]) == text
        assert setting(app, "_notices") is None


def test_a_model_that_cannot_guess_gets_the_dots_as_they_were_typed() -> None:
    app = taken("My grandmother baked a ... for me.", {"model": "embedded-cross-encoder"})
    assert app.session_state["sentences"] == ("My grandmother baked a ... for me.",)
    assert setting(app, "_notices") is None


def test_a_text_that_is_too_long_is_said() -> None:
    app = taken("long " * 9_000, {})
    assert setting(app, "sentences") is None
    assert "too long" in app.session_state["_notices"][0].text
    many = taken(" | ".join(f"Sentence {count}." for count in range(80)), {})
    assert len(many.session_state["sentences"]) == 64
    assert "first 64" in many.session_state["_notices"][0].text


@pytest.mark.parametrize(("figure", "view"), [(0, typed.LOOKS_VIEW), (1, typed.CHANGES_VIEW), (2, typed.NEAREST_VIEW)])
def test_a_figure_opens_its_view_with_the_word(open_page: Open, figure: int, view: str) -> None:
    app = open_page("home", look="1", by="pca")
    data = sentence(app)
    number_of_word = index_of(data, "bank", 2)
    app.session_state["map_method"] = "pca"  # UMAP would be compiled first
    app.session_state["start_sentence"] = {"open": [figure, number_of_word]}
    app = at_rest(app.run())
    assert not app.exception
    assert [title.value for title in app.title] == [table.VIEWS[view].question]
    assert app.session_state["tokens"] == (5, 7, 6)  # "bank" in each sentence
    looks = data["words"][number_of_word]["looks"]
    if figure == 0:
        shown = [setting(app, name) for name in ("sentence", "block", "head")]
        assert shown == [2, looks["block"], looks["head"]]
        # And what was said of it there is said here.
        strong = next(row for row in looks["rows"] if row["strong"])
        said = f"gives “{strong['name']}” {strong['shown']} in block {looks['block']}, head {looks['head']}"
        assert said in texts(app)
    if figure == 2:
        assert app.session_state["map_find"] == "bank"


def test_the_numbers_of_a_curve_can_be_read(open_page: Open) -> None:
    data = sentence(open_page("home", look="1", s=TROPHY))
    word = data["words"][index_of(data, "it")]
    for line in word["changes"]["lines"]:
        assert [float(text.replace("−", "-")) for text in line["read"]] == pytest.approx(line["values"], abs=6e-4)
    assert len(word["looks"]["columns"]) == 2


def test_equal_pieces_are_told_apart(open_page: Open) -> None:
    looks = [word["looks"] for word in sentence(open_page("home", s=["Мама мыла раму"]))["words"]]
    named = [[row["name"] for row in look["rows"]] for look in looks]
    assert all(len(names) == len({*names}) for names in named)
    assert {"м (1)", "м (5)", "itself: р"} <= {*named[2]}
    assert "gives “м” (position 1) " in looks[2]["says"]


def test_a_sense_has_one_colour_here_and_on_its_map(open_page: Open) -> None:
    pictures = part(open_page("home"), "stored")
    assert pictures is not None
    app = at_rest(open_page("map", v="word-senses", by="pca"))
    drawn = {trace["name"]: trace["marker"]["color"] for trace in figures(app)[0]["data"] if trace.get("name")}
    named = dict(zip(pictures["senses"]["names"], pictures["senses"]["hues"], strict=True))
    assert {f"bank ({name})": colour for name, colour in drawn.items() if name in ("money", "river")} == named


@pytest.mark.parametrize("sent", [*JUNK, [4, 0], [3, 999], [0, 999], [-1, 0], [["take"], 0, 0, 0]])
def test_what_no_page_sends_opens_nothing(open_page: Open, sent: Any) -> None:
    app = open_page("home", look="1")
    sentence(app)
    app.session_state["start_sentence"] = {"open": sent, "word": sent}
    app.session_state["start_field"] = {"example": sent, "typed": sent}
    app.session_state["start_path"] = {"open": sent}
    app.session_state["start_stored"] = {"open": sent}
    app.run()
    assert not app.exception
    assert [title.value for title in app.title] == [start.TITLE]


@pytest.mark.parametrize("view", ["word-senses", "known-failures"])
def test_a_stored_picture_opens_its_view(open_page: Open, view: str) -> None:
    app = open_page("home", by="pca")
    app.session_state["start_stored"] = {"open": [view, "Seven owls sleep in our barn."]}
    app.session_state["map_method"] = "pca"
    app.run()
    assert [title.value for title in app.title] == [table.VIEWS[view].question]
    assert app.session_state["sentences"] == ("Seven owls sleep in our barn.",)  # what was typed is not lost
    if view == "word-senses":
        assert (app.session_state["sense_word"], app.session_state["sense_layer"]) == ("bank", stored().senses.apart)


def test_a_choice_in_one_sentence_takes_the_word_in_the_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from components.analysis.first_look.words import interest, words_of

    monkeypatch.setattr(st, "session_state", {})
    trace = backend().trace(BANK, attentions=True)
    words = words_of(trace.sentences)
    seen = typed.Seen(backend(), trace, words, None, interest(trace.sentences).positions, trace.sentences)
    (river,) = [count for count, word in enumerate(words) if word.text == "river"]
    typed._choose(seen, river)
    assert st.session_state["sentence"] == 1
    chosen = st.session_state["tokens"]
    assert [trace.sentences[row].tokens[position].piece for row, position in enumerate(chosen)] == [
        "bank",
        "river",
        "bank",
    ]


def test_long_and_many_sentences_are_cut_and_said(open_page: Open) -> None:
    many = [f"The {count}th boat left." for count in range(8)]
    data = sentence(open_page("home", s=many))
    assert len(data["rows"]) == typed.SHOWN
    assert data["note"] == "The first 6 of 8 sentences."
    data = sentence(open_page("home", s=["river " * 200]))
    assert len(data["rows"][0]["pieces"]) == typed.MOST_TOKENS
    assert data["note"] == f"Sentence 1: only the beginning, which fits into {typed.MOST_TOKENS} tokens."


def test_a_sentence_without_a_word_says_so(open_page: Open) -> None:
    app = open_page("home", s=["?!"])
    assert "There is no letter and no digit" in texts(app)
    assert part(app, "sentence") is None


def test_a_word_alone_has_figures(open_page: Open) -> None:
    word = sentence(open_page("home", s=["Thunder"]))["words"][0]
    assert word["looks"] == {"says": "There is no other word that it could look at."}
    assert [line["name"] for line in word["changes"]["lines"]] == ["its start"]


def test_of_a_model_without_blocks_the_nearest_words_alone_are_shown(open_page: Open, tmp_path: Path) -> None:
    folder = static_models.save_model2vec(tmp_path / "tiny-static")
    app = open_page("home", m=str(folder), s=["The cat sat on the bank."])
    word = sentence(app)["words"][0]
    assert (word["looks"], word["changes"]) == (None, None)
    assert word["nearest"]["words"]
    assert "before the first block" not in word["nearest"]["says"]
    assert "neither attention nor layers are shown" in texts(settled(app))


def test_another_model_reads_its_own_words(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    data = sentence(open_page("home", m=str(tiny_folder("bert")), s=["the cat sat on the bank"]))
    assert "12 heads" in data["figures"][0]["link"]  # 3 blocks of 4
    assert all(len(line["values"]) == 4 for line in data["words"][0]["changes"]["lines"])


def test_the_cards_lead_on(open_page: Open) -> None:
    app = open_page("home")
    app.button(key="start_lessons").click().run()
    assert [title.value for title in app.title] == [table.VIEWS["lessons"].question]
    app = open_page("home").button(key="curious_lesson").click().run()
    assert app.session_state["lesson"] == ("ten-minutes", 1)
    # Also where Start shows that very sentence already.
    app = at_rest(
        open_page("home", s=list(examples.TROPHY), look="1").button(key="ask_one-word-attention").click().run()
    )
    assert [title.value for title in app.title] == [table.VIEWS["one-word-attention"].question]
    assert app.session_state["sentences"] == examples.TROPHY
    assert "“it” gives “big” " in texts(app)
    app = at_rest(open_page("home").button(key="ask_mask-token").click().run())
    assert [title.value for title in app.title] == [table.VIEWS["mask-token"].question]
    assert app.session_state["sentences"] == ("Paris is the [MASK] of France.",)
    assert "The first guess is “capital”" in texts(app)
    for chip in examples.offered(()):
        assert chip.sentences or table.VIEWS[examples.SEARCH_VIEW]
    assert examples.offered(())[0].sentences == settings.ready_made_sets()[settings.DEFAULT_SET].sentences


def test_the_search_takes_what_was_typed(open_page: Open) -> None:
    app = open_page("home")
    app.session_state["_start_leads"] = ("search", " where is my parcel ")
    app.run()
    assert [title.value for title in app.title] == [table.VIEWS[examples.SEARCH_VIEW].question]
    assert app.session_state["query"] == "where is my parcel"


@pytest.mark.parametrize(
    ("own", "row"),
    [(("He fed the horse.",), 0), (("He fed the [MASK].",), 0), (("He fed the horse.", "They swam in the ___."), 1)],
)
def test_a_typed_sentence_stays_where_its_words_are_guessed(open_page: Open, own: tuple[str, ...], row: int) -> None:
    app = open_page("home", s=list(own))
    app = at_rest(app.button(key="ask_mask-token").click().run())
    assert app.session_state["sentences"] == own
    assert app.session_state["sentence_a"] == row
    assert "bring_back" not in [button.key for button in app.button]
    assert "is now in place of" not in texts(app)
    assert ("The first guess is" in texts(app)) or ("is the first guess" in texts(app))


@pytest.mark.parametrize("hole", ["[MASK]", "<mask>", "___"])
def test_a_typed_hole_is_read_as_a_mask_and_leads_to_what_is_guessed_there(open_page: Open, hole: str) -> None:
    text = f"They swam in the {hole} again."
    app = open_page("home", s=[text])
    data, trace = sentence(app), backend().trace(["They swam in the [MASK] again."], attentions=True)
    words = [piece["text"] for piece in data["rows"][0]["pieces"] if piece["word"] >= 0]
    assert words == ["they", "swam", "in", "the", "[MASK]", "again"]
    mask = data["words"][data["chosen"]]
    looks, assert_close = mask["looks"], partial(pytest.approx, abs=1e-4)
    assert trace.attentions is not None
    pieces = [token.piece for token in trace.sentences[0].tokens]
    assert (mask["text"], mask["ask"]) == ("[MASK]", "")  # the guesses stand in a card
    guesses = backend().guesses(trace.sentences[0].text, k=5, positions=[pieces.index("[MASK]")])
    shown = mask["nearest"]["guesses"]
    assert [row["share"] for row in shown] == assert_close(guesses.probabilities[-1, 0].tolist())
    vocabulary = backend().tokenization.vocabulary
    assert [row["name"] for row in shown] == [vocabulary[piece] for piece in guesses.ids[-1, 0]]
    assert "“{name}” ({shown})".format(**shown[0]) in mask["nearest"]["says"]
    assert mask["nearest"]["opens"] == 3
    assert "guesses" not in data["words"][0]["nearest"]
    assert data["words"][0]["ask"] == "Hide “They” and let the model guess"
    weights = trace.attentions[looks["block"], 0, looks["head"], pieces.index("[MASK]")]
    for row in looks["rows"]:
        assert row["weight"] == assert_close(
            float(weights[pieces.index("[MASK]" if row["name"] == "itself" else row["name"])])
        )
    vectors = trace.hidden_states[:, 0, pieces.index("[MASK]")]
    cosines = [float(vector @ vectors[0] / np.linalg.norm(vector) / np.linalg.norm(vectors[0])) for vector in vectors]
    assert mask["changes"]["lines"][0]["values"] == assert_close(cosines)
    # A word behind the hole is the one that was clicked, whatever the hole is written with.
    again = index_of(data, "again")
    app.session_state["start_sentence"] = {"word": again}
    app.session_state["tokens"], app.session_state["sentence"] = (backend().tokenize([text])[0].tokens[-3].position,), 0
    assert sentence(app.run())["chosen"] == again
    app.session_state["only_left"] = True  # from the guess before
    app.session_state["start_sentence"] = {"open": [3, data["chosen"]]}
    app = at_rest(app.run())
    assert [title.value for title in app.title] == [table.VIEWS["mask-token"].question]
    assert app.session_state["sentences"] == (text,)
    assert "The first guess is" in texts(app)
    assert not app.session_state["only_left"]


def test_guesses_wait_for_no_included_sentence(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: object) -> None:
        raise NotReady

    monkeypatch.setattr(typed, "included_words", never)
    monkeypatch.setattr(typed, "read_words", lambda _: None)
    app = open_page("home", s=["They swam in the ___ again."])
    data = part(app, "sentence")
    assert data is not None
    shown = data["words"][data["chosen"]]
    assert shown["nearest"]["guesses"]
    assert typed.READING not in (shown["looks"]["says"], shown["nearest"]["says"])


def test_a_view_of_a_hole_shows_the_mask_that_start_has_shown(open_page: Open) -> None:
    app = open_page("home", s=["They swam in the ___ again."])
    data = sentence(app)
    app.session_state["start_sentence"] = {"open": [0, data["chosen"]]}
    app = at_rest(app.run())
    assert app.session_state["sentences"] == ("They swam in the [MASK] again.",)
    assert "is now written as" in texts(app)
    strong = next(row for row in data["words"][data["chosen"]]["looks"]["rows"] if row["strong"])
    assert f"gives “{strong['name']}” {strong['shown']}" in texts(app)


def test_a_chosen_word_is_hidden(open_page: Open) -> None:
    app = settled(open_page("home", s=["He fed the horse.", "They swam in the lake."]))
    data = sentence(app)
    assert data["words"][index_of(data, "swam", 1)]["ask"] == "Hide “swam” and let the model guess"
    app.session_state["start_sentence"] = {"open": [3, index_of(data, "swam", 1)]}
    app = at_rest(app.run())
    assert [title.value for title in app.title] == [table.VIEWS["mask-token"].question]
    assert (app.session_state["sentence_a"], app.session_state["masked"]) == (1, 2)
