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
    "topic": (theme.BLUE, 2.0),
    "other": (theme.GREY, 1.5),
}
_TIMES = {1e-3: "1 ms", 1: "1 s", 60: "1 min", 3_600: "1 h", 86_400: "1 day", 31_557_600: "1 year"}  # of an axis
_LABELLED = 25  # with more candidates only the correct answers have room for their texts
_SHOWN_CHARACTERS = 24  # fits beside the lines on a phone


@dataclass(frozen=True, eq=False)
class CostLine:
    """The time of one way to compare all texts of a collection, by the number of texts."""

    name: str
    seconds: Float64  # [size]


def rank_changes(before: Int64, kinds: Sequence[Kind], texts: Sequence[str], *, first: str, second: str) -> go.Figure:
    """One line per candidate, from its rank in the first stage (left) to its rank in the second (right).

    Candidates are in the second stage's order: `before` [candidate] are their first ranks, from 1. `first` and `second`
    name the stages, above the lines in place of a title. The correct answers are drawn last, above the other lines.
    """
    count = len(before)
    figure = go.Figure()
    order = sorted(range(count), key=lambda number: ("other", "topic", "correct").index(kinds[number]))
    named: set[Kind] = set()
    for number in order:
        kind, rank = kinds[number], number + 1
        colour, width = _STYLES[kind]
        has_text = count <= _LABELLED or kind == "correct"
        figure.add_scatter(
            x=[0, 1],
            y=[int(before[number]), rank],
            mode="lines+markers+text",
            line={"color": colour, "width": width},
            marker={"color": colour, "size": 9 if kind == "correct" else 6},
            text=["", f" {theme.plain(texts[number], _SHOWN_CHARACTERS)}" if has_text else ""],
            textposition="middle right",
            textfont={"size": theme.FONT_SIZE * 0.85} | ({"color": colour} if kind == "correct" else {}),
            hovertemplate=f"{theme.wrapped(texts[number][:300])}<br>{theme.plain(first)}: rank {before[number]}<br>"
            f"{theme.plain(second)}: rank {rank}<extra></extra>",
            name=KIND_NAMES[kind],
            legendgroup=kind,
            showlegend=kind not in named,
        )
        named.add(kind)
    ticks = sorted({1, *(rank for rank in (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100) if rank <= count), count})
    figure.update_yaxes(
        title="rank",
        range=[count + 0.6, 0.4],
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
