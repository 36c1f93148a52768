"""Approximate neighbours in Milvus: a file on this machine (Milvus Lite) or a cluster, by the same code.

An address is a path that ends in .db, or a URI such as http://host:19530. Each layer, pooling and similarity of an index is
a collection of its own, whose name is made from the identity of the vectors: vectors of another index never answer. It is
filled under another name and renamed when it is whole. A cluster's token is in the operator's setting `milvus_token`, never
in the address, which logs and errors may show.

Milvus compares inner products (index HNSW, arXiv:1603.09320), for the cosine of vectors that were divided by their lengths.
What it finds is compared again with the vectors of the index.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from components import operator_settings
from components.arrays import Float32
from components.errors import InputError, first_line
from components.folders import check_writable
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

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.search.exact import Hits, Similarity

SUFFIX = ".db"  # of a file of Milvus Lite
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 64  # of the index; see graph.GraphSettings
MOST_FOUND = 16_384  # by one search, Milvus's own limit
_SECONDS = 30.0  # to wait for an answer
_SEARCH_SECONDS = 10.0  # of a search, for which a person waits
_BLOCK_ROWS = 1_000  # vectors sent together: 1.5 MB at 384 dimensions
_opening = threading.Lock()


@dataclass(frozen=True)
class Address:
    """Where Milvus is."""

    uri: str
    is_file: bool

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises InputError for anything that is neither a .db file nor an http(s) address without a name and password."""
        if "://" not in text:
            if not text.strip() or not text.endswith(SUFFIX) or "\0" in text:
                raise _no_address(text[:120], f"A file of Milvus Lite ends in {SUFFIX}.")
            return cls(text, True)
        try:
            parts = urlsplit(text)
            has_name, port = "@" in parts.netloc, parts.port
        except ValueError as problem:
            raise _no_address("no URI", f"({first_line(problem)}.)") from problem
        if has_name or parts.query or parts.fragment:  # not shown: it may hold a password
            raise _no_address(
                "an address with more than a host", "Addresses are shown, so that none may hold a secret."
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise _no_address(text[:120], "A cluster's address begins with http:// or https:// and names a host.")
        return cls(text, False)

    def check_file(self) -> None:
        """Raise InputError for a file that could not be written."""
        if self.is_file:
            try:
                check_writable(Path(os.path.abspath(self.uri)).parent)
            except OSError as problem:
                raise _no_address(self.uri[:120], f"It cannot be written: {problem.strerror or problem}.") from problem


def is_installed() -> bool:
    """Whether pymilvus is."""
    return importlib.util.find_spec("pymilvus") is not None


class MilvusEngine:
    """A collection with the vectors of a layer and pooling, for one similarity."""

    def __init__(
        self, stored: StoredVectors, similarity: Similarity, client: Any, collection: str, address: Address
    ) -> None:
        self._exact, self._dim, self._similarity = stored.exact, stored.dim, similarity
        self._different = stored.different
        self._client, self._collection, self._address = client, collection, address
        self._lock = threading.Lock()  # sessions share the client

    @property
    def facts(self) -> EngineFacts:
        """The bytes are those of the vectors alone: Milvus does not say what its index takes."""
        settings = {
            "similarity": self._similarity,
            "where": "file" if self._address.is_file else "cluster",
            "connectivity": CONNECTIVITY,
            "expansion_add": EXPANSION_ADD,
            "expansion_search": EXPANSION_SEARCH,
        }
        return EngineFacts("milvus", False, 4 * self._exact.vectors.size, settings)

    def search(self, queries: Float32, k: int, similarity: Similarity = "cosine") -> Hits:
        """As the contract says; InputError also where Milvus does not answer."""
        queries = checked_queries(queries, self._dim, k)
        if similarity != self._similarity:
            raise other_similarity("Milvus", self._similarity, similarity)
        count = min(len(self._different), max(k, EXPANSION_SEARCH), MOST_FOUND)
        found = [np.empty(0, np.int64)] * len(queries)
        if count and len(queries):
            options = {"metric_type": "IP", "params": {"ef": count}}
            try:
                with self._lock:
                    answer = self._client.search(
                        self._collection,
                        data=list(comparable(queries, "cosine")),
                        limit=count,
                        search_params=options,
                        timeout=_SEARCH_SECONDS,
                    )
            except Exception as problem:  # of grpc and of Milvus
                raise _no_answer(self._address, problem) from problem
            found = [
                self._different.with_copies(np.array([hit["number"] for hit in hits], np.int64)) for hits in answer
            ]
        return settle(self._exact, queries, found, k, similarity)

    def close(self) -> None:
        """Close the connection, or the file."""
        self._client.close()


def opened(
    stored: StoredVectors,
    address: str,
    similarity: Similarity = "cosine",
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> MilvusEngine:
    """The collection of some vectors, filled if it is not there; `progress(done, total)` counts vectors.

    Raises Stopped, after which nothing is left behind, and InputError where Milvus cannot be reached, holds something else
    under this name, or is not installed.
    """
    where = Address.parse(address)
    client, name = _connected(where), collection_name(stored, similarity)
    try:
        if not client.has_collection(name, timeout=_SECONDS):
            _fill(client, name, stored, similarity, progress, is_stopped)
        client.load_collection(name, timeout=_SECONDS)
        count = _count(client, name)
        if count != len(stored.different):
            raise InputError(
                f"The collection {name} in Milvus has {count:,} vectors, and the index has {len(stored.different):,}.",
                "A collection holds the vectors of one index.",
                "Remove this collection in Milvus; it is then filled again.",
            )
    except BaseException as problem:
        client.close()
        if isinstance(problem, InputError | Stopped) or not isinstance(problem, Exception):
            raise
        raise _no_answer(where, problem) from problem
    return MilvusEngine(stored, similarity, client, name, where)


def collection_name(stored: StoredVectors, similarity: Similarity) -> str:
    """The name of the collection of some vectors: different for other vectors."""
    # Those of earlier versions hold equal vectors as often as they stand in the index.
    content = f"{stored.identity} {similarity}{'' if len(stored.different) == len(stored) else ' once'}"
    return f"bert_internals_{hashlib.sha256(content.encode()).hexdigest()[:24]}"


def _connected(address: Address) -> Any:
    """A client. Raises InputError where pymilvus is missing or Milvus cannot be reached."""
    try:
        from pymilvus import MilvusClient
    except ImportError as problem:
        raise missing_package("pymilvus", "milvus") from problem
    token = "" if address.is_file else operator_settings.MILVUS_TOKEN.chosen() or ""
    try:
        with _opening:
            if address.is_file:
                Path(address.uri).parent.mkdir(parents=True, exist_ok=True)
            return MilvusClient(address.uri, token=token, timeout=_SECONDS)
    except ModuleNotFoundError as problem:  # milvus-lite is a package of its own
        raise missing_package("milvus-lite", "milvus") from problem
    except Exception as problem:
        raise _no_answer(address, problem) from problem


def _fill(
    client: Any,
    name: str,
    stored: StoredVectors,
    similarity: Similarity,
    progress: ReportProgress,
    is_stopped: IsStopped,
) -> None:
    from pymilvus import DataType

    longest = longest_of(stored.exact)
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("number", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=stored.dim)
    index = client.prepare_index_params()
    params = {"M": CONNECTIVITY, "efConstruction": EXPANSION_ADD}
    index.add_index("vector", index_type="HNSW", metric_type="IP", params=params)
    part, total = f"{name}_{secrets.token_hex(4)}", len(stored)
    client.create_collection(part, schema=schema, index_params=index, consistency_level="Strong", timeout=_SECONDS)
    try:
        progress(0, total)
        firsts = stored.different.firsts
        for start in range(0, len(firsts), _BLOCK_ROWS):
            if is_stopped():
                raise Stopped
            numbers = firsts[start : start + _BLOCK_ROWS]
            sent = comparable(stored.exact.vectors[numbers], similarity, longest)
            rows = [{"number": int(number), "vector": vector} for number, vector in zip(numbers, sent, strict=True)]
            client.insert(part, rows, timeout=_SECONDS)
            end = start + len(rows)
            progress(total if end == len(firsts) else int(firsts[end]), total)
        client.flush(part, timeout=_SECONDS)
        if is_stopped():
            raise Stopped
        if client.has_collection(name, timeout=_SECONDS):  # another process was faster
            client.drop_collection(part, timeout=_SECONDS)
        else:
            client.rename_collection(part, name, timeout=_SECONDS)
    except BaseException:
        client.drop_collection(part, timeout=_SECONDS)
        raise


def _count(client: Any, name: str) -> int:
    (row,) = client.query(name, filter="", output_fields=["count(*)"], timeout=_SECONDS)
    return int(row["count(*)"])


def _no_address(given: str, expected: str) -> InputError:
    return InputError(
        f"Milvus cannot be at {given!r}.",
        expected,
        f"Write the path of a file such as vectors{SUFFIX}, or an address such as http://host:19530; a token belongs into "
        f"{operator_settings.MILVUS_TOKEN.variable}.",
    )


def _no_answer(address: Address, problem: Exception) -> InputError:
    said = first_line(problem)
    if address.is_file:
        return InputError(
            f"Milvus Lite cannot use {address.uri}: {said}.",
            "The file must be one of Milvus Lite that no other process has open.",
            "Close the other process, or name another file.",
        )
    return InputError(
        f"Milvus at {address.uri} does not answer: {said}.",
        "A Milvus server must be reachable there, and let this token in.",
        f"Check the address, the server, and {operator_settings.MILVUS_TOKEN.variable}.",
    )
