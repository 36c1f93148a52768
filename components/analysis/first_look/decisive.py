"""The head that looks most decisively from one word at another, compared with what the head does anyway.

A head's habit is its mean weight at each distance over many sentences. Without it, heads that look one place to the left win
for every word. The most decisive head is the one whose weight on another content word is furthest above its habit at that
distance. What this does not show: that the model uses this weight. Attention is no explanation, and another head may look
elsewhere; all of them are in the view of all heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.first_look.words import Word
from components.arrays import Float32, Float64, read_only
from components.model.trace import TokenizedSentence, Trace

REACH = 24  # distances beyond it count as this one
STRONGEST = 5  # tokens that a look names
DECIDED = 0.1  # how far above its habit a head's weight must be to be more than chance


@dataclass(frozen=True, eq=False)
class Habits:
    """What heads do on average."""

    weights: Float32  # [block, head, distance + REACH], the distance being key minus query

    @property
    def nbytes(self) -> int:
        """Their size in memory."""
        return int(self.weights.nbytes)

    def at(self, distances: np.ndarray) -> Float32:
        """The usual weights at some distances in tokens, [block, head, distance]."""
        return self.weights[:, :, np.clip(distances, -REACH, REACH) + REACH]


class HabitCount:
    """Sums weights by distance, sentence after sentence; special tokens are left out as queries and as keys."""

    def __init__(self) -> None:
        self._total: Float64 | None = None  # [block, head, distance + REACH]
        self._count = np.zeros(2 * REACH + 1)

    def add(self, trace: Trace) -> None:
        """Add the attentions of a trace. Raises ValueError for one without."""
        if trace.attentions is None:
            raise ValueError("the trace has no attentions")
        for row, sentence in enumerate(trace.sentences):
            self._add(trace.attentions[:, row], sentence)

    def _add(self, weights: Float32, sentence: TokenizedSentence) -> None:
        """`weights` are those of one sentence, [block, head, query, key]."""
        own = [token.position for token in sentence.tokens if not token.special]
        if not own:
            return
        inner = weights[:, :, own[0] : own[-1] + 1, own[0] : own[-1] + 1]
        if self._total is None:
            self._total = np.zeros((*weights.shape[:2], 2 * REACH + 1))
        for distance in range(max(-REACH, 1 - inner.shape[-1]), min(REACH, inner.shape[-1] - 1) + 1):
            diagonal = np.diagonal(inner, distance, axis1=2, axis2=3)
            self._total[:, :, distance + REACH] += diagonal.sum(axis=-1, dtype=np.float64)
            self._count[distance + REACH] += diagonal.shape[-1]

    def habits(self) -> Habits:
        """The means. Raises ValueError if nothing was added."""
        if self._total is None:
            raise ValueError("no sentence with a token of its own was added")
        return Habits(read_only((self._total / np.maximum(self._count, 1)).astype(np.float32)))


def habits_of(traces: Iterable[Trace]) -> Habits:
    """The habits over the sentences of some traces."""
    count = HabitCount()
    for trace in traces:
        count.add(trace)
    return count.habits()


@dataclass(frozen=True)
class Look:
    """Where a word looks in its most decisive head."""

    block: int
    head: int
    target: int  # the position of the token that it looks at
    weight: float
    usual: float  # what this head gives at this distance on average
    strongest: tuple[
        tuple[int, float], ...
    ]  # the target and the strongest other tokens with their weights, in their order

    @property
    def rest(self) -> float:
        """The weight of all other tokens together."""
        return max(0.0, 1.0 - sum(weight for _, weight in self.strongest))


def most_decisive(weights: Float32, word: Word, words: Sequence[Word], habits: Habits) -> Look | None:
    """Where a word looks; None if its sentence has no other word. See `decisive_heads`."""
    return next(iter(decisive_heads(weights, word, words, habits, 1)), None)


def decisive_heads(weights: Float32, word: Word, words: Sequence[Word], habits: Habits, count: int) -> tuple[Look, ...]:
    """The heads that look most decisively from a word at another one, best first; none if its sentence has no other word.

    `weights` are the attentions of its sentence, [block, head, query, key], and `words` all words of all sentences. It looks
    from its last token at the tokens of other content words; without any, at those of other words.
    """
    others = [other for other in words if other.sentence == word.sentence and other.positions != word.positions]
    targets = [position for other in others if other.is_content for position in other.positions]
    targets = targets or [position for other in others for position in other.positions]
    if not targets:
        return ()
    places = np.array(targets)
    row = weights[:, :, word.last]  # [block, head, key]
    usual = habits.at(places - word.last)
    above = row[:, :, places] - usual  # [block, head, target]
    best = above.argmax(axis=-1)
    order = np.argsort(-above.max(axis=-1), axis=None, kind="stable")[:count]
    found = []
    for block, head in zip(*np.unravel_index(order, best.shape), strict=True):
        target, of_head = targets[best[block, head]], row[block, head]
        others_first = [key for key in np.argsort(-of_head, kind="stable").tolist() if key != target]
        shown = sorted([target, *others_first[: STRONGEST - 1]])
        found.append(
            Look(
                int(block),
                int(head),
                target,
                float(of_head[target]),
                float(usual[block, head, best[block, head]]),
                tuple((key, float(of_head[key])) for key in shown),
            )
        )
    return tuple(found)
