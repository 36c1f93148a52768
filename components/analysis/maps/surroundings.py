"""Which other tokens stand nearest to a word's occurrences, and whether these move apart: in all dimensions, never on a map.

The occurrences themselves do not count among the nearest: at layer 0 they lie on one place, and what surrounds them there is
what the word is like by itself; after some blocks it is what their sentences have made of it. By cosine. A tie counts against
the occurrence's own sentence: at layer 0 all [CLS] have one vector, and none of them is nearer than the others.

What it does not show: why. Tokens of one sentence have read each other; of longer sentences more tokens can be near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64, unit

NEAREST = 3
_TIE = 1e-5  # cosines this close count as equal


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The nearest other tokens of a word's occurrences at one layer."""

    nearest: Int64  # [occurrence, k] rows of all tokens, the nearest first
    own_of_each: tuple[int, ...]  # how many of an occurrence's are from its own sentence
    cosine: float  # of two different occurrences, on average; NaN of a single one

    @property
    def own(self) -> int:
        """How many of all are from the occurrence's own sentence."""
        return sum(self.own_of_each)

    @property
    def asked(self) -> int:
        return int(self.nearest.size)


def surroundings(
    vectors: NDArray[Any],
    rows: Sequence[int],
    sentences: Sequence[int],
    same: Sequence[int] = (),
    most: int = NEAREST,
) -> Surroundings:
    """The surroundings of the occurrences at `rows` among all tokens [token, dim]; `sentences` are the tokens' own.

    The tokens at `same`, such as the other pieces of the word, are left out too. Each occurrence has `most` nearest tokens,
    fewer where there are no more.
    """
    directions = unit(np.asarray(vectors, np.float64))
    left_out = np.zeros(len(directions), bool)
    left_out[[*rows, *same]] = True
    others = np.flatnonzero(~left_out)
    numbers, chosen = np.asarray(sentences), list(rows)
    nearest = np.zeros((len(chosen), min(most, len(others))), np.int64)
    own: list[int] = []
    for number, row in enumerate(chosen):
        cosines = directions[others] @ directions[row]
        is_own = numbers[others] == numbers[row]
        # Of equal cosines those of other sentences come first.
        found = others[np.lexsort((others, is_own, -np.round(cosines / _TIE)))][: nearest.shape[1]]
        nearest[number] = found
        own.append(int((numbers[found] == numbers[row]).sum()))
    between = directions[chosen] @ directions[chosen].T
    pairs = between[np.triu_indices(len(chosen), 1)]
    return Surroundings(nearest, tuple(own), float(pairs.mean()) if len(pairs) else float("nan"))
