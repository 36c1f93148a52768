"""What a session requests: the result, or NotReady; and what it no longer waits for is stopped."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from components.jobs import Job, Jobs, Lane, Queue, Stopped
from dashboard import caching
from dashboard.jobs import requests
from dashboard.jobs.requests import NotReady


def as_person(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(caching, "person", lambda: name)


def test_a_result_is_returned_and_what_is_missing_is_raised_with_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ann")
    monkeypatch.setattr(requests, "SHOWN_AFTER", 0.0)
    jobs, release = Jobs(Queue({"preparation": Lane()}), "preparation", keep=8), threading.Event()

    def work(report_progress: Any, is_stopped: Any) -> str:
        assert release.wait(30)
        return "done"

    def ask() -> str:
        return requests.prepared("key", "Ranking", work, "place", "ranking", "queries", jobs)

    with pytest.raises(NotReady) as raised:
        ask()
    awaited = raised.value.awaited
    assert awaited is not None
    assert awaited.job is jobs.find("key")
    assert (awaited.jobs, awaited.doing, awaited.unit) == (jobs, "ranking", "queries")
    assert (awaited.stop_key, awaited.again_key) == ("stop_place", "again_place")
    assert raised.value.is_under_way
    release.set()
    assert awaited.job.finished.wait(30)
    assert ask() == "done"
    assert not raised.value.is_under_way


def test_a_failure_is_raised_as_not_ready_and_not_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ann")
    jobs = Jobs(Queue({"preparation": Lane()}), "preparation", keep=8)

    def fail(report_progress: Any, is_stopped: Any) -> str:
        raise ZeroDivisionError("a fault of ours")

    job = jobs.request("key", "Ranking", fail, person="Ann")
    assert job.finished.wait(30)
    with pytest.raises(NotReady) as raised:
        requests.prepared("key", "Ranking", fail, "place", jobs=jobs)
    assert raised.value.awaited is not None
    assert isinstance(raised.value.awaited.job.error, ZeroDivisionError)
    assert not raised.value.is_under_way


def test_a_session_waits_only_for_what_it_asked_for_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """One job at each place of a view, none of another view, also where several `Jobs` keep the results."""
    monkeypatch.setattr(requests, "st", SimpleNamespace(session_state={}))
    as_person(monkeypatch, "Ann")
    release, queue = threading.Event(), Queue({"preparation": Lane(workers=4)})
    kinds = Jobs(queue, "preparation", keep=8), Jobs(queue, "preparation", keep=8)

    def work(report_progress: Any, is_stopped: Any) -> str:
        while not release.wait(0.01):
            if is_stopped():
                raise Stopped
        return "done"

    def ask(kind: int, where: str, key: str, view: str) -> Job:
        requests.stop_previous(where, key, view, kinds[kind])
        return kinds[kind].request(key, key, work, person="Ann")

    try:
        layers = [ask(0, "curves", f"layer {layer}", "methods") for layer in range(5)]
        assert [job.told_to_stop.is_set() for job in layers] == [True] * 4 + [False]
        assert ask(0, "curves", "layer 4", "methods") is layers[4]  # drawn again
        both = ask(1, "probe", "probe", "clinic"), ask(0, "cosines", "cosines", "clinic")
        assert layers[4].told_to_stop.is_set()  # another view
        assert not any(job.told_to_stop.is_set() for job in both)  # two places of one view
        again = ask(0, "curves", "layer 4", "methods")
        assert all(job.told_to_stop.is_set() for job in both)
        assert again is not layers[4]  # nobody pressed Stop: it starts again
        assert not again.told_to_stop.is_set()
        requests.stop_requested()
        assert again.told_to_stop.is_set()
    finally:
        release.set()


def test_work_ends_once_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue({"preparation": Lane()})
    jobs, present = Jobs(queue, "preparation", keep=8), True
    monkeypatch.setattr(queue, "is_present", lambda person: present)
    entered = threading.Event()

    def work(report_progress: Any, is_stopped: Any) -> None:
        is_over = requests.unless_left("key", is_stopped, jobs)
        assert not is_over()
        entered.set()
        while not is_over():
            time.sleep(0.01)
        raise Stopped

    job = jobs.request("key", "Probing", work, person="Ann")
    assert entered.wait(10)
    present = False
    assert job.finished.wait(10)
    assert job.is_stopped


def test_a_stop_holds_after_a_reload_until_the_same_tab_starts_the_job_again(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, visitors = Jobs(Queue({"preparation": Lane()}), "preparation", keep=8), {"first": "tab", "reloaded": "tab"}
    monkeypatch.setattr(requests, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(caching, "visitor", lambda: visitors.get(caching.person(), caching.person()))
    monkeypatch.setattr(caching, "is_visitor_known", lambda: True)
    starts = []

    def work(report_progress: Any, is_stopped: Any) -> None:
        starts.append(1)
        while not is_stopped():
            time.sleep(0.01)
        raise Stopped

    def asked(person: str) -> Job:
        as_person(monkeypatch, person)
        with pytest.raises(NotReady) as raised:
            requests.prepared("a key of this test", "Re-ranking", work, "place", jobs=jobs)
        assert raised.value.awaited is not None
        return raised.value.awaited.job

    job = asked("first")
    requests.stop(jobs, job, "first")
    assert job.finished.wait(30)
    again = asked("reloaded")
    assert again.is_stopped_for("reloaded")
    assert again.finished.wait(30)
    other = asked("another person")
    assert not other.is_stopped_for("another person")
    jobs.stop(other, "another person")
    assert other.finished.wait(30)
    as_person(monkeypatch, "reloaded")
    requests.start_again(jobs, other, "reloaded")
    last = asked("reloaded")
    assert requests.is_awaited(last)
    requests.stop(jobs, last, "reloaded")
    assert last.finished.wait(30)
    caching.stops().clear()
