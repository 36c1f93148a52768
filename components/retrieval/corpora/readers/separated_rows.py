"""The rows of separated text by Python's csv module, which goes on after a row that breaks the format.

A quote that is never closed, or that has more text after it, costs only its own line and not the rest of the file.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from components.retrieval.corpora.readers.limits import LONG_ROW, MOST_ROW_CHARACTERS

ROW_LINES = 1_000  # a quoted field with more lines than this has lost its closing quote
MOST_RUNAWAYS = 1_000  # with more rows than this that never end, the file is not a CSV file
LONG_FIELD = "a field of more than 131,072 characters"  # the standard library's limit
MOST_REPEATED = 500 << 20  # the same for the characters that are read again after such rows
UNMATCHED = "quotes do not match"
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}  # by the names by which a person chooses one


@dataclass(frozen=True)
class Dialect:
    """How fields are written: what separates them, whether quotes enclose them, and whether a backslash escapes."""

    delimiter: str = ","
    is_quoted: bool = True
    is_escaped: bool = False
    is_spaced: bool = False  # a quote may stand behind a separator and a space

    @property
    def options(self) -> dict[str, Any]:
        """The options of csv.reader and csv.writer."""
        return {
            "delimiter": self.delimiter,
            "quoting": csv.QUOTE_MINIMAL if self.is_quoted else csv.QUOTE_NONE,
            "escapechar": "\\" if self.is_escaped else None,
            "skipinitialspace": self.is_spaced,
        }

    @property
    def in_words(self) -> str:
        """The dialect for people."""
        quotes = "" if self.is_quoted else ", quotes are ordinary characters"
        spaces = " and spaces" if self.is_spaced else ""
        return (
            f"separated by {_NAMES[self.delimiter]}{spaces}{quotes}{', a backslash escapes' if self.is_escaped else ''}"
        )


class DialectChoice(NamedTuple):
    """What a person chose of how a separated text is written; None for what the reader is to find."""

    separator: str | None = None  # a key of SEPARATORS
    quotes: bool | None = None  # whether they enclose fields
    escapes: bool | None = None  # whether a backslash escapes
    header: bool | None = None  # whether the first row names the columns

    def __bool__(self) -> bool:
        return any(part is not None for part in self)

    def allows(self, dialect: Dialect) -> bool:
        """Whether a dialect is as a person chose."""
        return self.quotes in (None, dialect.is_quoted) and self.escapes in (None, dialect.is_escaped)

    @property
    def given(self) -> dict[str, Any]:
        """What was chosen, by name."""
        return {name: part for name, part in self._asdict().items() if part is not None}

    @property
    def as_text(self) -> str:
        """The choice as a key and in notes, such as "separator=tab quotes=no"; "" where nothing was chosen."""
        words = {True: "yes", False: "no"}
        return " ".join(f"{name}={words.get(part, part)}" for name, part in self.given.items())

    @classmethod
    def of_text(cls, text: str) -> DialectChoice:
        """The choice of `as_text`. Raises ValueError for any other text."""
        parts: dict[str, Any] = {}
        for name, _, value in (word.partition("=") for word in text.split()):
            values = SEPARATORS if name == "separator" else {"yes": True, "no": False}
            if name not in cls._fields or value not in values:
                raise ValueError(f"{text[:80]!r} is no choice of a dialect")
            parts[name] = value if name == "separator" else values[value]
        return cls(**parts)

    @property
    def as_options(self) -> str:
        """The choice as options of a command."""
        return " ".join(
            f"--separator {part}" if name == "separator" else f"--{'' if part else 'no-'}{name}"
            for name, part in self.given.items()
        )

    @property
    def in_words(self) -> str:
        """The choice for people."""
        said = {
            "quotes": ("quotes enclose fields", "quotes are ordinary characters"),
            "escapes": ("a backslash escapes", "a backslash is an ordinary character"),
            "header": ("the first row names the columns", "the first row is a row as the others"),
        }
        return ", ".join(
            f"fields are separated by {_NAMES[SEPARATORS[part]]}" if name == "separator" else said[name][not part]
            for name, part in self.given.items()
        )


AS_FOUND = DialectChoice()


@dataclass(frozen=True)
class Record:
    """A row of the file. Where `problem` says that its quotes do not match, the fields are its line split at each delimiter."""

    line: int  # where it begins, from 1
    fields: list[str]
    lines: list[str]
    problem: str | None = None


class Runaway(ValueError):
    """Too many rows never end: the text is not written in this dialect. Its message is the reason."""


class _Feed:
    """The lines for a CSV reader. It can be set back to the row's second line, and notices a row that never ends."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._again: deque[str] = deque()  # lines that are read once more
        self.row: list[str] = []  # the lines of this row so far
        self.characters = 0  # of this row

    def begin_row(self) -> None:
        """Begin another list of lines."""
        self.row = []
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
        # The csv module takes a carriage return for the end of a row. \v is cleaned as it is, and has no meaning there.
        return f"{line}\n" if "\r" not in line else line.replace("\r", "\v") + "\n"


def records(lines: Iterable[str], dialect: Dialect, most_runaways: int = MOST_RUNAWAYS) -> Iterator[Record]:
    """The rows of a CSV file. After a row whose quotes do not match, reading continues with the next line.

    Raises Runaway where there are too many of these to go on.
    """
    feed = _Feed(lines)
    reader = csv.reader(feed, strict=True, **dialect.options)
    runaways, repeated, number = 0, 0, 1
    while True:
        feed.begin_row()
        try:
            fields = next(reader, None)
        except csv.Error as problem:
            first = feed.row[0]
            reason = UNMATCHED
            if len(first) > MOST_ROW_CHARACTERS:
                reason = LONG_ROW
            elif "limit" in str(problem):
                reason = LONG_FIELD
            runaways += len(feed.row) > ROW_LINES // 10
            repeated += feed.characters - len(first)
            if runaways > most_runaways or repeated > MOST_REPEATED:
                raise Runaway(reason) from problem
            feed.set_back()  # only the first line is lost
            yield Record(number, [] if reason == LONG_ROW else first.split(dialect.delimiter), [first], reason)
            number += 1
            continue
        if fields is None:
            return
        yield Record(number, fields, feed.row)
        number += len(feed.row)
