"""A failed search: what each query word adds to two cosines, and how often texts are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

RIGHT, RIVAL, DIFFERENCE = "right text", "rival", "rival minus right text"
_COLOURS = {RIGHT: theme.BLUE, RIVAL: theme.ORANGE, DIFFERENCE: theme.PURPLE}
_ACROSS = 24  # words: more bars beside each other would be too thin


def word_bars(words: Sequence[str], right: np.ndarray, rival: np.ndarray, title: str) -> go.Figure:
    """What each query word adds to its cosine with the right text and with the rival, both [word], and the difference.

    Words stand in the order of the query, from left to right, or from top to bottom where there are many.
    """
    places, is_across = np.arange(len(words)), len(words) <= _ACROSS
    labels = [theme.plain(word, 16) for word in words]
    figure = go.Figure()
    for name, values in ((RIGHT, right), (RIVAL, rival), (DIFFERENCE, rival - right)):
        numbers = np.asarray(values, np.float32)
        value = "%{y:.4f}" if is_across else "%{x:.4f}"
        figure.add_bar(
            x=places if is_across else numbers,
            y=numbers if is_across else places,
            orientation="v" if is_across else "h",
            name=name,
            marker_color=_COLOURS[name],
            customdata=labels,
            hovertemplate=f"“%{{customdata}}”<br>{name}: {value}<extra></extra>",
        )
    ticks = {"tickvals": places, "ticktext": labels, "showgrid": False, "zeroline": False}
    values_axis = {"title": "part of the cosine", "zeroline": True}
    if is_across:
        figure.update_xaxes(**ticks).update_yaxes(**values_axis)
    else:
        figure.update_yaxes(range=[len(words) - 0.4, -0.6], **ticks).update_xaxes(**values_axis)
    figure.update_layout(barmode="group", bargap=0.25)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 340 if is_across else 160 + 26 * len(words))


def occurrence_histogram(counts: np.ndarray, marked: Mapping[str, int], mean: float, title: str) -> go.Figure:
    """How many texts stand among the first hits of how many queries: counts [text]; some texts are `marked` by their count.

    Only the histogram is sent. One bar a count up to 60, else 60 equal bins.
    """
    most = int(counts.max(initial=0))
    edges = np.arange(most + 2) - 0.5 if most < 60 else np.linspace(-0.5, most + 0.5, 61)
    texts, edges = np.histogram(counts, bins=edges)
    figure = go.Figure()
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=texts,
        width=edges[1:] - edges[:-1],
        name="all texts",
        marker={"color": theme.GREY, "line": {"width": 0}},
        customdata=np.stack([np.ceil(edges[:-1]), np.floor(edges[1:])], axis=1),
        hovertemplate="%{y:,} texts: found by %{customdata[0]:,} to %{customdata[1]:,} queries<extra></extra>"
        if most >= 60
        else "%{y:,} texts: found by %{x:,} queries<extra></extra>",
    )
    top = float(texts.max())
    colours = (theme.BLUE, theme.ORANGE)
    for number, (name, count) in enumerate(marked.items()):
        figure.add_scatter(
            x=[count, count],
            y=[0, top],
            mode="lines",
            name=f"{name} ({count:,})",
            line={"color": colours[number % 2], "width": 3, "dash": ("solid", "dash")[number % 2]},
            hovertemplate=f"{name}: {count:,} queries<extra></extra>",
        )
    figure.add_scatter(
        x=[mean, mean],
        y=[0, top],
        mode="lines",
        name=f"mean ({mean:.1f})",
        line={"color": theme.GREEN, "width": 2, "dash": "dot"},
        hovertemplate=f"mean: {mean:.2f} queries<extra></extra>",
    )
    figure.update_xaxes(title="queries that find the text")
    figure.update_yaxes(title="texts")
    figure.update_layout(bargap=0)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 320)
