"""What a model is trained on: rows of texts, with or without labels, and a held-out part that shares no text with the rest.

Kinds of rows, and the columns of each:
- sentences: sentence
- pairs: anchor (a query), positive (its correct answer)
- triplets: anchor, positive, negative (a wrong answer)
- scored: sentence1, sentence2, and a score as label
- labelled: sentence1, sentence2, and a class as label

Nothing is dropped silently: rows that cannot be used are counted by reason, those with "no gold label" among them (-1 in
SNLI, where annotators did not agree).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from components.arrays import Float32, Int64, read_only
from components.retrieval.corpora.texts import hash_of

DataKind = Literal["sentences", "pairs", "triplets", "scored", "labelled"]
KINDS: tuple[DataKind, ...] = get_args(DataKind)
COLUMNS: Mapping[DataKind, tuple[str, ...]] = {
    "sentences": ("sentence",),
    "pairs": ("anchor", "positive"),
    "triplets": ("anchor", "positive", "negative"),
    "scored": ("sentence1", "sentence2"),
    "labelled": ("sentence1", "sentence2"),
}


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows of one kind. columns[name][i] and labels[i] belong to row i."""

    kind: DataKind
    name: str
    columns: Mapping[str, tuple[str, ...]]  # those of COLUMNS[kind], in that order
    labels: Float32 | Int64 | None = None  # float32 [row] scores from 0 to 1, or int64 [row] numbers of classes
    label_names: tuple[str, ...] = ()  # of the classes
    dropped: Mapping[str, int] = field(default_factory=dict)  # rows that could not be used: reason to number
    read_from: Mapping[str, str] = field(default_factory=dict)  # our column (or "label") to the file's
    warnings: tuple[str, ...] = ()  # what looks wrong but may be meant, each a sentence

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def sha256(self) -> str:
        """Of kind, texts and labels, with their number and order."""
        digest = hashlib.sha256(f"{self.kind} {','.join(self.columns)} {','.join(self.label_names)}".encode())
        for texts in self.columns.values():
            digest.update(hash_of(texts).encode())
        if self.labels is not None:
            digest.update(np.ascontiguousarray(self.labels).tobytes())
        return digest.hexdigest()

    def take(self, rows: Int64 | Sequence[int]) -> TrainingData:
        """These rows, in this order."""
        numbers = np.asarray(rows, np.int64)
        columns = {name: tuple(texts[number] for number in numbers) for name, texts in self.columns.items()}
        labels = None if self.labels is None else read_only(self.labels[numbers])
        return TrainingData(self.kind, self.name, columns, labels, self.label_names, self.dropped, self.read_from)


@dataclass(frozen=True, eq=False)
class Split:
    """Which rows are trained on, and which are held out. No text is in both."""

    train: Int64  # numbers of rows, read-only
    held_out: Int64
    groups: int  # sets of rows that share texts, directly or by way of others: each is on one side as a whole
    overlap: int = 0  # texts that are on both sides, counted after the split
