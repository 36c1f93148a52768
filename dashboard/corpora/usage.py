"""Which of what a browser remembers the view under way uses: marks of hits, and files that it takes."""

from __future__ import annotations

import streamlit as st

MARKS = "marks"
_USED = "_remembered_in_use"  # session key: MARKS and kinds of uploads


def watch() -> None:
    """Note from now on what is used: a view begins to be drawn."""
    st.session_state[_USED] = set()


def note(what: str) -> None:
    """The view under way uses marks, or files of this kind."""
    st.session_state.setdefault(_USED, set()).add(what)


def noted() -> frozenset[str]:
    """What was used since `watch`."""
    return frozenset(st.session_state.get(_USED, ()))
