"""The table that every reader of corpus files returns, and the largest corpus that is read.

A `Table` holds one list per column, the row number of each value, and the rows that could not be read. Row numbers
are the line numbers of an editor for text formats (a header is line 1), and count from 1 for .json and .parquet.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from components.errors import InputError
from components.sizes import parse_bytes

SENTENCES_VARIABLE, BYTES_VARIABLE = "BERT_INTERNALS_CORPUS_SENTENCES", "BERT_INTERNALS_CORPUS_BYTES"
LINE_COLUMN, SET_COLUMN = "text", "set"  # the names of a column of plain lines, and of one of lists of sentences
MOST_COLUMNS = 200


@dataclass(frozen=True)
class BadRow:
    row: int
    reason: str


@dataclass
class Table:
    """The values of a file, unchanged and aligned: columns[name][i] comes from row numbers[i]."""

    columns: dict[str, Sequence[Any]]
    numbers: Sequence[int]
    bad: list[BadRow] = field(default_factory=list)
    encoding: str = "utf-8"
    encoding_guessed: bool = False
    has_broken_bytes: bool = False
    left_out: tuple[str, ...] = ()  # columns that are not kept: pictures, sounds, or more than the limit


@dataclass(frozen=True)
class Limits:
    """The largest corpus that is read."""

    sentences: int
    bytes: int  # of the file, compressed and decompressed
    command: str = "index {name} --out DIR"  # reads any size

    def exceeded(self, name: str, size: str) -> InputError:
        """The error for a corpus `name` of `size` ("2,000,000 sentences")."""
        return InputError(
            f"{name} has {size}.",
            f"At most {self.sentences:,} sentences or {self.bytes / (1 << 20):,.0f} MB were expected.",
            f"Use the command line, which has no limit: python -m components {self.command.format(name=name)}",
        )


BROWSER_LIMITS = Limits(1_000_000, 200 << 20)


def browser_limits() -> Limits:
    """BROWSER_LIMITS, or the operator's limits from environment variables. Raises InputError for invalid ones."""
    sentences, size = os.environ.get(SENTENCES_VARIABLE), os.environ.get(BYTES_VARIABLE)
    return Limits(
        _count(sentences) if sentences else BROWSER_LIMITS.sentences,
        parse_bytes(size, BYTES_VARIABLE) if size else BROWSER_LIMITS.bytes,
    )


def _count(text: str) -> int:
    digits = text.strip().replace(",", "").replace("_", "")
    if digits.isdecimal() and int(digits) > 0:
        return int(digits)
    raise InputError(
        f"The number of sentences {text[:40]!r} is not valid.",
        "A whole number above 0 was expected.",
        f"Set {SENTENCES_VARIABLE} to a number such as 1000000.",
    )


def unreadable(name: str, problem: Exception) -> InputError:
    """The error for a file that the system or a library cannot read."""
    first_line = (str(problem).splitlines() or [type(problem).__name__])[0][:200].rstrip(".")
    return InputError(
        f"{name} could not be read: {first_line}.",
        "A complete and undamaged file was expected.",
        "Check that it is complete and that this program may read it, or download or export it again.",
    )


def lines_of(text: str) -> list[str]:
    """Lines separated by \\n alone: str.splitlines also splits at characters that occur inside sentences."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
