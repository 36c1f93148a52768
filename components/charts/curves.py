"""Cosine curves over the layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

EXTREMES = "lowest and highest layer"  # the name of the traces with a curve's triangles


@dataclass(frozen=True, eq=False)
class BandData:
    """A baseline to draw behind curves: arrays over layers 0..L."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    name: str


def layer_curves(
    values: np.ndarray,
    labels: Sequence[str],
    title: str,
    *,
    details: Sequence[str] | None = None,
    band: BandData | None = None,
    y_title: str = "cosine similarity",
    y_range: tuple[float, float] | None = None,
    mark_extremes: bool = True,
    height: int = 400,
) -> go.Figure:
    """One line for each row of `values` [curve, layer 0..L].

    `details` are longer names of the curves for the hover. Triangles pointing down and up mark the lowest and the
    highest layer of each curve; they are traces of their own behind those of the curves. NaN leaves a gap.
    """
    layers = np.arange(values.shape[1])
    extremes: list[dict[str, Any]] = []
    traces = [] if band is None else _band(layers, band)
    for index, (row, label) in enumerate(zip(values, labels, strict=True)):
        long_name = theme.plain(details[index] if details else label, 140)
        if mark_extremes:
            extremes += _extremes(layers, row, index)
        traces.append(
            {
                "x": layers,
                "y": np.asarray(row, np.float32),
                "name": theme.plain(label),
                "mode": "lines+markers",
                "line": theme.line_style(index),
                "marker": theme.marker_style(index),
                "legendgroup": f"curve {index}",
                "hovertemplate": f"{long_name}<br>layer %{{x}}: %{{y:.4f}}<extra></extra>",
            }
        )
    figure = go.Figure(traces + extremes)
    theme.layer_axis(figure, len(layers))
    figure.layout.yaxis = {"title": {"text": y_title}, "range": y_range, "zeroline": False}
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 440)


def depth_curves(
    values: Sequence[np.ndarray],
    labels: Sequence[str],
    title: str,
    *,
    y_title: str,
    decimals: int = 3,
    y_range: tuple[float, float] | None = None,
    styles: Sequence[int] | None = None,
) -> go.Figure:
    """One line for each model over relative depth: `values` [model][layer 0..L], each with an L of its own.

    Layer l stands at l / L. Triangles mark the lowest and the highest layer of each curve; NaN leaves a gap. `styles` are
    the numbers of the curves' styles, so that a model has one style in several figures; by default they are counted from 0.
    """
    traces: list[dict[str, Any]] = []
    extremes: list[dict[str, Any]] = []
    for index, row, label in zip(range(len(values)) if styles is None else styles, values, labels, strict=True):
        last, name = len(row) - 1, theme.plain(label)
        depths = np.arange(len(row)) / max(1, last)
        extremes += _extremes(depths, row, index)
        traces.append(
            {
                "x": depths,
                "y": np.asarray(row, np.float32),
                "name": name,
                "mode": "lines+markers",
                "line": theme.line_style(index),
                "marker": theme.marker_style(index),
                "legendgroup": f"curve {index}",
                "customdata": np.arange(len(row)),
                "hovertemplate": f"{name.replace('%{', '% {')}<br>layer %{{customdata}} of {last}, depth %{{x:.2f}}: "
                f"%{{y:.{decimals}f}}<extra></extra>",
            }
        )
    figure = go.Figure(traces + extremes)
    figure.layout.xaxis = {
        "title": {"text": "relative depth (1 = last layer)"},
        "range": (-0.03, 1.03),
        "dtick": 0.25,
        "zeroline": False,
    }
    figure.layout.yaxis = {"title": {"text": y_title}, "range": y_range, "zeroline": False}
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 420)


MANY_LINES = 64


def block_curves(values: np.ndarray, labels: Sequence[str], title: str) -> go.Figure:
    """Cosines before and after every block, values [token, block]: a thin line per token, a thick one for the mean.

    More than 64 tokens are drawn as the band that contains 90 % of them.
    """
    blocks = np.arange(values.shape[1])
    traces = []
    average = np.nanmean(values, axis=0)
    if len(values) > MANY_LINES:  # hundreds of lines would show only their spread
        low, high = np.nanpercentile(values, (5, 95), axis=0)
        traces = _band(blocks, BandData(average, low, high, f"{len(values)} tokens, 5–95 %"))
        values, labels = values[:0], labels[:0]
    for index, (row, label) in enumerate(zip(values, labels, strict=True)):
        traces.append(
            {
                "x": blocks,
                "y": np.asarray(row, np.float32),
                "name": theme.plain(label, 26),
                "mode": "lines+markers",
                "line": {"color": theme.PALETTE[index % len(theme.PALETTE)], "width": 1.2},
                "marker": {"size": 4},
                "opacity": 0.75,
                "hovertemplate": f"{theme.plain(label, 26)}<br>block %{{x}}: %{{y:.4f}}<extra></extra>",
                "showlegend": False,
            }
        )
    traces.append(
        {
            "x": blocks,
            "y": average.astype(np.float32),
            "name": "mean of all tokens",
            "mode": "lines",
            "line": {"color": theme.GREY, "width": 5},
            "hovertemplate": "mean<br>block %{x}: %{y:.4f}<extra></extra>",
        }
    )
    figure = go.Figure(traces)
    theme.layer_axis(figure, len(blocks))
    figure.layout.xaxis.title.text = "block (block b turns layer b into layer b+1)"
    figure.layout.yaxis = {"title": {"text": "cosine before and after"}, "zeroline": False}
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 380)


def _band(layers: np.ndarray, band: BandData) -> list[dict[str, Any]]:
    """The traces of a band: its upper and lower edge, and the mean."""
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, "x": layers}
    limits = "5–95 % %{customdata[0]} to %{customdata[1]}"
    return [
        {**edge, "y": np.asarray(band.high, np.float32), "name": "95 %"},
        {
            **edge,
            "y": np.asarray(band.low, np.float32),
            "name": "5 %",
            "fill": "tonexty",
            "fillcolor": "rgba(133,139,149,0.22)",
        },
        {
            "x": layers,
            "y": np.asarray(band.mean, np.float32),
            "name": band.name,
            "mode": "lines",
            "line": {"color": theme.GREY, "dash": "dot", "width": 2},
            "customdata": [
                [theme.number(low), theme.number(high)] for low, high in zip(band.low, band.high, strict=True)
            ],
            "hovertemplate": f"{band.name}<br>layer %{{x}}: mean %{{y:.3f}}, {limits}<extra></extra>",
        },
    ]


def _extremes(places: np.ndarray, row: np.ndarray, index: int) -> list[dict[str, Any]]:
    """The trace of a curve's extremes: a triangle down at the lowest layer, up at the highest; none for a flat curve.

    A trace of its own, which appears and goes with its curve: the legend draws a curve with the symbol of its first point.
    """
    known = np.flatnonzero(~np.isnan(row))
    if len(known) < 2 or np.ptp(row[known]) == 0:
        return []
    both = [known[np.argmin(row[known])], known[np.argmax(row[known])]]
    return [
        {
            "x": places[both],
            "y": np.asarray(row[both], np.float32),
            "name": EXTREMES,
            "mode": "markers",
            "marker": {
                "symbol": ["triangle-down", "triangle-up"],
                "size": 13,
                "color": theme.line_style(index)["color"],
            },
            "legendgroup": f"curve {index}",
            "showlegend": False,
            "hoverinfo": "skip",
        }
    ]


def shared_range(*groups: np.ndarray, floor: float | None = None) -> tuple[float, float]:
    """One y range for all values of several figures, with a small margin; NaN is ignored."""
    known = np.concatenate([np.ravel(group)[~np.isnan(np.ravel(group))] for group in groups] or [np.empty(0)])
    if not len(known):
        return -1.0, 1.0
    low, high = float(known.min()), float(known.max())
    margin = max(0.04 * (high - low), 0.01)
    return (low - margin if floor is None else max(floor, low - margin)), min(high + margin, 1.0 + margin)


def removal_curves(
    shares: np.ndarray,
    values: np.ndarray,
    labels: Sequence[str],
    styles: Sequence[int | None],
    details: Sequence[Sequence[str]],
    title: str,
) -> go.Figure:
    """How a cosine changes while words are removed: one line for each row of `values` [curve, step].

    `shares` [step] are the per cent of words removed, `styles` the number of each curve's style (None: grey and dotted, as
    the baselines of other figures), `details` say in the hover what is removed at each step [curve][step].
    """
    figure = go.Figure()
    for row, label, style, detail in zip(values, labels, styles, details, strict=True):
        line = {"color": theme.GREY, "dash": "dot", "width": 3} if style is None else theme.line_style(style)
        figure.add_scatter(
            x=np.asarray(shares, np.float32),
            y=np.asarray(row, np.float32),
            name=theme.plain(label),
            mode="lines" if style is None else "lines+markers",
            line=line,
            marker=theme.marker_style(style or 0),
            customdata=[theme.plain(text, 90) for text in detail],
            hovertemplate=f"{theme.plain(label)}<br>%{{customdata}}<br>cosine %{{y:.4f}}<extra></extra>",
        )
    figure.update_xaxes(title="words removed (%)", rangemode="tozero")
    figure.update_yaxes(title="cosine of what is left", zeroline=False)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 420)
