"""Titles above the names of the columns, as a spreadsheet exports them: “Customer questions;;” above “id;text;score”.

A title row has one filled field (and may have no separator at all). It is taken for a title only where the row below has names:
a known one, or names in every field of which one stands above numbers or above texts of several words.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import NamedTuple

from components.retrieval.corpora.column_names import plain
from components.retrieval.corpora.readers.dialects import (
    DELIMITERS,
    HEADER_WORDS,
    KNOWN_NAMES,
    has_names,
    is_above_numbers,
    is_number,
    words_in,
)

MOST_TITLES = 5
READ_LINES = 40  # the titles, the names and the first rows, by which it is judged
_NAME_WORDS = HEADER_WORDS - 1


class Titles(NamedTuple):
    """The first lines of a separated text that stand above the names of its columns."""

    lines: int = 0  # how many lines to pass over
    rows: tuple[tuple[int, str], ...] = ()  # the titles among them: line from 0, and text


def titles_of(lines: Sequence[str], delimiter: str | None = None) -> Titles:
    """The titles of a text whose first lines these are; the first line has text. Without a delimiter, each is tried."""
    for mark in delimiter or DELIMITERS:
        try:
            rows = list(csv.reader([f"{line}\n".replace("\r", "\v") for line in lines], delimiter=mark))
        except csv.Error:  # a field beyond the limit
            continue
        found = _above_names(rows)
        # Each title must be a line of its own: a quote in it would make rows of several lines.
        if found.lines and all(
            _filled(next(csv.reader([line.replace("\r", "\v")], delimiter=mark), [])) <= 1
            for line in lines[: found.lines]
        ):
            return found
    return Titles()


def _above_names(rows: Sequence[Sequence[str]]) -> Titles:
    titles: list[tuple[int, str]] = []
    for place, row in enumerate(rows):
        if _filled(row) > 1:
            return (
                Titles(place, tuple(titles))
                if titles and _are_names(row, rows[place + 1 :], titles, rows)
                else Titles()
            )
        if _filled(row) == 1:
            text = next(field.strip() for field in row if field.strip())
            if titles and plain(text) in KNOWN_NAMES and all(title.startswith("#") for _, title in titles):
                return Titles(place, tuple(titles))  # comments above a single column
            if len(titles) == MOST_TITLES or plain(text) in KNOWN_NAMES or is_number(text):
                return Titles()
            titles.append((place, text))
    return Titles()


def _are_names(
    row: Sequence[str], below: Sequence[Sequence[str]], titles: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]]
) -> bool:
    """Whether a row below titles has the names of the columns."""
    names = [field.strip() for field in row if field.strip()]
    given = [other for other in below if _filled(other)]
    alike = [other for other in given if len(other) == len(row)]
    if not alike or 2 * len(alike) < len(given) or len(set(names)) < len(names):
        return False
    if any(words_in(name) > _NAME_WORDS or is_number(name) for name in names):
        return False
    if any(plain(name) in KNOWN_NAMES for name in names):
        return True
    # Without a known name: every column has one, the titles are written in as many fields, and a column differs from its name.
    if len(names) < len(row) or any(len(rows[place]) != len(row) for place, _ in titles) or not has_names(row, alike):
        return False
    return any(_differs(field, [other[place] for other in alike]) for place, field in enumerate(row))


def _differs(name: str, values: Sequence[str]) -> bool:
    """Whether a column's values are of another kind than its name: numbers, or texts of several words."""
    present = [value for value in values if value.strip()]
    if is_above_numbers(name.strip(), present):
        return True
    return bool(present) and sum(map(words_in, present)) >= HEADER_WORDS * len(present)


def _filled(row: Sequence[str]) -> int:
    return sum(bool(field.strip()) for field in row)
