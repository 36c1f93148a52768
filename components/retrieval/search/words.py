"""The words that a query and a text share, to highlight them. What a word is: components.words.unicode_words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from components.words.function import is_function_word
from components.words.unicode_words import spans, words

Span = tuple[int, int]


def content_words(text: str) -> frozenset[str]:
    """The distinct words of a text that carry meaning, folded: not "the" or "at"."""
    return frozenset(word for word in words(text) if not is_function_word(word))


def spans_of_words(text: str) -> dict[str, tuple[Span, ...]]:
    """Each word of a text, folded, with the spans of characters where it stands."""
    found: dict[str, list[Span]] = {}
    for word, start, end in spans(text):
        found.setdefault(word, []).append((start, end))
    return {word: tuple(places) for word, places in found.items()}


def shared_words(query: str, text: str) -> tuple[Span, ...]:
    """The spans of characters in a text that are words of the query, however both are spelt; none overlaps another."""
    asked = set(words(query))
    return _joined((start, end) for word, start, end in spans(text) if word in asked)


def highlighted(query: str, text: str) -> tuple[Span, ...]:
    """Those of the `shared_words` that carry meaning: not "the" or "at", unless the query has no other words."""
    asked = set(words(query))
    telling = {word for word in asked if not is_function_word(word)} or asked
    return _joined((start, end) for word, start, end in spans(text) if word in telling)


def common(found: Sequence[Span], text: str) -> tuple[str, ...]:
    """The distinct texts at some spans, in lower case."""
    return tuple(dict.fromkeys(text[start:end].lower() for start, end in found))


def _joined(found: Iterable[Span]) -> tuple[Span, ...]:
    """Spans from left to right; those that overlap, as pairs of characters do, are one."""
    joined: list[Span] = []
    for start, end in found:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)
