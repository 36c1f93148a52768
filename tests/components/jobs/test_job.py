"""One job: its progress, its pace, its outcome."""

from __future__ import annotations

import gc
import logging
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from components.jobs import Job, WorkFailed, part_of
from tests.support.garbage import only_new_objects
from tests.support.work import ended, failing, one_lane, quick, wait_until


def test_progress_pace_and_time_left(clock: types.SimpleNamespace) -> None:
    job = Job("A")
    assert (job.fraction, job.per_second, job.seconds_left) == (None, 0.0, None)
    job.report_progress(20, 100)  # an earlier run had done 20 already
    assert (job.fraction, job.per_second, job.seconds_left) == (0.2, 0.0, None)
    clock.now += 2
    job.report_progress(30, 100)
    assert (job.fraction, job.per_second, job.seconds_left) == (0.3, 5.0, 14.0)
    clock.now += 4  # without a report the time left is counted down, and does not rise
    assert job.seconds_left == 10.0
    clock.now -= 4
    job.report_progress(101, 100)
    assert (job.fraction, job.seconds_left) == (1.0, 0.0)


def test_the_progress_of_parts_is_that_of_the_whole() -> None:
    """Two parts of 3 and 7: the second counts on from the end of the first, regardless of the total that each reports."""
    reports: list[tuple[int, int]] = []
    for before, own_total in ((0, 3), (3, 7)):
        report = part_of(lambda *counts: reports.append(counts), before, 10)
        for done in range(own_total + 1):
            report(done, own_total)
    assert reports == [(count, 10) for count in (0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10)]


def test_a_pause_is_no_time_in_which_it_worked(clock: types.SimpleNamespace) -> None:
    job = Job("A")
    job.leave_out(5)  # before the first report there is no pace yet
    job.report_progress(0, 100)
    clock.now += 2
    job.report_progress(20, 100)
    assert (job.per_second, job.seconds_left) == (10.0, 8.0)
    clock.now += 60
    job.leave_out(60)
    assert (job.per_second, job.seconds_left) == (10.0, 8.0)


def test_every_job_has_a_number_of_its_own() -> None:
    numbers = [Job("A").number for _ in range(50)]  # their addresses in memory are used again
    assert numbers == sorted(set(numbers))


def test_the_work_reports_to_its_job() -> None:
    def work(report_progress: Callable[[int, int], None], is_stopped: Callable[[], bool]) -> str:
        report_progress(3, 4)
        return "done"

    jobs = one_lane()
    job = jobs.request("a", "A title", work, total=9)
    assert (job.title, job.key) == ("A title", "a")
    ended(job)
    assert (job.done, job.total, job.result) == (3, 4, "done")
    assert job.started is not None
    assert job.finished_at is not None
    assert job.finished_at >= job.started


@pytest.mark.parametrize("problem", [ValueError("no"), KeyboardInterrupt("no"), SystemExit("no"), BaseException("no")])
def test_any_exception_is_the_jobs_own_and_the_lane_goes_on(problem: BaseException) -> None:
    jobs = one_lane()
    job = ended(jobs.request("a", "A", failing(problem)))
    if isinstance(problem, Exception):
        assert job.error is problem
    else:  # raised again by somebody who waits, it would end their thread
        assert isinstance(job.error, WorkFailed)
        assert str(job.error) == f"{type(problem).__name__}: no"
    assert job.result is None
    assert not job.is_stopped
    assert ended(jobs.request("b", "B", quick())).result == "done"


def test_nobody_waits_in_vain_where_even_the_message_of_an_error_fails() -> None:
    class Wordless(BaseException):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    jobs = one_lane()
    job = ended(jobs.request("a", "A", failing(Wordless())))
    assert isinstance(job.error, Exception)
    assert jobs.find("a") is job


def test_an_error_holds_nothing_that_the_work_had_in_its_hands() -> None:
    class Weights:
        pass

    kept = []

    def work(*_: Any) -> None:
        weights = Weights()
        kept.append(weakref.ref(weights))
        try:
            raise KeyError("first")
        except KeyError as cause:
            raise RuntimeError("second") from cause

    jobs = one_lane()
    with only_new_objects():
        logging.disable(logging.CRITICAL)  # pytest keeps what is logged, the traceback with it
        try:
            job = ended(jobs.request("a", "A", work))
        finally:
            logging.disable(logging.NOTSET)
        assert str(job.error) == "second"
        assert job.error.__cause__ is job.error.__context__ is job.error.__traceback__ is None
        wait_until(lambda: gc.collect() >= 0 and kept[0]() is None)
