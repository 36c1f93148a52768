"""The words of a text as a person typed them."""

from __future__ import annotations

import pytest

from components.words.typed import is_open, typed_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Juror's sleuthing ends trial", ["Juror's", "sleuthing", "ends", "trial"]),
        ("It doesn’t work, does it?", ["It", "doesn’t", "work", "does", "it"]),
        ("A lie-detector (old) costs 3.5", ["A", "lie-detector", "old", "costs", "3.5"]),
        ("1,000 – “cheap”!", ["1,000", "cheap"]),
        ("word(s) of the U.S. at 5 p.m.", ["word(s)", "of", "the", "U.S.", "at", "5", "p.m."]),
        ("50% of C# and @name", ["50%", "of", "C#", "and", "@name"]),
        ("The workers' strike ends", ["The", "workers'", "strike", "ends"]),
        ("The workers’ strike, the bosses’.", ["The", "workers’", "strike", "the", "bosses’"]),
        ("The 'old workers' struck", ["The", "old", "workers", "struck"]),
        ("‘Workers’ and bosses’ ends", ["Workers", "and", "bosses’", "ends"]),
        ("rock 'n' roll and its fans' tears", ["rock", "n", "roll", "and", "its", "fans'", "tears"]),
        ("In the '90s, workers' rights", ["In", "the", "90s", "workers'", "rights"]),
        ("Nothin' is goin' on", ["Nothin'", "is", "goin'", "on"]),
        ("He’s goin’, ol’ man.", ["He’s", "goin’", "ol’", "man"]),
        ("Ask 'em what they're askin'", ["Ask", "em", "what", "they're", "askin'"]),
        ("The 'old Berlin' is gone", ["The", "old", "Berlin", "is", "gone"]),
        ("'I am home' she said", ["I", "am", "home", "she", "said"]),
        ("... – & !", []),
        ("", []),
    ],
)
def test_words_are_whole_and_without_the_punctuation_around_them(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in typed_words(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("火山爆发了，in 2019年。", ["火", "山", "爆", "发", "了", "in", "2019", "年"]),
        ("き\u3099んこう", ["き\u3099", "ん", "こ", "う"]),
        ("ที่ธนาคาร", ["ที่", "ธ", "น", "า", "ค", "า", "ร"]),
        ("हिन्दी की किताब।", ["हिन्दी", "की", "किताब"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
    ],
)
def test_letters_of_a_script_without_spaces_are_words_with_their_marks(text, expected):
    assert [text[start:end] for start, end in typed_words(text)] == expected


@pytest.mark.parametrize(
    ("text", "closing", "would_close"),
    [
        ("the cat (asleep", ")", True),
        ("the cat (asleep)", ")", False),
        ("the cat", ")", False),
        ("“the cat", "”", True),
        ("“the cat”", "”", False),
        ('He said "yes', '"', True),
        ('He said "yes" and left', '"', False),
    ],
)
def test_a_mark_closes_what_is_still_open(text: str, closing: str, would_close: bool) -> None:
    assert is_open(text, closing) is would_close
