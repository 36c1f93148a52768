"""The last few things that people brought along, shared by all sessions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

KEPT = 6
Kept = TypeVar("Kept")


class FewKept(Generic[Kept]):
    """The last few things people brought along, by key."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def get(self, key: str) -> Kept | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, item: Kept) -> None:
        with self._lock:
            self._kept[key] = item
            self._kept.move_to_end(key)
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
