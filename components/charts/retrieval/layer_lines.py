"""A measure at every layer, a line for each pooling, with methods that use words alone as quiet lines among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from components.charts import curves, theme

HEIGHT, TOP, BELOW = 470, 46, 56  # pixels of the figure, above the plot, and below it
RANGE = (-3.0, 104.0)  # per cent: a point at either end is drawn whole
LINE, TO_LABEL, LETTER = 21, 22, 7.6  # pixels: between two labels, from a line's end to its label, of a letter
_SHIFT = 0.09  # layers between the points of two poolings, so that their intervals do not lie on each other
_RISES = 4.0  # per cent: a line above this leaves room for a note below it
_FLAT = 15.0  # per cent: other lines above this leave room for a note at 0


@dataclass(frozen=True, eq=False)
class PoolingLine:
    """One pooling's values in per cent, each [layer]."""

    name: str
    values: np.ndarray
    low: np.ndarray  # of their 95 % intervals
    high: np.ndarray


def layer_lines(
    lines: Sequence[PoolingLine],
    layers: Sequence[int],
    title: str,
    *,
    levels: Sequence[tuple[str, float]] = (),
    chosen: tuple[int, int] | None = None,
    note: str = "",
) -> go.Figure:
    """A line for each pooling, named with its value at the right end; the axis always goes from 0 to 100 per cent.

    `levels` are names and values of what does not depend on a layer. `chosen` is the place of the cell [layer, pooling] that
    gets a ring. `note` stands at a first value of 0, where no other line is near it. A point's `customdata` is its cell.
    """
    figure, places = go.Figure(), np.asarray(layers, float)
    middle = (len(lines) - 1) / 2
    for _, value in levels:
        line = {"color": theme.GREY, "width": 1.5, "dash": "dash"}
        figure.add_shape(type="line", x0=0, x1=1, xref="paper", y0=value, y1=value, line=line, layer="below")
    for column, line_of in enumerate(lines):
        style, at = theme.line_style(column), places + (column - middle) * _SHIFT
        figure.add_scatter(
            x=at,
            y=line_of.values,
            name=theme.plain(line_of.name),
            mode="lines+markers",
            line=style,
            marker={**theme.marker_style(column), "size": 9},
            error_y=theme.interval(
                line_of.values, line_of.low, line_of.high, color=_pale(str(style["color"])), thickness=5, width=0
            ),
            customdata=[
                [row, column, low, high] for row, (low, high) in enumerate(zip(line_of.low, line_of.high, strict=True))
            ],
            text=[str(layer) for layer in layers],
            hovertemplate=f"layer %{{text}}, {theme.plain(line_of.name)}: %{{y:.1f}} %"
            " (%{customdata[2]:.1f}–%{customdata[3]:.1f})<extra></extra>",
        )
    if chosen is not None:
        row, column = chosen
        figure.add_scatter(
            x=[places[row] + (column - middle) * _SHIFT],
            y=[lines[column].values[row]],
            name="chosen",
            mode="markers",
            marker={"symbol": "circle-open", "size": 20, "color": theme.GREY, "line": {"width": 2.5}},
            hoverinfo="skip",
        )
    figure.layout.showlegend, figure.layout.hovermode = False, "closest"
    theme.layer_axis(figure, len(layers))
    percents = (0, 25, 50, 75, 100)
    names = [*map(str, percents[:-1]), "100 %"]
    figure.layout.yaxis = {"range": RANGE, "tickvals": percents, "ticktext": names, "zeroline": False}
    theme.finish(figure, title, HEIGHT)
    figure.layout.xaxis.range = (places[0] - 0.35, places[-1] + 0.35)
    figure.layout.xaxis.zeroline = figure.layout.xaxis.showgrid = False
    figure.layout.xaxis.title.text = "layer (0 = before any block)"
    _label_ends(figure, lines, levels)
    if note and (shift := _room_for_note(lines)) is not None:
        figure.add_annotation(
            x=places[0],
            y=0,
            text=theme.small(note),
            xanchor="left",
            xshift=shift[0],
            yshift=shift[1],
            showarrow=False,
        )
    return figure


def _room_for_note(lines: Sequence[PoolingLine]) -> tuple[int, int] | None:
    """Where a note stands beside the only line that begins at 0, in pixels; None if another line is near it."""
    low = [line for line in lines if line.values[0] == 0]
    if len(low) != 1 or any(line.values[:4].min() <= _FLAT for line in lines if line is not low[0]):
        return None
    return (12, -12) if low[0].values[1:4].min(initial=100.0) > _RISES else (0, 16)


def _label_ends(figure: go.Figure, lines: Sequence[PoolingLine], levels: Sequence[tuple[str, float]]) -> None:
    ends = [
        (float(line.values[-1]), f"<b>{theme.plain(line.name)}  {theme.number(float(line.values[-1]), 1)}</b>", True)
        for line in lines
    ]
    ends += [(value, f"{theme.plain(name)}  {theme.number(value, 1)}", False) for name, value in levels]
    plot = HEIGHT - TOP - BELOW
    own = [(value - RANGE[0]) / (RANGE[1] - RANGE[0]) * plot for value, _, _ in ends]
    labels, longest = [], 0
    for number, (place, (value, text, is_line)) in enumerate(zip(curves.spread(own, LINE), ends, strict=True)):
        colour = str(theme.line_style(number)["color"]) if is_line else theme.GREY
        longest = max(longest, len(text.replace("<b>", "").replace("</b>", "")))
        below = own[number] - place
        label = curves.end_label(1, value, text, below, colour, to_label=TO_LABEL, xref="paper", standoff=1)
        labels.append(label | {"font": {"color": colour} if is_line else {}})
    theme.annotate(figure, labels)
    figure.layout.margin.r = round(TO_LABEL + 16 + LETTER * longest)


def _pale(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.35)"
