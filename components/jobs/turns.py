"""A lock whose waiting threads can say how many come first."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TELL_SECONDS = 1.0  # after so long, and again each time so much has passed
Tell = Callable[[int], None]
_TELL: ContextVar[Tell | None] = ContextVar("who is told how many come first", default=None)


@contextmanager
def told(tell: Tell) -> Iterator[None]:
    """Within it, `tell(first)` is called while this thread waits for a turn, and `tell(0)` when it has come.

    `tell` may raise nothing.
    """
    token = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(token)


class Turns:
    """Turns at a lock, which a thread may take again while it has it."""

    def __init__(self, lock: threading.RLock) -> None:
        self.lock = lock
        self._waiting: deque[None] = deque()  # one for each thread that waits for its turn

    def take(self) -> None:
        """Wait for the lock. Others that wait are not in a fixed order."""
        self._waiting.append(None)
        try:
            self._wait(_TELL.get())
        finally:
            self._waiting.pop()

    def _wait(self, tell: Tell | None) -> None:
        if tell is None:
            self.lock.acquire()
            return
        is_told = False
        while not self.lock.acquire(timeout=TELL_SECONDS):
            tell(len(self._waiting))  # the one that has the lock, and the others that wait
            is_told = True
        try:
            if is_told:
                tell(0)
        except BaseException:  # whoever has no turn after all leaves it to the next one
            self.lock.release()
            raise

    @property
    def are_awaited(self) -> bool:
        """Whether a thread waits for its turn."""
        return bool(self._waiting)
