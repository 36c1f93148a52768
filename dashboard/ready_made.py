"""The ready-made sets of sentences, and where the assets are."""

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
    view: str = "tokens"  # what Layers shows for it: words, or whole sentences
    pair: bool = False  # its two sentences belong together: question and answer
    focus: tuple[str, ...] = ()  # the word of interest in each sentence, where the hint speaks of one


@cache
def ready_made_sets() -> dict[str, ReadyMadeSet]:
    """The sets of assets/sets.json by key, in their order."""
    rows = json.loads((ASSETS / "sets.json").read_text(encoding="utf-8"))
    return {
        row["key"]: ReadyMadeSet(**{**row, "sentences": tuple(row["sentences"]), "focus": tuple(row.get("focus", ()))})
        for row in rows
    }


def focus_of(sentences: tuple[str, ...]) -> tuple[str, ...]:
    """The words of interest that a ready-made set names; empty for people's own sentences."""
    return next((item.focus for item in ready_made_sets().values() if item.sentences == sentences), ())


def is_pair(sentences: tuple[str, ...]) -> bool:
    """Whether these are a ready-made set that is a pair."""
    return any(item.pair and item.sentences == sentences for item in ready_made_sets().values())
