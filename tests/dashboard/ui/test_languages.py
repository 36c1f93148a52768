"""What pages say of a language that the model does not know, and of texts without spaces between words."""

from __future__ import annotations

import pytest

from tests.dashboard.page_states import small_corpus
from tests.support.pages import Open, texts

THAI = ("ธนาคารเปิดตอนเช้า", "ฉันฝากเงินที่ธนาคาร")
KANA = "ぎんこうはえきのまえにあります"
UNKNOWN, PIECES = "does not know the language of", "each piece of the tokenizer stands for a word"
WITH_WORDS = ("one-word", "one-word-attention", "attention-matrix", "important-words", "pieces")


@pytest.mark.parametrize("view", [*WITH_WORDS, "home", "sentence-curves"])
def test_every_page_of_sentences_says_it_once(open_page: Open, view: str) -> None:
    shown = {"look": "1"} if view == "home" else {"v": view}
    app = open_page("home" if view == "home" else "layers", s=[KANA, THAI[1]], **shown)
    said = texts(app)
    assert said.count(UNKNOWN) == 1
    assert "the sentences: 100" in said
    assert said.count(PIECES) == int(view != "sentence-curves")
    assert not app.exception


def test_only_the_sentences_in_question_are_named(open_page: Open) -> None:
    said = texts(open_page("layers", v="one-word", s=["The bank is closed.", THAI[0], "Банк на берегу реки закрыт."]))
    assert f"{UNKNOWN} sentences 2 and 3:" in said
    assert f"Sentence 2 has no spaces between words: {PIECES}." in said
    mixed = texts(open_page("text", v="pieces", s=["Ω≈ç√∫ 你好 👩‍👩‍👧 <b>x</b> _u_"]))
    assert f"The sentence has parts with no spaces between words; in these {PIECES}." in mixed


@pytest.mark.parametrize(
    "language", ["Die Bank am Fluss ist größer.", "La banque près de la rivière est fermée.", "ok"]
)
def test_nothing_is_said_of_other_sentences(open_page: Open, language: str) -> None:
    said = texts(open_page("layers", v="one-word", s=[language, "The bank is closed."]))
    assert UNKNOWN not in said
    assert PIECES not in said


def test_the_query_is_named_beside_an_english_corpus(open_page: Open) -> None:
    said = texts(open_page("search", v="hits", q="ธนาคารเปิด", corpus=small_corpus()))
    assert said.count(f"{UNKNOWN} the query:") == 1
    # Once chance is measured, the finding says that the scores say nothing.
    assert said.count(UNKNOWN) == 1 + said.count("These scores say nothing")
    assert UNKNOWN not in texts(open_page("search", v="hits", q="the bank", corpus=small_corpus()))
