"""Labels of a map that do not overlap, and lines that join a word's points in two maps: drawn in the browser."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.ui import browser


def thin(joined: Sequence[int] = ()) -> None:
    """Place the labels of every map of the page that is drawn as SVG, and hide those that have no room.

    `joined` are the rows of the points that lines join between the first two maps.
    """
    with st.container(key="probe_labels"):
        browser.web_component("map_labels", "<span hidden></span>")(
            key="map_labels", data={"joined": [int(row) for row in joined]}
        )
