"""Sentences with an ambiguous word and the sense it has there: columns word, sense, sentence, and perhaps index.

`index` is the number of the word meant, counted from 0 between spaces, as in word-in-context data; without it the first
occurrence of the word is meant. The sentence must contain the word as it is written in its column, in upper or lower
case: inflected forms are other words here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from components.errors import InputError
from components.jobs import IsStopped
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.readers.limits import never

_INDEX = re.compile(r"\d{1,9}")  # int() refuses texts of some thousand digits
COLUMNS = ("word", "sense", "sentence")


@dataclass(frozen=True)
class SenseRow:
    """One labelled sentence."""

    word: str
    sense: str
    sentence: str
    index: int | None = None


@dataclass(frozen=True)
class SenseFile:
    """The rows of a file that can be used, and how many cannot."""

    rows: tuple[SenseRow, ...]
    bad_rows: int
    content_hash: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in lower case, in the order of the file."""
        return tuple(dict.fromkeys(row.word.casefold() for row in self.rows))

    def of(self, word: str) -> tuple[SenseRow, ...]:
        """The rows of one word."""
        return tuple(row for row in self.rows if row.word.casefold() == word.casefold())


def read_senses(source: Path | bytes, name: str, is_stopped: IsStopped = never) -> SenseFile:
    """Read a file in any format of a corpus. Raises InputError where a column is missing, and Stopped."""
    corpus = read_corpus(source, name, "sentence", is_stopped=is_stopped)
    missing = [column for column in ("word", "sense") if column not in corpus.columns]
    if missing:
        raise InputError(
            f"{name} has no column {' and no column '.join(missing)}.",
            f"The columns {', '.join(COLUMNS)} are needed; a column index is optional.",
            "Rename its columns, or choose another file.",
        )
    rows, bad = [], corpus.report.bad_count
    indexes = corpus.columns.get("index", ("",) * len(corpus))
    for sentence, word, sense, index in zip(
        corpus.texts, corpus.columns["word"], corpus.columns["sense"], indexes, strict=True
    ):
        number = index.strip().removesuffix(".0")  # tables with gaps turn whole numbers into fractions
        if not word.strip() or not sense.strip() or (number and _INDEX.fullmatch(number) is None):
            bad += 1
            continue
        rows.append(SenseRow(word.strip(), sense.strip(), sentence, int(number) if number else None))
    if not rows:
        raise InputError(
            f"{name} has no row with a word, a sense and a sentence.",
            "At least one such row is needed.",
            "Check the columns of the file.",
        )
    return SenseFile(tuple(rows), bad, corpus.content_hash)


def meant_occurrences(
    rows: Sequence[SenseRow], occurrences: Sequence[tuple[int, int, int]]
) -> tuple[list[int], list[int]]:
    """The occurrences (row, first character, last + 1) that are meant, by number, and the rows without an occurrence."""
    by_row: dict[int, list[int]] = {}
    for occurrence, (owner, _, _) in enumerate(occurrences):
        by_row.setdefault(owner, []).append(occurrence)
    chosen, missing = [], []
    for number, row in enumerate(rows):
        candidates = sorted(by_row.get(number, ()), key=lambda occurrence: occurrences[occurrence][1])
        if row.index is not None:
            words = [match.span() for match in re.finditer(r"\S+", row.sentence)]
            start, end = words[row.index] if row.index < len(words) else (-1, -1)
            candidates = [
                occurrence
                for occurrence in candidates
                if start <= occurrences[occurrence][1] and occurrences[occurrence][2] <= end
            ]
        if candidates:
            chosen.append(candidates[0])
        else:
            missing.append(number)
    return chosen, missing
