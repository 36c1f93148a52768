"""Which head tells most about one text: the one that looks from one word at another much more than it does anyway.

For every head, over all pairs of a content word or pronoun that looks and a content word at least two places away: the
weight less what the head gives to that distance on average (`Habits`, over many sentences). The pair with the largest
difference is the head's look, and the head with the largest look is the most telling one. Without the comparison, heads that
always look two places to the left win; without the two places, heads that look at a neighbour do.

Where no habits are known, the comparison is with the mean over these pairs in this text. Where no pair of words is two places
apart, any two words count; a text of one word has no look.

What it does not show: that the model uses the weight. Attention is no explanation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.first_look.decisive import Habits
from components.analysis.first_look.words import Word

APART = 2  # places between the word that looks and the one that it looks at


@dataclass(frozen=True)
class HeadLook:
    """The look of a head that is furthest above its habit."""

    block: int
    head: int
    query: int  # the position that looks
    key: int  # the position that it looks at
    weight: float
    usual: float  # what the head gives on average: to this distance, or without habits between such words of this text

    @property
    def excess(self) -> float:
        """How far the weight is above the usual one."""
        return self.weight - self.usual


def telling_looks(
    weights: np.ndarray, words: Sequence[Word], habits: Habits | None = None, allowed: np.ndarray | None = None
) -> tuple[HeadLook, ...]:
    """The look of every head, the most telling first; on a tie the lower block, then the lower head. None without two words.

    `weights` are the attentions of one text, [block, head, query, key], and `words` its words (`words_of`).
    `allowed` [query, key] says which positions may look where; without it, all may.
    """
    queries, keys = _pairs(words, allowed)
    if not len(queries):
        return ()
    found = []
    for block, heads in enumerate(weights):
        given = np.asarray(heads[:, queries, keys], np.float64)  # [head, pair]
        usual = np.broadcast_to(
            given.mean(axis=-1, keepdims=True) if habits is None else habits.at(keys - queries)[block], given.shape
        )
        best = np.argmax(given - usual, axis=-1)  # [head]
        found += [
            HeadLook(block, head, int(queries[at]), int(keys[at]), float(given[head, at]), float(usual[head, at]))
            for head, at in enumerate(best)
        ]
    return tuple(sorted(found, key=lambda look: (-look.excess, look.block, look.head)))


def _pairs(words: Sequence[Word], allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The positions that look and those that they look at, one for each pair."""
    content = [word for word in words if word.is_content]
    looking = [word for word in words if word.is_content or word.is_pronoun]
    for first, second, apart in ((looking, content, APART), (words, words, 1)):
        pairs = [
            (one.last, position)
            for one in first
            for other in second
            if other.positions != one.positions
            for position in other.positions
            if abs(position - one.last) >= apart and (allowed is None or allowed[one.last, position])
        ]
        if pairs:
            queries, keys = np.array(pairs).T
            return queries, keys
    return np.zeros(0, int), np.zeros(0, int)
