"""Who is still there, and for whom a page is being drawn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from cachetools import LRUCache

MOST_DRAWING = 5.0  # seconds
GRACE_SECONDS = 10.0  # a lost connection is forgiven for so long
PEOPLE_REMEMBERED = 1_000


class PageDrawing:
    """Whether a page is being drawn, for which work that gives way pauses: a click must not wait for what nobody waits for.

    Each drawing counts for MOST_DRAWING seconds at most, so that a page that waits for such work itself gets it.
    """

    def __init__(self) -> None:
        self._since: dict[int, float] = {}  # thread to time.monotonic(); each operation on it is one of Python's own

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """While this thread draws a page."""
        thread = threading.get_ident()
        self._since[thread] = time.monotonic()
        try:
            yield
        finally:
            self._since.pop(thread, None)

    def is_under_way(self) -> bool:
        """Whether a page is being drawn now."""
        now = time.monotonic()
        return any(now - since < MOST_DRAWING for since in tuple(self._since.values()))


class Presence:
    """Who is still there. Somebody whose connection breaks stays present for a while: browsers connect again by themselves."""

    def __init__(self, is_connected: Callable[[Hashable], bool], grace_seconds: float = GRACE_SECONDS) -> None:
        self._is_connected, self._grace_seconds = is_connected, grace_seconds
        self._lock = threading.Lock()
        self._last_seen: LRUCache[Hashable, float] = LRUCache(PEOPLE_REMEMBERED)  # person to time.monotonic()

    def see(self, person: Hashable) -> None:
        """Note that a person is there now."""
        with self._lock:
            self._last_seen[person] = time.monotonic()

    def is_present(self, person: Hashable) -> bool:
        """Whether a person is connected, or was there a moment ago."""
        if self._is_connected(person):  # outside the lock: the server's own code answers
            self.see(person)
            return True
        with self._lock:
            last_seen = self._last_seen.get(person)
        return last_seen is not None and time.monotonic() - last_seen <= self._grace_seconds
