"""No code from outside runs under a lock of jobs or caches: it may ask the same queue or cache, in any thread."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from components.jobs import Cache, Job, Jobs, Lane, Presence, Queue
from tests.support.work import SOON, Gate, NoThreads, ended, quick, wait_until


class Outside:
    """Code from outside: each call of `ask` has another thread ask everything there is, and waits for the answers."""

    def __init__(self) -> None:
        self.answers: list[bool] = []  # of each call: whether there were answers
        lanes = {"lane": Lane(), "two": Lane(workers=2), "last": Lane(workers=2, gives_way=True)}
        self.is_present: Callable[[], bool] = lambda: True
        self.queue = Queue(lanes, self._is_busy, lambda person: self.is_present())
        self.jobs = Jobs(self.queue, "lane", keep=1, keep_bytes=100, is_stale=self._is_stale)
        self.cache: Cache[Any] = Cache(1)
        self.presence = Presence(lambda person: self.ask(person) or True)
        self.is_asked_about = ""  # what `_is_stale` and `_is_busy` ask for

    def ask(self, *_: Any) -> None:
        asking = threading.Thread(target=self._ask_all, daemon=True)
        asking.start()
        asking.join(SOON)
        self.answers.append(not asking.is_alive())

    def _ask_all(self) -> None:
        self.queue.under_way()
        self.queue.counts()
        self.queue.before(Job("none"))
        self.jobs.under_way()
        self.jobs.finished()
        self.jobs.find("nothing")
        self.jobs.forget(Job("none"))
        self.cache.find("nothing")
        self.cache.put("asked", "asked")
        self.presence.see("somebody")

    def _is_busy(self) -> bool:
        if self.is_asked_about == "busy":
            self.ask()
        return False

    def _is_stale(self, job: Job) -> bool:
        if self.is_asked_about == "stale":
            self.ask()
        return self.is_asked_about == "stale"

    def value(self) -> Any:
        """Something whose end is code from outside."""

        class Value:
            nbytes = 1

        value = Value()
        weakref.finalize(value, self.ask)
        return value


@pytest.fixture
def outside() -> Iterator[Outside]:
    """Every call of code from outside got its answers, and there was one."""
    outside = Outside()
    yield outside
    assert outside.answers
    assert all(outside.answers)


@pytest.fixture
def asking_log(outside: Outside) -> Iterator[None]:
    """A handler of the log that asks: one that sends a report, for example."""
    handler = logging.Handler()
    handler.emit = outside.ask  # type: ignore[method-assign]
    logging.getLogger("components.jobs").addHandler(handler)
    yield
    logging.getLogger("components.jobs").removeHandler(handler)


def test_whether_a_result_is_out_of_date(outside: Outside) -> None:
    """Files are read for it."""
    ended(outside.jobs.request("a", "A", quick(1)))
    outside.is_asked_about = "stale"
    assert outside.jobs.find("a") is None
    outside.is_asked_about = ""
    job = ended(outside.jobs.request("a", "A", quick(2)))
    outside.is_asked_about = "stale"
    assert ended(outside.jobs.request("a", "A", quick(3))) is not job


def test_the_size_of_a_result(outside: Outside) -> None:
    class Result:
        @property
        def nbytes(self) -> int:
            outside.ask()
            return 1

    ended(outside.jobs.request("a", "A", quick(Result())))
    assert outside.jobs.find("a") is not None


def test_the_size_of_what_a_cache_keeps(outside: Outside) -> None:
    outside.cache = Cache(3, size=lambda value: 1 if value == "asked" else outside.ask() or 1)
    outside.cache.get("a", lambda: 1)
    outside.cache.put("b", 2)
    assert outside.answers == [True, True]


def test_what_a_cache_computes_and_which_keys_are_dropped(outside: Outside) -> None:
    outside.cache.get("a", lambda: outside.ask() or 1)
    outside.cache.put("a", 2)
    outside.cache.drop(lambda key: outside.ask() or True)
    assert outside.cache.find("a") is None
    assert outside.answers == [True, True]


def test_who_is_still_there_when_somebody_stops(outside: Outside) -> None:
    gate = Gate()
    job = outside.jobs.request("a", "A", gate, person="Ann")
    outside.jobs.request("a", "A", gate, person="Ben")
    outside.is_present = lambda: outside.ask() or False
    outside.jobs.stop(job, "Ann")
    assert ended(job).is_stopped


def test_who_is_still_there_when_everybody_seems_to_have_left(outside: Outside) -> None:
    gate = Gate()
    job = outside.jobs.request("a", "A", gate, person="Ann")
    outside.is_present = lambda: outside.ask() or False
    assert outside.jobs.end_if_left(job)
    assert ended(job).is_stopped


def test_who_is_still_there_where_work_gives_way(outside: Outside) -> None:
    gate, last = Gate(), Jobs(outside.queue, "last", keep=1)
    working = last.request("a", "A", gate, person="Ann")
    assert gate.begun.wait(SOON)
    outside.is_present = lambda: outside.ask() or True
    giving_way = last.request("b", "B", quick())
    wait_until(lambda: len(outside.answers) > 0)
    gate.go_on.set()
    ended(working)
    ended(giving_way)


def test_whether_people_wait_elsewhere(outside: Outside) -> None:
    outside.is_asked_about = "busy"
    ended(Jobs(outside.queue, "last", keep=1).request("b", "B", quick()))


def test_whether_somebody_is_connected(outside: Outside) -> None:
    assert outside.presence.is_present("Ann")


@pytest.mark.usefixtures("asking_log")
def test_the_log_of_a_thread_that_cannot_start(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    no_threads = NoThreads(monkeypatch)

    def ask_by_threads(*_: Any) -> None:
        no_threads.is_on = False
        outside.ask()
        no_threads.is_on = True

    monkeypatch.setattr(logging.getLogger("components.jobs").handlers[0], "emit", ask_by_threads)
    no_threads.is_on = True
    assert "no more threads" in str(ended(outside.jobs.request("a", "A", quick())).error)


@pytest.mark.usefixtures("asking_log")
def test_the_log_of_a_job_that_fails(outside: Outside) -> None:
    ended(outside.jobs.request("a", "A", lambda *_: {}["no"]))


def test_what_follows_a_job(outside: Outside) -> None:
    ended(outside.jobs.request("a", "A", quick(), then=outside.ask))
    wait_until(lambda: len(outside.answers) > 0)


@pytest.mark.rare
def test_the_end_of_a_result_that_makes_room_for_another(outside: Outside) -> None:
    ended(outside.jobs.request("a", "A", lambda *_: outside.value()))
    ended(outside.jobs.request("b", "B", quick()))
    wait_until(lambda: gc.collect() >= 0 and len(outside.answers) > 0)


def test_the_end_of_results_that_are_dropped(outside: Outside) -> None:
    ended(outside.jobs.request("a", "A", lambda *_: outside.value()))
    wait_until(lambda: outside.queue.counts()["lane"] == (0, 0))
    outside.jobs.drop(job for job in outside.jobs.finished() if outside.ask() is None)
    wait_until(lambda: gc.collect() >= 0 and len(outside.answers) > 1)


@pytest.mark.rare
def test_the_end_of_work_that_never_began(outside: Outside) -> None:
    """What it would have worked on ends with it."""
    gate = Gate()
    working = outside.jobs.request("a", "A", gate)
    assert gate.begun.wait(SOON)
    waiting = outside.jobs.request("b", "B", partial(lambda corpus, *_: corpus, outside.value()))
    outside.jobs.stop(waiting)
    assert waiting.is_stopped
    wait_until(lambda: gc.collect() >= 0 and len(outside.answers) > 0)
    gate.go_on.set()
    ended(working)


@pytest.mark.parametrize("way", ["another", "the same key", "dropped", "cleared"])
def test_the_end_of_what_a_cache_keeps_no_longer(outside: Outside, way: str) -> None:
    outside.cache.get("a", outside.value)
    if way == "another":
        outside.cache.put("b", 1)
    elif way == "the same key":
        outside.cache.put("a", 1)
    elif way == "dropped":
        outside.cache.drop(lambda key: True)
    else:
        outside.cache.clear()
    assert outside.answers == [True]
