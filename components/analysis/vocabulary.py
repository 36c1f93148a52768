"""Searching a vocabulary for pieces: by their beginning, by a part, or by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.errors import InputError

Mode = Literal["begins with", "contains", "id"]


@dataclass(frozen=True)
class VocabularyHits:
    ids: tuple[int, ...]  # the first `limit` hits, in order of id
    pieces: tuple[str, ...]
    total: int  # all hits


def search(vocabulary: Sequence[str], text: str, mode: Mode = "begins with", limit: int = 200) -> VocabularyHits:
    """Pieces that match, ignoring case.

    With mode "id", `text` is a number or a range such as 100-110. Raises InputError for any other text in this mode.
    Empty text has no hits.
    """
    needle = text.strip()
    if not needle:
        return VocabularyHits((), (), 0)
    if mode == "id":
        numbers = _by_id(vocabulary, needle)
    else:
        needle = needle.lower()
        numbers = [
            number
            for number, piece in enumerate(vocabulary)
            if piece and (piece.lower().startswith(needle) if mode == "begins with" else needle in piece.lower())
        ]
    shown = tuple(numbers[:limit])
    return VocabularyHits(shown, tuple(vocabulary[number] for number in shown), len(numbers))


def _by_id(vocabulary: Sequence[str], text: str) -> list[int]:
    first, dash, last = text.partition("-")
    try:
        low = int(first)
        high = int(last) if dash else low
    except ValueError:
        raise InputError(
            f"{text!r} is not an id.",
            f"Ids are numbers from 0 to {len(vocabulary) - 1}; a range such as 100-110 is possible too.",
            "Type a number, or search by the beginning of a piece.",
        ) from None
    return [number for number in range(max(0, low), min(high, len(vocabulary) - 1) + 1) if vocabulary[number]]
