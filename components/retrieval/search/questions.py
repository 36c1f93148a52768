"""Which of a list of questions asks what a person asks: by an encoder's vectors, and by the words that both have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.arrays import Float64, cosine
from components.words.forms import stems_of
from components.words.function import FUNCTION_WORDS
from components.words.typed import typed_words
from components.words.unicode_words import folded

WORDS = 0.3  # what a question gains that has all the content words of what is asked
LEAST, LEAST_OF_BEST = (
    0.4,
    0.55,
)  # lower scores answer something else: nonsense and other subjects reach 0.36, questions pass 0.7


def scores(asked: str, questions: Sequence[str], asked_vector: np.ndarray, vectors: np.ndarray) -> Float64:
    """How well each question fits what is asked, float64 [question]: cosine + WORDS times the share of words found in it.

    `asked_vector` [dim] and `vectors` [question, dim] are those of one encoder. The words are the content words of `asked`;
    a form of a word counts as the word.
    """
    cosines = cosine(np.asarray(vectors, np.float64), np.asarray(asked_vector, np.float64))
    wanted = [stems_of(word) for word in content_words(asked)]
    if not wanted:
        return cosines
    found = [[not stems.isdisjoint(_stems(question)) for stems in wanted] for question in questions]
    return cosines + WORDS * np.mean(np.array(found, np.float64), axis=1)


def best(found: Float64, most: int) -> list[int]:
    """The questions that fit, the best first: at most this many, none if no score is above LEAST and LEAST_OF_BEST."""
    order = [int(row) for row in np.argsort(-found, kind="stable")[:most]]
    return [row for row in order if found[row] >= max(LEAST, LEAST_OF_BEST * found[order[0]])]


def content_words(text: str) -> list[str]:
    """The words of a text that are not only grammar, folded."""
    words = [folded(text[start:end]) for start, end in typed_words(text)]
    return [word for word in words if word not in FUNCTION_WORDS]


def _stems(text: str) -> frozenset[str]:
    return frozenset().union(*(stems_of(word) for word in content_words(text)))
