"""The words of many sentences with their vectors before the first and after the last block, and the nearest ones to a word.

Nearest by cosine. A sentence counts once, by its nearest word, and never the sentence itself: a list of five words of one
sentence says less than five sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.analysis.first_look.words import words_of
from components.analysis.matched_words import word_vectors
from components.arrays import unit
from components.model.trace import Trace
from components.words.forms import are_forms

NEAREST = 5
TIE = 1e-3  # cosines this close are equal: vectors are kept in float16
FIRST_SORTED = 64  # words that are looked through before all are sorted


@dataclass(frozen=True)
class Place:
    """A word in one of the sentences."""

    sentence: int
    text: str
    start: int  # characters
    end: int
    sense: str = ""  # where it is known


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A word that is near."""

    place: Place
    sentence: str
    cosine: float


@dataclass(frozen=True, eq=False)
class WordStore:
    """The words of many sentences."""

    sentences: tuple[str, ...]
    places: tuple[Place, ...]  # [word]
    first: NDArray[np.float16]  # [word, dim], directions before the first block
    last: NDArray[np.float16]  # [word, dim], directions after the last block

    @property
    def nbytes(self) -> int:
        """Their size in memory, without the texts."""
        return self.first.nbytes + self.last.nbytes

    def nearest(
        self, vectors: np.ndarray, own: Sequence[str], at_last: bool = True
    ) -> tuple[tuple[Neighbour, ...], ...]:
        """For each of some vectors [word, dim] its NEAREST words, nearest first, at the last layer or at the first.

        `own` is the sentence of each vector, which is left out. Words as near as the last of them, to within TIE, are among
        them too: before the first block a word's vectors may differ by their positions alone.
        """
        stored = (self.last if at_last else self.first).astype(np.float32)
        cosines = unit(np.asarray(vectors, np.float32)) @ stored.T  # [word, stored word]
        return tuple(self._of(row, text) for row, text in zip(cosines, own, strict=True))

    def _of(self, cosines: np.ndarray, own: str) -> tuple[Neighbour, ...]:
        found: list[Neighbour] = []
        seen: set[int] = set()
        for number in _descending(cosines):
            place = self.places[number]
            if len(found) >= NEAREST and cosines[number] < found[NEAREST - 1].cosine - TIE:
                break
            if place.sentence not in seen and self.sentences[place.sentence] != own:
                seen.add(place.sentence)
                found.append(Neighbour(place, self.sentences[place.sentence], float(cosines[number])))
        return tuple(found)


def _descending(values: np.ndarray) -> Iterator[int]:
    """The numbers of some values, the largest value first; of equal ones the first. The small ones are sorted if needed."""
    least = np.partition(values, -min(FIRST_SORTED, len(values)))[-min(FIRST_SORTED, len(values))]
    few = np.flatnonzero(values >= least)
    yield from few[np.argsort(-values[few], kind="stable")].tolist()
    rest = np.setdiff1d(np.arange(len(values)), few)
    yield from rest[np.argsort(-values[rest], kind="stable")].tolist()


class WordCollection:
    """Collects the words of traces, one after the other."""

    def __init__(self, senses: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        """`senses`: a sentence to the words in it whose sense is known, each with its sense."""
        self._senses = senses
        self._sentences: list[str] = []
        self._places: list[Place] = []
        self._vectors: list[NDArray[np.float16]] = []  # [first or last, word, dim]

    def add(self, trace: Trace) -> None:
        """Add the words of a trace's sentences."""
        words, before = words_of(trace.sentences), len(self._sentences)
        self._sentences += [sentence.text for sentence in trace.sentences]
        for word in words:
            known = self._senses.get(trace.sentences[word.sentence].text, ())
            sense = next((sense for name, sense in known if are_forms(name, word.text)), "")
            self._places.append(Place(before + word.sentence, word.text, word.start, word.end, sense))
        if words:
            vectors = word_vectors(trace, [(word.sentence, word.positions) for word in words])[[0, -1]]
            self._vectors.append(unit(vectors).astype(np.float16))

    def store(self) -> WordStore:
        """What was collected. Raises ValueError if it has no word."""
        if not self._vectors:
            raise ValueError("the sentences have no word")
        first, last = np.concatenate(self._vectors, axis=1)
        return WordStore(tuple(self._sentences), tuple(self._places), first, last)
