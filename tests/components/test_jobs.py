"""Work in the background: one job for all who ask, in lanes, stopped by those who wait; results that are kept."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from components import jobs as jobs_module
from components.errors import InputError
from components.jobs import Cache, CachePart, Cancelled, Job, Jobs, Lane, Presence, Queue, WorkFailed, part_of
from tests.support.garbage import only_new_objects

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

    def __call__(self, report_progress: Callable[[int, int], None], is_cancelled: Callable[[], bool]) -> Any:
        self.runs += 1
        self.begun.set()
        end = time.monotonic() + SOON
        while not self.go_on.wait(0.001):
            assert time.monotonic() < end, "waited in vain"
            if is_cancelled():
                raise Cancelled
        return self.result


def quick(result: Any = "done") -> Callable[..., Any]:
    return lambda report_progress, is_cancelled: result


def failing(problem: BaseException) -> Callable[..., Any]:
    def work(*_: Any) -> None:
        raise problem

    return work


def one_lane(keep: int = 8, lane: Lane | None = None, **options: Any) -> Jobs:
    return Jobs(Queue({"lane": lane or Lane()}), "lane", keep, **options)


def ended(job: Job) -> Job:
    assert job.finished.wait(SOON)
    return job


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """The time that jobs read, set by the test."""
    clock = types.SimpleNamespace(now=100.0)
    for module in ("job", "presence"):
        monkeypatch.setattr(f"components.jobs.{module}.time", types.SimpleNamespace(monotonic=lambda: clock.now))
    return clock


# One job


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


def test_progress_pace_and_time_left(clock: types.SimpleNamespace) -> None:
    job = Job("A")
    assert (job.fraction, job.per_second, job.seconds_left) == (None, 0.0, None)
    job.report_progress(20, 100)  # an earlier run had done 20 already
    assert (job.fraction, job.per_second, job.seconds_left) == (0.2, 0.0, None)
    clock.now += 2
    job.report_progress(30, 100)
    assert (job.fraction, job.per_second, job.seconds_left) == (0.3, 5.0, 14.0)
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
    def work(report_progress: Callable[[int, int], None], is_cancelled: Callable[[], bool]) -> str:
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


# Errors


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
    assert not job.is_cancelled
    assert ended(jobs.request("b", "B", quick())).result == "done"


def test_nobody_waits_in_vain_where_even_the_message_of_an_error_fails() -> None:
    class Wordless(BaseException):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    jobs = one_lane()
    job = ended(jobs.request("a", "A", failing(Wordless())))
    assert isinstance(job.error, Exception)
    assert jobs.find("a") is job


def test_a_queue_counts_what_works_and_what_waits_by_lane() -> None:
    queue, gate = Queue({"one": Lane(), "other": Lane()}), Gate()
    assert queue.counts() == {"one": (0, 0), "other": (0, 0)}
    jobs = Jobs(queue, "one", 8)
    under_way = [jobs.request(key, key, gate) for key in "abc"]
    assert gate.begun.wait(SOON)
    assert queue.counts() == {"one": (1, 2), "other": (0, 0)}
    gate.go_on.set()
    assert all(job.finished.wait(SOON) for job in under_way)
    wait_until(lambda: queue.counts() == {"one": (0, 0), "other": (0, 0)})


def test_only_faults_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    jobs = one_lane()
    ended(jobs.request("a", "Meant for people", failing(InputError("given", "expected", "fix"))))
    ended(jobs.request("b", "A fault of ours", failing(ZeroDivisionError("no"))))
    assert [record.getMessage() for record in caplog.records] == ["a job of the lane 'lane' failed"]


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


def test_a_worker_that_waits_holds_nothing() -> None:
    class Result:
        pass

    with only_new_objects():
        jobs = one_lane(keep=1)
        first = weakref.ref(ended(jobs.request("a", "A", lambda *_: Result())).result)
        ended(jobs.request("b", "B", quick()))
        wait_until(lambda: gc.collect() >= 0 and first() is None)


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


# What is kept


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


# Order


def test_a_lane_runs_in_order_and_says_so() -> None:
    jobs, work, order = one_lane(), Gate(), []
    first = jobs.request("a", "A", work)
    assert work.begun.wait(SOON)
    waiting = [
        jobs.request(key, key, lambda *_, key=key: order.append(key), person="me")  # type: ignore[misc]
        for key in "bcd"
    ]
    assert jobs.queue.under_way() == (first, *waiting)
    assert jobs.under_way() == (first, *waiting)
    assert jobs.queue.before(waiting[1]) == (first, waiting[0])
    assert jobs.queue.before(first) == ()
    assert all(job.started is None for job in waiting)
    jobs.queue.put_first(waiting[2])
    assert jobs.queue.under_way() == (first, waiting[2], waiting[0], waiting[1])
    work.go_on.set()
    for job in waiting:
        ended(job)
    assert order == ["d", "b", "c"]
    assert jobs.under_way() == ()
    wait_until(lambda: jobs.queue.under_way() == ())


def test_the_newest_first_and_the_oldest_dropped() -> None:
    jobs = one_lane(lane=Lane(newest_first=True, most_waiting=2))
    work, order = Gate(), []
    jobs.request("a", "A", work)
    assert work.begun.wait(SOON)
    one, two, three = (
        jobs.request(key, key, lambda *_, key=key: order.append(key), person="me")  # type: ignore[misc]
        for key in "bcd"
    )
    assert ended(one).is_cancelled
    assert one.run_again
    assert not one.is_stopped_for("me")  # nobody stopped it
    assert jobs.find("b") is None
    assert jobs.queue.under_way()[1:] == (three, two)
    assert jobs.queue.before(two)[1:] == (three,)
    jobs.queue.put_first(two)
    assert jobs.queue.under_way()[1:] == (two, three)
    work.go_on.set()
    ended(three)
    assert order == ["c", "d"]
    assert ended(jobs.request("b", "B", quick("made now"))).result == "made now"


def test_lanes_do_not_wait_for_one_another_and_have_so_many_workers() -> None:
    queue = Queue({"slow": Lane(workers=2), "quick": Lane()})
    slow, works = Jobs(queue, "slow", 8), [Gate() for _ in range(3)]
    jobs = [slow.request(number, "slow", work) for number, work in enumerate(works)]
    assert works[0].begun.wait(SOON)
    assert works[1].begun.wait(SOON)
    assert ended(Jobs(queue, "quick", 8).request("a", "quick", quick())).result == "done"
    assert ended(slow.request("b", "in another lane", quick(), lane="quick")).result == "done"
    assert not works[2].begun.is_set()
    works[0].go_on.set()
    assert works[2].begun.wait(SOON)
    for work in works:
        work.go_on.set()
    for job in jobs:
        ended(job)
    wait_until(lambda: not any(thread.name == "jobs: slow" for thread in threading.enumerate()))


def test_a_full_lane_of_two_kinds_locks_nobody_out() -> None:
    """A request drops the other kind's job, which takes that kind's lock: both at once must not wait for each other."""
    queue = Queue({"lane": Lane(newest_first=True, most_waiting=1)})
    kinds, work = [Jobs(queue, "lane", 8), Jobs(queue, "lane", 8)], Gate()
    queue.put(Job("first"), work, "lane")

    def ask(kind: int) -> None:
        for number in range(300):
            kinds[kind].request(number, "a", quick())

    threads = [threading.Thread(target=ask, args=(kind,), daemon=True) for kind in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not any(thread.is_alive() for thread in threads)
    work.go_on.set()


# Stop


def test_a_stop_while_it_waits_and_while_it_works() -> None:
    jobs, work = one_lane(), Gate()
    at_work, waiting = jobs.request("a", "A", work, person="me"), jobs.request("b", "B", quick(), person="me")
    assert work.begun.wait(SOON)
    jobs.stop(waiting, "me")
    assert waiting.finished.is_set()  # at once
    assert waiting.is_cancelled
    assert not at_work.finished.is_set()
    jobs.stop(at_work, "me")
    assert at_work.is_stopped_for("me")
    assert ended(at_work).is_cancelled
    assert isinstance(at_work.error, Cancelled)
    assert jobs.request("a", "A", quick(), person="me") is at_work  # until it is forgotten
    jobs.forget(at_work, "me")
    assert ended(jobs.request("a", "A", quick(), person="me")).result == "done"


def test_an_error_of_its_own_after_a_stop_counts_as_the_stop() -> None:
    """A download says in its own words that it was stopped."""
    jobs = one_lane(retry_seconds=0)

    def work(report_progress: Any, is_cancelled: Callable[[], bool]) -> None:
        wait_until(is_cancelled)
        raise InputError("The download was stopped.", "", "")

    job = jobs.request("a", "A", work, person="me")
    jobs.stop(job, "me")
    ended(job)
    assert job.is_cancelled
    assert job.is_stopped_for("me")


def test_a_stop_by_one_leaves_the_others_their_job() -> None:
    jobs, work = one_lane(), Gate()
    job = jobs.request("a", "A", work, person="me")
    assert jobs.request("a", "A", work, person="you") is job
    jobs.stop(job, "me")
    assert not job.cancel.is_set()
    assert [job.is_stopped_for(person) for person in ("me", "you")] == [True, False]
    assert jobs.request("a", "A", work, person="me") is job  # a page drawn again is no change of mind
    assert job.people == {"you"}
    jobs.forget(job, "me")
    assert jobs.request("a", "A", work, person="me") is job
    assert not job.is_stopped_for("me")
    jobs.stop(job, "you")
    assert not job.cancel.is_set()
    jobs.stop(job, "me")
    assert ended(job).is_cancelled


def test_who_is_gone_waits_no_longer() -> None:
    jobs = Jobs(Queue({"lane": Lane()}, is_present=lambda person: person != "gone"), "lane", 8)
    job = jobs.request("a", "A", Gate(), person="me")
    jobs.request("a", "A", Gate(), person="gone")
    jobs.stop(job, "me")
    assert ended(job).is_cancelled


def test_a_connection_that_breaks_for_a_moment_is_no_leaving(clock: types.SimpleNamespace) -> None:
    connected = {"me", "quiet"}
    presence = Presence(lambda person: person in connected, grace_seconds=10)
    assert presence.is_present("me")
    presence.see("quiet")
    connected.clear()
    clock.now += 9
    assert presence.is_present("me")
    assert presence.is_present("quiet")  # whose page was drawn a moment ago
    assert not presence.is_present("never seen")
    clock.now += 2  # being asked about is no sign of life
    assert not presence.is_present("me")
    connected.add("me")
    assert presence.is_present("me")
    connected.clear()
    clock.now += 9
    assert presence.is_present("me")
    assert not presence.is_present("quiet")


def test_a_stop_for_nobody_in_particular_ends_it_for_all() -> None:
    jobs = one_lane()
    job = jobs.request("a", "A", Gate(), person="me")
    jobs.stop(job)
    assert ended(job).is_stopped_for("me")


def test_somebody_else_may_ask_for_what_was_stopped() -> None:
    jobs = one_lane()
    job = jobs.request("a", "A", Gate(), person="me")
    jobs.stop(job, "me")
    ended(job)
    again = jobs.request("a", "A", quick(), person="you")
    assert again is not job
    assert ended(again).result == "done"
    assert not again.is_stopped_for("me")  # it is there now


def test_a_stop_that_was_taken_back_waits_for_the_end_of_the_old_work() -> None:
    """Never two at once for the same thing, though the old work looks only later whether it was stopped."""
    jobs = one_lane(lane=Lane(workers=2))
    begun, go_on, at_work = threading.Event(), threading.Event(), []

    def deaf(report_progress: Any, is_cancelled: Any) -> str:
        at_work.append("old")
        begun.set()
        assert go_on.wait(SOON)
        at_work.remove("old")
        raise Cancelled

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
        raise Cancelled

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
    cancel, joined = jobs.queue.cancel, []

    def late_cancel(stopped: Job) -> None:
        joined.append(jobs.request("a", "A", quick("for Ben"), person="Ben"))
        cancel(stopped)

    monkeypatch.setattr(jobs.queue, "cancel", late_cancel)
    jobs.stop(job, "Ann")
    (bens,) = joined
    assert not bens.is_stopped_for("Ben")
    assert ended(bens).result == "for Ben"


def test_a_size_that_cannot_be_told_hangs_nobody() -> None:
    class Broken:
        @property
        def nbytes(self) -> int:
            raise OSError("the file is gone")

    jobs = one_lane(keep_bytes=100)
    assert jobs.request("a", "A", quick(Broken())).finished.wait(SOON)
    assert ended(jobs.request("b", "B", quick("next"))).result == "next"


def test_a_stop_after_the_end_changes_nothing() -> None:
    jobs = one_lane()
    job = ended(jobs.request("a", "A", quick(), person="me"))
    jobs.stop(job, "me")
    assert not job.is_stopped_for("me")
    assert jobs.request("a", "A", quick(), person="me") is job


def test_a_job_stopped_before_it_was_put_is_not_run() -> None:
    queue, work = Queue({"lane": Lane()}), Gate()
    job = Job("A")
    queue.cancel(job)
    queue.put(job, work, "lane")
    assert ended(job).is_cancelled
    assert work.runs == 0


# Giving way


def background(
    is_busy: Callable[[], bool] = lambda: False, is_present: Callable[[Hashable], bool] = lambda person: True
) -> Queue:
    return Queue({"lane": Lane(), "background": Lane(gives_way=True)}, is_busy, is_present)


class Steps:
    """Work that looks after each step whether it may go on."""

    def __init__(self) -> None:
        self.steps, self.end = 0, threading.Event()

    def __call__(self, report_progress: Any, is_cancelled: Callable[[], bool]) -> int:
        while not self.end.is_set():
            if is_cancelled():
                raise Cancelled
            self.steps += 1
            time.sleep(0.001)
        return self.steps

    def goes_on(self) -> bool:
        before = self.steps
        time.sleep(0.03)
        return self.steps > before + 1


def test_a_lane_that_gives_way_pauses_while_others_work() -> None:
    queue = background()
    jobs, steps, work = Jobs(queue, "lane", 8), Steps(), Gate()
    job = jobs.request("demo", "Demo", steps, lane="background")
    wait_until(steps.goes_on)
    other = jobs.request("a", "A", work, person="you")
    assert work.begun.wait(SOON)
    wait_until(lambda: not steps.goes_on())
    work.go_on.set()
    ended(other)
    wait_until(steps.goes_on)
    steps.end.set()
    assert ended(job).result > 0


def test_the_pace_of_work_that_gave_way_is_that_of_its_working_time() -> None:
    queue = background()
    jobs, work, reported, go_on = Jobs(queue, "lane", 8), Gate(), threading.Event(), threading.Event()

    def in_two_parts(report_progress: Callable[[int, int], None], is_cancelled: Callable[[], bool]) -> None:
        report_progress(0, 100)
        time.sleep(0.02)
        report_progress(50, 100)
        reported.set()
        assert go_on.wait(SOON)
        is_cancelled()  # pauses here

    job = jobs.request("demo", "Demo", in_two_parts, lane="background")
    assert reported.wait(SOON)
    other = jobs.request("a", "A", work, person="you")
    assert work.begun.wait(SOON)
    began = time.monotonic()
    go_on.set()
    time.sleep(1.0)
    work.go_on.set()
    ended(other)
    ended(job)
    assert job.finished_at is not None
    assert job.finished_at - began >= 1.0
    assert job._first_report is not None
    assert job.finished_at - job._first_report[0] < 0.6  # without the second of the pause


def test_it_pauses_while_people_wait_for_work_outside_the_queue() -> None:
    busy = threading.Event()
    jobs, steps = Jobs(background(busy.is_set), "background", 8), Steps()
    busy.set()
    job = jobs.request("demo", "Demo", steps)
    assert not steps.goes_on()
    assert job.started is None
    busy.clear()
    wait_until(steps.goes_on)
    steps.end.set()
    ended(job)


def test_it_goes_on_when_somebody_waits_for_it_and_can_be_stopped_while_it_pauses() -> None:
    queue = background()
    jobs, steps, work = Jobs(queue, "lane", 8), Steps(), Gate()
    jobs.request("a", "A", work, person="you")
    assert work.begun.wait(SOON)
    job = jobs.request("demo", "Demo", steps, lane="background")
    wait_until(lambda: not steps.goes_on())
    assert jobs.request("demo", "Demo", steps, person="me") is job
    wait_until(steps.goes_on)
    jobs.stop(job, "me")
    assert ended(job).is_cancelled
    paused = jobs.request("other", "Other", Steps(), lane="background")
    jobs.stop(paused)
    assert ended(paused).is_cancelled
    work.go_on.set()


def test_it_pauses_again_when_the_last_person_who_waits_has_left_without_stop() -> None:
    present = {"you", "me"}
    queue = background(is_present=lambda person: person in present)
    jobs, steps, work = Jobs(queue, "lane", 8), Steps(), Gate()
    jobs.request("a", "A", work, person="you")
    assert work.begun.wait(SOON)
    job = jobs.request("demo", "Demo", steps, lane="background", person="me")
    wait_until(steps.goes_on)
    present.remove("me")
    wait_until(lambda: not steps.goes_on())
    present.add("me")
    wait_until(steps.goes_on)
    jobs.stop(job)
    work.go_on.set()
    assert ended(job).is_cancelled


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
    assert job.is_cancelled
    present.add("Ben")
    gate.go_on.set()
    again = jobs.request("key", "Scoring", gate, person="Ben")
    assert again is not job
    assert again.finished.wait(SOON)
    assert again.result == "done"
    nobodys = jobs.request("other", "Preparing", Gate())
    assert not jobs.end_if_left(nobodys)  # nobody requested it: nobody can have left
    jobs.stop(nobodys)


def test_a_waiting_job_leaves_the_background_once_somebody_waits_for_it() -> None:
    queue = background(is_busy=lambda: True)
    jobs, first = Jobs(queue, "lane", 8), Gate()
    ahead = jobs.request("first", "First", first, lane="background")
    job = jobs.request("second", "Second", quick(), lane="background")
    assert not job.finished.wait(0.02)
    assert jobs.request("second", "Second", quick(), person="me") is job
    assert ended(job).result == "done"
    assert not first.begun.is_set()
    jobs.stop(ahead)


# Results computed at once


def test_thirty_threads_cost_one_computation() -> None:
    cache: Cache[list[int]] = Cache(4)
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def compute() -> list[int]:
        calls.append(1)
        begun.set()
        assert go_on.wait(SOON)
        return [1]

    with ThreadPoolExecutor(30) as threads:
        asked = [threads.submit(cache.get, "a", compute) for _ in range(30)]
        assert begun.wait(SOON)
        assert cache.is_computing()
        assert cache.is_known("a")
        assert cache.find("a") is None
        go_on.set()
        results = [one.result(SOON) for one in asked]
    assert len(calls) == 1
    assert len({id(result) for result in results}) == 1
    assert not cache.is_computing()
    assert cache.find("a") is results[0]
    assert cache.get("a", pytest.fail) is results[0]
    assert not cache.is_known("b")


def test_an_exception_reaches_everybody_who_waits_and_is_not_kept() -> None:
    cache: Cache[int] = Cache(4)
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def fail() -> int:
        calls.append(1)
        begun.set()
        assert go_on.wait(SOON)
        raise KeyboardInterrupt("no memory")

    with ThreadPoolExecutor(10) as threads:
        first = threads.submit(cache.get, "a", fail)
        assert begun.wait(SOON)
        others = [threads.submit(cache.get, "a", fail) for _ in range(9)]
        wait_until(lambda: len(cache._under_way["a"]._condition._waiters) == 9)  # type: ignore[attr-defined]
        go_on.set()
        with pytest.raises(KeyboardInterrupt, match="no memory"):
            first.result(SOON)
        for one in others:  # whose threads nobody interrupted
            with pytest.raises(WorkFailed, match="KeyboardInterrupt: no memory"):
                one.result(SOON)
    assert len(calls) == 1
    assert not cache.is_known("a")
    assert cache.get("a", lambda: 7) == 7


def test_different_keys_are_computed_side_by_side() -> None:
    cache: Cache[int] = Cache(4)
    both = threading.Barrier(2, timeout=SOON)  # breaks unless the other computation runs at the same time
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda key: cache.get(key, both.wait), "ab"))
    assert len(cache) == 2


def test_the_least_recently_used_goes_first() -> None:
    cache: Cache[int] = Cache(2)
    for number, key in enumerate("ab"):
        cache.put(key, number)
    assert cache.find("a") == 0  # used again: b is the older now
    assert cache.find("unknown") is None
    cache.put("c", 2)
    assert [cache.find(key) for key in "abc"] == [0, None, 2]
    assert (len(cache), cache.used) == (2, 2)
    cache.put("a", 9)
    cache.get("d", lambda: 3)
    assert [cache.find(key) for key in "acd"] == [9, None, 3]
    cache.clear()
    assert (len(cache), cache.used) == (0, 0)


def test_a_limit_by_size() -> None:
    cache: Cache[str] = Cache(10, len)
    for number in range(10):
        cache.get(number, lambda: "x")
    assert (len(cache), cache.used) == (10, 10)
    cache.get("large", lambda: "x" * 9)
    assert (len(cache), cache.used) == (2, 10)
    assert cache.get("too large", lambda: "x" * 11) == "x" * 11
    assert cache.find("too large") is None
    assert (len(cache), cache.used) == (2, 10)
    cache.put("large", "y" * 11)  # the older one must not be taken for it
    assert cache.find("large") is None
    assert cache.find(9) == "x"


def test_a_size_that_fails_reaches_who_waits_and_leaves_nothing_under_way() -> None:
    def size(value: str) -> int:
        raise OSError("the file is gone")

    cache: Cache[str] = Cache(10, size)
    with pytest.raises(OSError, match="is gone"):
        cache.get("a", lambda: "value")
    assert not cache.is_computing()
    assert not cache.is_known("a")


# The end of the process


def test_a_closed_queue_stops_all_and_takes_no_more() -> None:
    jobs, gates = one_lane(), [Gate(), Gate()]
    working, waiting = (jobs.request(number, "", gate) for number, gate in enumerate(gates))
    assert gates[0].begun.wait(SOON)
    assert jobs.queue.close(SOON)
    assert working.is_cancelled
    assert waiting.is_cancelled
    assert not gates[1].begun.is_set()
    late = jobs.request("late", "", quick())
    assert late.finished.is_set()
    assert late.is_cancelled
    assert jobs.queue.under_way() == ()


def test_a_queue_is_closed_in_time_though_work_does_not_hear_its_stop() -> None:
    jobs, begun, go_on = one_lane(), threading.Event(), threading.Event()

    def hears_nothing(*_: Any) -> None:
        begun.set()
        go_on.wait(SOON)

    deaf = jobs.request("deaf", "", hears_nothing)
    assert begun.wait(SOON)
    assert not jobs.queue.close(0.1)
    go_on.set()
    ended(deaf)
    assert jobs.queue.close(SOON)


def test_what_other_processes_do_goes_on_when_a_queue_is_closed() -> None:
    queue, gate = Queue({"lane": Lane(), "training": Lane(outlives_process=True)}), Gate()
    training = Jobs(queue, "training", keep=1).request("a", "A", gate)
    assert gate.begun.wait(SOON)
    assert queue.close(SOON)
    assert not training.cancel.is_set()
    gate.go_on.set()
    assert ended(training).result == "done"


# Threads that cannot be started


class NoThreads:
    """While it is on, no thread can be started, as where the system allows no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_on, start = False, threading.Thread.start

        def start_or_fail(thread: threading.Thread) -> None:
            if self.is_on:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_or_fail)


def test_a_thread_that_cannot_start_fails_its_job_and_the_lane_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    no_threads, jobs = NoThreads(monkeypatch), one_lane()
    no_threads.is_on = True
    job = jobs.request("a", "A", quick())
    assert job.finished.is_set()
    assert "allows it no more threads" in str(job.error)
    assert not job.is_cancelled
    assert jobs.queue.under_way() == ()
    assert not jobs.queue.can_start_threads()
    no_threads.is_on = False
    assert jobs.queue.can_start_threads()  # a trial, and no job, tells
    jobs.forget(job)
    assert ended(jobs.request("a", "A", quick("at last"))).result == "at last"
    assert ended(jobs.request("b", "B", quick("and again"))).result == "and again"


def test_a_job_waits_for_the_thread_at_work_where_no_second_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    no_threads, jobs = NoThreads(monkeypatch), one_lane(lane=Lane(workers=2))
    first = Gate()
    working = jobs.request("a", "A", first)
    assert first.begun.wait(SOON)
    no_threads.is_on = True
    waiting = jobs.request("b", "B", quick())
    assert not waiting.finished.is_set()
    first.go_on.set()
    assert ended(waiting).result == ended(working).result == "done"
    no_threads.is_on = False
    both = [Gate(), Gate()]  # two at once again: a thread that never started is not counted
    jobs_now = [jobs.request(number, "", gate) for number, gate in enumerate(both)]
    assert all(gate.begun.wait(SOON) for gate in both)
    for gate in both:
        gate.go_on.set()
    assert [ended(job).result for job in jobs_now] == ["done", "done"]


def test_a_job_moved_to_a_lane_without_a_thread_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    no_threads = NoThreads(monkeypatch)
    jobs = Jobs(Queue({"lane": Lane(), "other": Lane()}), "lane", keep=8)
    first = Gate()
    jobs.request("a", "A", first)
    assert first.begun.wait(SOON)
    waiting = jobs.request("b", "B", quick(), person="anna")
    no_threads.is_on = True
    jobs.request("b", "B", quick(), person="anna", lane="other")
    assert "allows it no more threads" in str(ended(waiting).error)
    first.go_on.set()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no niceness of its own")
def test_long_work_is_nicer_than_the_threads_that_wait_for_it():
    def niceness(report_progress, is_cancelled):
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    queue = Queue({"long": Lane(niceness=3), "short": Lane()})
    here = os.getpriority(os.PRIO_PROCESS, os.getpid())
    found = {}
    for lane in ("long", "short"):
        job = Jobs(queue, lane, keep=1).request(lane, lane, niceness)
        assert job.finished.wait(10)
        found[lane] = job.result
    assert found == {"long": min(here + 3, 19), "short": here}
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == here


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no niceness of its own")
def test_work_is_done_where_a_thread_may_not_be_nice(monkeypatch):
    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    jobs = Jobs(Queue({"long": Lane(niceness=3)}), "long", keep=2)
    for key in ("first", "second"):
        job = jobs.request(key, key, lambda report_progress, is_cancelled: 7)
        assert job.finished.wait(10)
        assert job.result == 7


def test_kinds_share_the_room_of_a_cache_and_nothing_else():
    whole = Cache(3)
    first, second = CachePart(whole, "first"), CachePart(whole, "second")
    first.put("a", 1)
    assert second.find("a") is None
    assert second.get("a", lambda: 2) == 2
    assert (first.find("a"), second.find("a")) == (1, 2)
    second.put("b", 3)
    second.put("c", 4)  # the one used longest ago goes, whichever kind it is of
    assert first.find("a") is None
    first.put("a", 5)
    second.clear()
    assert [second.find(key) for key in "abc"] == [None, None, None]
    assert first.find("a") == 5
