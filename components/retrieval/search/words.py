"""The words that a query and a text share, to highlight them. What a word is: components.words.unicode_words."""

from __future__ import annotations

from collections.abc import Sequence

from components.words.function import is_function_word
from components.words.unicode_words import Span, folded, joined, spans, words


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
    return joined((start, end) for word, start, end in spans(text) if word in asked)


def highlighted(query: str, text: str) -> tuple[Span, ...]:
    """Those of the `shared_words` that carry meaning: not "the" or "at", unless the query has no other words."""
    asked = set(words(query))
    telling = {word for word in asked if not is_function_word(word)} or asked
    return joined((start, end) for word, start, end in spans(text) if word in telling)


def common(found: Sequence[Span], text: str) -> tuple[str, ...]:
    """The distinct words at some spans, in lower case, each as it is spelt first."""
    spelt: dict[str, str] = {}
    for start, end in found:
        spelt.setdefault(folded(text[start:end]), text[start:end].lower())
    return tuple(spelt.values())


def shared_share(query: str, answers: Sequence[str]) -> float:
    """The share, 0 to 1, of a query's distinct `content_words` that stand in that of its answers which has most of them.

    Of a query of words such as "the" alone these count; without a word it is 0.
    """
    asked = content_words(query) or frozenset(words(query))
    return max((len(asked & set(words(answer))) / len(asked) for answer in answers if asked), default=0.0)
