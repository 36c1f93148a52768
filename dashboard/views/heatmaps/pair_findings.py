"""What pictures of two sentences' tokens show: which word of the first has a partner in the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from components.numbers import number
from dashboard.ui import wording

if TYPE_CHECKING:
    from components.analysis.block_change import TokenSimilarity
    from components.model.trace import Token, TokenizedSentence


def of_pictures(
    pictures: Sequence[tuple[TokenSimilarity, int]],
    query: int,
    sentences: Sequence[TokenizedSentence],
    as_percentiles: bool = False,
    unrelated: float | None = None,
) -> str:
    """The pair of words with the highest cosine of each picture; of a sentence with itself those of two different tokens.

    `pictures` are the similarities with the row of the other sentence; special tokens and punctuation are passed over where
    there are others. `as_percentiles`: the cells are percentiles, so that the number is said to be a cosine.
    `unrelated`: the highest cosine that unrelated tokens usually reach; what is not above it is said to be none.
    """
    parts, are_words, best = [], True, -np.inf
    unit = "cosine " if as_percentiles else ""
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
        a = first.tokens[similarity.positions[rows[row]]]
        b = second.tokens[similarity.column_positions[columns[column]]]
        are_words = are_words and _is_word(a) and _is_word(b)
        best = max(best, float(values[row, column]))
        where = "in the sentence itself" if other == query else f"of sentence {other + 1}"
        value = number(float(values[row, column]), 2)
        parts.append(f"{wording.quoted(a.piece)} with {wording.quoted(b.piece)} {where} ({unit}**{value}**)")
    if not parts:
        return ""
    kind = "words" if are_words else "tokens"
    if unrelated is not None and best <= unrelated:
        reached = f"no more than unrelated tokens reach ({number(unrelated, 2)})"
        return f"No pair of {kind} stands out: the most similar, {'; '.join(parts)}, have {reached}."
    return f"Most similar {kind}: {'; '.join(parts)}."


def _words(sentence: TokenizedSentence, positions: Sequence[int]) -> list[int]:
    """The rows of tokens that are words; all rows where none is."""
    found = [row for row, position in enumerate(positions) if _is_word(sentence.tokens[position])]
    return found or list(range(len(positions)))


def _is_word(token: Token) -> bool:
    return not token.special and any(map(str.isalnum, token.piece))
