"""Query repair: other ways to write a query that need nothing but the corpus's words, or a list of one's own.

- spelling: each word that is likely to be misspelt is replaced by its neighbour (components.retrieval.failures.vocabulary);
- lower case: all letters of the query are small ones;
- abbreviations: each word of a list of one's own is replaced by what it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from components.retrieval.failures.vocabulary import CorpusWords
from components.words.unicode_words import folded, spans

SPELLING, LOWER_CASE, ABBREVIATIONS = "spelling", "lower case", "abbreviations"


@dataclass(frozen=True)
class Repaired:
    """A query written in another way."""

    text: str
    words: tuple[tuple[str, str], ...]  # each word that was replaced, as typed, and what stands in its place


def repaired(
    query: str, known: CorpusWords, ways: tuple[str, ...] = (SPELLING,), abbreviations: Mapping[str, str] | None = None
) -> Repaired:
    """A query after some of the ways of the module, in this order: abbreviations, spelling, lower case.

    `abbreviations` are folded words to what they stand for.
    """
    meanings = abbreviations or {}
    parts: list[str] = []
    replaced: list[tuple[str, str]] = []
    done = 0
    for word, start, end in spans(query):
        by = meanings.get(word) if ABBREVIATIONS in ways else None
        if by is None and SPELLING in ways:
            by = known.neighbour(word)
        if by is None or start < done:  # pairs of characters overlap
            continue
        parts += [query[done:start], by]
        replaced.append((query[start:end], by))
        done = end
    text = "".join([*parts, query[done:]])
    return Repaired(text.lower() if LOWER_CASE in ways else text, tuple(replaced))


def every_way(abbreviations: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...]]:
    """The combinations of ways that can be tried, by their names: "spelling", "spelling, lower case"."""
    single = (*((ABBREVIATIONS,) if abbreviations else ()), SPELLING, LOWER_CASE)
    return {", ".join(chosen): chosen for count in range(1, len(single) + 1) for chosen in combinations(single, count)}


def parsed_abbreviations(pairs: Mapping[str, str]) -> dict[str, str]:
    """A list of one's own with folded words."""
    return {folded(short.strip()): meaning.strip() for short, meaning in pairs.items()}
