"""The jobs that a person waits for, in the sidebar of every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import caching
from dashboard.jobs import requests
from dashboard.ui.waiting import progress
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.jobs import Job

MOST_LISTED = 3


def expect() -> None:
    """Say, before the page is drawn, that `draw` will list its jobs: the page need not draw itself again for that."""
    st.session_state[progress.LISTED] = True
    st.session_state.pop(progress.IN_PAGE, None)


def draw(container: Any) -> None:
    """List the jobs in the sidebar's container, if there are any; call it after the page has requested its jobs.

    A job whose progress the page itself shows is not listed: one bar and one Stop are enough. None is for a page without
    a sidebar.
    """
    has_jobs = bool(_jobs()[0])
    st.session_state[progress.LISTED] = has_jobs or container is None
    if has_jobs and container is not None:
        with container:
            _rows()


def _jobs() -> tuple[list[Job], int]:
    """The jobs that this person waits for, and how many other people wait for; work that nobody requested is not listed.

    Nor is what nobody waits for any more, though it goes on for a moment: a person who loads the page anew is a new one to
    the server, and would see their own work before as another person's.
    Whoever waits for nothing has no list: it would be drawn every second, in every browser of a class.
    """
    jobs = [job for job in caching.queue().under_way() if job.people and not job.told_to_stop.is_set()]
    own = [job for job in jobs if caching.person() in job.people]
    return own, sum(job not in own and any(map(caching.is_connected, job.people)) for job in jobs)


@st.fragment(run_every=1.0)
def _rows() -> None:
    """Drawn again every second; once the person waits for nothing, the whole page is drawn again without this list."""
    own, of_others = _jobs()
    if not own:
        st.rerun()
    elsewhere = [job for job in own if job.number not in st.session_state.get(progress.IN_PAGE, ())]
    # Drawn again even without a row: a view that is left no longer shows its jobs.
    if elsewhere:
        st.markdown("**Jobs under way**")
    for job in elsewhere[:MOST_LISTED]:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.progress(progress.share(job), text=progress.line(job))
            if job.owner is not None and job.owner.can_be_stopped:
                st.button(
                    "Stop",
                    key=f"stop_listed_{job.number}",  # a row's number would be another job's once one has ended
                    icon=":material/stop:",
                    type="tertiary",
                    on_click=requests.stop,
                    args=(job.owner, job, caching.person()),
                )
    hidden = len(elsewhere) - MOST_LISTED
    more = [f"{counted(hidden, 'more job')} of yours"] if hidden > 0 else []
    more += [f"{counted(of_others, 'job')} of other people"] if of_others else []
    if more:
        st.caption("Also under way: " + ", ".join(more) + ".")
