"""Which two of several sentences are worth comparing first: two that have a word in common, or else the most similar ones.

A cosine of two sentences that share nothing is a small number with little to split. Of the pairs that share a content word (in
any of its forms) the one with the highest cosine is taken, of all pairs where none shares one. Equal texts are no pair, unless
there are no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from components.arrays import unit
from components.words.forms import stems_of
from components.words.function import is_function_word
from components.words.unicode_words import words

MOST_COMPARED = 64  # sentences


def best_pair(texts: Sequence[str], vectors: Any) -> tuple[int, int]:
    """The rows of two of the texts, the smaller first; `vectors` are theirs, [text, dim]. (0, 0) for a single text."""
    count = min(len(texts), MOST_COMPARED)
    if count < 2:
        return 0, 0
    directions = unit(np.asarray(vectors[:count], np.float64))
    cosines = directions @ directions.T
    stems = [_stems_of(text) for text in texts[:count]]
    pairs = [(a, b) for a, b in combinations(range(count), 2) if texts[a] != texts[b]]
    sharing = [(a, b) for a, b in pairs if not stems[a].isdisjoint(stems[b])]
    # The first of equal ones, so that the choice does not hang on rounding.
    return max(sharing or pairs or [(0, 1)], key=lambda pair: (round(float(cosines[pair]), 6), -pair[0], -pair[1]))


def _stems_of(text: str) -> frozenset[str]:
    """What the content words of a text can be forms of: two texts share a word exactly if these overlap (see `stems_of`)."""
    content = [word for word in set(words(text)) if not is_function_word(word)]
    return frozenset().union(*map(stems_of, content))
