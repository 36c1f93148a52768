"""Matrices as coloured cells."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.cells import frame, make_clickable, number_readably

MOST_OF_WORD = 10  # characters of a column's word
FEW = 4  # rows of a matrix that are drawn high
DIAGONAL = "rgba(133, 139, 149, 0.25)"  # pale on a light page, dark on a dark one: no colour of the scale


def off_diagonal_limits(*matrices: np.ndarray) -> tuple[float, float]:
    """One colour scale for matrices [..., n, n]: the smallest and largest value off all their diagonals."""
    return theme.limits_of(
        np.concatenate([matrix[..., ~np.eye(matrix.shape[-1], dtype=bool)].ravel() for matrix in matrices])
    )


def similarity_heatmap(
    matrix: np.ndarray,
    labels: Sequence[str],
    title: str,
    *,
    dark: bool,
    limits: tuple[float, float] | None = None,
    show_values: bool = False,
    numbers: Sequence[int] | None = None,
    short: Sequence[str] = (),
    value: str = "cosine",
    clickable: bool = False,
    chosen: tuple[int, int] | None = None,
    colour_bar: bool = True,
) -> go.Figure:
    """A square matrix of similarities [n, n] with the same labels on both sides; NaN stays empty, the diagonal is grey.

    Rows show number and label, columns the number and, where they have one, a `short` label. Numbers (1, 2, ..., or
    `numbers`) keep equal labels apart. `limits` fixes the colour scale, `value` names the quantity: a "cosine" or a
    "percentile" (0 to 100). Without `colour_bar`, the page draws one for several figures. `dark` is the page.
    `clickable` cells can be clicked, and dragging moves the matrix; the cell `chosen` [row, column] gets a frame, and so
    does its mirror image.
    """
    names = [
        f"{number}  {theme.plain(label, 24)}"
        for number, label in zip(numbers or range(1, len(labels) + 1), labels, strict=True)
    ]
    is_percentile = value == "percentile"
    hints = {
        (row, column): f"{names[row]}<br>with itself: 1"
        if row == column
        else f"{names[row]}<br>{names[column]}<br>{value} "
        + (percentile_hint if is_percentile else theme.number)(matrix[row, column], *(() if is_percentile else (4,)))
        for row, column in np.argwhere(~np.isnan(matrix)).tolist()
    }
    itself = np.eye(len(names), dtype=bool)  # always 1: as a colour it would say something about the sentences
    figure = go.Figure(
        theme.heatmap(
            np.where(itself, np.nan, matrix),
            [name.split("  ")[0] for name in names],
            names,
            value,
            limits,
            colorscale=theme.one_hue(dark),
            text=written(np.where(itself, np.nan, matrix), value) if show_values else None,
            texttemplate="%{text}" if show_values else None,
            showscale=colour_bar,
            hoverinfo="skip",
            xgap=1,
            ygap=1,
        )
    )
    figure.add_heatmap(
        z=np.where(itself, 1.0, np.nan).astype(np.float32),
        x=figure.data[0].x,
        y=figure.data[0].y,
        colorscale=[[0, DIAGONAL], [1, DIAGONAL]],
        showscale=False,
        hoverinfo="skip",
        xgap=1,
        ygap=1,
    )
    number_readably(figure)
    if clickable:
        make_clickable(figure, hints, x=figure.data[0].x, y=names)
        if len(hints) < matrix.size:
            figure.update_layout(hoverdistance=20)  # so that an empty cell does not show its neighbour's hint
    else:
        shown = [[hints.get((row, column), "") for column in range(len(names))] for row in range(len(names))]
        for cells in figure.data[:2]:  # without what lies on them
            cells.update(
                customdata=shown, hoverinfo=None, hovertemplate="%{customdata}<extra></extra>", hoverongaps=False
            )
    if chosen is not None:
        frame(figure, *chosen)
        frame(figure, *chosen[::-1])
    # In two lines, or a few of them in four, so that the cells have room beside them on a phone.
    most_lines = 4 if len(names) <= FEW else 2
    lines = [
        "<br>".join(
            map(
                theme.plain,
                textwrap.wrap(f"{name.split('  ')[0]}  {label}", 16, max_lines=most_lines, placeholder=" …"),
            )
        )
        for name, label in zip(names, labels, strict=True)
    ]
    figure.update_yaxes(
        title="sentence", autorange="reversed", showgrid=False, tickmode="array", tickvals=names, ticktext=lines
    )
    figure.update_xaxes(title="number of the sentence", showgrid=False, type="category", tickangle=0)
    if any(short):
        columns = list(figure.data[0].x)
        lines_of = [
            f"{column}<br>{theme.plain(word, MOST_OF_WORD)}" for column, word in zip(columns, short, strict=True)
        ]
        figure.update_xaxes(title="sentence", tickmode="array", tickvals=columns, ticktext=lines_of)
    height = 72 if len(names) <= FEW else 46 if len(names) <= 2 * FEW else 34
    return theme.finish(figure, title, min(900, 150 + height * len(names)))


def percentile_cells(values: np.ndarray) -> list[list[str]]:
    """What percentiles (0 to 100) [row, column] are written as in their cells: none is rounded to 100."""
    return [
        ["" if np.isnan(value) else "> 99" if value >= 99.5 else f"{value:.0f}" for value in row]
        for row in values.tolist()
    ]


def written(values: np.ndarray, value: str, decimals: int = 2, least: float = -np.inf) -> list[list[str]]:
    """What values [row, column] are written as in their cells, with so many decimals; `value` names them.

    NaN is empty, and so is what is less than `least`.
    """
    values = np.where(values >= least, values, np.nan)
    if value == "percentile":
        return percentile_cells(values)
    return [["" if np.isnan(item) else theme.number(item, decimals) for item in row] for row in values.tolist()]


def percentile_hint(value: float) -> str:
    """What a percentile (0 to 100) is written as where a person points: none is rounded to 100."""
    return "> 99.99" if value > 99.99 else "" if np.isnan(value) else theme.number(value, 4)


def hover_of(values: np.ndarray, value: str) -> tuple[str, list[list[str]] | None]:
    """How a heatmap's cells [row, column] show their numbers where a person points: plotly's template, and its customdata.

    `value` names the quantity. Only percentiles are sent as text, because a large matrix has many cells.
    """
    if value != "percentile":
        return "%{z:.4f}", None
    return "%{customdata}", [[percentile_hint(number) for number in row] for row in values.tolist()]


FEW_ROWS, MANY_ROWS = 16, 32
EDGE = 0.1  # of a cell: room for the frame
# Pixels: the colour bar below a strip, with its name and numbers; what bold type means, in two lines below it.
_BAR_BELOW, _BOLD_HEIGHT = 66, 44


def layer_strip(
    values: np.ndarray,
    names: Sequence[str],
    title: str,
    *,
    ends: Sequence[str],
    strong: Sequence[bool],
    dark: bool,
    layer: int | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    value: str = "cosine",
    low_rows: bool = False,
    bold: str = "",
) -> go.Figure:
    """Curves as rows of coloured cells, values [row, layer 0..L], one column per layer; NaN stays empty.

    `ends` are the texts at the rows' right, `strong` are the rows in bold type. The column `layer` has a frame. Rows are
    lower with `low_rows`. `value` names the quantity, `limits` are those of its colours. `bold` says below the cells what bold
    type means, `dark` is the page.
    """
    labels = [
        f"<b>{theme.plain(name, 22)}</b>" if is_strong else theme.plain(name, 22)
        for name, is_strong in zip(names, strong, strict=True)
    ]
    rows = list(range(len(labels)))
    hover, hints = hover_of(values, value)
    plain = [theme.plain(name, 60) for name in names]
    shown = [
        [(plain[row], "" if hints is None else hints[row][column]) for column in range(values.shape[1])] for row in rows
    ]
    figure = go.Figure(
        theme.heatmap(
            values,
            list(range(values.shape[1])),
            rows,
            value,
            limits,
            colorscale=theme.one_hue(dark),
            customdata=shown,
            hovertemplate="%{customdata[0]}<br>layer %{x}: "
            + (hover if hints is None else "%{customdata[1]}")
            + "<extra></extra>",
            xgap=2,
            ygap=2,
        )
    )
    figure.data[0].colorbar.update(orientation="h", x=0, xanchor="left", y=0, yanchor="top", len=180, lenmode="pixels")
    figure.data[0].colorbar.title.side = "top"
    figure.update_yaxes(
        range=(len(rows) - 0.5 + EDGE, -0.5 - EDGE),  # as the columns' below: labels at the right would widen it
        showgrid=False,
        zeroline=False,
        tickmode="array",
        tickvals=rows,
        ticktext=labels,
    )
    last = values.shape[1] - 0.5
    figure.update_xaxes(
        title="layer (0 = before any block)",
        range=(-0.5 - EDGE / 2, last + EDGE / 2),
        dtick=1,
        showgrid=False,
        zeroline=False,
        side="top",
        tickangle=0,
    )
    beside = {"x": last, "xanchor": "left", "xshift": 6, "showarrow": False}
    texts = [f"<b>{end}</b>" if is_strong else end for end, is_strong in zip(ends, strong, strict=True)]
    theme.annotate(figure, [{**beside, "y": row, "text": text} for row, text in enumerate(texts)])
    if bold:
        figure.add_annotation(
            text=theme.wrapped(bold, 26), x=0, y=0, xref="paper", yref="paper", xanchor="left", yanchor="top",
            yshift=-_BAR_BELOW, align="left", showarrow=False,
        )  # fmt: skip
    if layer is not None:
        edges = {"x0": layer - 0.5, "x1": layer + 0.5, "y0": -0.5, "y1": len(rows) - 0.5}
        figure.add_shape(type="rect", **edges, line={"color": theme.ORANGE, "width": 2})
    height = 20 if low_rows else 28 if len(rows) <= FEW_ROWS else 26 if len(rows) <= MANY_ROWS else 20
    theme.finish(figure, title, 180 + height * len(rows))
    # The layers stand above the cells, below the title.
    further_lines = figure.layout.title.text.count("<br>")  # by which plotly moves a title up
    figure.layout.title.update(y=1, yref="container", yanchor="top", pad={"t": 8 + 20 * further_lines})
    # The name of the axis has a line of its own below a title of several lines.
    figure.layout.margin.update(r=60, t=figure.layout.margin.t + 44 + 8 * further_lines)
    figure.layout.height += 28 * further_lines
    if bold:
        figure.layout.margin.b = _BAR_BELOW + _BOLD_HEIGHT
        figure.layout.height += _BOLD_HEIGHT // 2  # the rows give the rest, so that a laptop shows all of it
    return figure


def word_scores(
    values: np.ndarray,
    words: Sequence[str],
    columns: Sequence[str],
    first: int,
    title: str,
    *,
    without_sign: Sequence[int] = (),
    dark: bool = False,
) -> go.Figure:
    """Scores -1..1 of words [word, column] as cells with their numbers, one row per word from top to bottom; blue adds.

    The columns `without_sign` say nothing about adding, and are grey.

    The first `first` words are those of text A, the others those of B; a line parts them. The labels in `words` must be
    unique.
    """
    coloured = np.array(values, np.float32)
    coloured[:, list(without_sign)] = 0
    figure = go.Figure(
        theme.heatmap(
            coloured,
            ["<br>".join(textwrap.wrap(column, 8, break_long_words=False)) for column in columns],
            [theme.plain(word, 20) for word in words],
            "score",
            (-1.0, 1.0),
            colorscale=theme.diverging(True, dark),
            text=written(values, "score"),
            texttemplate="%{text}",
            showscale=False,  # the cells have numbers
            customdata=np.array(values, np.float32),
            hovertemplate="%{y}<br>%{x}: %{customdata:.3f} of the largest<extra></extra>",
            xgap=2,
            ygap=1,
        )
    )
    number_readably(figure)
    if 0 < first < len(words):
        line = {"color": theme.GREY, "width": 3}
        figure.add_shape(type="line", x0=-0.5, x1=len(columns) - 0.5, y0=first - 0.5, y1=first - 0.5, line=line)
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category", dtick=1)
    figure.update_xaxes(showgrid=False, type="category", side="top", tickangle=0)
    theme.finish(figure, title, 130 + 23 * max(6, len(words)))
    theme.name_colours(figure, {theme.BLUE: "holds the two together", theme.ADDING[0][1]: "keeps them apart"})
    figure.update_xaxes(tickfont={"size": 11})  # so that the names stand beside each other on a phone
    # The names of the columns stand above them, below the title.
    return figure.update_layout(
        title={"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 8 + theme.KEY_HEIGHT}},
        margin={"t": 90 + theme.KEY_HEIGHT},
    )
