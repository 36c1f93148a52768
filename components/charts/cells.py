"""Cells of a matrix that can be clicked and framed, and their numbers in a colour that can be read.

Plotly reports no clicks on a heatmap. So an invisible square lies on each cell, and its `customdata` is [row, column].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb, unlabel_rgb

from components.charts import theme

_SIZE = 36  # pixels of an invisible square
_FRAME = 0.45  # of a cell: half of a frame's side, so that it lies on the cell
_CLEAR = "rgba(0, 0, 0, 0)"
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


def ink(colours: np.ndarray) -> np.ndarray:
    """For each colour [..., RGB], 0 to 255, whether white can be read better on it than black: bool [...].

    The better of the two has a contrast of at least 4.58, whatever the colour: black has (L + 0.05) / 0.05 on a colour with
    the relative luminance L, white 1.05 / (L + 0.05) (WCAG 2.2), and they are equal where both are the root of 21.
    """
    shares = np.asarray(colours, np.float64) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.asarray((luminance + 0.05) ** 2 < 1.05 * 0.05)


def colours_of(heatmap: go.Heatmap) -> np.ndarray:
    """The colour in which plotly draws each cell of a heatmap, float64 [row, column, RGB], 0 to 255; NaN where it is empty."""
    values = np.asarray(heatmap.z, np.float64)
    low, high = float(heatmap.zmin), float(heatmap.zmax)
    shares = np.clip((values - low) / (high - low), 0, 1) if high > low else np.where(np.isnan(values), np.nan, 0.5)
    stops = [float(stop) for stop, _ in heatmap.colorscale]
    known = np.array([_rgb(colour) for _, colour in heatmap.colorscale])  # [stop, RGB]
    return np.stack([np.interp(shares, stops, known[:, channel]) for channel in range(3)], axis=-1)


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = unlabel_rgb(colour) if colour.startswith("rgb") else hex_to_rgb(colour)
    return red, green, blue


def number_readably(figure: go.Figure) -> None:
    """Write the numbers of a figure's first heatmap in black or white, whichever can be read better on each cell.

    A heatmap has one colour of type, so that the white numbers lie on it as a second one without colours. Both have a text
    of the same length in every cell, because plotly sizes the type of each by its longest text.
    """
    heatmap = figure.data[0]
    if heatmap.texttemplate is None:
        return
    is_white = ink(colours_of(heatmap))
    black, white = (
        [
            [text if own else "\u00a0" * len(text) for text, own in zip(texts, is_own, strict=True)]
            for texts, is_own in zip(heatmap.text, of_colour, strict=True)
        ]
        for of_colour in (~is_white, is_white)
    )
    numbered = np.array([[bool(text) for text in texts] for texts in heatmap.text])
    if (is_white & numbered).any():
        lay_text(figure, numbered, white, heatmap.texttemplate, {"color": "#FFFFFF"})
    heatmap.text, heatmap.textfont.color = black, "#000000"


def lay_text(
    figure: go.Figure, is_shown: np.ndarray, text: list[list[str]], template: str, font: dict[str, object]
) -> None:
    """Lay a heatmap without colours on a figure's first one: its `text` in the cells that are shown [row, column]."""
    heatmap = figure.data[0]
    figure.add_heatmap(
        z=np.where(is_shown, 0.0, np.nan).astype(np.float32),
        x=heatmap.x,
        y=heatmap.y,
        colorscale=[[0, _CLEAR], [1, _CLEAR]],
        showscale=False,
        text=text,
        texttemplate=template,
        textfont=font,
        hoverinfo="skip",
        xgap=heatmap.xgap,
        ygap=heatmap.ygap,
    )


def frame(figure: go.Figure, row: int, column: int) -> None:
    """A frame around a cell: dark on white, so that one of them shows on any cell and page."""
    edges = {"x0": column - _FRAME, "x1": column + _FRAME, "y0": row - _FRAME, "y1": row + _FRAME}
    lines = ({"color": "#FFFFFF", "width": 6}, {"color": INK, "width": 2.5})
    theme.add_shapes(figure, [{"type": "rect", **edges, "line": line} for line in lines])
