"""The numbers that a matrix shows in its cells."""

from __future__ import annotations

import plotly.graph_objects as go


def written(figure: go.Figure) -> list[list[tuple[str, str]]]:
    """The number and the colour of type of each cell [row][column]; the white numbers lie on the others."""
    black, *above = [trace for trace in figure.data if trace.type == "heatmap" and trace.texttemplate]
    return [
        [
            next(
                (
                    cell
                    for cell in [(text, "#000000"), *((on.text[row][column], "#FFFFFF") for on in above)]
                    if cell[0].strip()
                ),
                ("", ""),
            )
            for column, text in enumerate(texts)
        ]
        for row, texts in enumerate(black.text)
    ]


def numbers(figure: go.Figure) -> list[list[str]]:
    """The number of each cell [row][column]."""
    return [[text for text, _ in row] for row in written(figure)]
