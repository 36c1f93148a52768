"""The words of many sentences with their vectors at every layer, and the nearest ones to a word.

Nearest by cosine. A sentence counts once, by its nearest word, and never the sentence itself: a list of five words of one
sentence says less than five sentences.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from components.analysis.first_look.words import words_of
from components.analysis.matched_words import word_vectors
from components.analysis.similarity import baseline
from components.arrays import Float64, read_only, unit
from components.model.trace import Trace
from components.words.forms import are_forms

if TYPE_CHECKING:
    from typing import Self

NEAREST = 5
BY_CHANCE = 99.5  # per cent of the pairs of unrelated words that are less near
TIE = 1e-3  # cosines this close are equal: vectors are kept in float16
FIRST_SORTED = 64  # words that are looked through before all are sorted


@dataclass(frozen=True)
class WordPlace:
    """A word in one of the sentences."""

    sentence: int
    text: str
    start: int  # characters
    end: int
    sense: str = ""  # where it is known


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A word that is near."""

    place: WordPlace
    sentence: str
    cosine: float


@dataclass(frozen=True, eq=False)
class WordStore:
    """The words of many sentences."""

    sentences: tuple[str, ...]
    places: tuple[WordPlace, ...]  # [word]
    layers: tuple[NDArray[np.float16], ...]  # of each layer the directions [word, dim], in memory or in a file

    @cached_property
    def unrelated(self) -> Float64:
        """What the cosine of one in 200 pairs of unrelated words exceeds, float64 [layer]; NaN where there is no pair.

        Unrelated: of different forms and from different sentences, drawn as for the baseline of tokens. Among thousands of
        words some are as near as this to any vector.
        """
        try:
            first, second = baseline.draw_pairs(
                [place.text.lower() for place in self.places],
                [place.sentence for place in self.places],
                baseline.PAIRS,
                baseline.SEED,
            )
        except ValueError:
            return read_only(np.full(len(self.layers), np.nan))
        cosines = [(layer[first].astype(np.float32) * layer[second]).sum(axis=1) for layer in self.layers]
        return read_only(np.percentile(cosines, BY_CHANCE, axis=1))

    @property
    def nbytes(self) -> int:
        """Their size in memory, without the texts, and without what is in files: the system keeps what it has room for."""
        return sum(layer.nbytes for layer in self.layers if not isinstance(layer, np.memmap))

    def nearest(self, vectors: np.ndarray, own: Sequence[str], layer: int = -1) -> tuple[tuple[Neighbour, ...], ...]:
        """For each of some vectors [word, dim] of a layer its NEAREST words there, nearest first; -1 is the last layer.

        `own` is the sentence of each vector, which is left out. Words as near as the last of them, to within TIE, are among
        them too: before the first block a word's vectors may differ by their positions alone.
        """
        stored = self.layers[layer].astype(np.float32)
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
    """Collects the words of traces, one after the other; use it as a context, so that its files are closed."""

    def __init__(self, senses: Mapping[str, Sequence[tuple[str, str]]], folder: Path | None = None) -> None:
        """`senses`: a sentence to the words in it whose sense is known, each with its sense.

        With a `folder` the vectors are written to files of it, one for each layer, which have no name: their space is free
        once nothing uses the store. Without one they are kept in memory.
        """
        self._senses, self._folder = senses, folder
        self._sentences: list[str] = []
        self._places: list[WordPlace] = []
        self._parts: list[list[NDArray[np.float16]]] = []  # of each layer, without a folder
        self._files: list[IO[bytes]] = []  # of each layer, with one
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, trace: Trace) -> None:
        """Add the words of a trace's sentences. Raises OSError if they cannot be written."""
        words, before = words_of(trace.sentences), len(self._sentences)
        self._sentences += [sentence.text for sentence in trace.sentences]
        for word in words:
            known = self._senses.get(trace.sentences[word.sentence].text, ())
            sense = next((sense for name, sense in known if are_forms(name, word.text)), "")
            self._places.append(WordPlace(before + word.sentence, word.text, word.start, word.end, sense))
        if words:
            vectors = word_vectors(trace, [(word.sentence, word.positions) for word in words])
            for layer, directions in enumerate(unit(vectors).astype(np.float16)):
                self._keep(layer, directions)

    def _keep(self, layer: int, directions: NDArray[np.float16]) -> None:
        if self._folder is None:
            while len(self._parts) <= layer:
                self._parts.append([])
            self._parts[layer].append(directions)
            return
        while len(self._files) <= layer:
            self._files.append(self._open.enter_context(tempfile.TemporaryFile(dir=self._folder)))  # noqa: SIM115
        self._files[layer].write(np.ascontiguousarray(directions).tobytes())

    def store(self) -> WordStore:
        """What was collected. Raises ValueError if it has no word, OSError if the rest cannot be written."""
        if not self._parts and not self._files:
            raise ValueError("the sentences have no word")
        layers: list[NDArray[np.float16]] = [np.concatenate(parts) for parts in self._parts]
        for file in self._files:
            file.flush()
            layers.append(np.memmap(file, np.float16, "r").reshape(len(self._places), -1))
        return WordStore(tuple(self._sentences), tuple(self._places), tuple(layers))
