"""Evaluations run once for everybody, one after the other, and the shelf keeps nothing but their results."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref

import pytest

from components.jobs import Cancelled
from components.retrieval.evaluation import evaluation_shelf
from components.retrieval.evaluation.evaluation_shelf import EvaluationJob, EvaluationShelf


@pytest.fixture
def shelf() -> EvaluationShelf:
    return EvaluationShelf()


class Gate:
    """Work that waits until it is let go, and stops when it is cancelled meanwhile."""

    def __init__(self, result: object = "result") -> None:
        self.entered, self.opened, self._result = threading.Event(), threading.Event(), result

    def __call__(self, tell, cancelled):
        self.entered.set()
        while not self.opened.wait(0.01):
            if cancelled():
                raise Cancelled
        return self._result


def done(job: EvaluationJob) -> EvaluationJob:
    assert job.finished.wait(20)
    return job


def returns(result: object):
    return lambda tell, cancelled: result


def fails(problem: Exception):
    def work(tell, cancelled):
        raise problem

    return work


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "evaluations"]


def until(holds) -> bool:
    """Whether something comes true within some seconds."""
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return holds()


def test_many_who_ask_for_the_same_share_one_run(shelf):
    ran, gate, start = [], Gate(), threading.Barrier(16)
    jobs: list[EvaluationJob] = []

    def work(tell, cancelled):
        ran.append(1)
        return gate(tell, cancelled)

    def ask() -> None:
        start.wait(10)
        jobs.append(shelf.request(("key", 1), "title", work))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    gate.opened.set()
    assert len(jobs) == 16
    assert len({id(job) for job in jobs}) == 1
    assert done(jobs[0]).result == "result"
    assert shelf.request(("key", 1), "title", fails(AssertionError("asked again"))) is jobs[0]
    assert ran == [1]


def test_one_at_a_time_in_the_order_of_asking(shelf):
    order, together, most, lock = [], 0, 0, threading.Lock()
    gate = Gate()

    def work_of(number: int):
        def work(tell, cancelled):
            nonlocal together, most
            with lock:
                together += 1
                most = max(most, together)
            order.append(number)
            time.sleep(0.002)
            with lock:
                together -= 1
            return number

        return work

    first = shelf.request(("gate",), "title", gate)
    jobs = [shelf.request((number,), "title", work_of(number)) for number in (3, 1, 4, 0, 5)]
    shelf.request((5,), "title", work_of(9))  # asking again moves nobody forward
    gate.opened.set()
    assert [done(job).result for job in (first, *jobs)] == ["result", 3, 1, 4, 0, 5]
    assert order == [3, 1, 4, 0, 5]
    assert most == 1


def test_who_waits_has_not_started(shelf):
    gate = Gate()
    first = shelf.request((1,), "first", gate)
    waiting = shelf.request((2,), "second", returns(2))
    assert gate.entered.wait(10)
    assert first.started is not None
    assert waiting.started is None
    assert waiting.seconds_left is None
    assert not waiting.finished.is_set()
    gate.opened.set()
    assert done(waiting).started >= first.started


def test_progress_and_the_time_that_is_left(monkeypatch):
    clock = 100.0
    monkeypatch.setattr(evaluation_shelf.time, "monotonic", lambda: clock)
    job = EvaluationJob("title", started=100.0, total=40)
    clock = 106.0
    assert job.seconds_left is None  # no pace yet
    job.done = 10
    assert job.seconds_left == pytest.approx(18)
    job.done = 40
    assert job.seconds_left == 0
    job.done, job.total = 5, 0  # read between two writes
    assert job.seconds_left == 0


def test_work_tells_how_far_it_is(shelf):
    told, go_on = threading.Event(), threading.Event()

    def work(tell, cancelled):
        tell(3, 7)
        told.set()
        go_on.wait(10)
        tell(7, 7)

    job = shelf.request((1,), "title", work)
    assert told.wait(10)
    assert (job.done, job.total) == (3, 7)
    assert job.seconds_left > 0
    go_on.set()
    done(job)
    assert (job.done, job.total) == (7, 7)


def test_a_cancel_before_its_turn_means_it_never_starts(shelf):
    gate, ran = Gate(), []
    first = shelf.request((1,), "first", gate)
    waiting = shelf.request((2,), "second", lambda tell, cancelled: ran.append(1))
    waiting.cancel.set()
    gate.opened.set()
    assert done(waiting).cancelled
    assert waiting.started is None
    assert waiting.result is None
    assert ran == []
    assert done(first).result == "result"
    assert not first.cancelled


def test_a_cancel_while_it_runs_is_seen_and_stays_until_forgotten(shelf):
    gate = Gate()
    job = shelf.request((1,), "title", gate)
    assert gate.entered.wait(10)
    job.cancel.set()
    assert done(job).cancelled
    assert isinstance(job.error, Cancelled)
    assert job.error.__traceback__ is None
    assert shelf.request((1,), "title", returns("new")) is job
    shelf.forget(job)
    again = shelf.request((1,), "title", returns("new"))
    assert again is not job
    assert done(again).result == "new"


def test_who_waits_is_stopped_at_once_and_others_move_up(shelf):
    gate, ran = Gate(), []
    first = shelf.request((1,), "first", gate)
    waiting = shelf.request((2,), "second", lambda tell, cancelled: ran.append(2))
    third = shelf.request((3,), "third", returns(3))
    assert gate.entered.wait(10)
    shelf.stop(waiting)
    assert waiting.finished.is_set()  # although the first one is still under way
    assert waiting.cancelled
    assert not first.finished.is_set()
    shelf.stop(first)  # stops at its next look
    assert done(first).cancelled
    assert done(third).result == 3
    assert ran == []
    shelf.stop(third)  # nothing is left to stop
    assert third.result == 3
    assert third.error is None


def test_statistics_do_not_wait_for_long_work(shelf):
    gate, order = Gate(), []
    long = shelf.request((1,), "long", gate)
    behind = shelf.request((2,), "long too", returns(2))
    assert gate.entered.wait(10)
    quick = [
        shelf.request((key,), "short", lambda tell, cancelled, key=key: order.append(key), short=True)
        for key in (7, 3, 5)
    ]
    for job in quick:
        done(job)
    assert order == [7, 3, 5]
    assert not long.finished.is_set()
    assert behind.started is None
    gate.opened.set()
    done(behind)


def test_a_worker_that_dies_is_replaced(shelf, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda given: None)
    job = done(shelf.request((1,), "title", fails(SystemExit("killed"))))
    assert isinstance(job.error, SystemExit)
    assert not job.cancelled
    assert until(lambda: not shelf._working)
    assert done(shelf.request((2,), "title", returns(2))).result == 2


def test_a_cancelled_embedding_counts_as_cancelled(shelf):
    assert done(shelf.request((1,), "title", fails(Cancelled()))).cancelled


def test_a_failure_is_kept_with_its_reason_until_forgotten(shelf, caplog):
    problem = ValueError("broken")
    job = done(shelf.request((1,), "the title", fails(problem)))
    assert job.error is problem
    assert not job.cancelled
    assert job.result is None
    assert "the title failed" in caplog.text
    assert problem.__traceback__ is None
    assert shelf.request((1,), "title", returns(1)) is job
    other = done(shelf.request((2,), "title", returns(2)))  # the worker lives on
    shelf.forget(other)  # only failures are forgotten
    assert shelf.request((2,), "title", returns(3)) is other
    assert shelf.request((1,), "title", returns(1)) is job
    shelf.forget(job)
    assert done(shelf.request((1,), "title", returns(1))).result == 1


def test_the_longest_unused_results_go():
    shelf = EvaluationShelf(capacity=3)
    jobs = {key: done(shelf.request((key,), "title", returns(key))) for key in (1, 2, 3)}
    assert shelf.request((1,), "title", returns(0)) is jobs[1]  # used again: 2 is the oldest now
    jobs[4] = done(shelf.request((4,), "title", returns(4)))
    for key in (1, 3, 4):
        assert shelf.request((key,), "title", returns(0)) is jobs[key]
    assert shelf.request((2,), "title", returns(0)) is not jobs[2]
    assert len(shelf._jobs) == 3


class Sized:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_results_are_kept_up_to_their_bytes():
    shelf = EvaluationShelf(limit=100)
    jobs = [done(shelf.request((key,), "title", returns(Sized(40)))) for key in range(3)]
    other = done(shelf.request((9,), "title", returns("of no size")))  # counted now: 120 bytes, the first one goes
    assert [
        shelf.request((key,), "title", returns(0)) is job for key, job in [(1, jobs[1]), (2, jobs[2]), (9, other)]
    ] == [True] * 3
    assert shelf.request((0,), "title", returns(0)) is not jobs[0]


def test_what_waits_is_never_dropped():
    shelf, gate = EvaluationShelf(capacity=2), Gate(0)
    jobs = [shelf.request((0,), "title", gate)]
    jobs += [shelf.request((key,), "title", returns(key)) for key in range(1, 6)]
    assert [shelf.request((key,), "title", returns("new")) for key in range(6)] == jobs
    gate.opened.set()
    assert [done(job).result for job in jobs] == list(range(6))
    done(shelf.request((9,), "title", returns(9)))
    assert len(shelf._jobs) == 2


def test_the_worker_ends_and_starts_again(shelf):
    before = len(workers())
    gate = Gate()
    job = shelf.request((1,), "title", gate)
    shelf.request((2,), "title", returns(2))
    assert len(workers()) == before + 1
    assert workers()[-1].daemon
    gate.opened.set()
    done(job)
    assert until(lambda: len(workers()) == before)
    assert done(shelf.request((3,), "title", returns(3))).result == 3
    assert until(lambda: len(workers()) == before)


class Heavy:
    """Stands for a model or an index that some work holds."""


def ended(holder: weakref.ref) -> bool:
    gc.collect()
    return holder() is None


def test_nothing_of_the_work_is_held_afterwards(shelf):
    heavy, gate = Heavy(), Gate()
    held = weakref.ref(heavy)

    def work(tell, cancelled, heavy=heavy):
        return 1 if heavy else 0

    done(shelf.request((1,), "title", work))
    next_one = shelf.request((2,), "title", gate)  # the worker may live on with this
    del heavy, work
    assert until(lambda: ended(held))
    gate.opened.set()
    done(next_one)


def test_nothing_of_failed_work_is_held_either(shelf, monkeypatch):
    monkeypatch.setattr(evaluation_shelf, "log", logging.Logger("nobody listens", logging.CRITICAL))
    for key, make in enumerate((ValueError, Cancelled)):
        heavy = Heavy()
        held = weakref.ref(heavy)

        def work(tell, cancelled, heavy=heavy, make=make):
            try:
                raise KeyError(str(heavy))
            except KeyError:
                raise make("after another one")  # noqa: B904

        job = done(shelf.request((key,), "title", work))
        assert type(job.error) is make
        del heavy, work
        assert until(lambda held=held: ended(held)), make
