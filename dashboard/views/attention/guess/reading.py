"""What a model guesses for the masks of one text: both ways of looking, and how surprised it is by each word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from components.model.guesses.masks import typed_masks
from components.model.guesses.names import marks_words, name_of, readable
from dashboard.ui import controls
from dashboard.views.attention.guess.findings import Guessed

if TYPE_CHECKING:
    from components.model.guesses.record import LayerGuesses, Surprises
    from dashboard.views.attention.head_choice import AttentionInput

SHOWN = 10  # guesses


@dataclass(frozen=True, eq=False)
class MaskGuesses:
    """The guesses of a model for the masks of one text."""

    guesses: LayerGuesses  # as chosen: looking at both sides, or only left
    other: LayerGuesses | None  # the other way of looking; None if the model cannot
    positions: tuple[int, ...]  # of all masks, hidden words and typed ones, in reading order
    shown: int  # the one whose guesses are drawn
    facts: dict[int, Guessed]  # by position
    marked: (
        int  # id of the piece with the product's blue: the true one, or the first guess where nobody knows the truth
    )
    surprises: Surprises | None  # None for a text that is too long for it


def read(model_input: AttentionInput, target: int, hidden: tuple[int, ...], only_left: bool) -> MaskGuesses:
    """The guesses for the `hidden` tokens and the typed masks of a text; those for `target` are shown."""
    backend, pair = model_input.backend, model_input.pair
    length = controls.length_for(backend)

    positions = tuple(sorted({*hidden, *typed_masks(model_input.sentence, backend.tokenization)}))

    def guessed(left: bool, asked: tuple[int, ...] = ()) -> LayerGuesses:
        return backend.guesses(pair.first, pair.second, hidden, length, left, SHOWN, positions=positions, asked=asked)

    guesses = guessed(only_left)
    other = None if backend.why_not_only_left() else guessed(not only_left)
    vocabulary, marks = backend.tokenization.vocabulary, marks_words(backend.tokenization)
    place = guesses.token(target)
    true = int(guesses.true_ids[place])
    marked = true if true >= 0 else int(guesses.ids[-1, place, 0])
    if true < 0:  # its rank at each layer
        guesses = guessed(only_left, (marked,))
        other = None if other is None else guessed(not only_left, (marked,))
    facts = {
        position: facts_of(guesses, other, position, vocabulary, marks, is_asked=true < 0 and position == target)
        for position in positions
    }
    last = max((token.position for token in model_input.sentence.tokens if token.end > token.start), default=-1)
    if last in facts and facts[last].missing_end and not model_input.sentence.dropped:
        text = pair.first.rstrip() + facts[last].missing_end
        ended = backend.guesses(text, None, hidden, length, False, SHOWN, positions=(last,))
        first = name_of(backend.tokenization, int(ended.ids[-1, 0, 0]))
        facts[last] = replace(facts[last], with_end=(first, float(ended.probabilities[-1, 0, 0])))
    surprises = None
    if not backend.surprises_take_long(len(model_input.sentence)):
        surprises = backend.surprises(pair.first, pair.second, length, only_left)
    return MaskGuesses(guesses, other, positions, target, facts, marked, surprises)


def facts_of(
    guesses: LayerGuesses,
    other: LayerGuesses | None,
    position: int,
    vocabulary: tuple[str, ...],
    marks: bool,
    is_asked: bool = False,
) -> Guessed:
    """What the finding needs of one mask. `is_asked`: the rank of its first guess was asked for."""
    place = guesses.token(position)

    def name(piece: int) -> str:
        return readable(vocabulary[piece] if 0 <= piece < len(vocabulary) else "", marks)

    true = int(guesses.true_ids[place])
    ids, shares = guesses.ids[-1, place], guesses.probabilities[-1, place]
    true_ranks = guesses.true_ranks[:, place]
    first_ranks = (
        true_ranks
        if true == int(ids[0])
        else guesses.asked_ranks[:, place, 0]
        if is_asked
        else np.where(guesses.ids[:, place, 0] == ids[0], 1, 2)  # not first, wherever it is
    )
    return Guessed(
        pieces=tuple(map(name, ids.tolist())),
        probabilities=shares,
        first_ranks=first_ranks,
        true=None if true < 0 else name(true),
        true_ranks=true_ranks,
        true_share=float(guesses.true_probabilities[-1, place]),
        n_pieces=len(vocabulary),
        only_left=guesses.only_left,
        other_rank=None if other is None or true < 0 else int(other.true_ranks[-1, place]),
        other_first="" if other is None else name(int(other.ids[-1, place, 0])),
        other_share=float("nan") if other is None else float(other.probabilities[-1, place, 0]),
    )
