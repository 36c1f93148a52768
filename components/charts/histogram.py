"""The distribution of scores, with some of them marked, or of two kinds of documents."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

BINS = 60


def score_histogram(
    scores: np.ndarray, chosen: Sequence[int] | np.ndarray, title: str, *, value: str = "cosine"
) -> go.Figure:
    """A histogram of all scores [sentence]; the `chosen` ones are marked below it.

    Only the counts are sent, not the scores: a million are as fast as a hundred. The axis of the counts is logarithmic,
    because there are few hits and very many other sentences.
    """
    counts, edges = np.histogram(scores, bins=BINS) if len(scores) else (np.zeros(1), np.array([0.0, 1.0]))
    figure = go.Figure()
    _add_bins(figure, counts, edges, theme.GREY, f"with {value}", name="all sentences")
    figure.add_scatter(
        x=np.asarray(scores, np.float64)[list(chosen)],
        y=np.full(len(chosen), 0.75),
        mode="markers",
        name=f"the {len(chosen)} hits shown",
        marker={"symbol": "line-ns-open", "size": 18, "line": {"width": 2.5}, "color": theme.ORANGE},
        customdata=np.arange(1, len(chosen) + 1),
        hovertemplate=f"rank %{{customdata}}: {value} %{{x:.4f}}<extra></extra>",
    )
    figure.update_yaxes(
        title="sentences,<br>logarithmic",
        type="log",
        range=[-0.3, np.log10(max(10, counts.max())) + 0.1],
        dtick=1,
    )
    figure.update_xaxes(title=value)
    figure.update_layout(bargap=0)
    theme.legend_below(figure)
    return theme.finish(figure, title, 300)


def nearest_histogram(cosines: np.ndarray, level: float, title: str) -> go.Figure:
    """How many sentences have their nearest other one at which cosine, 0 to 1 [sentence]: those from `level` on in blue."""
    known = cosines[np.isfinite(cosines)]
    counts, edges = np.histogram(np.clip(known, 0.0, 1.0), bins=np.linspace(0.0, 1.0, 51))
    figure = go.Figure()
    colours = [theme.BLUE if end > level + 1e-9 else theme.GREY for end in edges[1:]]
    _add_bins(figure, counts, edges, colours, "with cosine", showlegend=False)
    figure.add_vline(x=level, line={"color": theme.GREY, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=level,
        y=1,
        yref="paper",
        yanchor="top",
        xanchor="right" if level > 0.5 else "left",
        text=f"from {theme.number(level, 2)} ",
        showarrow=False,
        font={"size": theme.FONT_SIZE * 0.86},
    )
    figure.update_xaxes(title="cosine", range=[0, 1.02], zeroline=False)
    figure.update_yaxes(title="sentences", rangemode="tozero")
    figure.update_layout(bargap=0)
    return theme.finish(figure, title, 240)


def two_histograms(
    scores: np.ndarray,
    relevant: np.ndarray,
    title: str,
    *,
    value: str,
    x_title: str,
    threshold: float,
    height: int = 300,
) -> go.Figure:
    """The scores [document] of relevant documents and of all others as two histograms over the same bins.

    `relevant` [document] says which is which; a line marks the threshold. `value` names the score in the hover, `x_title`
    on its axis. Only the counts are sent. Their axis is logarithmic, because few documents are relevant to a query.
    """
    is_relevant = np.asarray(relevant, bool)
    edges = np.histogram_bin_edges(np.append(scores, threshold), bins=BINS)
    figure, most = go.Figure(), 1
    for name, part, colour in (
        ("not relevant", ~is_relevant, theme.BLUE),
        ("relevant", is_relevant, theme.ORANGE),
    ):
        counts, _ = np.histogram(np.asarray(scores, np.float64)[part], bins=edges)
        most = max(most, int(counts.max()))
        figure.add_bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=counts,
            width=edges[1:] - edges[:-1],
            name=f"{name} ({int(part.sum()):,})",
            marker={"color": colour, "line": {"width": 0}},
            opacity=0.8,
            customdata=_ends(edges),
            hovertemplate=f"%{{y:,}} {name}, with {value} %{{customdata[0]}} to %{{customdata[1]}}<extra></extra>",
        )
    figure.add_vline(x=threshold, line={"color": theme.VERMILION, "width": 3, "dash": "dash"})
    figure.update_yaxes(
        title="number of documents,<br>logarithmic", type="log", range=[-0.3, np.log10(max(10, most)) + 0.1], dtick=1
    )
    figure.update_xaxes(title=theme.plain(x_title))
    figure.update_layout(bargap=0, barmode="overlay")
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, height)


def with_mark(scores: np.ndarray, mark: float, title: str, *, value: str, things: str, name: str) -> go.Figure:
    """A histogram of scores [thing] with one further score as a line; `things` says what is counted, `name` what the line is.

    Only the counts are sent.
    """
    edges = np.histogram_bin_edges(np.append(scores, mark), bins=BINS)
    counts, _ = np.histogram(scores, bins=edges)
    figure = go.Figure()
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=edges[1:] - edges[:-1],
        name=things,
        marker={"color": theme.GREY, "line": {"width": 0}},
        customdata=_ends(edges),
        hovertemplate=f"%{{y:,}} {things} with {value} %{{customdata[0]}} to %{{customdata[1]}}<extra></extra>",
    )
    figure.add_scatter(
        x=[mark, mark],
        y=[0, max(1, int(counts.max()))],
        mode="lines",
        name=name,
        line={"color": theme.BLUE, "width": 3},
        hovertemplate=f"{name}: {value} {theme.number(mark, 4)}<extra></extra>",
    )
    figure.update_yaxes(title=things, rangemode="tozero")
    figure.update_xaxes(title=value)
    figure.update_layout(bargap=0)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 340)


def _add_bins(
    figure: go.Figure, counts: np.ndarray, edges: np.ndarray, color: str | list[str], of_what: str, **options: Any
) -> None:
    """Bars without gaps: how many sentences lie between neighbouring `edges` [bin + 1]."""
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=edges[1:] - edges[:-1],
        marker={"color": color, "line": {"width": 0}},
        customdata=_ends(edges),
        hovertemplate=f"%{{y:,}} sentences {of_what} %{{customdata[0]}} to %{{customdata[1]}}<extra></extra>",
        **options,
    )


def _ends(edges: np.ndarray) -> list[list[str]]:
    """Where each bin [bin] begins and ends, as written where a person points."""
    written = [theme.number(edge) for edge in edges.tolist()]
    return [list(ends) for ends in itertools.pairwise(written)]
