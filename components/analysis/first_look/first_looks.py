"""At what the heads of a model look first from one word: each head's token with the largest weight, counted.

A count over all heads keeps one striking head from standing for the model. What it does not show: how much larger the first
weight is than the second, and whether the model uses it. Attention is no explanation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from components.analysis.first_look.words import Word
from components.arrays import Float32
from components.model.trace import TokenizedSentence


@dataclass(frozen=True)
class FirstLooks:
    """How many heads look first at what; the counts add up to `heads`."""

    heads: int
    at_words: tuple[tuple[Word, int], ...]  # other words, those at which most heads look first
    itself: int
    special: int  # at [CLS], [SEP] and their like
    rest: int  # at punctuation marks and other tokens that are no word


def first_looks(weights: Float32, word: Word, words: Sequence[Word], sentence: TokenizedSentence) -> FirstLooks:
    """Count the first looks of a word, from its last token. `weights`: [block, head, query, key] of its sentence.

    Equal largest weights count for the token that stands first.
    """
    keys = weights[:, :, word.last].argmax(axis=-1).ravel().tolist()  # one for each head
    of = {position: other for other in words if other.sentence == word.sentence for position in other.positions}
    special = {token.position for token in sentence.tokens if token.special}
    counts = Counter(of[key] for key in keys if key in of)
    itself = counts.pop(word, 0)
    at_special = sum(key in special for key in keys)
    at_words = tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0].positions)))
    rest = len(keys) - itself - at_special - sum(count for _, count in at_words)
    return FirstLooks(len(keys), at_words, itself, at_special, rest)
