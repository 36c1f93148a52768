"""A figure with what belongs beside it: how to read it, what it does not show, its data and downloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

if TYPE_CHECKING:
    import plotly.graph_objects as go


LIGHT_PAPER, DARK_PAPER = "#FFFFFF", "#12161C"  # the page's own backgrounds, as in .streamlit/config.toml


def figure(
    chart: go.Figure,
    *,
    key: str,
    alt: str,
    table: Callable[[], pd.DataFrame],
    read: str = "",
    not_shown: str = "",
    message: str = "",
    on_select: Callable[[], None] | None = None,
    select_many: bool = True,
) -> None:
    """A figure with what belongs beside it: its message, how to read it, what it does not show, its data.

    `table` is called only when somebody opens the data. The toolbar's camera saves PNG or SVG, as chosen in
    the sidebar. Figures that share one `reading` leave `read` empty and call it themselves. `on_select` is called
    before the next run when points were chosen by click, or with `select_many` by box or lasso; the choice is under `key` in
    session state.
    """
    if message:
        st.markdown(f":material/insights: {message}")
    # Not transparent: a picture saved in dark mode would carry light type on nothing.
    chart.update_layout(paper_bgcolor=DARK_PAPER if st.context.theme.type == "dark" else LIGHT_PAPER)
    st.plotly_chart(
        chart,
        key=key,
        alt=alt,
        on_select=on_select or "ignore",
        selection_mode=("points", "box", "lasso") if select_many else "points",
        config={
            "displaylogo": False,
            "modeBarButtonsToRemove": ["autoScale2d", *(() if on_select and select_many else ("select2d", "lasso2d"))],
            "toImageButtonOptions": {
                "format": st.session_state.get("picture_format", "png"),
                "filename": f"bert-internals-{key}",
                "scale": 2,
            },
        },
    )
    data(key, table)
    if read:
        reading(read, not_shown)


def reading(read: str, not_shown: str, stacked: bool = False) -> None:
    """How to read a figure, and what it does not show, side by side (or `stacked`)."""
    left, right = (st.container(), st.container()) if stacked else st.columns(2)
    left.markdown(f"**How to read this**  \n{read}")
    right.markdown(f"**What it does not show**  \n{not_shown}")


def data(key: str, table: Callable[[], pd.DataFrame]) -> None:
    """A figure's numbers as a table and a CSV, made when asked for."""
    panel = st.expander("Data of this figure", icon=":material/table:", key=f"data_{key}", on_change="rerun")
    if not panel.open:
        return
    with panel:
        frame = table()
        st.dataframe(frame, hide_index=True, key=f"table_{key}")
        download(frame, key)


def download(frame: pd.DataFrame, key: str) -> None:
    """A button that saves a table as CSV."""
    st.download_button(
        "Download as CSV",
        _csv(frame),
        file_name=f"bert-internals-{key}.csv",
        mime="text/csv",
        key=f"csv_{key}",
        icon=":material/download:",
        on_click="ignore",
    )


def beside(
    own: Mapping[str, object], columns: Mapping[str, Sequence[str]], rows: Iterable[int]
) -> dict[str, list[str]]:
    """A corpus's own columns at some rows, under names that hide none of a table's `own`."""
    picked = [int(row) for row in rows]
    return {
        f"{name} (column)" if name in own else name: [column[row] for row in picked] for name, column in columns.items()
    }


def _csv(frame: pd.DataFrame) -> bytes:
    """A CSV for spreadsheets: marked as UTF-8, and text that would count as a formula made plain text."""

    def plain(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value

    return frame.map(plain).rename(columns=plain).to_csv(index=False).encode("utf-8-sig")
