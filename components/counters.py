"""What this process has counted since its start, for the operator's figures."""

from __future__ import annotations

import threading


class Counter:
    """A number that only grows. Any thread may add to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value = 0

    def add(self) -> None:
        with self._lock:  # `+=` of two threads could count once
            self._value += 1

    @property
    def value(self) -> int:
        return self._value


forward_passes = Counter()  # of all models, those that are no longer in memory included
