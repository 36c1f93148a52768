"""Rotary positions: how far each position turns each pair of dimensions, and a score as a function of the distance."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from components.charts import theme


def rotation_heatmap(angles: np.ndarray, title: str) -> go.Figure:
    """Angles in radians [position, pair] as the coordinate at which a point (1, 0) ends: their cosine, -1 to 1.

    The hover has the angle in degrees, whole turns included.
    """
    positions, pairs = angles.shape
    degrees = np.degrees(angles)
    figure = go.Figure(
        theme.heatmap(
            np.cos(angles),
            list(range(pairs)),
            list(range(positions)),
            "cosine of the angle",
            (-1.0, 1.0),
            colorscale=theme.DIVERGING,
            customdata=degrees.round(2),
            hovertemplate="position %{y}, pair %{x}<br>turned by %{customdata:.2f}°<br>cosine %{z:.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="pair of dimensions", showgrid=False, dtick=max(1, pairs // 12))
    figure.update_yaxes(title="position", autorange="reversed", showgrid=False, nticks=10)
    return theme.finish(figure, title, 420)


def distance_curve(
    offsets: np.ndarray, scores: np.ndarray, offset: int, title: str, window: int | None = None
) -> go.Figure:
    """Scores [offset] by how many positions the key stands after the query (negative: before it).

    The text's own `offset` is marked; a block's `window` is drawn as its borders, if it lies within the offsets.
    """
    figure = go.Figure()
    figure.add_scatter(
        x=offsets,
        y=np.asarray(scores, np.float32),
        mode="lines",
        name="score at this distance",
        line={"color": theme.BLUE, "width": 2},
        hovertemplate="key at %{x:+d} from the query<br>score %{y:.3f}<extra></extra>",
    )
    figure.add_scatter(
        x=[offset],
        y=[float(scores[list(offsets).index(offset)])],
        mode="markers",
        name="in this text",
        marker={"symbol": "diamond", "size": 12, "color": theme.ORANGE},
        hovertemplate="in this text: key at %{x:+d} from the query<br>score %{y:.3f}<extra></extra>",
    )
    if window is not None and window < max(abs(offsets)):
        for side in (-1, 1):
            figure.add_vline(x=side * (window + 0.5), line={"color": theme.GREY, "width": 2, "dash": "dash"})
    theme.legend_below(figure, shown=True)
    figure.update_xaxes(title="position of the key, counted from the query", zeroline=True)
    figure.update_yaxes(title="score", zeroline=False)
    return theme.finish(figure, title, 420)
