"""Figures of minimal pairs: cosines of each kind as strips of points, and shares by layer beside that of chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.retrieval.evaluation import Curve, curves_over

_GOLDEN = 0.618034  # points that follow each other lie far apart, and the picture is the same every time
_ROW = 42  # pixels of a strip
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


def value_strips(
    strips: Sequence[Strip],
    title: str,
    *,
    value: str,
    level: tuple[float, str] | None = None,
    chosen: int | None = None,
) -> go.Figure:
    """A strip of points for each kind, from top to bottom, with a tick at its median.

    `level` is a value with its name that a dotted line marks in all strips; `chosen` is the row that gets a ring.
    """
    figure = go.Figure()
    if level is not None:
        figure.add_vline(x=level[0], line={"color": theme.GREEN, "width": 2, "dash": "dot"})
        figure.add_annotation(
            {"x": level[0], "y": 1, "yref": "paper", "yanchor": "bottom", "text": level[1], "showarrow": False}
        )
    for number, strip in enumerate(strips):
        known = np.flatnonzero(np.isfinite(strip.values))
        heights = number + 0.62 * ((np.arange(len(known)) * _GOLDEN) % 1 - 0.5)
        rows = np.array(strip.rows)[known]
        ring = rows == (-1 if chosen is None else chosen)
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
                x=[float(np.median(strip.values[known]))],
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
        ticktext=[theme.wrapped(strip.name, 14) for strip in strips],
        range=[len(strips) - 0.45, -0.55],
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_xaxes(title=value, zeroline=False)
    figure.update_layout(hovermode="closest", clickmode="event+select", dragmode="pan")
    drawn = theme.finish(figure, title, 110 + _ROW * max(4, len(strips)))
    return drawn.update_layout(margin={"t": drawn.layout.margin.t + 18})


def shares_by_layer(
    curves: Sequence[Curve], layers: Sequence[int], title: str, *, y_title: str, chosen: int | None = None
) -> go.Figure:
    """Shares in per cent over the layers, with a dotted line at 50 %, which chance gives; `chosen` marks a layer."""
    figure = curves_over(curves, layers, title, x_title="layer", y_title=y_title, height=430)
    figure.add_scatter(
        x=[layers[0], layers[-1]],
        y=[CHANCE, CHANCE],
        mode="lines",
        line={"color": theme.GREY, "dash": "dot", "width": 2},
        name="chance (50 %)",
        hovertemplate="chance: 50 %<extra></extra>",
    )
    if chosen is not None:
        figure.add_vline(x=chosen, line={"color": theme.GREY, "width": 1})
    theme.layer_axis(figure, len(layers))
    theme.legend_below(figure, shown=True)
    return figure
