"""Bars of runs: recall on several collections, and how long the first hits by cosine and by dot product are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from components.charts import theme

SIMILARITY_COLOURS = {"cosine": theme.BLUE, "dot product": theme.ORANGE}
_NAME_WIDTH = 9  # characters of a run's name on a line
_UPRIGHT = 5  # runs whose names fit a phone's width without being turned
_PANEL_WIDTH = 14  # of a panel's title, which has half of a phone's width
_WHISKERS = "#70757E"  # of intervals: seen on both pages and on bars, which are pale for that
_PALE = 0.75


@dataclass(frozen=True)
class Bar:
    """A share in per cent with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FirstHits:
    """One run by one similarity: Recall@1, and by how many per cent its first hits exceed the correct answers."""

    recall: Bar
    longer_vectors: float
    more_tokens: float


def recall_panels(
    bars: Sequence[Sequence[Sequence[Bar]]],
    panels: Sequence[str],
    cutoffs: Sequence[int],
    runs: Sequence[str],
    title: str,
) -> go.Figure:
    """Recall@k in per cent, [panel, run, cutoff]: a panel for each collection, a group for each k, a colour for each run.

    All panels have one scale from 0 to 100, and each bar its interval.
    """
    figure = make_subplots(
        rows=1,
        cols=len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.06,
    )
    for column, (panel, of_panel) in enumerate(zip(panels, bars, strict=True), start=1):
        for number, (run, of_run) in enumerate(zip(runs, of_panel, strict=True)):
            figure.add_bar(
                x=[str(k) for k in cutoffs],
                y=[bar.value for bar in of_run],
                error_y=_error(of_run),
                text=[theme.number(bar.value, 0) for bar in of_run],
                textposition="inside",
                insidetextanchor="start",
                textangle=0,
                textfont={"size": 12, "color": "black" if number == 1 else "white"},  # the second is orange
                name=theme.plain(run, 44),
                legendgroup=str(number),
                showlegend=column == 1,
                marker={"color": theme.PALETTE[number % len(theme.PALETTE)], "opacity": _PALE},
                customdata=[[bar.low, bar.high] for bar in of_run],
                hovertemplate=f"{theme.plain(panel)}<br>{theme.plain(run)}<br>Recall@%{{x}}: %{{y:.1f}} %"
                " (%{customdata[0]:.1f}–%{customdata[1]:.1f})<extra></extra>",
                row=1,
                col=column,
            )
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(range=(0, 102), zeroline=False)
    figure.update_yaxes(title="Recall@k (%), with its 95 % interval", col=1)
    figure.update_xaxes(type="category", showgrid=False, title="k")
    names = [theme.wrapped(panel, _PANEL_WIDTH) for panel in panels]
    axes = ["x" if column == 1 else f"x{column}" for column in range(1, len(panels) + 1)]
    theme.annotate(
        figure,
        [
            {
                "text": name,
                "x": 0.5,
                "xref": f"{axis} domain",
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "showarrow": False,
            }
            for name, axis in zip(names, axes, strict=True)
        ],
    )
    _finished(figure, title, 440)
    figure.layout.margin.t += 20 * max(name.count("<br>") + 1 for name in names)
    figure.layout.title.update(yref="container", y=1, yanchor="top", pad={"t": 14})  # above the panels' names
    return figure


def first_hit_panels(
    runs: Sequence[str], by_similarity: Sequence[tuple[str, Sequence[FirstHits]]], title: str
) -> go.Figure:
    """Three panels over the same runs: Recall@1, and how much longer the first hits' vectors and texts are.

    `by_similarity` holds the bars [run] of each similarity. 0 % is as long as the correct answers; NaN has no bar.
    """
    figure = make_subplots(
        rows=3,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.06,
    )
    x = [theme.wrapped(run, _NAME_WIDTH) for run in runs]
    for name, hits in by_similarity:
        for row, values in enumerate(
            (
                [hit.recall.value for hit in hits],
                [hit.longer_vectors for hit in hits],
                [hit.more_tokens for hit in hits],
            ),
            start=1,
        ):
            figure.add_bar(
                x=x,
                y=np.asarray(values, np.float32),
                error_y=_error([hit.recall for hit in hits]) if row == 1 else None,
                name=name,
                legendgroup=name,
                showlegend=row == 1,
                marker={"color": SIMILARITY_COLOURS[name], "opacity": _PALE},
                hovertemplate=f"%{{x}}<br>{name}: %{{y:.1f}} %<extra></extra>",
                row=row,
                col=1,
            )
    figure.update_layout(barmode="group", bargap=0.3)
    figure.update_xaxes(showgrid=False, tickangle=0 if len(runs) <= _UPRIGHT else None)
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title="Recall@1 (%)", range=(0, 102), row=1)
    figure.update_yaxes(title="longer vectors (%)", row=2)
    figure.update_yaxes(title="more tokens (%)", row=3)
    return _finished(figure, title, 560)


def _error(bars: Sequence[Bar]) -> dict[str, object]:
    """Plotly's error bars of an interval that need not be symmetric."""
    values, low, high = ([getattr(bar, name) for bar in bars] for name in ("value", "low", "high"))
    return theme.interval(values, low, high, color=_WHISKERS, thickness=2)


def _finished(figure: go.Figure, title: str, height: int) -> go.Figure:
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, height)
