"""Mask a token: the model's predictions for it, and how much the other tokens' vectors depend on it.

A masked language model was trained to fill in tokens hidden behind [MASK] (Devlin et al. 2019, section 3.1).
Its head scores every piece of the vocabulary at each mask; softmax turns the scores into probabilities.
`mask_token` puts the mask into the text, `top_predictions` reads the head. Every encoder, with such a head or without,
gives the other tokens other vectors when a token is masked: `kept_similarity` measures by how much.

What it does not show: how often people write a word, since a probability is the model's own, given these words;
and with several masks each is predicted independently, so that the best pieces need not fit together. A vector that
changes little may still need the masked token: the words around can give the same information. And an encoder that was
not trained with masks reads [MASK] as a piece that it seldom saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from components.arrays import Float64, cosine, read_only
from components.errors import InputError
from components.model.guesses.masks import mask_of, no_mask
from components.model.guesses.vocabulary import kept
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
    top: tuple[Prediction, ...]  # most probable first; on a tie the lower id first


@dataclass(frozen=True)
class MaskedText:
    """A text (or pair) with one token, or one word, hidden behind mask tokens."""

    text: str
    pair: str | None
    positions: tuple[int, ...]  # of the inserted mask tokens
    sentence: TokenizedSentence  # its tokens: those of the original text, except for the masks


@dataclass(frozen=True, eq=False)
class KeptSimilarity:
    """How similar the vectors of a sentence are with and without masks."""

    tokens: Float64  # [layer, token]: cosine of each token's vector before and after
    mean: Float64  # [layer]: of the mean of all tokens


def kept_similarity(before: Trace, after: Trace) -> KeptSimilarity:
    """Compare one sentence's hidden states `before` and `after` tokens of it were masked, by cosine, at every layer.

    Both traces have one sentence; the tokens' positions are the same (see `mask_token`). Raises ValueError for other
    traces.
    """
    if before.hidden_states.shape != after.hidden_states.shape or before.hidden_states.shape[1] != 1:
        raise ValueError(
            f"hidden states {before.hidden_states.shape} and {after.hidden_states.shape} are not those of one sentence"
        )
    old, new = (trace.hidden_states[:, 0].astype(np.float64) for trace in (before, after))  # [layer, token, dim]
    return KeptSimilarity(read_only(cosine(old, new)), read_only(cosine(old.mean(axis=1), new.mean(axis=1))))


def mean_turns(before: Trace, after: Trace, hidden: Sequence[Sequence[int]]) -> Float64:
    """How far the vectors of the tokens that stay turn on average at the last layer, in degrees, for each masked text.

    `before` has one sentence, and each of `after` is that sentence with masks at its `hidden` positions. Special tokens do not
    count. NaN never: 0 where no other token stays. Raises ValueError for other traces.
    """
    if len(before.sentences) != 1 or len(after.sentences) != len(hidden):
        raise ValueError(f"{len(after.sentences)} masked texts and {len(hidden)} places do not fit")
    sentence = before.sentences[0]
    length = len(sentence)
    own = np.array([not token.special for token in sentence.tokens], bool)
    old = before.hidden_states[-1, 0, :length].astype(np.float64)
    turns = []
    for row, positions in enumerate(hidden):
        kept = own.copy()
        kept[list(positions)] = False
        cosines = cosine(old[kept], after.hidden_states[-1, row, :length][kept].astype(np.float64))
        turns.append(float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean()) if kept.any() else 0.0)
    return np.array(turns)


def top_predictions(trace: Trace, vocabulary: Sequence[str], k: int = 10) -> tuple[MaskPredictions, ...]:
    """The `k` most probable pieces at each mask token of a trace made with mask_logits=True, in reading order.

    `vocabulary` lists the piece of each id (Tokenization.vocabulary); an id beyond it, from a table padded to a
    round size, has an empty piece. Raises ValueError for a trace without mask logits, or k < 1.
    """
    if trace.mask_logits is None:
        raise ValueError("this trace has no mask logits; make it with mask_logits=True")
    if k < 1:
        raise ValueError(f"k is {k}; expected 1 or more")
    predictions = []
    # One mask at a time: whole vocabularies for hundreds of masks would take hundreds of megabytes more.
    for (sentence, position), logits in zip(trace.mask_logits.positions, trace.mask_logits.logits, strict=True):
        best = kept(torch.from_numpy(logits[None].astype(np.float64)), k, np.empty((1, 0), np.int64))
        top = tuple(
            Prediction(piece_of(vocabulary, number), number, probability)
            for number, probability in zip(best.ids[0].tolist(), best.probabilities[0].tolist(), strict=True)
        )
        predictions.append(MaskPredictions(sentence, position, top))
    return tuple(predictions)


def piece_of(vocabulary: Sequence[str], number: int) -> str:
    """The piece of an id; empty for one beyond the vocabulary, from a table padded to a round size."""
    return vocabulary[number] if number < len(vocabulary) else ""


def mask_token(
    tokenization: Tokenization, sentence: TokenizedSentence, position: int, whole_word: bool = False
) -> MaskedText:
    """Replace the token at `position`, or with `whole_word` every piece of its word, by the mask.

    The new text, truncated to the old length if the old text was truncated, has the same tokens at the same
    positions except for the masks; this is checked by tokenizing it. A word of n pieces gets n masks, as in BERT's
    whole-word masking. `sentence` must come from `tokenization`.

    Raises InputError for a special token, for a tokenizer without a mask token, and if no text gives these tokens:
    for "walk" of walk ##ing, for example, because "ing" after a mask would be tokenized as a word of its own.
    Raises IndexError for a position that does not exist.
    """
    if not 0 <= position < len(sentence):
        raise IndexError(f"position {position} is not within 0..{len(sentence) - 1}")
    token = sentence.tokens[position]
    if token.word is None:
        raise InputError(
            f"{token.piece} at position {position} is a special token.",
            "Only tokens of the text itself can be masked.",
            "Pick another token.",
        )
    mask = mask_of(tokenization)
    if mask is None or tokenization.mask_id is None:
        raise no_mask()
    positions = sentence.word_positions(position) if whole_word else (position,)
    # A truncated text still has its rest, and must be truncated at the same position again; one that is read beyond the
    # published length must be read as far.
    length = len(sentence) if sentence.dropped or len(sentence) > tokenization.own_length else None
    for text, pair in _spellings(sentence, positions, mask):
        masked = tokenization.tokenize(text, pair, length)
        if _differs_only_in_masks(sentence, masked, positions, tokenization.mask_id):
            return MaskedText(text, pair, positions, masked)
    raise InputError(
        f"{token.piece!r} at position {position} cannot be masked{' with its whole word' if whole_word else ' alone'}.",
        "A token can be masked only if the text around it is still split into the same tokens.",
        "Pick another token." if whole_word else "Mask the whole word, or pick another token.",
    )


def _spellings(sentence: TokenizedSentence, positions: Sequence[int], mask: str) -> list[tuple[str, str | None]]:
    """The ways to write masks at `positions`: instead of their characters, also of one space or all spaces before them.

    Byte-level pieces ("Ġbank") contain the space before a word; some mask tokens absorb it, others leave it
    as a token of its own.
    """
    first, last = (sentence.tokens[positions[end]] for end in (0, -1))
    source = sentence.pair if first.in_pair and sentence.pair is not None else sentence.text
    before, after = source[: first.start], source[last.end :]
    starts = (before, before[:-1] if before[-1:].isspace() else before, before.rstrip())
    written = [f"{start}{mask * len(positions)}{after}" for start in dict.fromkeys(starts)]
    return [(sentence.text, text) if first.in_pair else (text, sentence.pair) for text in written]


def _differs_only_in_masks(
    old: TokenizedSentence, new: TokenizedSentence, positions: Sequence[int], mask_id: int
) -> bool:
    """Whether the model's input has the same tokens, except for masks at `positions`."""

    def as_input(token: Token) -> tuple[int, int, bool, bool]:
        return token.id, token.segment, token.in_pair, token.special

    expected = [as_input(token) for token in old.tokens]
    for position in positions:
        expected[position] = (mask_id, *expected[position][1:])
    return [as_input(token) for token in new.tokens] == expected
