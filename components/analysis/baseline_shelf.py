"""Baselines kept for everybody: measured once for each model, in whichever thread asks first.

The sample's forward passes are not kept: its traces are large and nobody looks at them again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from components.analysis.baseline import Baseline, measure
from components.model.catalog import ModelSpec
from components.model.trace import Trace

CHUNK = 25  # sentences a pass: others wait for a pass to end, and this one is short


class Runs(Protocol):
    """What a baseline needs of a backend."""

    spec: ModelSpec
    revision: str

    def run(self, texts: Sequence[str]) -> Trace: ...


class BaselineShelf:
    """The last few models' baselines over one sample of sentences; thread-safe, single flight."""

    def __init__(self, sample: Sequence[str], capacity: int = 8) -> None:
        self._sample = tuple(sample)
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], Future[Baseline]] = OrderedDict()

    def measure(self, backend: Runs) -> Baseline:
        """The baseline of a model: kept, being measured by another thread, or measured now.

        What `backend.run` raises reaches everybody who waits, and the next call tries again.
        """
        key = (backend.spec.key, backend.revision)
        with self._lock:
            future = self._kept.get(key)
            mine = future is None
            if future is None:
                future = self._kept[key] = Future()
                while len(self._kept) > self._capacity:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
        if not mine:
            return future.result()
        try:
            sample = self._sample
            found = measure(backend.run(sample[start : start + CHUNK]) for start in range(0, len(sample), CHUNK))
        except BaseException as problem:
            with self._lock:
                self._kept.pop(key, None)
            future.set_exception(problem)
            raise
        future.set_result(found)
        return found

    def is_known(self, backend: Runs) -> bool:
        """Whether it is there or being measured."""
        with self._lock:
            return (backend.spec.key, backend.revision) in self._kept

    def is_ready(self, backend: Runs) -> bool:
        """Whether `measure` would answer at once."""
        with self._lock:
            future = self._kept.get((backend.spec.key, backend.revision))
        return future is not None and future.done()
