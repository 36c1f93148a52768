"""Figures of evaluations: a measure for every layer and pooling, recall and precision curves, quality and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.cells import make_clickable, number_readably
from components.charts.curves import BELOW_PLOT, end_label, layer_curves, spread
from components.sizes import in_words

MARKED = "#D6246E"  # the chosen cell's frame
_PAD = 0.5
_AGREEMENT, _LABEL = 428, 19  # pixels: the height of the agreement over the layers, and between two names at its right
MOST_BESIDE = 9  # letters of a name that its number stands beside


@dataclass(frozen=True, eq=False)
class Curve:
    """Values over k (or over levels of recall), in per cent, with an optional interval."""

    name: str
    values: np.ndarray  # [point]
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    is_marked: bool = field(default=False, kw_only=True)  # in the colour of the marked bar of `ranking_bars`


@dataclass(frozen=True)
class RunCost:
    """One run's quality and its cost per query."""

    name: str
    quality: float  # per cent
    milliseconds: float  # per query
    megabytes: float  # of the index


def measure_grid(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    *,
    unit: str,
    row_title: str,
    column_title: str,
    chosen: tuple[int, int] | None = None,
    starred: tuple[int, int] | None = None,
    framed: Sequence[tuple[int, int]] = (),
    limits: tuple[float, float] | None = None,
    digits: int = 1,
) -> go.Figure:
    """A measure [row, column] as coloured cells with their numbers; the first row is at the bottom.

    NaN stays empty. Cells can be clicked. The cell `chosen` gets a frame, `starred` a star; thin frames mark those that
    are `framed`.
    """
    low, high = theme.limits_of(values, limits)
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            zmin=low,
            zmax=high if high > low else low + 1,
            colorscale=theme.SEQUENTIAL,
            showscale=False,
            text=[
                [
                    "" if np.isnan(value) else f"{value:.{digits}f}" + (" ★" if (row, column) == starred else "")
                    for column, value in enumerate(cells)
                ]
                for row, cells in enumerate(values)
            ],
            texttemplate="%{text}",
            hoverinfo="skip",
            xgap=2,
            ygap=2,
        )
    )
    cells_with_value = [
        (row, column) for row in range(len(rows)) for column in range(len(columns)) if np.isfinite(values[row, column])
    ]
    make_clickable(
        figure,
        {
            (row, column): f"{theme.plain(rows[row])}, {theme.plain(columns[column])}<br>"
            f"{unit}: {values[row, column]:.{digits + 1}f}"
            for row, column in cells_with_value
        },
    )
    number_readably(figure)
    for (row, column), width in [*((cell, 2.5) for cell in framed), *([(chosen, 4)] if chosen is not None else [])]:
        figure.add_shape(
            type="rect",
            x0=column - _PAD,
            x1=column + _PAD,
            y0=row - _PAD,
            y1=row + _PAD,
            line={"color": MARKED, "width": width},
        )
    figure.update_xaxes(
        title=column_title,
        tickvals=list(range(len(columns))),
        ticktext=[theme.wrapped(name, 8) for name in columns],
        tickangle=0,
    )
    figure.update_yaxes(
        title=row_title, tickvals=list(range(len(rows))), ticktext=[theme.wrapped(name, 10) for name in rows]
    )
    figure.update_xaxes(showgrid=False, zeroline=False, range=[-_PAD, len(columns) - _PAD], fixedrange=True)
    figure.update_yaxes(showgrid=False, zeroline=False, range=[-_PAD, len(rows) - _PAD], fixedrange=True)
    return theme.finish(figure, title, grid_height(len(rows)))


def grid_height(rows: int) -> int:
    """The height in pixels of a grid with this many rows; figures next to it have the same height."""
    return 130 + 38 * max(6, rows)


def curves_over(
    curves: Sequence[Curve],
    points: Sequence[float],
    title: str,
    *,
    x_title: str,
    y_title: str,
    logarithmic: bool = False,
    ticks: Sequence[float] | None = None,
    y_range: tuple[float, float] | None = None,
    height: int = 420,
) -> go.Figure:
    """Curves [run] over the same points; intervals as bands in the curve's colour. `ticks` are the labelled points."""
    figure = go.Figure()
    x = np.asarray(points, np.float32)
    marked = theme.PALETTE.index(theme.ORANGE)
    others = (number for number in count() if number != marked or not any(curve.is_marked for curve in curves))
    numbers = [marked if curve.is_marked else next(others) for curve in curves]
    for number, curve in zip(numbers, curves, strict=True):
        style = theme.line_style(number)
        if curve.low is not None and curve.high is not None:
            figure.add_scatter(
                x=np.concatenate([x, x[::-1]]),
                y=np.concatenate([curve.high, curve.low[::-1]]).astype(np.float32),
                mode="lines",  # plotly adds markers where there are few points
                fill="toself",
                fillcolor=_faint(str(style["color"])),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                name=f"interval of {theme.plain(curve.name)}",
            )
    for number, curve in zip(numbers, curves, strict=True):
        name = theme.plain(curve.name, 44)
        figure.add_scatter(
            x=x,
            y=np.asarray(curve.values, np.float32),
            mode="lines+markers" if len(x) <= 20 else "lines",
            marker=theme.marker_style(number),
            line=theme.line_style(number),
            name=name,
            hovertemplate=f"{theme.plain(curve.name, 100)}<br>{x_title} %{{x}}: %{{y:.3f}}<extra></extra>",
            connectgaps=True,  # a run may have no value at some points of another one
        )
    figure.update_xaxes(title=x_title, zeroline=False, **_ticks(x, logarithmic, ticks))
    figure.update_yaxes(
        title=y_title, range=y_range or _range_if_flat([curve.values for curve in curves]), zeroline=False
    )
    return _with_legend(figure, title, height, len(curves))


def _range_if_flat(values: Sequence[np.ndarray]) -> tuple[float, float] | None:
    """From 0 to a little above the one value of all curves, where plotly would show a sliver around it; else None."""
    known = np.concatenate([np.asarray(row, float)[np.isfinite(row)] for row in values]) if len(values) else np.zeros(0)
    if not len(known) or float(np.ptp(known)) > 1e-6 or known[0] < 0:
        return None
    return 0.0, 1.05 * float(known[0]) or 1.0


def precision_recall(curves: Sequence[tuple[str, np.ndarray, np.ndarray]], title: str) -> go.Figure:
    """(name, recall [point], precision [point]) in per cent, one line each."""
    figure = go.Figure()
    for number, (name, recall, precision) in enumerate(curves):
        figure.add_scatter(
            x=np.asarray(recall, np.float32),
            y=np.asarray(precision, np.float32),
            mode="lines+markers",
            marker=theme.marker_style(number),
            line=theme.line_style(number),
            name=theme.plain(name, 44),
            customdata=np.arange(1, len(recall) + 1),
            hovertemplate=f"{theme.plain(name)}<br>k = %{{customdata}}: recall %{{x:.2f}}, precision %{{y:.2f}}<extra></extra>",
        )
    figure.update_xaxes(title="recall (%)", zeroline=False)
    figure.update_yaxes(title="precision (%)", zeroline=False, rangemode="tozero")
    return _with_legend(figure, title, 420, len(curves))


@dataclass(frozen=True)
class RankedBar:
    """The mean of a measure over queries with its interval, in per cent."""

    name: str
    value: float
    low: float
    high: float
    is_marked: bool = False  # drawn in the colour of what a figure is about
    is_compared: bool = False  # and in that of what it is compared with; the others are grey where one is


def ranking_bars(bars: Sequence[RankedBar], title: str, *, measure: str, dark: bool = False) -> go.Figure:
    """A horizontal bar for each way of ranking, the best on top, with its interval as a thin line and its value behind it."""
    ordered = sorted(bars, key=lambda bar: bar.value)
    longest = max((bar.high for bar in ordered), default=0.0)
    other = theme.GREY if any(bar.is_compared for bar in ordered) else theme.BLUE
    colours = [theme.ORANGE if bar.is_marked else theme.BLUE if bar.is_compared else other for bar in ordered]
    figure = go.Figure(
        go.Bar(
            x=np.array([bar.value for bar in ordered], np.float32),
            y=[theme.wrapped(bar.name, 24) for bar in ordered],
            orientation="h",
            marker_color=colours,
            error_x=theme.interval(
                *([getattr(bar, name) for bar in ordered] for name in ("value", "low", "high")),
                color=theme.whiskers(dark),
                thickness=2,
                width=5,
            ),
            customdata=[[bar.low, bar.high] for bar in ordered],
            hovertemplate=f"%{{y}}<br>{measure} %{{x:.2f}} % (95 %: %{{customdata[0]:.1f}} to %{{customdata[1]:.1f}})"
            "<extra></extra>",
            showlegend=False,
        )
    )
    theme.annotate(
        figure,
        [
            {"x": max(bar.value, bar.high), "y": row, "text": f"<b>{theme.number(bar.value, 1)}</b>", "xanchor": "left"}
            | {"xshift": 6, "showarrow": False, "font": {"color": theme.whiskers(dark)}}
            for row, bar in enumerate(ordered)
        ],
    )
    figure.update_xaxes(title=f"{measure} (%)", range=[0, 1.03 * longest or 1], zeroline=False)
    figure.update_yaxes(showgrid=False)
    figure.update_layout(bargap=0.25)
    theme.finish(figure, title, 110 + 40 * max(4, len(ordered)))
    figure.layout.margin.r += 44  # for the value behind the longest bar
    return figure


def quality_and_cost(costs: Sequence[RunCost], title: str, quality: str) -> go.Figure:
    """A point per run: quality against time per query (logarithmic); the area shows the size of the index."""
    most = max((cost.megabytes for cost in costs), default=1) or 1
    figure = go.Figure()
    has_room = _has_room(costs)
    for number, cost in enumerate(costs):
        figure.add_scatter(
            x=[cost.milliseconds],
            y=[cost.quality],
            mode="markers+text",
            text=[theme.plain(cost.name, 22) if has_room[number] else ""],
            textposition="top center",
            cliponaxis=False,
            marker={
                "size": 10 + 26 * (cost.megabytes / most) ** 0.5,
                "color": theme.line_style(number)["color"],
                "symbol": theme.marker_style(number)["symbol"],
                "opacity": 0.85,
            },
            name=theme.plain(cost.name, 44),
            hovertemplate=f"{theme.plain(cost.name)}<br>{quality} %{{y:.2f}}<br>%{{x:.2f}} ms per query<br>"
            f"{in_words(1e6 * cost.megabytes)} index<extra></extra>",
        )
    times = [cost.milliseconds for cost in costs if cost.milliseconds > 0] or [1.0]
    qualities = [cost.quality for cost in costs] or [0.0]
    # Room for the names at the outermost points.
    margin = max(0.25, 0.12 * float(np.log10(max(times) / min(times))))
    span = max(10.0, float(np.ptp(qualities)))
    figure.update_xaxes(
        title="milliseconds per query (logarithmic)",
        type="log",
        range=[np.log10(min(times)) - margin, np.log10(max(times)) + margin],
        dtick="D2" if max(times) / min(times) < 30 else 1,
    )
    figure.update_yaxes(
        title=f"{quality} (%)",
        zeroline=False,
        range=[min(qualities) - 0.16 * span, min(max(qualities) + 0.16 * span, 103.0)],
    )
    figure = _with_legend(figure, title, 460, max(2, len(costs)))
    return figure.update_layout(legend_itemsizing="constant")


def _has_room(costs: Sequence[RunCost]) -> list[bool]:
    """Whether each run has room for its name at its point; the others are identified by the legend."""
    if not costs:
        return []
    times = np.log10([max(cost.milliseconds, 1e-6) for cost in costs])
    qualities = np.array([cost.quality for cost in costs])
    wide, high = 0.3 * max(float(np.ptp(times)), 0.5), 0.12 * max(float(np.ptp(qualities)), 4.0)
    return [
        not any(
            (abs(times - times[own]) < wide)[other] and (abs(qualities - qualities[own]) < high)[other]
            for other in range(len(costs))
            if other != own
        )
        for own in range(len(costs))
    ]


def agreement_curves(
    values: np.ndarray,
    labels: Sequence[str],
    flat: Sequence[tuple[str, float]],
    title: str,
    *,
    y_title: str,
) -> go.Figure:
    """Correlations [pooling, layer] as curves, and values without layers (`flat`) as quiet level lines.

    Each line has its name and last value at its right end, with a stroke to it where the names had to be moved apart.
    """
    figure = layer_curves(values, labels, title, y_title=y_title, mark_extremes=False)
    figure.layout.yaxis.title = {"text": y_title} if y_title else None
    layers = list(range(values.shape[1]))
    for name, value in flat:
        figure.add_scatter(
            x=layers,
            y=np.full(len(layers), value, np.float32),
            mode="lines",
            line={"color": theme.GREY, "width": 1.5, "dash": "dash"},
            name=theme.plain(name),
            hovertemplate=f"{theme.plain(name)}: %{{y:.4f}}<extra></extra>",
        )
    theme.finish(figure, title, _AGREEMENT)
    ends = [trace for trace in figure.data if np.isfinite(trace.y[-1])]
    every = np.concatenate([np.asarray(trace.y, float) for trace in figure.data])
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    room = max(1e-6, 0.06 * (high - low))
    figure.layout.yaxis.range = (low - room, high + room)
    scale = (_AGREEMENT - figure.layout.margin.t - BELOW_PLOT) / (high - low + 2 * room)  # pixels of one unit
    texts = [_end_label(str(trace.name), float(trace.y[-1])) for trace in ends]
    lines = [number for number, text in enumerate(texts) for _ in text.split("<br>")]  # [line of text], its label
    places = np.array(spread([scale * float(ends[number].y[-1]) for number in lines], _LABEL))
    notes = []
    for number, (trace, text) in enumerate(zip(ends, texts, strict=True)):
        is_level, value = trace.line.color == theme.GREY, float(trace.y[-1])
        below = scale * value - float(places[[of == number for of in lines]].mean())
        own = text if is_level else f"<b>{text}</b>"
        note = end_label(layers[-1], value, own, below, str(trace.line.color))
        notes.append(note | {"font": {} if is_level else {"color": trace.line.color}})
    theme.annotate(figure, notes)
    figure.update_xaxes(range=[-0.02 * layers[-1], 1.02 * layers[-1]] if len(layers) > 1 else None)
    figure.layout.xaxis.title.text = "layer (0 = before any block)"  # beside the names a phone has no room for more
    figure.layout.showlegend = False
    figure.layout.margin.r = round(
        24 + 7.4 * max((len(line) for text in texts for line in text.split("<br>")), default=0)
    )
    return figure


def _end_label(name: str, value: float) -> str:
    """A line's name and last value; a long name on two lines, so that a phone has room for the lines."""
    first, _, last = name.rpartition(" ")
    if len(name) <= MOST_BESIDE:
        return f"{name} {theme.number(value)}"
    return f"{first}<br>{last} {theme.number(value)}" if first else f"{name}<br>{theme.number(value)}"


def agreement_bars(values: Sequence[tuple[str, float]], title: str, *, unit: str) -> go.Figure:
    """Correlations of runs without layers to compare, as bars from top to bottom: the model's first, in a colour of its own."""
    names, correlations = [theme.plain(name) for name, _ in values], [value for _, value in values]
    most = max(map(abs, correlations))
    figure = go.Figure(
        go.Bar(
            x=np.array(correlations, np.float32),
            y=names,
            orientation="h",
            marker_color=[theme.BLUE] + [theme.PALETTE[1]] * (len(values) - 1),
            # Where a bar is too short for its number, the hover and the table have it.
            text=[theme.number(value) if value > most / 3 else "" for value in correlations],
            textposition="inside",
            insidetextanchor="end",
            insidetextfont={"color": ["white"] + ["black"] * (len(values) - 1)},
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(title=unit)
    figure.update_yaxes(autorange="reversed", title=None)
    return theme.finish(figure, title, 140 + 36 * len(values))


def predicted_against_people(
    predicted: np.ndarray, given: np.ndarray, texts: Sequence[str], title: str, *, unit: str
) -> go.Figure:
    """A point per pair: the score `given` by people and the model's score; `texts` are shown on hover."""
    figure = go.Figure(
        go.Scatter(
            x=np.asarray(given, np.float32),
            y=np.asarray(predicted, np.float32),
            mode="markers",
            marker={
                "size": 8 if len(given) <= 400 else 5,
                "color": theme.BLUE,
                "opacity": 0.6 if len(given) > 60 else 0.85,
            },
            text=list(texts),
            hovertemplate=f"%{{text}}<br>people %{{x:.6~g}}, {unit} %{{y:.3f}}<extra></extra>",
            showlegend=False,
        )
    )
    figure.update_xaxes(title="score given by people", zeroline=False)
    figure.update_yaxes(title=unit, zeroline=False)
    return theme.finish(figure, title, 430)


def _with_legend(figure: go.Figure, title: str, height: int, entries: int) -> go.Figure:
    theme.legend_below(figure, shown=entries > 1)
    return theme.finish(figure, title, height + 14 * max(0, entries - 4))


def _ticks(points: np.ndarray, logarithmic: bool, ticks: Sequence[float] | None) -> dict[str, object]:
    if not logarithmic:
        return {}
    if ticks is None:
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= points[-1]]
    # On a phone a label near the next one would run into it: it stands a line lower.
    lower = [after < 1.9 * tick for tick, after in zip(ticks, [*ticks[1:], np.inf], strict=True)]
    texts = ["<br>" * is_lower + str(tick) for tick, is_lower in zip(ticks, lower, strict=True)]
    return {"type": "log", "tickvals": list(ticks), "ticktext": texts, "tickangle": 0}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"
