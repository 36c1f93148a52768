"""What goes into a block beside what comes out of it: cosines of tokens for one block or two, and of each token by block.

A token's cosine with itself and that with another token are two questions, so that they have two colours and two scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.cells import colours_of, ink
from components.charts.inside_blocks.heads import write_heads
from components.charts.matrices import MAX_TICKS

ITSELF, ANOTHER = (0.3, 0.9), (0.0, 0.4)  # the scales, unless the data go beyond
BELOW_ZERO = -0.15  # cosines from there to 0 say no more than 0, and keep its colour
MOST = 0.95  # of the cosines with another token
NUMBERED = 14  # tokens: with more, the numbers do not fit into the cells
_LABEL = 10  # characters of a token beside the picture; the hover shows more
_MOST_SQUARES = 40  # rows of the strip that can be clicked: of more tokens, every n-th
# Pixels: the height of the cells of a text, the same for a projector, and of a cell of one or two tokens.
_PLOT, _PLOT_FAR, _CELL = 318, 235, 64
_LINE, _HEADS, _BELOW = 18, 3, 92  # pixels of a line above a picture, how many there are, and what stands below
_LABELS = 68  # pixels: the names of the columns, and that of their axis, where another picture stands below
_CLEAR = "rgba(0, 0, 0, 0)"


@dataclass(frozen=True, eq=False)
class BlockPicture:
    """One block: cosines [token before, token after], and the lines above them."""

    block: int
    matrix: np.ndarray
    heads: Sequence[str]  # plain text: its name, then its numbers: of itself, another, and other sentences
    framed: Sequence[tuple[int, int]] = ()  # cells (row, column) with a frame and, in a short text, a number


@dataclass(frozen=True)
class Scales:
    """The ends of the colours: of a token with itself (None where cells are means of several), and with another.

    `or_more`: some cosines with another token are above the upper end, and have its colour.
    """

    itself: tuple[float, float] | None
    another: tuple[float, float]
    or_more: bool = False

    @property
    def is_widened(self) -> bool:
        """Whether the data go beyond the usual ends; they can also lie within."""
        ends = [(self.another, ANOTHER)] + ([(self.itself, ITSELF)] if self.itself else [])
        return any(low < lowest or high > highest for (low, high), (lowest, highest) in ends)

    def in_words(self) -> str:
        """What the colours mean."""
        low, high = self.another
        first = "0 or less" if low == 0 else theme.number(low, 2)
        another = f"from {first} to {theme.number(high, 2)}{' or more' * self.or_more}"
        if self.itself is None:
            return f"Orange: {another}."
        own = " to ".join(theme.number(end, 2) for end in self.itself)
        usual = " and ".join(f"{low:g} to {high:g}" for low, high in (ITSELF, ANOTHER))
        wider = f" The usual ends are {usual}; these cosines go beyond." if self.is_widened else ""
        return f"Blue: a token with itself, from {own}. Orange: with another token, {another}.{wider}"


def scales_of(own: np.ndarray, others: np.ndarray, narrow: bool = False) -> Scales:
    """The scales for cosines of tokens with themselves, and with others, of which there may be none.

    `narrow`: from the smallest to the largest value of each. Else never narrower than the usual ends; MOST of the cosines with
    others lie below the upper one, so that a few high ones do not leave the rest pale.
    """
    low, high = (float(value) for value in theme.limits_of(own))
    first, most, last = (float(end) for end in np.quantile(others, (0, MOST, 1))) if others.size else (0.0, 0.0, 0.0)
    if narrow:
        return Scales((low, high), (first, last))
    end = max(ANOTHER[1], most)
    return Scales(
        (min(ITSELF[0], low), max(ITSELF[1], high)),
        (first if first < BELOW_ZERO else ANOTHER[0], end),
        last > end,
    )


def before_and_after(
    pictures: Sequence[BlockPicture],
    labels: Sequence[str],
    itself: np.ndarray,
    title: str,
    *,
    scales: Sequence[Scales],
    names: Sequence[str] | None = None,
    second_text: int | None = None,
    dark: bool = False,
    scale: float = 1.0,
    is_stacked: bool = False,
) -> go.Figure:
    """One or two pictures beside each other, and at the right a strip of each token's cosine with itself [token, block].

    `labels` are unique names for the hover, `names` what stands beside the rows. Each picture has its scales; the
    strip has one for all blocks. `second_text` is the number of the row with which a pair's second text begins. The strip's
    points can be clicked: their `customdata` is [row, block]. Rows are what goes in, columns what comes out. `scale` is how
    much larger the type will be (`theme.enlarge`): the rest is lower then. Where it `is_stacked`, for a phone, all stand below
    each other, in the same order.
    """
    rows = [theme.plain(label, 26) for label in labels]
    shown = [theme.plain(name, _LABEL) for name in (names or labels)]
    step = -(-len(rows) // MAX_TICKS)
    blocks = itself.shape[1]
    strip = min(0.2, max(0.06, 0.022 * blocks)) if blocks > 1 else 0.0
    gap = 0.03
    width = (1 - strip - gap * (len(pictures) - (strip == 0))) / len(pictures)
    panels = len(pictures) + (strip > 0)
    plot, heads_height = min(_PLOT if scale == 1 else _PLOT_FAR, _CELL * len(rows)), _LINE * _HEADS
    further = plot + heads_height + _LABELS  # pixels of a further panel below
    whole = plot + further * (panels - 1) if is_stacked else plot
    of_names = {
        "type": "category",
        "showgrid": False,
        "tickmode": "array",
        "tickvals": rows[::step],
        "ticktext": shown[::step],
        "zeroline": False,
        "ticks": "",
        "ticklen": 0,
        "ticklabelstandoff": 0,
        "fixedrange": True,
    }
    ink_of_page = "#E8EDF3" if dark else "#1C2430"
    figure = go.Figure()

    def place(number: int, start: float, end: float, across: dict[str, Any]) -> dict[str, str]:
        """Lay out the axes of a panel, which stands between these ends of the paper if the panels are beside each other."""
        is_strip = number == len(pictures)
        x, y = (
            f"{axis}{at + 1 if at else ''}" for axis, at in (("x", number), ("y", number if is_stacked else is_strip))
        )
        top = 1 - number * further / whole
        figure.layout[x.replace("x", "xaxis")] = across | {
            "domain": (0, 1) if is_stacked else (start, end),
            "anchor": y,
            "fixedrange": True,
        }
        if number == 0 or is_strip or is_stacked:
            figure.layout[y.replace("y", "yaxis")] = {
                **of_names,
                "range": (len(rows) - 0.5, -0.5),
                "domain": (max(0, top - plot / whole), top) if is_stacked else (0, 1),
                "anchor": x,
                **({} if is_strip else {"title": {"text": "goes in"}}),
                **({"side": "right"} if is_strip and not is_stacked else {}),
            }
        return {"xaxis": x, "yaxis": y}

    heads, shapes = [], list[dict[str, Any]]()
    for number, (picture, of_colours) in enumerate(zip(pictures, scales, strict=True)):
        start = number * (width + gap)
        axes = place(
            number,
            start,
            start + width,
            # Beside each other if they fit, else slanted, and upright where even that is too wide.
            of_names | {"autotickangles": (0, -45, -90), "title": {"text": "comes out", "standoff": 4}},
        )
        _add_picture(figure, picture, rows, axes, of_colours, dark, has_bars=number == 0)
        if number == 0:
            _lay_below(figure, of_colours, is_stacked)
        shapes += [
            _outline(axes, (column - 0.47, column + 0.47), (row - 0.47, row + 0.47), ink_of_page)
            for row, column in picture.framed
        ]
        if second_text is not None and 0 < second_text < len(rows):
            shapes += _part(axes, second_text - 0.5, len(rows) - 0.5, ink_of_page)
        heads.append((start, _head(picture.heads)))
    if strip:
        of_blocks = {
            "showgrid": False,
            "zeroline": False,
            "nticks": 8,
            "tickformat": "d",
            "tickangle": 0,
            "range": (-0.5, blocks - 0.5),
            "ticks": "",
            "ticklen": 0,
            "title": {"text": "block", "standoff": 4},
        }
        axes = place(len(pictures), 1 - strip, 1, of_blocks)
        _add_strip(figure, itself, rows, axes, scales_of(itself, np.array([])).itself or ITSELF, dark)
        shapes += [
            _outline(axes, (block - 0.5, block + 0.5), (-0.5, len(rows) - 0.5), ink_of_page)
            for block in {picture.block for picture in pictures}
        ]
        heads.append((1 - strip, "<b>Itself, by block</b>" if is_stacked else "<b>Itself,</b><br><b>by block</b>"))
    theme.add_shapes(figure, shapes)
    tops = [1 - number * further / whole for number in range(panels)] if is_stacked else [1.0] * panels
    write_heads(
        figure,
        [(0.0 if is_stacked else start, text) for start, text in heads],
        ink_of_page,
        scale,
        tops,
    )
    above = heads_height + (8 if is_stacked else 34)
    theme.finish(figure, "" if is_stacked else title, above + whole + _BELOW)
    figure.layout.margin.update(t=above, b=round(44 * scale), r=2)  # below, room for the colour bars
    figure.layout.title.update(y=1, yref="container", yanchor="top", pad={"t": 8})
    figure.layout.hovermode, figure.layout.clickmode, figure.layout.dragmode = "closest", "event+select", False
    return figure


def _head(lines: Sequence[str]) -> str:
    """The name of a picture over its numbers: those of its two colours in one line, then others."""
    name, *numbers = (theme.plain(line) for line in lines)
    bold = [" ".join([*line.split(" ")[:-1], f"<b>{line.split(' ')[-1]}</b>"]) for line in numbers]
    colours = (theme.BLUE, theme.ORANGE)
    marked = [f'<span style="color:{colour}">■</span> {line}' for colour, line in zip(colours, bold, strict=False)]
    return "<br>".join([f"<b>{name}</b>", "\u2002".join(marked), *bold[len(colours) :]])


def _scale(hue: str, dark: bool) -> list[list[Any]]:
    """A scale from the colour of the page to a hue."""
    if hue == "itself":
        return [[0, "#22303F"], [1, "#6CB0F2"]] if dark else [[0, "#DCE8F5"], [1, "#174F8F"]]
    return [[0, "#1B222B"], [1, "#D98F1F"]] if dark else [[0, "#F2F5F9"], [1, theme.ORANGE]]


def _add_picture(
    figure: go.Figure,
    picture: BlockPicture,
    rows: Sequence[str],
    place: dict[str, str],
    scale: Scales,
    dark: bool,
    has_bars: bool,
) -> None:
    """The cells of one block; the diagonal is a list of cells, so that it is not sent as a second matrix."""
    gap = 2 if len(rows) <= 24 else 0
    matrix = np.array(picture.matrix, np.float64)
    is_told_apart = scale.itself is not None
    if is_told_apart:
        np.fill_diagonal(matrix, np.nan)
    hover = f"block {picture.block}<br>in: %{{y}}<br>out: %{{x}}<br>cosine %{{z:.4f}}<extra></extra>"
    others = theme.heatmap(
        matrix,
        rows,
        rows,
        "with another" if is_told_apart else "cosine",
        scale.another,
        colorscale=_scale("another", dark),
        showscale=has_bars,
        hovertemplate=hover,
        hoverongaps=False,
        xgap=gap,
        ygap=gap,
        **place,
    )
    drawn = [others]
    if is_told_apart:
        own = theme.heatmap(
            np.diagonal(picture.matrix),
            rows,
            rows,
            "itself",
            scale.itself,
            colorscale=_scale("itself", dark),
            showscale=has_bars,
            hovertemplate=hover.replace("cosine", "itself"),
            hoverongaps=False,
            xgap=gap,
            ygap=gap,
            **place,
        )
        drawn.append(own)
    figure.add_traces(drawn)
    if is_told_apart and len(rows) <= NUMBERED:
        _add_numbers(figure, picture, rows, place, own, others)


def _lay_below(figure: go.Figure, scale: Scales, is_wide: bool) -> None:
    """Lay the colour bars of the first picture's cells beside each other below it."""
    others, *own = figure.data[: 1 if scale.itself is None else 2]
    length = 0.34 if is_wide else 0.17
    for cells in own:
        _lay_bar(cells, 0, length, [theme.number(end, 2) for end in scale.itself or ITSELF])
    low, high = scale.another
    ends = ["≤ 0" if low == 0 else theme.number(low, 2), f"{'≥ ' * scale.or_more}{theme.number(high, 2)}"]
    _lay_bar(others, 1.5 * length * len(own), length, ends)


def _lay_bar(cells: go.Heatmap, start: float, length: float, ends: Sequence[str]) -> None:
    """Lay one colour bar, with its ends; as a whole, as axes are set."""
    bar = cells.colorbar.to_plotly_json()
    cells.colorbar = {
        **bar,
        "orientation": "h",
        "x": start,
        "xanchor": "left",
        "yref": "container",
        "y": 0,
        "yanchor": "bottom",
        "len": length,
        "thickness": 8,
        "ypad": 2,
        "xpad": 4,
        "title": {**bar["title"], "side": "top"},
        "tickmode": "array",
        "tickvals": [cells.zmin, cells.zmax],
        "ticktext": ends,
    }


def _add_numbers(
    figure: go.Figure, picture: BlockPicture, rows: Sequence[str], place: dict[str, str], own: Any, others: Any
) -> None:
    """The numbers of the diagonal and of the framed cells, in black or white: whichever can be read better on each."""
    cells = [(row, row) for row in range(len(rows))] + list(picture.framed)
    colours = {(row, row): colour for row, colour in enumerate(colours_of(own))}
    colours |= {cell: colours_of(others)[cell] for cell in picture.framed}
    for colour, is_white in (("#000000", False), ("#FFFFFF", True)):
        texts = [["\u00a0" * 4] * len(rows) for _ in rows]  # of one length, because it sizes the type of all
        for row, column in cells:
            if bool(ink(colours[row, column])) == is_white:
                texts[row][column] = theme.number(float(picture.matrix[row, column]), 2)
        figure.add_heatmap(
            z=np.zeros((len(rows), len(rows)), np.int8),
            x=rows,
            y=rows,
            text=texts,
            texttemplate="%{text}",
            textfont={"color": colour},
            colorscale=[[0, _CLEAR], [1, _CLEAR]],
            showscale=False,
            hoverinfo="skip",
            **place,
        )


def _add_strip(
    figure: go.Figure,
    itself: np.ndarray,
    rows: Sequence[str],
    place: dict[str, str],
    ends: tuple[float, float],
    dark: bool,
) -> None:
    blocks = list(range(itself.shape[1]))
    figure.add_trace(
        theme.heatmap(
            itself,
            blocks,
            rows,
            "itself",
            ends,
            colorscale=_scale("itself", dark),
            showscale=False,
            hoverinfo="skip",
            xgap=2,
            ygap=2 if len(rows) <= 24 else 0,
            **place,
        )
    )
    step = -(-len(rows) // _MOST_SQUARES)
    cells = [(row, block) for row in range(0, len(rows), step) for block in blocks]
    figure.add_scatter(
        x=[block for _, block in cells],
        y=[rows[row] for row, _ in cells],
        mode="markers",
        marker={"symbol": "square", "size": 20, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=[list(cell) for cell in cells],
        text=[
            (f"{rows[row]}<br>" if step == 1 else "")
            + f"block {block}"
            + (f": {theme.number(float(itself[row, block]), 4)} like itself" if step == 1 else "")
            + "<br>click: show this block"
            for row, block in cells
        ],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        name="cells",
        **place,
    )


def _outline(
    axes: dict[str, str], columns: tuple[float, float], rows: tuple[float, float], colour: str
) -> dict[str, Any]:
    return _shape("rect", axes, (columns[0], rows[0]), (columns[1], rows[1]), colour, 2)


def _part(axes: dict[str, str], between: float, last: float, colour: str) -> list[dict[str, Any]]:
    """Lines between the two texts of a pair."""
    lines = ((between, -0.5), (between, last)), ((-0.5, between), (last, between))
    return [_shape("line", axes, start, end, colour, 1.5) for start, end in lines]


def _shape(
    kind: str, axes: dict[str, str], start: tuple[float, float], end: tuple[float, float], colour: str, width: float
) -> dict[str, Any]:
    ends = {"x0": start[0], "y0": start[1], "x1": end[0], "y1": end[1]}
    return {
        "type": kind,
        "xref": axes["xaxis"],
        "yref": axes["yaxis"],
        **ends,
        "line": {"color": colour, "width": width},
    }
