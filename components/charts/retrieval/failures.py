"""A failed search: what each query word adds to two cosines, and how often texts are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

RIGHT, RIVAL = "right text", "rival"
_ROW = 25  # pixels of a word


def word_dots(
    words: Sequence[str],
    right: np.ndarray,
    rival: np.ndarray,
    title: str,
    has_rest: bool = False,
    right_name: str = RIGHT,
) -> go.Figure:
    """What each query word adds to its cosine with the right text and with the rival, both [word], and the difference.

    One row for each word, in the order given: a dot for each of the two on one line from one to the other, in the colour of the
    text for which the word speaks, and at the end of the row by how much more it adds to the rival. Above stand the two names
    with their sums. With `has_rest`, the last row sums up many words: it has numbers in place of dots, which would leave no
    room for those of single words. `right_name` replaces the name of the right text.
    """
    figure, places, difference = go.Figure(), np.arange(len(words)), np.asarray(rival - right, np.float64)
    single = slice(0, len(words) - 1 if has_rest else len(words))
    towards_rival = difference > 0
    for is_towards, colour in ((True, theme.ORANGE), (False, theme.BLUE)):
        rows = np.flatnonzero(towards_rival[single] == is_towards).tolist()
        figure.add_scatter(
            x=[end for row in rows for end in (float(right[row]), float(rival[row]), None)],
            y=[end for row in rows for end in (row, row, None)],
            mode="lines",
            line={"color": colour, "width": 3},
            opacity=0.45,
            hoverinfo="skip",
        )
    for name, values, colour in ((right_name, right, theme.BLUE), (RIVAL, rival, theme.ORANGE)):
        numbers = [theme.number(value) for value in values]
        figure.add_scatter(
            x=np.asarray(values[single], np.float32),
            y=places[single],
            name=name,
            mode="markers",
            marker={"color": colour, "size": 11},
            customdata=list(zip([theme.plain(word) for word in words], numbers, strict=True))[single],
            hovertemplate=f"“%{{customdata[0]}}”<br>{name}: %{{customdata[1]}}<extra></extra>",
        )
    sums = [
        f'<span style="color:{colour}">●</span> {name[:1].upper()}{name[1:]} <b>{theme.number(float(np.sum(values)))}</b>'
        for name, values, colour in ((right_name, right, theme.BLUE), (RIVAL, rival, theme.ORANGE))
    ]
    above = {"yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False, "xref": "paper"}
    total = f"rival more by<br><b>{theme.signed(float(difference.sum()))}</b>"
    notes = [
        {**above, "text": "<br>".join(sums), "x": 0, "xanchor": "left", "align": "left"},
        {**above, "text": total, "x": 1, "xanchor": "right", "align": "right"},
    ]
    for row, value in enumerate(difference.tolist()):
        beside = {"yref": "y", "y": row, "yanchor": "middle", "showarrow": False}
        notes.append({**beside, "text": theme.signed(value), "xref": "paper", "x": 1, "xanchor": "right"})
        if has_rest and row == len(words) - 1:
            both = f"{theme.number(right[row])} and {theme.number(rival[row])}"
            notes.append({**beside, "text": both, "xref": "x", "x": 0, "xanchor": "left"})
    theme.annotate(figure, notes)
    low, high = (float(end(0.0, *np.ravel([right[single], rival[single]]))) for end in (min, max))
    ticks, room = _ticks(low, high), 0.05 * (high - low or 1.0)
    axis = figure.layout.xaxis
    axis.domain, axis.range, axis.zeroline = (0, 0.78), [low - room, high + room if high > low else 1.0], True
    axis.tickvals, axis.ticktext = ticks, [f"{tick:g}".replace("-", "−") for tick in ticks]
    axis = figure.layout.yaxis
    axis.showgrid, axis.zeroline, axis.range = False, False, [len(words) - 0.4, -0.6]
    axis.tickvals, axis.ticktext = places, [theme.plain(word, 14) for word in words]
    figure.update_layout(showlegend=False, hovermode="closest")
    theme.finish(figure, title, 116 + _ROW * max(4, len(words)))
    return figure.update_layout(margin_t=80, title={"yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 8}})


def _ticks(low: float, high: float) -> list[float]:
    """Zero and one round number towards each end that is far enough from it; two numbers fit beside each other on a phone."""
    ticks = [0.0]
    for end in (low, high):
        if abs(end) > 0.3 * max(-low, high, 1e-9):
            size = 10.0 ** np.floor(np.log10(abs(end)))
            step = max((factor * size for factor in (0.5, 1, 2, 5) if factor * size <= 0.8 * abs(end)), default=0.0)
            ticks.append(float(np.copysign(step, end)))
    return sorted(set(ticks))


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
        customdata=np.stack([np.ceil(edges[:-1]), np.ceil(edges[1:]) - 1], axis=1),
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
        hovertemplate=f"mean: {theme.number(mean, 2)} queries<extra></extra>",
    )
    figure.update_xaxes(title="queries that find the text")
    figure.update_yaxes(title="texts")
    figure.update_layout(bargap=0)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 320)
