"""Labels of a map that do not overlap: a component that shows nothing hides labels in the browser, again after a zoom."""

from __future__ import annotations

import streamlit as st

from dashboard.ui import browser


def thin() -> None:
    """Hide labels that would overlap an earlier one, in every map of the page that is drawn as SVG."""
    with st.container(key="probe_labels"):
        browser.web_component("map_labels", "<span hidden></span>")(key="map_labels")
