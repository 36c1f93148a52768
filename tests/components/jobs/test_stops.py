"""Jobs that are stopped by those who wait, left, and wanted again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

import pytest

from components.errors import InputError
from components.jobs import Job, Jobs, Lane, Queue, Stopped
from tests.support.work import SOON, Gate, ended, one_lane, quick, wait_until


def test_a_stop_while_it_waits_and_while_it_works() -> None:
    jobs, work = one_lane(), Gate()
    at_work, waiting = jobs.request("a", "A", work, person="me"), jobs.request("b", "B", quick(), person="me")
    assert work.begun.wait(SOON)
    jobs.stop(waiting, "me")
    assert waiting.finished.is_set()  # at once
    assert waiting.is_stopped
    assert not at_work.finished.is_set()
    jobs.stop(at_work, "me")
    assert at_work.is_stopped_for("me")
    assert ended(at_work).is_stopped
    assert isinstance(at_work.error, Stopped)
    assert jobs.request("a", "A", quick(), person="me") is at_work  # until it is forgotten
    jobs.forget(at_work, "me")
    assert ended(jobs.request("a", "A", quick(), person="me")).result == "done"


def test_an_error_of_its_own_after_a_stop_counts_as_the_stop() -> None:
    """A download says in its own words that it was stopped."""
    jobs = one_lane(retry_seconds=0)

    def work(report_progress: Any, is_stopped: Callable[[], bool]) -> None:
        wait_until(is_stopped)
        raise InputError("The download was stopped.", "", "")

    job = jobs.request("a", "A", work, person="me")
    jobs.stop(job, "me")
    ended(job)
    assert job.is_stopped
    assert job.is_stopped_for("me")


def test_a_stop_by_one_leaves_the_others_their_job() -> None:
    jobs, work = one_lane(), Gate()
    job = jobs.request("a", "A", work, person="me")
    assert jobs.request("a", "A", work, person="you") is job
    jobs.stop(job, "me")
    assert not job.told_to_stop.is_set()
    assert [job.is_stopped_for(person) for person in ("me", "you")] == [True, False]
    assert jobs.request("a", "A", work, person="me") is job  # a page drawn again is no change of mind
    assert job.people == {"you"}
    jobs.forget(job, "me")
    assert jobs.request("a", "A", work, person="me") is job
    assert not job.is_stopped_for("me")
    jobs.stop(job, "you")
    assert not job.told_to_stop.is_set()
    jobs.stop(job, "me")
    assert ended(job).is_stopped


def test_who_is_gone_waits_no_longer() -> None:
    jobs = Jobs(Queue({"lane": Lane()}, is_present=lambda person: person != "gone"), "lane", 8)
    job = jobs.request("a", "A", Gate(), person="me")
    jobs.request("a", "A", Gate(), person="gone")
    jobs.stop(job, "me")
    assert ended(job).is_stopped


def test_a_stop_for_nobody_in_particular_ends_it_for_all() -> None:
    jobs = one_lane()
    job = jobs.request("a", "A", Gate(), person="me")
    jobs.stop(job)
    assert ended(job).is_stopped_for("me")
    assert jobs.request("a", "A", quick(), person="you") is job  # for others too, until it is forgotten


def test_somebody_else_may_ask_for_what_was_stopped() -> None:
    jobs = one_lane()
    job = jobs.request("a", "A", Gate(), person="me")
    jobs.stop(job, "me")
    ended(job)
    again = jobs.request("a", "A", quick(), person="you")
    assert again is not job
    assert ended(again).result == "done"
    assert not again.is_stopped_for("me")  # it is there now


def test_who_stopped_a_job_does_not_wait_for_that_of_another() -> None:
    jobs, work = one_lane(), Gate()
    job = jobs.request("a", "A", Gate(), person="me")
    jobs.stop(job, "me")
    ended(job)
    again = jobs.request("a", "A", work, person="you")
    assert again.is_stopped_for("me")
    assert not again.is_stopped_for("you")
    assert jobs.request("a", "A", work, person="me") is again
    assert again.people == {"you"}
    jobs.stop(again, "you")
    assert ended(again).is_stopped


def test_a_stop_that_was_taken_back_waits_for_the_end_of_the_old_work() -> None:
    """Never two at once for the same thing, though the old work looks only later whether it was stopped."""
    jobs = one_lane(lane=Lane(workers=2))
    begun, go_on, at_work = threading.Event(), threading.Event(), []

    def deaf(report_progress: Any, is_stopped: Any) -> str:
        at_work.append("old")
        begun.set()
        assert go_on.wait(SOON)
        at_work.remove("old")
        raise Stopped

    def new(*_: Any) -> list[str]:
        return [*at_work, "new"]

    job = jobs.request("a", "A", deaf, person="me")
    assert begun.wait(SOON)
    jobs.stop(job, "me")
    assert jobs.request("a", "A", new, person="me") is job
    jobs.forget(job, "me")
    again = jobs.request("a", "A", new, person="me")
    assert again is not job
    wait_until(lambda: again.started is not None)
    assert not again.finished.is_set()
    go_on.set()
    assert ended(again).result == ["new"]
    assert jobs.find("a") is again


def test_stops_taken_back_again_and_again_never_run_two_at_once() -> None:
    jobs = one_lane(lane=Lane(workers=4))
    begun, go_on = threading.Event(), threading.Event()
    running: list[int] = []
    most: list[int] = []

    def deaf(*_: Any) -> None:
        running.append(1)
        most.append(len(running))
        begun.set()
        assert go_on.wait(SOON)
        running.pop()
        raise Stopped

    job = jobs.request("a", "A", deaf, person="me")
    assert begun.wait(SOON)
    for _ in range(3):
        jobs.stop(job, "me")
        jobs.forget(job, "me")
        job = jobs.request("a", "A", deaf, person="me")
        wait_until(lambda: job.started is not None)  # noqa: B023 - called in this round
    go_on.set()
    ended(job)
    assert max(most) == 1


def test_work_that_completes_in_spite_of_its_stop_is_not_done_twice() -> None:
    jobs = one_lane(lane=Lane(workers=2))
    begun, go_on = threading.Event(), threading.Event()

    def deaf(*_: Any) -> str:
        begun.set()
        assert go_on.wait(SOON)
        return "complete"

    job = jobs.request("a", "A", deaf, person="me")
    assert begun.wait(SOON)
    jobs.stop(job, "me")
    jobs.forget(job, "me")
    again = jobs.request("a", "A", quick("once more"), person="me")
    go_on.set()
    assert ended(again).result == "complete"


def test_whoever_comes_at_the_moment_of_a_stop_gets_work_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, gate = one_lane(lane=Lane(workers=2)), Gate()
    job = jobs.request("a", "A", gate, person="Ann")
    assert gate.begun.wait(SOON)
    stop, joined = jobs.queue.stop, []

    def late_stop(stopped: Job) -> None:
        joined.append(jobs.request("a", "A", quick("for Ben"), person="Ben"))
        stop(stopped)

    monkeypatch.setattr(jobs.queue, "stop", late_stop)
    jobs.stop(job, "Ann")
    (bens,) = joined
    assert not bens.is_stopped_for("Ben")
    assert ended(bens).result == "for Ben"


def test_a_stop_after_the_end_changes_nothing() -> None:
    jobs = one_lane()
    job = ended(jobs.request("a", "A", quick(), person="me"))
    jobs.stop(job, "me")
    assert not job.is_stopped_for("me")
    assert jobs.request("a", "A", quick(), person="me") is job


def test_a_job_stopped_before_it_was_put_is_not_run() -> None:
    queue, work = Queue({"lane": Lane()}), Gate()
    job = Job("A")
    queue.stop(job)
    queue.put(job, work, "lane")
    assert ended(job).is_stopped
    assert work.runs == 0


def test_a_job_of_which_everybody_has_left_ends_and_a_later_request_starts_it_again() -> None:
    present: set[Hashable] = {"Ann", "Ben"}
    queue = Queue({"fast": Lane()}, is_present=lambda person: person in present)
    jobs, gate = Jobs(queue, "fast", keep=4), Gate()
    job = jobs.request("key", "Scoring", gate, person="Ann")
    assert jobs.request("key", "Scoring", gate, person="Ben") is job
    assert gate.begun.wait(SOON)
    present.discard("Ann")
    assert not jobs.end_if_left(job)  # Ben is still there
    present.discard("Ben")
    assert jobs.end_if_left(job)
    assert job.finished.wait(SOON)
    assert job.is_stopped
    present.add("Ben")
    gate.go_on.set()
    again = jobs.request("key", "Scoring", gate, person="Ben")
    assert again is not job
    assert again.finished.wait(SOON)
    assert again.result == "done"
    nobodys = jobs.request("other", "Preparing", Gate())
    assert not jobs.end_if_left(nobodys)  # nobody requested it: nobody can have left
    jobs.stop(nobodys)


@pytest.mark.parametrize("way", ["stopped", "left"])
def test_whoever_comes_while_the_others_are_looked_for_keeps_the_job(way: str) -> None:
    """Those who requested it are asked for outside the lock: meanwhile somebody can join."""
    joined: list[Job] = []

    def is_present(person: Hashable) -> bool:
        if person == "gone" and not joined:
            joined.append(jobs.request("a", "A", gate, person="Ben"))
        return person == "Ben"

    jobs, gate = Jobs(Queue({"lane": Lane()}, is_present=is_present), "lane", 8), Gate()
    job = jobs.request("a", "A", gate, person="gone")
    if way == "stopped":
        jobs.request("a", "A", gate, person="Ann")
        jobs.stop(job, "Ann")
    else:
        assert not jobs.end_if_left(job)
    assert joined == [job]
    assert not job.told_to_stop.is_set()
    gate.go_on.set()
    assert ended(job).result == "done"
    assert not job.is_stopped_for("Ben")
