"""Mask a token and read what the model would put there.

A masked language model was trained to fill in tokens hidden behind [MASK] (Devlin et al. 2019, section 3.1).
Its head scores every piece of the vocabulary at each mask; softmax turns the scores into probabilities.
`mask_token` puts the mask into the text, `top_predictions` reads the head.

What it does not show: a probability is the model's, given these words, not how often people write that word;
and with several masks each is filled in on its own, so the best pieces side by side need not fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float64
from components.errors import InputError
from components.model.tokenization import Tokenization
from components.model.trace import Token, TokenizedSentence, Trace


@dataclass(frozen=True)
class Prediction:
    """A piece that could stand at a mask."""

    piece: str
    id: int
    probability: float  # 0..1; over the whole vocabulary they sum to 1


@dataclass(frozen=True)
class MaskPredictions:
    """The most probable pieces at one mask token."""

    sentence: int
    position: int  # of the mask token in its sentence
    top: tuple[Prediction, ...]  # most probable first; of equal ones the lower id first


@dataclass(frozen=True)
class MaskedText:
    """A text (or pair) with one token, or one word, hidden behind mask tokens."""

    text: str
    pair: str | None
    positions: tuple[int, ...]  # of the mask tokens put in
    sentence: TokenizedSentence  # its tokens: those of the text before, but for the masks


def top_predictions(trace: Trace, vocabulary: Sequence[str], k: int = 10) -> tuple[MaskPredictions, ...]:
    """The `k` most probable pieces at each mask token of a trace made with mask_logits=True, in reading order.

    `vocabulary` gives each id its piece (Tokenization.vocabulary); an id beyond it, from a table padded to a
    round size, has an empty one. Raises ValueError for a trace without mask logits, or k < 1.
    """
    if trace.mask_logits is None:
        raise ValueError("this trace has no mask logits; make it with mask_logits=True")
    if k < 1:
        raise ValueError(f"k is {k}; expected 1 or more")
    predictions = []
    # One mask at a time: float64 of a whole vocabulary for hundreds of masks would take hundreds of megabytes.
    for (sentence, position), logits in zip(trace.mask_logits.positions, trace.mask_logits.logits, strict=True):
        probabilities = softmax(logits)
        best = np.argsort(-probabilities, kind="stable")[:k]
        top = tuple(
            Prediction(vocabulary[number] if number < len(vocabulary) else "", number, float(probabilities[number]))
            for number in best.tolist()
        )
        predictions.append(MaskPredictions(sentence, position, top))
    return tuple(predictions)


def softmax(logits: NDArray[np.floating]) -> Float64:
    """exp(x) / sum of exp(x) along the last axis, in float64.

    The largest is taken off first, which changes nothing but keeps exp from overflowing.
    """
    wide = logits.astype(np.float64)
    exponentials = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def mask_token(
    tokenization: Tokenization, sentence: TokenizedSentence, position: int, whole_word: bool = False
) -> MaskedText:
    """Write the mask in place of the token at `position`, or with `whole_word` of every piece of its word.

    The new text, cut to the old one's length if that was cut, has the same tokens at the same positions but
    for the masks; this is checked by tokenizing it. A word of n pieces gets n masks, as in BERT's whole-word
    masking. `sentence` is one that `tokenization` made.

    Raises InputError for a special token, for a tokenizer without a mask token, and where text cannot say it:
    a piece such as "walk" of walk ##ing, since "ing" after a mask would be read as a word of its own.
    Raises IndexError for a position that is not there.
    """
    if not 0 <= position < len(sentence):
        raise IndexError(f"position {position} is not within 0..{len(sentence) - 1}")
    token = sentence.tokens[position]
    if token.word is None:
        raise InputError(
            f"{token.piece} at position {position} stands for no text.",
            "A token of the text was expected.",
            "Pick another token.",
        )
    if tokenization.mask_id is None:
        raise InputError(
            "This model's tokenizer has no mask token.",
            "A model that was trained to fill in masks was expected.",
            "Pick for example BERT base or RoBERTa base.",
        )
    positions = sentence.word_positions(position) if whole_word else (position,)
    # A text that was cut has its rest behind it, and must be cut at the same place again.
    length = len(sentence) if sentence.dropped else None
    for text, pair in _spellings(sentence, positions, tokenization.special_tokens["mask"][0]):
        masked = tokenization.tokenize(text, pair, length)
        if _same_but_for(sentence, masked, positions, tokenization.mask_id):
            return MaskedText(text, pair, positions, masked)
    raise InputError(
        f"{token.piece!r} at position {position} cannot be masked{' with its whole word' if whole_word else ' alone'}.",
        "A token was expected that can be replaced in the text without changing how its neighbours are read.",
        "Pick another token." if whole_word else "Mask the whole word, or pick another token.",
    )


def _spellings(sentence: TokenizedSentence, positions: Sequence[int], mask: str) -> list[tuple[str, str | None]]:
    """The ways to write masks at `positions`: in place of their characters, or of a space or all before them too.

    Byte-level pieces ("Ġbank") hold the space in front of a word; some mask tokens swallow it, others leave it
    behind as a token of its own.
    """
    first, last = (sentence.tokens[positions[end]] for end in (0, -1))
    source = sentence.pair if first.in_pair and sentence.pair is not None else sentence.text
    before, after = source[: first.start], source[last.end :]
    starts = (before, before[:-1] if before[-1:].isspace() else before, before.rstrip())
    written = [f"{start}{mask * len(positions)}{after}" for start in dict.fromkeys(starts)]
    return [(sentence.text, text) if first.in_pair else (text, sentence.pair) for text in written]


def _same_but_for(old: TokenizedSentence, new: TokenizedSentence, positions: Sequence[int], mask_id: int) -> bool:
    """Whether the model reads the same tokens, but for masks at `positions`."""

    def read(token: Token) -> tuple[int, int, bool, bool]:
        return token.id, token.segment, token.in_pair, token.special

    expected = [read(token) for token in old.tokens]
    for position in positions:
        expected[position] = (mask_id, *expected[position][1:])
    return [read(token) for token in new.tokens] == expected
