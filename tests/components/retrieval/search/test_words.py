"""What counts as a word, for rankings and for highlights alike."""

from __future__ import annotations

from components.retrieval.search.words import common, shared_words, words


def test_words_are_runs_of_letters_digits_and_underscores_in_lower_case():
    assert words("It's 2 Cats, über-ÄRA!") == ["it", "s", "2", "cats", "über", "ära"]
    assert words("a snake_case name") == ["a", "snake_case", "name"]
    assert words("…") == []


def test_shared_words_ignore_case_and_take_whole_words():
    text = "The cats saw a Cat: cat!"
    spans = shared_words("cat the", text)
    assert [text[start:end] for start, end in spans] == ["The", "Cat", "cat"]
    assert common(spans, text) == ("the", "cat")
    assert shared_words("", text) == ()


def test_what_a_ranking_matches_is_highlighted():
    assert words("İstanbul") == words("İSTANBUL")
    assert shared_words("İstanbul", "In İSTANBUL") == ((3, 11),)
