"""How many heads have another word look first at one word: the other direction of `first_looks`, from the same attentions.

The weights that a word receives do not sum to 1: each of the others has a whole attention of its own to give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.first_look.decisive import Habits, Look
from components.analysis.first_look.words import Word
from components.arrays import Float32


@dataclass(frozen=True)
class LookedAt:
    """From which words heads look first at one word."""

    heads: int
    looking: int  # heads in which at least one other word looks first at it
    from_words: tuple[tuple[Word, int], ...]  # other words with the heads in which they do, those with most heads first


def received(weights: Float32, positions: Sequence[int]) -> Float32:
    """What each token gives to some tokens together, [block, head, query], from weights [block, head, query, key]."""
    given: Float32 = weights[..., list(positions)].sum(axis=-1)
    return given


def looked_at(weights: Float32, word: Word, words: Sequence[Word]) -> LookedAt:
    """Count the heads in which other words look first at a word. `weights`: [block, head, query, key] of its sentence.

    A word looks from its last token. Equal largest weights count for the token that stands first.
    """
    others = [other for other in words if other.sentence == word.sentence and other.positions != word.positions]
    firsts = weights[:, :, [other.last for other in others]].argmax(axis=-1)  # [block, head, other]
    looks = np.isin(firsts, word.positions)
    counts = Counter(dict(zip(others, looks.sum(axis=(0, 1)).tolist(), strict=True)))
    found = sorted(
        ((other, count) for other, count in counts.items() if count), key=lambda item: (-item[1], item[0].last)
    )
    return LookedAt(looks.shape[0] * looks.shape[1], int(looks.any(axis=-1).sum()), tuple(found))


def decisive_looks_at(
    weights: Float32, word: Word, words: Sequence[Word], habits: Habits, count: int
) -> tuple[Look, ...]:
    """The heads in which another word looks most decisively at this one: its weight is furthest above the head's habit.

    Every other word counts, also "is" and "the", which look from their own places like any other.
    The `target` of each is the last token of the word that looks, from which `usual` is counted; `strongest` is empty.
    """
    others = [other for other in words if other.sentence == word.sentence and other.positions != word.positions]
    places = np.array([other.last for other in others], int)
    if not len(places):
        return ()
    given = received(weights, word.positions)[:, :, places]
    usual = np.sum([habits.at(position - places) for position in word.positions], axis=0)
    best = (given - usual).argmax(axis=-1)
    order = np.argsort(-(given - usual).max(axis=-1), axis=None, kind="stable")[:count]
    return tuple(
        Look(
            int(block),
            int(head),
            int(places[at := best[block, head]]),
            float(given[block, head, at]),
            float(usual[block, head, at]),
            (),
        )
        for block, head in zip(*np.unravel_index(order, best.shape), strict=True)
    )
