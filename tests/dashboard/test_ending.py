"""How the server ends: work is stopped and waited for, and Python does not end while some goes on."""

from __future__ import annotations

import logging
import sys
import threading
import types

import pytest

from components.jobs import Jobs, Lane, Queue
from dashboard import caching, readiness

SOON = 10.0


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is to be called at the end of the process."""
    found: list[object] = []
    monkeypatch.setattr(readiness.atexit, "register", found.append)
    return found


def serves(monkeypatch: pytest.MonkeyPatch, queue: Queue) -> None:
    monkeypatch.setitem(sys.modules, "dashboard.caching", types.SimpleNamespace(queue=lambda: queue))


def test_work_is_stopped_before_python_ends(monkeypatch: pytest.MonkeyPatch, registered: list[object]) -> None:
    queue, begun = Queue({"lane": Lane()}), threading.Event()
    serves(monkeypatch, queue)
    monkeypatch.setattr(readiness, "WORKING", ("jobs: lane",))  # those of other tests are none of this one's

    def work(report_progress: object, is_stopped: object) -> None:
        begun.set()
        while not is_stopped():  # type: ignore[operator]
            pass

    job = Jobs(queue, "lane", keep=1).request("a", "A", work)
    assert begun.wait(SOON)
    readiness.end_work(SOON)
    assert job.finished.is_set()
    assert registered == []


def test_where_work_does_not_hear_its_stop_the_process_leaves_without_pythons_end(
    monkeypatch: pytest.MonkeyPatch, registered: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    go_on, left = threading.Event(), []
    monkeypatch.setattr(readiness, "WORKING", ("ScriptRunner of this test",))
    monkeypatch.setattr(readiness.os, "_exit", left.append)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    serves(monkeypatch, Queue({}))
    page = threading.Thread(target=go_on.wait, args=(SOON,), name="ScriptRunner of this test")
    page.start()
    readiness.end_work(0.1)
    assert registered == [readiness._leave]
    assert "ScriptRunner of this test" in caplog.text
    readiness._leave()
    assert left == [1]
    go_on.set()
    page.join(SOON)
    readiness._leave()  # it has ended meanwhile: so may Python
    assert left == [1]


def test_a_server_without_a_page_has_no_work(monkeypatch: pytest.MonkeyPatch, registered: list[object]) -> None:
    monkeypatch.setattr(readiness, "WORKING", ("nobody",))
    monkeypatch.delitem(sys.modules, "dashboard.caching")
    readiness.end_work(SOON)
    assert "dashboard.caching" not in sys.modules  # its import would take seconds
    assert registered == []


def test_training_outlives_the_server() -> None:
    assert [name for name, lane in caching.LANES.items() if lane.outlives_process] == ["training"]
