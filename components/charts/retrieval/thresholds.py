"""What a threshold on scores does: precision over recall at every threshold, and the four numbers at one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

_ROWS = (theme.ORANGE, theme.BLUE)  # relevant, not relevant: as in the histogram of their scores
_RIGHT, _WRONG = 1.0, 0.14  # opacity of the cells
_TEXT = {False: "#1C2430", True: "#E8EDF3"}  # on a faint cell, by whether the page is dark


def threshold_curves(
    curves: Sequence[tuple[str, np.ndarray, np.ndarray]],
    chance: float,
    title: str,
    *,
    thresholds: np.ndarray | None = None,
    chosen: tuple[float, float] | None = None,
    points: tuple[str, np.ndarray, np.ndarray] | None = None,
    height: int = 420,
) -> go.Figure:
    """(name, recall [threshold], precision [threshold]) in per cent, as steps.

    The thresholds rise, so that recall falls: the area below the steps is then the average precision. The last point
    accepts nothing, and has no threshold. Where a first hit is wrong, the curve begins at the first relevant one: its height
    at recall 0 would be a line from 0 to 100. `thresholds` are those of the first curve, for the hover; `chosen` is recall and
    precision at the chosen one, a large dot; `points` are markers without a line. The dotted line is the precision by
    `chance`: the share of what is relevant.
    """
    figure = go.Figure()
    for number, (name, recall, precision) in enumerate(curves):
        shown = (
            [] if thresholds is None or number else [theme.number(value) for value in thresholds] + ["above all scores"]
        )
        is_found = np.asarray(recall) > 0
        if is_found.any() and not precision[len(recall) - 2]:  # from the first relevant hit straight to recall 0
            recall, precision = (
                np.append(side[is_found], end) for side, end in ((recall, 0.0), (precision, precision[is_found][-1]))
            )
            shown = [*np.asarray(shown, object)[np.append(is_found[:-1], False)].tolist(), shown[-1]] if shown else []
        figure.add_scatter(
            x=np.asarray(recall, np.float32),
            y=np.asarray(precision, np.float32),
            mode="lines",
            line={**theme.line_style(number), "shape": "hv"},
            name=theme.plain(name, 44),
            customdata=shown or None,
            hovertemplate=(f"{theme.plain(name)}<br>" if not shown else "threshold %{customdata}<br>")
            + "recall %{x:.1f} %, precision %{y:.1f} %<extra></extra>",
        )
    if points is not None:
        name, recall, precision = points
        figure.add_scatter(
            x=np.asarray(recall, np.float32),
            y=np.asarray(precision, np.float32),
            mode="markers",
            marker={"symbol": "diamond", "size": 9, "color": theme.line_style(0)["color"]},
            name=theme.plain(name, 44),
            hovertemplate=f"{theme.plain(name)}<br>recall %{{x:.0f}} %, precision %{{y:.1f}} %<extra></extra>",
        )
    figure.add_scatter(
        x=[0, 100],
        y=[chance, chance],
        mode="lines",
        line={"color": theme.GREY, "width": 1.5, "dash": "dot"},
        name="by chance",
        hovertemplate=f"by chance: precision {chance:.1f} %<extra></extra>",
    )
    if chosen is not None:
        figure.add_scatter(
            x=[chosen[0]],
            y=[chosen[1]],
            mode="markers",
            marker={"size": 14, "color": theme.VERMILION, "symbol": "circle"},
            name="this threshold",
            cliponaxis=False,
            hovertemplate="this threshold: recall %{x:.1f} %, precision %{y:.1f} %<extra></extra>",
        )
    figure.update_xaxes(title="recall (%)", range=[-2, 103], zeroline=False)
    figure.update_yaxes(title="precision (%)", range=[-2, 105], zeroline=False)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, height)


def confusion_matrix(
    found: int,
    missed: int,
    wrongly_accepted: int,
    rejected: int,
    title: str,
    *,
    threshold: str,
    dark: bool = False,
    height: int = 250,
) -> go.Figure:
    """Four cells with their counts: documents by whether they are relevant (rows) and accepted (columns).

    In the rows' order: true positives and false negatives; false positives and true negatives. Right decisions are drawn
    stronger than wrong ones, whose text has the colour of the page's. `threshold` is written as a person reads it.
    """
    cells = (
        (0, 0, found, "found", "true positives: relevant, and accepted"),
        (0, 1, missed, "missed", "false negatives: relevant, but rejected"),
        (1, 0, wrongly_accepted, "accepted wrongly", "false positives: not relevant, but accepted"),
        (1, 1, rejected, "rejected rightly", "true negatives: not relevant, and rejected"),
    )
    figure = go.Figure()
    for row, column, _, _, _ in cells:
        figure.add_shape(
            type="rect",
            x0=column - 0.48,
            x1=column + 0.48,
            y0=row - 0.47,
            y1=row + 0.47,
            line={"width": 0},
            fillcolor=_ROWS[row],
            opacity=_RIGHT if row == column else _WRONG,
            layer="below",
        )
    figure.add_scatter(
        x=[column for _, column, *_ in cells],
        y=[row for row, *_ in cells],
        mode="text",
        text=[f"<b>{count:,}</b><br>{name}" for _, _, count, name, _ in cells],
        textfont={"color": ["white" if row == column else _TEXT[dark] for row, column, *_ in cells], "size": 15},
        customdata=[f"{count:,} {meaning}" for _, _, count, _, meaning in cells],
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(
        tickvals=[0, 1],
        ticktext=[
            f"accepted<br>({theme.plain(threshold)} or higher)",
            f"rejected<br>(below {theme.plain(threshold)})",
        ],
        range=[-0.5, 1.5],
        tickangle=0,
    )
    figure.update_yaxes(tickvals=[0, 1], ticktext=["relevant", "not<br>relevant"], range=[1.5, -0.5])
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(showgrid=False, zeroline=False, fixedrange=True)
    return theme.finish(figure, title, height)
