"""The one place that draws a job a session waits for: under way, waiting for its turn, failed, or stopped."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import caching
from dashboard.ui import messages
from dashboard.ui.wording import duration

if TYPE_CHECKING:
    from components.jobs import Job, Jobs

LISTED = "_jobs_listed"  # session key: whether the sidebar's list of jobs is drawn, or will be in this run
SOMEBODY = "another person's job"


def ready(
    jobs: Jobs, job: Job, *, doing: str, stop_key: str, again_key: str, unit: str = "", resumes: bool = False
) -> bool:
    """Whether a job's result is there, or comes within half a second; else what is to be said of it is drawn.

    `doing` completes "Something went wrong while ..."; `unit` names what `total` counts where that tells people
    something; `resumes` says that a job which is started again continues where it stopped.
    """
    is_stopped = job.is_stopped_for(caching.person())
    is_over = job.finished.wait(0.0 if is_stopped else 0.5)  # asked once: it may end while this page is drawn
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
    """How far a job is, or whose turn is before it."""
    if job.started is None:
        return _turn(job)
    parts = []
    if unit and job.total:
        parts.append(f"{job.done:,} of {job.total:,} {unit}")
        if job.per_second:
            parts.append(f"{job.per_second:,.0f} a second")
    elif job.total:
        parts.append(f"{100 * (job.fraction or 0):.0f} %")
    if job.seconds_left is not None:
        parts.append(f"{duration(job.seconds_left)} left")
    return " · ".join(parts)


def name_for(job: Job, person: Hashable) -> str:
    """What a job is called to a person: titles name people's files, and are shown to those who asked for them."""
    is_nobodys = not job.people and not job.stopped_by
    return messages.escape(job.title) if is_nobodys or person in job.people | job.stopped_by else SOMEBODY


def _turn(job: Job) -> str:
    before = caching.queue().before(job)
    if not before:
        return "about to start"
    if len(before) == 1:
        return f"waiting: next, after {name_for(before[0], caching.person())}"
    return f"waiting: {len(before)} jobs are before it"


def bar(
    text: Callable[[], str],
    share: Callable[[], float],
    is_over: Callable[[], bool],
    *,
    stop_key: str,
    stop: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    """How far some work is, and Stop: drawn again twice a second, until it is over and the whole page is drawn.

    The rest of the page stays as it is meanwhile.
    """
    if not st.session_state.get(LISTED, True):
        st.rerun()  # it was started by a part of the page that is drawn alone: the sidebar is to list it

    @st.fragment(run_every=0.5)
    def drawn() -> None:
        if is_over():
            st.rerun()
        st.progress(share(), text=text())
        st.button("Stop", key=stop_key, icon=":material/stop:", on_click=stop, args=arguments)

    drawn()


def again(label: str, key: str, start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """The button that lets work be done which failed or was stopped."""
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
    st.caption("You can look at other pages meanwhile." + (" What is done is kept if you stop." if resumes else ""))


def _ended(jobs: Jobs, job: Job, doing: str, again_key: str, unit: str, resumes: bool) -> None:
    """Why there is no result, and a way to start again."""
    title, person, label = messages.escape(job.title), caching.person(), "Continue" if resumes else "Start again"
    if not job.is_stopped_for(person):
        messages.explain(job.error or RuntimeError("no error given"), doing)
    elif job.is_cancelled or job.cancel.is_set():
        kept = f" after {job.done:,} of {job.total:,} {unit}. What was done is kept" if resumes else ""
        st.info(f"Stopped: {title}{kept}.")
    else:
        st.info(f"**Stopped for you; others still wait for it:** {title}.")
        label = "Wait for it again"
    again(label, again_key, jobs.forget, (job, person))
