"""Query repair: other ways to write a query that need nothing but the corpus's words, or a list of one's own.

- spelling: each word that is likely to be misspelt is replaced by its neighbour (components.retrieval.failures.vocabulary);
- lower case: all letters of the query are small ones;
- abbreviations: each entry of a list of one's own, a word or several in a row, is replaced by what it stands for. Hyphens and
  other signs between its words make no difference, and of several entries that begin at a word the longest is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from components.errors import InputError
from components.numbers import counted
from components.retrieval.failures.vocabulary import CorpusWords
from components.words.unicode_words import Span, folded, spans

SPELLING, LOWER_CASE, ABBREVIATIONS = "spelling", "lower case", "abbreviations"
MOST_ALONE = 50  # words of a query that are replaced each by itself, the first ones
MOST_SHOWN = 10  # abbreviations in a sentence
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

    `abbreviations` are as `parsed_abbreviations` gives them.
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
    meanings = {_run(short): meaning for short, meaning in abbreviations.items()} if ABBREVIATIONS in ways else {}
    lengths = sorted({len(run) for run in meanings}, reverse=True)
    found: list[tuple[int, int, str]] = []
    in_order = _parts(query)
    for number, (word, (start, end)) in enumerate(in_order):
        if found and start < found[-1][1]:  # within what is replaced; pairs of characters overlap
            continue
        runs = (in_order[number : number + length] for length in lengths)
        run = next((run for run in runs if tuple(part for part, _ in run) in meanings), None)
        if run is not None:
            end = run[-1][1][1]
            end += "." in run[-1][0] and query.startswith(".", end)  # of "v.c."
            found.append((start, end, meanings[tuple(part for part, _ in run)]))
        elif SPELLING in ways and (by := known.neighbour(word)) is not None:
            found.append((start, end, by))
    return found


def _parts(text: str) -> list[tuple[str, Span]]:
    """The words of a text, folded, with where they stand; of a code with a hyphen ("E-23") its two parts."""
    found: list[tuple[str, Span]] = []
    for word, start, end in spans(text):
        hyphen = text.find("-", start, end)
        if hyphen < 0:
            found.append((word, (start, end)))
        else:
            found += [(folded(text[first:last]), (first, last)) for first, last in ((start, hyphen), (hyphen + 1, end))]
    return found


def _run(text: str) -> tuple[str, ...]:
    return tuple(part for part, _ in _parts(text))


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
    if not all(_run(short) and sign and meaning.strip() and "=" not in meaning for short, sign, meaning in pairs):
        raise InputError(
            f"The abbreviations {text[:80]!r} are not valid.",
            "Each is a short form, =, and what it stands for; several have commas between them.",
            "Write for example kb=knowledge base,pw=password.",
        )
    given: dict[tuple[str, ...], tuple[str, str]] = {}
    for short, _, meaning in pairs:
        earlier, own = given.setdefault(_run(short), (short.strip(), meaning.strip()))
        if own != meaning.strip():
            raise InputError(
                f"The abbreviation {earlier[:80]!r} is given twice.",
                f"It stands for {own[:80]!r} and for {meaning.strip()[:80]!r}.",
                "Leave one of them out.",
            )
    return {folded(short): meaning for short, meaning in given.values()}


def in_no_query(abbreviations: Mapping[str, str], queries: Iterable[str]) -> str:
    """Which abbreviations stand in none of the queries, in a sentence; "" where each stands in one."""
    missing = {short: f" {' '.join(_run(short))} " for short in abbreviations}
    for query in queries if missing else ():
        written = f" {' '.join(_run(query))} "
        missing = {short: run for short, run in missing.items() if run not in written}
    if not missing:
        return ""
    shown = ", ".join(list(missing)[:MOST_SHOWN]) + ", …" * (len(missing) > MOST_SHOWN)
    stand = "stands" if len(missing) == 1 else "stand"
    return f"{len(missing):,} of {counted(len(abbreviations), 'abbreviation')} {stand} in no query: {shown}."
