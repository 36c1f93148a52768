"""Bars: a model's parameters, the norms of a token's parts, the values of one vector, the drops of a score."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.matrices import NUMBERED

_PART_COLOURS = {
    "word": theme.GREEN,  # as in the drawing of the model to one scale, and so are attention and feed-forward
    "position": theme.SKY,
    "segment": theme.VERMILION,
    "projection": theme.OLIVE,
    "attention": theme.BLUE,
    "feed-forward": theme.ORANGE,
    "layer norm": theme.GREY,
    "relative positions": theme.SKY,
    "pooler": theme.PURPLE,
    "embeddings": theme.GREEN,
    "norms": theme.GREY,
    "before the block": theme.GREY,
    "added by attention": theme.BLUE,
    "added by feed-forward": theme.ORANGE,
    "attention step": theme.BLUE,
    "feed-forward step": theme.ORANGE,
    "other tokens": theme.BLUE,
    "hidden token": theme.GREY,
}


LEAST_NAMED = 0.002  # of all parameters: a part with fewer has no bar that can be seen


def parameter_bars(
    groups: Sequence[str],
    parts: Sequence[str],
    counts: Sequence[int],
    title: str,
    uses: Mapping[str, int] | None = None,
) -> go.Figure:
    """Parameters by group (one bar each, from top to bottom) and part (colours).

    `groups`, `parts` and `counts` are aligned: one row for each part of a group. Of groups whose parameters are used several
    times, by their number of `uses`, hatched bars show the further uses: what as many groups of their own would add.
    """
    order = list(dict.fromkeys(groups))
    total = sum(counts)
    figure = go.Figure()
    for part in dict.fromkeys(parts):
        rows = [i for i, name in enumerate(parts) if name == part]
        figure.add_bar(
            y=[groups[i] for i in rows],
            x=[counts[i] for i in rows],
            name=part,
            orientation="h",
            marker_color=_PART_COLOURS.get(part, theme.OLIVE),
            showlegend=sum(counts[i] for i in rows) > LEAST_NAMED * total,
            customdata=[100 * counts[i] / total for i in rows],
            hovertemplate=f"%{{y}}, {part}<br>%{{x:,}} parameters (%{{customdata:.1f}} %)<extra></extra>",
        )
    again = {name: number - 1 for name, number in (uses or {}).items() if number > 1}
    if again:
        figure.add_bar(
            y=list(again),
            x=[
                number * sum(count for group, count in zip(groups, counts, strict=True) if group == name)
                for name, number in again.items()
            ],
            name="the same again (not stored)",
            orientation="h",
            marker={
                "color": "rgba(133,139,149,0.15)",
                "pattern": {"shape": "/", "fgcolor": theme.GREY, "size": 8, "solidity": 0.2},
                "line": {"color": theme.GREY, "width": 1},
            },
            customdata=list(again.values()),
            hovertemplate="%{y}: used %{customdata} times more<br>own blocks would add %{x:,} parameters<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.25)
    theme.legend_below(figure)
    figure.update_yaxes(title="part of the model", categoryorder="array", categoryarray=order[::-1], showgrid=False)
    figure.update_xaxes(title="parameters", tickformat="~s")
    # The legend of a phone has a line for each part: few bars need room too.
    return theme.finish(figure, title, max(330, 170 + 26 * len(order)) + (90 if again else 0))


def models_by_part(models: Sequence[str], parts: Sequence[Mapping[str, int]], title: str) -> go.Figure:
    """The parameters of some models, one bar each from top to bottom, by part (colours); `parts` [model] are counts."""
    names = [theme.plain(model, 34) for model in models]  # may be equal: the rows are numbers
    figure = go.Figure()
    for part in dict.fromkeys(name for counts in parts for name in counts):
        rows = [row for row, counts in enumerate(parts) if counts.get(part)]
        figure.add_bar(
            y=rows,
            x=[parts[row][part] for row in rows],
            name=part,
            orientation="h",
            marker_color=_PART_COLOURS.get(part, theme.OLIVE),
            customdata=[(theme.plain(models[row]), 100 * parts[row][part] / sum(parts[row].values())) for row in rows],
            hovertemplate=f"%{{customdata[0]}}, {part}<br>%{{x:,}} parameters (%{{customdata[1]:.1f}} % of the model)"
            "<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.3)
    theme.legend_below(figure, shown=True)
    figure.update_yaxes(
        tickmode="array", tickvals=list(range(len(names))), ticktext=names, autorange="reversed", showgrid=False
    )
    figure.update_xaxes(title="parameters", tickformat="~s")
    return theme.finish(figure, title, 180 + 44 * len(models))


MANY_TOKENS = 64


_ABOVE = {"font": {"color": theme.BLUE}}  # where the name of a chosen bar stands
_WITHIN = {"yshift": -24, "yanchor": "top", "textangle": -90, "font": {"color": "#FFFFFF"}}  # upright, below its number


def part_norm_bars(
    names: Sequence[str],
    tokens: Sequence[str],
    values: np.ndarray,
    title: str,
    quantity: str = "length of the vector",
    logarithmic: bool = False,
    chosen: tuple[str, str] | None = None,
    decimals: int | None = None,
    unit: str = "",
    mark: tuple[float, str] | None = None,
) -> go.Figure:
    """Values [part, token] (by default norms) as bars, one group per token; as lines for more than 64 tokens.

    `chosen` has the part that stands for the chosen token, and what is written at its bars: all others are grey, and no
    legend is needed. `decimals`: few bars, one for each token, have their numbers, with a `unit`. `mark` is a value with a
    dashed line across the figure, and the name of this line.

    Positions keep equal tokens apart; a part without a value for a token has NaN. On a logarithmic axis the values are
    points, because it has no zero from which a bar could begin.
    """
    labels = [f"{position} {theme.plain(token, 16)}" for position, token in enumerate(tokens)]
    colours = {**_PART_COLOURS, "position": theme.PURPLE, "task": theme.VERMILION, "sum": theme.BLUE}
    figure = go.Figure()
    is_alone = np.isfinite(values).sum(axis=0).max() <= 1  # each token has a bar of one part only
    numbered = None if len(tokens) > NUMBERED or not is_alone else decimals
    for name, row in zip(names, values, strict=True):
        shared = {
            "x": labels,
            "y": np.asarray(row, np.float32),
            "name": name,
            "hovertemplate": f"%{{x}}<br>{name}: %{{y:.3f}}<extra></extra>",
        }
        # The number of a high chosen bar, and of one that ends just below a line, stands in it: above, the line would cross it.
        most = max(mark[0] if mark else 0.0, float(np.nanmax(values, initial=0)))
        is_chosen = chosen is not None and name == chosen[0]
        is_within = (row >= 0.25 * most) & (
            is_chosen | (mark is not None and (mark[0] - 0.1 * most < row) & (row < mark[0]))
        )
        colour = colours.get(name, theme.PURPLE)
        if chosen is not None:
            colour = theme.BLUE if is_chosen else theme.GREY
            for place in np.flatnonzero(np.isfinite(row)) if is_chosen else ():
                written = {
                    "text": chosen[1],
                    "showarrow": False,
                    **(
                        _WITHIN
                        if numbered is not None and is_within[place]
                        else _ABOVE | {"yshift": 12 if numbered is None else 36}
                    ),
                }
                figure.add_annotation(x=labels[place], y=float(row[place]), **written)
        if len(tokens) > MANY_TOKENS:  # bars would be thinner than a pixel
            figure.add_scatter(**shared, mode="lines", line={"color": colour, "width": 1.5})
        elif logarithmic:
            figure.add_scatter(**shared, mode="markers", marker={"color": colour, "size": 11})
        else:
            bar = figure.add_bar(**shared, marker_color=colour).data[-1]
            if numbered is not None:
                text = [
                    f"{theme.number(value, numbered)}{unit}" if np.isfinite(value) else "" for value in row.tolist()
                ]
                places = ["inside" if within else "outside" for within in is_within]
                bar.update(text=text, textposition=places, insidetextanchor="end", textangle=0, cliponaxis=False)
                bar.insidetextfont.color = "#FFFFFF"
    if mark is not None:
        figure.add_hline(y=mark[0], line={"color": theme.GREY, "width": 1.5, "dash": "dash"})
        at = {"x": 0, "xref": "paper", "xanchor": "left", "y": mark[0], "yanchor": "bottom"}
        figure.add_annotation(**at, text=theme.plain(mark[1]), showarrow=False)
        figure.update_yaxes(range=[0, 1.16 * max(mark[0], float(np.nanmax(values, initial=0)))])
    figure.update_layout(barmode="overlay" if is_alone else "group")
    theme.legend_below(figure, shown=chosen is None)
    figure.update_yaxes(title=quantity, **(_whole_decades(values) if logarithmic else {}))
    figure.update_xaxes(title="token", autotickangles=(0, -40, -90), nticks=40)
    return theme.finish(figure, title, 430)


def _whole_decades(values: np.ndarray) -> dict[str, Any]:
    """A logarithmic axis with a line at each power of ten, from the one below all values to the one above."""
    known = values[np.isfinite(values) & (values > 0)]
    axis: dict[str, Any] = {"type": "log", "dtick": 1}
    if known.size:
        low, high = math.floor(math.log10(known.min())), math.ceil(math.log10(known.max()))
        room = 0.06  # for the points of a power of ten itself
        axis["range"] = [low - room, max(high, low + 1) + room]
    return axis


def vector_bars(values: np.ndarray, title: str) -> go.Figure:
    """The values of one vector [dim], one bar per dimension; the three largest in absolute value are labelled."""
    figure = go.Figure(
        go.Bar(
            x=np.arange(len(values)),
            y=np.asarray(values, np.float32),
            marker_color=np.where(values >= 0, theme.BLUE, theme.ORANGE),
            marker_line_width=0,
            hovertemplate="dimension %{x}: %{y:.4f}<extra></extra>",
            showlegend=False,
        )
    )
    for dimension in np.argsort(-np.abs(values))[:3]:
        figure.add_annotation(
            x=int(dimension),
            y=float(values[dimension]),
            text=f"dim {dimension}",
            showarrow=False,
            yshift=10 if values[dimension] >= 0 else -10,
        )
    figure.update_layout(bargap=0)
    figure.update_xaxes(title="dimension", showgrid=False)
    figure.update_yaxes(title="value")
    return theme.finish(figure, title, 320)


def cosine_bars(names: Sequence[str], labels: Sequence[str], values: np.ndarray, title: str) -> go.Figure:
    """Cosines [pair, part] as bars, one group per part, one colour per pair: none that a part has elsewhere comes first."""
    hues = tuple(dict.fromkeys((theme.ORANGE, theme.SKY, theme.OLIVE, theme.GREY, *theme.PALETTE)))
    figure = go.Figure(
        [
            go.Bar(
                x=list(names),
                y=np.asarray(row, np.float32),
                name=theme.plain(label),
                marker_color=hues[index % len(hues)],
                hovertemplate=f"{theme.plain(label)}<br>%{{x}}: %{{y:.4f}}<extra></extra>",
            )
            for index, (label, row) in enumerate(zip(labels, values, strict=True))
        ]
    )
    figure.update_layout(barmode="group")
    theme.legend_below(figure, shown=True)
    figure.update_yaxes(title="cosine similarity")
    figure.update_xaxes(title="part of layer 0")
    return theme.finish(figure, title, 380)


def count_bars(edges: np.ndarray, counts: np.ndarray, title: str) -> go.Figure:
    """A histogram of lengths: counts [bin] between edges [bin + 1]; a bar stands over the whole numbers that it counts."""
    first, width = int(np.flatnonzero(counts)[0]) if counts.any() else 0, edges[1] - edges[0]
    lengths = "%{customdata[0]:.0f}" + " to %{customdata[1]:.0f}" * bool(width > 1)
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:] - 1) / 2,
            y=counts,
            width=edges[1:] - edges[:-1],
            marker={"color": theme.BLUE, "line": {"width": 0}},
            customdata=np.stack([edges[:-1], edges[1:] - 1], axis=1),
            hovertemplate=f"%{{y:,}} sentences of {lengths} tokens<extra></extra>",
        )
    )
    figure.update_xaxes(title="tokens", range=[edges[first] - width - 0.5, edges[-1] - 0.5])
    figure.update_yaxes(title="sentences")
    figure.update_layout(bargap=0.02)
    return theme.finish(figure, title, 280)


def drop_bars(words: Sequence[str], drops: np.ndarray, texts: Sequence[str], title: str) -> go.Figure:
    """How much a score falls without each word, one bar per word from top to bottom; `texts` name the word's text.

    A text is "query" or "document". A negative drop is a score that rises. Words stand in the order of the texts, which
    share one axis; blue falls, orange rises, and the three largest have their numbers.
    """
    figure = word_bars(
        words,
        drops,
        texts,
        title,
        "without the word the score … rises ← 0 → falls",
        "without “%{customdata}”<br>the score falls by %{x:.3f}",
        by_sign=True,
        blue_adds=True,
    )
    largest = set(np.argsort(-np.abs(drops))[:3].tolist())
    for trace, text in zip(figure.data, dict.fromkeys(texts), strict=True):
        rows = [row for row in range(len(words)) if texts[row] == text]
        trace.text = [theme.signed(float(drops[row]), 2) if row in largest else "" for row in rows]
        trace.update(textposition="outside", cliponaxis=False)
    low, high = min(0.0, float(drops.min())), max(0.0, float(drops.max()))
    room = 0.14 * (high - low) or 1.0  # for the numbers, also on a phone
    figure.layout.xaxis.range = (low - room, high + room)
    return figure


def word_bars(
    words: Sequence[str],
    values: np.ndarray,
    texts: Sequence[str],
    title: str,
    quantity: str,
    hover: str = "",
    rests: Collection[int] = (),
    by_sign: bool = False,
    blue_adds: bool = False,
) -> go.Figure:
    """One value per word [word], with its sign, as bars from top to bottom; `texts` name the word's text, which has a colour.

    With `by_sign`, the colours are those of the signs, as in a diverging heatmap: for bars that stand beside one; with
    `blue_adds` blue is above zero.

    Words stand in the order of the texts, which share one axis named `quantity`. `hover` replaces what the hover says of
    a bar, as plotly's template; the word is its `customdata`. The rows `rests` sum up many words: they have a number in
    place of a bar, which would leave no room for those of single words.
    """
    figure = go.Figure()
    names = list(dict.fromkeys(texts))
    # A line above each text's words has the text's name.
    places = np.arange(len(words)) + np.array([names.index(text) + 1 for text in texts], int)
    titles = [int(places[list(texts).index(text)]) - 1 for text in names]
    hover = hover or f"“%{{customdata}}”<br>{theme.plain(quantity)} %{{x:.4f}}"
    for number, text in enumerate(names):
        rows = [row for row in range(len(words)) if texts[row] == text and row not in rests]
        figure.add_bar(
            x=np.asarray(values[rows], np.float32),
            y=places[rows],
            orientation="h",
            name=theme.plain(text),
            marker_color=np.where((values[rows] < 0) != blue_adds, theme.BLUE, theme.ORANGE)
            if by_sign
            else theme.TEXT_COLOURS.get(text, theme.PALETTE[number]),
            customdata=[theme.plain(words[row]) for row in rows],
            hovertemplate=f"{theme.plain(text)}: {hover}<extra></extra>",
        )
    for row in rests:
        figure.add_annotation(
            text=theme.signed(float(values[row])), x=0, y=int(places[row]), xanchor="left", showarrow=False
        )
    lines = len(words) + len(names)
    figure.update_yaxes(
        tickvals=[*titles, *places.tolist()],
        ticktext=[*(f"<b>{theme.plain(text)}</b>" for text in names), *(theme.plain(word, 16) for word in words)],
        range=[lines - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(title=theme.plain(quantity), zeroline=True, exponentformat="none")
    figure.update_layout(showlegend=False)
    return theme.finish(figure, title, 120 + max(min(430, 20 * max(8, lines)), 14 * lines))
