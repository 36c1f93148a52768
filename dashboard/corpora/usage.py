"""Which of what a browser remembers the view under way uses: marks of hits, files that it takes, the pictures of a lecture."""

from __future__ import annotations

import streamlit as st

MARKS = "marks"
LECTURE = "lecture"
_USED = "_remembered_in_use"  # session key: MARKS, LECTURE and kinds of uploads


def watch() -> None:
    """Note from now on what is used: a view begins to be drawn."""
    st.session_state[_USED] = set()


def note(what: str) -> None:
    """The view under way uses marks, a lecture, or files of this kind."""
    st.session_state.setdefault(_USED, set()).add(what)


def noted() -> frozenset[str]:
    """What was used since `watch`."""
    return frozenset(st.session_state.get(_USED, ()))
