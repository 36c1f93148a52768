"""The nearest words stand in their sentences, at the layer that is chosen, and equal those of plain transformers."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from components.analysis.first_look.nearest import Neighbour, WordCollection, WordPlace, WordStore
from components.model.backend import Backend
from dashboard.views.layers import in_words
from dashboard.views.layers.word_choice import WordChoice
from tests.support import plain_encoder as plain
from tests.support.pages import BANK, Open, at_rest, backend

TEXTS = ("An otter slid down the bank.", "The bank raised its <b>rate</b>.", "He laughed.", "She opened an account.")


@pytest.fixture(scope="module")
def store(embedded: Backend) -> WordStore:
    with WordCollection({TEXTS[0]: [("bank", "river")]}) as collection:
        collection.add(embedded.trace(TEXTS))
        return collection.store()


def test_words_as_far_as_unrelated_ones_are_said_to_be() -> None:
    near = [Neighbour(WordPlace(0, "bank", 0, 4, "river"), "bank", cosine) for cosine in (0.9, 0.5, 0.3)]
    assert in_words._far(near, 0.2) == ""
    assert in_words._far(near, 0.3) == "the last as far as unrelated words"
    assert in_words._far(near, 0.5) == "the last 2 as far as unrelated words"
    assert in_words._far(near, 0.95) == "all as far as unrelated words"
    assert in_words._far(near, float("nan")) == ""


def test_the_sense_of_the_nearest_word_is_said_where_most_have_another() -> None:
    def near(*senses: str) -> list[Neighbour]:
        return [Neighbour(WordPlace(0, "bank", 0, 4, sense), "bank", 0.9) for sense in senses]

    assert in_words._senses(near("river", "money", "money")) == "money 2 · river 1 · the nearest: river"
    assert in_words._senses(near("money", "river", "money")) == "money 2 · river 1"
    assert in_words._senses(near("river", "money")) == "river 1 · money 1"  # level: neither is the most frequent
    assert in_words._senses(near("", "money")) == "money 1 · no label 1"
    assert in_words._senses(near("", "")) == ""
    assert in_words._senses([]) == ""


@pytest.mark.parametrize("layer", [0, 4, 6])
def test_the_words_are_those_of_plain_transformers(embedded: Backend, store: WordStore, layer: int) -> None:
    trace = embedded.trace(BANK[1:2])
    drawn = in_words.markup(store, trace, WordChoice("beside", ((0, 7),), (), True), trace.sentences, layer)
    query = plain.run(BANK[1]).word("bank")[layer]
    expected = []
    for text in TEXTS:
        run = plain.run(text)
        vectors = [
            run.vectors[layer, [place for place, word in enumerate(run.words) if word == number]].mean(axis=0)
            for number in {word for word in run.words if word is not None}
            if run.pieces[run.words.index(number)].isalnum()
        ]
        expected.append(max(float(plain.cosine(query, vector)) for vector in vectors))
    shown = [float(text.replace("−", "-")) for text in re.findall(r"<li[^>]*><span>([^<]*)</span>", drawn)]
    assert shown == pytest.approx(sorted(expected, reverse=True), abs=0.0075)  # two decimals, of vectors in float16


def test_texts_of_people_are_no_markup(embedded: Backend, store: WordStore) -> None:
    trace = embedded.trace(["A <i>bank</i>."])
    drawn = in_words.markup(store, trace, WordChoice("beside", ((0, 5),), (), True), trace.sentences, 6)
    assert "<i>" not in drawn
    assert "&lt;b&gt;rate&lt;/b&gt;" in drawn
    assert "Searched: 4 included sentences" in drawn


def test_a_line_is_cut_at_words_around_its_word() -> None:
    text = "When the rain had stopped at last the old otter slid down the bank and vanished under water again, like every day."
    start = text.index("bank")
    line = in_words._line(Neighbour(WordPlace(0, "bank", start, start + 4, "river"), text, 0.876))
    assert "… old otter slid down the</bdi>" in line
    assert "<span> <b>bank</b> and vanished under …</span>" in line
    assert "<small>river</small>" in line


def test_the_layer_changes_the_words_without_a_forward_pass(open_page: Open) -> None:
    app = at_rest(open_page("layers", v="one-word"))  # the included sentences are read once for a process
    assert not app.exception
    layers = next(item for item in app.button_group if item.key == "w_layer")
    before = backend().forward_passes
    last = shown_words(app)
    assert "bi-words" in last
    layers.set_value(0).run()
    assert backend().forward_passes == before
    assert app.query_params["l"] == "0"
    assert shown_words(app) != last


def shown_words(app: AppTest) -> str:
    return next(item.proto.body for item in app.get("html") if "bi-words" in item.proto.body)
