"""Labels of a map that do not overlap: a component that shows nothing hides labels in the browser, again after a zoom."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from dashboard.ready_made import ASSETS


@cache
def _component() -> Any:
    return st.components.v2.component(
        "bert_internals_map_labels",
        html="<span hidden></span>",
        js=(ASSETS / "web" / "map_labels.js").read_text(encoding="utf-8"),
    )


def thin() -> None:
    """Hide labels that would overlap an earlier one, in every map of the page that is drawn as SVG."""
    with st.container(key="probe_labels"):
        _component()(key="map_labels")
