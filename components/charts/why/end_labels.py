"""Names of curves at their right ends, in place of a legend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import curves, theme

LINE = 17  # pixels between two names
LETTER = 7.4  # pixels of a letter, about
STROKES = {"dash": "╍╍", "dot": "┅┅", "dashdot": "━╍"}  # how the lines of a legend look, by their dash
BELOW = 60  # pixels of a figure's height: the axis with its title


def label_ends(figure: go.Figure, names: Sequence[str] = (), within: Sequence[np.ndarray] = ()) -> go.Figure:
    """Write the name of each curve of a finished figure beside its last point, with a thin line from there.

    `names` replace those of the legend; `within` are arrays of further values that the y axis has to hold. A curve without a
    number has no name. The figure needs a height, and its curves one x axis that ends with them.
    """
    ends, letters = [], 0
    for number, trace in enumerate(figure.data):
        known = np.flatnonzero(np.isfinite(np.asarray(trace.y, float)))
        if len(known):
            name = theme.plain(names[number]) if names else str(trace.name)
            letters = max(letters, len(name))
            stroke = f'<span style="color:{trace.line.color}">{STROKES.get(trace.line.dash, "━━")}</span>'
            ends.append((float(trace.x[known[-1]]), float(trace.y[known[-1]]), f"{stroke} {name}", trace.line.color))
    if not ends:
        return figure
    values = np.concatenate([*(np.asarray(trace.y, float) for trace in figure.data), *within])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.06 * (high - low) or 0.05
    figure.update_yaxes(range=[low - room, high + room])  # so that the places of the names are known
    pixels = max(80.0, float(figure.layout.height or 400) - float(figure.layout.margin.t or 0) - BELOW)
    places = [(y - low + room) / (high - low + 2 * room) * pixels for _, y, _, _ in ends]
    labels = []
    for (x, y, text, colour), own, place in zip(ends, places, curves.spread(places, LINE), strict=True):
        labels.append(curves.end_label(x, y, text, own - place, colour))  # with a stroke: curves may end on one place
    theme.annotate(figure, labels)
    figure.update_annotations(arrowwidth=1, font=None)
    left, right = min(float(np.min(trace.x)) for trace in figure.data), max(x for x, _, _, _ in ends)
    figure.update_xaxes(range=[left - 0.02 * (right - left), right + 0.02 * (right - left)])
    figure.layout.showlegend = False
    figure.layout.margin.r = round(curves.TO_LABEL + 34 + LETTER * letters)
    return figure
