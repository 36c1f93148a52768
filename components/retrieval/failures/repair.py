"""Query repair: other ways to write a query that need nothing but the corpus's words, or a list of one's own.

- spelling: each word that is likely to be misspelt is replaced by its neighbour (components.retrieval.failures.vocabulary);
- lower case: all letters of the query are small ones;
- abbreviations: each word of a list of one's own is replaced by what it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from components.errors import InputError
from components.retrieval.failures.vocabulary import CorpusWords
from components.words.unicode_words import folded, spans

SPELLING, LOWER_CASE, ABBREVIATIONS = "spelling", "lower case", "abbreviations"
MOST_ALONE = 50  # words of a query that are replaced each by itself, the first ones
LONGEST = 1_000  # characters of a query of which each repair is made


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
    found = _replaced(query, known, ways, abbreviations or {})
    text = _with(query, found)
    return Repaired(text.lower() if LOWER_CASE in ways else text, _words(query, found))


def each_repair(query: str, known: CorpusWords, abbreviations: Mapping[str, str] | None = None) -> tuple[Repaired, ...]:
    """A query with each of its words replaced by itself, with all of them if there are several, and in lower case.

    None of them is the query itself, and no two are the same. Of more than MOST_ALONE words that can be replaced only the
    first ones are by themselves; a query of more than LONGEST characters has none.
    """
    if len(query) > LONGEST:
        return ()
    found = _replaced(query, known, (ABBREVIATIONS, SPELLING), abbreviations or {})
    tried = [*([one] for one in found[:MOST_ALONE]), found]
    texts = {_with(query, some): _words(query, some) for some in tried}
    texts.setdefault(_with(query, found).lower(), _words(query, found))
    return tuple(Repaired(text, replaced) for text, replaced in texts.items() if text != query)


def _replaced(
    query: str, known: CorpusWords, ways: tuple[str, ...], abbreviations: Mapping[str, str]
) -> list[tuple[int, int, str]]:
    """Which characters of a query are replaced by some ways, from the first to the one after the last, and by what."""
    found: list[tuple[int, int, str]] = []
    for word, start, end in spans(query):
        by = abbreviations.get(word) if ABBREVIATIONS in ways else None
        if by is None and SPELLING in ways:
            by = known.neighbour(word)
        if by is not None and (not found or start >= found[-1][1]):  # pairs of characters overlap
            found.append((start, end, by))
    return found


def _with(query: str, replaced: Sequence[tuple[int, int, str]]) -> str:
    parts, done = [], 0
    for start, end, by in replaced:
        parts += [query[done:start], by]
        done = end
    return "".join([*parts, query[done:]])


def _words(query: str, replaced: Sequence[tuple[int, int, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((query[start:end], by) for start, end, by in replaced)


def every_way(abbreviations: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...]]:
    """The combinations of ways that can be tried, by their names: "spelling", "spelling, lower case"."""
    single = (*((ABBREVIATIONS,) if abbreviations else ()), SPELLING, LOWER_CASE)
    return {", ".join(chosen): chosen for count in range(1, len(single) + 1) for chosen in combinations(single, count)}


def parsed_abbreviations(text: str) -> dict[str, str]:
    """A list of one's own, as in "kb=knowledge base, pw=password", with folded words. Raises InputError."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(short.strip() and sign and meaning.strip() for short, sign, meaning in pairs):
        raise InputError(
            f"The abbreviations {text[:80]!r} are not valid.",
            "Each is a short form, =, and what it stands for; several have commas between them.",
            "Write for example kb=knowledge base,pw=password.",
        )
    return {folded(short.strip()): meaning.strip() for short, _, meaning in pairs}
