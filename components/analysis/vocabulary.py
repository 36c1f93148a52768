"""A vocabulary's pieces: searched by their beginning, by a part, or by id; and what begins like the pieces of a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.errors import InputError
from components.words.function import FUNCTION_WORDS

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


@dataclass(frozen=True)
class Alike:
    """The pieces of a vocabulary that begin like one of them, which is left out."""

    total: int
    first: tuple[str, ...]  # the first few, in order of id


def beginning_alike(vocabulary: Sequence[str], pieces: Sequence[str], named: int = 3) -> list[Alike]:
    """For each of the pieces, those others of the vocabulary that begin with it, ignoring case; `named` of them by name."""
    wanted = {piece.lower() for piece in pieces if piece}
    lengths = sorted({len(piece) for piece in wanted})
    counts: Counter[str] = Counter()
    found: dict[str, list[str]] = {piece: [] for piece in wanted}
    for entry in vocabulary:
        low = entry.lower()
        for length in lengths:
            if length > len(low):
                break
            if (start := low[:length]) in wanted:
                counts[start] += 1
                if len(found[start]) <= named:
                    found[start].append(entry)
    same = Counter(vocabulary)  # a piece is no other of itself
    return [
        Alike(
            counts[piece.lower()] - bool(counts[piece.lower()] and same[piece]),
            tuple(other for other in found.get(piece.lower(), ()) if other != piece)[:named],
        )
        for piece in pieces
    ]


CONTINUES, BEGINS = ("##",), ("\u0120", "\u2581")  # how pieces say that they continue a word, or begin one


@dataclass(frozen=True)
class Kinds:
    """How many pieces begin a word and how many continue one, as a mark before them says."""

    mark: str
    is_of_beginnings: bool  # whether the mark says that a piece begins a word
    marked: int
    total: int  # pieces that there are
    function_words: int = 0  # words such as "the" that are a piece
    middle_id: int = 0  # half of them have an id up to this one


def kinds(vocabulary: Sequence[str]) -> Kinds | None:
    """The mark of most pieces, with how many have it; None for a vocabulary whose pieces have none."""
    counts = {
        mark: sum(piece.startswith(mark) and piece != mark for piece in vocabulary) for mark in CONTINUES + BEGINS
    }
    mark = max(counts, key=lambda item: counts[item])
    total = sum(bool(piece) for piece in vocabulary)
    if not counts[mark]:
        return None
    begins = mark if mark in BEGINS else ""
    # Where a mark begins words, a piece without it stands within one, whatever its letters.
    ids = [
        number
        for number, piece in enumerate(vocabulary)
        if piece.startswith(begins) and piece.removeprefix(begins) in FUNCTION_WORDS
    ]
    middle = ids[(len(ids) - 1) // 2] if ids else 0
    return Kinds(mark, mark in BEGINS, counts[mark], total, len(ids), middle)
