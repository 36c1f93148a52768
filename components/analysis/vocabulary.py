"""Looking a piece up in a vocabulary: by its beginning, by a part, or by id."""

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
    """Pieces that match, upper and lower case alike.

    With mode "id", `text` is a number or a range such as 100-110. Raises InputError for anything else there.
    Empty text matches nothing.
    """
    needle = text.strip()
    if not needle:
        return VocabularyHits((), (), 0)
    if mode == "id":
        numbers = _by_id(vocabulary, needle)
    else:
        wanted = needle.lower()
        numbers = [
            number
            for number, piece in enumerate(vocabulary)
            if piece and (piece.lower().startswith(wanted) if mode == "begins with" else wanted in piece.lower())
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
            f"A number from 0 to {len(vocabulary) - 1} was expected, or a range such as 100-110.",
            "Type a number, or search by the piece's beginning.",
        ) from None
    return [number for number in range(max(0, low), min(high, len(vocabulary) - 1) + 1) if vocabulary[number]]
