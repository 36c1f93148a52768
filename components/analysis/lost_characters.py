"""Which characters of a text the model does not get as they were typed: capitals, accents, what is not in the vocabulary.

Each token stands for a stretch of the text. Where the text that the tokenizer gives back is not the typed one, the stretch is
compared with its piece, character by character: what is missing there is lost. What this does not show: spaces, which many
tokenizers drop and all restore in their own way, and what was cut off at the end.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import groupby

import regex

from components.analysis.why.common_runs import steps
from components.model.trace import Token, TokenizedSentence

_WITH_ACCENTS = regex.compile(r"[\p{Latin}\p{Greek}\p{Cyrillic}]")
_MARKS = ("##", "▁", "Ġ", "</w>")  # of pieces: that they continue, begin or end a word


@dataclass(frozen=True)
class LostCharacters:
    """Characters of a sentence, by where they stand in its text, counted from 0."""

    capitals: frozenset[int]  # read as small letters
    accents: frozenset[int]  # Latin, Greek and Cyrillic letters that are read without their mark
    unknown: frozenset[int]  # of which only the unknown token is left
    others: frozenset[int]  # dropped, or read as others
    # Vowel signs, tone marks and others that are removed, and letters of other scripts read without theirs (ぎ as き).
    marks: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """All of them."""
        return self.capitals | self.accents | self.unknown | self.others | self.marks


def lost_characters(
    sentence: TokenizedSentence, decoded: str, unknown_id: int | None, of_pair: bool = False
) -> LostCharacters:
    """The characters of a sentence's first text, or of the second of its pair, that do not come back, truncated ones left out.

    `decoded` are this text's tokens decoded again, without special ones.
    """
    found: dict[str, set[int]] = {kind: set() for kind in ("capitals", "accents", "unknown", "others", "marks")}
    text = (sentence.pair or "") if of_pair else sentence.text
    begin, end = sentence.read_span(of_pair)
    if decoded.strip() == text[begin:end].strip():
        return LostCharacters(**{kind: frozenset(places) for kind, places in found.items()})
    covered: set[int] = set()
    of_text = [
        token for token in sentence.tokens if not (token.special or token.in_pair != of_pair or token.word is None)
    ]
    # Several pieces can stand for one character, as the letters of a Hangul syllable do.
    for (first, last), tokens in groupby(of_text, key=lambda token: (token.start, token.end)):
        own = list(tokens)
        span = range(first, last)
        covered.update(span)
        if any(token.id == unknown_id for token in own):
            found["unknown"].update(place for place in span if not text[place].isspace())
            continue
        piece = unicodedata.normalize("NFC", "".join(map(_letters, own)))
        if unicodedata.normalize("NFC", text[first:last]) != piece:
            for place in _missing(text[first:last], piece):
                found[_kind(text[first + place], piece)].add(first + place)
    # Between the tokens stand spaces, and what the tokenizer has dropped.
    for place in range(begin, end):
        if place not in covered and not text[place].isspace():
            found["marks" if unicodedata.category(text[place]) == "Mn" else "others"].add(place)
    return LostCharacters(**{kind: frozenset(places) for kind, places in found.items()})


def _letters(token: Token) -> str:
    piece = token.piece
    for mark in _MARKS:
        piece = piece.removeprefix(mark).removesuffix(mark)
    return piece


def _missing(typed: str, piece: str) -> list[int]:
    """The places in what was typed that the piece does not have."""
    if typed == piece:
        return []
    return [
        place
        for name, start, end, _, _ in steps(typed, piece)
        if name in ("replace", "delete")
        for place in range(start, end)
        if not typed[place].isspace()
    ]


def _kind(typed: str, piece: str) -> str:
    """What kind of loss a character is: of a capital letter with an accent, the capital."""
    plain = "".join(each for each in unicodedata.normalize("NFD", typed) if unicodedata.category(each) != "Mn")
    if typed.isupper() and plain.lower() in piece:
        return "capitals"
    if unicodedata.category(typed) == "Mn":
        return "marks"
    if plain != typed and plain in piece:
        return "accents" if _WITH_ACCENTS.match(plain) else "marks"
    return "others"
