"""What is compared under one word: its occurrences, or it and the nearest words of its sentence; never different words."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.first_look.words import Interest
from components.analysis.matched_words import word_vectors
from components.arrays import cosine
from components.charts import theme
from components.model.backend import Backend
from dashboard.ui import controls, word_chips
from dashboard.views.layers import word_choice
from tests.support.pages import Open, backend, figures, read_texts
from tests.support.unseen_sentences import UNSEEN


@pytest.mark.parametrize("name", UNSEEN)
def test_sentences_that_nobody_had_in_view(open_page: Open, name: str) -> None:
    texts, row, words = UNSEEN[name]
    app = open_page("layers", v="one-word", s=texts)
    assert not app.exception
    assert not app.error
    said = read_texts(app)
    assert "different words" not in said
    assert f"“{words[row]}" in said
    assert len(figures(app)) == 1
    against = open_page("layers", v="one-against-all", s=texts)
    assert not against.exception
    assert f"“{words[row]}" in read_texts(against)


def test_a_word_that_stands_once_has_its_nearest_content_words_beside_it(embedded: Backend) -> None:
    text = "The trophy does not fit in the suitcase because it is too big."
    trace = embedded.trace([text])
    (sentence,) = trace.sentences
    place = next(token.position for token in sentence.tokens if token.piece == "it")
    choice = word_choice._across(trace, trace.sentences, Interest(0, (place,)), whole=True)
    assert (choice.mode, choice.kind) == ("beside", "content words")
    content = {"trophy", "fit", "suitcase", "big"}
    places = [token.position for token in sentence.tokens if token.piece in content]
    vectors = word_vectors(trace, [(0, [place])] + [(0, [other]) for other in places])[-1]
    order = np.argsort(-cosine(vectors[:1], vectors[1:]))
    assert choice.picks == tuple((0, other) for other in [place, *(places[number] for number in order[:3])])
    assert choice.pairs == ((0, 1), (0, 2), (0, 3))


def test_of_very_many_occurrences_some_are_compared(embedded: Backend) -> None:
    one = embedded.trace(["a bank " * 12])
    choice = word_choice._across(one, one.sentences, Interest(0, (2,)), whole=True)
    assert len(choice.picks) == word_choice.MANY_THINGS
    assert choice.subject(one.sentences) == "8 of the 12 “bank”"
    last = word_choice._across(one, one.sentences, Interest(0, (24,)), whole=True)
    assert last.picks == tuple((0, place) for place in [2, 4, 6, 8, 10, 12, 14, 24])  # the chosen one is among them
    two = embedded.trace(["a bank " * 6, "my bank " * 6])
    choice = word_choice._across(two, two.sentences, Interest(0, (4, 2)), whole=True)
    assert choice.picks == ((0, 4), (1, 2))  # the chosen one of each sentence


def test_places_are_named_by_what_tells_them_apart(embedded: Backend) -> None:
    trace = embedded.trace(["The bank of the bank.", "A river bank."])
    choice = word_choice.WordChoice("across", ((0, 2), (0, 5), (1, 3)), None, True)
    assert choice.short_names(trace.sentences) == ["of", "the", "river"]
    assert choice.names(trace.sentences) == ["bank (of)", "bank (the)", "bank (river)"]
    equal = embedded.trace(["The kettle whistled.", "The kettle whistled."])
    choice = word_choice.WordChoice("across", ((0, 2), (1, 2)), None, True)
    assert choice.short_names(equal.sentences) == ["sentence 1", "sentence 2"]


def test_words_that_stand_twice_are_offered_first(embedded: Backend) -> None:
    sentences = embedded.tokenize(["She runs to the bank by the river.", "He was running to a bank."])
    offered = word_chips.words_offered(sentences, (0, 1))
    assert [word.label for word in offered] == ["runs ×2", "bank ×2", "to ×2", "the ×2", "river", "she"]
    many = embedded.tokenize([" ".join(f"word{chr(97 + number)}" for number in range(20))])
    last = many[0].word_positions(len(many[0]) - 2)[0]
    shown = word_chips.words_offered(many, (0, last))
    assert len(shown) == word_chips.MOST_OFFERED + 1
    assert shown[-1].places == ((0, last),)


def test_a_hand_choice_in_each_sentence_is_said(open_page: Open) -> None:
    lesson = {"s": ["This is easy.", "This is simple.", "This is difficult."], "t": ["3", "3", "3"]}
    said = read_texts(open_page("layers", v="one-word", **lesson))
    assert "These are three different words (easy, simple, difficult)" in said
    one = read_texts(open_page("layers", v="one-word", n="1", **lesson))  # a word of the second sentence was clicked
    assert "“simple” occurs once" in one


def test_what_is_bold_in_the_strip_is_said_with_percentiles_too(open_page: Open) -> None:
    page = {"v": "one-against-all", "s": ["She sat on the bank of the river."]}
    assert "In bold: those that are more similar there than 95 % of unrelated tokens (0." in read_texts(
        open_page("layers", **page)
    )
    app = open_page("layers", pct="1", **page)
    assert "In bold: those that are more similar there than 95 % of unrelated tokens." in read_texts(app)
    # The picture says it too, and equal words have their positions, which stand outside of the quotes.
    (figure,) = figures(app)
    said = {item["text"] for item in figure["layout"]["annotations"]}
    strong = [row for row in figure["layout"]["yaxis"]["ticktext"] if row.startswith("<b>")]
    counted = f"bold: {len(strong)} of 10, above 95\u00a0% of unrelated tokens"
    assert counted in {text.replace("<br>", " ") for text in said}
    rows = {label.removeprefix("<b>").removesuffix("</b>") for label in figure["layout"]["yaxis"]["ticktext"]}
    assert {"the (4)", "the (7)"} <= rows
    choice = word_choice.WordChoice("against", ((0, 5), (0, 4), (0, 7)), ((0, 1), (0, 2)), False)
    assert choice.quoted_names(backend().tokenize(page["s"])) == [
        "“bank”",
        "“the” at position 4",
        "“the” at position 7",
    ]


def test_words_of_a_sentence_are_called_nearest_only_by_the_values_by_which_they_were_chosen(open_page: Open) -> None:
    page = {"v": "one-word", "s": ["The trophy does not fit in the suitcase."]}
    assert "nearest content words" in read_texts(open_page("layers", **page))
    assert "shown with content words of its sentence" in read_texts(open_page("layers", c="1", **page))


@pytest.mark.parametrize("dark", [False, True])
def test_the_matrix_of_many_sentences_has_the_colours_of_the_page(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, dark: bool
) -> None:
    monkeypatch.setattr(controls, "is_dark", lambda: dark)
    app = open_page("layers", v="sentence-curves", s=[f"Number {number} sleeps." for number in range(9)])
    (drawn,) = figures(app)
    assert [colour for _, colour in drawn["data"][0]["colorscale"]] == [colour for _, colour in theme.one_hue(dark)]
