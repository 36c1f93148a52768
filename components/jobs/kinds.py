"""The jobs of one kind: found by key, stopped by those who wait, and kept when they have ended."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from components.jobs.bounded import Bounded, Removed
from components.jobs.job import Job
from components.jobs.lanes import Queue
from components.jobs.states import STARTED_AGAIN, Action, State
from components.jobs.work import PAUSE_SECONDS, IsStopped, ReportProgress, Stopped, Work

RETRY_SECONDS = 20.0  # a failed load or index is remembered so long: a page that is drawn again does not try at once
FAILED_KEPT = 64  # failures that are remembered: they take little memory, and no room from results
log = logging.getLogger(__name__)


class Jobs:
    """The jobs of one kind, by key: never two at once for the same thing, and the last finished ones kept.

    The lock guards what is kept and who waits. Under it a job takes steps, so that nobody joins one that has just been
    stopped; nothing is asked of the queue, of people or of results there.
    """

    def __init__(
        self,
        queue: Queue,
        lane: str,
        keep: int,
        keep_bytes: int | None = None,
        retry_seconds: float = math.inf,
        is_stale: Callable[[Job], bool] = lambda job: False,
    ) -> None:
        """Keeps at most `keep` results, and at most `keep_bytes` of those that have a size (`nbytes`).

        The newest result is kept however large it is. A failed job stays until `forget`, or until `retry_seconds` have
        passed: by default long work never starts again unasked. A finished one that `is_stale` calls out of date is
        run again by the next request.
        """
        self.queue, self._lane = queue, lane
        self._retry_seconds, self._is_stale = retry_seconds, is_stale
        self._keep_bytes = keep_bytes
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Job] = {}
        self._unfinished: dict[Hashable, list[Job]] = {}  # also stopped ones, whose work has not noticed it yet
        self._finished: Bounded[Job] = Bounded(keep if keep_bytes is None else keep_bytes, most=keep)
        self._failed: Bounded[Job] = Bounded(FAILED_KEPT)

    def request(
        self,
        key: Hashable,
        title: str,
        work: Work,
        *,
        person: Hashable = None,
        lane: str | None = None,
        total: int = 0,
        then: Callable[[Job], None] = lambda job: None,
    ) -> Job:
        """The job of this key: finished, waiting, running, or put into its lane now.

        `person` is who waits for it (None: nobody in particular). After an error nothing is started until `forget`, or
        until `retry_seconds` have passed; after a stop nothing is started until `forget`, unless the request comes from a
        person who did not stop it. A job that waits in another lane than `lane` moves there once a person waits for it.
        For `then` see `Queue.put`.
        """
        lane = lane or self._lane
        self.find(key)  # drops a result that is out of date, outside the lock
        removed: Removed = []
        with self._lock:
            before = self._current(key, removed)
            job = before if before is not None and not _starts_again(before, person) else None
            is_new = job is None
            if job is None:
                stopped_by = set() if before is None else before.stopped_by - {person}
                job = self._under_way[key] = Job(title, key, total, owner=self, stopped_by=stopped_by)
                predecessors = tuple(self._unfinished.setdefault(key, []))
                self._unfinished[key].append(job)
                removed += self._failed.pop(key)
            if person is not None and person not in job.stopped_by and not job.finished.is_set():
                job.people.add(person)
        del removed
        # Outside the lock: the lane may give up another kind's job, which takes that kind's lock.
        if is_new:
            self.queue.put(job, _after(predecessors, work) if predecessors else work, lane, then)
        elif person in job.people and job.state is State.WAITING:
            self.queue.move(job, lane)
        return job

    def find(self, key: Hashable) -> Job | None:
        """The job of a key, unless there is none or it is to be run again; starts nothing."""
        removed: Removed = []
        with self._lock:
            job = self._current(key, removed)
        # Outside the lock: files are read to see whether a result is out of date.
        if job is not None and job.state is State.DONE and self._is_stale(job):
            self.drop([job])
            with self._lock:
                job = self._current(key, removed)  # one that was requested in the meantime
        return job

    def _current(self, key: Hashable, removed: Removed) -> Job | None:
        """As `find`, whether out of date or not (the lock is held). What is kept no longer is added to `removed`."""
        if key in self._under_way:
            return self._under_way[key]
        failed = self._failed.find(key)
        if failed is not None:
            age = time.monotonic() - (failed.finished_at or 0.0)
            if failed.is_stopped or age <= self._retry_seconds:
                return failed
            removed += self._failed.pop(key)
        return self._finished.find(key)

    def add(self, key: Hashable, title: str, result: Any) -> Job:
        """Keep a result that exists already as a finished job."""
        job = Job(title, key, owner=self)
        job.finish(result)
        return job

    @property
    def can_be_stopped(self) -> bool:
        """Whether people may stop these jobs: else no page offers it."""
        return True

    def stop(self, job: Job, person: Hashable = None) -> None:
        """Take a person off a job, which ends when nobody who is still there waits for it; without a person, end it."""
        with self._lock:
            if job.finished.is_set():
                return
            if person is not None:
                job.people.discard(person)
                job.stopped_by.add(person)
            others = frozenset(job.people)
        if person is None:
            self._end(job, Action.STOP)
        elif not any(map(self.queue.is_present, others)):
            self._end(job, Action.STOP, others)

    def end_if_left(self, job: Job) -> bool:
        """End a job that people requested and of whom none is still there; a later request starts it again.

        Returns whether it was ended. Work asks this that is of no use once nobody looks at its page.
        """
        people = frozenset(tuple(job.people))
        if not people or any(map(self.queue.is_present, people)):
            return False
        return self._end(job, Action.GIVE_UP, people)

    def _end(self, job: Job, action: Action, left: frozenset[Hashable] | None = None) -> bool:
        """Stop a job or give it up; not if somebody waits for it by now who is not among those who have `left`."""
        with self._lock:  # whoever requests it before is seen here, and whoever does so afterwards gets a new job
            if left is not None and not job.people <= left:
                return False
            job.take(action)
        self.queue.stop(job)
        return True

    def forget(self, job: Job, person: Hashable = None) -> None:
        """Let the next request start a failed or stopped job again, or let a person who left a job wait again.

        If a stopped job is still running, the new one waits until it has ended.
        """
        removed: Removed = []
        with self._lock:
            job.stopped_by.discard(person)
            if self._failed.find(job.key) is job:
                removed += self._failed.pop(job.key)
            job.take(Action.TAKE_BACK)
        del removed

    def finished(self) -> tuple[Job, ...]:
        """The finished jobs that are kept: the failed ones, then the others."""
        with self._lock:
            return (*self._failed.values(), *self._finished.values())

    def under_way(self) -> tuple[Job, ...]:
        """The jobs of this kind that wait or run."""
        with self._lock:
            return tuple(self._under_way.values())

    def drop(self, jobs: Iterable[Job]) -> None:
        """Keep these finished jobs no longer."""
        dropped = tuple(jobs)  # outside the lock: a generator runs code of its own
        removed: Removed = []
        with self._lock:
            for job in dropped:
                for kept in (self._finished, self._failed):
                    if kept.find(job.key) is job:
                        removed += kept.pop(job.key)
        del removed

    def make_room(self, size: int, limit: int) -> None:
        """Keep results, least recently used first, no longer until one of this size fits beside the others within `limit`."""
        with self._lock:
            removed = self._finished.make_room(size, limit)
        del removed

    def end(self, job: Job, result: Any, error: Exception | None) -> None:
        """End a job and move it to the finished ones, at the same moment for all; called by the job."""
        size = self._size(result)
        removed: Removed = []
        with self._lock:
            job.end(result, error)
            unfinished = self._unfinished.get(job.key, [])
            if job in unfinished:
                unfinished.remove(job)
            if not unfinished:
                self._unfinished.pop(job.key, None)
            is_current = self._under_way.get(job.key) is job  # else it was stopped, and another one waits for its end
            if is_current:
                del self._under_way[job.key]
            if job.state is State.DONE:
                if size is not None:
                    removed += self._finished.put(job.key, job, size)
            elif is_current and not job.run_again:
                removed += self._failed.put(job.key, job)
        del removed

    def _size(self, result: Any) -> int | None:
        """How much of the room a result takes; None for one that does not tell it, which is not kept."""
        if self._keep_bytes is None:
            return 1
        try:
            return min(self._keep_bytes, getattr(result, "nbytes", 0))
        except BaseException as problem:  # a file that is gone, a panic: those who wait get the result all the same
            log.warning("the result of a job is not kept: its size is not known", exc_info=problem)
            return None


def _starts_again(job: Job, person: Hashable) -> bool:
    """Whether a request by this person runs a stopped job once more."""
    is_another_person = person is not None and bool(job.stopped_by) and person not in job.stopped_by
    state = job.state
    return state in STARTED_AGAIN or (state in (State.STOPPING, State.STOPPED) and is_another_person)


def _after(predecessors: Sequence[Job], work: Work) -> Work:
    """The work, delayed until stopped jobs have ended: never two at once for the same thing.

    If one of them completed in spite of its stop, its result is taken.
    """

    def wait_and_work(report_progress: ReportProgress, is_stopped: IsStopped) -> Any:
        for job in predecessors:
            while not job.finished.wait(PAUSE_SECONDS):
                if is_stopped():
                    raise Stopped
            if job.state is State.DONE:
                return job.result
        return work(report_progress, is_stopped)

    return wait_and_work
