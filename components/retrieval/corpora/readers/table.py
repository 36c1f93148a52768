"""What every reader of corpus files gives, and how much of a corpus is read.

A `Table` holds one list a column, the row each value came from, and the rows that could not be read. Row numbers
are those an editor shows for text formats (a header is line 1), and count from 1 for .json and .parquet.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from components.errors import InputError
from components.model.store import parse_bytes

SENTENCES_VARIABLE, BYTES_VARIABLE = "BERT_INTERNALS_CORPUS_SENTENCES", "BERT_INTERNALS_CORPUS_BYTES"
LINE_COLUMN, SET_COLUMN = "text", "set"  # what a plain line, and a list of sentences, are called
MOST_COLUMNS = 200


@dataclass(frozen=True)
class BadRow:
    row: int
    reason: str


@dataclass
class Table:
    """Values as they stand in the file, aligned: columns[name][i] stands in row numbers[i]."""

    columns: dict[str, Sequence[Any]]
    numbers: Sequence[int]
    bad: list[BadRow] = field(default_factory=list)
    encoding: str = "utf-8"
    encoding_guessed: bool = False
    has_broken_bytes: bool = False
    left_out: tuple[str, ...] = ()  # columns that cannot be kept: pictures, sounds, or one too many


@dataclass(frozen=True)
class Limits:
    """The largest corpus that is read."""

    sentences: int
    bytes: int  # of the file, and of what is unpacked from it
    elsewhere: str = "index {name} --out DIR"  # the command that takes any size

    def exceeded(self, name: str, size: str) -> InputError:
        """The error for a corpus `name` of `size` ("2,000,000 sentences")."""
        return InputError(
            f"{name} has {size}.",
            f"At most {self.sentences:,} sentences or {self.bytes / (1 << 20):,.0f} MB are read here.",
            f"Use the command line, where any size will do: python -m components {self.elsewhere.format(name=name)}",
        )


BROWSER_LIMITS = Limits(1_000_000, 200 << 20)


def browser_limits() -> Limits:
    """BROWSER_LIMITS, or what the operator set by environment variables. Raises InputError where they are unreadable."""
    sentences, size = os.environ.get(SENTENCES_VARIABLE), os.environ.get(BYTES_VARIABLE)
    return Limits(
        _count(sentences) if sentences else BROWSER_LIMITS.sentences,
        _size(size) if size else BROWSER_LIMITS.bytes,
    )


def _count(text: str) -> int:
    digits = text.strip().replace(",", "").replace("_", "")
    if digits.isdecimal() and int(digits) > 0:
        return int(digits)
    raise InputError(
        f"The number of sentences {text[:40]!r} could not be read.",
        "A whole number above 0 was expected.",
        f"Set {SENTENCES_VARIABLE} to something like 1000000.",
    )


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except InputError as problem:
        raise InputError(
            problem.problem, problem.expected, f"Set {BYTES_VARIABLE} to something like 200M."
        ) from problem


def unreadable(name: str, problem: Exception) -> InputError:
    """The error for a file that the system or a library would not read."""
    first_line = (str(problem).splitlines() or [type(problem).__name__])[0][:200].rstrip(".")
    return InputError(
        f"{name} could not be read: {first_line}.",
        "A whole, undamaged file was expected.",
        "Check that it is complete and that this program may read it, or fetch or export it again.",
    )


def lines_of(text: str) -> list[str]:
    """Lines by \\n alone: str.splitlines also breaks at characters that stand inside sentences."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
