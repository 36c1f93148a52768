"""Draws a job that a session waits for: under way, waiting for its turn, failed, or stopped."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import caching
from dashboard.ui import messages
from dashboard.ui.wording import duration

if TYPE_CHECKING:
    from components.jobs import Job, Jobs

LISTED = "_jobs_listed"  # session key: whether this run draws the sidebar's list of jobs
SOMEBODY = "another person's job"


def ready(
    jobs: Jobs, job: Job, *, doing: str, stop_key: str, again_key: str, unit: str = "", resumes: bool = False
) -> bool:
    """Whether a job has its result, or gets it within half a second; else its progress or its end is drawn.

    `doing` completes "Something went wrong while ..."; `unit` names what `total` counts, where people should see it;
    `resumes` says that a job continues where it stopped when it is started again.
    """
    is_stopped = job.is_stopped_for(caching.person())
    is_over = job.finished.wait(0.0 if is_stopped else 0.5)  # read once: it may end while this page is drawn
    if is_over and job.error is None:
        return True
    if is_over or is_stopped:
        _ended(jobs, job, doing, again_key, unit, resumes)
    else:
        _under_way(jobs, job, stop_key, unit, resumes)
    return False


def is_awaited(job: Job) -> bool:
    """Whether a job is under way and this session has not stopped it."""
    return not job.finished.is_set() and not job.is_stopped_for(caching.person())


def status(job: Job, unit: str = "") -> str:
    """How far a job is, or which jobs run before it."""
    if job.started is None:
        return _turn(job)
    parts = []
    if unit and job.total:
        parts.append(f"{job.done:,} of {job.total:,} {unit}")
        if job.per_second:
            parts.append(f"{job.per_second:,.0f} per second")
    elif job.total:
        parts.append(f"{100 * (job.fraction or 0):.0f} %")
    if job.seconds_left is not None:
        parts.append(f"{duration(job.seconds_left)} left")
    return " · ".join(parts)


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
    stop: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    """The progress of some work, and Stop: drawn again twice per second. When the work ends, the whole page is drawn."""
    if not st.session_state.get(LISTED, True):
        st.rerun()  # a fragment started it: the sidebar, which was not drawn with the fragment, has to list it

    @st.fragment(run_every=0.5)
    def drawn() -> None:
        if is_over():
            st.rerun()
        st.progress(share(), text=text())
        st.button("Stop", key=stop_key, icon=":material/stop:", on_click=stop, args=arguments)

    drawn()


def again(label: str, key: str, start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """The button that starts failed or stopped work again."""
    st.button(label, key=key, type="primary", icon=":material/play_arrow:", on_click=start, args=arguments)


def _under_way(jobs: Jobs, job: Job, stop_key: str, unit: str, resumes: bool) -> None:
    title, person = messages.escape(job.title), caching.person()
    bar(
        lambda: " · ".join(part for part in (title, status(job, unit)) if part),
        lambda: job.fraction or 0.0,
        lambda: not is_awaited(job),
        stop_key=stop_key,
        stop=jobs.stop,
        arguments=(job, person),
    )
    st.caption(
        "You can visit other pages in the meantime." + (" If you stop, finished work is kept." if resumes else "")
    )


def _ended(jobs: Jobs, job: Job, doing: str, again_key: str, unit: str, resumes: bool) -> None:
    """Why there is no result, and a way to start again."""
    title, person, label = messages.escape(job.title), caching.person(), "Continue" if resumes else "Start again"
    if not job.is_stopped_for(person):
        messages.explain(job.error or RuntimeError("no error given"), doing)
    elif job.is_cancelled or job.cancel.is_set():
        kept = f" after {job.done:,} of {job.total:,} {unit}, which are kept" if resumes else ""
        st.info(f"Stopped: {title}{kept}.")
    else:
        st.info(f"**Stopped for you; other people still wait for it:** {title}.")
        label = "Wait again"
    again(label, again_key, jobs.forget, (job, person))
