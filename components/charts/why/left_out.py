"""Bars of words in the order of two texts: how far a similarity falls without each word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

NUMBERED = 0.2  # of the longest bar: shorter ones have no number, so that a phone has room for those that count
_HEIGHT = 360  # pixels


def falls(
    words: Sequence[Sequence[str]],
    values: Sequence[np.ndarray],
    texts: Sequence[str],
    title: str,
    most: tuple[int, int] | None = None,
) -> go.Figure:
    """One bar per word, beside each other: `words` and `values` [word] of each text, and the names of the `texts`.

    Blue is a fall, orange a rise, which hangs down. The word `most` (text, word) has a full colour, the others are fainter.
    """
    figure = go.Figure()
    longest = max((float(np.abs(own).max()) for own in values if len(own)), default=0.0)
    start, ticks, names = 0, [], []
    for text, (own, falls_of) in enumerate(zip(words, values, strict=True)):
        places = np.arange(start, start + len(own))
        is_most = [most == (text, word) for word in range(len(own))]
        figure.add_bar(
            x=places,
            y=np.asarray(falls_of, np.float32),
            name=theme.plain(texts[text]),
            marker={
                "color": np.where(np.asarray(falls_of) < 0, theme.ORANGE, theme.BLUE),
                "opacity": np.where(is_most, 1.0, 0.55),
            },
            text=[theme.number(float(value), 2) if abs(value) > NUMBERED * longest else "" for value in falls_of],
            textposition="outside",
            textangle=0,
            constraintext="none",
            cliponaxis=False,
            customdata=[theme.plain(word) for word in own],
            hovertemplate="without “%{customdata}” the cosine falls by %{y:.4f}<extra></extra>",
        )
        if len(own):
            figure.add_annotation(
                x=start - 0.5,
                y=1,
                yref="paper",
                yanchor="bottom",
                xanchor="left",
                text=f"<b>{theme.plain(texts[text])}</b>",
                showarrow=False,
            )
        ticks += places.tolist()
        names += [
            f"<b>{theme.plain(word, 16)}</b>" if chosen else theme.plain(word, 16)
            for word, chosen in zip(own, is_most, strict=True)
        ]
        start += len(own) + 1  # a gap between the texts
    low, high = (float(end) for end in (np.min(np.concatenate(values)), np.max(np.concatenate(values))))
    room = 0.14 * max(high - low, max(high, 0.0), 0.02)
    figure.update_xaxes(tickvals=ticks, ticktext=names, showgrid=False, zeroline=False, range=[-0.7, start - 1.3])
    figure.update_xaxes(autotickangles=(0, -90))  # upright, where a page is too narrow, as in the other figures
    figure.update_yaxes(title="fall of the cosine", range=[min(low, 0.0) - room, max(high, 0.0) + room], zeroline=True)
    figure.update_layout(showlegend=False, bargap=0.25)
    theme.finish(figure, title, _HEIGHT)
    if low < 0:
        theme.name_colours(figure, {theme.BLUE: "without it the cosine falls", theme.ORANGE: "it rises"})
    return figure.update_layout(margin={"t": figure.layout.margin.t + 22})
