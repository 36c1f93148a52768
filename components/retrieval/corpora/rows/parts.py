"""The part that a file names for each of its rows: train, dev or test, in a column such as `split`.

What a file says of itself is used: agreement with people is measured on the test rows alone, and training never sees them.
Another part can be chosen, or all rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from components.errors import InputError
from components.retrieval.corpora.columns import as_text, called

Part = Literal["train", "dev", "test"]
ALL = "all"
LEAST_HELD_OUT = 2  # dev rows that can be measured with
MOST_WORDS = 3  # of a value that may name a part; more are a text
MOST_OTHERS = 100  # different values of a column of parts that name none
OTHERS_SHOWN = 5
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
    others: Mapping[str, int] = field(default_factory=dict)  # values that name no part, to their rows

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
    others: Mapping[str, int] = field(default_factory=dict)  # values that name no part, to their rows

    def has(self, part: str | None) -> bool:
        """Whether rows of a part are used."""
        return self.used == ALL or (part is not None and part in (self.used, self.held_out))

    def refusal(self, value: str) -> str:
        """Why a row is not used in whose column this stands."""
        return f"its {self.column} is {value[:40]}" if value else f"no {self.column}"

    @property
    def refusals(self) -> set[str]:
        """Why rows of other parts are not used: they are rows without a fault."""
        return {self.refusal(part) for part in self.counts if not self.has(part)}

    def sentence(self) -> str:
        """What the file says, and what is used of it."""
        parts = ", ".join(f"{part} {count:,}" for part, count in self.counts.items())
        used = "all rows are used" if self.used == ALL else f"only the {self.used} rows are used"
        if self.held_out is not None:
            used = f"the {self.used} rows are trained on and the {self.held_out} rows held out; no others are used"
        if self.others:
            parts += f"; no part: {_listed(self.others)}"
        return f"The {called(self.column)} names the part of each row ({parts}): {used}."


def find_parts(columns: Mapping[str, Sequence[Any]]) -> Parts | None:
    """The column that names parts: one with such a name, or with two parts at least, whose every value is a part.

    Without such a column one with such a name in which some values are parts: the others are named, and their rows are of no
    part.
    """
    found = [
        (parts, re.sub(r"[\W_]+", "", name.casefold()) in _NAMES)
        for name, values in columns.items()
        if (parts := _parts_of(name, values)) is not None
    ]
    for parts, is_named in found:
        if not parts.others and (is_named or len(parts.counts) > 1):
            return parts
    return next((parts for parts, is_named in found if is_named), None)


def _parts_of(name: str, values: Sequence[Any]) -> Parts | None:
    """The part that each value names; None for a column without a part, and for one of texts, lists or objects."""
    parts: list[Part | None] = []
    others: Counter[str] = Counter()
    for value in values:
        if isinstance(value, list | dict):
            return None
        text = as_text(value).strip()
        if len(text.split()) > MOST_WORDS or len(others) > MOST_OTHERS:
            return None
        part = _part_of(text) if isinstance(value, str) else None
        if part is None and text:
            others[text] += 1
        parts.append(part)
    return Parts(name, tuple(parts), dict(others)) if any(part is not None for part in parts) else None


def _part_of(text: str) -> Part | None:
    """The part that a text names, as a whole or with its first word: "validation_matched", "test-clean", "train2"."""
    plain = text.casefold()
    first = re.match(r"[^\W\d_]+", plain)
    is_one_word = first is not None and not re.search(r"\s", plain)
    return _WORDS.get(plain) or (_WORDS.get(first[0]) if first is not None and is_one_word else None)


def _listed(others: Mapping[str, int]) -> str:
    """Values with their rows; the first few of many."""
    shown = ", ".join(f"{text[:40]!r} {count:,}" for text, count in list(others.items())[:OTHERS_SHOWN])
    return shown + (f" and {len(others) - OTHERS_SHOWN:,} others" if len(others) > OTHERS_SHOWN else "")


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
                f"Its {called(parts.column)} has {', '.join(f'{part} ({count:,})' for part, count in counts.items())}.",
                f"Choose one of these, or {ALL}.",
            )
        return ChosenPart(parts.column, counts, wanted, is_default=False, others=parts.others)
    used = next((part for part in preferred if part in counts), None)
    if used is None:
        only = " and ".join(counts)
        others = f"; no part: {_listed(parts.others)}" if parts.others else ""
        raise InputError(
            f"The {called(parts.column)} of {name} calls all rows {only}{others}.",
            "Rows that a file calls test are not trained on.",
            f"Choose another file, or choose the part {next(iter(counts))} (--part {next(iter(counts))}).",
        )
    held_out = "dev" if holds_out and used == "train" and counts.get("dev", 0) >= LEAST_HELD_OUT else None
    return ChosenPart(parts.column, counts, used, is_default=True, held_out=held_out, others=parts.others)


def check_no_part(name: str, wanted: str | None) -> None:
    """Raise InputError for a part of a file that names none."""
    if wanted not in (None, ALL):
        raise InputError(
            f"{name} names no parts, so that {wanted!r} cannot be chosen.",
            "A column such as split says train, dev or test for each row.",
            "Leave the part out, or add such a column.",
        )
