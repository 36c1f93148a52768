"""Figures of minimal pairs: cosines of each kind as strips of points, and shares by layer beside that of chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.retrieval.evaluation import Curve, curves_over
from components.charts.why import end_labels
from components.numbers import apart

_GOLDEN = 0.618034  # points that follow each other lie far apart, and the picture is the same every time
_ROW = 44  # pixels of a strip
_LONGEST = 18  # characters of its name on a line: two lines of names below each other would touch
CHANCE = 50.0  # per cent


@dataclass(frozen=True, eq=False)
class Strip:
    """The values of one kind of pairs."""

    name: str
    values: np.ndarray  # [pair]; NaN is not drawn
    texts: Sequence[str]  # [pair], for the hover; made safe by the caller
    rows: Sequence[int]  # [pair]: the `customdata` of each point, which identifies it
    colour: str = theme.BLUE
    is_faint: bool = False
    note: str = ""  # at the right end of the strip
    is_marked: bool = False  # lies on a band
    has_number: bool = False  # its median is written at the right end too, before the note


def value_strips(
    strips: Sequence[Strip],
    title: str,
    *,
    value: str,
    level: tuple[float, str] | None = None,
    chosen: int | None = None,
    notes: tuple[str, str] | None = None,
) -> go.Figure:
    """A strip of points for each kind, from top to bottom, with a tick at its median.

    `level` is a value with its name that a dotted line marks in all strips; `chosen` is the row that gets a ring; `notes`
    say what the number at a strip's end is, which is bold, and its note. A strip's name stands beside it without the number of
    its pairs, so that a phone has room for the points.
    """
    figure = go.Figure()
    if level is not None:
        near = sum(not strip.is_faint for strip in strips)
        line = {"color": theme.BLUE, "width": 2, "dash": "dot"}
        figure.add_shape(type="line", x0=level[0], x1=level[0], y0=-0.55, y1=near - 0.5, line=line)
        figure.add_annotation(
            {
                "x": level[0],
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "text": level[1],
                "showarrow": False,
            }
        )
    aside = {"xref": "paper", "x": 1, "xanchor": "left", "xshift": 8, "showarrow": False, "align": "left"}
    if notes:
        figure.add_annotation(
            {
                **aside,
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "text": f"<b>{theme.plain(notes[0])}</b><br>{theme.wrapped(notes[1], 14)}",
            }
        )
    for number, strip in enumerate(strips):
        known = np.flatnonzero(np.isfinite(strip.values))
        heights = number + 0.62 * ((np.arange(len(known)) * _GOLDEN) % 1 - 0.5)
        rows = np.array(strip.rows)[known]
        ring = rows == (-1 if chosen is None else chosen)
        if strip.is_marked:
            figure.add_hrect(
                y0=number - 0.5, y1=number + 0.5, fillcolor=theme.BLUE, opacity=0.1, line_width=0, layer="below"
            )
        middle = float(np.median(strip.values[known])) if len(known) else np.nan
        median = f"<b>{apart(middle)[0]}</b> " if strip.has_number and len(known) else ""
        if median or strip.note:
            figure.add_annotation({**aside, "y": number, "text": f"{median}{strip.note}".strip()})
        figure.add_scatter(
            x=np.asarray(strip.values, np.float32)[known],
            y=heights.astype(np.float32),
            mode="markers",
            name=theme.plain(strip.name),
            marker={
                "size": np.where(ring, 15, 8),
                "color": strip.colour,
                "opacity": np.where(ring, 1.0, 0.3 if strip.is_faint else 0.6),
                "line": {"width": np.where(ring, 3, 0), "color": theme.VERMILION},
            },
            customdata=rows,
            text=[strip.texts[row] for row in known.tolist()],
            hovertemplate=f"{value} %{{x:.3f}}<br>%{{text}}<extra></extra>",
            showlegend=False,
            # A click opens a pair and changes no other point.
            unselected={"marker": {"opacity": 0.3 if strip.is_faint else 0.6}},
        )
        if len(known):
            figure.add_scatter(
                x=[middle],
                y=[number],
                mode="markers",
                name=f"median of {theme.plain(strip.name)}",
                marker={"symbol": "line-ns-open", "size": 26, "line": {"width": 3}, "color": strip.colour},
                hovertemplate=f"median of {len(known)}: {value} %{{x:.3f}}<extra></extra>",
                showlegend=False,
                unselected={"marker": {"opacity": 1}},
            )
    figure.update_yaxes(
        tickvals=list(range(len(strips))),
        ticktext=[theme.wrapped(strip.name.rpartition(" (")[0] or strip.name, _LONGEST) for strip in strips],
        range=[len(strips) - 0.45, -0.55],
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_xaxes(title=value, zeroline=False)
    _look_at_marked(figure, strips)
    figure.update_layout(hovermode="closest", clickmode="event+select", dragmode="pan")
    drawn = theme.finish(figure, title, 110 + _ROW * max(4, len(strips)))
    room = {"t": drawn.layout.margin.t + (40 if notes else 18)}
    return drawn.update_layout(margin=room | ({"r": 98} if notes else {}))


def _look_at_marked(figure: go.Figure, strips: Sequence[Strip]) -> None:
    """Begin the axis where the strips with notes begin: the last one, of unrelated pairs, would take half of it.

    What is farther left stays, and is seen when the figure is zoomed out; its strip says so.
    """
    values = [strip.values[np.isfinite(strip.values)] for strip in strips]
    near = [found for strip, found in zip(strips, values, strict=True) if not strip.is_faint and len(found)]
    if not near:
        return
    low, high = min(float(found.min()) for found in near), max(float(found.max()) for found in values if len(found))
    room = 0.04 * max(high - low, 0.05)
    for number, (strip, found) in enumerate(zip(strips, values, strict=True)):
        if strip.is_faint and len(found) and float(np.median(found)) < low - room:
            median = apart(float(np.median(found)))[0]
            figure.add_annotation(
                x=low,
                y=number,
                text=f"← farther left: half below {median}",
                showarrow=False,
                xanchor="left",
            )
    figure.update_xaxes(range=[low - room, high + room])


def shares_by_layer(
    curves: Sequence[Curve],
    layers: Sequence[int],
    title: str,
    *,
    y_title: str,
    colours: Sequence[str],
    names: Sequence[str],
    chosen: int | None = None,
) -> go.Figure:
    """Shares in per cent over the layers, each curve with its colour, its band and its name at the end.

    A dotted line stands at 50 %, which guessing gives; `chosen` marks a layer.
    """
    lines = [Curve(curve.name, curve.values) for curve in curves]
    figure = curves_over(lines, layers, title, x_title="layer", y_title=y_title, height=430)
    for trace, colour in zip(figure.data, colours, strict=True):
        trace.line = {"color": colour, "width": 2 if colour == theme.GREY else 3}
        trace.marker = {"color": colour, "size": 5 if colour == theme.GREY else 8}
    figure.add_scatter(
        x=[layers[0], layers[-1]],
        y=[CHANCE, CHANCE],
        mode="lines",
        line={"color": theme.GREY, "dash": "dot", "width": 2},
        name="guessing (50 %)",
        hovertemplate="guessing: 50 %<extra></extra>",
    )
    edges = [edge for curve in curves for edge in (curve.low, curve.high) if edge is not None]
    end_labels.label_ends(figure, (*names, "guessing 50 %"), edges)
    bands = [(curve, colour) for curve, colour in zip(curves, colours, strict=True) if curve.low is not None]
    x = np.asarray(layers, np.float32)
    for curve, colour in bands:
        assert curve.low is not None
        assert curve.high is not None
        figure.add_scatter(
            x=np.concatenate([x, x[::-1]]),
            y=np.concatenate([curve.high, curve.low[::-1]]).astype(np.float32),
            mode="lines",  # plotly adds markers where there are few points
            fill="toself",
            fillcolor=colour,
            opacity=0.15,
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            name=f"interval of {theme.plain(curve.name)}",
        )
    if bands:  # below the curves
        figure.data = figure.data[-len(bands) :] + figure.data[: -len(bands)]
    if chosen is not None:
        figure.add_vline(x=chosen, line={"color": theme.GREY, "width": 1})
    theme.layer_axis(figure, len(layers))
    figure.layout.xaxis.title.text = "layer"  # the names leave a phone little room
    return figure
