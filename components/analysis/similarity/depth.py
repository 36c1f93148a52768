"""Cosine curves of models with different numbers of layers, over relative depth.

Layer l of L stands at depth l / L: 0 is the embedding output of any model, 1 its last layer. The shape of a curve can be
compared between models: where it rises, where it turns, what the last layers do. Its height cannot: in one model any two
tokens have a cosine of 0.1, in another of 0.8 (Ethayarajh 2019, "How Contextual are Contextualized Word
Representations?"). Nor does the same depth mean the same amount of work: a block of one model may do what three of
another do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.analysis.block_change import diagonal
from components.analysis.matched_words import word_vectors
from components.analysis.similarity.cosines import pair_curves
from components.arrays import Float64, cosine, unit
from components.model.trace import TokenizedSentence, Trace


def relative_depths(layers: int) -> Float64:
    """The depth of each of layers 0..L, float64 [layer], 0 to 1; a model without blocks has only depth 0."""
    return np.arange(layers + 1) / max(1, layers)


def token_pairs(trace: Trace, sentence: int) -> Float64:
    """The mean cosine of all pairs of two tokens of a sentence at each layer, special tokens left out, float64 [layer].

    NaN where there are fewer than two tokens. For unit vectors u the sum of all their products is |sum u|^2, of which
    those of each token with itself are the number of tokens that have a direction.
    """
    positions = [token.position for token in trace.sentences[sentence].tokens if not token.special]
    count = len(positions)
    if count < 2:
        return np.full(trace.n_layers + 1, np.nan)
    directions = unit(trace.token_vectors(sentence, positions).astype(np.float64))  # [layer, token, dim]
    total = (directions.sum(axis=1) ** 2).sum(axis=1)
    itself = (directions**2).sum(axis=(1, 2))
    return np.asarray((total - itself) / (count * (count - 1)))


def layer_steps(trace: Trace, sentence: int) -> Float64:
    """The mean cosine of a sentence's tokens with themselves one layer before, float64 [layer]; NaN at layer 0.

    Special tokens are left out. A low value means that the block before this layer turns the tokens far.
    """
    values = diagonal(trace, sentence, include_special=False).values  # [block, token]
    if not values.shape[1]:
        return np.full(trace.n_layers + 1, np.nan)
    return np.concatenate([[np.nan], values.mean(axis=1)])


def pieces_of(sentence: TokenizedSentence, start: int, end: int) -> tuple[int, ...]:
    """The positions of the tokens that share a character with a part of the text; none if it was truncated."""
    return tuple(
        token.position for token in sentence.tokens if not token.special and token.start < end and start < token.end
    )


def two_words(trace: Trace, sentence: int, spans: Sequence[tuple[int, int]]) -> Float64:
    """The cosine of two words of a sentence at each layer, float64 [layer]; NaN for a word without a token.

    `spans` are the characters of the two words, so that every tokenizer finds them; a word's vector is the mean of those of
    its pieces.
    """
    words = [(sentence, pieces_of(trace.sentences[sentence], *span)) for span in spans]
    return np.asarray(pair_curves(word_vectors(trace, words), ["first", "second"]).values[0])


def two_vectors(vectors: np.ndarray, first: int, second: int) -> Float64:
    """The cosine of two sentences' vectors at each layer: [layer, sentence, dim] to float64 [layer]."""
    return cosine(vectors[:, first], vectors[:, second])
