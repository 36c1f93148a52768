"""Bars of pieces of the vocabulary: the weights that SPLADE gives them, and what each adds to a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

# By where a piece comes from. One text: it has the piece, or the model added it. Two texts: which of them have it.
COLOURS = {
    "in the text": theme.BLUE,
    "added by the model": theme.ORANGE,
    "in both texts": theme.BLUE,
    "added to the sentence": theme.ORANGE,
    "added to the query": theme.GREEN,
    "added to both": theme.PURPLE,
}
_HEIGHT, _FRAME = 22, 150  # of a bar, and of everything else, in pixels


def piece_bars(
    pieces: Sequence[str], values: np.ndarray, sources: Sequence[str], title: str, value: str = "weight"
) -> go.Figure:
    """One bar for each piece from top to bottom; `values` are [piece], and `sources` name keys of COLOURS.

    Raises KeyError for an unknown source.
    """
    if unknown := set(sources) - set(COLOURS):
        raise KeyError(f"unknown sources: {', '.join(sorted(unknown))}")
    figure = go.Figure()
    places = np.arange(len(pieces))
    for source in (name for name in COLOURS if name in sources):
        rows = [row for row, name in enumerate(sources) if name == source]
        figure.add_bar(
            x=np.asarray(values[rows], np.float32),
            y=places[rows],
            orientation="h",
            width=0.75,  # else each colour has bars as wide as its own rows are apart
            name=source,
            marker_color=COLOURS[source],
            customdata=[theme.plain(pieces[row]) for row in rows],
            hovertemplate=f"“%{{customdata}}”, {source}<br>{value} %{{x:.3f}}<extra></extra>",
        )
    figure.update_layout(barmode="overlay")
    figure.update_yaxes(
        tickvals=places,
        ticktext=[theme.plain(piece, 20) for piece in pieces],
        range=[len(pieces) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(title=value, rangemode="tozero")
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, _FRAME + _HEIGHT * max(4, len(pieces)))
