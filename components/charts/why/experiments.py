"""Maps of experiments: one cell for each activation that was replaced, with its effect in colour and in numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.cells import frame, make_clickable, number_readably

MOST_NUMBERED = 16  # columns: with more, the numbers would run into each other
MOST_LETTERS = 64  # of all columns' labels, if each were as long as the longest: with more they stand upright
_CELL = 35  # pixels: height of a row
_HALF = 0.5  # of a cell, in the axes' units


def effect_map(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    *,
    row_title: str,
    column_title: str,
    hints: Sequence[Sequence[str]],
    limit: float,
    as_percent: bool,
    digits: int = 2,
    blue_adds: bool = False,
    dark: bool = False,
    chosen: Collection[tuple[int, int]] = (),
    marked_columns: Collection[int] = (),
) -> go.Figure:
    """Effects [row, column] as coloured cells, row 0 at the top; NaN stays empty.

    Colours reach from -`limit` to `limit`, near that of a light or `dark` page in the middle, orange above it or with
    `blue_adds` blue. The numbers are per
    cent (without the sign), or have so many `digits`. `hints` [row][column] are shown where a person points. The cells `chosen`
    get a frame, and the labels of `marked_columns` are bold; a label may have lines. Cells can be clicked.
    """
    n_rows, n_columns = values.shape
    cells = [(row, column) for row in range(n_rows) for column in range(n_columns) if np.isfinite(values[row, column])]
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=list(range(n_columns)),
            y=list(range(n_rows)),
            zmin=-limit,
            zmax=limit,
            colorscale=theme.diverging(blue_adds, dark),
            showscale=False,
            text=[[_number(value, as_percent, digits) for value in row] for row in values],
            texttemplate="%{text}" if n_columns <= MOST_NUMBERED else None,
            hoverinfo="skip",
            xgap=2,
            ygap=2,
        )
    )
    make_clickable(
        figure,
        {
            (row, column): "<br>".join(theme.plain(line, 90) for line in hints[row][column].splitlines())
            for row, column in cells
        },
    )
    number_readably(figure)
    for row, column in chosen:
        frame(figure, row, column)
    lines = [name.split("\n") for name in columns]
    labels = ["<br>".join(theme.plain(line, 16) for line in own) for own in lines]
    is_level = n_columns * max((len(own[0]) for own in lines), default=0) <= MOST_LETTERS
    figure.update_xaxes(
        title=column_title,
        tickvals=list(range(n_columns)),
        ticktext=[f"<b>{name}</b>" if column in marked_columns else name for column, name in enumerate(labels)],
        tickangle=None if is_level else -90,
        autotickangles=[0, -90],  # upright too where the page is too narrow
        range=[-_HALF, n_columns - _HALF],
    )
    figure.update_yaxes(
        title=row_title, tickvals=list(range(n_rows)), ticktext=list(rows), range=[n_rows - _HALF, -_HALF]
    )
    figure.update_xaxes(showgrid=False, zeroline=False, fixedrange=True)
    figure.update_yaxes(showgrid=False, zeroline=False, fixedrange=True)
    return theme.finish(figure, title, 130 + _CELL * max(5, n_rows))


def _number(value: float, as_percent: bool, digits: int) -> str:
    if not np.isfinite(value):
        return ""
    text = theme.number(100 * value, 0) if as_percent else theme.signed(value, digits)
    return text if text.strip("0.") else "0"  # zero stands out in a cell
