"""What the two parts of a block do to each token: two bars for a token, of one block or of two beside each other.

A bar that is far longer than all others would leave nothing of them: it is broken, and ends in its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.cells import INK
from components.charts.inside_blocks.heads import write_heads

PARTS = ("attention", "feed-forward")
COLOURS = {"attention": theme.BLUE, "feed-forward": theme.ORANGE}
BESIDE = 24  # tokens: more are columns, since rows would run below the screen
MANY = 64  # tokens: more are lines, since columns would be thinner than a pixel
_LABEL = 10  # characters
# Pixels: a token's two bars, at most and at least; all rows or columns, and the same for a projector.
_ROW, _LEAST_ROW, _COLUMNS, _COLUMNS_FAR = 34, 18, 330, 285
_MOVED_UP = 9  # pixels: by which plotly moves a title up for each further line
_BREAK = 0.88  # of the axis: where a bar that is too long for it breaks
_NUMBERED = 12  # tokens in rows: with more, a bar is lower than its number


@dataclass(frozen=True, eq=False)
class BlockBars:
    """One block: values [part, token], and the lengths [part, token] of what each part is added to, if they are marked."""

    name: str
    values: np.ndarray
    marks: np.ndarray | None = None
    means: Sequence[str] = ()  # of each part, as they are shown below the name


def added_bars(
    blocks: Sequence[BlockBars],
    pieces: Sequence[str],
    title: str,
    quantity: str,
    *,
    mark: str = "",
    numbers: str = "",
    break_above: float | None = None,
    digits: int = 0,
    dark: bool = False,
    scale: float = 1.0,
) -> go.Figure:
    """Bars of `quantity` for each token and part, one picture for each block, on one axis; `mark` names the marks.

    With a unit as `numbers` the bars of a short text end in their numbers.
    Bars longer than `break_above` are broken and named by their numbers, with so many `digits`; without it none is. `scale` is
    how much larger the type will be (`theme.enlarge`): the rest is lower then.
    """
    rows = [f"{position} {theme.plain(piece, 26)}" for position, piece in enumerate(pieces)]
    shown = [theme.plain(piece, _LABEL) for piece in pieces]
    is_beside = len(rows) <= BESIDE
    every = np.concatenate([item.values for item in blocks] + [i.marks for i in blocks if i.marks is not None])
    is_numbered = bool(numbers) and not mark and len(rows) <= _NUMBERED  # a number needs room after its bar
    most = (1.18 if is_numbered else 1.06) * float(every.max()) if break_above is None else break_above / _BREAK
    ink = "#E8EDF3" if dark else "#1C2430"
    figure = go.Figure()
    gap = 0.06
    width = (1 - gap * (len(blocks) - 1)) / len(blocks)
    layout: dict[str, Any] = {}
    heads: list[tuple[float, str]] = []  # where they begin, and what they say
    step = 1 if is_beside else -(-len(rows) // 20)
    for number, block in enumerate(blocks):
        suffix = "" if number == 0 else str(number + 1)
        across, along = f"x{suffix}", f"y{suffix}"
        domain = (number * (width + gap), number * (width + gap) + width)
        names: dict[str, Any] = {
            "tickmode": "array",
            "tickvals": list(range(len(rows)))[::step],
            "ticktext": shown[::step],
        }
        names |= {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
        length: dict[str, Any] = {"range": (0, most), "title": {"text": quantity}, "showgrid": True, "zeroline": False}
        length |= {"fixedrange": True, "nticks": 4}
        of_tokens = names | {"range": (len(rows) - 0.5, -0.5) if is_beside else (-0.5, len(rows) - 0.5)}
        named: dict[str, Any] = {"title": {"text": "token"}} if number == 0 and is_beside else {}
        if number and is_beside:
            named = {"showticklabels": False}
        x_axis, y_axis = (length, of_tokens | named) if is_beside else (of_tokens | {"tickangle": -45}, length)
        if not is_beside:
            x_axis = x_axis | {"title": {"text": "token"}}
            y_axis = y_axis | ({"title": None, "showticklabels": False} if number else {})
        layout[f"xaxis{suffix}"] = x_axis | {"domain": domain, "anchor": along}
        layout[f"yaxis{suffix}"] = y_axis | {"anchor": across}
        for part in range(len(PARTS)):
            _add_part(
                figure, block, part, rows, most, mark, (across, along), is_beside, break_above is not None, digits, ink
            )
            if is_numbered:
                _write_numbers(figure.data[-1], block.values[part], numbers, digits, ink)
        heads.append((domain[0], _head(block)))
    # Where means stand, they name the colours.
    lines = [] if any(block.means for block in blocks) else ["\u2003".join(map(_named, PARTS))]
    if mark:
        lines.append(f"┃ {theme.plain(mark)}")
    below = 1 + 2 * any(block.means for block in blocks)  # lines of a picture's own head
    write_heads(figure, heads, ink, scale)
    figure.update_layout(layout)
    figure.update_layout(showlegend=False, barmode="overlay", hovermode="closest", dragmode=False)
    moved = _MOVED_UP * len(lines)
    room = 34 + 18 * (len(lines) + below) + moved
    most_height = _COLUMNS if scale == 1 else _COLUMNS_FAR
    rows_height = min(most_height, _ROW * len(rows)) if len(rows) <= 10 else max(most_height, _LEAST_ROW * len(rows))
    theme.finish(figure, title, room + 60 + (max(90, rows_height) if is_beside else most_height))
    figure.layout.margin.t = room
    figure.layout.title.text += "".join(f"{theme.BELOW_TITLE}{line}</span>" for line in lines)
    figure.layout.title.update(y=1, yref="container", yanchor="top", pad={"t": 8 + moved})
    return figure


def _head(block: BlockBars) -> str:
    """A picture's name, and below it the mean of each part."""
    means = [f"<br>{_named(part)} <b>{theme.plain(mean)}</b>" for part, mean in zip(PARTS, block.means, strict=False)]
    return f"<b>{theme.plain(block.name)}</b>" + (", mean" if means else "") + "".join(means)


def _named(part: str) -> str:
    """A part's name beside its colour."""
    return f'<span style="color:{COLOURS[part]}">■</span> {part}'


def _write_numbers(bars: go.Bar, values: np.ndarray, unit: str, digits: int, ink: str) -> None:
    """Each bar's number after its end."""
    bars.update(
        text=[f"\u2009{theme.number(float(value), digits)}{unit}" for value in values],
        textposition="outside",
        textfont={"color": ink, "size": 12},
        constraintext="none",
        cliponaxis=False,
    )


def _add_part(
    figure: go.Figure,
    block: BlockBars,
    part: int,
    rows: Sequence[str],
    most: float,
    mark: str,
    axes: tuple[str, str],
    is_beside: bool,
    is_broken: bool,
    digits: int,
    ink: str,
) -> None:
    """The bars of one part in one block, with their marks. The axis ends at `most`; bars break where it `is_broken`."""
    name, values = PARTS[part], np.asarray(block.values[part], np.float64)
    is_lines = len(rows) > MANY
    offset = (part - 0.5) * 0.42
    places = np.arange(len(rows)) + offset
    place = {"xaxis": axes[0], "yaxis": axes[1]}
    last = most * _BREAK if is_broken else most
    drawn = np.minimum(values, last)
    hints = [[row, theme.number(float(value), 3)] for row, value in zip(rows, values, strict=True)]
    hover = f"{theme.plain(block.name)}<br>%{{customdata[0]}}<br>{name}: %{{customdata[1]}}<extra></extra>"
    common = {"name": name, "customdata": hints, "hovertemplate": hover, **place}
    if is_lines:
        line = {"color": COLOURS[name], "width": 1.5}
        figure.add_scatter(x=places - offset, y=drawn, mode="lines", line=line, **common)
    else:
        ends, across = (drawn, places) if is_beside else (places, drawn)
        figure.add_bar(
            x=ends,
            y=across,
            width=0.38,
            orientation="h" if is_beside else "v",
            marker={"color": COLOURS[name], "line": {"width": 0}},
            **common,
        )
    for token in np.flatnonzero(values > last).tolist():
        number = theme.number(float(values[token]), digits)
        tip = (last, token + offset) if is_beside else (token + offset, last)
        figure.add_annotation(
            x=tip[0],
            y=tip[1],
            xref=axes[0],
            yref=axes[1],
            text=f"<b>{number} //</b>" if is_beside else f"<b>{number}</b>",  # in the bar, or above it
            xanchor="right" if is_beside else "center",
            yanchor="middle" if is_beside else "bottom",
            showarrow=False,
            font={"color": INK if is_beside else ink, "size": 13},
        )
    if block.marks is not None and not is_lines:
        at = np.asarray(block.marks[part], np.float64)
        kept = at < last
        x, y = (at[kept], places[kept]) if is_beside else (places[kept], at[kept])
        figure.add_scatter(
            x=x,
            y=y,
            mode="markers",
            marker={
                "symbol": "line-ns-open" if is_beside else "line-ew-open",
                "size": 13 if is_beside else 7,
                "line": {"width": 2},
                "color": ink,  # it is seen on a bar of any colour
            },
            customdata=[[rows[token], theme.number(float(at[token]), 3)] for token in np.flatnonzero(kept).tolist()],
            hovertemplate=f"{theme.plain(block.name)}<br>%{{customdata[0]}}<br>{theme.plain(mark)}, {name}: "
            "%{customdata[1]}<extra></extra>",
            name=f"{mark}, {name}",
            **place,
        )
