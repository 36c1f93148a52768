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
    there are others, and a higher pair with one is named behind. `as_percentiles`: the cells are percentiles, so that the
    number is said to be a cosine. `unrelated`: the highest cosine that unrelated tokens usually reach; what is not above it
    is said to be none.
    """
    parts, others, are_words, best = [], [], True, -np.inf
    unit = "cosine " if as_percentiles else ""
    for similarity, other in pictures:
        first, second = sentences[query], sentences[other]
        rows, columns = _words(first, similarity.positions), _words(second, similarity.column_positions)
        values = np.array(similarity.matrix, float)
        if other == query:
            values[np.equal.outer(np.array(similarity.positions), np.array(similarity.column_positions))] = -np.inf
        of_words = values[np.ix_(rows, columns)]
        if not np.isfinite(of_words).any():
            continue
        place = np.unravel_index(int(np.argmax(of_words)), of_words.shape)
        where = "in the sentence itself" if other == query else f"of sentence {other + 1}"
        named = []
        of_all = np.unravel_index(int(np.argmax(values)), values.shape)
        for row, column in ((rows[place[0]], columns[place[1]]), of_all):
            a, b = first.tokens[similarity.positions[row]], second.tokens[similarity.column_positions[column]]
            value = number(float(values[row, column]), 2)
            named.append((a, b, value))
        (a, b, value), (c, d, highest) = named
        are_words = are_words and _is_word(a) and _is_word(b)
        best = max(best, float(of_words[place]))
        parts.append(f"{wording.quoted(a.piece)} with {wording.quoted(b.piece)} {where} ({unit}**{value}**)")
        if highest != value:
            others.append((c, d, f"{where} ({unit}{highest})"))
    if not parts:
        return ""
    kind = "words" if are_words else "tokens"
    more = higher(others)
    if unrelated is not None and best <= unrelated:
        limit = f"lie no higher than {number(unrelated, 2)}, as 95 % of unrelated tokens do"
        return f"No pair of {kind} stands out: the most similar, {'; '.join(parts)}, {limit}.{more}"
    return f"Most similar {kind}: {'; '.join(parts)}.{more}"


def higher(others: Sequence[tuple[Token, Token, str]]) -> str:
    """The pairs of tokens that are more similar than the words, each with where they stand and their number."""
    if not others:
        return ""
    kind = "Special" if all(first.special and second.special for first, second, _ in others) else "Other"
    listed = "; ".join(f"{_called(first)} with {_called(second)} {where}" for first, second, where in others)
    return f" {kind} tokens are higher: {listed}."


def _called(token: Token) -> str:
    return token.piece if token.special else wording.quoted(token.piece)


def _words(sentence: TokenizedSentence, positions: Sequence[int]) -> list[int]:
    """The rows of tokens that are words; all rows where none is."""
    found = [row for row, position in enumerate(positions) if _is_word(sentence.tokens[position])]
    return found or list(range(len(positions)))


def _is_word(token: Token) -> bool:
    return not token.special and any(map(str.isalnum, token.piece))
