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
    ends: Sequence[EndLabel | None] = (),
    layer: int | None = None,
    height: int = 440,
) -> go.Figure:
    """One line for each row of `values` [curve, layer 0..L].

    `details` are longer names of the curves for the hover. Triangles pointing down and up mark the lowest and the
    highest layer of each curve; they are traces of their own behind those of the curves. NaN leaves a gap.
    `ends` are labels of the curves at their ends, in place of a legend and triangles; they need a `y_range`. Curves without one
    of their own are thin and grey, and are counted beside their ends. `layer` is marked.
    """
    styles = styles_of([end is not None for end in ends]) if ends else range(len(values))
    mark_extremes = mark_extremes and not ends
    layers = np.arange(values.shape[1])
    extremes: list[dict[str, Any]] = []
    traces = [] if band is None else _band(layers, band)
    drawn: list[dict[str, Any]] = []
    for index, (row, label) in enumerate(zip(values, labels, strict=True)):
        long_name = theme.plain(details[index] if details else label, 140)
        if mark_extremes:
            extremes += _extremes(layers, row, index)
        drawn.append(
            {
                "x": layers,
                "y": np.asarray(row, np.float32),
                "name": theme.plain(label),
                "mode": "lines+markers",
                **_style(styles[index]),
                "legendgroup": f"curve {index}",
                "hovertemplate": f"{long_name}<br>layer %{{x}}: %{{y:.4f}}<extra></extra>",
            }
        )
    drawn.sort(key=lambda trace: trace["line"]["color"] != theme.GREY)  # the grey ones below the others
    figure = go.Figure(traces + drawn + extremes)
    theme.layer_axis(figure, len(layers))
    figure.layout.yaxis = {"title": {"text": y_title}, "range": y_range, "zeroline": False}
    theme.legend_below(figure, shown=not ends)
    theme.finish(figure, title, height)
    if layer is not None:
        _mark_layer(figure, layer)
    if ends and y_range is not None:
        _label_ends(figure, values, ends, band, y_range)
    return figure


def styles_of(are_named: Sequence[bool]) -> list[int | None]:
    """The number of each curve's style: those with names are counted from 0, the others have none and are grey."""
    return [sum(are_named[:index]) if is_named else None for index, is_named in enumerate(are_named)]


def _style(number: int | None) -> dict[str, Any]:
    if number is None:
        return {"line": {"color": theme.GREY, "width": 1.2}, "marker": {"size": 4}, "opacity": 0.8}
    return {"line": theme.line_style(number), "marker": theme.marker_style(number)}


def small_curves(
    values: np.ndarray,
    labels: Sequence[str],
    title: str,
    y_range: tuple[float, float],
    styles: Sequence[int | None],
    band: BandData | None = None,
    height: int = 440,
) -> go.Figure:
    """The curves `values` [curve, layer 0..L], in the styles of the large figure beside them and on a scale of their own.

    Their names stand in the hover alone; those without a style are below the others.
    """
    layers = np.arange(values.shape[1])
    figure = go.Figure(
        ([] if band is None else _band(layers, band))
        + [
            {
                "x": layers,
                "y": np.asarray(values[index], np.float32),
                "mode": "lines+markers",
                **_style(styles[index]),
                "showlegend": False,
                "hovertemplate": f"{theme.plain(labels[index], 140)}<br>layer %{{x}}: %{{y:.4f}}<extra></extra>",
            }
            for index in sorted(range(len(values)), key=lambda index: styles[index] is not None)
        ]
    )
    theme.layer_axis(figure, len(layers))
    figure.layout.xaxis.title.text = "layer"
    figure.layout.yaxis = {"title": {"text": "cosine"}, "range": y_range, "zeroline": False}
    figure.layout.showlegend = False
    theme.finish(figure, title, height)
    figure.layout.title.text += f"{theme.BELOW_TITLE}same colours, own scale</span>"
    return figure


@dataclass(frozen=True)
class EndLabel:
    """What stands at the end of a curve: its name, and its last value as text."""

    name: str
    value: str


BELOW_PLOT = 64  # pixels of a figure's height: the axis with its title
LINE = 20  # pixels between two labels
TO_LABEL = 16  # pixels from the end of a curve to its label
LETTER = 7.9  # pixels of a letter, on average
MOST_LETTERS = 22


def _mark_layer(figure: go.Figure, layer: int) -> None:
    """A line at the layer that is chosen, behind the curves."""
    line = {"color": theme.GREY, "width": 2, "dash": "dash"}  # no colour of a curve
    figure.add_shape(type="line", x0=layer, x1=layer, y0=0, y1=1, yref="paper", line=line, opacity=0.8, layer="below")


def _label_ends(
    figure: go.Figure,
    values: np.ndarray,
    ends: Sequence[EndLabel | None],
    band: BandData | None,
    y_range: tuple[float, float],
) -> None:
    """Label each curve at its last value; labels that would lie on each other are moved apart, with a line to their curves.

    The value stands below the name, so that a phone has more room for the curves.
    The text has the page's colour, which is read on any background; the lines and the curves' ends have the curves'.
    """
    x = values.shape[1] - 1
    styles = styles_of([end is not None for end in ends])
    labelled = [
        (
            float(row[-1]),
            f"{theme.plain(label.name, MOST_LETTERS)}<br><b>{label.value}</b>",
            str(theme.line_style(style)["color"]),
        )
        for row, label, style in zip(values, ends, styles, strict=True)
        if label is not None and style is not None and not np.isnan(row[-1])
    ]
    others = [float(row[-1]) for row, label in zip(values, ends, strict=True) if label is None]
    if others and not np.isnan(others).all():
        name = "1 other" if len(others) == 1 else f"{len(others)} others"
        labelled.append((float(np.nanmedian(others)), name, theme.GREY))
    if band is not None:
        mean = theme.number(float(band.mean[-1]), 2)
        name = band.name.partition(" ")[0]  # “unrelated”: of what, the curves say
        labelled.append((float(band.mean[-1]), f"{name} {mean}<br>band: 5–95 %", theme.GREY))
    if not labelled:
        return
    height = figure.layout.height - figure.layout.margin.t - BELOW_PLOT
    places = spread(
        [(value - y_range[0]) / (y_range[1] - y_range[0]) * height for value, _, _ in labelled], 2 * LINE + 2
    )
    labels = []
    for (value, text, colour), place in zip(labelled, places, strict=True):
        own = (value - y_range[0]) / (y_range[1] - y_range[0]) * height
        labels.append(end_label(x, value, text, own - place, colour))
    theme.annotate(figure, labels)
    figure.layout.xaxis.range = (-0.3, x + 0.15)  # labels would widen it
    figure.layout.xaxis.title.text = "layer (0 = before any block)"  # beside labels a phone has no room for more
    lines = [line for _, text, _ in labelled for line in text.replace("<b>", "").replace("</b>", "").split("<br>")]
    longest = max(map(len, lines))
    figure.layout.margin.r = round(TO_LABEL + LETTER * longest)


def end_label(
    x: float,
    value: float,
    text: str,
    below: float,
    colour: str,
    *,
    to_label: float = TO_LABEL,
    xref: str = "x",
    standoff: int = 5,
) -> dict[str, Any]:
    """A text at the right end of a line, with a stroke from the end at (x, value) to it; `theme.annotate` adds it.

    The text stands `to_label` pixels to the right of the end and `below` pixels below it.
    """
    return {
        "name": theme.END,
        "x": x,
        "xref": xref,
        "y": value,
        "text": text,
        "ax": to_label,
        "ay": below,
        "xanchor": "left",
        "align": "left",
        "showarrow": True,
        "arrowhead": 0,
        "arrowwidth": 1.5,
        "arrowcolor": colour,
        "standoff": standoff,
        **({"font": {"color": theme.GREY}} if colour == theme.GREY else {}),
    }


def spread(places: Sequence[float], apart: float) -> list[float]:
    """Places moved as little as needed to be `apart` from each other, in their order; groups that touch move together."""
    order = sorted(range(len(places)), key=lambda number: places[number])
    groups: list[list[int]] = []
    for number in order:
        groups.append([number])
        while len(groups) > 1 and _first(groups[-1], places, apart) - _last(groups[-2], places, apart) < apart:
            groups[-2:] = [groups[-2] + groups[-1]]
    moved = list(places)
    for group in groups:
        first = _first(group, places, apart)
        for step, number in enumerate(group):
            moved[number] = first + step * apart
    return moved


def _first(group: Sequence[int], places: Sequence[float], apart: float) -> float:
    """Where a group begins that stands around the middle of its places."""
    return sum(places[number] for number in group) / len(group) - (len(group) - 1) * apart / 2


def _last(group: Sequence[int], places: Sequence[float], apart: float) -> float:
    return _first(group, places, apart) + (len(group) - 1) * apart


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

    Layer l stands at l / L. NaN leaves a gap. `styles` are the numbers of the curves' styles, so that a model has one style in
    several figures; by default they are counted from 0.
    """
    traces: list[dict[str, Any]] = []
    for index, row, label in zip(range(len(values)) if styles is None else styles, values, labels, strict=True):
        last, name = len(row) - 1, theme.plain(label)
        depths = np.arange(len(row)) / max(1, last)
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
    figure = go.Figure(traces)
    figure.layout.xaxis = {
        "title": {"text": "relative depth (1 = last layer)"},
        "range": (-0.03, 1.03),
        "dtick": 0.25,
        "zeroline": False,
    }
    figure.layout.yaxis = {"title": {"text": y_title}, "range": y_range, "zeroline": False}
    has_names = len(labels) <= NAMED and max(map(len, labels), default=0) <= MOST_LETTERS
    theme.legend_below(figure, shown=not has_names)
    theme.finish(figure, title, 420)
    if has_names:
        _name_ends(figure, values, [theme.plain(label) for label in labels])
    return figure


def _name_ends(figure: go.Figure, values: Sequence[np.ndarray], names: Sequence[str]) -> None:
    """The names of one or two curves over relative depth at the right: above the higher end and below the lower one.

    A name is not as wide as half the plot of a phone: it stands above or below all that is drawn there.
    """
    known = [~np.isnan(row) for row in values]
    ends = [float(row[at][-1]) for row, at in zip(values, known, strict=True)]
    depths = np.linspace(NAMED_FROM, 1, 44)
    right = [np.interp(depths, np.linspace(0, 1, len(row))[at], row[at]) for row, at in zip(values, known, strict=True)]
    place = {"showarrow": False, "xanchor": "right"}
    theme.annotate(
        figure,
        [
            {"x": float(trace.x[-1]), "text": name, "font": {"color": trace.line.color}, **place}
            | (
                {"y": float(np.max(right)), "yanchor": "bottom", "yshift": 6}
                if number == int(np.argmax(ends))
                else {"y": float(np.min(right)), "yanchor": "top", "yshift": -8}
            )
            for number, (trace, name) in enumerate(zip(figure.data, names, strict=False))
        ],
    )


NAMED = 2  # curves of models whose names stand at their ends
NAMED_FROM = 0.57  # the depth at which the longest such name begins on a phone
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
                "line": theme.line_style(index) | {"width": 1.5},
                "marker": {"size": 4},
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
    x_title: str,
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
    figure.update_xaxes(title=x_title, rangemode="tozero")
    figure.update_yaxes(title="cosine of what is left", zeroline=False)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 420)
