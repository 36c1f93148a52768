"""Requests work for a session, and says by NotReady what is not there yet. It draws nothing: dashboard/ui/waiting does.

Whoever needs a result calls `result_of`, `prepared` or `latest` and goes on as if it were there. Where it is not, NotReady
ends the drawing of the figure, or of the whole view, at any depth; the frame catches it and draws in its place the progress
with Stop, the failure, or what a person has to choose first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st
from streamlit.delta_generator_singletons import context_dg_stack

from dashboard import caching

if TYPE_CHECKING:
    from components.jobs import IsStopped, Job, Jobs, ReportProgress

Value = TypeVar("Value")
SHOWN_AFTER = 0.5  # seconds: shorter jobs show no progress
_REQUESTED = "_jobs_requested"  # session key: (view, place) to the jobs and the key that were requested there last
_STOPPED = "_jobs_stopped"  # session key: the keys of those that were stopped because they were no longer waited for
_MOST_STOPPED = 16  # keys that are kept, the last ones


@dataclass(frozen=True, eq=False)
class Awaited:
    """A job that a session waits for, and how its progress or its end is drawn."""

    jobs: Jobs
    job: Job
    doing: str  # completes "Something went wrong while ..."
    stop_key: str
    again_key: str
    unit: str = ""  # what the job's `total` counts, where people should see it
    resumes: bool = False  # it continues where it stopped when it is started again
    final: type[Exception] | tuple[()] = ()  # errors after which the same would fail again: no button offers it


class NotReady(Exception):
    """What a figure or a view needs is not there: it is under way, was stopped, or failed. The frame draws which."""

    def __init__(self, awaited: Awaited | None = None) -> None:
        super().__init__("not ready" if awaited is None else f"not ready: {awaited.doing}")
        self.awaited = awaited
        # The containers that are being filled: what stands in them is half drawn, and the frame removes it.
        self.within: tuple[Any, ...] = context_dg_stack.get()

    @property
    def is_under_way(self) -> bool:
        """Whether the result comes by itself."""
        return self.awaited is not None and is_awaited(self.awaited.job)


class NeedsChoice(NotReady):
    """A person has to choose something before there can be a result."""


def result_of(
    jobs: Jobs,
    job: Job,
    *,
    doing: str,
    stop_key: str,
    again_key: str,
    unit: str = "",
    resumes: bool = False,
    final: type[Exception] | tuple[()] = (),
) -> Any:
    """The result of a job that was requested, once it is there or comes within SHOWN_AFTER. Else raises NotReady.

    For the arguments see `Awaited`.
    """
    if not job.finished.is_set() and caching.is_visitor_known() and caching.stops().find((caching.visitor(), job.key)):
        jobs.stop(job, caching.person())
    is_over = given_time(job)  # read once: it may end while this page is drawn
    if is_over and job.error is None:
        return job.result
    raise NotReady(Awaited(jobs, job, doing, stop_key, again_key, unit, resumes, final))


def stop(jobs: Jobs, job: Job, person: Hashable) -> None:
    """A person pressed Stop: this holds until they start it again, also after a reload of their page."""
    if caching.is_visitor_known():
        caching.stops().put((caching.visitor(), job.key), True)
    jobs.stop(job, person)


def start_again(jobs: Jobs, job: Job, person: Hashable) -> None:
    """A person wants a stopped or failed job again."""
    stopped = (caching.visitor(), job.key)
    caching.stops().drop(lambda key: key == stopped)
    jobs.forget(job, person)


def given_time(job: Job) -> bool:
    """Whether a job is over, or is within SHOWN_AFTER of its start: it is waited for once, not in every drawing of a page."""
    running = 0.0 if job.started is None else time.monotonic() - job.started
    return job.finished.wait(0.0 if job.is_stopped_for(caching.person()) else max(0.02, SHOWN_AFTER - running))


def prepared(
    key: Hashable,
    title: str,
    work: Callable[[ReportProgress, IsStopped], Value],
    where: str,
    doing: str = "preparing the corpus",
    unit: str = "",
    jobs: Jobs | None = None,
) -> Value:
    """The result of a job that prepares a corpus. Raises NotReady.

    `where` keys the widgets; `doing` and `unit` are those of `Awaited`. `jobs` keeps the results, by default with those of
    other preparations.
    """
    jobs = caching.preparations() if jobs is None else jobs
    job = jobs.request(key, title, work, person=caching.person())
    stop_key, again_key = f"stop_{where}", f"again_{where}"
    result: Value = result_of(jobs, job, doing=doing, stop_key=stop_key, again_key=again_key, unit=unit)
    return result


def latest(
    key: Hashable,
    title: str,
    work: Callable[[ReportProgress, IsStopped], Value],
    where: str,
    doing: str,
    unit: str = "",
    *,
    view: Hashable,
    jobs: Jobs | None = None,
) -> Value:
    """As `prepared`, for work that is of use only while its view shows this: with another key at this place, or once the
    view or everybody who waits is gone, it ends. `view` is that of `stop_previous`.
    """
    kept = caching.explanations() if jobs is None else jobs

    def until_left(report_progress: ReportProgress, is_stopped: IsStopped) -> Value:
        return work(report_progress, unless_left(key, is_stopped, kept))

    stop_previous(where, key, view, kept)
    return prepared(key, title, until_left, where, doing, unit, kept)


def unless_left(key: Hashable, is_stopped: IsStopped, jobs: Jobs | None = None) -> IsStopped:
    """Whether the job of a key was stopped; ends it too once everybody who waits for it has gone."""
    kept = caching.preparations() if jobs is None else jobs

    def is_over() -> bool:
        if is_stopped():
            return True
        job = kept.find(key)
        return job is not None and kept.end_if_left(job)

    return is_over


def stop_previous(where: str, key: Hashable, view: Hashable = "", jobs: Jobs | None = None) -> None:
    """Stop the jobs that this session requested before and no longer waits for; the job of `key` in `jobs` comes next.

    These are the last one of this place, unless it is that of `key`, and those of the views that were left: `view` names
    the view of several places, and is the place by default. `jobs` are the preparations by default.
    """
    kept = caching.preparations() if jobs is None else jobs
    here = (view or where, where)
    requested = _requested()
    _stop([place for place in requested if place == here or place[0] != here[0]], key)
    requested[here] = (kept, key)
    stopped: dict[Hashable, None] = st.session_state.setdefault(_STOPPED, {})
    again = kept.find(key) if key in stopped else None
    stopped.pop(key, None)
    if again is not None:  # the person did not press Stop: it may start again
        kept.forget(again, caching.person())


def stop_requested() -> None:
    """Stop all jobs for which `stop_previous` was called: the view that showed them was left."""
    _stop(list(_requested()), None)


def _requested() -> dict[tuple[Hashable, str], tuple[Jobs, Hashable]]:
    requested: dict[tuple[Hashable, str], tuple[Jobs, Hashable]] = st.session_state.setdefault(_REQUESTED, {})
    return requested


def _stop(places: list[tuple[Hashable, str]], key: Hashable) -> None:
    """Take this session off the jobs of these places, except that of `key`."""
    requested, person = _requested(), caching.person()
    stopped: dict[Hashable, None] = st.session_state.setdefault(_STOPPED, {})
    for jobs, previous in [requested.pop(place) for place in places]:
        job = None if previous == key else jobs.find(previous)
        if job is not None and not job.finished.is_set() and not job.is_stopped_for(person):
            jobs.stop(job, person)
            stopped.pop(previous, None)
            stopped[previous] = None
            for oldest in list(stopped)[:-_MOST_STOPPED]:
                del stopped[oldest]


def is_awaited(job: Job) -> bool:
    """Whether a job is under way and this session has not stopped it."""
    return not job.finished.is_set() and not job.is_stopped_for(caching.person())
