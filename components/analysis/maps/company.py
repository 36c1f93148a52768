"""Among which tokens a token stands, counted in all dimensions: never on a map.

`company` asks the nearest tokens of a word's occurrences how many of them are occurrences of the same word: all of them, and
the occurrences stand together; none, and they stand apart. `shares_alike` asks the same of all tokens, with any property in
the place of the word (the sentence, the word). By cosine. What is as near as the last of the nearest, to within rounding,
counts for the part of it that still has room: at layer 0 equal words without positions have equal vectors.

What it does not show: why. Tokens of one sentence have read each other, and a word that occurs in every sentence has as many
chances to be near as there are sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import unit

NEAREST = 3
EXAMINED = 300  # tokens of a large set that are asked
_TIE = 1e-5  # cosines this close count as equal


@dataclass(frozen=True)
class Company:
    """How many of the nearest tokens of a word's occurrences are occurrences of the same word."""

    own: float  # out of `asked`; ties count for a part
    asked: int  # occurrences that are asked × nearest tokens of each
    sampled: int | None = None  # how many occurrences are asked, where not all are

    @property
    def share(self) -> float:
        return self.own / self.asked if self.asked else float("nan")


def company(vectors: NDArray[Any], rows: Sequence[int], most: int = NEAREST, seed: int = 0) -> Company:
    """The company of the occurrences at `rows` among all tokens [token, dim]; each is asked about as many nearest tokens as
    there are other occurrences, at most `most`. Of more than EXAMINED occurrences a seeded sample is asked, about all."""
    nearest = min(most, len(rows) - 1)
    if nearest < 1:
        return Company(0.0, 0)
    labels = np.zeros(len(vectors), bool)
    labels[list(rows)] = True
    asked = np.asarray(rows)
    if len(rows) > EXAMINED:
        asked = np.sort(np.random.default_rng(seed).choice(asked, EXAMINED, replace=False))
    own = float(_counted(vectors, asked, labels[None], nearest).sum())
    return Company(own, nearest * len(asked), len(asked) if len(asked) < len(rows) else None)


def shares_alike(vectors: NDArray[Any], labels: Sequence[object], nearest: int = NEAREST, seed: int = 0) -> float:
    """The share of all tokens' nearest tokens that have the same label, 0..1; of many tokens a seeded sample is asked.

    NaN for a single token.
    """
    count = len(vectors)
    nearest = min(nearest, count - 1)
    if nearest < 1:
        return float("nan")
    rows = np.arange(count)
    if count > EXAMINED * 4:
        rows = np.sort(np.random.default_rng(seed).choice(count, EXAMINED, replace=False))
    _, numbers = np.unique(np.asarray([str(label) for label in labels]), return_inverse=True)
    alike = numbers[rows][:, None] == numbers[None]
    return float(_counted(vectors, rows, alike, nearest).mean() / nearest)


def _counted(vectors: NDArray[Any], rows: NDArray[Any], alike: NDArray[Any], nearest: int) -> NDArray[Any]:
    """How many of the nearest others of each row are alike, float64 [row]; `alike` is [row, token], or [1, token] for all."""
    directions = unit(np.asarray(vectors, np.float32))  # rounding stays far below _TIE, and a corpus has 50,000 tokens
    cosines = directions[rows] @ directions.T
    cosines[np.arange(len(rows)), rows] = -np.inf
    last = np.partition(cosines, -nearest, axis=1)[:, [-nearest]]  # the cosine of the last of the nearest
    nearer, tied = cosines > last + _TIE, np.abs(cosines - last) <= _TIE
    room = nearest - nearer.sum(axis=1)
    return np.asarray((nearer & alike).sum(axis=1) + room * (tied & alike).sum(axis=1) / tied.sum(axis=1))
