"""The jobs of one kind: one for all who ask, kept when they have ended."""

from __future__ import annotations

import threading
import types
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from components import jobs as jobs_module
from components.errors import InputError
from components.jobs import Job
from tests.support.work import SOON, Gate, ended, failing, one_lane, quick


def test_all_who_ask_get_one_job_that_runs_once() -> None:
    jobs, work = one_lane(), Gate()
    with ThreadPoolExecutor(16) as threads:
        asked = list(threads.map(lambda person: jobs.request("a", "A", work, person=person), range(16)))
    assert len(set(asked)) == 1
    assert not asked[0].finished.is_set()
    assert asked[0].people == set(range(16))
    work.go_on.set()
    assert ended(asked[0]).result == "done"
    assert jobs.request("a", "A", work) is asked[0]
    assert jobs.find("a") is asked[0]
    assert work.runs == 1
    assert jobs.request("b", "B", quick("other")) is not asked[0]
    assert jobs.find("nobody asked") is None


def test_a_finished_job_collects_nobody() -> None:
    """A loaded model is asked for at each of a page's runs, by sessions without number."""
    jobs = one_lane()
    job = ended(jobs.request("a", "A", quick()))
    for person in range(5):
        jobs.request("a", "A", quick(), person=person)
    assert job.people == set()


def test_what_follows_runs_when_those_who_wait_have_the_result() -> None:
    jobs, follows, go_on = one_lane(), threading.Event(), threading.Event()
    ran = []

    def then(job: Job) -> None:
        follows.set()
        assert go_on.wait(SOON)
        ran.append(job.result)

    job = ended(jobs.request("a", "A", quick(), then=then))
    assert follows.wait(SOON)
    assert jobs.queue.under_way() == ()  # it is not listed any more, but its worker is taken
    behind = jobs.request("b", "B", quick(), then=lambda job: failing(ZeroDivisionError())())
    assert behind.started is None
    go_on.set()
    ended(behind)
    assert ran == ["done"]
    assert behind.error is None
    assert ended(jobs.request("c", "C", failing(InputError("a", "b", "c")), then=lambda job: ran.append("never")))
    assert ended(jobs.request("d", "D", quick())).result == "done"  # a fault of what follows ends no lane
    assert ran == ["done"]
    assert job.result == "done"


def test_only_faults_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    jobs = one_lane()
    ended(jobs.request("a", "Meant for people", failing(InputError("given", "expected", "fix"))))
    ended(jobs.request("b", "A fault of ours", failing(ZeroDivisionError("no"))))
    assert [record.getMessage() for record in caplog.records] == ["a job of the lane 'lane' failed"]


def test_a_failure_is_remembered_until_it_is_forgotten() -> None:
    jobs = one_lane()
    job = ended(jobs.request("a", "A", failing(ValueError("no"))))
    assert jobs.request("a", "A", quick()) is job
    assert jobs.find("a") is job
    jobs.forget(job)
    assert jobs.find("a") is None
    again = ended(jobs.request("a", "A", quick()))
    assert again.result == "done"
    jobs.forget(again)  # what has a result stays
    jobs.forget(job)
    assert jobs.find("a") is again


def test_a_failure_is_tried_again_after_a_while_but_a_stop_is_not() -> None:
    jobs = one_lane(retry_seconds=20)
    failed = ended(jobs.request("a", "A", failing(ValueError("no"))))
    work = Gate()
    stopped = jobs.request("b", "B", work)
    assert work.begun.wait(SOON)
    jobs.stop(stopped)
    ended(stopped)
    for job in (failed, stopped):
        assert job.finished_at is not None
        job.finished_at -= 19
    assert jobs.request("a", "A", quick()) is failed
    for job in (failed, stopped):
        job.finished_at -= 2
    assert jobs.find("a") is None
    assert ended(jobs.request("a", "A", quick())).result == "done"
    assert jobs.request("b", "B", quick()) is stopped


def test_failed_work_does_not_start_again_unasked() -> None:
    jobs = one_lane()
    failed = ended(jobs.request("a", "A", failing(ValueError("no"))))
    assert failed.finished_at is not None
    failed.finished_at -= 1000 * jobs_module.RETRY_SECONDS
    assert jobs.request("a", "A", quick()) is failed
    jobs.forget(failed)
    assert ended(jobs.request("a", "A", quick())).result == "done"


def test_failures_take_no_room_from_results_and_are_bounded() -> None:
    jobs = one_lane(keep=2)
    for key in ("a", "b"):
        ended(jobs.request(key, key, quick(key)))
    for number in range(jobs_module.FAILED_KEPT + 5):
        ended(jobs.request(number, "no", failing(InputError("a", "b", "c"))))
    assert [job.result for job in jobs.finished() if job.error is None] == ["a", "b"]
    assert len(jobs.finished()) == 2 + jobs_module.FAILED_KEPT


def test_what_is_out_of_date_is_run_again() -> None:
    stale: set[Hashable] = set()
    jobs = one_lane(is_stale=lambda job: job.result in stale)
    first = ended(jobs.request("a", "A", quick(1)))
    assert jobs.request("a", "A", quick(2)) is first
    stale.add(1)
    assert jobs.find("a") is None
    assert ended(jobs.request("a", "A", quick(2))).result == 2


def test_the_last_used_results_are_kept() -> None:
    jobs = one_lane(keep=2)
    for key in ("a", "b"):
        ended(jobs.request(key, key, quick(key)))
    jobs.request("a", "A", quick())  # used again: b is the older now
    assert {job.key for job in jobs.finished()} == {"a", "b"}  # looking at them counts as no use
    ended(jobs.request("c", "C", quick("c")))
    assert [job.result for job in jobs.finished()] == ["a", "c"]
    assert jobs.find("b") is None


def test_results_are_kept_by_bytes_and_by_number() -> None:
    def sized(count: int) -> Any:
        return types.SimpleNamespace(nbytes=count)

    jobs = one_lane(keep=3, keep_bytes=100)
    for key, size in (("a", 40), ("b", 40), ("c", 30)):
        ended(jobs.request(key, key, quick(sized(size))))
    assert [job.key for job in jobs.finished()] == ["b", "c"]
    for key in ("d", "e"):
        ended(jobs.request(key, key, quick("says no size")))
    assert [job.key for job in jobs.finished()] == ["c", "d", "e"]
    ended(jobs.request("large", "L", quick(sized(5_000))))
    assert [job.key for job in jobs.finished()] == ["d", "e", "large"]  # the newest stays, whatever it takes
    ended(jobs.request("f", "F", quick(sized(1))))
    assert [job.key for job in jobs.finished()] == ["f"]


def test_a_result_that_was_there_is_a_finished_job() -> None:
    jobs = one_lane(keep=2)
    job = jobs.add("a", "A", "from the disk")
    assert job.finished.is_set()
    assert jobs.request("a", "A", quick()) is job
    jobs.drop([job])
    assert jobs.find("a") is None
    other = jobs.add("a", "A", "another")
    jobs.drop([job])  # another one of the same key is left alone
    assert jobs.find("a") is other


def test_what_is_requested_while_a_result_is_checked_is_found() -> None:
    """The check reads files outside the lock: meanwhile somebody can have found the result out of date, and requested anew."""
    again: list[Job] = []

    def is_stale(job: Job) -> bool:
        if not again and job.result == 1:
            again.append(Job("never used"))  # so that this request's own check goes through
            again.append(jobs.request("a", "A", quick(2)))
        return job.result == 1

    jobs = one_lane(is_stale=is_stale)
    first = ended(jobs.request("a", "A", quick(1)))
    found = jobs.find("a")
    assert found is again[1]
    assert found is not first
    assert ended(found).result == 2


def test_a_size_that_cannot_be_told_hangs_nobody_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        @property
        def nbytes(self) -> int:
            raise OSError("the file is gone")

    jobs = one_lane(keep_bytes=100)
    job = ended(jobs.request("a", "A", quick(Broken())))
    assert isinstance(job.result, Broken)  # those who wait have it
    assert jobs.find("a") is None
    assert [record.getMessage() for record in caplog.records] == [
        "the result of a job is not kept: its size is not known"
    ]
    assert ended(jobs.request("b", "B", quick("next"))).result == "next"
