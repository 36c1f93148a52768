"""Runs jobs in the background, in named lanes."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from components.errors import UserError
from components.jobs.job import Job
from components.jobs.states import Action, State
from components.jobs.work import PAUSE_SECONDS, Stopped, Work

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lane:
    """How the jobs of one lane are run."""

    workers: int = 1
    newest_first: bool = False  # for work that is out of date once something newer was requested
    most_waiting: int | None = None  # beyond it the oldest waiting jobs are given up
    gives_way: bool = False  # while nobody waits for its job, it pauses as long as other work is running
    outlives_process: bool = False  # its work is done by other processes, which go on when this one ends
    niceness: int = 0  # added to that of the process (Unix): a page that is drawn gets the processor before long work


class Queue:
    """Runs jobs in the background, in named lanes. Threads start when there is work, and end when there is none.

    The lock guards the lines alone. Jobs end, threads start and people are looked for outside it: methods that need it for
    that return what is to be done.
    """

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
        self._threads: dict[str, int] = dict.fromkeys(lanes, 0)  # those that run, and those that are being started
        self._has_failed_to_start = False  # the last thread that was to be started
        self._is_closed = False

    def put(self, job: Job, work: Work, lane: str, then: Callable[[Job], None] = lambda job: None) -> None:
        """Run a job when its turn comes.

        `then(job)` is called in the worker's thread after those who wait have the result; not after an error.
        """
        job.task = (work, then)
        with self._lock:
            is_taken = job.state is State.WAITING and not self._is_closed  # else it was stopped before it could be put
            given_up = self._line_up(job, lane) if is_taken else []
            needs_thread = is_taken and self._reserve_thread(lane)
        if not is_taken:
            job.take(Action.STOP)
            job.finish(error=Stopped())
        _give_up(given_up)
        if needs_thread:
            self._start_thread(lane)

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
            self.stop(job)
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
            given_up = self._line_up(job, lane) if moves else []
            needs_thread = moves and self._reserve_thread(lane)
        _give_up(given_up)
        if needs_thread:
            self._start_thread(lane)

    def stop(self, job: Job) -> None:
        """End a job: at once if it is waiting, when it next checks if it is running."""
        job.take(Action.STOP)
        with self._lock:
            was_waiting = self._take_out(job) is not None
        if was_waiting:
            job.finish(error=Stopped())

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

    def _line_up(self, job: Job, name: str) -> list[Job]:
        """Add a job to a lane's line (the lock is held). Returns those to give up: the oldest ones where there are too many."""
        line, lane = self._waiting[name], self._lanes[name]
        line.insert(0 if lane.newest_first else len(line), job)
        given_up: list[Job] = []
        while lane.most_waiting is not None and len(line) > lane.most_waiting:
            given_up.append(line.pop(-1 if lane.newest_first else 0))
        return given_up

    def _reserve_thread(self, name: str) -> bool:
        """Whether the caller has to start one more thread for a lane, which is counted already (the lock is held)."""
        needs_thread = self._threads[name] < self._lanes[name].workers
        self._threads[name] += needs_thread
        return needs_thread

    def _start_thread(self, name: str) -> None:
        """Start a thread that was reserved. Jobs that are left without any thread fail."""
        # Outside the lock: the start waits for the system, and a failure is logged.
        is_started = _started(threading.Thread(target=self._work, args=(name,), name=f"jobs: {name}", daemon=True))
        left: list[Job] = []
        with self._lock:
            self._has_failed_to_start = not is_started
            if not is_started:
                self._threads[name] -= 1
                if not self._threads[name]:  # else a thread of the lane takes the jobs when their turn comes
                    left, self._waiting[name] = self._waiting[name], []
        for job in left:
            job.finish(error=_no_thread())

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

        def is_stopped() -> bool:
            while (
                lane.gives_way and not self._is_awaited(job) and not job.told_to_stop.is_set() and self._others_work()
            ):
                paused_at = time.monotonic()
                job.told_to_stop.wait(PAUSE_SECONDS)
                job.leave_out(time.monotonic() - paused_at)
            return job.told_to_stop.is_set()

        assert job.task is not None  # it has one from `put` until its end
        work, then = job.task
        try:
            if is_stopped() or not job.take(Action.START):
                raise Stopped
            result = work(job.report_progress, is_stopped)
        except BaseException as problem:
            if not isinstance(problem, (Stopped, UserError)):  # those are no fault of the server
                # Not its title, which can hold the name of a person's file.
                log.warning("a job of the lane %r failed", name, exc_info=problem)
            job.finish(error=problem)
        else:
            job.finish(result)
            then(job)

    def _others_work(self) -> bool:
        with self._lock:
            working = [(lane, job) for lane, jobs in self._working.items() for job in jobs]
        return any(not self._lanes[lane].gives_way or self._is_awaited(job) for lane, job in working) or self._is_busy()

    def _is_awaited(self, job: Job) -> bool:
        """Whether somebody who is still there waits for a job: people also leave without Stop."""
        return any(map(self.is_present, tuple(job.people)))


def _give_up(jobs: Iterable[Job]) -> None:
    """End jobs that wait among too many: nobody stopped them, and the next request starts them again."""
    for job in jobs:
        job.take(Action.GIVE_UP)
        job.finish(error=Stopped())


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
