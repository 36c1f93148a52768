"""The scores of one query, summed from their parts, above the attention that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from components.charts import theme
from components.charts.matrices import NUMBERED, ticks

COLOURS = {
    "content to content": theme.BLUE,
    "content to position": theme.ORANGE,
    "position to content": theme.GREEN,
    "distance": theme.ORANGE,
}


def score_bars(parts: Mapping[str, np.ndarray], attention: np.ndarray, labels: Sequence[str], title: str) -> go.Figure:
    """Scores by key, stacked from their `parts` [key], and below them the `attention` [key]; NaN stays empty.

    Labels must be unique (see `matrices.axis_labels`). The key with most attention is blue; of scores that are a sum, each
    part has its colour, and a diamond marks their sum. Few bars have their numbers, and of several parts the sum has.
    """
    most = int(np.nanargmax(attention)) if np.isfinite(attention).any() else -1
    of_keys = [theme.BLUE if key == most else theme.GREY for key in range(len(labels))]
    names = [theme.plain(label, 26) for label in labels]
    is_numbered = len(names) <= NUMBERED
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.6, 0.4], vertical_spacing=0.12)
    for part, values in parts.items():
        figure.add_bar(
            x=names,
            y=np.asarray(values, np.float32),
            name=part if len(parts) > 1 else "score",
            marker_color=COLOURS.get(part, theme.PURPLE) if len(parts) > 1 else of_keys,
            **(_numbers(values) if is_numbered and len(parts) == 1 else {}),
            hovertemplate=f"%{{x}}<br>{part}: %{{y:.3f}}<extra></extra>",
            row=1,
            col=1,
        )
    if len(parts) > 1:
        figure.add_scatter(
            x=names,
            y=np.sum(list(parts.values()), axis=0).astype(np.float32),
            name="sum (the score)",
            mode="markers+text" if is_numbered else "markers",
            text=_written(np.sum(list(parts.values()), axis=0)) if is_numbered else None,
            textposition="top center",
            cliponaxis=False,
            marker={"symbol": "diamond", "size": 9, "color": theme.GREY, "line": {"width": 1.5, "color": "#FFFFFF"}},
            hovertemplate="%{x}<br>sum: %{y:.3f}<extra></extra>",
            row=1,
            col=1,
        )
    figure.add_bar(
        x=names,
        y=np.asarray(attention, np.float32),
        name="attention",
        marker_color=of_keys,
        **(_numbers(attention) if is_numbered else {}),
        hovertemplate="%{x}<br>attention: %{y:.4f}<extra></extra>",
        showlegend=False,
        row=2,
        col=1,
    )
    # On a phone all numbers are as small as the longest, those below zero.
    figure.update_layout(barmode="relative", bargap=0.25, uniformtext={"mode": "show", "minsize": 8})
    theme.legend_below(figure, shown=len(parts) > 1)
    axis = {"type": "category", "categoryorder": "array", "categoryarray": names, "showgrid": False}
    figure.layout.xaxis.update(axis)
    figure.layout.xaxis2.update(axis | ticks(labels) | {"title": {"text": "key"}})
    figure.layout.yaxis.update({"title": {"text": "score"}, "zeroline": True})
    figure.layout.yaxis2.update({"title": {"text": "attention"}, "rangemode": "tozero"})
    between = (figure.layout.yaxis.domain[0] + figure.layout.yaxis2.domain[1]) / 2
    figure.add_annotation(
        text="softmax ↓", x=0, y=between, xref="paper", yref="paper", xanchor="left", yanchor="middle", showarrow=False
    )
    return theme.finish(figure, title, 470 if len(parts) > 1 else 430)


def _written(values: np.ndarray) -> list[str]:
    return ["" if np.isnan(value) else theme.number(value, 2) for value in values.tolist()]


def _numbers(values: np.ndarray) -> dict[str, Any]:
    """Of bars: their values, written at their ends."""
    return {
        "text": _written(values),
        "textposition": "outside",
        "textangle": 0,
        "cliponaxis": False,
    }
