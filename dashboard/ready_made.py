"""The ready-made sets of sentences, and the path of the assets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).resolve().parent.parent / "assets"


@dataclass(frozen=True)
class ReadyMadeSet:
    key: str
    title: str
    look_for: str
    sentences: tuple[str, ...]
    view: str = "across"  # what its hint describes: a view of Layers, or "pieces" of Tokens
    pair: bool = False  # the set is a question and its answer
    focus: tuple[str, ...] = ()  # the word of interest in each sentence, if the hint names one


@cache
def ready_made_sets() -> dict[str, ReadyMadeSet]:
    """The sets of assets/sets.json by key, in the order of the file."""
    rows = json.loads((ASSETS / "sets.json").read_text(encoding="utf-8"))
    return {
        row["key"]: ReadyMadeSet(**{**row, "sentences": tuple(row["sentences"]), "focus": tuple(row.get("focus", ()))})
        for row in rows
    }


def set_of(sentences: tuple[str, ...]) -> ReadyMadeSet | None:
    """The ready-made set that has these sentences, or None."""
    return next((item for item in ready_made_sets().values() if item.sentences == sentences), None)


def focus_of(sentences: tuple[str, ...]) -> tuple[str, ...]:
    """The words of interest if these sentences are a ready-made set that names them, else empty."""
    item = set_of(sentences)
    return () if item is None else item.focus


def is_pair(sentences: tuple[str, ...]) -> bool:
    """Whether these sentences are a ready-made pair of a question and its answer."""
    item = set_of(sentences)
    return item is not None and item.pair
