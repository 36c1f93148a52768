"""The table that every reader of corpus files returns.

A `Table` holds one list per column, the row number of each value, and the rows that could not be read. Row numbers
are the line numbers of an editor for text formats (a header is line 1), and count from 1 for .json and .parquet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any

from components.numbers import counted
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice

LINE_COLUMN, SET_COLUMN = "text", "set"  # the names of a column of plain lines, and of one of lists of sentences
MOST_COLUMNS = 200
SAMPLES_KEPT, SAMPLE_CHARACTERS = 3, 500
TITLE_ROW = "a title above the names of the columns"
NAMES_AGAIN = "the names of the columns once more"
TITLE_CHARACTERS = 80  # of a title that are shown
BAD_ROWS_KEPT, REASONS_COUNTED = 100, 1_000
REFUSED_SHOWN = MOST_REASONS = 5  # rows, and reasons, in a sentence


@dataclass(frozen=True)
class BadRow:
    row: int
    reason: str


def each_reason(reasons: Mapping[str, int]) -> str:
    """Reasons, each with its number of rows, the most frequent first."""
    most = Counter(reasons).most_common()
    further = sum(count for _, count in most[MOST_REASONS:])
    named = [*most[:MOST_REASONS], *([("other reasons", further)] if further else [])]
    return "; ".join(f"{reason}: {counted(count, 'row')}" for reason, count in named)


def rows_left_out(lost: int, rows: int, reasons: Mapping[str, int], first: Sequence[BadRow]) -> str:
    """Why `lost` of the `rows` of a file are left out, with the numbers of the first, in a sentence; "" where none is."""
    if not lost or not reasons:
        return ""
    are = "is" if lost == 1 else "are"
    said = f"{lost:,} of {counted(rows, 'row')} cannot be used and {are} left out: "
    shown = ", ".join(f"row {row.row} ({row.reason})" for row in first[:REFUSED_SHOWN])
    if lost <= min(len(first), REFUSED_SHOWN):  # each of them is named
        return f"{said}{shown}."
    return f"{said}{each_reason(reasons)}{f'. The first: {shown}' if shown else ''}."


class BadRows:
    """The rows that cannot be used: the first 100 that were found, and how many there are for each reason."""

    def __init__(self, rows: Iterable[BadRow] = ()) -> None:
        self.first: list[BadRow] = []
        self.reasons: Counter[str] = Counter()
        self.last = 0  # the highest number of a row
        for row in rows:
            self.add(row.row, row.reason)

    def __len__(self) -> int:
        return self.reasons.total()

    def add(self, row: int, reason: str) -> None:
        """Keep or count a row."""
        self.last = max(self.last, row)
        if len(self.first) < BAD_ROWS_KEPT:
            self.first.append(BadRow(row, reason))
        # A reason can name a number of fields: a hostile file has a reason of its own in each row.
        known = reason in self.reasons or len(self.reasons) < REASONS_COUNTED
        self.reasons[reason if known else "another reason"] += 1

    def joined(self, other: BadRows, offset: int = 0) -> BadRows:
        """Both together, the first 100 by their numbers, those of `other` moved by `offset`."""
        both = BadRows()
        moved = [BadRow(row.row + offset, row.reason) for row in other.first]
        both.first = list(islice(merge(self.first, moved, key=attrgetter("row")), BAD_ROWS_KEPT))
        both.reasons = self.reasons + other.reasons
        both.last = max(self.last, other.last + offset if other.reasons else 0)
        return both


class Samples:
    """The first rows as they stand in the file, beside which a person sees what was read of them."""

    def __init__(self) -> None:
        self.first: list[tuple[int, str]] = []

    def add(self, number: int, lines: Iterable[str]) -> None:
        """Keep a row's number and the beginning of its lines, if it is among the first."""
        if len(self.first) < SAMPLES_KEPT:
            self.first.append((number, "\n".join(line[:SAMPLE_CHARACTERS] for line in lines)[:SAMPLE_CHARACTERS]))


@dataclass
class Table:
    """The values of a file, unchanged and aligned: columns[name][i] comes from row numbers[i]."""

    columns: dict[str, Sequence[Any]]
    numbers: Sequence[int]
    bad: BadRows = field(default_factory=BadRows)
    encoding: str = "utf-8"
    encoding_guessed: bool = False
    has_broken_bytes: bool = False
    left_out: tuple[str, ...] = ()  # columns that are not kept: pictures, sounds, or more than the limit
    joined: int = 0  # rows that were written over several lines
    dialect: str = ""  # of separated text, for people
    other_dialect: str = ""  # that fits nearly as well: then the dialect is a guess
    is_named: bool = True  # False where the first row of separated text is no header: "column 1" names the first column
    samples: Sequence[tuple[int, str]] = ()  # the first rows as they stand in the file, by their numbers
    chosen: DialectChoice = AS_FOUND  # what a person chose of the dialect
    otherwise: tuple[DialectChoice, ...] = ()  # choices that give what it could be too, where something is a guess
    titles: tuple[tuple[int, str], ...] = ()  # rows above the names of the columns, which are left out: number and text
    header_row: int = 1  # the number of the row with the names, where there are titles
    notes: tuple[str, ...] = ()  # what else is to be said of how it was read, a sentence each

    @property
    def title_sentence(self) -> str:
        """That rows are left out as titles, and which row names the columns; "" where there is no title."""
        if not self.titles:
            return ""
        shown = ", ".join(f"row {number} (“{text[:TITLE_CHARACTERS]}”)" for number, text in self.titles)
        one = len(self.titles) == 1
        return (
            f"{shown[0].upper()}{shown[1:]} {'looks like a title and is' if one else 'look like titles and are'} left out; "
            f"row {self.header_row} names the columns."
        )
