"""Work for tests of jobs: work that waits, fails or pauses as the test wants, and queues to run it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

import pytest

from components.jobs import Job, Jobs, Lane, Queue, Stopped

SOON = 10  # seconds until a test that waits in vain fails


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)


class Gate:
    """Work that says when it has begun and goes on when it may, unless it was stopped."""

    def __init__(self, result: Any = "done") -> None:
        self.begun, self.go_on, self.result = threading.Event(), threading.Event(), result
        self.runs = 0

    def __call__(self, report_progress: Callable[[int, int], None], is_stopped: Callable[[], bool]) -> Any:
        self.runs += 1
        self.begun.set()
        end = time.monotonic() + SOON
        while not self.go_on.wait(0.001):
            assert time.monotonic() < end, "waited in vain"
            if is_stopped():
                raise Stopped
        return self.result


def quick(result: Any = "done") -> Callable[..., Any]:
    return lambda report_progress, is_stopped: result


def failing(problem: BaseException) -> Callable[..., Any]:
    def work(*_: Any) -> None:
        raise problem

    return work


def one_lane(keep: int = 8, lane: Lane | None = None, **options: Any) -> Jobs:
    return Jobs(Queue({"lane": lane or Lane()}), "lane", keep, **options)


def ended(job: Job) -> Job:
    assert job.finished.wait(SOON)
    return job


def background(
    is_busy: Callable[[], bool] = lambda: False, is_present: Callable[[Hashable], bool] = lambda person: True
) -> Queue:
    return Queue({"lane": Lane(), "background": Lane(gives_way=True)}, is_busy, is_present)


class Steps:
    """Work that looks after each step whether it may go on."""

    def __init__(self) -> None:
        self.steps, self.end = 0, threading.Event()

    def __call__(self, report_progress: Any, is_stopped: Callable[[], bool]) -> int:
        while not self.end.is_set():
            if is_stopped():
                raise Stopped
            self.steps += 1
            time.sleep(0.001)
        return self.steps

    def goes_on(self) -> bool:
        before = self.steps
        time.sleep(0.03)
        return self.steps > before + 1


class NoThreads:
    """While it is on, no thread can be started, as where the system allows no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_on, start = False, threading.Thread.start

        def start_or_fail(thread: threading.Thread) -> None:
            if self.is_on:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_or_fail)
