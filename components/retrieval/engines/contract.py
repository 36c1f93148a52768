"""What every engine is: something that finds the k nearest vectors, and says of itself what it holds and how it was set.

An approximate engine only finds candidates. Their scores are computed again from the vectors of the index, in float64, by
the same code as in `ExactSearch`: two engines therefore never disagree about a score, only about which sentences they find.

A vector that stands in the corpus often (a text such as "[deleted]", thousands of times) is kept once by an approximate engine:
in a graph the neighbours of its copies would be each other alone, so that no walk could leave them, and nothing else be found.

Ties are counted as far as an engine looked. An exact one compares every sentence; an approximate one knows only its
candidates, so that `Hits.tied` is a lower bound there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Int64, read_only, unit
from components.errors import InputError
from components.retrieval.search.exact import ExactSearch, Hits, Similarity, not_finite

if TYPE_CHECKING:
    from components.model.trace import Pooling
    from components.retrieval.index.folder import VectorIndex

EngineName = Literal["exact", "usearch", "milvus"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
FEW_COPIES = 8  # of one vector: half of the links of each vector in a graph, which still lead elsewhere
MOST_COPIES = 4_096  # of one vector that are scored for a query: they have one score
_BLOCK_ROWS = 4_096  # vectors compared together


@dataclass(frozen=True)
class EngineFacts:
    """What an engine says of itself."""

    name: str
    exact: bool  # whether it compares every sentence
    nbytes: int  # of what it searches, in memory or in its file; not the vectors of the index, from which scores are computed
    settings: Mapping[str, str | int | float]
    note: str = ""  # a sentence on how it came to be, where a person should know it

    def per_vector(self, count: int) -> float:
        """Bytes for each of `count` vectors."""
        return self.nbytes / max(1, count)


class Engine(Protocol):
    """Finds the nearest vectors."""

    @property
    def facts(self) -> EngineFacts: ...

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        """The k best sentences for each query [query, dim], or all if there are fewer, best first.

        Scores are the true cosines or dot products. Raises InputError for k < 1, for values that are not finite, and for a
        similarity that the engine was not built for.
        """
        ...


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """The vectors of one layer and pooling of an index, and what names them."""

    exact: ExactSearch
    identity: str  # hexadecimal digits, different for other vectors
    folder: Path  # of the index
    stem: str  # of the names of files that belong to these vectors: layer-06-mean

    @classmethod
    def of_index(cls, index: VectorIndex, layer: int, pooling: Pooling) -> StoredVectors:
        """Those of an index. Raises InputError for a layer and pooling that is not stored."""
        from components.retrieval.index.checksums import sample_of
        from components.retrieval.index.folder import vector_file

        exact, name = index.engine(layer, pooling), vector_file(layer, pooling)
        content = [index.info.identity, name, list(exact.vectors.shape), sample_of(index.folder / name)]
        identity = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        return cls(exact, identity, index.folder, name.removesuffix(".npy"))

    @classmethod
    def of_vectors(cls, vectors: NDArray[np.floating]) -> StoredVectors:
        """Vectors [sentence, dim] of no index: only for engines in memory."""
        return cls.of_search(ExactSearch(vectors))

    @classmethod
    def of_search(cls, exact: ExactSearch) -> StoredVectors:
        """The vectors that a search has, with their lengths: only for engines in memory."""
        return cls(exact, "", Path(), "")

    def __len__(self) -> int:
        return len(self.exact.vectors)

    @property
    def dim(self) -> int:
        return int(self.exact.vectors.shape[1])

    @cached_property
    def different(self) -> DifferentVectors:
        """The vectors, those that stand often once. All are read for it."""
        return DifferentVectors.of(self.exact.vectors)


@dataclass(frozen=True, eq=False)
class DifferentVectors:
    """Some vectors, of which those that stand more than FEW_COPIES times count once, and where each stands."""

    firsts: Int64  # [different]: the number of the first vector that is equal, ascending
    rows: Int64  # [vector]: the numbers of all, those of one together and ascending
    starts: Int64  # [different + 1]: where those of each begin

    @classmethod
    def of(cls, vectors: NDArray[np.floating], few: int = FEW_COPIES) -> DifferentVectors:
        """Of vectors [vector, dim]; up to `few` equal ones stay different."""
        sums = np.empty(len(vectors), np.uint64)
        factors = _factors(vectors.shape[1])
        for start in range(0, len(vectors), _BLOCK_ROWS):
            block = np.ascontiguousarray(vectors[start : start + _BLOCK_ROWS])
            sums[start : start + len(block)] = block.view(f"u{block.itemsize}").astype(np.uint64) @ factors
        _, firsts, numbers = np.unique(sums, return_index=True, return_inverse=True)
        first_of = firsts[numbers]
        copies = np.flatnonzero(first_of != np.arange(len(vectors)))
        for start in range(0, len(copies), _BLOCK_ROWS):  # different vectors may have equal sums
            part = copies[start : start + _BLOCK_ROWS]
            others = part[(vectors[part] != vectors[first_of[part]]).any(axis=1)]
            first_of[others] = others
        is_rare = np.bincount(first_of, minlength=len(vectors))[first_of] <= few
        first_of[is_rare] = np.flatnonzero(is_rare)
        rows = np.argsort(first_of, kind="stable")
        firsts, starts = np.unique(first_of[rows], return_index=True)
        return cls(read_only(firsts), read_only(rows), read_only(np.append(starts, len(vectors))))

    def __len__(self) -> int:
        return len(self.firsts)

    def with_copies(self, found: Int64) -> Int64:
        """The numbers of all vectors that are equal to some of the firsts, at most MOST_COPIES of each."""
        places = np.searchsorted(self.firsts, found)
        counts = np.minimum(self.starts[places + 1] - self.starts[places], MOST_COPIES)
        if (counts == 1).all():
            return found
        return np.concatenate(
            [self.rows[start : start + count] for start, count in zip(self.starts[places], counts, strict=True)]
        )


def _factors(count: int) -> NDArray[np.uint64]:
    """Odd numbers, by which the words of a vector are multiplied: the sums of different vectors are hardly ever equal."""
    return np.random.default_rng(0).integers(1, 1 << 63, count, np.uint64) | np.uint64(1)


class ExactEngine:
    """`ExactSearch` behind the contract: every sentence is compared, and nothing is kept beside the index."""

    def __init__(self, stored: StoredVectors) -> None:
        self._exact = stored.exact

    @property
    def facts(self) -> EngineFacts:
        vectors = self._exact.vectors
        return EngineFacts("exact", True, int(vectors.nbytes), {"numbers": str(vectors.dtype)})

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        return self._exact.search(queries, k, similarity)


def comparable(vectors: NDArray[np.floating], similarity: Similarity, longest: float = 1.0) -> Float32:
    """Vectors [vector, dim] whose inner products with a query order sentences as a similarity does, in float32.

    For the cosine they have length 1, zero vectors stay zero; for the dot product they are divided by the `longest` length.
    """
    wide = np.asarray(vectors, np.float32)
    return unit(wide) if similarity == "cosine" else wide / np.float32(longest)


def longest_of(exact: ExactSearch) -> float:
    """The length of the longest vector, 1 if all are zero. Raises InputError for values that are not finite."""
    if not np.isfinite(exact.norms).all():
        raise not_finite()
    return float(exact.norms.max(initial=0)) or 1.0


def checked_queries(queries: Float32, dim: int, k: int) -> Float32:
    """Queries [query, dim] in float32. Raises InputError for k < 1 and values that are not finite, ValueError for a shape."""
    if k < 1:
        raise InputError(f"k is {k}.", "A search returns at least 1 hit.", "Choose 1 or more.")
    checked = np.atleast_2d(np.ascontiguousarray(queries, np.float32))
    if checked.ndim != 2 or checked.shape[1] != dim:
        raise ValueError(f"queries of {dim} numbers were expected, not of shape {checked.shape}")
    if not np.isfinite(checked).all():
        raise not_finite()
    return checked


def settle(exact: ExactSearch, queries: Float32, found: list[Int64], k: int, similarity: Similarity) -> Hits:
    """The k best candidates of each query, whose candidates [candidate] are `found`.

    A query without a direction, or for which fewer candidates were found than there are hits, is compared with every
    sentence.
    """
    most = min(k, len(exact.vectors))
    each = [
        exact.search(query, k, similarity)
        if len(candidates) < most or not query.any()
        else exact.among(query, candidates, k, similarity)
        for query, candidates in zip(queries, found, strict=True)
    ]
    return Hits(
        np.array([hits.indices[0] for hits in each], np.int64).reshape(len(each), most),
        np.array([hits.scores[0] for hits in each], np.float64).reshape(len(each), most),
        np.array([hits.tied[0] for hits in each], np.int64),
        np.array([hits.tied_shown[0] for hits in each], np.int64),
    )


def other_similarity(name: str, built: str, asked: str) -> InputError:
    """The error for an engine that was built for another similarity."""
    return InputError(
        f"This {name} engine was built for {built}, not for {asked}.",
        "Its neighbours are those of one similarity.",
        "Open it again for the other one.",
    )


def missing_package(package: str, engine: str) -> InputError:
    """The error where an engine's package is not installed."""
    return InputError(
        f"The engine {engine} needs the package {package}, which is not installed.",
        "The dashboard does without it: only people who ask for this engine need it.",
        "Install it with `pip install -r requirements-scale.txt`.",
    )
