"""What became of every row of a file, said before anything is measured or learned.

Of each file: the rows read, those that are refused, each with its number and the reason, those that are joined with an equal
one, those whose text or score was changed, which columns were chosen and why, what is left out, and three rows as they stand
in the file beside what was read of them. A wrong dialect or a wrong column is seen there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.numbers import counted
from components.retrieval.corpora.columns import as_text
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.retrieval.corpora.readers.table import BadRow, Table, each_reason, rows_left_out
from components.retrieval.corpora.rows.parts import ChosenPart

PREVIEWED = 3  # rows
RAW_CHARACTERS = 500  # of a row as it stands in the file
VALUES_SHOWN = 3  # that are no scores
MAY_BE_NONE = frozenset({"null", "nan", "none", "n/a", "na", "nil", "#n/a", "\\n"})  # what programs write for no value
LONGEST_OF_NONE = 6  # characters
NO_TEXT, EMPTY = "no text", "empty"  # why a cell cannot be used


@dataclass(frozen=True)
class PreviewedRow:
    """A row as it stands in the file, and what was read of it."""

    row: int  # its number in the file
    given: str
    read: Mapping[str, str]  # our column to the text or score; empty for a row that is not used
    reason: str = ""  # why it is not used


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows of a file: together they are all of its rows."""

    used: int
    repeated: int = 0  # equal to an earlier one
    alone: int = 0  # that give a text which is searched, and no query
    lost: int = 0  # not used

    def said(self) -> str:
        """The numbers in a line that adds up."""
        said = f"{counted(self.used + self.repeated + self.alone + self.lost, 'row')} read, {self.used:,} used"
        said += f", {self.repeated:,} equal to an earlier one" if self.repeated else ""
        said += f", {self.alone:,} with the text alone" if self.alone else ""
        return f"{said}, {self.lost:,} left out"


@dataclass(frozen=True)
class RowUse:
    """How the rows of a file were used."""

    rows: int  # of the file: those that are used, and those that are not
    used: int
    reasons: Mapping[str, int] = field(default_factory=dict)  # why rows are not used, to their number
    refused: tuple[BadRow, ...] = ()  # the first 100 of these
    values: tuple[str, ...] = ()  # a few that should be scores and are no numbers
    text_alone: Mapping[str, int] = field(default_factory=dict)  # why rows give a text that is searched, and no query
    repeated: int = 0  # rows that equal an earlier one, with which they count once
    joined: int = 0  # rows that were written over several lines
    changed: int = 0  # used rows with a text or score that was changed
    columns: Mapping[str, str] = field(default_factory=dict)  # our column to the file's
    why: str = ""  # these columns
    is_guess: bool = False  # another choice of columns is as plausible
    left_out: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # columns that are not used, with values of each
    part: ChosenPart | None = None
    notes: tuple[str, ...] = ()  # what else was done with the file, a sentence each
    preview: tuple[PreviewedRow, ...] = ()
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)  # every column, with values of each
    dialect: DialectChoice = AS_FOUND  # what a person chose of how the file is written
    otherwise: tuple[DialectChoice, ...] = ()  # choices that give what the file could be too
    encoding: str = "utf-8"
    encoding_is_guess: bool = False

    @property
    def lost(self) -> int:
        """Rows that are not used."""
        return self.rows - self.used - self.repeated - sum(self.text_alone.values())

    def counts(self) -> str:
        """The numbers of rows, in one sentence."""
        rows = RowCounts(self.used, self.repeated, sum(self.text_alone.values()), self.lost)
        return f"{rows.said()}; {self.joined:,} joined from several lines, {self.changed:,} changed."

    def texts_alone(self) -> str:
        """That texts of rows without a query are searched; "" where there are none."""
        count = sum(self.text_alone.values())
        if not count:
            return ""
        have, their = ("has", "its text is") if count == 1 else ("have", "their texts are")
        if self.text_alone.keys() <= {NO_TEXT, EMPTY}:
            return f"{counted(count, 'row')} {have} no query; {their} searched."
        are = "is" if count == 1 else "are"
        return f"{counted(count, 'row')} {are} not used for a query; {their} searched: {each_reason(self.text_alone)}."

    def refusals(self) -> str:
        """Why rows are left out, with the numbers of the first; "" where none is."""
        return rows_left_out(self.lost, self.rows, self.reasons, self.refused)

    def choice(self) -> str:
        """Which columns are what, and why; "" for a table whose columns had no choice."""
        if not self.columns:
            return ""
        chosen = ", ".join(f"{ours} = {theirs}" for ours, theirs in self.columns.items())
        return f"Columns: {chosen} ({self.why})."

    def columns_left_out(self) -> str:
        """The columns that are not used, with examples; "" where all are."""
        shown = "; ".join(
            name + (f" (such as {', '.join(map(repr, values))})" if values else "")
            for name, values in list(self.left_out.items())[:10]
        )
        further = f"; and {len(self.left_out) - 10:,} others" if len(self.left_out) > 10 else ""
        return f"Columns left out: {shown}{further}." if shown else ""

    def sentences(self) -> list[str]:
        """All that is to be said of the file, without the preview."""
        said = [self.counts(), self.texts_alone(), self.refusals(), self.choice(), self.columns_left_out()]
        said += [self.part.sentence()] if self.part is not None else []
        return [sentence for sentence in (*said, *self.notes) if sentence]

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        part = self.part
        return {
            "rows_read": self.rows,
            "rows_used": self.used,
            "rows_with_text_alone": sum(self.text_alone.values()),
            "rows_left_out": self.lost,
            "rows_repeated": self.repeated,
            "rows_joined": self.joined,
            "rows_changed": self.changed,
            "reasons": dict(self.reasons),
            "first_left_out": [{"row": row.row, "reason": row.reason} for row in self.refused],
            "columns": dict(self.columns),
            "columns_why": self.why,
            "columns_are_a_guess": self.is_guess,
            "columns_left_out": {name: list(values) for name, values in self.left_out.items()},
            "part": None
            if part is None
            else {
                "column": part.column,
                "rows": dict(part.counts),
                "other_values": dict(part.others),
                "used": part.used,
                "held_out": part.held_out,
                "is_default": part.is_default,
            },
            "notes": list(self.notes),
            "encoding": self.encoding,
            "encoding_is_guess": self.encoding_is_guess,
            "could_be_read_by": [choice.as_options for choice in self.otherwise],
            "preview": [
                {"row": row.row, "given": row.given, "read": dict(row.read), "reason": row.reason}
                for row in self.preview
            ],
        }


def may_be_none(texts: Sequence[str]) -> list[str]:
    """That some texts, such as “nan”, may stand for none; nothing where there is no such text."""
    found = [text for text in texts if len(text) < LONGEST_OF_NONE and text.casefold() in MAY_BE_NONE]
    if not found:
        return []
    shown = ", ".join(f"“{text}”" for text in list(dict.fromkeys(found))[:VALUES_SHOWN])
    are = "is used as it stands" if len(found) == 1 else "are used as they stand"
    return [f"{counted(len(found), 'text')} that may stand for no text ({shown}) {are}."]


def given_rows(table: Table, most: int) -> tuple[tuple[int, str], ...]:
    """The first rows of a table as JSON, by their numbers: where the file itself is not at hand."""
    return tuple(
        (
            number,
            json.dumps({name: _shown(values[row]) for name, values in table.columns.items()}, ensure_ascii=False)[
                :RAW_CHARACTERS
            ],
        )
        for row, number in enumerate(table.numbers[:most])
    )


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) and value == value else as_text(value)
