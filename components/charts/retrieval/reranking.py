"""Figures of re-ranking: candidates before and after as lines, and what comparing all texts with each other costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from components.arrays import Float64, Int64
from components.charts import theme

Kind = Literal["correct", "topic", "other"]
KIND_NAMES: dict[Kind, str] = {"correct": "correct answer", "topic": "same topic", "other": "other candidate"}
_STYLES: dict[Kind, tuple[str, float]] = {  # colour and width of a line
    "correct": (theme.VERMILION, 4.0),
    "topic": (theme.PURPLE, 2.0),
    "other": (theme.GREY, 1.5),
}
_FAINT = 0.25  # opacity
_TIMES = {1e-3: "1 ms", 1: "1 s", 60: "1 min", 3_600: "1 h", 86_400: "1 day", 31_557_600: "1 year"}  # of an axis
MOST_LABELLED = 25  # with more candidates only some lines are drawn strongly, and only they have room for their texts
_LARGEST_MOVES = 6  # that are drawn strongly then
_LABEL_SHARE = 0.045  # of the figure's height, for one label
_SHOWN_CHARACTERS = 24  # fits beside the lines on a phone


@dataclass(frozen=True, eq=False)
class CostLine:
    """The time of one way to compare all texts of a collection, by the number of texts."""

    name: str
    seconds: Float64  # [size]


def strong_lines(before: Int64, kinds: Sequence[Kind]) -> tuple[int, ...]:
    """The candidates whose lines are drawn strongly, with their texts; all of them if they are few.

    Of many these are the correct answers and the largest moves, as far as their texts do not cover each other. `before`
    [candidate] are the first ranks, from 1, of candidates in the second stage's order.
    """
    count = len(before)
    if count <= MOST_LABELLED:
        return tuple(range(count))
    correct = [number for number in range(count) if kinds[number] == "correct"]
    strong, apart = list(correct), _LABEL_SHARE * count
    moves = before - np.arange(1, count + 1)
    for number in np.argsort(-np.abs(moves), kind="stable").tolist():
        if len(strong) - len(correct) == _LARGEST_MOVES or not moves[number]:
            break
        if all(abs(number - other) >= apart for other in strong):
            strong.append(number)
    return tuple(sorted(strong))


def rank_changes(
    before: Int64, kinds: Sequence[Kind], texts: Sequence[str], *, first: str, second: str, scale: float = 1.0
) -> go.Figure:
    """One line per candidate, from its rank in the first stage (left) to its rank in the second (right).

    Candidates are in the second stage's order: `before` [candidate] are their first ranks, from 1. `first` and `second`
    name the stages, above the lines in place of a title, and `scale` enlarges the candidates' texts. The correct answers
    are drawn last, above the other lines. Lines that are not among the `strong_lines` are faint.
    """
    count = len(before)
    figure = go.Figure()
    strong = frozenset(strong_lines(before, kinds))
    order = sorted(
        range(count), key=lambda number: (number in strong, ("other", "topic", "correct").index(kinds[number]))
    )
    named: set[str] = set()
    for number in order:
        kind, rank, is_strong = kinds[number], number + 1, number in strong
        colour, width = _STYLES[kind]
        name = KIND_NAMES[kind]
        if is_strong and count > len(strong) and kind != "correct":
            colour, width, name = theme.GREEN, 2.0, "large move"
        figure.add_scatter(
            x=[0, 1],
            y=[int(before[number]), rank],
            mode="lines+markers+text",
            line={"color": colour, "width": width if is_strong else 1.0},
            marker={"color": colour, "size": 9 if kind == "correct" else 6 if is_strong else 3},
            opacity=1.0 if is_strong else _FAINT,
            text=["", f" {theme.plain(texts[number], _SHOWN_CHARACTERS)}" if is_strong else ""],
            textposition="middle right",
            cliponaxis=False,  # the text of the first and the last rank is higher than the room beyond them
            textfont={"size": theme.FONT_SIZE * 0.85 * scale} | ({"color": colour} if kind == "correct" else {}),
            hovertemplate=f"{theme.wrapped(texts[number][:300])}<br>{theme.plain(first)}: rank {before[number]}<br>"
            f"{theme.plain(second)}: rank {rank}<extra></extra>",
            name=name,
            legendgroup=name,
            showlegend=name not in named,
        )
        named.add(name)
    ticks = sorted({1, *(rank for rank in (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100) if rank <= count), count})
    figure.update_yaxes(
        title="rank",
        range=[count + max(0.6, 0.02 * count), min(0.4, 1 - 0.02 * count)],
        tickvals=list(range(1, count + 1)) if count <= 15 else ticks,
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_xaxes(
        range=[-0.06, 2.75],
        tickvals=[0, 1],
        ticktext=[theme.wrapped(first, 12), theme.wrapped(second, 12)],
        tickangle=0,
        side="top",
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    theme.legend_below(figure, shown=len(named) > 1)
    return theme.finish(figure, "", min(520, 190 + 26 * max(8, count)))


@dataclass(frozen=True)
class LookPoint:
    """A search with so many candidates looked at again: a share in per cent with its interval, and the time it adds."""

    name: str
    milliseconds: float
    share: float
    low: float
    high: float


def quality_and_time(points: Sequence[LookPoint], title: str) -> go.Figure:
    """The share of queries whose right text comes first, by the time that a second look adds to a query.

    The first point is the search without one: a dashed line leads from it through all others. The points are named where they
    stand, those of equal shares once.
    """
    figure = go.Figure()
    base, most = points[0], max(point.milliseconds for point in points)
    figure.add_hline(y=base.share, line={"color": theme.GREY, "width": 1.2, "dash": "dash"})
    figure.add_scatter(
        x=[point.milliseconds for point in points],
        y=[point.share for point in points],
        error_y=theme.interval(*zip(*((point.share, point.low, point.high) for point in points), strict=True)),
        mode="lines+markers",
        line={"color": theme.BLUE, "width": 2},
        marker={
            "size": 10,
            "color": [theme.BLUE] * len(points),
            "symbol": ["circle-open", *["circle"] * (len(points) - 1)],
            "line": {"width": 2},
        },
        customdata=[[theme.plain(point.name), theme.number(point.share, 1)] for point in points],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]} %, %{x:.2f} ms more<extra></extra>",
        showlegend=False,
    )
    for number, point in enumerate(points):
        figure.add_annotation(
            x=point.milliseconds,
            y=point.low if number % 2 == 0 else point.high,
            text=theme.small(theme.plain(point.name)),
            showarrow=False,
            xanchor="left"
            if point.milliseconds < 0.2 * most
            else "right"
            if point.milliseconds > 0.8 * most
            else "center",
            yanchor="top" if number % 2 == 0 else "bottom",
        )
    low, high = min(point.low for point in points), max(point.high for point in points)
    room = max(1.0, 0.2 * (high - low))
    figure.update_yaxes(
        title="correct answer first, %", range=[max(0.0, low - room), min(100.0, high) + room], zeroline=False
    )
    figure.update_xaxes(title="ms more a query", range=[-0.06 * (most or 1), 1.08 * (most or 1)], zeroline=False)
    return theme.finish(figure, title, 300)


def pair_cost(
    sizes: Int64, lines: Sequence[CostLine], marks: Sequence[tuple[str, float, float]], title: str
) -> go.Figure:
    """Seconds to compare all pairs of n texts, on logarithmic axes, one line per way.

    `marks` are published measurements: a name, the number of texts and the seconds.
    """
    figure = go.Figure()
    for number, line in enumerate(lines):
        figure.add_scatter(
            x=sizes,
            y=np.asarray(line.seconds, np.float64),
            mode="lines",
            line=theme.line_style(number),
            name=theme.plain(line.name),
            hovertemplate=f"{theme.plain(line.name)}<br>%{{x:,}} texts: %{{y:.3s}} s<extra></extra>",
        )
    for number, (name, size, seconds) in enumerate(marks):
        figure.add_scatter(
            x=[size],
            y=[seconds],
            mode="markers",
            marker={"color": theme.PURPLE, "size": 13, "symbol": ("star", "diamond")[number % 2]},
            name=theme.plain(name),
            hovertemplate=f"{theme.plain(name, 100)}<extra></extra>",
        )
    figure.update_xaxes(title="number of texts n", type="log", dtick=1, zeroline=False)
    figure.update_yaxes(title="time", type="log", tickvals=list(_TIMES), ticktext=list(_TIMES.values()), zeroline=False)
    theme.legend_below(figure)
    return theme.finish(figure, title, 440 + 22 * max(0, len(lines) + len(marks) - 3))
