"""Words from right to left are isolated wherever a sentence quotes them."""

from __future__ import annotations

from components.words.quotes import isolated, with_isolated_quotes


def test_only_what_is_written_from_right_to_left_is_isolated() -> None:
    said = with_isolated_quotes("Head 4 gives “م” 48 % and “bank” 3 %.")
    assert said == "Head 4 gives “\u2068م\u2069” 48 % and “bank” 3 %."
    assert with_isolated_quotes(said) == said
    assert isolated("bank") == "bank"
    assert isolated("עם") == "\u2068עם\u2069"
