"""Tiny models loaded once for all test modules of a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from components.model.backend import Backend
from components.model.store import TraceStore


@cache
def shared_backend(folder: Path) -> Backend:
    """The model of this folder, with a store of its own: only for reading, and for counting passes as differences.

    Whoever changes the model, counts from zero or needs an empty store loads one of their own.
    """
    return Backend.load(str(folder), store=TraceStore(16 << 20), device_name="cpu")
