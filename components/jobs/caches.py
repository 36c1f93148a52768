"""Results that are computed at once, in the thread that needs them, and kept for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from components.jobs.bounded import Bounded, Removed
from components.jobs.work import WorkFailed

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Results by key, the least recently used removed first; each computed once for all threads that need it."""

    def __init__(self, limit: int, size: Callable[[Value], int] = lambda value: 1) -> None:
        """`limit` counts entries, or the unit of `size`: bytes, for example. Sizes must not change."""
        self.limit, self._size = limit, size
        self._lock = threading.Lock()
        self._kept: Bounded[Value] = Bounded(limit)
        self._under_way: dict[Hashable, Future[Value]] = {}

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The result of a key: kept, computed by another thread, or computed now.

        An exception of `compute` reaches everybody who waits for it, and nothing is kept; what is no Exception ends
        only the thread that computes, and reaches the others as WorkFailed. A result larger than the whole cache is
        returned and not kept.
        """
        with self._lock:
            if key in self._kept:
                value: Value = self._kept.find(key)  # type: ignore[assignment] # None may be a result
                return value
            theirs = self._under_way.get(key)
            if theirs is None:
                ours = self._under_way[key] = Future()
        if theirs is not None:
            return theirs.result()
        try:
            value = compute()
            size = self._size(value)
            with self._lock:
                removed = self._kept.put(key, value, size)
                del self._under_way[key]
        except BaseException as problem:
            with self._lock:
                self._under_way.pop(key, None)
            ours.set_exception(WorkFailed.of(problem))
            raise
        ours.set_result(value)
        del removed  # outside the lock, as everywhere below (see Bounded)
        return value

    def find(self, key: Hashable) -> Value | None:
        """The result of a key if it is kept; computes nothing."""
        with self._lock:
            return self._kept.find(key)

    def is_known(self, key: Hashable) -> bool:
        """Whether the result is kept, or being computed by another thread."""
        with self._lock:
            return key in self._kept or key in self._under_way

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a result, unless it is larger than the whole cache."""
        size = self._size(value)
        with self._lock:
            removed = self._kept.put(key, value, size)
        del removed

    def drop(self, is_dropped: Callable[[Hashable], bool]) -> None:
        """Forget the results whose keys are dropped."""
        with self._lock:
            keys = tuple(self._kept)
        dropped = [key for key in keys if is_dropped(key)]  # outside the lock
        removed: Removed = []
        with self._lock:
            for key in dropped:
                removed += self._kept.pop(key)
        del removed

    def is_computing(self) -> bool:
        """Whether a thread is computing a result now."""
        with self._lock:
            return bool(self._under_way)

    def clear(self) -> None:
        """Forget all results; running computations are not disturbed."""
        with self._lock:
            removed = self._kept.clear()
        del removed

    @property
    def used(self) -> int:
        """The size of the kept results, in the unit of `limit`."""
        with self._lock:
            return self._kept.used

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)


class CachePart(Generic[Value]):
    """The results of one kind in a cache whose room several kinds share: a kind that is not used takes none."""

    def __init__(self, cache: Cache[Any], kind: str) -> None:
        self.kind, self._cache = kind, cache

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """As `Cache.get`."""
        result: Value = self._cache.get((self.kind, key), compute)
        return result

    def find(self, key: Hashable) -> Value | None:
        """As `Cache.find`."""
        result: Value | None = self._cache.find((self.kind, key))
        return result

    def put(self, key: Hashable, value: Value) -> None:
        """As `Cache.put`."""
        self._cache.put((self.kind, key), value)

    def clear(self) -> None:
        """Forget the results of this kind."""
        self._cache.drop(lambda key: isinstance(key, tuple) and key[0] == self.kind)
