"""A failed search: what each query word adds to two cosines, and how often texts are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from components.charts import theme

RIGHT, RIVAL = "right text", "rival"
_ROW = 25  # pixels of a word


def word_bars(
    words: Sequence[str],
    right: np.ndarray,
    rival: np.ndarray,
    title: str,
    has_rest: bool = False,
    right_name: str = RIGHT,
) -> go.Figure:
    """What each query word adds to its cosine with the right text and with the rival, both [word], and the difference.

    One row for each word, in the order given, and three groups of bars, each with its name and its sum above it. The first two
    have one scale; the third has one of its own, since the differences are much smaller than the parts. There a bar to the
    right, in the rival's colour, speaks for the rival, and a bar to the left for the right text. With `has_rest`, the last row
    sums up many words: it has numbers in place of bars, which would leave no room for those of single words. `right_name`
    replaces the name of the right text.
    """
    difference_name = f"rival minus {right_name}"
    single = len(words) - 1 if has_rest else len(words)
    places, difference = np.arange(len(words)), np.asarray(rival - right, np.float64)
    towards = [theme.ORANGE if value > 0 else theme.BLUE for value in difference]
    # The first two are equally wide, so that their bars can be compared by length.
    figure = make_subplots(1, 3, shared_yaxes=True, horizontal_spacing=0.035, column_widths=[0.3, 0.3, 0.4])
    groups = (
        (right_name, right, right_name.capitalize(), theme.BLUE, theme.number),
        (RIVAL, rival, "Rival", theme.ORANGE, theme.number),
        (difference_name, difference, "Difference", towards, theme.signed),
    )
    for column, (name, values, heading, colour, written) in enumerate(groups, start=1):
        numbers = [written(value) for value in values]
        figure.add_bar(
            x=np.asarray(values[:single], np.float32),
            y=places[:single],
            orientation="h",
            name=name,
            marker_color=colour,
            customdata=list(zip([theme.plain(word) for word in words], numbers, strict=True))[:single],
            hovertemplate=f"“%{{customdata[0]}}”<br>{name}: %{{customdata[1]}}<extra></extra>",
            row=1,
            col=column,
        )
        if has_rest and name != difference_name:
            figure.add_annotation(text=numbers[-1], x=0, y=single, xanchor="left", showarrow=False, row=1, col=column)
        mark = "" if isinstance(colour, list) else f'<span style="color:{colour}">■</span> '
        figure.add_annotation(
            text=f"{heading}<br>{mark}<b>{written(float(np.sum(values)))}</b>",
            xref=f"x{column if column > 1 else ''} domain",
            yref="paper",
            x=0.5 if name == difference_name else 0,
            y=1,
            xanchor="center" if name == difference_name else "left",
            yanchor="bottom",
            align="center" if name == difference_name else "left",
            showarrow=False,
        )
    _mark_differences(figure, places, difference, single)
    low, high = (float(end(0.0, *np.ravel([right[:single], rival[:single]]))) for end in (min, max))
    for column in (1, 2):
        ticks = _ticks(low, high)
        labels = [f"{tick:g}".replace("-", "−") for tick in ticks]
        ends = [1.05 * low, 1.05 * high if high > low else 1.0]
        figure.update_xaxes(range=ends, tickvals=ticks, ticktext=labels, zeroline=True, row=1, col=column)
    figure.update_yaxes(showgrid=False, zeroline=False, range=[len(words) - 0.4, -0.6])
    figure.update_yaxes(tickvals=places, ticktext=[theme.plain(word, 14) for word in words], row=1, col=1)
    figure.update_layout(bargap=0.3, showlegend=False, hovermode="closest")
    theme.finish(figure, title, 126 + _ROW * max(4, len(words)))
    return figure.update_layout(margin_t=80, title={"yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 8}})


def _mark_differences(figure: go.Figure, places: np.ndarray, difference: np.ndarray, single: int) -> None:
    """Write each difference [word] at zero, on the side where its bar is not, so that nothing is cut on a phone.

    The first `single` words have a bar.
    """
    for is_positive, side in ((True, "left"), (False, "right")):
        rows = np.flatnonzero((difference > 0) == is_positive)
        figure.add_scatter(
            x=np.zeros(len(rows)),
            y=places[rows],
            mode="text",
            text=[f"\u00a0{theme.signed(difference[row])}\u00a0" for row in rows],
            textposition=f"middle {side}",
            hoverinfo="skip",
            cliponaxis=False,
            row=1,
            col=3,
        )
    most = 1.1 * float(np.abs(difference[:single]).max(initial=0.0)) or 1.0
    figure.update_xaxes(range=[-most, most], showticklabels=False, showgrid=False, zeroline=True, row=1, col=3)


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
        hovertemplate=f"mean: {theme.number(mean, 2)} queries<extra></extra>",
    )
    figure.update_xaxes(title="queries that find the text")
    figure.update_yaxes(title="texts")
    figure.update_layout(bargap=0)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, 320)
