"""From packages to what a model trains on: units of text with their weights, without anything that it is measured with.

A unit of training text is left out if it has eight words in a row in common with a sentence that the model is measured with, or
with a text of this project that people read: README, docs, lessons, Start and the demonstration texts. A whole sentence of four
to seven words counts as well.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64
from components.errors import InputError
from components.folders import ASSETS
from components.training.masked_words import sources, wordnet
from components.training.masked_words.sources import WeightedText
from components.training.masked_words.wordnet import MASK, MaskedSentence, WordNet

IN_A_ROW, LEAST_IN_A_ROW = 8, 4  # words
PIECES = 126  # of a unit: 128 with [CLS] and [SEP]
TOKENISED_AT_ONCE = 20_000  # units
RUNNING_SENTENCES = 2_000  # of another source, to measure with
RUNNING_WORDS = range(8, 41)  # of such a sentence
LEAST_PLAIN = 0.85  # share of characters that are plain English
TEXT_SEED = 7  # which synsets are held out and which words are masked: the same for every training
CLASSROOM = ASSETS / "guesses" / "classroom.json"
log = logging.getLogger(__name__)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower())


class Forbidden:
    """Rows of words that must not stand in the training text."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._rows: set[tuple[str, ...]] = set()
        self._lengths = {IN_A_ROW}
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Forbid every row of eight words of a text; a text of four to seven words as a whole."""
        found = words(text)
        length = min(len(found), IN_A_ROW)
        if length >= LEAST_IN_A_ROW:
            self._lengths.add(length)
            self._rows.update(_rows(found, length))

    def is_in(self, text: str) -> bool:
        """Whether a text has one of them."""
        found = words(text)
        return any(row in self._rows for length in self._lengths for row in _rows(found, length))


def _rows(found: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(found[start : start + length]) for start in range(len(found) - length + 1))


def project_texts() -> Iterator[str]:
    """Every line of what people read in this project, its demonstration texts and examples."""
    root = ASSETS.parent
    files = [root / "README.md", *(root / "docs").glob("*.md"), *(ASSETS / "lessons").glob("*.md")]
    files += [path for ending in ("txt", "json", "jsonl") for path in ASSETS.glob(f"*.{ending}")]
    for path in sorted(files):
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()


@dataclass(frozen=True)
class SourceUnits:
    """What one source gives."""

    source: WeightedText
    units: tuple[str, ...]
    left_out: int  # units with forbidden rows of words

    @property
    def words(self) -> int:
        return sum(len(unit.split()) for unit in self.units)


@dataclass(frozen=True)
class Material:
    """All text to train on, and what is measured with: the name of each set and its sentences."""

    parts: tuple[SourceUnits, ...]
    measured: Mapping[str, tuple[MaskedSentence, ...]]

    def card(self) -> list[dict[str, Any]]:
        """The sources as the card names them."""
        return [
            {
                "name": part.source.name,
                "package": part.source.package,
                "licence": part.source.licence,
                "words": part.words,
                "weight": part.source.weight,
            }
            for part in self.parts
        ]


def read_masked(path: Path) -> dict[str, list[MaskedSentence]]:
    """Sentences with one [MASK] from a JSON list of {"sentence", "answers"}; "set" groups them, else the file's name does.

    Raises InputError for a file that is none.
    """
    found: dict[str, list[MaskedSentence]] = {}
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        for row in rows:
            if row["sentence"].count(MASK) != 1 or not row["answers"]:
                raise ValueError(row["sentence"])
            name = f"class {row['set']}" if "set" in row else path.stem
            sentence: MaskedSentence = {"sentence": row["sentence"], "answers": list(row["answers"])}
            found.setdefault(name, []).append(sentence)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
        raise InputError(
            f"{path} cannot be used: {problem}.",
            f'It must be a JSON list of {{"sentence", "answers"}}, each sentence with one {MASK}.',
            "Correct the file.",
        ) from problem
    return found


def gather(
    packages: Path,
    vocabulary: frozenset[str],
    running_text: Path | None = None,
    classroom: Sequence[Path] = (CLASSROOM,),
) -> Material:
    """Read all sources that are there, and the sentences to measure with. What is missing is named in one line of the log.

    `vocabulary` has the model's pieces. Raises InputError for files that cannot be used, or without any text.
    """
    rng = random.Random(TEXT_SEED)
    measured: dict[str, list[MaskedSentence]] = {}
    texts: dict[str, Iterable[str]] = {}
    dictionary = _dictionary(packages / sources.WORDNET_PACKAGE)
    if dictionary is not None:
        held_out, glosses = wordnet.hold_out(dictionary, vocabulary, rng)
        texts |= _wordnet_texts(dictionary, held_out, rng)
        if running_text is not None:
            measured["news"] = _running(running_text, dictionary, vocabulary, rng)
        measured["gloss"] = glosses
    elif running_text is not None:
        log.warning("%s is left out: its nouns, verbs, adjectives and adverbs are found by WordNet.", running_text)
    for path in classroom:
        measured |= read_masked(path)
    texts |= {source.name: read for source, read in _readers(packages)}
    forbidden = Forbidden(project_texts())
    for row in (row for rows in measured.values() for row in rows):
        for answer in row["answers"]:
            forbidden.add(row["sentence"].replace(MASK, answer))
    parts = tuple(_parts(texts, forbidden))
    if not any(part.units for part in parts):
        raise InputError(
            f"{packages} has no text to train on.",
            f"It must have folders named {sources.WORDNET_PACKAGE}, {sources.TEXT_SOURCES[0].package} and so on.",
            "Unpack each package into a folder of its own: dpkg -x PACKAGE.deb PACKAGES/NAME",
        )
    return Material(parts, {name: tuple(rows) for name, rows in measured.items()})


def _dictionary(folder: Path) -> WordNet | None:
    places = sorted(path.parent for path in folder.rglob("data.noun"))
    if not places:
        _say_missing(sources.WORDNET_PACKAGE, "WordNet, and what is measured by it,")
        return None
    return wordnet.read_wordnet(places[0])


def _say_missing(package: str, names: str) -> None:
    log.warning("The package %s is missing: %s will be left out.", package, names)


def _wordnet_texts(
    dictionary: WordNet, held_out: frozenset[wordnet.SynsetKey], rng: random.Random
) -> dict[str, Iterable[str]]:
    found: dict[str, list[str]] = {source.name: [] for source in sources.WORDNET_SOURCES}
    for kind, sentence in wordnet.sentences_of(dictionary, held_out, rng):
        found[kind].append(sentence)
    return dict(found)


def _readers(packages: Path) -> Iterator[tuple[WeightedText, Iterable[str]]]:
    """Every other source that is there, and its units."""
    for source in sources.TEXT_SOURCES:
        try:
            yield source, list(source.read(packages / source.package))
        except FileNotFoundError:
            _say_missing(source.package, source.name)
    if sources.OWN_TEXTS.is_file():
        yield sources.OWN, sources.read_own_texts(sources.OWN_TEXTS)


def _running(path: Path, dictionary: WordNet, vocabulary: frozenset[str], rng: random.Random) -> list[MaskedSentence]:
    """Sentences of another source, one a line, each with a content word masked, in random order. Raises InputError."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(
            f"{path} cannot be read: {problem}.", "It must be a text in UTF-8, one sentence a line.", "Check the file."
        ) from problem
    rng.shuffle(lines)
    found: list[MaskedSentence] = []
    for line in lines:
        if len(found) == RUNNING_SENTENCES:
            break
        if len(line.split()) in RUNNING_WORDS:
            masked = wordnet.mask_a_word(line, dictionary, vocabulary, rng)
            if masked is not None:
                found.append(masked)
    return found


def _parts(texts: Mapping[str, Iterable[str]], forbidden: Forbidden) -> Iterator[SourceUnits]:
    """The units of each source, cleaned, each text once, without forbidden rows of words."""
    seen: set[str] = set()
    for source in sources.SOURCES:
        kept, counts = [], Counter[str]()
        for text in map(sources.clean, texts.get(source.name, ())):
            if text and text not in seen and is_plain(text):
                seen.add(text)
                if forbidden.is_in(text):
                    counts["left out"] += 1
                else:
                    kept.append(text)
        if source.name in texts:
            yield SourceUnits(source, tuple(kept), counts["left out"])


def is_plain(text: str) -> bool:
    """Whether a text is almost all letters, spaces and common punctuation: no tables, no code."""
    plain = sum(character.isascii() and (character.isalpha() or character in " ,.;:'\"!?-") for character in text)
    return plain >= LEAST_PLAIN * len(text)


@dataclass(frozen=True, eq=False)
class Units:
    """Tokenised units, one behind the other: unit u has pieces[starts[u] : starts[u + 1]]."""

    pieces: NDArray[np.int32]  # [piece]
    starts: Int64  # [unit + 1]
    weights: Float32  # [unit], how often each is drawn in one pass, on average

    def __len__(self) -> int:
        return len(self.weights)

    def lengths(self) -> Int64:
        """Pieces of each unit, int64 [unit]."""
        return np.diff(self.starts)

    def counts(self, vocabulary_size: int) -> Float64:
        """How often each piece stands in one pass, on average, float64 [vocabulary]."""
        counts = np.bincount(self.pieces, np.repeat(self.weights, self.lengths()), vocabulary_size)
        return counts.astype(np.float64)

    def digest(self) -> str:
        """What identifies the texts and their weights: the first 16 digits of a SHA-256."""
        found = hashlib.sha256()
        for array in (self.pieces, self.starts, self.weights):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:16]


def tokenise(parts: Sequence[SourceUnits], tokenizer: Any) -> Units:
    """Units as pieces without [CLS] and [SEP], cut to 126. `tokenizer` (of the tokenizers library) cuts nothing itself."""
    pieces: list[int] = []
    lengths: list[int] = []
    for part in parts:
        for start in range(0, len(part.units), TOKENISED_AT_ONCE):
            texts = list(part.units[start : start + TOKENISED_AT_ONCE])
            for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
                pieces.extend(encoding.ids[:PIECES])
                lengths.append(len(encoding.ids[:PIECES]))
    weights = np.repeat([part.source.weight for part in parts], [len(part.units) for part in parts])
    return Units(np.array(pieces, np.int32), np.concatenate([[0], np.cumsum(lengths)]), weights.astype(np.float32))
