"""Comma, semicolon or tab separated text to a table; the first row names the columns.

A row that breaks the format is reported with its number and the reason, and reading continues after it: a quote that is
never closed, or that has more text after it, costs only its own line and not the rest of the file.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from components.errors import InputError
from components.retrieval.corpora.readers.encoding import Decoded, clean
from components.retrieval.corpora.readers.limits import LONG_ROW, MOST_FIELDS, MOST_ROW_CHARACTERS, Count
from components.retrieval.corpora.readers.table import MOST_COLUMNS, BadRows, Table

DELIMITERS = ",;\t"
ROW_LINES = 1_000  # a quoted field with more lines than this has lost its closing quote
MOST_RUNAWAYS = 1_000  # with more rows than this that never end, the file is not a CSV file
LONG_FIELD = "a field of more than 131,072 characters"  # the standard library's limit
MOST_REPEATED = 500 << 20  # the same for the characters that are read again after such rows
SNIFFED_LINES = 50
_BLOCK_ROWS, _BLOCK_FIELDS = 1_000, 100_000  # rows that are put into columns together


class _Feed:
    """The lines for a CSV reader. It can be set back to the row's second line, and notices a row that never ends."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._again: deque[str] = deque()  # lines that are read once more
        self.row: list[str] = []  # the lines of this row so far
        self.characters = 0  # of this row

    def begin_row(self) -> None:
        """Forget the lines of the row before."""
        self.row.clear()
        self.characters = 0

    def set_back(self) -> None:
        """Give all lines of this row but the first once more."""
        self._again.extendleft(reversed(self.row[1:]))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if len(self.row) >= ROW_LINES:
            raise csv.Error("a quote is opened and not closed")
        line = self._again.popleft() if self._again else next(self._lines)
        self.row.append(line)
        self.characters += len(line)
        if self.characters > MOST_ROW_CHARACTERS:
            raise csv.Error(LONG_ROW)
        return line + "\n"


@dataclass(frozen=True)
class _Record:
    line: int  # where it begins, from 1
    fields: list[str]
    problem: str | None = (
        None  # what is wrong with the row; if its quotes, `fields` are its line split at each delimiter
    )


def _records(lines: Iterable[str], delimiter: str, name: str) -> Iterator[_Record]:
    """The rows of a CSV file. After a row whose quotes do not match, reading continues with the next line."""
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    runaways, repeated, number = 0, 0, 1
    while True:
        feed.begin_row()
        try:
            fields = next(reader, None)
        except csv.Error as problem:
            first = feed.row[0]
            reason = "quotes do not match"
            if len(first) > MOST_ROW_CHARACTERS:
                reason = LONG_ROW
            elif "limit" in str(problem):
                reason = LONG_FIELD
            runaways += len(feed.row) > ROW_LINES // 10
            repeated += feed.characters - len(first)
            if runaways > MOST_RUNAWAYS or repeated > MOST_REPEATED:
                raise _no_table(name, reason) from problem
            feed.set_back()  # only the first line is lost
            yield _Record(number, [] if reason == LONG_ROW else first.split(delimiter), reason)
            number += 1
            continue
        if fields is None:
            return
        yield _Record(number, fields)
        number += len(feed.row)


def read_separated(text: Decoded, name: str, delimiter: str | None, max_rows: int | None, count: Count) -> Table:
    """The table of a CSV file, or its first `max_rows` rows. Without a delimiter, it is detected.

    Raises InputError where the quotes of the header, or of nearly all rows, do not match, and above the limits.
    """
    lines, start = text.lines(), 0
    first = next(lines, None)
    while first is not None and not first.strip():
        count.add_rows(1)
        first, start = next(lines, None), start + 1
    if first is None:
        return Table({}, ())
    named = re.fullmatch(r"sep=([,;\t|])", first, re.IGNORECASE)
    if named is not None:  # a line that spreadsheets write
        delimiter, start = named[1], start + 1
    else:
        lines = chain([first], lines)
    sample = list(islice(lines, SNIFFED_LINES))
    delimiter = delimiter or sniff_delimiter(sample)
    records = _records(chain(sample, lines), delimiter, name)
    header = next(records, None)
    if header is None:
        return Table({}, ())
    if header.problem is not None:
        raise _no_table(name, header.problem)
    width = len(header.fields)
    if width > MOST_FIELDS:
        raise _no_table(name, f"its first row has {width:,} fields, which is more than {MOST_FIELDS:,}")
    columns = _Columns(min(width, MOST_COLUMNS), count)
    bad = BadRows()
    for record in records:
        count.add_rows(1)
        # In tab separated text a quote is often an ordinary character.
        if record.problem is not None and (delimiter != "\t" or len(record.fields) != width):
            bad.add(record.line + start, record.problem)
        elif len(record.fields) == width:
            columns.add(record.line + start, record.fields)
        elif not any(map(str.strip, record.fields)):
            bad.add(record.line + start, "empty")
        else:
            bad.add(record.line + start, f"{len(record.fields):,} fields instead of {width:,}")
        if max_rows is not None and len(columns) >= max_rows:
            break
    columns.flush()
    names = column_names(header.fields)
    kept: dict[str, Sequence[str]] = dict(zip(names[:MOST_COLUMNS], columns.values, strict=True))
    return Table(kept, columns.numbers, bad, left_out=tuple(names[MOST_COLUMNS:]))


class _Columns:
    """The values of each kept column, and the row numbers. Rows are added in blocks: their lists are not kept."""

    def __init__(self, width: int, count: Count) -> None:
        self.values: list[list[str]] = [[] for _ in range(width)]
        self.numbers: list[int] = []
        self._rows: list[list[str]] = []
        self._most = max(1, min(_BLOCK_ROWS, _BLOCK_FIELDS // max(width, 1)))
        self._count = count

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, number: int, row: list[str]) -> None:
        self.numbers.append(number)
        self._rows.append(row)
        if len(self._rows) >= self._most:
            self.flush()

    def flush(self) -> None:
        """Put the rows of this block into the columns. Raises InputError above the limit of memory."""
        block = list(zip(self.values, zip(*self._rows, strict=True), strict=False))  # at most 200 columns
        self._rows.clear()
        self._count.add_values(*(fields for _, fields in block))
        for column, fields in block:
            column.extend(fields)


def _no_table(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} could not be read as a table: {reason}.",
        "A table has fields separated by commas, semicolons or tabs, with their names in the first row.",
        "Export it as CSV with quotes around texts, or as .txt with one sentence per line.",
    )


def sniff_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that gives a header of several fields and most rows the same number of fields; else the comma."""
    fits: dict[str, tuple[float, int]] = {}
    for delimiter in DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader((line + "\n" for line in lines), delimiter=delimiter) if row]
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            fits[delimiter] = (widths.count(widths[0]) / len(widths), widths[0])
    return max(fits, key=lambda delimiter: fits[delimiter], default=",")


def column_names(header: Sequence[str]) -> list[str]:
    """The names of the columns, printable and in one line; none is empty, none occurs twice."""
    names: dict[str, None] = {}
    for number, given in enumerate(header, start=1):
        name = clean(given).text or f"column {number}"
        while name in names:
            name += f" ({number})"
        names[name] = None
    return list(names)
