"""Token by token matrices: cosines between layers, attention of a head.

Up to 512 x 512 cells are sent as float32 (about 2 MB as text). The axes show only some labels, the hover all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.cells import colours_of, ink, lay_text, number_readably
from components.charts.heatmap import hover_of, written

BORDER = "border of the window"
Colours = str | tuple[tuple[float, str], ...]  # a scale by plotly's name for it, or its stops
Border = Sequence[tuple[float, float]]  # a line of points (column, row); cell n reaches from n - 0.5 to n + 0.5

MAX_TICKS = 20  # labels of an axis: as many as stand beside each other in half a page, or on a phone
NUMBERED = 16  # bars: with more, their numbers would run into each other
SMALL = (
    9.5  # pixels: type of the numbers for a phone, by which style.css knows them; plotly's own choice is a whole number
)
SQUARE_FROM = 20  # tokens: with fewer, cells are as wide as the column allows
_PLOT = 380  # pixels: height of a large matrix; with its labels it ends within the first screen
_LABEL = 14  # characters of a token on an axis; the hover shows more
_LETTER = 7.4  # pixels
_AXIS_NAME = 42  # pixels of an axis' name below its labels
_BAR_HEIGHT = 52  # pixels of a colour bar above a matrix, with its name and numbers
_NARROW_TICKS, _NARROW_LABEL, _NARROW_PLOT = 9, 9, 190  # the same for a quarter of a page


def axis_labels(tokens: Sequence[str], positions: Sequence[int] | None = None) -> list[str]:
    """Labels of a sentence's tokens (or those at some positions), also of equal ones: position, then token. Plain text."""
    numbers = range(len(tokens)) if positions is None else positions
    return [f"{position} {tokens[position][:24]}" for position in numbers]


def token_matrix(
    matrix: np.ndarray,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    title: str,
    *,
    rows: str,
    columns: str,
    value: str,
    limits: tuple[float, float] | None = None,
    diverging: bool = False,
    blue_adds: bool = False,
    pale: bool = False,
    dark: bool = False,
    show_values: bool = False,
    numbers_from: float = -np.inf,
    decimals: int = 2,
    small_from: float | None = None,
    colour_bar: bool | Literal["key", "above"] = True,
    upright: bool = True,
    room: int | None = None,
    narrow: bool = False,
    square: bool = False,
    plot_height: int | None = None,
    borders: Sequence[Border] = (),
) -> go.Figure:
    """A matrix [row, column] as colour, row 0 on top; NaN stays empty. From SQUARE_FROM tokens on cells are `square`.

    `rows`, `columns` and `value` name the axes and the quantity in the hover; labels must be unique on each
    axis (see `axis_labels`). `limits` fixes the colour scale; `colour_bar` says whether the figure explains it: by a bar
    beside the matrix or, which leaves a phone more room for the columns, by one "above" it or, of diverging colours, by a
    "key" under the title.
    Diverging colours are orange above zero, or with `blue_adds` blue; others are `pale` to blue, on a `dark` page from its own
    colour on, or dark to bright. `show_values` writes each number from `numbers_from` on into its cell, with so many
    `decimals`, a percentile as a whole number. Those from `small_from` on are written once more in small type, for a phone:
    a page shows either. Column labels stand `upright` where they would overlap, or beside each other if they are short. With
    `room` for so many letters below the matrix they stand upright always, and matrices with one room have rows of one height.
    `narrow`: for a quarter of a page, with square cells, few and short labels, and no names of the axes.
    `plot_height` in pixels replaces the height that fits the number of tokens. `borders` are lines between cells, which a
    legend names (see `window_borders`). The colour bar lies above square cells, else at the right.
    """
    hover, hints = hover_of(np.asarray(matrix), value)
    row_names, column_names = ([theme.plain(label, 26) for label in labels] for labels in (row_labels, column_labels))
    rows, columns, value = (theme.plain(name).replace("%{", "% {") for name in (rows, columns, value))
    n_rows, n_columns = len(row_labels), len(column_labels)
    most = max(n_rows, n_columns)
    is_square = narrow or square or most >= SQUARE_FROM
    axis = {"type": "category", "showgrid": False, "constrain": "domain"}
    turned = {"tickangle": -90} if room is not None else {} if upright else {"tickangle": 0}
    x_axis = {**axis, **ticks(column_labels, narrow), **turned}
    y_axis = {**axis, **ticks(row_labels, narrow), "tickangle": 0, "autorange": "reversed"}
    # Where the page is narrower than the figure is high, the room left is below.
    y_axis |= {"constraintoward": "top", "scaleanchor": "x" if is_square else None}
    names = ({}, {}) if narrow else ({"title": {"text": columns}}, {"title": {"text": rows}})
    figure = go.Figure(
        theme.heatmap(
            matrix,
            column_names,
            row_names,
            value,
            limits,
            colorscale=_colours_of(blue_adds) if diverging else theme.one_hue(dark) if pale else theme.SEQUENTIAL,
            **({"xgap": 1, "ygap": 1} if pale and most < SQUARE_FROM else {}),
            text=written(np.asarray(matrix), value, decimals, numbers_from) if show_values else None,
            texttemplate="%{text}" if show_values else None,
            showscale=colour_bar in (True, "above"),
            customdata=hints,
            hovertemplate=f"{rows}: %{{y}}<br>{columns}: %{{x}}<br>{value} {hover}<extra></extra>",
        ),
        # All at once: one update of the axes after another takes ten times as long.
        layout={"xaxis": x_axis | names[0], "yaxis": y_axis | names[1]},
    )
    if small_from is not None:
        _add_small_numbers(figure, np.asarray(matrix), small_from, value)
    number_readably(figure)
    line = {"color": theme.ORANGE, "width": 2}
    drawn = {"type": "path", "line": line, "name": BORDER, "legendgroup": BORDER}
    paths = ["M" + "L".join(f"{column:g},{row:g}" for column, row in border) for border in borders]
    theme.add_shapes(
        figure,
        [{**drawn, "path": path, "showlegend": number == 0 and not narrow} for number, path in enumerate(paths)],
    )
    plot = _NARROW_PLOT if narrow else _PLOT * n_rows / most if is_square else min(_PLOT, 26 * n_rows)
    plot = plot_height or plot
    longest = min(_NARROW_LABEL if narrow else _LABEL, room or max(map(len, column_labels), default=0))
    # Never so low that the numbers of the colour scale overlap.
    height = max(240 if narrow else 330, 46 + plot + _LETTER * longest + (10 if narrow else 34))
    theme.finish(figure, title, round(height))
    if room is not None:
        figure.layout.xaxis.automargin = False
        figure.layout.margin.b = round(_LETTER * longest + (10 if narrow else _AXIS_NAME))
    is_bar_above = colour_bar == "above" or (colour_bar is True and is_square)
    if is_bar_above and not narrow:
        _lay_bar_above(figure)
    if not narrow and (colour_bar is True or not is_square):
        # pixels: else the name lies on or among the labels
        figure.layout.xaxis.title.standoff = 16 if room is not None else 26 if is_square else 46
    if colour_bar == "above" and not is_square:  # on a phone there is room for the ends alone
        figure.layout.height += _BAR_HEIGHT
        low, high = figure.data[0].zmin, figure.data[0].zmax
        within = (high - low) / 1000  # plotly leaves out a number at the very end
        ends = [theme.number(end, 2) for end in (low, high)]
        _set_bar(figure, tickvals=[low + within, high - within], ticktext=ends, tickangle=0)
    if borders and not narrow:
        # Not below: a legend at the figure's lower edge pushes the axis's name into its labels.
        beside_bar = {"x": 0.42, "xanchor": "left"}
        beside_title = {"x": 1, "xanchor": "right"}
        place = beside_bar if is_bar_above else beside_title
        figure.layout.legend = {**place, "y": 1, "yanchor": "bottom"}
        figure.layout.showlegend = True
    if colour_bar == "key":
        _add_key(figure, *theme.limits_of(np.asarray(matrix), limits), _colours_of(blue_adds))
    return figure


def _add_small_numbers(figure: go.Figure, matrix: np.ndarray, least: float, value: str) -> None:
    """Write the numbers from `least` on, or the largest alone, into the cells as .31, or 1: in small type, black or white.

    `value` names the numbers: a percentile is written as a whole number.
    """
    is_white = ink(colours_of(figure.data[0]))
    is_strong = matrix >= min(least, np.nanmax(matrix, initial=-np.inf))
    for colour, own in (("#000000", ~is_white), ("#FFFFFF", is_white)):
        shown = is_strong & own
        if not shown.any():
            continue
        numbers = [
            [text.removeprefix("0").replace("1.00", "1").replace("> ", ">") for text in row]
            for row in written(np.where(shown, matrix, np.nan), value)
        ]
        lay_text(figure, shown, numbers, "%{text}", {"color": colour, "size": SMALL})


def _lay_bar_above(figure: go.Figure) -> None:
    """Lay the colour bar above a matrix, both at the left: at the page's right edge it stands far from the matrix."""
    figure.layout.xaxis.constraintoward = "left"
    figure.layout.margin.t += _BAR_HEIGHT
    _set_bar(
        figure,
        title=figure.data[0].colorbar.title.to_plotly_json()
        | {"side": "top"},  # at its side the name would lie on the bar
        orientation="h",
        x=0,
        xanchor="left",
        y=1,
        yanchor="bottom",
        len=0.4,
        thickness=10,
        ypad=6,
        xpad=0,
        nticks=5,
    )


def _set_bar(figure: go.Figure, **values: object) -> None:
    """Set a matrix's colour bar as a whole: one value after another takes ten times as long."""
    figure.data[0].colorbar = figure.data[0].colorbar.to_plotly_json() | values


def _colours_of(blue_adds: bool) -> tuple[tuple[float, str], ...]:
    return theme.ADDING if blue_adds else theme.DIVERGING


def _add_key(figure: go.Figure, low: float, high: float, colours: tuple[tuple[float, str], ...]) -> None:
    """Write the ends of diverging colours, and zero, under the title."""
    names = (theme.significant(low), "0", theme.significant(high))
    theme.name_colours(figure, {colour: name for (_, colour), name in zip(colours, names, strict=True)})


def ticks(labels: Sequence[str], narrow: bool = False) -> dict[str, object]:
    """Labels, upright where they would overlap, thinned and truncated; `tickvals` are the whole labels as they are drawn."""
    shown = labels[:: -(-len(labels) // (_NARROW_TICKS if narrow else MAX_TICKS))]
    length = _NARROW_LABEL if narrow else _LABEL
    return {
        "tickmode": "array",
        "tickvals": [theme.plain(label, 26) for label in shown],
        "ticktext": [theme.plain(label, length) for label in shown],
        "autotickangles": (0, -90),
    }


def window_borders(rows: Sequence[int], columns: Sequence[int], window: int) -> list[Border]:
    """The borders of the cells at most `window` positions off the diagonal, as stairs; none where all cells are within.

    `rows` and `columns` are the positions of the matrix's tokens, ascending.
    """
    places, kept = np.asarray(rows), np.asarray(columns)
    borders: list[Border] = []
    for edges in (np.searchsorted(kept, places - window, "left"), np.searchsorted(kept, places + window, "right")):
        stairs = [(edge - 0.5, row + half) for row, edge in enumerate(edges.tolist()) for half in (-0.5, 0.5)]
        # Only where there are cells on both sides of it, and the steps to the edges.
        inner = [place for place, (column, _) in enumerate(stairs) if -0.5 < column < len(kept) - 0.5]
        if inner:
            borders.append(stairs[max(0, inner[0] - 1) : inner[-1] + 2])
    return borders


def coarse_borders(cells: int, reach: float) -> list[Border]:
    """The borders of a window as straight lines across a matrix of `cells` cells that each hold several tokens.

    `reach` is the window in cells.
    """
    last = cells - 1
    return [
        [(-0.5, reach - 0.5), (last + 0.5 - reach, last + 0.5)],
        [(reach - 0.5, -0.5), (last + 0.5, last + 0.5 - reach)],
    ]


def side_by_side_limits(*matrices: np.ndarray) -> tuple[float, float]:
    """One colour scale for several matrices: the smallest and largest of all values."""
    return theme.limits_of(np.concatenate([matrix.ravel() for matrix in matrices] or [np.empty(0)]))


def as_cells(values: np.ndarray, low: float, high: float) -> bytes:
    """Values as bytes 0..255 for a canvas: 0 at `low`, 255 at `high`, clipped; NaN becomes 0. Row-major."""
    span = high - low if high > low else 1.0
    with np.errstate(invalid="ignore"):
        scaled = np.nan_to_num((values - low) / span)
    return np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8).tobytes()


def palette(count: int, colours: Colours = theme.SEQUENTIAL) -> np.ndarray:
    """`count` evenly spaced colours of a scale, by default of the sequential one, from dark to bright: uint8 [count, RGB]."""
    from plotly.colors import hex_to_rgb, sample_colorscale

    places = np.linspace(0, 1, count)
    if not isinstance(colours, str):
        stops, ends = [at for at, _ in colours], np.array([hex_to_rgb(colour) for _, colour in colours])
        return np.rint(np.stack([np.interp(places, stops, channel) for channel in ends.T], axis=1)).astype(np.uint8)
    sampled = sample_colorscale(colours, list(places), colortype="tuple")
    return np.rint(255 * np.array(sampled)).astype(np.uint8)


def palette_bytes(colours: Colours = theme.SEQUENTIAL) -> bytes:
    """A colour scale as 256 x RGB bytes, for a canvas."""
    return palette(256, colours).tobytes()


def shrink(values: np.ndarray, factor: int) -> np.ndarray:
    """[block, head, row, column] with fewer cells: each is the maximum of `factor` x `factor` cells.

    The last ones combine the cells remaining at the edge. One block at a time: all heads at 512 tokens are 151 MB.
    """
    starts = np.arange(0, values.shape[-1], factor)
    return np.stack(
        [np.maximum.reduceat(np.maximum.reduceat(block, starts, axis=-2), starts, axis=-1) for block in values]
    )


def mean_cells(values: np.ndarray, factor: int) -> np.ndarray:
    """[row, column] with fewer cells: each is the mean of `factor` x `factor` cells, the last ones of those that remain."""
    starts = [np.arange(0, size, factor) for size in values.shape]
    counts = [np.diff(np.append(start, size)) for start, size in zip(starts, values.shape, strict=True)]
    sums = np.add.reduceat(np.add.reduceat(values, starts[0], axis=0), starts[1], axis=1)
    return np.asarray(sums / (counts[0][:, None] * counts[1]))


def key_bars(
    values: np.ndarray,
    labels: Sequence[str],
    title: str,
    *,
    keys: str = "key",
    value: str = "attention",
    itself: int | None = None,
    decimals: int | None = None,
    by_sign: bool = False,
    compared: tuple[str, np.ndarray] | None = None,
    blue_adds: bool = False,
) -> go.Figure:
    """One value per key token [key], as bars; labels must be unique (see `axis_labels`).

    `keys` and `value` name the axes. The bar `itself` is that of the chosen token, and says so. Few bars have their numbers,
    with so many `decimals`. With `by_sign`, the colours are those of the signs: orange adds, or with `blue_adds` blue does.
    `compared` has the name of other values [key] and these: each is a line across its bar, NaN for none.
    """
    names, value = [theme.plain(label, 26) for label in labels], theme.plain(value)
    is_itself = np.arange(len(names)) == itself
    numbers = None if len(names) > NUMBERED else decimals
    written = [] if numbers is None else [theme.number(item, numbers) for item in values.tolist()]
    in_bars = numbers is not None and compared is None
    figure = go.Figure()
    for name, part, colour in (
        ("other tokens", ~is_itself, theme.BLUE if itself is None else theme.GREY),
        ("the token itself", is_itself, theme.BLUE),
    ):
        if part.any():
            figure.add_bar(
                x=[names[key] for key in np.flatnonzero(part)],
                y=np.asarray(values, np.float32)[part],
                name=name,
                marker_color=np.where((values[part] < 0) != blue_adds, theme.BLUE, theme.ORANGE) if by_sign else colour,
                text=[written[key] for key in np.flatnonzero(part)] if in_bars else None,
                textposition="outside" if in_bars else "none",
                textangle=0,
                cliponaxis=False,
                hovertemplate=f"%{{x}}<br>{value}: %{{y:.4f}}<extra></extra>",
            )
    if compared is not None:
        marks = {"symbol": "line-ew", "size": 12, "line": {"width": 2.5, "color": theme.ORANGE}}
        figure.add_scatter(
            x=names,
            y=np.asarray(compared[1], np.float32),
            mode="markers",
            marker=marks,
            name=compared[0],
            hovertemplate=f"%{{x}}<br>{theme.plain(compared[0])}: %{{y:.4f}}<extra></extra>",
        )
        if written:  # above both
            top = np.fmax(values, compared[1])
            figure.add_scatter(
                x=names,
                y=np.asarray(top, np.float32),
                mode="markers+text",
                marker={"size": 8, "opacity": 0},  # plotly moves a number by it, so that no line strikes through one
                text=written,
                textposition="top center",
                cliponaxis=False,
                hoverinfo="skip",
            )
    figure.update_layout(barmode="overlay")
    theme.legend_below(figure, shown=False)
    if itself is not None:
        y = values[itself] if compared is None else np.fmax(values, compared[1])[itself]
        at = {"x": names[itself], "y": float(y), "yshift": 30 if written else 12}
        figure.add_annotation(**at, text="itself", showarrow=False, font={"color": theme.BLUE})
    figure.update_xaxes(
        title=theme.plain(keys), type="category", categoryorder="array", categoryarray=names, **ticks(labels)
    )
    figure.update_yaxes(title=value)
    theme.finish(figure, title, 320 if itself is None else 380)
    if compared is not None:
        mark = f'<span style="color:{theme.ORANGE}">▬</span> {theme.plain(compared[0])}'
        figure.layout.title.text += f"{theme.BELOW_TITLE}{mark}</span>"
        figure.layout.margin.t += 22
    return figure
