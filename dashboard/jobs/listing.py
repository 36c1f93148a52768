"""The jobs that a person waits for, and those before them, in the sidebar of every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import caching
from dashboard.jobs import progress

if TYPE_CHECKING:
    from components.jobs import Job

MOST_LISTED = 8


def expect() -> None:
    """Say, before the page is drawn, that `draw` will list its jobs: the page need not draw itself again for that."""
    st.session_state[progress.LISTED] = True


def draw(container: Any) -> None:
    """List the jobs in the sidebar's container, if there are any; call it after the page has requested its jobs.

    None is for a page without a sidebar.
    """
    has_jobs = bool(_jobs())
    st.session_state[progress.LISTED] = has_jobs or container is None
    if has_jobs and container is not None:
        with container:
            _rows()


def _jobs() -> list[Job]:
    """What people wait for, if this person waits for any of it; work that nobody asked for is not listed.

    Whoever waits for nothing has no list: it would be drawn every second, in every browser of a class.
    """
    jobs = [job for job in caching.queue().under_way() if job.people and not job.cancel.is_set()]
    return jobs if any(caching.person() in job.people for job in jobs) else []


@st.fragment(run_every=1.0)
def _rows() -> None:
    """Drawn again every second; once the person waits for nothing, the whole page is drawn again without this list."""
    jobs, person = _jobs(), caching.person()
    if not jobs:
        st.rerun()
    st.markdown("**Jobs under way**")
    for job in jobs[:MOST_LISTED]:
        name = progress.name_for(job, person)
        text = " · ".join(part for part in (name[0].upper() + name[1:], progress.status(job)) if part)
        if person not in job.people:
            st.progress(job.fraction or 0.0, text=text)
            continue
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.progress(job.fraction or 0.0, text=text)
            st.button(
                "Stop",
                key=f"stop_listed_{id(job)}",  # a row's number would be another job's once one has ended
                icon=":material/stop:",
                type="tertiary",
                on_click=_stop,
                args=(job,),
            )
    if len(jobs) > MOST_LISTED:
        st.caption(f"and {len(jobs) - MOST_LISTED} more jobs")


def _stop(job: Job) -> None:
    if job.owner is not None:
        job.owner.stop(job, caching.person())
