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
    view: str = "tokens"  # the view of the Layers page: "tokens" for a word, "sentences" for whole sentences
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


def focus_of(sentences: tuple[str, ...]) -> tuple[str, ...]:
    """The words of interest if these sentences are a ready-made set that names them, else empty."""
    return next((item.focus for item in ready_made_sets().values() if item.sentences == sentences), ())


def is_pair(sentences: tuple[str, ...]) -> bool:
    """Whether these sentences are a ready-made pair of a question and its answer."""
    return any(item.pair and item.sentences == sentences for item in ready_made_sets().values())
