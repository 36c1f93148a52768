"""Opposite adjectives and verbs that make a sentence mean the other thing: “too big” and “too small”.

A short list of common ones, for sentences in which a pronoun can mean either of two things and the last words decide
(Winograd schemas: Levesque, Davis and Morgenstern 2012).
"""

from __future__ import annotations

_PAIRS = (
    "big small, large tiny, tall short, long brief, wide narrow, thick thin, high low, deep shallow, heavy light, strong weak, "
    "hard soft, fast slow, quick sluggish, old young, ancient modern, hot cold, warm cool, wet dry, full empty, open closed, "
    "rich poor, cheap expensive, loud quiet, bright dark, clean dirty, safe dangerous, early late, good bad, kind cruel, "
    "happy sad, easy difficult, clever stupid, brave scared, healthy ill, awake asleep, alive dead, near far, rough smooth, "
    "sharp blunt, sweet bitter, hungry fed, upstairs downstairs, successful unsuccessful, won lost, arrived left, "
    "feared advocated"
)
_OPPOSITES = {
    word: other for pair in _PAIRS.split(", ") for word, other in (tuple(pair.split()), tuple(reversed(pair.split())))
}


def opposite_of(word: str) -> str | None:
    """The opposite of an English word, with a capital letter where the word has one; None for a word that is not listed."""
    found = _OPPOSITES.get(word.lower())
    return found.capitalize() if found is not None and word[:1].isupper() else found
