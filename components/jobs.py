"""The one core for work that takes time and for results that are kept.

A `Job` is one piece of work: its progress, how to stop it, and what came of it. A `Queue` runs jobs in the background, in
named lanes: each lane has its own workers, so that a short piece of work never waits for a long one. `Jobs` holds the jobs
of one kind by key: whoever asks for the same thing gets the same job, and the last finished ones are kept. A `Cache` keeps
results that are computed at once, in the thread that asks.

A new kind of work is a function `work(report_progress, is_cancelled)` given to `Jobs.request`. It calls
`report_progress(done, total)` and raises `Cancelled` once `is_cancelled()` is true.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from components.errors import UserError

ReportProgress = Callable[[int, int], None]  # done, total
IsCancelled = Callable[[], bool]
Work = Callable[[ReportProgress, IsCancelled], Any]
Value = TypeVar("Value")
PAUSE_SECONDS = 0.05  # how often work that gives way looks whether it may go on
FAILED_KEPT = 64  # failures that are remembered: they take little memory, and no room from results
log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Somebody stopped the work. Whatever it had handed out before is complete."""


@dataclass(eq=False)
class Job:
    """One piece of work. Any thread may read it; only the queue and its worker write to it."""

    title: str  # what is being done, for people: "Embedding Demo news"
    key: Hashable = None
    total: int = 0  # in the unit of the work: sentences, queries, bytes, ...
    done: int = 0
    started: float | None = None  # time.monotonic(); None while others are before it
    finished_at: float | None = None
    result: Any = None
    error: BaseException | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)
    people: set[Hashable] = field(default_factory=set)  # who waits for it; empty for work that nobody asked for
    left: set[Hashable] = field(default_factory=set)  # who pressed Stop; others may go on waiting
    owner: Jobs | None = None  # the jobs of its kind, which stop it and start it again
    run_again: bool = False  # cancelled, but by a lane with too many waiting, or the stop was taken back
    _first_report: tuple[float, int] | None = None  # when progress was first reported, and how much was done then

    @property
    def is_cancelled(self) -> bool:
        """Whether it ended by a stop, whatever error the work ended with then."""
        return isinstance(self.error, Cancelled) or (self.error is not None and self.cancel.is_set())

    def is_stopped_for(self, person: Hashable) -> bool:
        """Whether this person waits no longer: the job was stopped, or goes on for others only.

        True at once after a stop, though the work may end only at its next look; False when it was done before that.
        """
        if self.finished.is_set() and self.error is None:
            return False
        was_stopped = self.is_cancelled or (self.cancel.is_set() and not self.finished.is_set())
        return (was_stopped and not self.run_again) or person in self.left

    @property
    def fraction(self) -> float | None:
        """The share that is done, 0..1; None while the total is not known."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def per_second(self) -> float:
        """The pace since the first report, in units of `total`; 0 before there are two reports.

        What an earlier run had done already comes with the first report, and does not count.
        """
        if self._first_report is None:
            return 0.0
        since, done_before = self._first_report
        return max(0, self.done - done_before) / max(1e-6, time.monotonic() - since)

    @property
    def seconds_left(self) -> float | None:
        """By the pace so far; None while that is not known."""
        pace = self.per_second
        # Read between the worker's two writes, `done` may be beyond the total of before.
        return max(0, self.total - self.done) / pace if pace else None

    def report_progress(self, done: int, total: int) -> None:
        if self._first_report is None:
            self._first_report = (time.monotonic(), done)
        self.done, self.total = done, total

    def finish(
        self,
        result: Any = None,
        error: BaseException | None = None,
        before_waking: Callable[[Job], None] = lambda job: None,
    ) -> None:
        """Set the outcome and wake everybody who waits."""
        if error is not None:
            # Its frames hold whatever the work had in its hands: the message is kept, the rest is released.
            error = error.with_traceback(None)
            error.__cause__ = error.__context__ = None
        self.result, self.error = result, error
        self.finished_at = time.monotonic()
        try:
            before_waking(self)
        finally:
            self.finished.set()


@dataclass(eq=False)
class _Entry:
    """A job in the queue, with what is to be done."""

    job: Job
    work: Work
    before_waking: Callable[[Job], None]
    then: Callable[[Job], None]

    def end(self, result: Any = None, error: BaseException | None = None) -> None:
        self.job.finish(result, error, self.before_waking)


@dataclass(frozen=True)
class Lane:
    """How the jobs of one lane are run."""

    workers: int = 1
    newest_first: bool = False  # for work that is out of date once something newer was asked for
    most_waiting: int | None = None  # beyond it the oldest waiting jobs are cancelled
    gives_way: bool = False  # pauses, while nobody waits for it, as long as anything else is at work


class Queue:
    """Runs jobs in the background, in named lanes. Threads start when there is work, and end when there is none."""

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        is_busy: Callable[[], bool] = lambda: False,
        is_present: Callable[[Hashable], bool] = lambda person: True,
    ) -> None:
        """`is_busy` says whether people are waiting for work outside the queue, for which lanes that give way pause;
        `is_present` whether a person who asked for a job is still there."""
        self._lanes = dict(lanes)
        self._is_busy, self.is_present = is_busy, is_present
        self._lock = threading.Lock()
        self._waiting: dict[str, list[_Entry]] = {name: [] for name in lanes}
        self._working: dict[str, list[Job]] = {name: [] for name in lanes}
        self._threads: dict[str, int] = dict.fromkeys(lanes, 0)

    def put(
        self,
        job: Job,
        work: Work,
        lane: str,
        before_waking: Callable[[Job], None] = lambda job: None,
        then: Callable[[Job], None] = lambda job: None,
    ) -> None:
        """Run a job when its turn comes.

        `before_waking(job)` is called when it has ended, before those who wait are woken. `then(job)` is called in the
        worker's thread when they have its result; not after an error.
        """
        entry = _Entry(job, work, before_waking, then)
        with self._lock:
            is_stopped = job.cancel.is_set()  # before it could be put
            dropped = [] if is_stopped else self._line_up(entry, lane)
        if is_stopped:
            entry.end(error=Cancelled())
        self._drop(dropped)

    def put_first(self, job: Job) -> None:
        """Make a waiting job the next of its lane."""
        with self._lock:
            for name, line in self._waiting.items():
                for entry in [entry for entry in line if entry.job is job]:
                    line.remove(entry)
                    line.insert(len(line) if self._lanes[name].newest_first else 0, entry)

    def move(self, job: Job, lane: str) -> None:
        """Let a job that waits in another lane wait in this one, behind those that are there."""
        dropped: list[_Entry] = []
        with self._lock:
            for line in (line for name, line in self._waiting.items() if name != lane):
                for entry in [entry for entry in line if entry.job is job]:
                    line.remove(entry)
                    dropped += self._line_up(entry, lane)
        self._drop(dropped)

    def cancel(self, job: Job) -> None:
        """End a job: at once where it waits, at its next look where it is at work."""
        job.cancel.set()
        with self._lock:
            entries = [entry for line in self._waiting.values() for entry in line if entry.job is job]
            for line in self._waiting.values():
                line[:] = [entry for entry in line if entry.job is not job]
        for entry in entries:
            entry.end(error=Cancelled())

    def under_way(self) -> tuple[Job, ...]:
        """The jobs at work, then the waiting ones in the order in which they will be run within their lane."""
        with self._lock:
            working = [job for jobs in self._working.values() for job in jobs if not job.finished.is_set()]
            waiting: list[Job] = []
            for name, line in self._waiting.items():
                jobs = [entry.job for entry in line]
                waiting += jobs[::-1] if self._lanes[name].newest_first else jobs
        return (*working, *waiting)

    def before(self, job: Job) -> tuple[Job, ...]:
        """The jobs that come before one that waits: those at work in its lane, then those of an earlier turn."""
        with self._lock:
            for name, line in self._waiting.items():
                jobs = [entry.job for entry in line]
                if job in jobs:
                    in_order = jobs[::-1] if self._lanes[name].newest_first else jobs
                    return (*self._working[name], *in_order[: in_order.index(job)])
        return ()

    def _line_up(self, entry: _Entry, name: str) -> list[_Entry]:
        """Put an entry into a lane's line, and take out those that are too many for it (the lock is held)."""
        line, lane = self._waiting[name], self._lanes[name]
        line.append(entry)
        too_many = 0 if lane.most_waiting is None else max(0, len(line) - lane.most_waiting)
        dropped = line[:too_many]
        del line[:too_many]
        if self._threads[name] < lane.workers:
            self._threads[name] += 1
            threading.Thread(target=self._work, args=(name,), name=f"jobs: {name}", daemon=True).start()
        return dropped

    @staticmethod
    def _drop(entries: list[_Entry]) -> None:
        for entry in entries:
            entry.job.run_again = True
            entry.end(error=Cancelled())

    def _work(self, name: str) -> None:
        lane = self._lanes[name]
        while True:
            with self._lock:
                line = self._waiting[name]
                if not line:
                    self._threads[name] -= 1
                    return
                entry = line.pop(-1 if lane.newest_first else 0)
                self._working[name].append(entry.job)
            try:
                self._run(entry, lane)
            except BaseException as problem:  # of what was to follow the work: the lane goes on
                log.warning("after %s", entry.job.title, exc_info=problem)
            with self._lock:
                self._working[name].remove(entry.job)
            del entry  # while it waits for more, a worker holds nothing

    def _run(self, entry: _Entry, lane: Lane) -> None:
        job = entry.job

        def is_cancelled() -> bool:
            while lane.gives_way and not self._is_awaited(job) and not job.cancel.is_set() and self._others_work():
                job.cancel.wait(PAUSE_SECONDS)
            return job.cancel.is_set()

        try:
            if is_cancelled():
                raise Cancelled
            job.started = time.monotonic()
            result = entry.work(job.report_progress, is_cancelled)
        except Cancelled as stopped:
            entry.end(error=stopped)
        except BaseException as problem:
            if not isinstance(problem, UserError):  # those are meant for a person, and no fault of the server
                log.warning("%s failed", job.title, exc_info=problem)
            entry.end(error=problem)
        else:
            entry.end(result)
            entry.then(job)

    def _others_work(self) -> bool:
        with self._lock:
            at_work = any(
                self._is_awaited(job) or not self._lanes[name].gives_way
                for name, jobs in self._working.items()
                for job in jobs
            )
        return at_work or self._is_busy()

    def _is_awaited(self, job: Job) -> bool:
        """Whether somebody who is still there waits for a job: people also leave without Stop."""
        return any(map(self.is_present, tuple(job.people)))


class Jobs:
    """The jobs of one kind, by key: never two at once for the same thing, and the last finished ones kept."""

    def __init__(
        self,
        queue: Queue,
        lane: str,
        keep: int,
        keep_bytes: int | None = None,
        retry_seconds: float | None = None,
        is_stale: Callable[[Job], bool] = lambda job: False,
    ) -> None:
        """Keeps at most `keep` results, and `keep_bytes` of them as far as they say their size (`nbytes`).

        The newest one is kept whatever it takes. A failed job stays until `forget`, or until `retry_seconds` have
        passed; a finished one that `is_stale` says is out of date is run again by the next request.
        """
        self.queue, self._lane = queue, lane
        self._retry_seconds, self._is_stale = retry_seconds, is_stale
        self._lock = threading.RLock()
        self._under_way: dict[Hashable, Job] = {}
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
        """The job of this key: finished, waiting, at work, or put into its lane now.

        `person` is who waits for it (None: nobody in particular). After an error nothing is started until `forget`; nor
        after a stop, unless somebody asks who was not among those who stopped it. A job that waits in another lane than
        the one asked for moves there once a person waits for it. `then(job)` is called in the worker's thread when those
        who wait have the result.
        """
        lane = lane or self._lane
        with self._lock:
            before = self._known(key)
            job = before if before is not None and not _starts_again(before, person) else None
            is_new = job is None
            if job is None:
                job = Job(title, key, total, owner=self, left=set() if before is None else before.left - {person})
                self._under_way[key] = job
                self._failed.pop(key, None)
            if person is not None and person not in job.left and not job.finished.is_set():
                job.people.add(person)
        # Outside the lock: the lane may drop another kind's job, which takes that kind's lock.
        if is_new:
            self.queue.put(job, work if before is None else _after(before, work), lane, self._keep, then)
        elif person in job.people and job.started is None:
            self.queue.move(job, lane)
        return job

    def find(self, key: Hashable) -> Job | None:
        """The job of a key, if there is one; starts nothing."""
        with self._lock:
            return self._known(key)

    def add(self, key: Hashable, title: str, result: Any) -> Job:
        """Keep a result that was there already as a finished job."""
        job = Job(title, key)
        job.finish(result, before_waking=self._keep)
        return job

    def stop(self, job: Job, person: Hashable = None) -> None:
        """Take a person off a job. It ends only when nobody who is still there waits for it; without a person it ends."""
        with self._lock:
            if job.finished.is_set():
                return
            if person is not None:
                job.people.discard(person)
                job.left.add(person)
                if any(self.queue.is_present(other) for other in job.people):
                    return
        self.queue.cancel(job)

    def forget(self, job: Job, person: Hashable = None) -> None:
        """Let the next request start a failed or stopped job again, or let a person who left a job wait again.

        Where a stopped job is still at work, the new one waits until it has ended.
        """
        with self._lock:
            job.left.discard(person)
            if self._failed.get(job.key) is job:
                del self._failed[job.key]
            job.run_again = job.run_again or job.cancel.is_set()

    def finished(self) -> tuple[Job, ...]:
        """The finished jobs that are kept: the failed ones, then the others, the least recently used first."""
        with self._lock:
            return (*self._failed.values(), *self._finished.values())

    def under_way(self) -> tuple[Job, ...]:
        """The jobs of this kind that wait or are at work."""
        with self._lock:
            return tuple(self._under_way.values())

    def drop(self, jobs: Iterable[Job]) -> None:
        """Keep these finished jobs no longer."""
        with self._lock:
            for job in jobs:
                for kept in (self._finished, self._failed):
                    if kept.get(job.key) is job:
                        del kept[job.key]

    def _known(self, key: Hashable) -> Job | None:
        """The job of a key, unless it is to be run again (the lock is held)."""
        if key in self._under_way:
            return self._under_way[key]
        if key in self._failed:
            failed = self._failed[key]
            age = time.monotonic() - (failed.finished_at or 0.0)
            again = not failed.is_cancelled and self._retry_seconds is not None and age > self._retry_seconds
            if not again:
                return failed
            del self._failed[key]
        job = self._finished.get(key)
        if job is not None and self._is_stale(job):
            del self._finished[key]
            return None
        return job

    def _keep(self, job: Job) -> None:
        """Move a job that has ended to the finished ones, before those who wait are woken."""
        with self._lock:
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
    is_another_person = person is not None and bool(job.left) and person not in job.left
    return not is_done and was_stopped and (job.run_again or is_another_person)


def _after(before: Job, work: Work) -> Work:
    """The work, done when a stopped job has ended: never two at once for the same thing."""

    def wait_and_work(report_progress: ReportProgress, is_cancelled: IsCancelled) -> Any:
        while not before.finished.wait(PAUSE_SECONDS):
            if is_cancelled():
                raise Cancelled
        return work(report_progress, is_cancelled)

    return wait_and_work


class Cache(Generic[Value]):
    """Results by key, the least recently used out first; computed once for all who ask at the same time."""

    def __init__(self, limit: int, size: Callable[[Value], int] = lambda value: 1) -> None:
        """`limit` counts entries, or whatever `size` measures: bytes, for example. Sizes must not change."""
        self.limit, self._size = limit, size
        self._lock = threading.Lock()
        self._kept: LRUCache[Hashable, Value] = LRUCache(limit, size)
        self._under_way: dict[Hashable, Future[Value]] = {}

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The result of a key: kept, under way in another thread, or computed now.

        An exception of `compute` reaches everybody who waits for it, and nothing is kept; a result larger than the
        whole cache is handed out and not kept.
        """
        with self._lock:
            if key in self._kept:
                return self._kept[key]
            future = self._under_way.get(key)
            is_mine = future is None
            if future is None:
                future = self._under_way[key] = Future()
        if not is_mine:
            return future.result()
        try:
            value = compute()
        except BaseException as problem:
            with self._lock:
                del self._under_way[key]
            future.set_exception(problem)
            raise
        self.put(key, value)
        with self._lock:
            del self._under_way[key]
        future.set_result(value)
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
        """Keep a result, if it fits at all."""
        with self._lock:
            self._kept.pop(key, None)  # one that does not fit must not leave an older one in its place
            if self._size(value) <= self.limit:
                self._kept[key] = value

    def is_computing(self) -> bool:
        """Whether a thread is computing a result at this moment."""
        with self._lock:
            return bool(self._under_way)

    def clear(self) -> None:
        """Forget everything kept; computations under way are not disturbed."""
        with self._lock:
            self._kept.clear()

    @property
    def used(self) -> int:
        """What the kept results take, in the unit of `limit`."""
        with self._lock:
            return int(self._kept.currsize)

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)
