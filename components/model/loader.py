"""Models that are loaded or on their way, shared by all sessions.

Loading runs in a thread of its own, once for everybody who asks; whoever waits reads the job's progress and
may cancel it. At most `capacity` models are kept, the least recently used goes first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import ModelError
from components.model.catalog import ModelSpec
from components.model.files.sources import folder_stamp
from components.model.store import TraceStore

if TYPE_CHECKING:
    from components.model.backend import Backend

FAILURE_KEPT_SECONDS = 20.0
log = logging.getLogger(__name__)


@dataclass
class LoadJob:
    """One model's way into memory. Read it from any thread; only its own thread writes it."""

    spec: ModelSpec
    done_bytes: int = 0
    total_bytes: int = 0
    backend: Backend | None = None
    error: Exception | None = None
    stamp: tuple[tuple[str, int, int], ...] = ()  # of a folder's files when they were read
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

    def __init__(
        self, store: TraceStore, capacity: int = 3, after_load: Callable[[Backend], None] = lambda _: None
    ) -> None:
        """`after_load` runs in the loading thread, when those who wait for the model have it already."""
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
            for key in [key for key, job in self._jobs.items() if _is_stale(job)]:
                del self._jobs[key]
            job = self._jobs.get(spec.key)
            if job is None:
                job = LoadJob(spec)
                self._jobs[spec.key] = job
                threading.Thread(target=self._work, args=(job,), name=f"load {spec.key}", daemon=True).start()
            self._jobs.move_to_end(spec.key)
            return job

    def find(self, key: str) -> LoadJob | None:
        """The job of a model that somebody asked for, if there is one; starts nothing."""
        with self._lock:
            return self._jobs.get(key)

    def forget(self, key: str) -> None:
        """Drop a failed job, so that the next request tries again. Loaded models stay."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.error is not None:
                del self._jobs[key]

    def _work(self, job: LoadJob) -> None:
        def progress(done: int, total: int) -> None:
            job.done_bytes, job.total_bytes = done, total

        try:
            # Imported here: this is the first import of torch, and it happens off the page's path.
            from components.model.backend import Backend

            job.stamp = folder_stamp(job.spec)
            backend = Backend.load(job.spec, self.store, progress=progress, cancelled=job.cancel.is_set)
            job.backend = backend
            self._make_room(job)
        except Exception as problem:
            log.warning("loading %s failed", job.spec.key, exc_info=problem)
            # Its frames hold all that was loaded until then: the message is kept, the rest let go.
            job.error = problem.with_traceback(None)
            problem.__cause__ = problem.__context__ = None
            return
        finally:
            job.finished_at = time.monotonic()
            job.finished.set()
        self._after_load(backend)

    def _make_room(self, newest: LoadJob) -> None:
        with self._lock:
            held = [key for key, job in self._jobs.items() if job.backend is not None and job is not newest]
            for key in held[: max(0, len(held) - self.capacity + 1)]:
                del self._jobs[key]


def _is_stale(job: LoadJob) -> bool:
    """A failure that may be tried again, or a folder that was saved anew. A cancelled download stays cancelled."""
    if job.finished_at is None:
        return False
    if job.error is None:
        return job.stamp != folder_stamp(job.spec) and Path(job.spec.key).is_dir()
    if isinstance(job.error, ModelError) and job.error.kind == "cancelled":
        return False
    return time.monotonic() - job.finished_at > FAILURE_KEPT_SECONDS
