"""Draws a job that a session waits for: under way, waiting for its turn, failed, or stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from components.sizes import in_words
from dashboard import caching
from dashboard.jobs import requests
from dashboard.jobs.requests import Awaited, is_awaited
from dashboard.ui import browser, messages
from dashboard.ui.wording import duration

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.jobs import Job, Jobs

LISTED = "_jobs_listed"  # session key: whether this run draws the sidebar's list of jobs
DRAWING = "_drawing"  # session key: how often a page's view was drawn; a bar tells by it whether its view was left
IN_PAGE = "_jobs_in_page"  # session key: the numbers of the jobs whose progress the page itself shows
SOMEBODY = "another person's job"
BYTES = "bytes"  # the unit of downloads, shown as MB


@dataclass(eq=False)
class _Shared:
    """The jobs under way that share a bar, and where it is drawn: where the first of them was awaited."""

    awaited: list[Awaited] = field(default_factory=list)
    missing: set[Hashable] = field(default_factory=set)  # of these the view has said why they are missing
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
        with shared.slot or st.container():
            _draw_bar(shared.awaited)


def is_said(key: Hashable, what: str) -> bool:
    """Whether this view has said above why something is missing, with its button: then only a line says that it is needed."""
    shared = _SHARED.get()
    if shared is None:
        return False
    if key in shared.missing:
        st.caption(f"Needed here too: {what}.")
        return True
    shared.missing.add(key)
    return False


def leave(container: DeltaGenerator) -> None:
    """A container is removed: a bar that was to be drawn in it is drawn where the next job is awaited."""
    shared = _SHARED.get()
    path = container._block_delta_path
    if shared is not None and shared.slot is not None and shared.slot._block_delta_path[: len(path)] == path:
        shared.slot = None


def draw(awaited: Awaited) -> None:
    """Draw the progress of a job with Stop, or why it ended without a result, with the button that starts it again.

    Where several things in a view need a job that has ended, only the first says why.
    """
    job = awaited.job
    # In this order: a job that ends with its result at this moment is drawn as under way, and the page again at once.
    if is_awaited(job) or (job.finished.is_set() and job.error is None):
        _under_way(awaited)
        return
    if is_said(job.number, messages.escape(job.title)):
        return
    explain_end(job, doing=awaited.doing, unit=awaited.unit, resumes=awaited.resumes)
    if not isinstance(job.error, awaited.final):
        label, arguments = again_label(job, awaited.resumes), (awaited.jobs, job, caching.person())
        again(label, awaited.again_key, requests.start_again, arguments)


def wait(jobs: Jobs, job: Job, *, stop_key: str, unit: str = "", meanwhile: Callable[[], None]) -> None:
    """Wait in this run of the page for a job without which the page cannot be drawn; a click ends the wait, not the job.

    Progress and Stop are drawn until then, and below them what `meanwhile` draws. They have a place where nothing is awaited
    too: else all that follows would move by one place when the page is drawn again, and the browser would make it anew.
    """
    slot = st.empty()
    if job.is_stopped_for(caching.person()) or job.finished.wait(0.02):
        return
    with slot.container():
        shown = _bar(line(job, unit), share(job), stop_key, jobs.stop, (job, caching.person()))
        meanwhile()
    while is_awaited(job) and not job.finished.wait(0.1):
        shown.progress(share(job), text=line(job, unit))
    slot.empty()


def shown_in_page(job: Job) -> None:
    """The page waits for a job without showing its progress: the sidebar does not list it either."""
    st.session_state.setdefault(IN_PAGE, set()).add(job.number)


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
        parts.append(f"{100 * share(job):.0f} %")
    if job.seconds_left:
        parts.append(f"{duration(job.seconds_left)} left")
    return " · ".join(parts)


def line(job: Job, unit: str = "") -> str:
    """A job's title and how far it is, as its own people see it."""
    return " · ".join(part for part in (messages.escape(job.title), status(job, unit)) if part)


def share(job: Job) -> float:
    """How full a job's bar is, 0..1. It is full only at the end: work may go on behind what it counts, and where the total is
    not known, the bar approaches its end.
    """
    if job.fraction is not None:
        return job.fraction if job.finished.is_set() else min(0.99, job.fraction)
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


def _under_way(awaited: Awaited) -> None:
    shown_in_page(awaited.job)
    shared = _SHARED.get()
    if shared is None:
        _draw_bar([awaited])
        return
    if shared.slot is None:
        shared.slot = st.container()
    if not any(awaited.job is other.job for other in shared.awaited):
        shared.awaited.append(awaited)


def _draw_bar(awaited: list[Awaited]) -> None:
    """One bar for jobs under way: it shows the first of them."""
    first, others = awaited[0], len(awaited) - 1
    more = f" · {others} more {'job' if others == 1 else 'jobs'}" if others else ""

    def stop(person: Hashable) -> None:
        for item in awaited:
            requests.stop(item.jobs, item.job, person)

    bar(
        lambda: line(first.job, first.unit) + more,
        lambda: share(first.job),
        lambda: not all(is_awaited(item.job) for item in awaited),
        stop_key=first.stop_key,
        stop=stop if all(item.jobs.can_be_stopped for item in awaited) else None,
        arguments=(caching.person(),),
    )
    if not caching.is_visitor_known():
        browser.know_visitor(f"visitor_{first.stop_key}")
    resumes = any(item.resumes for item in awaited)
    st.caption(
        "You can visit other pages in the meantime." + (" If you stop, finished work is kept." if resumes else "")
    )


def explain_end(job: Job, *, doing: str, unit: str = "", resumes: bool = False) -> None:
    """Say why a job that has ended for this session has no result: an error, or a stop. For the arguments see `Awaited`."""
    title = messages.escape(job.title)
    if _goes_on(job):
        st.info(f"**Stopped for you; other people still wait for it:** {title}.")
    elif job.is_stopped or not job.finished.is_set():
        kept = f" after {job.done:,} of {job.total:,} {unit}, which are kept" if resumes else ""
        st.info(f"Stopped: {title}{kept}.")
    else:
        messages.explain(job.error or RuntimeError("no error given"), doing)


def again_label(job: Job, resumes: bool = False) -> str:
    """What the button says that starts a failed or stopped job again."""
    return "Wait again" if _goes_on(job) else "Continue" if resumes else "Start again"


def _goes_on(job: Job) -> bool:
    """Whether a job that a person left continues for others."""
    return not job.finished.is_set() and not job.told_to_stop.is_set()
