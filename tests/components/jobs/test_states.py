"""A job's states: the table of steps, and that nothing else ever happens to a job, whatever threads do at the same time."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from components.jobs import STEPS, Action, Job, Jobs, Lane, Queue, State, Stopped, kinds
from components.jobs.states import ENDED_BY_STOP, ENDS, TOLD_TO_END
from tests.support.work import SOON, NoThreads, failing, quick

# The table once more, in other words: from each state, the states that may follow it.
FOLLOWING = {
    State.WAITING: {
        State.RUNNING,
        State.STOPPING,
        State.GIVING_UP,
        State.DONE,
        State.FAILED,
        State.STOPPED,
    },
    State.RUNNING: {State.STOPPING, State.GIVING_UP, State.DONE, State.FAILED, State.STOPPED},
    State.STOPPING: {State.GIVING_UP, State.DONE, State.STOPPED},
    State.GIVING_UP: {State.DONE, State.GIVEN_UP},
    State.DONE: set(),
    State.FAILED: set(),
    State.STOPPED: {State.GIVEN_UP},
    State.GIVEN_UP: set(),
}


def test_the_table_has_these_steps_and_no_others() -> None:
    steps = {state: {after[state] for after in STEPS.values() if state in after} for state in State}
    assert steps == FOLLOWING
    assert set(STEPS) == set(Action)


@pytest.mark.parametrize("action", [Action.COMPLETE, Action.FAIL, Action.NOTICE_STOP])
def test_every_outcome_ends_whatever_has_not_ended_and_nothing_else(action: Action) -> None:
    """Else somebody would wait in vain for a job that has an outcome, or a result would be replaced."""
    assert set(STEPS[action]) == set(State) - ENDS
    assert set(STEPS[action].values()) <= ENDS


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("action", Action)
def test_an_action_without_a_step_changes_nothing(state: State, action: Action) -> None:
    job = Job("A", state=state)
    assert job.take(action, "result") is (state in STEPS[action])
    assert job.state is STEPS[action].get(state, state)
    has_ended_now = job.state in ENDS and state not in ENDS
    assert (job.result == "result", job.finished_at is not None) == (has_ended_now, has_ended_now)
    assert (job.started is not None) is (state is State.WAITING and action is Action.START)


@pytest.mark.parametrize("state", State)
def test_what_pages_read_follows_from_the_state(state: State) -> None:
    job = Job("A", state=state, stopped_by={"Ann"})
    assert job.finished.is_set() is (state in ENDS)
    assert job.told_to_stop.is_set() is (state in TOLD_TO_END)
    assert job.is_stopped is (state in ENDED_BY_STOP)
    assert job.run_again is (state in (State.GIVING_UP, State.GIVEN_UP))
    assert job.is_stopped_for("Ann") is (state is not State.DONE)
    assert job.is_stopped_for("Ben") is (state in (State.STOPPING, State.STOPPED))


def test_a_signal_wakes_whoever_waits_for_it_and_nobody_else() -> None:
    job, told, ended = Job("A"), threading.Event(), threading.Event()
    for signal, event in ((job.told_to_stop, told), (job.finished, ended)):
        threading.Thread(target=lambda signal=signal, event=event: signal.wait(SOON) and event.set()).start()  # type: ignore[misc]
    assert not job.finished.wait(0.01)
    job.take(Action.STOP)
    assert told.wait(SOON)
    assert not ended.is_set()
    job.finish(error=ValueError("after a stop"))
    assert ended.wait(SOON)
    assert job.state is State.STOPPED


class Watched(Job):
    """A job that notes each change of its state, and whether it happened under its lock."""

    changes: list[tuple[Job, State, State, bool]] = []  # noqa: RUF012 - of all jobs, set anew by the test

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "state" and "state" in vars(self):
            self.changes.append((self, self.state, value, self.changed._is_owned()))
        super().__setattr__(name, value)


class OneAtATime:
    """Work of all kinds; counts those that run at the same time for one key."""

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), Counter[Hashable]()
        self.most = 0

    def of(self, key: Hashable, chance: random.Random) -> Callable[..., Any]:
        kind, pauses = chance.choice(("ends", "fails", "stops", "hears", "deaf")), chance.randrange(4)

        def work(report_progress: Callable[[int, int], None], is_stopped: Callable[[], bool]) -> Any:
            with self._lock:
                self._running[key] += 1
                self.most = max(self.most, self._running[key])
            try:
                for step in range(pauses):
                    report_progress(step, pauses)
                    threading.Event().wait(0.001)
                    if kind == "hears" and is_stopped():
                        raise Stopped
                if kind == "stops":
                    raise Stopped
                return failing(OSError("no"))() if kind == "fails" else quick(kind)(report_progress, is_stopped)
            finally:
                with self._lock:
                    self._running[key] -= 1

        return work


@pytest.mark.parametrize("seed", range(6))
def test_threads_at_random_make_no_other_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests, stops, people who leave, threads that cannot start, and the end of the server, all at the same time."""
    monkeypatch.setattr(kinds, "Job", Watched)
    monkeypatch.setattr(Watched, "changes", [])
    no_threads, present, work = NoThreads(monkeypatch), set(range(4)), OneAtATime()
    lanes = {"one": Lane(), "two": Lane(workers=2, newest_first=True, most_waiting=2), "last": Lane(gives_way=True)}
    queue = Queue(lanes, is_present=present.__contains__)
    all_jobs = [Jobs(queue, "one", keep=2), Jobs(queue, "two", keep=2, keep_bytes=10, retry_seconds=0)]
    known: list[Job] = []
    closes_after = random.Random(seed).randrange(100, 260)  # requests: the server ends while people go on
    all_there = threading.Barrier(5, timeout=SOON)

    def visit(number: int) -> None:
        all_there.wait()
        chance = random.Random(100 * seed + number)
        for _ in range(200):
            jobs, key, person = chance.choice(all_jobs), chance.choice("abc"), chance.choice((*present, None))
            job = chance.choice(known) if known else None
            match chance.randrange(9):
                case 0 | 1 | 2:
                    lane = chance.choice((None, *lanes))
                    known.append(jobs.request(key, key, work.of((jobs, key), chance), person=person, lane=lane))
                case 3 if job is not None:
                    job.owner.stop(job, person)  # type: ignore[union-attr]
                case 4 if job is not None:
                    job.owner.forget(job, person)  # type: ignore[union-attr]
                case 5 if job is not None:
                    job.owner.end_if_left(job)  # type: ignore[union-attr]
                case 6 if job is not None:
                    queue.put_first(job)
                case 7:
                    no_threads.is_on = chance.random() < 0.3
                case 8:
                    present.symmetric_difference_update({chance.randrange(4)})

    with ThreadPoolExecutor(4) as threads:
        visitors = [threads.submit(visit, number) for number in range(4)]
        all_there.wait()
        while not all(visitor.done() for visitor in visitors):
            threading.Event().wait(0.001)
            if len(known) >= closes_after:
                queue.close(0)
        for visitor in visitors:
            visitor.result()
    no_threads.is_on = False
    assert queue.close(SOON)
    assert len(Watched.changes) > 20  # far more on a machine that does little else
    assert {change[1:3] for change in Watched.changes} <= {(a, b) for a, after in FOLLOWING.items() for b in after}
    assert all(is_locked for *_, is_locked in Watched.changes)
    states: dict[Job, State] = {}
    for job, before, after, _ in Watched.changes:
        assert states.get(job, State.WAITING) is before
        states[job] = after
    assert all(job.finished.is_set() for job in known)
    assert all(job.finished_at is not None for job in known)
    assert [jobs.under_way() for jobs in all_jobs] == [(), ()]
    assert queue.under_way() == ()
    assert work.most == 1
