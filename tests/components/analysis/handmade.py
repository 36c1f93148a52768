"""Sentences and traces written by hand, so that every expected number can be worked out on paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.model.trace import Dropped, Token, TokenizedSentence, Trace

UNKNOWN_ID = 1
CLS, SEP = ("[CLS]", 2), ("[SEP]", 3)
Piece = tuple[str, int, int, int]  # piece, word, start, end


def sentence(
    text: str,
    pieces: Sequence[Piece],
    pair: str | None = None,
    pair_pieces: Sequence[Piece] = (),
    dropped: tuple[Dropped, ...] = (),
) -> TokenizedSentence:
    """[CLS] pieces [SEP] (pair pieces [SEP]); the piece "[UNK]" gets the id 1, others 10."""
    tokens: list[Token] = []

    def add(piece: str, number: int, in_pair: bool, word: int | None, start: int, end: int) -> None:
        tokens.append(Token(len(tokens), piece, number, int(in_pair), in_pair, word is None, word, start, end))

    add(*CLS, False, None, 0, 0)
    for row, in_pair in ((pieces, False), (pair_pieces, True)):
        for piece, word, start, end in row:
            add(piece, UNKNOWN_ID if piece == "[UNK]" else 10, in_pair, word, start, end)
        if not in_pair or pair is not None:
            add(*SEP, in_pair, None, 0, 0)
    return TokenizedSentence(text, pair, tuple(tokens), dropped)


def words(text: str) -> TokenizedSentence:
    """One piece for each word between spaces."""
    pieces, start = [], 0
    for number, word in enumerate(text.split(" ")):
        pieces.append((word, number, start, start + len(word)))
        start += len(word) + 1
    return sentence(text, pieces)


def trace(sentences: Sequence[TokenizedSentence], hidden: np.ndarray) -> Trace:
    """A trace with these hidden states [layer, sentence, token, dim]; tokens past a sentence's own are padding."""
    shape = hidden.shape[1:3]
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, one in enumerate(sentences):
        ids[row, : len(one)] = [token.id for token in one.tokens]
        mask[row, : len(one)] = 1
    return Trace("by hand", "0", tuple(sentences), ids, mask, None, hidden.astype(np.float32))
