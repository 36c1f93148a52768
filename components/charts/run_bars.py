"""Bars of runs: recall on several collections, and how long the first hits by cosine and by dot product are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from components.charts import theme

SIMILARITY_COLOURS = {"cosine": theme.BLUE, "dot product": theme.ORANGE}
_NAME_WIDTH = 12  # characters of a run's name on a line


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
    groups: Sequence[str],
    runs: Sequence[str],
    title: str,
) -> go.Figure:
    """Bars [panel, run, group] in per cent: a panel for each collection, a group for each cut-off, a colour for each run.

    All panels have one scale from 0 to 100, and each bar its interval.
    """
    figure = make_subplots(
        rows=1,
        cols=len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.06,
        subplot_titles=[theme.wrapped(name, 24) for name in panels],
    )
    for column, (panel, of_panel) in enumerate(zip(panels, bars, strict=True), start=1):
        for number, (run, of_run) in enumerate(zip(runs, of_panel, strict=True)):
            figure.add_bar(
                x=list(groups),
                y=[bar.value for bar in of_run],
                error_y=_error(of_run),
                name=theme.plain(run, 44),
                legendgroup=str(number),
                showlegend=column == 1,
                marker_color=theme.PALETTE[number % len(theme.PALETTE)],
                customdata=[[bar.low, bar.high] for bar in of_run],
                hovertemplate=f"{theme.plain(panel)}<br>{theme.plain(run)}<br>%{{x}}: %{{y:.1f}} %"
                " (%{customdata[0]:.1f}–%{customdata[1]:.1f})<extra></extra>",
                row=1,
                col=column,
            )
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(range=(0, 102), zeroline=False)
    figure.update_yaxes(title="recall (%)", col=1)
    figure.update_xaxes(showgrid=False)
    return _finished(figure, title, 420)


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
        vertical_spacing=0.11,
        subplot_titles=(
            "Recall@1 (%)",
            "Vectors of the first hits: longer than the correct answers' by (%)",
            "Tokens of the first hits: more than the correct answers' by (%)",
        ),
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
                marker_color=SIMILARITY_COLOURS[name],
                hovertemplate=f"%{{x}}<br>{name}: %{{y:.1f}} %<extra></extra>",
                row=row,
                col=1,
            )
    figure.update_layout(barmode="group", bargap=0.3)
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(range=(0, 102), row=1)
    return _finished(figure, title, 560)


def _error(bars: Sequence[Bar]) -> dict[str, object]:
    """Plotly's error bars of an interval that need not be symmetric."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [bar.high - bar.value for bar in bars],
        "arrayminus": [bar.value - bar.low for bar in bars],
        "thickness": 1.5,
        "width": 3,
        "color": theme.GREY,
    }


def _finished(figure: go.Figure, title: str, height: int) -> go.Figure:
    theme.legend_below(figure, shown=True)
    figure = theme.finish(figure, title, height)
    # The panels' titles stand above the plots: without room of their own they would cover the figure's title.
    lines = max(str(note.text).count("<br>") for note in figure.layout.annotations)
    figure.update_layout(margin_t=int(figure.layout.margin.t) + 22 + 16 * lines)
    return figure.update_annotations(font_size=theme.FONT_SIZE * 0.95)
