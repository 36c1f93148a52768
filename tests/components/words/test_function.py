"""Function words: contracted ones, and those of another language only where its own words tell it."""

from __future__ import annotations

import pytest

from components.words.function import FUNCTION_WORDS, function_words_of, is_function_word


@pytest.mark.parametrize(
    ("word", "is_one"), [("the", True), ("don't", True), ("it's", True), ("dog's", False), ("bank", False)]
)
def test_a_contraction_is_one_if_all_its_parts_are(word: str, is_one: bool) -> None:
    assert is_function_word(word) is is_one


@pytest.mark.parametrize(
    ("words", "is_english"),
    [
        (["die", "hat", "uhr"], False),
        (["die", "bank"], True),  # one word of another language tells nothing
        (["hat", "was", "bank"], True),  # nor does a second that is one of English too
        (["le", "chat", "est", "là"], False),
    ],
)
def test_two_words_that_are_none_of_english_tell_another_language(words: list[str], is_english: bool) -> None:
    assert (function_words_of(words) == FUNCTION_WORDS) is is_english
