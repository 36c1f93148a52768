"""The definition of a word, for word rankings and for the words that pages highlight."""

from __future__ import annotations

import re
from collections.abc import Sequence

from components.words.function import FUNCTION_WORDS

_WORD = re.compile(r"\w+")
WORDS_ARE = "runs of letters, digits and underscores, lower case"  # the pattern in words, for run records


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.lower())


def content_words(text: str) -> frozenset[str]:
    """The distinct words of a text that carry meaning, in lower case: not "the" or "at"."""
    return frozenset(words(text)) - FUNCTION_WORDS


def spans_of_words(text: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Each word of a text, in lower case, with the spans of characters where it stands."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for match in _WORD.finditer(text):
        for word in words(match[0]):
            spans.setdefault(word, []).append(match.span())
    return {word: tuple(places) for word, places in spans.items()}


def shared_words(query: str, text: str) -> tuple[tuple[int, int], ...]:
    """The spans of characters in a text that are words of the query, in upper or lower case."""
    query_words = set(words(query))
    return tuple(match.span() for match in _WORD.finditer(text) if not query_words.isdisjoint(words(match[0])))


def highlighted(query: str, text: str) -> tuple[tuple[int, int], ...]:
    """Those of the `shared_words` that carry meaning: not "the" or "at", unless the query has no other words."""
    spans = shared_words(query, text)
    if FUNCTION_WORDS.issuperset(words(query)):
        return spans
    return tuple(span for span in spans if text[slice(*span)].lower() not in FUNCTION_WORDS)


def common(spans: Sequence[tuple[int, int]], text: str) -> tuple[str, ...]:
    """The distinct words at some spans, in lower case."""
    return tuple(dict.fromkeys(text[start:end].lower() for start, end in spans))
