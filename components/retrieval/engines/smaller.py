"""Smaller vectors in plain numpy: half the bytes (float16), a quarter (int8), one bit per number, or the first numbers only.

Every sentence is compared, but by its smaller vector; the best ones are then ordered by their true scores. Queries keep
their float32 numbers, except where bits are compared with bits.

- float16: 11 significant bits of each number.
- int8: each vector is divided by its own largest number and rounded to -127..127; one float32 per vector keeps the scale.
- bits: whether each number is above 0. The Hamming distance counts the signs that differ; of random directions, its mean
  grows with the angle between them (Charikar, STOC 2002). It says nothing of lengths.
- first: the first d of a vector's numbers. Only models trained so that these suffice keep most hits (Matryoshka
  representation learning, arXiv:2205.13147); in other models no number is more important for being first.

`rescored` times k candidates are taken by the smaller vectors and ordered by the stored ones: more are found, and the stored
vectors of so many sentences are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.errors import InputError
from components.retrieval.engines.contract import EngineFacts, StoredVectors, checked_queries, settle
from components.retrieval.search.exact import ExactSearch, checked_product, not_finite, top

if TYPE_CHECKING:
    from components.arrays import Float32
    from components.retrieval.search.exact import Hits, Similarity

Way = Literal["float16", "int8", "bits", "first"]
WAYS: tuple[Way, ...] = get_args(Way)
_CELLS = 1 << 22  # scores of several queries computed together: 16 MB
_BLOCK_ROWS = 16_384  # vectors converted together to float32


@dataclass(frozen=True)
class Smaller:
    """How vectors are made smaller. Raises InputError for other ways and numbers."""

    way: Way
    dims: int | None = None  # how many of the first numbers are kept; only for "first"
    rescored: int = 1  # so many times k candidates are compared again with the stored vectors

    def __post_init__(self) -> None:
        has_dims = self.dims is not None and self.dims >= 1
        if self.way not in WAYS or self.rescored < 1 or has_dims != (self.way == "first"):
            raise InputError(
                f"Vectors cannot be made smaller by {self}.",
                f"The ways are {', '.join(WAYS)}; “first” needs a number of dimensions, the others have none.",
                "Choose one of these.",
            )


class SmallerEngine:
    """All sentences compared by smaller vectors, and the best of them ordered by the stored ones."""

    def __init__(self, stored: StoredVectors, smaller: Smaller) -> None:
        """Raises InputError for more dimensions than there are, and for values that are not finite."""
        self._stored, self._exact, self._smaller = stored, stored.exact, smaller
        if not np.isfinite(stored.exact.norms).all():
            raise not_finite()
        if smaller.dims is not None and smaller.dims > stored.dim:
            raise InputError(
                f"{smaller.dims} numbers cannot be kept.", f"The vectors have {stored.dim}.", "Choose fewer."
            )
        vectors, self._scales = stored.exact.vectors, None
        self._part: ExactSearch | None = None  # of float16 and of the first numbers
        self._kept: NDArray[np.int8] | NDArray[np.uint8] | None = None  # of int8 and bits
        if smaller.way == "float16":
            with np.errstate(over="ignore"):
                half = np.asarray(vectors, np.float16)
            if not np.isfinite(half).all():
                raise InputError(
                    "Some numbers of these vectors are too large for float16.",
                    "It ends at 65,504.",
                    "Choose another way.",
                )
            self._part = ExactSearch(half)
        elif smaller.way == "first":
            self._part = ExactSearch(np.ascontiguousarray(vectors[:, : smaller.dims]))
        elif smaller.way == "bits":
            self._kept = _bits(vectors)
        else:
            self._kept, self._scales = _int8(vectors)

    @property
    def facts(self) -> EngineFacts:
        kept = self._part.vectors if self._part is not None else self._kept
        assert kept is not None
        nbytes = kept.nbytes + (0 if self._scales is None else self._scales.nbytes)
        if self._smaller.way == "bits":
            nbytes = len(kept) * -(-self._stored.dim // 8)  # without what fills the last of eight bytes
        settings: dict[str, str | int | float] = {"way": self._smaller.way, "rescored": self._smaller.rescored}
        if self._smaller.dims is not None:
            settings["dims"] = self._smaller.dims
        return EngineFacts("smaller", False, int(nbytes), settings)

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        queries = checked_queries(queries, self._stored.dim, k)
        similarity = checked_product(similarity, "Search by smaller vectors")
        count = k * self._smaller.rescored
        step = max(1, _CELLS // max(1, len(self._stored)))
        found = [
            top(scores, count)
            for start in range(0, len(queries), step)
            for scores in self._scores(queries[start : start + step], similarity)
        ]
        return settle(self._exact, queries, found, k, similarity)

    def _scores(self, queries: Float32, similarity: Similarity) -> Float32:
        """Every sentence's score by its smaller vector for queries [query, dim], float32 [query, sentence].

        The queries' own lengths are left out: they change no order.
        """
        if self._smaller.way == "bits":
            return np.stack([self._equal_signs(asked) for asked in _bits(queries)])
        kept = self._part.vectors if self._part is not None else self._kept
        assert kept is not None
        asked = queries[:, : kept.shape[1]]
        products = np.empty((len(queries), len(kept)), np.float32)
        for start in range(0, len(kept), _BLOCK_ROWS):
            products[:, start : start + _BLOCK_ROWS] = (
                asked @ kept[start : start + _BLOCK_ROWS].astype(np.float32, copy=False).T
            )
        if self._scales is not None:
            products *= self._scales
        if similarity == "cosine":
            norms = self._exact.norms if self._part is None else self._part.norms
            products /= np.where(norms == 0, 1, norms)
        return products

    def _equal_signs(self, asked: NDArray[np.uint8]) -> Float32:
        """How many signs do not differ from a query's, less a constant, float32 [sentence]."""
        assert self._kept is not None
        differing = np.bitwise_count(self._kept.view(np.uint64) ^ asked.view(np.uint64)).sum(axis=1, dtype=np.int64)
        return -differing.astype(np.float32)


def _bits(vectors: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The signs of numbers [sentence, dim] as bits, filled up to whole groups of 64, uint8 [sentence, byte]."""
    packed = np.packbits(np.asarray(vectors) > 0, axis=1)
    return np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))))


def _int8(vectors: NDArray[np.floating]) -> tuple[NDArray[np.int8], Float32]:
    """Vectors [sentence, dim] as int8, and the scale of each, float32 [sentence]; a zero vector's scale is 0."""
    kept = np.empty(vectors.shape, np.int8)
    scales = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        wide = np.asarray(vectors[rows], np.float32)
        scales[rows] = np.abs(wide).max(axis=1, initial=0) / np.float32(127)
        kept[rows] = np.rint(wide / np.where(scales[rows] == 0, 1, scales[rows])[:, None])
    return kept, scales
