"""Labels of a map that do not overlap, and lines that join a word's points in two maps: drawn in the browser."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.ui import browser

MOST_JOINED = 60  # points: more lines would hide the maps


def thin(joined: Sequence[int] = ()) -> None:
    """Place the labels of every map of the page that is drawn as SVG, and hide those that have no room.

    `joined` are the points that lines join between the first two maps, by their places among the drawn ones (`customdata`);
    of many, the first MOST_JOINED.
    """
    with st.container(key="probe_labels"):
        browser.web_component("map_labels", "<span hidden></span>")(
            key="map_labels", data={"joined": [int(place) for place in joined[:MOST_JOINED]]}
        )
