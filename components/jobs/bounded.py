"""A bounded collection of values by key, for those who share it under a lock."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

import cachetools

Value = TypeVar("Value")
Removed = list[Any]  # values that are kept no longer


class _Entries(cachetools.LRUCache[Hashable, tuple[Any, int]]):
    """Values with their sizes; what has to make room for others is collected in `removed`."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda entry: entry[1])
        self.removed: Removed = []

    def popitem(self) -> tuple[Hashable, tuple[Any, int]]:
        key, entry = super().popitem()
        self.removed.append(entry[0])
        return key, entry


class Bounded(Generic[Value]):
    """At most `limit` in the sum of the sizes, and `most` values; the least recently used goes first.

    Not safe for threads: whoever shares it holds a lock. So sizes are given with the values, measured before, and what is
    removed is returned. The caller drops it once the lock is released: where nothing else uses a value, it ends then,
    which takes time and may run code of its own.
    """

    def __init__(self, limit: int, most: int | None = None) -> None:
        self.limit, self._most = limit, most
        self._entries = _Entries(limit)

    def find(self, key: Hashable) -> Value | None:
        """The value of a key, which counts as used now; None if it is not kept."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: Hashable, value: Value, size: int = 1) -> Removed:
        """Keep a value of this size, unless it is larger than the limit. Returns what is kept no longer."""
        removed = self.pop(key)  # an older value must not stay where the new one does not fit
        if size <= self.limit:
            self._entries[key] = (value, size)
            while self._most is not None and len(self._entries) > self._most:
                self._entries.popitem()
        more, self._entries.removed = self._entries.removed, []
        return removed + more

    def make_room(self, size: int, limit: int) -> Removed:
        """Keep so little that a value of this size fits beside it within `limit`. Returns what is kept no longer."""
        while self._entries and self.used + size > limit:
            self._entries.popitem()
        removed, self._entries.removed = self._entries.removed, []
        return removed

    def pop(self, key: Hashable) -> Removed:
        """Keep a value no longer. Returns what is removed: it, or nothing."""
        entry = self._entries.pop(key, None)
        return [] if entry is None else [entry[0]]

    def clear(self) -> Removed:
        """Keep nothing. Returns what is removed."""
        removed: Removed = self.values()
        self._entries.clear()
        return removed

    def values(self) -> list[Value]:
        """All values; none counts as used by this."""
        return [cachetools.Cache.__getitem__(self._entries, key)[0] for key in self._entries]

    @property
    def used(self) -> int:
        """The sum of the sizes."""
        return int(self._entries.currsize)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
