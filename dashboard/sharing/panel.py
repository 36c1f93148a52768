"""The button “Session” beside the link: save this session as a file, and open such a file."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components.errors import UserError
from dashboard import access, navigation
from dashboard.corpora import uploads
from dashboard.sharing import report, session_file
from dashboard.ui import messages, sentence_bar

_OPENED = "_session_opened"  # session key: the name of the file that was just opened
_NUMBER = "_session_panel"  # session key: counts the files that were opened, each of which needs a new, closed panel


def draw(page: str) -> None:
    """Draw the button and, once it is pressed, its panel."""
    if opened := st.session_state.pop(_OPENED, None):
        st.toast(f"{messages.escape(opened[:60])} is open.", icon=":material/check:")
    number = st.session_state.get(_NUMBER, 0)
    with st.container(key="session_panel", width="content"):
        panel = st.popover(
            "Session",
            icon=":material/save:",
            key=f"session_panel_{number}",
            on_change="rerun",
        )
    if not panel.open:
        report.stop()
        return
    with panel:
        _save(page)
        _report(page)
        _open(number)


def _save(page: str) -> None:
    content = session_file.written(page)
    st.download_button(
        "Save this session",
        partial(session_file.to_bytes, content),
        file_name=f"bert-internals-{page}.json",
        mime="application/json",
        key="save_session",
        icon=":material/download:",
        on_click="ignore",
        width="stretch",
    )
    st.caption(
        "The file holds your sentences and all settings of every page, the models with their revisions, the seeds and the "
        "versions of the packages. It holds no uploaded files and no marks of relevance."
    )


def _report(page: str) -> None:
    st.download_button(
        "Save this page as a report",
        partial(report.to_bytes, report.collect(page)),
        file_name=f"bert-internals-report-{page}.html",
        mime="text/html",
        key="save_report",
        icon=":material/description:",
        on_click="ignore",
        width="stretch",
        disabled=page in ("lessons", "lecture", "about"),
    )
    st.caption(
        "One HTML file with the settings, figures and tables that this view has drawn so far, which opens without a network. "
        + report.LEFT_OUT
    )


def _open(number: int) -> None:
    file = uploads.uploader(
        "session",
        "Open a session file",
        key=f"session_file_{number}",
        type=["json"],
        most_bytes=session_file.MOST_BYTES,
        is_kept=False,
        help="Replaces what you have typed and chosen in this session",
    )
    if file is None or not access.uploads_allowed():
        return
    try:
        session_file.check_size(file.size)
        found = session_file.read(file.getvalue())
    except UserError as problem:
        messages.explain(problem, "reading the session file")
        return
    st.session_state[_NUMBER] = number + 1
    sentence_bar.keep_own(session_file.sentences_of(found), "The session file's sentences are now in place of")
    session_file.open_session(found)
    st.session_state[_OPENED] = file.name
    st.switch_page(navigation.page_of(found.page))
