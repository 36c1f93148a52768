"""Draws a job that a session waits for: under way, waiting for its turn, failed, or stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import streamlit as st

from components.sizes import in_words
from dashboard import caching
from dashboard.ui import messages
from dashboard.ui.wording import duration

if TYPE_CHECKING:
    from components.jobs import IsCancelled, Job, Jobs, ReportProgress

Value = TypeVar("Value")
SHOWN_AFTER = 0.5  # seconds: shorter jobs show no progress
LISTED = "_jobs_listed"  # session key: whether this run draws the sidebar's list of jobs
DRAWING = "_drawing"  # session key: how often a page's view was drawn; a bar tells by it whether its view was left
IN_PAGE = "_jobs_in_page"  # session key: the numbers of the jobs whose progress the page itself shows
SOMEBODY = "another person's job"
_REQUESTED = "_jobs_requested"  # session key: (view, place) to the jobs and the key that were requested there last
_STOPPED = "_jobs_stopped"  # session key: the keys of those that were stopped because they were no longer waited for
_MOST_STOPPED = 16  # keys that are kept, the last ones
BYTES = "bytes"  # the unit of downloads, shown as MB


@dataclass(frozen=True, eq=False)
class _Awaited:
    """A job under way, and how its bar is drawn."""

    jobs: Jobs
    job: Job
    stop_key: str
    unit: str
    resumes: bool


@dataclass(eq=False)
class _Shared:
    """The jobs under way that share a bar, and where it is drawn: where the first of them was awaited."""

    awaited: list[_Awaited] = field(default_factory=list)
    slot: Any = None


_SHARED: ContextVar[_Shared | None] = ContextVar("the jobs that share a bar", default=None)


@contextmanager
def one_bar() -> Iterator[None]:
    """All jobs that are awaited within it share one bar with one Stop.

    The bar is that of the first job, and is drawn where the first job was awaited. The page is drawn again as soon as one
    of the jobs ends, so that its result appears while the others continue. Stop ends all of them.
    """
    shared = _Shared()
    token = _SHARED.set(shared)
    try:
        yield
    except Exception:  # not a rerun or the end of the session, which are no Exceptions in Streamlit
        _SHARED.reset(token)
        _draw_shared(shared)
        raise
    except BaseException:
        _SHARED.reset(token)
        raise
    _SHARED.reset(token)
    _draw_shared(shared)


def _draw_shared(shared: _Shared) -> None:
    if shared.awaited:
        with shared.slot:
            _draw_bar(shared.awaited)


def ready(
    jobs: Jobs,
    job: Job,
    *,
    doing: str,
    stop_key: str,
    again_key: str,
    unit: str = "",
    resumes: bool = False,
    final: type[Exception] | tuple[()] = (),
) -> bool:
    """Whether a job has its result, or gets it within SHOWN_AFTER; else its progress or its end is drawn.

    `doing` completes "Something went wrong while ..."; `unit` names what `total` counts, where people should see it;
    `resumes` says that a job continues where it stopped when it is started again; after a `final` error the same would
    fail again, so that no button offers it.
    """
    is_stopped = job.is_stopped_for(caching.person())
    is_over = given_time(job)  # read once: it may end while this page is drawn
    if is_over and job.error is None:
        return True
    if is_over or is_stopped:
        explain_end(job, doing=doing, unit=unit, resumes=resumes)
        if not isinstance(job.error, final):
            again(again_label(job, resumes), again_key, jobs.forget, (job, caching.person()))
    else:
        _under_way(jobs, job, stop_key, unit, resumes)
    return False


def given_time(job: Job) -> bool:
    """Whether a job is over, or is within SHOWN_AFTER of its start: it is waited for once, not in every drawing of a page."""
    running = 0.0 if job.started is None else time.monotonic() - job.started
    return job.finished.wait(0.0 if job.is_stopped_for(caching.person()) else max(0.02, SHOWN_AFTER - running))


def prepared(
    key: Hashable,
    title: str,
    work: Callable[[ReportProgress, IsCancelled], Value],
    where: str,
    doing: str = "preparing the corpus",
    unit: str = "",
    jobs: Jobs | None = None,
) -> Value | None:
    """The result of a job that prepares a corpus; None while it runs or after it ended without one, which is drawn.

    `where` keys the widgets; `doing` and `unit` are those of `ready`. `jobs` keeps the results, by default with those of
    other preparations.
    """
    jobs = caching.preparations() if jobs is None else jobs
    job = jobs.request(key, title, work, person=caching.person())
    stop_key, again_key = f"stop_{where}", f"again_{where}"
    is_ready = ready(jobs, job, doing=doing, stop_key=stop_key, again_key=again_key, unit=unit)
    result: Value | None = job.result if is_ready else None
    return result


def latest(
    key: Hashable,
    title: str,
    work: Callable[[ReportProgress, IsCancelled], Value],
    where: str,
    doing: str,
    unit: str = "",
    *,
    view: Hashable,
    jobs: Jobs | None = None,
) -> Value | None:
    """As `prepared`, for work that is of use only while its view shows this: with another key at this place, or once the
    view or everybody who waits is gone, it ends. `view` is that of `stop_previous`.
    """
    kept = caching.explanations() if jobs is None else jobs

    def until_left(report_progress: ReportProgress, is_cancelled: IsCancelled) -> Value:
        return work(report_progress, unless_left(key, is_cancelled, kept))

    stop_previous(where, key, view, kept)
    return prepared(key, title, until_left, where, doing, unit, kept)


def unless_left(key: Hashable, is_cancelled: IsCancelled, jobs: Jobs | None = None) -> IsCancelled:
    """Whether the job of a key was stopped; ends it too once everybody who waits for it has gone."""
    kept = caching.preparations() if jobs is None else jobs

    def is_over() -> bool:
        if is_cancelled():
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


def wait(jobs: Jobs, job: Job, *, stop_key: str, unit: str = "", meanwhile: Callable[[], None]) -> None:
    """Wait in this run of the page for a job without which the page cannot be drawn; a click ends the wait, not the job.

    Progress and Stop are drawn until then, and below them what `meanwhile` draws.
    """
    if job.is_stopped_for(caching.person()) or job.finished.wait(0.02):
        return
    slot = st.empty()
    with slot.container():
        shown = _bar(line(job, unit), share(job), stop_key, jobs.stop, (job, caching.person()))
        meanwhile()
    while is_awaited(job) and not job.finished.wait(0.1):
        shown.progress(share(job), text=line(job, unit))
    slot.empty()


def is_awaited(job: Job) -> bool:
    """Whether a job is under way and this session has not stopped it."""
    return not job.finished.is_set() and not job.is_stopped_for(caching.person())


def status(job: Job, unit: str = "") -> str:
    """How far a job is, or which jobs run before it."""
    if job.started is None:
        return _turn(job)
    parts = []
    if unit == BYTES and job.total:
        parts.append(f"{in_words(job.done)} of {in_words(job.total)}")
    elif unit and job.total:
        parts.append(f"{job.done:,} of {job.total:,} {unit}")
        if job.per_second >= 1:
            parts.append(f"{job.per_second:,.0f} per second")
    elif job.total:
        parts.append(f"{100 * (job.fraction or 0):.0f} %")
    if job.seconds_left is not None:
        parts.append(f"{duration(job.seconds_left)} left")
    return " · ".join(parts)


def line(job: Job, unit: str = "") -> str:
    """A job's title and how far it is, as its own people see it."""
    return " · ".join(part for part in (messages.escape(job.title), status(job, unit)) if part)


def share(job: Job) -> float:
    """How full a job's bar is, 0..1. Where the total is not known, the bar approaches its end and does not reach it."""
    if job.fraction is not None:
        return job.fraction
    seconds = 0.0 if job.started is None else time.monotonic() - job.started
    return min(0.95, 1 - 1 / (1 + seconds / 4))


def name_for(job: Job, person: Hashable) -> str:
    """A job's title as a person may see it: titles name files, so that only those who asked for a job see its title."""
    has_owner = bool(job.people or job.stopped_by)
    return SOMEBODY if has_owner and person not in job.people | job.stopped_by else messages.escape(job.title)


def _turn(job: Job) -> str:
    earlier = caching.queue().before(job)
    if not earlier:
        return "about to start"
    if len(earlier) == 1:
        return f"waiting: next, after {name_for(earlier[0], caching.person())}"
    return f"waiting: {len(earlier)} jobs come first"


def bar(
    text: Callable[[], str],
    share: Callable[[], float],
    is_over: Callable[[], bool],
    *,
    stop_key: str,
    stop: Callable[..., None] | None,
    arguments: tuple[Any, ...],
) -> None:
    """The progress of some work, and Stop: drawn again twice per second. When the work ends, the whole page is drawn.

    None as `stop`: this person may not stop it.
    """
    if not st.session_state.get(LISTED, True):
        st.rerun()  # a fragment started it: the sidebar, which was not drawn with the fragment, has to list it

    until(is_over, lambda: _bar(text(), share(), stop_key, stop, arguments), 0.5)


def until(is_over: Callable[[], bool], draw: Callable[[], object], seconds: float) -> None:
    """Draw something again every so many seconds until a condition holds; then the whole page is drawn."""
    view = st.session_state.get(DRAWING)

    @st.fragment(run_every=seconds)
    def drawn() -> None:
        if st.session_state.get(DRAWING) != view:
            return  # the browser still asks for a bar of a view that has been left: it must not appear in the new one
        if is_over():
            st.rerun()
        draw()

    drawn()


def _bar(text: str, share: float, stop_key: str, stop: Callable[..., None] | None, arguments: tuple[Any, ...]) -> Any:
    """A bar, with Stop where there is a `stop`; the bar is returned, to be drawn again in its place."""
    shown = st.progress(share, text=text)
    if stop is not None:
        st.button("Stop", key=stop_key, icon=":material/stop:", on_click=stop, args=arguments)
    return shown


def again(label: str, key: str, start: Callable[..., None], arguments: tuple[Any, ...], is_main: bool = True) -> None:
    """The button that starts failed or stopped work again; `is_main` unless another button is the better choice."""
    kind: Literal["primary", "secondary"] = "primary" if is_main else "secondary"
    st.button(label, key=key, type=kind, icon=":material/play_arrow:", on_click=start, args=arguments)


def _under_way(jobs: Jobs, job: Job, stop_key: str, unit: str, resumes: bool) -> None:
    st.session_state.setdefault(IN_PAGE, set()).add(job.number)
    awaited, shared = _Awaited(jobs, job, stop_key, unit, resumes), _SHARED.get()
    if shared is None:
        _draw_bar([awaited])
        return
    if shared.slot is None:
        shared.slot = st.container()
    if not any(job is other.job for other in shared.awaited):
        shared.awaited.append(awaited)


def _draw_bar(awaited: list[_Awaited]) -> None:
    """One bar for jobs under way: it shows the first of them."""
    first, others = awaited[0], len(awaited) - 1
    more = f" · {others} more {'job' if others == 1 else 'jobs'}" if others else ""

    def stop(person: Hashable) -> None:
        for item in awaited:
            item.jobs.stop(item.job, person)

    bar(
        lambda: line(first.job, first.unit) + more,
        lambda: share(first.job),
        lambda: not all(is_awaited(item.job) for item in awaited),
        stop_key=first.stop_key,
        stop=stop if all(item.jobs.can_be_stopped for item in awaited) else None,
        arguments=(caching.person(),),
    )
    resumes = any(item.resumes for item in awaited)
    st.caption(
        "You can visit other pages in the meantime." + (" If you stop, finished work is kept." if resumes else "")
    )


def explain_end(job: Job, *, doing: str, unit: str = "", resumes: bool = False) -> None:
    """Say why a job that has ended for this session has no result: an error, or a stop. For the arguments see `ready`."""
    title = messages.escape(job.title)
    if _goes_on(job):
        st.info(f"**Stopped for you; other people still wait for it:** {title}.")
    elif job.is_cancelled or not job.finished.is_set():
        kept = f" after {job.done:,} of {job.total:,} {unit}, which are kept" if resumes else ""
        st.info(f"Stopped: {title}{kept}.")
    else:
        messages.explain(job.error or RuntimeError("no error given"), doing)


def again_label(job: Job, resumes: bool = False) -> str:
    """What the button says that starts a failed or stopped job again."""
    return "Wait again" if _goes_on(job) else "Continue" if resumes else "Start again"


def _goes_on(job: Job) -> bool:
    """Whether a job that a person left continues for others."""
    return not job.finished.is_set() and not job.cancel.is_set()
