"""The part that a file names for each of its rows: train, dev or test, in a column such as `split`.

What a file says of itself is used: agreement with people is measured on the test rows alone, and training never sees them.
Another part can be chosen, or all rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.errors import InputError

Part = Literal["train", "dev", "test"]
ALL = "all"
LEAST_HELD_OUT = 2  # dev rows that can be measured with
PARTS: tuple[Part, ...] = ("train", "dev", "test")
TO_MEASURE: tuple[Part, ...] = ("test", "dev", "train")  # the first that a file has is measured
TO_TRAIN: tuple[Part, ...] = ("train", "dev")  # test rows are never trained on unless a person says so
_WORDS: Mapping[str, Part] = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("dev", "devel", "develop", "development", "valid", "validation", "val", "eval"), "dev"),
    **dict.fromkeys(("test", "testing", "tst"), "test"),
}
_NAMES = {"split", "splits", "part", "partition", "set", "subset", "fold", "datasplit", "datasetsplit"}


@dataclass(frozen=True)
class Parts:
    """Which part each row belongs to."""

    column: str
    of_rows: tuple[Part | None, ...]  # [row]; None where the file does not say it

    @property
    def counts(self) -> dict[str, int]:
        """The rows of each part that the file has."""
        counted = Counter(part for part in self.of_rows if part is not None)
        return {part: counted[part] for part in PARTS if counted[part]}


@dataclass(frozen=True)
class ChosenPart:
    """Which part of a file is used."""

    column: str
    counts: Mapping[str, int]  # the rows of each part
    used: str  # one of them, or "all"
    is_default: bool  # nobody chose it
    held_out: str | None = None  # a second part that is used: to measure what is learned from the first

    def has(self, part: str | None) -> bool:
        """Whether rows of a part are used."""
        return self.used == ALL or (part is not None and part in (self.used, self.held_out))

    def sentence(self) -> str:
        """What the file says, and what is used of it."""
        parts = ", ".join(f"{part} {count:,}" for part, count in self.counts.items())
        used = "all rows are used" if self.used == ALL else f"only the {self.used} rows are used"
        if self.held_out is not None:
            used = f"the {self.used} rows are trained on and the {self.held_out} rows held out; no others are used"
        return f"The column {self.column} names the part of each row ({parts}): {used}."


def find_parts(columns: Mapping[str, Sequence[Any]]) -> Parts | None:
    """The column that names parts: one with such a name, or with two parts at least, whose every value is a part."""
    for name, values in columns.items():
        parts = _parts_of(values)
        different = {part for part in parts or () if part is not None}
        if parts and (len(different) > 1 or (different and re.sub(r"[\W_]+", "", name.casefold()) in _NAMES)):
            return Parts(name, parts)
    return None


def _parts_of(values: Sequence[Any]) -> tuple[Part | None, ...] | None:
    """The part that each value names; None for a column with another value."""
    parts: list[Part | None] = []
    for value in values:
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            parts.append(None)
        elif isinstance(value, str) and value.strip().casefold() in _WORDS:
            parts.append(_WORDS[value.strip().casefold()])
        else:
            return None
    return tuple(parts)


def choose_part(
    parts: Parts, name: str, wanted: str | None, preferred: Sequence[Part], holds_out: bool = False
) -> ChosenPart:
    """The wanted part, or the first of the preferred ones that the file has; `holds_out`: beside train rows the dev rows.

    Raises InputError for a part that the file does not have, and where it has none of the preferred ones.
    """
    counts = parts.counts
    if wanted is not None:
        if wanted != ALL and wanted not in counts:
            raise InputError(
                f"{name} has no {wanted[:40]!r} rows.",
                f"Its column {parts.column} has {', '.join(f'{part} ({count:,})' for part, count in counts.items())}.",
                f"Choose one of these, or {ALL}.",
            )
        return ChosenPart(parts.column, counts, wanted, is_default=False)
    used = next((part for part in preferred if part in counts), None)
    if used is None:
        only = " and ".join(counts)
        raise InputError(
            f"The column {parts.column} of {name} calls all rows {only}.",
            "Rows that a file calls test are not trained on.",
            f"Choose another file, or choose the part {next(iter(counts))} (--part {next(iter(counts))}).",
        )
    held_out = "dev" if holds_out and used == "train" and counts.get("dev", 0) >= LEAST_HELD_OUT else None
    return ChosenPart(parts.column, counts, used, is_default=True, held_out=held_out)


def check_no_part(name: str, wanted: str | None) -> None:
    """Raise InputError for a part of a file that names none."""
    if wanted not in (None, ALL):
        raise InputError(
            f"{name} names no parts, so that {wanted!r} cannot be chosen.",
            "A column such as split says train, dev or test for each row.",
            "Leave the part out, or add such a column.",
        )
