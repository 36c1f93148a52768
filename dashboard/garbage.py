"""Keeps Streamlit's garbage collections short, and what they free usable by all threads.

Streamlit runs a full collection after every run of a page. With torch and transformers loaded each visits more than a
million objects and holds the interpreter's lock for some 300 ms: with sixteen people it took two thirds of the time in
which the server ran Python code. Nearly all of these objects live as long as the server.

What a collection leaves is in use, apart from what other threads made meanwhile. So at the end of each full collection all
that is left is frozen (`gc.freeze`): the next one visits only what was made since. Circles among frozen objects that fall out
of use later, those of a session that ended or of a model that was dropped, are found by a complete collection, for which
everything is thawed; complete ones take at most a fiftieth of the time. Objects outside circles are freed at once, frozen or
not.

Each run of a page has a thread of its own. The C library of Linux gives threads up to eight heaps for each core, and what is
freed in one serves no thread of another: after 1,200 people a server held 957 MiB, with two heaps 872 (two cores).
https://sourceware.org/glibc/wiki/MallocInternals
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from typing import Literal

SHARE = 50  # complete collections take at most the SHARE-th part of the time
LEAST_SECONDS = 10.0  # between two complete collections
M_ARENA_MAX, HEAPS = -8, 2  # the first is its number in glibc's malloc.h
ATTEMPTS, ATTEMPT_SECONDS = 20, 0.1  # to collect everything while another thread collects


class Freezer:
    """Called by Python before and after each collection. `complete` counts those that visited everything."""

    def __init__(self) -> None:
        self.complete = 0
        self._began: float | None = None  # time.monotonic() when a complete collection began, while it is under way
        self._due = 0.0  # time.monotonic() from which the next one is complete

    def __call__(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        now = time.monotonic()
        if phase == "start":
            if now >= self._due:
                gc.unfreeze()
                self._began = now
        else:
            if self._began is not None:
                self._due = now + max(LEAST_SECONDS, SHARE * (now - self._began))
                self._began = None
                self.complete += 1
            gc.freeze()

    def collect_everything(self) -> None:
        """Run a complete collection now: without `keep_collections_short` a plain one."""
        if self not in gc.callbacks:
            gc.collect()
            return
        needed = self.complete + (1 if self._began is None else 2)  # one that is under way may have begun too early
        for _ in range(ATTEMPTS):
            self._due = 0.0
            gc.collect()  # returns at once while another thread collects
            if self.complete >= needed:
                return
            time.sleep(ATTEMPT_SECONDS)


freezer = Freezer()


def keep_collections_short() -> None:
    """For the rest of the process: a server calls it when it starts."""
    if freezer not in gc.callbacks:
        gc.callbacks.append(freezer)


def share_freed_memory() -> None:
    """For the rest of the process all threads together have HEAPS heaps; where the C library is not glibc nothing changes."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(M_ARENA_MAX, HEAPS)
