"""How a word's vector moves through the layers: against its other occurrences, or against its own start and its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.first_look.words import Word, twins_of
from components.arrays import Float64, cosine

MOST_TWINS = 3  # other occurrences that are compared


@dataclass(frozen=True, eq=False)
class WordCourse:
    """The cosines of one word's vector at every layer, each float64 [layer]."""

    to_start: Float64  # to its own vector at layer 0
    to_others: Float64 | None  # to the mean of the other words of its sentence; None if it is alone
    to_twins: tuple[tuple[int, Float64], ...]  # to its first other occurrences, by their number


def courses(vectors: np.ndarray, words: Sequence[Word]) -> tuple[WordCourse, ...]:
    """The course of each word. `vectors`: float32 [layer, word, dim], those of the words in their order."""
    found = []
    for number, (word, twins) in enumerate(zip(words, twins_of(words), strict=True)):
        own = vectors[:, number]
        beside = [other for other, it in enumerate(words) if it.sentence == word.sentence and other != number]
        found.append(
            WordCourse(
                cosine(own, own[:1]),
                cosine(own, vectors[:, beside].mean(axis=1, dtype=np.float64)) if beside else None,
                tuple((twin, cosine(own, vectors[:, twin])) for twin in twins[:MOST_TWINS]),
            )
        )
    return tuple(found)
