"""Inner dimensions of a feed-forward part: the distribution of their activations, the strongest, and closed ones by block."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

BINS = 60


def bins(activations: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """The count of each bar and the edges of the bars: from the least to the most, and one edge at `limit`.

    The bars on each side of it are equally wide, and nearly as wide as those on the other.
    """
    least, most = float(activations.min()), float(activations.max())
    if not least < limit < most:
        return np.histogram(activations, bins=BINS)
    below = min(BINS - 1, max(1, round(BINS * (limit - least) / (most - least))))
    edges = np.concatenate([np.linspace(least, limit, below + 1), np.linspace(limit, most, BINS - below + 1)[1:]])
    return np.histogram(activations, bins=edges)


def activation_histogram(activations: np.ndarray, limit: float, title: str, *, value: str) -> go.Figure:
    """How many inner dimensions have which activation [inner]; the bars up to `limit` are grey.

    `value` names the quantity. A bar across the top has the shares of both.
    """
    counts, edges = bins(activations, limit)
    centres = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure()
    figure.add_bar(
        x=centres,
        y=counts,
        width=edges[1:] - edges[:-1],
        marker={
            "color": np.where(centres < limit, theme.GREY, theme.BLUE),
            "line": {"width": np.where(counts, 1, 0), "color": np.where(centres < limit, theme.GREY, theme.BLUE)},
        },  # with a line a bar of one dimension is seen
        customdata=[[theme.number(low), theme.number(high)] for low, high in itertools.pairwise(edges)],
        hovertemplate=f"%{{y:,}} dimensions with {value} from %{{customdata[0]}} to %{{customdata[1]}}<extra></extra>",
        showlegend=False,
    )
    upto = float((activations <= limit).mean())
    for start, end, colour, side, sign in (
        (0, upto, theme.GREY, "left", "at most"),
        (upto, 1, theme.BLUE, "right", "above"),
    ):
        figure.add_shape(
            type="rect", xref="paper", yref="paper", x0=start, x1=end, y0=0.92, y1=1, fillcolor=colour, line_width=0
        )
        figure.add_annotation(
            text=f"{100 * (end - start):.0f} % {sign} {theme.number(limit, 2)}",
            x=start if side == "left" else end,
            y=0.91,
            xref="paper",
            yref="paper",
            xanchor=side,
            yanchor="top",
            showarrow=False,
        )
    figure.update_yaxes(title="inner dimensions", domain=[0, 0.76], rangemode="tozero")
    figure.update_xaxes(title=value, zeroline=True)
    figure.update_layout(bargap=0)
    return theme.finish(figure, title, 340)


def strongest_bars(
    dimensions: Sequence[int], products: np.ndarray, gates: np.ndarray, values: np.ndarray | None, title: str
) -> go.Figure:
    """Products of some inner dimensions, strongest first; the hover has the gate and the value that were multiplied.

    The arrays are [dimension], in the order of `dimensions`. Without gates `values` is None.
    """
    made_of = (
        [""] * len(dimensions)
        if values is None
        else [
            f"<br>gate {theme.number(gate)} × value {theme.number(other)}"
            for gate, other in zip(gates.tolist(), values.tolist(), strict=True)
        ]
    )
    name = "activation" if values is None else "gate × value"
    figure = go.Figure(
        go.Bar(
            x=[str(dimension) for dimension in dimensions],
            y=np.asarray(products, np.float32),
            marker_color=np.where(products < 0, theme.ORANGE, theme.BLUE),
            customdata=made_of,
            hovertemplate=f"dimension %{{x}}<br>{name} %{{y:.3f}}%{{customdata}}<extra></extra>",
            showlegend=False,
        )
    )
    figure.update_xaxes(title="inner dimension (number)", type="category", showgrid=False, tickangle=-90, dtick=1)
    figure.update_yaxes(title=name, zeroline=True)
    return theme.finish(figure, title, 340)


def closed_by_block(shares: np.ndarray, token: int, label: str, title: str, quantity: str) -> go.Figure:
    """Shares [block, token], 0..1, of inner dimensions near 0 by block: one token's, and the mean of all.

    `quantity` names the axis.
    """
    blocks = list(range(len(shares)))
    figure = go.Figure()
    for name, row, index in (
        (theme.plain(label, 26), shares[:, token], 0),
        ("mean of all tokens", shares.mean(axis=1), 1),
    ):
        figure.add_scatter(
            x=blocks,
            y=np.asarray(100 * row, np.float32),
            name=name,
            mode="lines+markers",
            line=theme.line_style(index),
            marker=theme.marker_style(index),
            hovertemplate=f"{name.replace('%{', '% {')}<br>block %{{x}}: %{{y:.1f}} %<extra></extra>",
        )
    theme.legend_below(figure, shown=True)
    figure.update_xaxes(title="block", tickmode="linear", dtick=1 if len(blocks) <= 14 else 2)
    figure.update_yaxes(title=f"{theme.plain(quantity)} (%)", range=(0, 100))
    return theme.finish(figure, title, 340)
