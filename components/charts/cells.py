"""Cells of a matrix that can be clicked and framed.

Plotly reports no clicks on a heatmap. So an invisible square lies on each cell, and its `customdata` is [row, column].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

_SIZE = 36  # pixels of an invisible square
_FRAME = 0.45  # of a cell: half of a frame's side, so that it lies on the cell
INK = "#14181F"  # readable on all colours of a scale with a pale middle


def make_clickable(
    figure: go.Figure,
    hints: Mapping[tuple[int, int], str],
    x: Sequence[object] | None = None,
    y: Sequence[object] | None = None,
) -> None:
    """Lay an invisible square on each cell (row, column) of `hints`, which is shown where a person points.

    Hints are HTML: what people typed must be escaped. `x` and `y` are the names of the columns and rows where the axes have
    names instead of numbers. Where every cell of the matrix has a square, a click anywhere in a cell hits it; else only one
    near its centre, because the nearest square can then be that of another cell.
    """
    figure.add_scatter(
        x=[column if x is None else x[column] for _, column in hints],
        y=[row if y is None else y[row] for row, _ in hints],
        mode="markers",
        marker={"symbol": "square", "size": _SIZE, "opacity": 0},
        customdata=[list(cell) for cell in hints],
        text=list(hints.values()),
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        name="cells",
        # A selection does not change the points: a frame shows it.
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
    )
    is_complete = len(hints) == len({row for row, _ in hints}) * len({column for _, column in hints})
    figure.update_layout(
        clickmode="event+select", dragmode="pan", hovermode="closest", hoverdistance=-1 if is_complete else 20
    )


def frame(figure: go.Figure, row: int, column: int) -> None:
    """A frame around a cell: dark on white, so that one of them shows on any cell and page."""
    for colour, width in (("#FFFFFF", 6), (INK, 2.5)):
        figure.add_shape(
            type="rect",
            x0=column - _FRAME,
            x1=column + _FRAME,
            y0=row - _FRAME,
            y1=row + _FRAME,
            line={"color": colour, "width": width},
        )
