"""A word by which each of some sentences is told from the others.

Numbers make a reader look up which sentence is meant. A content word that no other sentence has, in no form, names its
sentence at once; of several the one whose vector is most similar to the mean of the sentence's tokens after the last block:
the word that the sentence is most about, by the model.

What it does not show: what the sentence is about. A sentence without such a word has none here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.analysis.first_look.words import Word, twins_of, words_of
from components.analysis.matched_words import word_vectors
from components.analysis.pooling import pool
from components.arrays import cosine
from components.model.trace import Trace


def telling_words(trace: Trace) -> tuple[str, ...]:
    """The telling word of each sentence of a trace, as typed; "" for one without."""
    words = words_of(trace.sentences)
    twins = twins_of(words)
    candidates: list[list[Word]] = [[] for _ in trace.sentences]
    for number, word in enumerate(words):
        if word.is_content and all(words[other].sentence == word.sentence for other in twins[number]):
            candidates[word.sentence].append(word)
    means = pool(trace, "mean", include_special=False)[-1]  # [sentence, dim]
    return tuple(_nearest(trace, own, means[row]) if own else "" for row, own in enumerate(candidates))


MOST_OF_WORD = 20  # characters of a word in a name


def names_of(words: Sequence[str]) -> tuple[str, ...]:
    """What sentences with these telling words are called: the words in quotes; numbers from 1 where one has no word."""
    short = [word if len(word) <= MOST_OF_WORD else f"{word[: MOST_OF_WORD - 1]}…" for word in words]
    return tuple(f"“{word}”" if all(words) else str(number) for number, word in enumerate(short, start=1))


def _nearest(trace: Trace, words: Sequence[Word], mean: np.ndarray) -> str:
    vectors = word_vectors(trace, [(word.sentence, word.positions) for word in words])[-1]
    return words[int(np.argmax(np.round(cosine(vectors, mean[None]).ravel(), 6)))].text
