"""The same words in two models' tokenizations of the same sentences, so that their vectors can be compared.

Two tokenizers split a text into different pieces and even into different words ("don't" is one, two or three). A
matched word is the shortest part of the text that consists of whole words for both, found by character spans
(components.analysis.alignment); its vector in a model is the mean of its pieces' vectors.

Left out are special tokens, words that only one tokenization has, and words of which one lost a piece to truncation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from components.analysis.alignment import AlignedSpan, align
from components.arrays import Float32
from components.model.trace import TokenizedSentence, Trace
from components.words.unicode_words import is_within_word


@dataclass(frozen=True)
class MatchedWord:
    """A part of the text that consists of whole words for both tokenizers."""

    sentence: int
    text: str
    first: tuple[int, ...]  # positions of its pieces in the first tokenization
    second: tuple[int, ...]  # and in the second


def matched_words(
    sentences_a: Sequence[TokenizedSentence], sentences_b: Sequence[TokenizedSentence]
) -> tuple[MatchedWord, ...]:
    """The words that two tokenizations share, by sentence and from left to right; both texts of a pair.

    Raises ValueError if the sentences are not the same texts in the same order.
    """
    if len(sentences_a) != len(sentences_b):
        raise ValueError(f"{len(sentences_a)} and {len(sentences_b)} sentences cannot be matched")
    words = []
    for row, (first, second) in enumerate(zip(sentences_a, sentences_b, strict=True)):
        if (first.text, first.pair) != (second.text, second.pair):
            raise ValueError(f"sentence {row} is of different texts in the two tokenizations")
        for text_a, text_b in zip(_texts(first), _texts(second), strict=True):
            for spans in _whole_words(align(text_a, text_b)):
                start, end = spans[0].start, spans[-1].end
                first_positions = tuple(token.position for span in spans for token in span.first)
                second_positions = tuple(token.position for span in spans for token in span.second)
                if (
                    first_positions
                    and second_positions
                    and all(_is_kept(start, end, text) for text in (text_a, text_b))
                ):
                    words.append(MatchedWord(row, text_a.text[start:end], first_positions, second_positions))
    return tuple(words)


def word_vectors(trace: Trace, words: Sequence[tuple[int, Sequence[int]]]) -> Float32:
    """The mean of the pieces' hidden states for each (sentence, positions), float32 [layer, word, dim]; NaN without positions.

    For matched words: `[(word.sentence, word.first) for word in words]`, and `word.second` for the other model.
    """
    layers, dim = trace.hidden_states.shape[0], trace.hidden_states.shape[-1]
    vectors = np.full((layers, len(words), dim), np.nan, np.float32)
    for index, (sentence, positions) in enumerate(words):
        if positions:
            vectors[:, index] = trace.token_vectors(sentence, list(positions)).mean(axis=1)
    return vectors


def _texts(sentence: TokenizedSentence) -> list[TokenizedSentence]:
    """A sentence as it is, a pair as two sentences, because alignment compares first texts only."""
    if sentence.pair is None:
        return [sentence]
    return [
        TokenizedSentence(
            text,
            None,
            tuple(replace(token, in_pair=False) for token in sentence.tokens if token.in_pair == in_pair),
            tuple(cut for cut in sentence.dropped if cut.of_pair == in_pair),
        )
        for text, in_pair in ((sentence.text, False), (sentence.pair, True))
    ]


def _whole_words(spans: Sequence[AlignedSpan]) -> list[list[AlignedSpan]]:
    """Spans in the smallest possible groups such that no word of either side is in two groups."""
    ends: dict[tuple[int, int | None], int] = {}  # last span of each side's words
    for index, span in enumerate(spans):
        ends.update({word: index for word in _words(span)})
    groups: list[list[AlignedSpan]] = []
    reach = -1
    for index, span in enumerate(spans):
        if index > reach:
            groups.append([])
        groups[-1].append(span)
        reach = max(reach, index, *(ends[word] for word in _words(span)))
    return groups


def _words(span: AlignedSpan) -> set[tuple[int, int | None]]:
    """The words of either side that have a piece in a span."""
    return {(side, token.word) for side, tokens in enumerate((span.first, span.second)) for token in tokens}


def _is_kept(start: int, end: int, sentence: TokenizedSentence) -> bool:
    """Whether a part of a text was not truncated, and neither was its first or last word."""
    begin, cut = sentence.read_span()
    # Truncated text has no word numbers: letters on both sides of a cut are treated as one word.
    is_whole_at_begin = start > begin or (start == begin and not is_within_word(sentence.text, begin))
    return is_whole_at_begin and (end < cut or (end == cut and not is_within_word(sentence.text, cut)))
