"""What is said above the pieces: the worst first, and only what is so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from components.analysis.lost_characters import lost_characters
from components.analysis.vocabulary import Kinds
from dashboard.views.tokens import findings
from tests.support.pages import Open, at_rest, backend, texts


def said(*typed: str, length: int | None = None) -> str:
    model = backend()
    sentences = model.tokenize(typed, max_length=length)
    lost = [
        lost_characters(
            sentence,
            model.tokenization.decode([token.id for token in sentence.tokens], skip_special=True),
            model.tokenization.unknown_id,
        )
        for sentence in sentences
    ]
    return findings.of_pieces(sentences, lost, model.tokenization.unknown_id)


@pytest.mark.parametrize(
    ("typed", "length", "expected"),
    [
        (("a bank",), None, "Each of the 2 words is one piece."),
        (("bank",), None, "The word is one piece."),
        (("Bank",), None, "The word is one piece; 1 capital is lost."),
        (("!?",), None, "There is no word here."),
        (("A Bank. A bank.",), None, "Each of the 4 words is one piece; 3 capitals are lost."),
        (("Der Hund schläft unbelievably.",), None, "4 words become 12 pieces: 5 for “unbelievably”"),
        (
            ("The unbelievably big São Paulo",),
            None,
            "5 words become 9 pieces: 5 for “unbelievably”; 3 capitals and 1 accent are lost.",
        ),
        (("a 😀",), None, "**“😀” is not in the vocabulary:** one and the same piece stands for all that is unknown. "),
        (("cat えき",), None, ", partly in a script without spaces between words"),
        (("えきのまえ",), None, "5 pieces, with no spaces between words."),
        (("ぎんこう",), None, "4 pieces, with no spaces between words; 1 mark is lost."),
        (("one two three",), 4, "1 piece of sentence 1 is cut off."),
        (("one two three four",), 4, "**Only the beginning is read:** 2 pieces of sentence 1 are cut off."),
        (
            ("one two", "three four five six", "seven eight nine"),
            4,
            "2 pieces of sentence 2 are cut off, and of 1 other too.",
        ),
    ],
)
def test_the_finding(typed: tuple[str, ...], length: int | None, expected: str) -> None:
    assert expected in said(*typed, length=length)


def test_low_ids_are_said_to_be_frequent_words_only_where_they_are() -> None:
    usual = Kinds("##", False, 5, 1_000, 80, 120)
    assert findings.of_kinds(usual, 1_000).endswith(
        "continue a word. Frequent words have low ids here: half of the 80 function words, such as “the”, have an id of 120 "
        "or less."
    )
    # In alphabetical order, or where hardly an English word is a piece.
    for other in (replace(usual, middle_id=600), replace(usual, function_words=4)):
        assert findings.of_kinds(other, 1_000) == "5 of the 1,000 pieces begin with \\#\\#: they continue a word."


def test_a_search_is_answered() -> None:
    assert findings.of_search("bank", "begins with", 7, 9_000) == "7 of the 9,000 pieces begin with “bank”."
    assert findings.of_search("*x*", "contains", 1, 9_000) == "1 of the 9,000 pieces contains “\\*x\\*”."
    assert findings.of_search("qqq", "contains", 0, 9_000) == "None of the 9,000 pieces contains “qqq”."
    assert findings.of_search("2924", "id", 1, 9_000) == findings.of_search(" ", "contains", 0, 9_000) == ""


@pytest.mark.parametrize(("mask", "said"), [([[1, 1], [1, 0]], "at the right"), ([[1, 1], [0, 1]], "at the left")])
def test_padding_is_said_to_be_where_it_is(mask: list[list[int]], said: str) -> None:
    assert f"1 place of sentence 2 is padding (grey) {said}, which" in findings.of_tensors(np.array(mask), 3)
    several = np.array([[1, 0, 0], [1, 1, 1], [1, 1, 0]])
    assert "; 2 places of sentence 1 and 1 of sentence 3 are padding (grey) at" in findings.of_tensors(several, 3)
    assert "; 12 places are padding (grey) at" in findings.of_tensors(np.tile(several, (4, 1)), 3)


def test_markup_in_a_word_is_shown_as_typed() -> None:
    assert "<b>" not in said("a <b>unputdownable</b> 😀<i>")


@pytest.mark.parametrize(
    "text", ["Hello", "The bank. The bank.", "Der Fluß war breit und die Bänke naß.", "word " * 60, "!?", "北京", "🦜"]
)
def test_the_view_stands_for_any_sentence(open_page: Open, text: str) -> None:
    app = at_rest(open_page("pieces", s=text))
    assert not app.exception
    assert not app.error
    assert "What comes back" in " ".join(item.proto.body for item in app.get("html"))


def test_sentences_without_a_split_word_lead_to_some_that_have_one(open_page: Open) -> None:
    app = at_rest(open_page("pieces"))
    app.button(key="split_words_set").click().run()
    assert "words become" in texts(app)
    assert not [button for button in app.button if button.key == "split_words_set"]


def test_what_is_lost_is_said_once_and_marked_above_its_pieces(open_page: Open) -> None:
    import json

    app = at_rest(open_page("pieces", s="The São <i>"))
    element = next(item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_chips")
    words = json.loads(element.proto.json)["rows"][0]["words"]
    assert [word["over"] for word in words[:3]] == [[], [["T", True], ["he", False]], [["Sã", True], ["o", False]]]
    (card,) = [item.proto.body for item in app.get("html") if "bi-cards" in item.proto.body]
    assert "the sao &lt; i &gt;" in card
    assert "<mark>" not in card
    everything = " ".join([texts(app), card])
    assert everything.count("2 capitals and 1 accent") == 1
