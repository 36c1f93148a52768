"""Models that are loaded or on their way, shared by all sessions.

Loading runs in a thread of its own, once for everybody who asks; whoever waits reads the job's progress and
may cancel it. At most `capacity` models are kept, the least recently used goes first.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from components.model.catalog import ModelSpec
from components.model.store import TraceStore

if TYPE_CHECKING:
    from components.model.backend import Backend

FAILURE_KEPT_SECONDS = 20.0


@dataclass
class LoadJob:
    """One model's way into memory. Read it from any thread; only its own thread writes it."""

    spec: ModelSpec
    done_bytes: int = 0
    total_bytes: int = 0
    backend: Backend | None = None
    error: Exception | None = None
    finished_at: float | None = None
    finished: threading.Event = field(default_factory=threading.Event)
    cancel: threading.Event = field(default_factory=threading.Event)

    @property
    def fraction(self) -> float | None:
        """Share of the download, 0..1; None while there is nothing to download."""
        return self.done_bytes / self.total_bytes if self.total_bytes else None

    @property
    def message(self) -> str:
        if self.total_bytes and self.done_bytes < self.total_bytes:
            return f"Fetching {self.spec.title}: {self.done_bytes / 1e6:,.0f} of {self.total_bytes / 1e6:,.0f} MB"
        return f"Loading {self.spec.title} into memory"


class ModelShelf:
    """Loads models on request and keeps the last few."""

    def __init__(self, store: TraceStore, capacity: int = 3, after_load: Callable[[], None] = lambda: None) -> None:
        self.store = store
        self.capacity = capacity
        self._after_load = after_load
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, LoadJob] = OrderedDict()

    def request(self, spec: ModelSpec) -> LoadJob:
        """The job of a model: finished, under way, or started now.

        A failure is remembered for a few seconds, so that a page drawn again does not ask again at once.
        """
        with self._lock:
            job = self._jobs.get(spec.key)
            if job is not None and _is_stale(job):
                job = None
            if job is None:
                job = LoadJob(spec)
                self._jobs[spec.key] = job
                threading.Thread(target=self._work, args=(job,), name=f"load {spec.key}", daemon=True).start()
            self._jobs.move_to_end(spec.key)
            return job

    def forget(self, key: str) -> None:
        """Drop a failed job, so that the next request tries again. Loaded models stay."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.error is not None:
                del self._jobs[key]

    def loaded(self) -> list[str]:
        """Keys of the models in memory, least recently used first."""
        with self._lock:
            return [key for key, job in self._jobs.items() if job.backend is not None]

    def _work(self, job: LoadJob) -> None:
        def progress(done: int, total: int) -> None:
            job.done_bytes, job.total_bytes = done, total

        try:
            # Imported here: this is the first import of torch, and it happens off the page's path.
            from components.model.backend import Backend

            job.backend = Backend.load(job.spec, self.store, progress=progress, cancelled=job.cancel.is_set)
            self._make_room(job)
            self._after_load()
        except Exception as problem:  # noqa: BLE001 - whatever it is, it belongs to those who wait for the job
            job.error = problem
        finally:
            job.finished_at = time.monotonic()
            job.finished.set()

    def _make_room(self, newest: LoadJob) -> None:
        with self._lock:
            held = [key for key, job in self._jobs.items() if job.backend is not None and job is not newest]
            for key in held[: max(0, len(held) - self.capacity + 1)]:
                del self._jobs[key]


def _is_stale(job: LoadJob) -> bool:
    failed = job.error is not None and job.finished_at is not None
    return failed and time.monotonic() - (job.finished_at or 0) > FAILURE_KEPT_SECONDS
