"""How much each word of one text adds to its cosine with another, for mean pooling: parts that sum to the cosine.

With the mean vectors a = sum of x_i / n_a and b = sum of y_j / n_b, the cosine a.b / (|a| |b|) is the sum over all pairs of
tokens of x_i.y_j / (n_a n_b |a| |b|). The parts of a word are the sum over its pieces. Nothing is approximated.

What it does not show: what a word would do in another sentence, or what is left without it. A token's vector at a layer
holds the whole sentence, and without a word the other vectors change as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float64, read_only
from components.model.trace import TokenizedSentence, Trace


@dataclass(frozen=True, eq=False)
class WordLedger:
    """The cosine of two texts as a sum over pairs of their words; special tokens count as words."""

    first: tuple[str, ...]  # words as typed
    second: tuple[str, ...]
    parts: Float64  # [first word, second word]

    @property
    def cosine(self) -> float:
        """The sum of all parts."""
        return float(self.parts.sum())

    @property
    def by_first(self) -> Float64:
        """float64 [first word]: what each word of the first text adds."""
        return np.asarray(self.parts.sum(axis=1))


def word_ledger(trace: Trace, layer: int, first: int, second: int) -> WordLedger:
    """The ledger of two sentences of a trace at a layer, for the mean over all tokens, special ones included.

    A cosine with a zero vector counts as 0, and so do all its parts.
    """
    names_a, sums_a = _word_sums(trace, layer, first)
    names_b, sums_b = _word_sums(trace, layer, second)
    scale = float(np.linalg.norm(sums_a.sum(axis=0)) * np.linalg.norm(sums_b.sum(axis=0)))
    return WordLedger(names_a, names_b, np.asarray(read_only(sums_a @ sums_b.T / (scale or 1.0))))


def words_of(sentence: TokenizedSentence) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Each word of a sentence, special tokens included, with the positions of its pieces, from left to right."""
    found: dict[tuple[int, ...], str] = {}
    for token in sentence.tokens:
        found.setdefault(sentence.word_positions(token.position), sentence.word_text(token.position))
    return tuple((text, positions) for positions, text in found.items())


def _word_sums(trace: Trace, layer: int, sentence: int) -> tuple[tuple[str, ...], Float64]:
    """The words of a sentence, and the sum of the vectors of each one's pieces, float64 [word, dim]."""
    words = words_of(trace.sentences[sentence])
    vectors = trace.hidden_states[layer, sentence].astype(np.float64)
    return tuple(text for text, _ in words), np.stack([vectors[list(positions)].sum(axis=0) for _, positions in words])
