"""Comma, semicolon or tab separated text to a table; the first row names the columns.

A row that breaks the format is reported with its number and the reason, and reading continues after it: a quote that is
never closed, or that has more text behind it, costs only its own line and not the rest of the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.errors import InputError
from components.retrieval.corpora.readers.encoding import clean
from components.retrieval.corpora.readers.table import MOST_COLUMNS, BadRow, Table, lines_of

DELIMITERS = ",;\t"
ROW_LINES = 1_000  # a quoted field with more lines than this has lost its closing quote
MOST_RUNAWAYS = 1_000  # with more rows than this that never end, the file is not a CSV file
LONG_FIELD = "a field of more than 131,072 characters"  # the standard library's limit


class _Feed:
    """The lines for a CSV reader. It can be set back to an earlier line, and notices a row that never ends."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines, self.position, self.row_start = lines, 0, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.position >= len(self.lines):
            raise StopIteration
        if self.position - self.row_start >= ROW_LINES:
            raise csv.Error("a quote is opened and not closed")
        self.position += 1
        return self.lines[self.position - 1] + "\n"


@dataclass(frozen=True)
class _Record:
    line: int  # where it begins, from 1
    fields: list[str]
    problem: str | None = None  # what is wrong with the quotes; `fields` are then the line split at each delimiter


def _records(lines: Sequence[str], delimiter: str, name: str) -> Iterator[_Record]:
    """The rows of a CSV file. After a row whose quotes do not match, reading continues with the next line."""
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    runaways = 0
    while True:
        first = feed.row_start = feed.position
        try:
            fields = next(reader, None)
        except csv.Error as problem:
            reason = LONG_FIELD if "limit" in str(problem) else "quotes do not match"
            runaways += feed.position - first > ROW_LINES // 10
            if runaways > MOST_RUNAWAYS:
                raise _no_table(name, reason) from problem
            feed.position = first + 1  # only this line is lost
            yield _Record(first + 1, lines[first].split(delimiter), reason)
            continue
        if fields is None:
            return
        yield _Record(first + 1, fields)


def read_separated(text: str, name: str, delimiter: str | None, max_rows: int | None) -> Table:
    """The table of a CSV file, or its first `max_rows` rows. Without a delimiter, it is detected.

    Raises InputError where the quotes of the header, or of nearly all rows, do not match.
    """
    lines = lines_of(text)
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    named = re.fullmatch(r"sep=([,;\t|])", lines[start], re.IGNORECASE) if start < len(lines) else None
    if named is not None:  # a line that spreadsheets write
        delimiter, start = named[1], start + 1
    delimiter = delimiter or sniff_delimiter(lines[start : start + 50])
    records = _records(lines[start:], delimiter, name)
    header = next(records, None)
    if header is None:
        return Table({}, ())
    if header.problem is not None:
        raise _no_table(name, header.problem)
    width = len(header.fields)
    rows: list[list[str]] = []
    numbers: list[int] = []
    bad: list[BadRow] = []
    for record in records:
        # In tab separated text a quote is often an ordinary character.
        if record.problem is not None and (delimiter != "\t" or len(record.fields) != width):
            bad.append(BadRow(record.line + start, record.problem))
        elif len(record.fields) == width:
            rows.append(record.fields)
            numbers.append(record.line + start)
        elif not any(map(str.strip, record.fields)):
            bad.append(BadRow(record.line + start, "empty"))
        else:
            bad.append(BadRow(record.line + start, f"{len(record.fields)} fields instead of {width}"))
        if max_rows is not None and len(rows) >= max_rows:
            break
    names = column_names(header.fields)
    columns = list(zip(*rows, strict=True)) or [()] * width
    kept: dict[str, Sequence[str]] = dict(zip(names[:MOST_COLUMNS], columns, strict=False))
    return Table(kept, numbers, bad, left_out=tuple(names[MOST_COLUMNS:]))


def _no_table(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} could not be read as a table: {reason}.",
        "Fields separated by commas, semicolons or tabs were expected, with their names in the first row.",
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
