"""What counts as a word, for rankings by words and for the words a page highlights alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
WORDS_ARE = "runs of letters, digits and underscores, lower case"  # the pattern in words, as run records have it


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.lower())


def shared_words(query: str, text: str) -> tuple[tuple[int, int], ...]:
    """Where in a text the query's words stand, upper and lower case alike: spans of characters."""
    asked = set(words(query))
    return tuple(match.span() for match in _WORD.finditer(text) if not asked.isdisjoint(words(match[0])))


def common(spans: Sequence[tuple[int, int]], text: str) -> tuple[str, ...]:
    """The words at some spans, each once, in lower case."""
    return tuple(dict.fromkeys(text[start:end].lower() for start, end in spans))
