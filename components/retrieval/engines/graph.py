"""Approximate neighbours by a graph on this machine: HNSW (Malkov and Yashunin, arXiv:1603.09320) as usearch builds it.

Each vector is linked to some of its neighbours, in layers that thin out towards the top. A search walks greedily from the
top towards the query and keeps the best `expansion_search` vectors it meets: a larger one finds more, and takes longer. The
numbers of the vectors can be shortened (float16, int8, single bits): the walk then follows rounded similarities, and the
vectors it ends with are compared again with the vectors of the index. Vectors are compared by inner products, for the cosine
divided by their lengths. (A further dimension that makes all vectors equally long, so that dot products become cosines, was
tried: of 5,000 random vectors of different lengths it found 2 of the 10 best, inner products 9.7.)

Equal vectors are in the graph once, by the number of the first; a search finds them all.

The graph lies beside the index in two files: the graph, which is mapped into memory, and a description with the identity of
the vectors and a checksum of the whole graph. It is written under another name and moved into place when it is whole; the
description comes last. usearch believes what a graph says of itself, and a damaged one ends the process. So the description
has a MAC by a key that only this user of this machine has (components.folders.machine_key), and a graph from somewhere else is
never given to usearch, however well its checksum fits. It is refused, as are a graph of other vectors and a damaged one, and
built anew (opening.py). The checksum is read once, when the graph is opened; whoever can write into the folder at that time
could still exchange the file.

What it does not give: all of the nearest vectors. Which ones are lost depends on the order in which vectors were added, and
with several threads also on chance.
"""

from __future__ import annotations

import hmac
import importlib.util
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from filelock import FileLock, Timeout

from components.arrays import Float32
from components.errors import InputError, first_line
from components.folders import machine_key, write_json
from components.jobs import Stopped
from components.retrieval.engines.contract import (
    EngineFacts,
    StoredVectors,
    checked_queries,
    comparable,
    longest_of,
    missing_package,
    other_similarity,
    settle,
)
from components.retrieval.index.checksums import checksum_of

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.search.exact import Hits, Similarity

Precision = Literal["float32", "float16", "int8", "bits"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
KIND = "BERT Internals graph"
FORMAT = 4  # 1: checksums of samples alone; 2: no MAC; 3: equal vectors as often as they stand in the index
MOST_DESCRIPTION_BYTES = 64 << 10
ALL_THREADS = 0
LEAST, MOST = 2, 4_096  # of a graph's settings
NOT_OURS = "was not made on this machine, or by an earlier version"
_KINDS: dict[Precision, str] = {"float32": "f32", "float16": "f16", "int8": "i8", "bits": "b1"}
_BLOCK_ROWS = 2_048  # vectors added together, between two looks at Stop


@dataclass(frozen=True)
class GraphSettings:
    """How a graph is built and searched. Raises InputError for values that no graph can have."""

    precision: Precision = "float32"
    connectivity: int = 16  # links of a vector (M in the paper); twice as many in the lowest layer
    expansion_add: int = 128  # candidates kept while a vector is added (efConstruction)
    expansion_search: int = 64  # candidates kept while a query is searched (ef); not part of the file

    def __post_init__(self) -> None:
        numbers = (self.connectivity, self.expansion_add, self.expansion_search)
        if self.precision not in PRECISIONS or min(numbers) < LEAST or max(numbers) > MOST:
            raise InputError(
                f"The settings {self} are not available.",
                f"The precisions are {', '.join(PRECISIONS)}; the other settings range from {LEAST} to {MOST:,}.",
                "Choose other settings.",
            )

    @property
    def of_file(self) -> dict[str, str | int]:
        """What a graph's file depends on."""
        return {name: value for name, value in asdict(self).items() if name != "expansion_search"}


def is_installed() -> bool:
    """Whether usearch is."""
    return importlib.util.find_spec("usearch") is not None


def graph_file(stored: StoredVectors, similarity: Similarity, settings: GraphSettings) -> Path:
    """Where the graph of some vectors lies."""
    name = f"{stored.stem}.{similarity}-{settings.precision}-{settings.connectivity}-{settings.expansion_add}.usearch"
    return stored.folder / name


class GraphEngine:
    """A graph over the vectors of a layer and pooling, for one similarity."""

    def __init__(
        self,
        stored: StoredVectors,
        similarity: Similarity,
        settings: GraphSettings,
        graph: Any,
        nbytes: int,
        is_in_memory: bool = False,
        note: str = "",
    ) -> None:
        self._stored, self._exact, self._dim = stored, stored.exact, stored.dim
        self._similarity, self._settings = similarity, settings
        self._graph, self._nbytes, self.note = graph, nbytes, note
        # Of this process's memory: none of a graph that is mapped from its file.
        self.nbytes = nbytes if is_in_memory else 0

    @property
    def facts(self) -> EngineFacts:
        settings = {"similarity": self._similarity, **asdict(self._settings)}
        return EngineFacts("usearch", False, self._nbytes, settings, self.note)

    def with_expansion(self, expansion: int) -> GraphEngine:
        """The same graph, searched with another expansion."""
        settings = replace(self._settings, expansion_search=expansion)
        return GraphEngine(
            self._stored, self._similarity, settings, self._graph, self._nbytes, self.nbytes > 0, self.note
        )

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        queries = checked_queries(queries, self._dim, k)
        if similarity != self._similarity:
            raise other_similarity("usearch", self._similarity, similarity)
        different = self._stored.different
        count = min(len(different), max(k, self._settings.expansion_search))
        found = []
        for query in comparable(queries, "cosine"):  # a query's length changes no order
            encoded = _encoded(query[None], self._settings.precision, float(np.abs(query).max(initial=0)))[0]
            if not count:
                found.append(np.empty(0, np.int64))
                continue
            # As many candidates are asked for as the search keeps: with so many, it keeps no others.
            try:
                nearest = self._graph.search(encoded, count, threads=1).keys
            except Exception as problem:  # its errors have no common type
                raise InputError(
                    f"The graph of {self._stored.stem} cannot be searched: {first_line(problem)}.",
                    "A graph that was built whole can be; this one may be damaged.",
                    "Remove the files of the index's folder that end in .usearch; they are then built again.",
                ) from problem
            found.append(different.with_copies(np.asarray(nearest, np.int64)))
        return settle(self._exact, queries, found, k, similarity)


def build(
    stored: StoredVectors,
    similarity: Similarity = "cosine",
    settings: GraphSettings | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    threads: int = ALL_THREADS,
) -> GraphEngine:
    """A new graph in memory; `progress(done, total)` counts vectors. With one thread it is the same every time.

    Raises Stopped, and InputError without usearch and for values that are not finite.
    """
    settings = settings or GraphSettings()
    graph = _built(stored, similarity, settings, progress, is_stopped, threads)
    return GraphEngine(stored, similarity, settings, graph, int(graph.serialized_length), is_in_memory=True)


def build_file(
    stored: StoredVectors,
    similarity: Similarity = "cosine",
    settings: GraphSettings | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> GraphEngine:
    """A new graph beside the index, in place of one that is there, or the one that another process has just built.

    Without a key of this machine it could not be told from another's later: then it stays in memory, and its note says so.
    For errors see `build`; OSError where it has no room.
    """
    settings = settings or GraphSettings()
    key = machine_key()
    if key is None:
        engine = build(stored, similarity, settings, progress, is_stopped, _half_of_the_threads())
        engine.note = (
            "The graph stays in memory: the cache folder cannot keep the key by which this machine knows its own."
        )
        return engine
    path = graph_file(stored, similarity, settings)
    lock = FileLock(path.with_name(f"{path.name}.lock"), mode=0o600)
    has_waited = False
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.2 if has_waited else 0)
        except Timeout:
            has_waited = True
            if is_stopped():
                raise Stopped from None
    try:
        if has_waited:
            with suppress(FileNotFoundError, InputError):  # then it is built after all
                return open_file(stored, similarity, settings)
        graph = _built(stored, similarity, settings, progress, is_stopped, _half_of_the_threads())
        _write(graph, path, stored, similarity, settings, key)
        return open_file(stored, similarity, settings)
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)  # before the release: whoever waits notices that the file is gone
        lock.release()


def _half_of_the_threads() -> int:
    return max(1, (os.cpu_count() or 2) // 2)


def _mac(key: bytes, description: Mapping[str, Any]) -> str:
    """What only this machine can make of a description, in hexadecimal digits; the description holds the graph's checksum."""
    text = json.dumps({name: value for name, value in description.items() if name != "mac"}, sort_keys=True)
    return hmac.digest(key, f"{KIND}\n{text}".encode(), "sha256").hex()


def _write(
    graph: Any, path: Path, stored: StoredVectors, similarity: Similarity, settings: GraphSettings, key: bytes
) -> None:
    """Put a graph and its description in place; the lock is held."""
    for left in path.parent.glob(f"{path.name}.*.new"):  # by a build that was killed
        left.unlink(missing_ok=True)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        _description_file(path).unlink(missing_ok=True)  # so that none ever describes another graph
        try:
            graph.save(str(new))
        except Exception as problem:  # its errors have no common type
            raise OSError(f"the graph cannot be written: {first_line(problem)}") from problem
        description = {
            "kind": KIND,
            "format": FORMAT,
            "vectors": stored.identity,
            "count": len(stored),
            "similarity": similarity,
            "settings": settings.of_file,
            "size": new.stat().st_size,
            "checksum": checksum_of(new).whole,
        }
        new.replace(path)
        write_json(_description_file(path), {**description, "mac": _mac(key, description)})
    finally:
        new.unlink(missing_ok=True)


def open_file(
    stored: StoredVectors, similarity: Similarity = "cosine", settings: GraphSettings | None = None
) -> GraphEngine:
    """The graph beside the index, mapped into memory.

    Raises FileNotFoundError where there is none, and InputError for one of other vectors, a damaged one, one that was not made
    on this machine, or without usearch.
    """
    settings = settings or GraphSettings()
    index_type = _library()
    path = graph_file(stored, similarity, settings)
    if not path.is_file() or not _description_file(path).is_file():
        raise FileNotFoundError(path)
    try:
        described = _description(path)
        if described["format"] != FORMAT or not _is_ours(described):
            raise _refused(path, NOT_OURS)
        if described["size"] != path.stat().st_size or described["checksum"] != checksum_of(path).whole:
            raise ValueError("it has other content than when it was written")
        is_of_these = described["vectors"] == stored.identity and described["count"] == len(stored)
        is_alike = described["similarity"] == similarity and described["settings"] == settings.of_file
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise _refused(path, f"is damaged: {first_line(problem)}") from problem
    if not is_of_these or not is_alike:
        raise _refused(path, "was built from other vectors, or in another way")
    try:
        graph = index_type.restore(str(path), view=True)
    except Exception as problem:  # its errors have no common type
        raise _refused(path, f"is damaged: {first_line(problem)}") from problem
    if graph is None or len(graph) != len(stored.different):
        raise _refused(path, "is damaged: it has another number of vectors")
    return GraphEngine(stored, similarity, settings, graph, path.stat().st_size)


def _description(path: Path) -> dict[str, Any]:
    """The description beside a graph. Raises OSError, and ValueError for other content."""
    with _description_file(path).open("rb") as file:
        text = file.read(MOST_DESCRIPTION_BYTES + 1)
    described = json.loads(text) if len(text) <= MOST_DESCRIPTION_BYTES else None
    if not isinstance(described, dict) or described["kind"] != KIND:
        raise ValueError("its description has other content")
    return described


def _is_ours(described: Mapping[str, Any]) -> bool:
    """Whether a description has the MAC of this machine."""
    key, mac = machine_key(), described.get("mac")
    return key is not None and isinstance(mac, str) and hmac.compare_digest(mac.encode(), _mac(key, described).encode())


def _built(
    stored: StoredVectors,
    similarity: Similarity,
    settings: GraphSettings,
    progress: ReportProgress,
    is_stopped: IsStopped,
    threads: int,
) -> Any:
    index_type = _library()
    total, longest, precision = len(stored), longest_of(stored.exact), settings.precision
    firsts = stored.different.firsts
    blocks = range(0, len(firsts), _BLOCK_ROWS)

    def vectors_from(start: int) -> Float32:
        return comparable(stored.exact.vectors[firsts[start : start + _BLOCK_ROWS]], similarity, longest)

    # The numbers of int8 need one scale for all vectors, so that inner products keep their order.
    largest = (
        max((float(np.abs(vectors_from(start)).max()) for start in blocks), default=0) if precision == "int8" else 1.0
    )
    graph = index_type(
        # Single bits fill whole bytes.
        ndim=-(-stored.dim // 8) * 8 if precision == "bits" else stored.dim,
        metric="hamming" if precision == "bits" else "ip",
        dtype=_KINDS[precision],
        connectivity=settings.connectivity,
        expansion_add=settings.expansion_add,
        expansion_search=LEAST,
    )
    progress(0, total)
    for start in blocks:
        if is_stopped():
            raise Stopped
        vectors = vectors_from(start)
        end = start + len(vectors)
        graph.add(firsts[start:end].astype(np.uint64), _encoded(vectors, precision, largest), threads=threads)
        progress(total if end == len(firsts) else int(firsts[end]), total)  # the copies among them are done too
    if is_stopped():
        raise Stopped
    return graph


def _encoded(vectors: Float32, precision: Precision, largest: float) -> np.ndarray:
    """Vectors [vector, dim] as the graph takes them: uint8 [vector, dim / 8] for bits, int8, or float32.

    `largest` is the largest number, without its sign, of all that are encoded alike.
    """
    if precision == "bits":
        return np.packbits(vectors > 0, axis=1)
    if precision == "int8":
        return np.rint(vectors * (127 / (largest or 1))).astype(np.int8)
    return vectors


def _library() -> Any:
    """usearch's Index. Raises InputError where it is not installed."""
    try:
        from usearch.index import Index
    except ImportError as problem:
        raise missing_package("usearch", "usearch") from problem
    return Index


def _description_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _refused(path: Path, reason: str) -> InputError:
    return InputError(
        f"The graph {path.name} {reason}.",
        "A graph belongs to this machine, and to the vectors that it was built from.",
        "Remove this file; it is then built again.",
    )
