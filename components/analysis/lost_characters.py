"""Which characters of a text the model does not get as they were typed: capitals, accents, what is not in the vocabulary.

Each token stands for a stretch of the text. Where the text that the tokenizer gives back is not the typed one, the stretch is
compared with its piece, character by character: what is missing there is lost. What this does not show: spaces, which many
tokenizers drop and all restore in their own way, and what was cut off at the end.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from components.analysis.why.common_runs import steps
from components.model.trace import Token, TokenizedSentence

_MARKS = ("##", "▁", "Ġ", "</w>")  # of pieces: that they continue, begin or end a word


@dataclass(frozen=True)
class LostCharacters:
    """Characters of a sentence, by where they stand in its text, counted from 0."""

    capitals: frozenset[int]  # read as small letters
    accents: frozenset[int]  # read without their mark
    unknown: frozenset[int]  # of which only the unknown token is left
    others: frozenset[int]  # dropped, or read as others

    @property
    def all(self) -> frozenset[int]:
        """All of them."""
        return self.capitals | self.accents | self.unknown | self.others


def lost_characters(
    sentence: TokenizedSentence, decoded: str, unknown_id: int | None, of_pair: bool = False
) -> LostCharacters:
    """The characters of a sentence's first text, or of the second of its pair, that do not come back, truncated ones left out.

    `decoded` are this text's tokens decoded again, without special ones.
    """
    found: dict[str, set[int]] = {"capitals": set(), "accents": set(), "unknown": set(), "others": set()}
    text = (sentence.pair or "") if of_pair else sentence.text
    begin, end = sentence.read_span(of_pair)
    if decoded.strip() == text[begin:end].strip():
        return LostCharacters(*map(frozenset, found.values()))
    covered: set[int] = set()
    for token in sentence.tokens:
        if token.special or token.in_pair != of_pair or token.word is None:
            continue
        span = range(token.start, token.end)
        covered.update(span)
        if token.id == unknown_id:
            found["unknown"].update(place for place in span if not text[place].isspace())
        else:
            for place in _missing(text[token.start : token.end], _letters(token)):
                found[_kind(text[token.start + place], _letters(token))].add(token.start + place)
    # Between the tokens stand spaces, and what the tokenizer has dropped.
    found["others"].update(place for place in range(begin, end) if place not in covered and not text[place].isspace())
    return LostCharacters(*map(frozenset, found.values()))


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
    if plain != typed and plain in piece:
        return "accents"
    return "others"
