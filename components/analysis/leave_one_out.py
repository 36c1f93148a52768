"""Which words a score of two texts depends on: the score again without each word (leave one out, an occlusion method).

Li, Monroe and Jurafsky 2016, "Understanding neural networks through representation erasure". A word's drop is the score
of the whole pair minus the score without the word; a negative drop means that the score rises.

What it does not show: causes. A text without a word can be unlike any text that the model was trained on. The drops do not
sum to the score: of two words that say the same, neither may have a drop, because the other one remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from components.arrays import Float32
from components.model.trace import TokenizedSentence

PairScore = Callable[[Sequence[str], Sequence[str]], Float32]  # first texts, second texts -> [pair]


@dataclass(frozen=True)
class RemovedWord:
    """A word of one of the two texts, by its characters."""

    text: str  # as typed
    in_pair: bool  # of the second text
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The score of a pair of texts, and how much it falls without each word."""

    score: float  # of the whole pair
    words: tuple[RemovedWord, ...]  # from left to right, those of the first text first
    drops: Float32  # [word]: the whole pair's score minus the score without the word


def words_of(sentence: TokenizedSentence) -> tuple[RemovedWord, ...]:
    """The words of a pair of texts that the model reads, by the tokenizer's own boundaries; not punctuation.

    A word that is partly truncated counts with the part that is read.
    """
    spans: dict[tuple[bool, int], tuple[int, int]] = {}
    for token in sentence.tokens:
        if token.word is not None:
            start, end = spans.get((token.in_pair, token.word), (token.start, token.end))
            spans[token.in_pair, token.word] = min(start, token.start), max(end, token.end)
    words = []
    for (in_pair, _), (start, end) in spans.items():
        source = sentence.pair if in_pair and sentence.pair is not None else sentence.text
        if any(character.isalnum() for character in source[start:end]):
            words.append(RemovedWord(source[start:end], in_pair, start, end))
    return tuple(words)


def without(text: str, word: RemovedWord) -> str:
    """A text without one of its words; no two spaces stand where the word was."""
    before, after = text[: word.start], text[word.end :]
    return (before + after.lstrip() if not before or before[-1].isspace() else before + after).strip()


def leave_one_out(sentence: TokenizedSentence, score: PairScore) -> LeaveOneOut:
    """The drops of a pair's score without each of its words, in one call of `score`.

    Raises ValueError for a single text.
    """
    if sentence.pair is None:
        raise ValueError("a pair of texts is needed")
    words = words_of(sentence)
    scores = score(*left_out(sentence.text, sentence.pair, words))
    return LeaveOneOut(float(scores[0]), words, scores[0] - scores[1:])


def left_out(first: str, second: str, words: Sequence[RemovedWord]) -> tuple[list[str], list[str]]:
    """Both texts as they are, then without each word."""
    return (
        [first, *(first if word.in_pair else without(first, word) for word in words)],
        [second, *(without(second, word) if word.in_pair else second for word in words)],
    )
