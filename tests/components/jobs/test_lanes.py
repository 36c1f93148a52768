"""Jobs in lanes: their order, giving way, threads, and the end of the process."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from components.jobs import Job, Jobs, Lane, Queue
from tests.support.garbage import only_new_objects
from tests.support.work import SOON, Gate, NoThreads, Steps, background, ended, one_lane, quick, wait_until


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


def test_a_worker_that_waits_holds_nothing() -> None:
    class Result:
        pass

    with only_new_objects():
        jobs = one_lane(keep=1)
        first = weakref.ref(ended(jobs.request("a", "A", lambda *_: Result())).result)
        ended(jobs.request("b", "B", quick()))
        wait_until(lambda: gc.collect() >= 0 and first() is None)


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
    assert ended(one).is_stopped
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

    def in_two_parts(report_progress: Callable[[int, int], None], is_stopped: Callable[[], bool]) -> None:
        report_progress(0, 100)
        time.sleep(0.02)
        report_progress(50, 100)
        reported.set()
        assert go_on.wait(SOON)
        is_stopped()  # pauses here

    job = jobs.request("demo", "Demo", in_two_parts, lane="background")
    assert reported.wait(SOON)
    other = jobs.request("a", "A", work, person="you")
    assert work.begun.wait(SOON)
    assert job._first_report is not None
    first_report = job._first_report[0]
    began = time.monotonic()
    go_on.set()
    time.sleep(1.0)
    work.go_on.set()
    ended(other)
    ended(job)
    assert job.finished_at is not None
    assert job.finished_at - began >= 1.0
    left_out = job._first_report[0] - first_report  # of the second, and of what a busy machine adds to it
    assert 0.4 < left_out <= job.finished_at - began


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
    assert ended(job).is_stopped
    paused = jobs.request("other", "Other", Steps(), lane="background")
    jobs.stop(paused)
    assert ended(paused).is_stopped
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
    assert ended(job).is_stopped


def test_a_waiting_job_leaves_the_background_once_somebody_waits_for_it() -> None:
    queue = background(is_busy=lambda: True)
    jobs, first = Jobs(queue, "lane", 8), Gate()
    ahead = jobs.request("first", "First", first, lane="background")
    job = jobs.request("second", "Second", quick(), lane="background")
    assert jobs.request("second", "Second", quick()) is job  # for nobody in particular: it waits where it is
    assert not job.finished.wait(0.02)
    assert jobs.request("second", "Second", quick(), person="me") is job
    assert ended(job).result == "done"
    assert not first.begun.is_set()
    jobs.stop(ahead)


def test_it_pauses_for_work_of_its_own_kind_for_which_somebody_waits() -> None:
    jobs = Jobs(Queue({"background": Lane(workers=2, gives_way=True)}), "background", 8)
    steps, work = Steps(), Gate()
    job = jobs.request("demo", "Demo", steps)
    wait_until(steps.goes_on)
    other = jobs.request("a", "A", work, person="you")
    assert work.begun.wait(SOON)
    wait_until(lambda: not steps.goes_on())
    work.go_on.set()
    ended(other)
    wait_until(steps.goes_on)
    jobs.stop(job)
    ended(job)


def test_a_time_is_measured_where_no_other_job_is_at_work() -> None:
    jobs, gates = one_lane(lane=Lane(workers=2)), [Gate(), Gate()]
    assert jobs.queue.works_on_one()
    for number, gate in enumerate(gates):
        jobs.request(number, "", gate)
        assert gate.begun.wait(SOON)
        assert jobs.queue.works_on_one() is (number == 0)
    for gate in gates:
        gate.go_on.set()


def test_a_closed_queue_stops_all_and_takes_no_more() -> None:
    jobs, gates = one_lane(), [Gate(), Gate()]
    working, waiting = (jobs.request(number, "", gate) for number, gate in enumerate(gates))
    assert gates[0].begun.wait(SOON)
    assert jobs.queue.close(SOON)
    assert working.is_stopped
    assert waiting.is_stopped
    assert not gates[1].begun.is_set()
    late = jobs.request("late", "", quick())
    assert late.finished.is_set()
    assert late.is_stopped
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
    assert not training.told_to_stop.is_set()
    gate.go_on.set()
    assert ended(training).result == "done"


def test_a_thread_that_cannot_start_fails_its_job_and_the_lane_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    no_threads, jobs = NoThreads(monkeypatch), one_lane()
    no_threads.is_on = True
    job = jobs.request("a", "A", quick())
    assert job.finished.is_set()
    assert "allows it no more threads" in str(job.error)
    assert not job.is_stopped
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
    def niceness(report_progress, is_stopped):
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
        job = jobs.request(key, key, lambda report_progress, is_stopped: 7)
        assert job.finished.wait(10)
        assert job.result == 7
