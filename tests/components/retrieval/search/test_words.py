"""What counts as a word, for rankings and for highlights alike."""

from __future__ import annotations

from components.retrieval.search.words import common, content_words, highlighted, shared_share, shared_words
from components.words.unicode_words import words


def test_pairs_of_characters_that_overlap_are_one_highlight():
    text = "看，火山爆发了"
    assert [text[start:end] for start, end in shared_words("火山爆发", text)] == ["火山爆发"]


def test_contractions_are_function_words():
    assert content_words("It's true that they don't bark") == {"true", "bark"}


def test_shared_words_ignore_case_and_take_whole_words():
    text = "The cats saw a Cat: cat!"
    spans = shared_words("cat the", text)
    assert [text[start:end] for start, end in spans] == ["The", "Cat", "cat"]
    assert common(spans, text) == ("the", "cat")
    assert shared_words("", text) == ()


def test_words_that_carry_no_meaning_are_highlighted_only_where_the_query_has_no_others():
    text = "to be at the bank"
    assert [text[start:end] for start, end in highlighted("the bank", text)] == ["bank"]
    assert [text[start:end] for start, end in highlighted("to be", text)] == ["to", "be"]


def test_the_share_of_shared_words_is_that_of_the_best_answer():
    assert shared_share("the volcano erupts", ["A volcano.", "Nothing."]) == 0.5
    assert shared_share("to be", ["to go", "Nothing."]) == 0.5
    assert shared_share("!?", ["to go"]) == 0


def test_spellings_of_one_word_are_named_once():
    text = "Die Straße, STRASSE und strasse; ein Café und ein Cafe\u0301"
    assert common(shared_words("straße café", text), text) == ("straße", "café")


def test_what_a_ranking_matches_is_highlighted():
    assert words("İstanbul") == words("İSTANBUL")
    assert shared_words("İstanbul", "In İSTANBUL") == ((3, 11),)
