"""Names of curves at their right ends, in place of a legend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import curves, theme

LINE = 17  # pixels between two names
LETTER = 7.4  # pixels of a letter, about


def label_ends(figure: go.Figure, names: Sequence[str] = ()) -> go.Figure:
    """Write the name of each curve of a finished figure beside its last point; `names` replace those of the legend.

    A curve without a number has no name. The figure needs a height, and its curves one x axis that ends with them.
    """
    ends, texts, letters = [], [], 0
    for number, trace in enumerate(figure.data):
        known = np.flatnonzero(np.isfinite(np.asarray(trace.y, float)))
        if len(known):
            ends.append((float(trace.x[known[-1]]), float(trace.y[known[-1]])))
            name = theme.plain(names[number]) if names else str(trace.name)
            letters = max(letters, len(name))
            texts.append(f'<span style="color:{trace.line.color}">━</span> {name}')  # curves may end on one place
    if not ends:
        return figure
    values = np.concatenate([np.asarray(trace.y, float) for trace in figure.data])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    pixels = max(80.0, float(figure.layout.height or 400) - float(figure.layout.margin.t or 0) - 60)
    height = (high - low) * 1.12 or 0.1  # plotly leaves room above and below the curves
    for (x, _), y, text in zip(ends, curves.spread([y for _, y in ends], LINE * height / pixels), texts, strict=True):
        figure.add_annotation(x=x, y=y, text=text, xanchor="left", xshift=9, showarrow=False)
    left, right = min(float(np.min(trace.x)) for trace in figure.data), max(x for x, _ in ends)
    figure.update_xaxes(range=[left - 0.02 * (right - left), right + 0.02 * (right - left)])
    figure.layout.showlegend = False
    figure.layout.margin.r = round(40 + LETTER * letters)
    return figure
