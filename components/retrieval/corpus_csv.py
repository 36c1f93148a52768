"""Comma, semicolon or tab separated text to a table; the first row names the columns.

A row that breaks the format is set aside with its number and the reason, and reading goes on behind it: a quote that
is opened and never closed, or followed by more text, costs its own line and not the rest of the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from components.errors import InputError
from components.retrieval.corpus_table import BadRow, Table, lines_of

DELIMITERS = ",;\t"
ROW_LINES = 1_000  # a quoted field that goes on for longer is one whose end is missing
RUNAWAYS = 1_000  # after so many of them the file is no CSV


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


def read_separated(text: str, name: str, delimiter: str | None, max_rows: int | None) -> Table:
    lines = lines_of(text)
    start = next((place for place, line in enumerate(lines) if line.strip()), None)
    if start is None:
        return Table({}, ())
    named = re.fullmatch(r"sep=(.)", lines[start].strip("\r"), re.IGNORECASE)  # as spreadsheets write it
    if named is not None:
        delimiter, start = named[1], start + 1
    delimiter = delimiter or sniff_delimiter(lines[start : start + 50])
    feed = _Feed(lines)
    feed.at = feed.row_start = start
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    numbers: list[int] = []
    bad: list[BadRow] = []
    names: list[str] | None = None
    runaways = 0
    while max_rows is None or len(rows) < max_rows:
        first = feed.row_start = feed.at
        try:
            row = next(reader, None)
        except csv.Error as problem:
            runaways += feed.at - first > 100
            feed.at = first + 1  # only this line is lost
            row = lines[first].split(delimiter) if delimiter == "\t" else []
            # Between tabs a quote is often just a quote.
            if names is None or runaways > RUNAWAYS or len(row) != len(names):
                reason = "a field of more than 131,072 characters" if "limit" in str(problem) else "quotes do not match"
                if names is None or runaways > RUNAWAYS:
                    raise _no_table(name, reason) from problem
                bad.append(BadRow(first + 1, reason))
                continue
        if row is None:
            break
        if names is None:
            names = _column_names(row)
        elif len(row) == len(names):
            rows.append(row)
            numbers.append(first + 1)
        else:
            empty = not any(map(str.strip, row))
            bad.append(BadRow(first + 1, "empty" if empty else f"{len(row)} fields instead of {len(names)}"))
    columns = list(zip(*rows, strict=True)) or [()] * len(names or ())
    return Table(dict(zip(names or (), columns, strict=True)), numbers, bad)


def _no_table(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} could not be read as a table: {reason}.",
        "Fields with a comma, semicolon or tab between them were expected, the first row with their names.",
        "Export it as CSV with quotes around texts, or one sentence a line as .txt.",
    )


def sniff_delimiter(lines: Sequence[str]) -> str:
    """The one of comma, semicolon and tab by which most rows have as many fields as the header; else the comma."""
    best, most = ",", 1.0  # one row, the header, always fits itself
    for delimiter in DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader((line + "\n" for line in lines), delimiter=delimiter) if row]
        except csv.Error:
            continue
        fitting = widths.count(widths[0]) / len(widths) + widths[0] / 1000 if widths and widths[0] > 1 else 0.0
        if fitting > most or (best == "," and most == 1.0 and fitting > 0.5):
            best, most = delimiter, fitting
    return best


def _column_names(header: Sequence[str]) -> list[str]:
    """Names of the columns: trimmed, none empty, none twice."""
    names: list[str] = []
    for number, field_text in enumerate(header, start=1):
        name = field_text.strip() or f"column {number}"
        names.append(f"{name} ({number})" if name in names else name)
    return names
