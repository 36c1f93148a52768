"""Records kept for everybody: bounded by bytes, least recently used out first, one pass for all who ask.

A record is anything that says how many bytes it takes: a Trace, or what happens inside the blocks. All kinds
share one budget, so that the operator's number is what the process keeps, whatever people look at.

Thirty people opening the same example at once cost one forward pass: the first computes, the rest wait for
its result (single flight). A result larger than the whole store is handed out but not kept.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from components.errors import InputError

DEFAULT_BYTES = 1 << 30  # 1 GiB
BYTES_VARIABLE = "BERT_INTERNALS_TRACE_BYTES"
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class HasBytes(Protocol):
    """What can be kept: a record that knows the memory it takes, which must not change once it is made."""

    @property
    def nbytes(self) -> int: ...


Record = TypeVar("Record", bound=HasBytes)


def parse_bytes(text: str) -> int:
    """Bytes from "1073741824", "512M", "2 GiB". Raises InputError for anything else, or for less than one byte."""
    compact = text.strip().upper().removesuffix("IB").removesuffix("B").strip()
    number, unit = (compact[:-1], compact[-1]) if compact and compact[-1].isalpha() else (compact, "")
    try:
        value = int(float(number) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        value = 0
    if value < 1:
        raise InputError(
            f"The size {text!r} could not be read.",
            "A number of bytes was expected, or a number with K, M or G.",
            f"Set {BYTES_VARIABLE} to something like 512M or 2G.",
        )
    return value


def configured_bytes() -> int:
    """The store's size: BERT_INTERNALS_TRACE_BYTES where it is set, else 1 GiB."""
    text = os.environ.get(BYTES_VARIABLE)
    return parse_bytes(text) if text else DEFAULT_BYTES


@dataclass(frozen=True)
class StoreStatistics:
    entries: int
    bytes: int
    max_bytes: int
    hits: int  # answered from the store, or by waiting for a computation under way
    misses: int  # computed
    evictions: int


class TraceStore:
    """A thread-safe LRU of records; see the module's docstring."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self.max_bytes = configured_bytes() if max_bytes is None else max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, HasBytes] = OrderedDict()
        self._under_way: dict[Hashable, Future[Any]] = {}
        self._bytes = self._hits = self._misses = self._evictions = 0

    def get(self, key: Hashable, compute: Callable[[], Record]) -> Record:
        """The record of `key`: kept, under way in another thread, or computed now.

        A key stands for one kind of record: whoever asks gets what was kept under it, unchecked. An exception
        of `compute` reaches everyone who waits for it, and nothing is kept.
        """
        with self._lock:
            if key in self._kept:
                self._hits += 1
                self._kept.move_to_end(key)
                return cast(Record, self._kept[key])
            future = self._under_way.get(key)
            mine = future is None
            if future is None:
                self._misses += 1
                future = self._under_way[key] = Future()
            else:
                self._hits += 1
        if not mine:
            return cast(Record, future.result())
        try:
            record = compute()
        except BaseException as problem:
            with self._lock:
                del self._under_way[key]
            future.set_exception(problem)
            raise
        with self._lock:
            del self._under_way[key]
            self._keep(key, record)
        future.set_result(record)
        return record

    def _keep(self, key: Hashable, record: HasBytes) -> None:
        if record.nbytes > self.max_bytes:
            return
        self._kept[key] = record
        self._bytes += record.nbytes
        while self._bytes > self.max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.nbytes
            self._evictions += 1

    def clear(self) -> None:
        """Forget everything kept; computations under way are not disturbed."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    @property
    def statistics(self) -> StoreStatistics:
        with self._lock:
            return StoreStatistics(
                len(self._kept), self._bytes, self.max_bytes, self._hits, self._misses, self._evictions
            )
