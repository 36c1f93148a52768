"""Comma, semicolon or tab separated text to a table; the first row names the columns.

A row that breaks the format is set aside with its number and the reason, and reading goes on behind it: a quote that
is opened and never closed, or followed by more text, costs its own line and not the rest of the file.
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
ROW_LINES = 1_000  # a quoted field that goes on for longer is one whose end is missing
RUNAWAYS = 1_000  # after so many of them the file is no CSV
LONG_FIELD = "a field of more than 131,072 characters"  # the standard library's limit


class _Feed:
    """Hands a CSV reader its lines, can be put back to an earlier one, and notices a row that never ends."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines, self.at, self.row_start = lines, 0, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.at >= len(self.lines):
            raise StopIteration
        if self.at - self.row_start >= ROW_LINES:
            raise csv.Error("a quote is opened and not closed")
        self.at += 1
        return self.lines[self.at - 1] + "\n"


@dataclass(frozen=True)
class _Record:
    line: int  # where it begins, from 1
    fields: list[str]
    problem: str | None = None  # what is wrong with the quotes; `fields` are then the line's own, quotes as they are


def _records(lines: Sequence[str], delimiter: str, name: str) -> Iterator[_Record]:
    """The rows of a CSV. Behind one whose quotes do not match, the next line is where reading goes on."""
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    runaways = 0
    while True:
        first = feed.row_start = feed.at
        try:
            fields = next(reader, None)
        except csv.Error as problem:
            reason = LONG_FIELD if "limit" in str(problem) else "quotes do not match"
            runaways += feed.at - first > ROW_LINES // 10
            if runaways > RUNAWAYS:
                raise _no_table(name, reason) from problem
            feed.at = first + 1  # only this line is lost
            yield _Record(first + 1, lines[first].split(delimiter), reason)
            continue
        if fields is None:
            return
        yield _Record(first + 1, fields)


def read_separated(text: str, name: str, delimiter: str | None, max_rows: int | None) -> Table:
    """The table of a CSV, or its first `max_rows` rows. Without a delimiter it is found out.

    Raises InputError where the header, or nearly everything, has quotes that do not match.
    """
    lines = lines_of(text)
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    named = re.fullmatch(r"sep=([,;\t|])", lines[start], re.IGNORECASE) if start < len(lines) else None
    if named is not None:  # a spreadsheet's own note
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
        # Between tabs a quote is often just a quote.
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
        "Fields with a comma, semicolon or tab between them were expected, the first row with their names.",
        "Export it as CSV with quotes around texts, or one sentence a line as .txt.",
    )


def sniff_delimiter(lines: Sequence[str]) -> str:
    """The one of comma, semicolon and tab by which the header has several fields and most rows as many; else the comma."""
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
    """Names of the columns: in one line and printable, none empty, none twice."""
    names: dict[str, None] = {}
    for number, given in enumerate(header, start=1):
        name = clean(given).text or f"column {number}"
        while name in names:
            name += f" ({number})"
        names[name] = None
    return list(names)
