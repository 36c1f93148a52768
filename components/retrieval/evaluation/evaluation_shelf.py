"""Long evaluations of many sessions: one after the other in the background, once for everybody who asks for the same.

Two lines with a worker each. In the long one stands whatever embeds, ranks or takes times: two of these at a time would
take as long together, and both people would wait for both. The short one is for statistics over ranks that are there.
Results are kept up to a number and to bytes, as far as they say how large they are (`nbytes`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from components.jobs import Cancelled, Work

KEPT, KEPT_BYTES = 64, 512 << 20
log = logging.getLogger(__name__)


@dataclass(eq=False)
class EvaluationJob:
    """One evaluation. Read it from any thread; only the worker writes it."""

    title: str
    done: int = 0
    total: int = 0
    started: float | None = None  # None while others are before it
    result: Any = None
    error: BaseException | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)

    @property
    def cancelled(self) -> bool:
        return isinstance(self.error, Cancelled)

    @property
    def seconds_left(self) -> float | None:
        """By the pace so far; None before anything is done."""
        if self.started is None or not self.done:
            return None
        # Read between the worker's two writes, `done` may be beyond a total of before.
        return (time.monotonic() - self.started) * max(0, self.total - self.done) / self.done


class EvaluationShelf:
    """Runs evaluations on request and keeps their results."""

    def __init__(self, capacity: int = KEPT, limit: int = KEPT_BYTES) -> None:
        self._capacity, self._limit = capacity, limit
        self._lock = threading.Lock()
        self._jobs: OrderedDict[tuple[object, ...], EvaluationJob] = OrderedDict()
        self._lines: dict[bool, list[tuple[EvaluationJob, Work]]] = {True: [], False: []}  # is short: first come first
        self._working: set[bool] = set()

    def request(self, key: tuple[object, ...], title: str, work: Work, short: bool = False) -> EvaluationJob:
        """The job of this key: finished, waiting, under way, or put in its line now.

        `work(tell, cancelled)` returns the result, calls `tell(done, total)`, and raises Cancelled once `cancelled()` is
        true. After an error or a cancel nothing is started until `forget`.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = EvaluationJob(title)
                self._lines[short].append((job, work))
                self._make_room()
                if short not in self._working:
                    self._working.add(short)
                    threading.Thread(target=self._work, args=(short,), name="evaluations", daemon=True).start()
            self._jobs.move_to_end(key)
            return job

    def stop(self, job: EvaluationJob) -> None:
        """Cancel a job: at once where it waits, at its next look where it is under way."""
        with self._lock:
            job.cancel.set()
            for line in self._lines.values():
                if any(waiting is job for waiting, _ in line):
                    line[:] = [entry for entry in line if entry[0] is not job]
                    job.error = Cancelled()
                    job.finished.set()

    def forget(self, job: EvaluationJob) -> None:
        """Drop a failed or cancelled job, so that the next request starts it again."""
        with self._lock:
            for key in [key for key, one in self._jobs.items() if one is job and one.error is not None]:
                del self._jobs[key]

    def _make_room(self) -> None:
        """Drop finished jobs, the least recently used first, until the rest fits (the lock is held)."""
        finished = [at for at, one in self._jobs.items() if one.finished.is_set()]
        size = sum(_bytes_of(self._jobs[at]) for at in finished)
        while finished and (len(self._jobs) > self._capacity or size > self._limit):
            size -= _bytes_of(self._jobs.pop(finished.pop(0)))

    def _work(self, short: bool) -> None:
        try:
            while True:
                with self._lock:
                    line = self._lines[short]
                    if not line:
                        self._working.discard(short)
                        return
                    job, work = line.pop(0)
                self._run(job, work)
                del job, work  # while it waits it holds nothing
        except BaseException:
            with self._lock:
                self._working.discard(short)  # the next request starts another worker
            raise

    @staticmethod
    def _run(job: EvaluationJob, work: Work) -> None:
        def tell(done: int, total: int) -> None:
            job.done, job.total = done, total

        try:
            if job.cancel.is_set():
                raise Cancelled
            job.started = time.monotonic()
            job.result = work(tell, job.cancel.is_set)
        except Cancelled as stopped:
            job.error = stopped.with_traceback(None)
            stopped.__cause__ = stopped.__context__ = None  # their frames would hold the work
        except BaseException as problem:
            log.warning("%s failed", job.title, exc_info=problem)
            job.error = problem.with_traceback(None)
            problem.__cause__ = problem.__context__ = None
            if not isinstance(problem, Exception):
                raise
        finally:
            job.finished.set()


def _bytes_of(job: EvaluationJob) -> int:
    return int(getattr(job.result, "nbytes", 0))
