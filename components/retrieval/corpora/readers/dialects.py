"""In which dialect a separated text is written, and whether its first row names the columns.

No file says so. The delimiter is the one that divides the first rows into the most regular table. For the quotes and
backslashes each dialect reads a part of the file that has them, and the one is taken that loses the fewest lines; among
equals the one whose writer would have written the fields as they stand. Between tabs (and vertical bars) a quote is an
ordinary character where the lines say so: one begins a field and nothing ends it, or a row in quotes would swallow lines
that are whole rows by themselves. Between commas and semicolons, which stand in texts too, only a column of numbers can
say so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, zip_longest
from typing import NamedTuple

from components.retrieval.corpora.column_names import ANSWERS, BODIES, QUESTIONS, TEXTS, TITLES, plain
from components.retrieval.corpora.readers.separated_rows import (
    AS_FOUND,
    SEPARATORS,
    Dialect,
    DialectChoice,
    Record,
    Runaway,
    records,
)

DELIMITERS = ",;\t|"
WITHOUT_QUOTES = "\t|"  # delimiters that texts do not contain: their files are often written without quoting
SNIFFED_LINES = 200
JUDGED_LINES, JUDGED_CHARACTERS = 20_000, 4 << 20  # from the first line on that has a quote or a backslash
CLEAR_LINES = 3  # that have to speak for a dialect: else it is a guess
MOST_RUNAWAYS = 20  # while a dialect is judged
HEADER_WORDS = 4  # a name of a column can have as many words and more, but then it does not end as a sentence does
KNOWN_NAMES = frozenset(
    {"id", "_id", "text", "sentence", "label", "score", "document", "passage", "sentence1", "sentence2"}
)
KNOWN_NAMES |= {"anchor", "positive", *map(plain, (*QUESTIONS, *ANSWERS, *TITLES, *BODIES, *TEXTS))}
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
NO_VALUES = frozenset({"na", "n/a", "nan", "none", "null", "nil"})  # words that stand for no number
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_TIME = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T,].*)?|\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?")
_SENTENCE_ENDS, _QUESTION_ENDS = frozenset(".!。！।"), frozenset("?？؟")
_WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def dialect_of(
    lines: Iterable[str], delimiter: str | None = None, choice: DialectChoice = AS_FOUND
) -> tuple[Dialect, tuple[Dialect, ...]]:
    """The dialect of a text's lines, header included, and those that fit nearly as well and give other rows, the best first.

    Without a delimiter it is detected too. What a person chose is not asked of the lines.
    """
    every = iter(lines)
    first = list(islice(every, SNIFFED_LINES))
    usual = Dialect(delimiter or sniff_delimiter(first))
    if choice.separator is not None:
        usual = Dialect(SEPARATORS[choice.separator])
    chosen = replace(usual, is_quoted=choice.quotes is not False, is_escaped=choice.escapes is True)
    judged = _with_quotes(first, every)
    if not judged:
        return chosen, ()
    try:
        width = len(next(records([first[0]], chosen)).fields)
    except Runaway:  # a header of more characters than a row may have
        return chosen, ()
    has_quoted_names = all(_QUOTED.fullmatch(name) for name in first[0].split(chosen.delimiter))
    alternatives = [other for other in _alternatives(usual, judged, width) if other.is_quoted or not has_quoted_names]
    if width == 1 and delimiter is choice.separator is None:  # then one that no backslash escapes
        alternatives.insert(0, Dialect(sniff_delimiter(first, with_escapes=False)))
    dialects = list(dict.fromkeys([chosen, *filter(choice.allows, alternatives)]))
    if len(dialects) == 1:
        return chosen, ()
    marks = re.escape("".join(dict.fromkeys(dialect.delimiter for dialect in dialects)))
    misfits = {dialect: _misfits(judged, dialect, width, has_quoted_names, marks) for dialect in dialects}
    best = min(dialects, key=lambda dialect: (misfits[dialect].lost, misfits[dialect].unusual))  # the first of equals
    others = [
        dialect
        for dialect in dialects
        if replace(dialect, is_spaced=best.is_spaced) != best
        and (misfits[dialect].broken == misfits[best].broken or misfits[best].broken > 0)
        and misfits[dialect].sum < misfits[best].sum + CLEAR_LINES
    ]
    different = [best]
    for other in sorted(others, key=lambda dialect: misfits[dialect].sum):
        if not any(_reads_alike(judged, known, other) for known in different):
            different.append(other)
    return best, tuple(different[1:])


def _reads_alike(lines: Sequence[str], one: Dialect, other: Dialect) -> bool:
    """Whether two dialects give the same rows, so that it does not matter which is right."""
    both = (records(lines, dialect, MOST_RUNAWAYS) for dialect in (one, other))
    with suppress(Runaway):
        return all(
            (first and (first.fields, first.problem)) == (second and (second.fields, second.problem))
            for first, second in zip_longest(*both)
        )
    return False


def sniff_delimiter(lines: Sequence[str], with_escapes: bool = True) -> str:
    """The delimiter that divides most rows into as many fields as the first, which it divides at all if any does.

    One that is escaped by a backslash divides nothing, and speaks for its delimiter among equals; without escapes it divides.
    """
    fits: dict[str, tuple[bool, float, int, int]] = {}
    for delimiter in DELIMITERS:
        escaped = f"\\{delimiter}"
        count = sum(line.count(escaped) for line in lines) if with_escapes else 0
        try:
            # The csv module takes a carriage return for the end of a row.
            read = csv.reader(
                (f"{line}\n".replace("\r", "\v").replace(escaped, "" if with_escapes else escaped) for line in lines),
                delimiter=delimiter,
            )
            widths = [len(row) for row in read if row]
        except csv.Error:
            continue
        if widths:
            share = widths.count(widths[0]) / len(widths)
            fits[delimiter] = (widths[0] > 1, share, widths[0], count)
    return max(fits, key=lambda delimiter: fits[delimiter], default=",")


def is_named_table(lines: Sequence[str]) -> bool:
    """Whether a delimiter divides all of the first lines into as many fields, two or more, and the first has a known name."""
    with suppress(csv.Error):
        read = csv.reader([f"{line}\n".replace("\r", "\v") for line in lines], delimiter=sniff_delimiter(lines))
        rows = [row for row in read if any(map(str.strip, row))]
        widths = set(map(len, rows[:-1] if len(lines) == SNIFFED_LINES else rows))  # the last may go on
        return len(widths) == 1 and widths != {1} and any(plain(name) in KNOWN_NAMES for name in rows[0])
    return False


def has_names(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row of a table names its columns, by the rows that follow.

    It does where a name is known, and where its fields are of another kind than those below: a word above numbers or
    times, a question above texts that are none. It does not where a text stands beside a number in a column of numbers,
    where all of its fields are sentences or questions as those below, or two are texts of several words.
    """
    if not rows or any(plain(field) in KNOWN_NAMES for field in first):
        return True
    columns = [[row[place] for row in rows if row[place].strip()] for place in range(len(first))]
    fields = [(field.strip(), below) for field, below in zip(first, columns, strict=True) if field.strip()]
    numbers = [field for field, below in fields if _NUMBER.fullmatch(field) and all(map(is_number, below))]
    has_text = any(words_in(field) >= HEADER_WORDS or _ends(field, 2) in _SENTENCE_ENDS for field in first)
    several_words = sum(words_in(field) > 1 for field in first)
    if numbers and (has_text or (several_words > 1 and not all(map(_YEAR.fullmatch, numbers)))):
        return False
    if any(is_above_numbers(field, below) for field, below in fields):
        return True
    texts = [(field, below) for field, below in fields if not _NUMBER.fullmatch(field) and not _TIME.fullmatch(field)]
    alike = [
        field
        for field, below in texts
        if words_in(field) >= HEADER_WORDS and not _is_question_above_others(field, below)
    ]
    is_row = len(alike) == len(texts) and any(map(_ends, alike))
    asks_for_others = any(_is_question_above_others(field, below) for field, below in texts)
    return not (is_row or (len(alike) > 1 and not asks_for_others))


def is_number(field: str) -> bool:
    """Whether a field is a number."""
    return _NUMBER.fullmatch(field.strip()) is not None


def is_above_numbers(field: str, below: Sequence[str]) -> bool:
    """Whether a field with letters stands above nothing but numbers or times."""
    has_letters = any(map(str.isalpha, field)) and field.casefold() not in NO_VALUES and not _TIME.fullmatch(field)
    return has_letters and bool(below) and all(is_number(value) or _TIME.fullmatch(value.strip()) for value in below)


def _is_question_above_others(field: str, below: Sequence[str]) -> bool:
    """Whether a question stands above texts most of which are none."""
    return _ends(field, 1) in _QUESTION_ENDS and 2 * sum(_ends(text, 1) in _QUESTION_ENDS for text in below) < len(
        below
    )


def words_in(field: str) -> int:
    """How many words a field has; two characters of Chinese or Japanese count as one."""
    return max(len(field.split()), len(_WITHOUT_SPACES.findall(field)) // 2)


def _ends(field: str, words: int = HEADER_WORDS) -> str:
    """The mark at the end of a sentence or question of so many words; "" where there is none."""
    last = field.rstrip("\"”»' ")[-1:]
    return last if last in _SENTENCE_ENDS | _QUESTION_ENDS and words_in(field) >= words else ""


def _with_quotes(first: Sequence[str], others: Iterator[str]) -> list[str]:
    """The lines from the first on that has a quote or a backslash, as many as are judged."""
    judged: list[str] = []
    characters = 0
    for lines in (first, others):
        for line in lines:
            if judged or '"' in line or "\\" in line:
                judged.append(line)
                characters += len(line)
                if len(judged) >= JUDGED_LINES or characters > JUDGED_CHARACTERS:
                    return judged
    return judged


def _alternatives(dialect: Dialect, lines: Sequence[str], width: int) -> list[Dialect]:
    """The other dialects that these lines could be written in."""
    plain = replace(dialect, is_quoted=False)
    found = []
    if any('"' in line for line in lines) and (
        dialect.delimiter in WITHOUT_QUOTES or _has_rows_in_quotes(lines, dialect, width)
    ):
        found.append(plain)
    if dialect.delimiter not in WITHOUT_QUOTES and any(f'{dialect.delimiter} "' in line for line in lines):
        found.append(replace(dialect, is_spaced=True))
    escape = re.compile(rf'\\(?:["\\\r{re.escape(dialect.delimiter)}]|$)')
    if any(escape.search(line) for line in lines):
        found += [replace(dialect, is_escaped=True), replace(plain, is_escaped=True)]
    return found


class _Misfits(NamedTuple):
    """What speaks against a dialect."""

    broken: int  # lines that it cannot read as rows
    swallowed: int  # lines that are whole rows by themselves, and are taken into another
    unusual: int  # fields that its writers would have written in another way

    @property
    def lost(self) -> int:
        return self.broken + self.swallowed

    @property
    def sum(self) -> int:
        return self.lost + self.unusual


def _misfits(lines: Sequence[str], dialect: Dialect, width: int, has_quoted_names: bool, marks: str) -> _Misfits:
    """What speaks against a dialect. A backslash may escape `marks`, the delimiters of all dialects that are compared."""
    broken = swallowed = 0
    kept: list[Record] = []
    holding: list[Record] = []
    try:
        for record in records(lines, dialect, MOST_RUNAWAYS):
            if not any(map(str.strip, record.lines)):
                continue
            if len(record.fields) != width or record.problem is not None:
                broken += len(record.lines)
            elif width > 1 and not has_quoted_names and dialect.is_quoted and _holds_rows(record, dialect, width):
                holding.append(record)
            else:
                kept.append(record)
    except Runaway:
        return _Misfits(len(lines) + 1, 0, 0)
    numbers = _number_columns(kept, width)
    for record in holding:
        if dialect.delimiter in WITHOUT_QUOTES or _are_rows(record.lines, dialect, numbers):
            swallowed += len(record.lines)
        else:
            kept.append(record)
    return _Misfits(broken, swallowed, _unusual(kept, dialect, marks))


def _holds_rows(record: Record, dialect: Dialect, width: int) -> bool:
    """Whether a row in quotes holds lines that could be whole rows by themselves, without a doubled quote that asks for it."""
    if len(record.lines) == 1:
        return False
    return all(line.count(dialect.delimiter) + 1 == width and '""' not in line for line in record.lines)


def _has_rows_in_quotes(lines: Sequence[str], dialect: Dialect, width: int) -> bool:
    with suppress(Runaway):
        return any(_holds_rows(record, dialect, width) for record in records(lines, dialect, MOST_RUNAWAYS))
    return False


def _number_columns(rows: Sequence[Record], width: int) -> list[int]:
    """The places of columns with nothing but numbers; all of them if there is no row."""
    return [place for place in range(width) if all(_NUMBER.fullmatch(row.fields[place]) for row in rows)]


def _are_rows(lines: Sequence[str], dialect: Dialect, numbers: Sequence[int]) -> bool:
    """Whether each line has a number where the other rows have one, so that it is a row of its own."""
    return any(all(_NUMBER.fullmatch(line.split(dialect.delimiter)[place]) for line in lines) for place in numbers)


def _unusual(rows: Sequence[Record], dialect: Dialect, marks: str) -> int:
    """How many fields the usual writers of a dialect would not have written so."""
    mark = re.escape(dialect.delimiter)
    lines = [line for row in rows for line in row.lines]
    inside = re.compile(rf'(?<=[^\\"{mark}])"(?=[^"{mark}])')  # neither doubled nor escaped, in the middle of a field
    # A backslash that escapes what follows, and is not escaped itself.
    joins = re.compile(rf"(?<!\\)(?:\\\\)*\\(?:[\r{marks}]|$)")
    if dialect.is_escaped:
        # A backslash before any other character decides: such a writer would have escaped it.
        plain = re.compile(rf'\\(?:["\\\r{mark}]|$)')
        others = sum("\\" in plain.sub("", line) for line in lines)
        if dialect.is_quoted:  # such a writer encloses a field with a delimiter or a line end, and escapes neither
            has_quotes = any('"' in line for line in lines)
            enclosed = sum(len(joins.findall(line)) for line in lines) if has_quotes else 0
        else:
            enclosed = sum(_QUOTED.match(line) is not None for line in lines) + _opened(rows)
        return 1_000 * others + sum(len(inside.findall(line)) for line in lines) + enclosed
    space = " *" if dialect.is_spaced else ""
    field = re.compile(rf'(?:^|{mark}){space}((?:"(?:[^"]|"")*"(?={mark}|$))|[^{mark}]*)')
    raw = [field.findall(row.lines[0]) for row in rows if len(row.lines) == 1]
    in_quotes = sum(_QUOTED.fullmatch(field) is not None for fields in raw for field in fields)
    escapes = sum(len(joins.findall(field)) for fields in raw for field in fields if not _QUOTED.fullmatch(field))
    if not dialect.is_quoted:
        every_is_escaped = not any(map(inside.search, lines))
        return (
            escapes + in_quotes + _opened(rows) + (sum(line.count('\\"') for line in lines) if every_is_escaped else 0)
        )
    escaped = re.compile(rf'\\"(?!["{mark}]|$)')
    bare = sum('"' in field and _QUOTED.fullmatch(field) is None for fields in raw for field in fields)
    bare += sum(len(escaped.findall(line)) for row in rows if len(row.lines) > 1 for line in row.lines)
    return escapes + bare + (_needless(raw) if dialect.delimiter in WITHOUT_QUOTES else 0)


def _opened(rows: Sequence[Record]) -> int:
    """How many rows of one column begin with a quote that may open a text of several lines: nothing else tells these apart."""
    return sum(len(row.fields) == 1 and row.lines[0].startswith('"') and row.lines[0].count('"') == 1 for row in rows)


def _needless(rows: Sequence[Sequence[str]]) -> int:
    """How many fields are in quotes that nothing in them asks for, in columns whose other texts are not in quotes."""
    count = 0
    for place in range(max(map(len, rows), default=0)):
        texts = [row[place] for row in rows if place < len(row) and row[place] and not _NUMBER.fullmatch(row[place])]
        needless = sum(_QUOTED.fullmatch(text) is not None and '"' not in text[1:-1] for text in texts)
        plain = sum('"' not in text for text in texts)
        if plain and needless > 0:
            count += needless
    return count
