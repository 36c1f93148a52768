"""What /ready says where the server can begin no work."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from components import operator_settings
from components.jobs import Jobs, Lane, Queue
from components.model import device
from dashboard import caching, readiness
from dashboard.metrics import collected
from tests.support.pages import Open


def test_a_server_that_can_start_no_thread_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue({"lane": Lane()})
    start, is_allowed = threading.Thread.start, False

    def start_or_fail(thread: threading.Thread) -> None:
        if not is_allowed:
            raise RuntimeError("can't start new thread")
        start(thread)

    was_ready = threading.Event()
    was_ready.set()
    monkeypatch.setattr(readiness, "_was_ready", was_ready)
    monkeypatch.setattr(caching, "queue", lambda: queue)
    assert readiness.state() == "ready"
    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    assert readiness.state() == "ready"  # nobody asked for a thread yet
    Jobs(queue, "lane", keep=1).request("a", "A", lambda *_: None)
    assert readiness.state() == "failed"
    is_allowed = True
    assert readiness.state() == "ready"


def test_the_question_itself_needs_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(readiness, "run_in_threadpool", no_thread)
    with ThreadPoolExecutor(1) as threads:  # the browser tests' own loop may run in this one
        assert threads.submit(lambda: asyncio.run(readiness.asked())).result(30) == "failed"


def test_a_server_whose_gpu_is_lost_is_not_ready_and_its_pages_say_so(
    monkeypatch: pytest.MonkeyPatch, open_page: Open
) -> None:
    monkeypatch.setattr(device, "_lost", {"cuda:0"})
    assert readiness.state() == "lost"
    (lost,) = (metric for metric in collected() if metric.name == "devices_lost")
    assert [sample.value for sample in lost.samples] == [1]
    said = [item.value for item in open_page("about").error]
    assert said == [
        "**This server's GPU (cuda:0) has failed.** What needs the model cannot be computed until the server is started "
        "again. Tell whoever runs it."
    ]
    monkeypatch.setenv(operator_settings.CPU_AFTER_FAILURE.variable, "1")
    assert readiness.state() != "lost"
    page = open_page("about")
    assert not page.error
    assert "Models run on the CPU until the server is started again" in page.warning[0].value
