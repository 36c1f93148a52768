"""What pieces of a vocabulary are called where they are guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.model.tokenization import Tokenization

BEGINS_WORD = ("Ġ", "▁")  # how byte-level and SentencePiece vocabularies mark a piece with a space before it
CONTINUES = "##"  # how WordPiece marks a piece that goes on with a word
# How the marks are called with which a sentence ends.
ENDS = {".": "a full stop", "!": "an exclamation mark", "?": "a question mark", "。": "a full stop", "।": "a full stop"}
LEVEL = 0.9  # of the first guess's probability: from here on the second is nearly level with it
MARKED = 1_000  # pieces of a vocabulary of which one must have a mark, if it marks pieces with a space before them


def readable(piece: str, vocabulary_marks_words: bool) -> str:
    """A piece of a vocabulary as people read it: "bank", or "…ing" for a piece that goes on with a word.

    `vocabulary_marks_words`: pieces with a space before them have a mark (byte-level, SentencePiece), so that one without
    goes on with a word.
    """
    if piece.startswith(CONTINUES) and len(piece) > len(CONTINUES):
        return f"…{piece.removeprefix(CONTINUES)}"
    if not vocabulary_marks_words or (piece.startswith("<") and piece.endswith(">")):
        return piece or "(no piece)"
    if piece.startswith(BEGINS_WORD):
        return piece[1:] or "(space)"
    return f"…{piece}" if any(map(str.isalnum, piece)) else piece


def marks_words(tokenization: Tokenization) -> bool:
    """Whether the vocabulary marks pieces with a space before them, as byte-level and SentencePiece vocabularies do."""
    return any(piece.startswith(BEGINS_WORD) for piece in tokenization.vocabulary[:MARKED])


def name_of(tokenization: Tokenization, piece: int) -> str:
    """A piece by its id, readable."""
    vocabulary = tokenization.vocabulary
    return readable(vocabulary[piece] if 0 <= piece < len(vocabulary) else "", marks_words(tokenization))
