"""What pictures of two sentences' tokens show: which word of the first has a partner in the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from components.numbers import number
from dashboard.ui import messages

if TYPE_CHECKING:
    from components.analysis.block_change import TokenSimilarity
    from components.model.trace import TokenizedSentence


def of_pictures(
    pictures: Sequence[tuple[TokenSimilarity, int]], query: int, sentences: Sequence[TokenizedSentence]
) -> str:
    """The pair of tokens with the highest cosine of each picture; the brightest of a sentence with itself is another token.

    `pictures` are the similarities with the row of the other sentence; special tokens and punctuation are passed over where
    there are others.
    """
    parts = []
    for similarity, other in pictures:
        first, second = sentences[query], sentences[other]
        rows, columns = _words(first, similarity.positions), _words(second, similarity.column_positions)
        values = np.array(similarity.matrix, float)[np.ix_(rows, columns)]
        if other == query:
            places = np.equal.outer(
                np.array(similarity.positions)[rows], np.array(similarity.column_positions)[columns]
            )
            values[places] = -np.inf
        if not np.isfinite(values).any():
            continue
        row, column = np.unravel_index(int(np.argmax(values)), values.shape)
        a = first.tokens[similarity.positions[rows[row]]].piece
        b = second.tokens[similarity.column_positions[columns[column]]].piece
        where = "in itself" if other == query else f"with sentence {other + 1}"
        parts.append(
            f"{where} it is “{messages.escape(a)}” and “{messages.escape(b)}” ({number(float(values[row, column]), 2)})"
        )
    if not parts:
        return ""
    return f"The two most similar tokens of sentence {query + 1}: {'; '.join(parts)}."


def _words(sentence: TokenizedSentence, positions: Sequence[int]) -> list[int]:
    """The rows of tokens that are words; all rows where none is."""
    found = [
        row
        for row, position in enumerate(positions)
        if not sentence.tokens[position].special and any(map(str.isalnum, sentence.tokens[position].piece))
    ]
    return found or list(range(len(positions)))
