"""Whether a person's browser can draw with WebGL: a component that shows nothing asks it once per session."""

from __future__ import annotations

import streamlit as st

from dashboard.ui import browser


def can_webgl() -> bool | None:
    """None as long as the browser has not answered; the answer draws the page again."""
    known = st.session_state.get("_webgl")

    def answered() -> None:
        st.session_state["_webgl"] = bool(browser.sent_by("webgl_probe", "webgl"))

    with st.container(key="probe"):
        probe = browser.web_component("webgl", "<span hidden></span>")
        probe(key="webgl_probe", data={"known": known}, on_webgl_change=answered)
    return None if known is None else bool(known)
