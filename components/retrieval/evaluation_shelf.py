"""Long evaluations of many sessions: one after the other in the background, once for everybody who asks for the same.

One worker: two evaluations at a time would take as long together, and both people would wait for both. Results are
small (ranks and correlations); the last ones are kept.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from components.model.embedding import EmbeddingCancelled
from components.retrieval.ranks import EvaluationCancelled

KEPT = 64
Tell = Callable[[int, int], None]
Cancelled = Callable[[], bool]
Work = Callable[[Tell, Cancelled], Any]
log = logging.getLogger(__name__)


@dataclass(eq=False)
class EvaluationJob:
    """One evaluation. Read it from any thread; only the worker writes it."""

    title: str
    done: int = 0
    total: int = 0
    started: float | None = None  # None while others are before it
    result: Any = None
    error: Exception | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)

    @property
    def cancelled(self) -> bool:
        return isinstance(self.error, EvaluationCancelled | EmbeddingCancelled)

    @property
    def seconds_left(self) -> float | None:
        """By the pace so far; None before anything is done."""
        if self.started is None or not self.done:
            return None
        # Read between the worker's two writes, `done` may be beyond a total of before.
        return (time.monotonic() - self.started) * max(0, self.total - self.done) / self.done


class EvaluationShelf:
    """Runs evaluations on request and keeps their results."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._jobs: OrderedDict[tuple[object, ...], EvaluationJob] = OrderedDict()
        self._line: deque[tuple[EvaluationJob, Work]] = deque()
        self._working = False

    def request(self, key: tuple[object, ...], title: str, work: Work) -> EvaluationJob:
        """The job of this key: finished, waiting, under way, or put in the line now.

        `work(tell, cancelled)` returns the result, calls `tell(done, total)`, and raises EvaluationCancelled or
        EmbeddingCancelled once `cancelled()` is true. After an error or a cancel nothing is started until `forget`.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = EvaluationJob(title)
                self._line.append((job, work))
                finished = [at for at, one in self._jobs.items() if one.finished.is_set()]
                for old in finished[: max(0, len(self._jobs) - self._capacity)]:
                    del self._jobs[old]
                if not self._working:
                    self._working = True
                    threading.Thread(target=self._work, name="evaluations", daemon=True).start()
            self._jobs.move_to_end(key)
            return job

    def forget(self, job: EvaluationJob) -> None:
        """Drop a failed or cancelled job, so that the next request starts it again."""
        with self._lock:
            for key in [key for key, one in self._jobs.items() if one is job and one.error is not None]:
                del self._jobs[key]

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._line:
                    self._working = False
                    return
                job, work = self._line.popleft()
            self._run(job, work)
            del job, work  # while it waits it holds nothing

    @staticmethod
    def _run(job: EvaluationJob, work: Work) -> None:
        def tell(done: int, total: int) -> None:
            job.done, job.total = done, total

        try:
            if job.cancel.is_set():
                raise EvaluationCancelled
            job.started = time.monotonic()
            job.result = work(tell, job.cancel.is_set)
        except (EvaluationCancelled, EmbeddingCancelled) as stopped:
            job.error = stopped.with_traceback(None)
            stopped.__cause__ = stopped.__context__ = None  # their frames would hold the work
        except Exception as problem:
            log.warning("%s failed", job.title, exc_info=problem)
            job.error = problem.with_traceback(None)
            problem.__cause__ = problem.__context__ = None
        finally:
            job.finished.set()
