"""One piece of work: its progress, how to stop it, and its outcome."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from components.jobs.states import ENDED_BY_STOP, ENDS, STARTED_AGAIN, STEPS, TOLD_TO_END, Action, State
from components.jobs.work import Stopped, Work, WorkFailed


class Owner(Protocol):
    """The jobs of a kind (`Jobs`), as one of them sees it."""

    @property
    def can_be_stopped(self) -> bool: ...
    def stop(self, job: Job, person: Hashable = None) -> None: ...
    def end(self, job: Job, result: Any, error: Exception | None) -> None: ...


class Signal:
    """Whether a job has come to one of some states; read and waited for as a threading.Event."""

    def __init__(self, job: Job, states: frozenset[State]) -> None:
        self._job, self._states = job, states

    def is_set(self) -> bool:
        return self._job.state in self._states

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the job comes to such a state within so many seconds; without a limit, once it does."""
        if self.is_set():
            return True
        with self._job.changed:
            return self._job.changed.wait_for(self.is_set, timeout)


@dataclass(eq=False)
class Job:
    """One piece of work. Any thread may read it; only its queue, its worker and its owner change it, by `take`."""

    title: str  # what is being done, for people: "Embedding Demo news"
    key: Hashable = None
    total: int = 0  # in the unit of the work: sentences, queries, bytes, ...
    done: int = 0
    state: State = State.WAITING  # written by `take` alone
    started: float | None = None  # time.monotonic(); None before its work has begun, and if it never did
    finished_at: float | None = None
    result: Any = None
    error: Exception | None = None
    people: set[Hashable] = field(default_factory=set)  # who waits for it; empty for work that nobody requested
    stopped_by: set[Hashable] = field(default_factory=set)  # who pressed Stop; others may continue to wait
    owner: Owner | None = None  # the jobs of its kind, which keep it, stop it and start it again
    number: int = field(default_factory=itertools.count(1).__next__)  # of this process: no other job ever has it
    task: tuple[Work, Callable[[Job], None]] | None = None  # the work and what follows it, until it has ended
    # Held while the state changes. Nothing else is locked and no other code runs under it; those who wait are woken by it.
    changed: threading.Condition = field(default_factory=lambda: threading.Condition(threading.Lock()))
    _first_report: tuple[float, int] | None = None  # when progress was first reported, and how much was done then
    _last_report: float = 0.0  # when it last was

    def take(self, action: Action, result: Any = None, error: Exception | None = None) -> bool:
        """Take the step of an action, and wake everybody who waits: no state changes anywhere else.

        Returns False, and changes nothing, where STEPS has no step from the job's state. An end takes its outcome.
        """
        with self.changed:
            state = STEPS[action].get(self.state)
            if state is None:
                return False
            if state is State.RUNNING:
                self.started = time.monotonic()
            elif state in ENDS and self.state not in ENDS:
                self.result, self.error, self.task = result, error, None
                self.finished_at = time.monotonic()
            self.state = state
            self.changed.notify_all()
        return True

    @property
    def finished(self) -> Signal:
        """Whether it has ended, in whatever way."""
        return Signal(self, ENDS)

    @property
    def told_to_stop(self) -> Signal:
        """Whether it was told to end before it was done; False again where it was done in spite of that."""
        return Signal(self, TOLD_TO_END)

    @property
    def is_stopped(self) -> bool:
        """Whether it ended by a stop, no matter which error the work then raised."""
        return self.state in ENDED_BY_STOP

    @property
    def run_again(self) -> bool:
        """Whether it was given up, or its stop was taken back: the next request starts it again."""
        return self.state in STARTED_AGAIN

    def is_stopped_for(self, person: Hashable) -> bool:
        """Whether this person no longer waits: the job was stopped, or continues only for others.

        True immediately after a stop, though the work ends only when it next checks; False if it was done before that.
        """
        state = self.state
        return state is not State.DONE and (state in (State.STOPPING, State.STOPPED) or person in self.stopped_by)

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
        """Estimated at the last report from the speed until then, and counted down since, to 0; None while it is not known."""
        if self._first_report is None:
            return None
        since, done_before = self._first_report
        last, done = self._last_report, self.done
        if done <= done_before or last <= since:
            return None
        # Read between the worker's two writes, `done` may exceed the previous total.
        left = max(0, self.total - done) * (last - since) / (done - done_before)
        return max(0.0, left - (time.monotonic() - last))

    def report_progress(self, done: int, total: int) -> None:
        if self._first_report is None:
            self._first_report = (time.monotonic(), done)
        self._last_report = time.monotonic()
        self.done, self.total = done, total

    def leave_out(self, seconds: float) -> None:
        """Do not count a pause of this length as time in which the work was done."""
        if self._first_report is not None:
            since, done_before = self._first_report
            self._first_report = (since + seconds, done_before)
            self._last_report += seconds

    def finish(self, result: Any = None, error: BaseException | None = None) -> None:
        """End with an outcome, which its owner keeps, and wake everybody who waits. Nothing for a job that has ended."""
        task = self.task
        problem = None if error is None else WorkFailed.of(error)
        if problem is not None:
            # The frames hold the work's local variables: only the message is kept.
            problem = problem.with_traceback(None)
            problem.__cause__ = problem.__context__ = None
        try:
            if self.owner is not None:
                self.owner.end(self, result, problem)
        finally:  # also where it could not be kept: nobody may wait in vain
            self.end(result, problem)
        del task  # outside all locks: what the work held ends with it, and may run code of its own then

    def end(self, result: Any, error: Exception | None) -> None:
        """Take the step to the end that an outcome leads to."""
        if error is None:
            self.take(Action.COMPLETE, result)
        else:
            self.take(Action.NOTICE_STOP if isinstance(error, Stopped) else Action.FAIL, error=error)
