"""A diagnosis: shares of failed and found queries with each trait, and what each remedy repairs and harms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from components.charts import theme

_TRAIT, _REMEDY, _TOP = 27, 72, 78  # pixels of a row, and above the first
_PALE = "rgba(201,127,0,0.35)"
_TINT = "rgba(43,123,186,0.1)"
_PALE_GREY, _PALE_BLUE = "rgba(133,139,149,0.35)", "rgba(43,123,186,0.4)"


@dataclass(frozen=True)
class TraitBar:
    """One trait; all in per cent."""

    name: str
    failed: float  # of failed queries
    found: float  # of found queries
    difference: tuple[float, float] | None  # the 95 % interval of failed minus found; None where nothing is compared
    is_named: bool


@dataclass(frozen=True)
class RemedyBar:
    """One remedy."""

    name: str
    is_left: bool  # whether both halves chose to leave everything as it is
    repaired: int
    harmed: int
    sham: tuple[int, int]  # repaired and harmed
    recall: float  # Recall@1 in per cent
    low: float  # the 95 % interval of its change, in points
    high: float
    is_advised: bool = False  # by both halves


def trait_shares(bars: Sequence[TraitBar], title: str) -> go.Figure:
    """A row for each trait: a filled dot for failed queries and an open one for found ones.

    Where the two are compared, a line joins them, over the interval of their difference.
    """
    figure = go.Figure()
    for row, bar in enumerate(bars):
        colour, pale = (theme.ORANGE, _PALE) if bar.is_named else (theme.GREY, _PALE_GREY)
        if bar.difference is not None:
            ends = [min(100.0, max(0.0, bar.found + end)) for end in bar.difference]
            figure.add_scatter(
                x=ends, y=[row, row], mode="lines", line={"color": pale, "width": 9}, name="95 %", hoverinfo="skip"
            )
            figure.add_scatter(
                x=[bar.found, bar.failed],
                y=[row, row],
                mode="lines",
                line={"color": colour, "width": 1.5},
                hoverinfo="skip",
            )
    for name, values, symbol in (
        ("found", [bar.found for bar in bars], "circle-open"),
        ("failed", [bar.failed for bar in bars], "circle"),
    ):
        figure.add_scatter(
            x=values,
            y=list(range(len(bars))),
            name=name,
            mode="markers",
            marker={
                "symbol": symbol,
                "size": 11,
                "color": [theme.ORANGE if bar.is_named and name == "failed" else theme.GREY for bar in bars],
                "line": {"width": 2},
            },
            customdata=[theme.plain(bar.name) for bar in bars],
            hovertemplate=f"%{{customdata}}: %{{x:.1f}} % of {name} queries<extra></extra>",
        )
    names = [f"<b>{theme.plain(bar.name)}</b>" if bar.is_named else theme.plain(bar.name) for bar in bars]
    axis = figure.layout.yaxis
    axis.tickmode, axis.tickvals, axis.ticktext = "array", list(range(len(bars))), names
    axis.range, axis.showgrid, axis.zeroline = (len(bars) - 0.4, -0.6), False, False
    reached = [bar.found + bar.difference[1] for bar in bars if bar.difference is not None]
    most = max([1.0, *reached, *(end for bar in bars for end in (bar.failed, bar.found))])
    figure.layout.xaxis.range, figure.layout.xaxis.ticksuffix = (-2, min(103.0, 1.35 * most + 4)), " %"
    figure.layout.xaxis.title.text = "● failed, ○ found"
    figure.layout.showlegend, figure.layout.hovermode = False, "closest"
    return theme.finish(figure, title, _TOP + 30 + _TRAIT * len(bars))


def remedy_bars(bars: Sequence[RemedyBar], now: float, title: str) -> go.Figure:
    """A row for each remedy: queries harmed to the left and repaired to the right with those of the sham below, and Recall@1.

    `now` is Recall@1 without a remedy, in per cent: the dashed line.
    """
    figure = make_subplots(1, 2, shared_yaxes=True, horizontal_spacing=0.02, column_widths=[0.54, 0.46])
    most = max([1, *(max(bar.repaired, bar.harmed, *bar.sham) for bar in bars)])
    rows = list(range(len(bars)))
    for name, sign, values, shams, colour in (
        ("repaired", 1, [bar.repaired for bar in bars], [bar.sham[0] for bar in bars], theme.BLUE),
        ("harmed", -1, [bar.harmed for bar in bars], [bar.sham[1] for bar in bars], theme.ORANGE),
    ):
        figure.add_bar(
            x=[sign * value for value in values],
            y=rows,
            width=0.24,
            offset=-0.13,
            orientation="h",
            name=name,
            marker_color=colour,
            text=["" if bar.is_left else f"{value:,}" for bar, value in zip(bars, values, strict=True)],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{name}: %{{text}}<extra></extra>",
            row=1,
            col=1,
        )
        figure.add_bar(
            x=[sign * value for value in shams],
            y=rows,
            width=0.08,
            offset=0.15,
            orientation="h",
            name=f"sham, {name}",
            marker_color=theme.GREY,
            customdata=[f"{value:,}" for value in shams],
            hovertemplate=f"a sham of this kind {name} %{{customdata}}<extra></extra>",
            row=1,
            col=1,
        )
    for bar, row in zip(bars, rows, strict=True):
        helps, harms = bar.low > 0, bar.high < 0
        colour = theme.BLUE if helps else theme.ORANGE if harms else theme.GREY
        pale = _PALE_BLUE if helps else _PALE if harms else _PALE_GREY
        change = f", change {theme.signed(bar.low, 1)} to {theme.signed(bar.high, 1)}"
        if not bar.is_left:
            figure.add_scatter(
                x=[max(0.0, now + bar.low), min(100.0, now + bar.high)],
                y=[row, row],
                mode="lines",
                line={"color": pale, "width": 8},
                hoverinfo="skip",
                row=1,
                col=2,
            )
        figure.add_scatter(
            x=[bar.recall],
            y=[row],
            mode="markers",
            marker={"size": 11, "color": colour},
            cliponaxis=False,
            hovertemplate=f"Recall@1 {theme.number(bar.recall, 1)} %{'' if bar.is_left else change}<extra></extra>",
            row=1,
            col=2,
        )
        if bar.is_advised:
            place = {"x0": 0, "x1": 1, "xref": "paper", "y0": row - 0.47, "y1": row + 0.5, "yref": "y"}
            figure.add_shape(type="rect", fillcolor=_TINT, line_width=0, layer="below", **place)
        name = f"<b>{theme.plain(bar.name)}</b>" + (
            f'  <span style="color:{theme.BLUE}">■ advice</span>' if bar.is_advised else ""
        )
        sham = f"a sham of this kind repaired {bar.sham[0]:,} and harmed {bar.sham[1]:,}"
        left = "left as it is: nothing was better" if bar.is_left else ""
        for x, anchor, above, text in (
            (0.0, "left", 0.3, name),
            (1.0, "right", 0.3, f"{theme.number(bar.recall, 1)} %"),
            (0.0, "left", 0.02, theme.small(left)),  # in the place of bars
            (0.0, "left", -0.33, theme.small(sham if any(bar.sham) else "")),  # a sham that does nothing says nothing
        ):
            where = {"x": x, "xref": "paper", "xanchor": anchor, "y": row - above, "yref": "y", "yanchor": "middle"}
            figure.add_annotation(text=text, showarrow=False, **where)
        line = {"color": theme.GREY, "dash": "dash"}  # in each row between its texts, which it would cross on a phone
        figure.add_shape(type="line", x0=now, x1=now, y0=row - 0.2, y1=row + 0.2, line=line, row=1, col=2)
    for anchor, text, colour in (("right", "harmed", theme.ORANGE), ("left", "repaired", theme.BLUE)):
        mark = f'<span style="color:{colour}">■</span> {text}'
        place = {"x": 0, "xanchor": anchor, "xshift": 8 if anchor == "left" else -8, "y": 1, "yref": "paper"}
        figure.add_annotation(text=mark, yanchor="bottom", showarrow=False, **place)
    figure.layout.xaxis.title.text, figure.layout.xaxis2.title.text = "queries", "found first (Recall@1)"
    spare = 0.0 if any(map(any, (bar.sham for bar in bars))) else 0.25  # below the last row, where nothing is said
    for axis in (figure.layout.yaxis, figure.layout.yaxis2):
        axis.range, axis.showgrid, axis.showticklabels, axis.zeroline = (
            (len(bars) - 0.45 - spare, -0.55),
            False,
            False,
            False,
        )
    figure.layout.xaxis.range, figure.layout.xaxis.showticklabels = (-1.25 * most, 1.25 * most), False
    intervals = [(max(0.0, now + bar.low), min(100.0, now + bar.high)) for bar in bars if not bar.is_left]
    ends = [now, *(bar.recall for bar in bars), *(end for interval in intervals for end in interval)]
    room = max(1.0, 0.15 * (max(ends) - min(ends)))
    low, high = min(ends) - room, max(ends) + room
    step = next(step for step in (1, 2, 5, 10, 20, 25) if high - low <= 5 * step or step == 25)
    figure.layout.xaxis2.range = (low, high)
    where = {"x": 1, "xref": "paper", "xanchor": "right", "y": 1, "yref": "paper", "yanchor": "bottom"}
    figure.add_annotation(text=f"┆ now {theme.number(now, 1)} %", showarrow=False, **where)
    ticks = [tick for tick in range(0, 101, step) if low <= tick <= high]  # no share is above 100 %
    figure.layout.xaxis2.tickvals = ticks
    figure.layout.xaxis2.ticktext = [f"{tick} %" if tick == ticks[-1] else str(tick) for tick in ticks]
    figure.layout.showlegend, figure.layout.hovermode, figure.layout.barmode = False, "closest", "overlay"
    return theme.finish(figure, title, round(_TOP + 20 + _REMEDY * (len(bars) - spare)))
