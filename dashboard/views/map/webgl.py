"""Whether a person's browser can draw with WebGL: a component that shows nothing asks it once per session."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from dashboard.ready_made import ASSETS


@cache
def _component() -> Any:
    return st.components.v2.component(
        "bert_internals_webgl",
        html="<span hidden></span>",
        js=(ASSETS / "web" / "webgl.js").read_text(encoding="utf-8"),
    )


def can_webgl() -> bool | None:
    """None until the browser has answered; the answer draws the page again."""
    known = st.session_state.get("_webgl")

    def answered() -> None:
        st.session_state["_webgl"] = bool(st.session_state["webgl_probe"].webgl)

    with st.container(key="probe"):
        _component()(key="webgl_probe", data={"known": known}, on_webgl_change=answered)
    return None if known is None else bool(known)
