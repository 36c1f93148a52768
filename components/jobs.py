"""The one core for work that takes time and for results that are kept.

A `Job` is one piece of work: its progress, how to stop it, and its outcome. A `Queue` runs jobs in the background, in
named lanes: each lane has its own workers, so that a short job never waits for a long one. `Jobs` holds the jobs of one
kind by key: everybody who requests the same thing gets the same job, and the last finished ones are kept. A `Cache`
keeps results that are computed at once, in the thread that needs them.

A new kind of work is a function `work(report_progress, is_cancelled)` given to `Jobs.request`. It calls
`report_progress(done, total)` and raises `Cancelled` once `is_cancelled()` is true.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

import cachetools
from cachetools import LRUCache

from components.errors import UserError

ReportProgress = Callable[[int, int], None]  # done, total
IsCancelled = Callable[[], bool]
Work = Callable[[ReportProgress, IsCancelled], Any]
Value = TypeVar("Value")
PAUSE_SECONDS = 0.05  # how often paused work checks whether it may continue
RETRY_SECONDS = 20.0  # a failed load or index is remembered so long: a page that is drawn again does not try at once
GRACE_SECONDS = 10.0  # a lost connection is forgiven for so long
PEOPLE_REMEMBERED = 1_000
FAILED_KEPT = 64  # failures that are remembered: they take little memory, and no room from results
log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Somebody stopped the work. Everything it had handed out before is complete."""


class WorkFailed(Exception):
    """Work ended by something that is no Exception: a panic of a library, or an exit.

    The work ran in a thread of its own, and such an error may end nobody else's: whoever waits gets this one.
    """

    @classmethod
    def of(cls, problem: BaseException) -> Exception:
        """The problem itself if it is an Exception, else what stands for it."""
        # "Type: message", even where the message itself cannot be made.
        return problem if isinstance(problem, Exception) else cls(traceback.format_exception_only(problem)[-1].strip())


def part_of(progress: ReportProgress, before: int, total: int) -> ReportProgress:
    """Reports the progress of one part of some work as progress of the whole.

    `before` was done when the part began, and `total` is that of the whole, both in the units that the part counts.
    """
    return lambda done, _: progress(before + done, total)


class Stoppable(Sequence[Value]):
    """A sequence that raises Cancelled when it is read once `is_cancelled()` is true.

    It stops work inside a library that knows no stop, but reads its input item by item.
    """

    def __init__(self, items: Sequence[Value], is_cancelled: IsCancelled) -> None:
        self._items, self._is_cancelled = items, is_cancelled

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, position: int) -> Value: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[Value]: ...

    def __getitem__(self, position: int | slice) -> Value | Sequence[Value]:
        if self._is_cancelled():
            raise Cancelled
        return self._items[position]


@dataclass(eq=False)
class Job:
    """One piece of work. Any thread may read it; only the queue and its worker write to it."""

    title: str  # what is being done, for people: "Embedding Demo news"
    key: Hashable = None
    total: int = 0  # in the unit of the work: sentences, queries, bytes, ...
    done: int = 0
    started: float | None = None  # time.monotonic(); None while it waits for its turn
    finished_at: float | None = None
    result: Any = None
    error: Exception | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)
    people: set[Hashable] = field(default_factory=set)  # who waits for it; empty for work that nobody requested
    stopped_by: set[Hashable] = field(default_factory=set)  # who pressed Stop; others may continue to wait
    owner: Jobs | None = None  # the jobs of its kind, which keep it, stop it and start it again
    number: int = field(default_factory=itertools.count(1).__next__)  # of this process: no other job ever has it
    run_again: bool = False  # cancelled because too many were waiting, or the stop was taken back
    task: tuple[Work, Callable[[Job], None]] | None = None  # the work and what follows it, until it has started
    _first_report: tuple[float, int] | None = None  # when progress was first reported, and how much was done then

    @property
    def is_cancelled(self) -> bool:
        """Whether it ended by a stop, no matter which error the work then raised."""
        return isinstance(self.error, Cancelled) or (self.error is not None and self.cancel.is_set())

    def is_stopped_for(self, person: Hashable) -> bool:
        """Whether this person no longer waits: the job was stopped, or continues only for others.

        True immediately after a stop, though the work ends only when it next checks; False if it was done before that.
        """
        if self.finished.is_set() and self.error is None:
            return False
        was_stopped = self.is_cancelled or (self.cancel.is_set() and not self.finished.is_set())
        return (was_stopped and not self.run_again) or person in self.stopped_by

    @property
    def fraction(self) -> float | None:
        """The share that is done, 0..1; None while the total is not known."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def per_second(self) -> float:
        """The speed since the first report, in units of `total`, without pauses; 0 before there are two reports.

        What an earlier run had already done comes with the first report and does not count.
        """
        if self._first_report is None:
            return 0.0
        since, done_before = self._first_report
        return max(0, self.done - done_before) / max(1e-6, time.monotonic() - since)

    @property
    def seconds_left(self) -> float | None:
        """Estimated from the speed so far; None while that is not known."""
        speed = self.per_second
        # Read between the worker's two writes, `done` may exceed the previous total.
        return max(0, self.total - self.done) / speed if speed else None

    def report_progress(self, done: int, total: int) -> None:
        if self._first_report is None:
            self._first_report = (time.monotonic(), done)
        self.done, self.total = done, total

    def leave_out(self, seconds: float) -> None:
        """Do not count a pause of this length as time in which the work was done."""
        if self._first_report is not None:
            since, done_before = self._first_report
            self._first_report = (since + seconds, done_before)

    def finish(self, result: Any = None, error: BaseException | None = None) -> None:
        """Set the outcome, hand the job to its owner to keep, and wake everybody who waits."""
        try:
            if error is not None:
                error = WorkFailed.of(error)
                # The frames hold the work's local variables: only the message is kept.
                error = error.with_traceback(None)
                error.__cause__ = error.__context__ = None
            self.result, self.error, self.task = result, error, None
            self.finished_at = time.monotonic()
            if self.owner is not None:
                self.owner.keep(self)
        finally:
            self.finished.set()


@dataclass(frozen=True)
class Lane:
    """How the jobs of one lane are run."""

    workers: int = 1
    newest_first: bool = False  # for work that is out of date once something newer was requested
    most_waiting: int | None = None  # beyond it the oldest waiting jobs are cancelled
    gives_way: bool = False  # while nobody waits for its job, it pauses as long as other work is running
    outlives_process: bool = False  # its work is done by other processes, which go on when this one ends
    niceness: int = 0  # added to that of the process (Unix): a page that is drawn gets the processor before long work


class Queue:
    """Runs jobs in the background, in named lanes. Threads start when there is work, and end when there is none."""

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        is_busy: Callable[[], bool] = lambda: False,
        is_present: Callable[[Hashable], bool] = lambda person: True,
    ) -> None:
        """`is_busy` says whether people wait for work outside the queue, for which lanes that give way pause;
        `is_present` says whether a person who requested a job is still there."""
        self._lanes = dict(lanes)
        self._is_busy, self.is_present = is_busy, is_present
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Job]] = {name: [] for name in lanes}  # in the order in which they will be run
        self._working: dict[str, list[Job]] = {name: [] for name in lanes}
        self._threads: dict[str, int] = dict.fromkeys(lanes, 0)
        self._has_failed_to_start = False  # the last thread that was to be started
        self._is_closed = False

    def put(self, job: Job, work: Work, lane: str, then: Callable[[Job], None] = lambda job: None) -> None:
        """Run a job when its turn comes.

        `then(job)` is called in the worker's thread after those who wait have the result; not after an error.
        """
        job.task = (work, then)
        with self._lock:
            was_stopped = job.cancel.is_set() or self._is_closed  # before it could be put
            ended = [] if was_stopped else self._line_up(job, lane)
        if was_stopped:
            job.finish(error=Cancelled())
        self._end(ended)

    def can_start_threads(self) -> bool:
        """Whether work can begin. After a thread that could not be started, another one is tried, which does nothing."""
        if self._has_failed_to_start:
            self._has_failed_to_start = not _started(threading.Thread(name="jobs: a trial", daemon=True))
        return not self._has_failed_to_start

    def close(self, seconds: float) -> bool:
        """Stop all jobs and take no more, before the process ends. Returns whether their work has ended within so many seconds.

        A thread that still computes when Python ends can abort the process: it is ended while it is in a library's code.
        Lanes whose work is done by other processes are left as they are.
        """
        with self._lock:
            self._is_closed = True
            names = [name for name, lane in self._lanes.items() if not lane.outlives_process]
            jobs = [job for name in names for job in (*self._waiting[name], *self._working[name])]
        for job in jobs:
            self.cancel(job)
        end = time.monotonic() + seconds
        while any(self._threads[name] for name in names):
            if time.monotonic() >= end:
                return False
            time.sleep(PAUSE_SECONDS)
        return True

    def works_on_one(self) -> bool:
        """Whether at most one job is at work: what a job asks that measures a time, which others would lengthen."""
        return sum(job.started is not None for job in self.under_way()) <= 1

    def put_first(self, job: Job) -> None:
        """Make a waiting job the next of its lane."""
        with self._lock:
            lane = self._take_out(job)
            if lane is not None:
                self._waiting[lane].insert(0, job)

    def move(self, job: Job, lane: str) -> None:
        """Let a job that waits in another lane wait in this one, behind the jobs already there."""
        with self._lock:
            moves = job not in self._waiting[lane] and self._take_out(job) is not None
            ended = self._line_up(job, lane) if moves else []
        self._end(ended)

    def cancel(self, job: Job) -> None:
        """End a job: at once if it is waiting, when it next checks if it is running."""
        job.cancel.set()
        with self._lock:
            was_waiting = self._take_out(job) is not None
        if was_waiting:
            job.finish(error=Cancelled())

    def under_way(self) -> tuple[Job, ...]:
        """The running jobs, then the waiting ones in the order in which they will be run within their lane."""
        with self._lock:
            working = [job for jobs in self._working.values() for job in jobs if not job.finished.is_set()]
            return (*working, *(job for line in self._waiting.values() for job in line))

    def counts(self) -> dict[str, tuple[int, int]]:
        """By lane: how many jobs are at work, and how many wait."""
        with self._lock:
            working = {name: sum(not job.finished.is_set() for job in jobs) for name, jobs in self._working.items()}
            return {name: (number, len(self._waiting[name])) for name, number in working.items()}

    def before(self, job: Job) -> tuple[Job, ...]:
        """The jobs that come before a waiting one: those running in its lane, then those with an earlier turn."""
        with self._lock:
            for lane, line in self._waiting.items():
                if job in line:
                    return (*self._working[lane], *line[: line.index(job)])
        return ()

    def _take_out(self, job: Job) -> str | None:
        """Remove a job from the line it waits in; the name of its lane, or None (the lock is held)."""
        for lane, line in self._waiting.items():
            if job in line:
                line.remove(job)
                return lane
        return None

    def _line_up(self, job: Job, name: str) -> list[tuple[Job, Exception]]:
        """Add a job to a lane's line (the lock is held).

        Returns the jobs that end by this, and why: the oldest ones where there are too many, and those for which no thread
        can be started.
        """
        line, lane = self._waiting[name], self._lanes[name]
        line.insert(0 if lane.newest_first else len(line), job)
        ended: list[tuple[Job, Exception]] = []
        while lane.most_waiting is not None and len(line) > lane.most_waiting:
            ended.append((line.pop(-1 if lane.newest_first else 0), Cancelled()))
        if self._threads[name] < lane.workers:
            is_started = _started(threading.Thread(target=self._work, args=(name,), name=f"jobs: {name}", daemon=True))
            self._has_failed_to_start = not is_started
            if is_started:
                self._threads[name] += 1
            elif not self._threads[name]:  # else a thread that is at work takes the job when its turn comes
                ended += [(waiting, _no_thread()) for waiting in line]
                line.clear()
        return ended

    @staticmethod
    def _end(ended: list[tuple[Job, Exception]]) -> None:
        for job, reason in ended:
            job.run_again = isinstance(reason, Cancelled)
            job.finish(error=reason)

    def _work(self, name: str) -> None:
        if self._lanes[name].niceness and sys.platform == "linux":  # where a thread may have a niceness of its own
            niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + self._lanes[name].niceness
            with contextlib.suppress(OSError):  # where it is not allowed, all work has the same priority
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(niceness, 19))
        while True:
            with self._lock:
                if not self._waiting[name]:
                    self._threads[name] -= 1
                    return
                job = self._waiting[name].pop(0)
                self._working[name].append(job)
            try:
                self._run(job, name)
            except BaseException as problem:  # raised by what follows the work: the lane continues
                log.warning("what follows a job of the lane %r failed", name, exc_info=problem)
            with self._lock:
                self._working[name].remove(job)
            del job  # while it waits for more, a worker holds nothing

    def _run(self, job: Job, name: str) -> None:
        lane = self._lanes[name]

        def is_cancelled() -> bool:
            while lane.gives_way and not self._is_awaited(job) and not job.cancel.is_set() and self._others_work():
                paused_at = time.monotonic()
                job.cancel.wait(PAUSE_SECONDS)
                job.leave_out(time.monotonic() - paused_at)
            return job.cancel.is_set()

        assert job.task is not None  # it has one from `put` until `finish`
        work, then = job.task
        try:
            if is_cancelled():
                raise Cancelled
            job.started = time.monotonic()
            result = work(job.report_progress, is_cancelled)
        except BaseException as problem:
            if not isinstance(problem, (Cancelled, UserError)):  # those are no fault of the server
                # Not its title, which can hold the name of a person's file.
                log.warning("a job of the lane %r failed", name, exc_info=problem)
            job.finish(error=problem)
        else:
            job.finish(result)
            then(job)

    def _others_work(self) -> bool:
        with self._lock:
            others_work = any(
                self._is_awaited(job) or not self._lanes[name].gives_way
                for name, jobs in self._working.items()
                for job in jobs
            )
        return others_work or self._is_busy()

    def _is_awaited(self, job: Job) -> bool:
        """Whether somebody who is still there waits for a job: people also leave without Stop."""
        return any(map(self.is_present, tuple(job.people)))


def _started(thread: threading.Thread) -> bool:
    """Start a thread. False where the system allows the process no more threads, or has no memory for one."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as problem:
        log.warning("a thread for work in the background could not be started", exc_info=problem)
        return False
    return True


def _no_thread() -> UserError:
    return UserError(
        "The server could not start this work: the system allows it no more threads.",
        "Work needs a thread of its own, and some memory for it.",
        "Try again in a moment. If it happens again, the operator has to raise the limit of processes, or free memory.",
    )


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
        if self._is_connected(person):
            self.see(person)
            return True
        with self._lock:
            last_seen = self._last_seen.get(person)
        return last_seen is not None and time.monotonic() - last_seen <= self._grace_seconds


class Jobs:
    """The jobs of one kind, by key: never two at once for the same thing, and the last finished ones kept."""

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
        self._lock = threading.RLock()
        self._under_way: dict[Hashable, Job] = {}
        self._unfinished: dict[Hashable, list[Job]] = {}  # also stopped ones, whose work has not noticed it yet
        self._most = keep
        self._finished: LRUCache[Hashable, Job] = (
            LRUCache(keep)
            if keep_bytes is None
            else LRUCache(keep_bytes, lambda job: min(keep_bytes, getattr(job.result, "nbytes", 0)))
        )
        self._failed: LRUCache[Hashable, Job] = LRUCache(FAILED_KEPT)

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
        with self._lock:
            before = self.find(key)
            job = before if before is not None and not _starts_again(before, person) else None
            is_new = job is None
            if job is None:
                stopped_by = set() if before is None else before.stopped_by - {person}
                job = self._under_way[key] = Job(title, key, total, owner=self, stopped_by=stopped_by)
                predecessors = tuple(self._unfinished.setdefault(key, []))
                self._unfinished[key].append(job)
                self._failed.pop(key, None)
            if person is not None and person not in job.stopped_by and not job.finished.is_set():
                job.people.add(person)
        # Outside the lock: the lane may drop another kind's job, which takes that kind's lock.
        if is_new:
            self.queue.put(job, _after(predecessors, work) if predecessors else work, lane, then)
        elif person in job.people and job.started is None:
            self.queue.move(job, lane)
        return job

    def find(self, key: Hashable) -> Job | None:
        """The job of a key, unless there is none or it is to be run again; starts nothing."""
        with self._lock:
            if key in self._under_way:
                return self._under_way[key]
            failed = self._failed.get(key)
            if failed is not None:
                age = time.monotonic() - (failed.finished_at or 0.0)
                if failed.is_cancelled or age <= self._retry_seconds:
                    return failed
                del self._failed[key]
            job = self._finished.get(key)
            if job is not None and self._is_stale(job):
                del self._finished[key]
                return None
            return job

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
                if any(self.queue.is_present(other) for other in job.people):
                    return
            job.cancel.set()  # before the lock is released: whoever requests it from now on gets a new job
        self.queue.cancel(job)

    def end_if_left(self, job: Job) -> bool:
        """End a job that people requested and of whom none is still there; a later request starts it again.

        Returns whether it was ended. Work asks this that is of no use once nobody looks at its page.
        """
        people = tuple(job.people)
        if not people or any(map(self.queue.is_present, people)):
            return False
        job.run_again = True
        self.stop(job)
        return True

    def forget(self, job: Job, person: Hashable = None) -> None:
        """Let the next request start a failed or stopped job again, or let a person who left a job wait again.

        If a stopped job is still running, the new one waits until it has ended.
        """
        with self._lock:
            job.stopped_by.discard(person)
            if self._failed.get(job.key) is job:
                del self._failed[job.key]
            job.run_again = job.run_again or job.cancel.is_set()

    def finished(self) -> tuple[Job, ...]:
        """The finished jobs that are kept: the failed ones, then the others."""
        with self._lock:
            # `values()` of an LRUCache would mark each job as used.
            kept = [cachetools.Cache.__getitem__(self._finished, key) for key in self._finished]
            return (*self._failed.values(), *kept)

    def under_way(self) -> tuple[Job, ...]:
        """The jobs of this kind that wait or run."""
        with self._lock:
            return tuple(self._under_way.values())

    def drop(self, jobs: Iterable[Job]) -> None:
        """Keep these finished jobs no longer."""
        with self._lock:
            for job in jobs:
                for kept in (self._finished, self._failed):
                    if kept.get(job.key) is job:
                        del kept[job.key]

    def keep(self, job: Job) -> None:
        """Move a job that has ended to the finished ones; called by the job, before those who wait are woken."""
        with self._lock:
            unfinished = self._unfinished.get(job.key, [])
            if job in unfinished:
                unfinished.remove(job)
            if not unfinished:
                self._unfinished.pop(job.key, None)
            is_current = self._under_way.get(job.key) is job  # else it was stopped, and another one waits for its end
            if is_current:
                del self._under_way[job.key]
            if job.error is None:
                self._finished[job.key] = job
                while len(self._finished) > self._most:
                    self._finished.popitem()
            elif is_current and not job.run_again:
                self._failed[job.key] = job


def _starts_again(job: Job, person: Hashable) -> bool:
    """Whether a request by this person runs a stopped job once more."""
    is_done = job.finished.is_set() and job.error is None
    was_stopped = job.is_cancelled or job.cancel.is_set()
    is_another_person = person is not None and bool(job.stopped_by) and person not in job.stopped_by
    return not is_done and was_stopped and (job.run_again or is_another_person)


def _after(predecessors: Sequence[Job], work: Work) -> Work:
    """The work, delayed until stopped jobs have ended: never two at once for the same thing.

    If one of them completed in spite of its stop, its result is taken.
    """

    def wait_and_work(report_progress: ReportProgress, is_cancelled: IsCancelled) -> Any:
        for job in predecessors:
            while not job.finished.wait(PAUSE_SECONDS):
                if is_cancelled():
                    raise Cancelled
            if job.error is None:
                return job.result
        return work(report_progress, is_cancelled)

    return wait_and_work


class Cache(Generic[Value]):
    """Results by key, the least recently used removed first; each computed once for all threads that need it."""

    def __init__(self, limit: int, size: Callable[[Value], int] = lambda value: 1) -> None:
        """`limit` counts entries, or the unit of `size`: bytes, for example. Sizes must not change."""
        self.limit, self._size = limit, size
        self._lock = threading.RLock()
        self._measured = 0  # the size of the value that is being kept: measured outside the lock, which all wait for
        self._kept: LRUCache[Hashable, Value] = LRUCache(limit, lambda value: self._measured)
        self._under_way: dict[Hashable, Future[Value]] = {}

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The result of a key: kept, computed by another thread, or computed now.

        An exception of `compute` reaches everybody who waits for it, and nothing is kept; what is no Exception ends
        only the thread that computes, and reaches the others as WorkFailed. A result larger than the whole cache is
        returned and not kept.
        """
        with self._lock:
            if key in self._kept:
                return self._kept[key]
            theirs = self._under_way.get(key)
            if theirs is None:
                ours = self._under_way[key] = Future()
        if theirs is not None:
            return theirs.result()
        try:
            value = compute()
            size = self._size(value)
            with self._lock:
                self._put(key, value, size)
                del self._under_way[key]
        except BaseException as problem:
            with self._lock:
                self._under_way.pop(key, None)
            ours.set_exception(WorkFailed.of(problem))
            raise
        ours.set_result(value)
        return value

    def find(self, key: Hashable) -> Value | None:
        """The result of a key if it is kept; computes nothing."""
        with self._lock:
            return self._kept.get(key)

    def is_known(self, key: Hashable) -> bool:
        """Whether the result is kept, or being computed by another thread."""
        with self._lock:
            return key in self._kept or key in self._under_way

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a result, unless it is larger than the whole cache."""
        size = self._size(value)
        with self._lock:
            self._put(key, value, size)

    def _put(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a result of this size (the lock is held)."""
        self._kept.pop(key, None)  # an older result must not stay where the new one does not fit
        if size <= self.limit:
            self._measured = size
            self._kept[key] = value

    def drop(self, is_dropped: Callable[[Hashable], bool]) -> None:
        """Forget the results whose keys are dropped."""
        with self._lock:
            for key in [key for key in self._kept if is_dropped(key)]:
                del self._kept[key]

    def is_computing(self) -> bool:
        """Whether a thread is computing a result now."""
        with self._lock:
            return bool(self._under_way)

    def clear(self) -> None:
        """Forget all results; running computations are not disturbed."""
        with self._lock:
            self._kept.clear()

    @property
    def used(self) -> int:
        """The size of the kept results, in the unit of `limit`."""
        with self._lock:
            return int(self._kept.currsize)

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)


class CachePart(Generic[Value]):
    """The results of one kind in a cache whose room several kinds share: a kind that is not used takes none."""

    def __init__(self, cache: Cache[Any], kind: str) -> None:
        self.kind, self._cache = kind, cache

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """As `Cache.get`."""
        result: Value = self._cache.get((self.kind, key), compute)
        return result

    def find(self, key: Hashable) -> Value | None:
        """As `Cache.find`."""
        result: Value | None = self._cache.find((self.kind, key))
        return result

    def put(self, key: Hashable, value: Value) -> None:
        """As `Cache.put`."""
        self._cache.put((self.kind, key), value)

    def clear(self) -> None:
        """Forget the results of this kind."""
        self._cache.drop(lambda key: isinstance(key, tuple) and key[0] == self.kind)
