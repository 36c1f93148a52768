"""The selection in the maps: kept by token, so that it survives a change of layer, method or colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.maps.map_trust import equally_near, true_neighbours
from dashboard import state
from dashboard.ui import browser, controls, figures, messages

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.analysis.maps.token_set import TokenSet


def pick(token_set: TokenSet, key: str, drawn: np.ndarray) -> None:
    """Keep the selection of a figure; the two halves of a joint map show the same tokens."""
    drawn_rows = {row for point in browser.selected(key, "points") for row in browser.place_of(point)[:1]}
    rows = tuple(sorted({int(drawn[drawn_row % len(drawn)]) for drawn_row in drawn_rows}))
    st.session_state["_map_selected"] = (token_set.key, rows)
    if key != "map_moving" or state.get("map_find"):
        # The moving figure keeps its own selection in the browser. To send it would start the figure at layer 0 again.
        st.session_state["_moving_selection"] = (token_set.key, rows)
    if rows:
        state.put("map_find", "")


def renew_moving(made_of: tuple[object, ...]) -> None:
    """Give the moving figure the current selection when it is drawn anew for another reason; else it keeps its own."""
    if st.session_state.get("_moving_made") != made_of:
        st.session_state["_moving_made"] = made_of
        st.session_state["_moving_selection"] = st.session_state.get("_map_selected", ((), ()))


def selected(token_set: TokenSet, kept: str = "_map_selected") -> tuple[int, ...]:
    """The selected rows: those that the search box finds, else those selected in a figure of these tokens."""
    if state.get("map_find"):
        return token_set.matching(state.get("map_find"))
    key, rows = st.session_state.get(kept, ((), ()))
    return cast("tuple[int, ...]", rows) if key == token_set.key else ()


def _clear() -> None:
    st.session_state.pop("_map_selected", None)
    st.session_state.pop("_moving_selection", None)
    state.put("map_find", "")


def find(token_set: TokenSet, place: DeltaGenerator) -> tuple[int, ...]:
    """Draw the search box that marks a word, and return the selected rows."""
    with place, st.container(width=round(160 * controls.scale())):
        controls.bind("map_find", st.text_input, "Mark a word", placeholder="bank", max_chars=100)
    rows = selected(token_set)
    if state.get("map_find") and not rows:
        st.caption(
            f":material/info: No token or word here is “{messages.escape(state.get('map_find'))}”. "
            "Parts of words are not found."
        )
    return rows


def selection(token_set: TokenSet, rows: tuple[int, ...], layers: list[int]) -> None:
    """The selected tokens in their sentences, and the true neighbours of a single one."""
    figures.subheader("Selected tokens")
    if not rows:
        st.caption("Click a point, or with a mouse use the lasso of a figure's toolbar, to list tokens here.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(rows):,} of {len(token_set):,} tokens", width="content")
        st.button("Clear selection", key="map_clear", icon=":material/deselect:", on_click=_clear)
    contexts = [token_set.in_context(row) for row in rows]
    table = pd.DataFrame(
        {
            "sentence": [token_set.tokens[row].sentence + 1 for row in rows],
            "before": [context.before.strip() for context in contexts],
            "token": [context.text for context in contexts],
            "after": [context.after.strip() for context in contexts],
            **{name: [labels[row] for row in rows] for name, labels in token_set.labels.items()},
        }
    )
    st.dataframe(
        table,
        hide_index=True,
        key="map_selected",
        column_config={
            "sentence": st.column_config.NumberColumn(width="small"),
            "before": st.column_config.TextColumn(alignment="right"),
            "token": st.column_config.TextColumn(alignment="center", width="small"),
        },
    )
    figures.download(table, "map-selection")
    if len(rows) == 1:
        _neighbours(token_set, rows[0], layers)


def _neighbours(token_set: TokenSet, row: int, layers: list[int]) -> None:
    st.markdown(
        f"**True nearest neighbours of “{messages.escape(token_set.tokens[row].text)}”** in the model's space, by cosine"
    )
    for column, layer in zip(st.columns(len(layers)), layers, strict=True):
        neighbours, cosines = true_neighbours(token_set.at(layer), row)
        contexts = [token_set.in_context(int(neighbour), 40) for neighbour in neighbours]
        column.markdown(f"Layer {layer}")
        near = equally_near(token_set.at(layer), row)
        if near > len(neighbours):
            column.caption(f"{near:,} tokens are as near as the last of these; those of the first sentences are shown.")
        column.dataframe(
            pd.DataFrame(
                {
                    "cosine": cosines,
                    "token": [context.text for context in contexts],
                    "in its sentence": [
                        c.after if token_set.tokens[int(neighbour)].special else f"{c.before}[{c.text}]{c.after}"
                        for neighbour, c in zip(neighbours, contexts, strict=True)
                    ],
                }
            ),
            hide_index=True,
            key=f"neighbours_{layer}",
            column_config={"cosine": st.column_config.NumberColumn(format="%.3f", width="small")},
        )
