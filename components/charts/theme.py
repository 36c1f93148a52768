"""The common style of all figures: a colour-blind-safe palette, sizes, and text made safe for figures.

The hues follow Okabe and Ito (2008), with medium lightness so that each is visible on a white and on
a dark page (contrast of at least 3 to both, checked by a test). Curves differ in hue, dash and marker, so that no reader
depends on the hue alone.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from components.numbers import number as number  # the charts' own name for them
from components.numbers import signed as signed
from components.numbers import significant as significant

BLUE, ORANGE, GREEN, VERMILION = "#2B7BBA", "#C97F00", "#0E9A73", "#D9542B"
PURPLE, SKY, OLIVE, GREY = "#B5629E", "#3A99CF", "#8C8A1E", "#858B95"
# The two texts of a pair, wherever they differ in colour; the chips of a pair (assets/web/chips.css) have the same two.
TEXT_COLOURS = {"query": BLUE, "document": ORANGE}
PALETTE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, OLIVE)
DASHES = ("solid", "dash", "dot", "dashdot")
_FIRST_DASH = (0, 0, 0, 3, 3, 1, 1)  # of each hue
SYMBOLS = ("circle", "square", "diamond", "cross", "x", "star")
SEQUENTIAL = "Cividis"
# One hue, from about the page's colour on: shares, where most are small. On a dark page the lowest is dark.
PALE_TO_BLUE = ((0.0, "#E4EDF6"), (0.5, "#8FB6DA"), (1.0, "#1F5F9E"))
DARK_TO_BLUE = ((0.0, "#1D2732"), (0.5, "#3A6A99"), (1.0, "#8AC4F8"))
# Blue for negative, orange for positive, grey in the middle: readable on light and dark.
DIVERGING = ((0.0, BLUE), (0.5, "#D5D8DC"), (1.0, "#C96A00"))
# Of parts of a sum beside words shaded in blue: blue adds, orange takes away.
ADDING = ((0.0, "#C96A00"), (0.5, "#D5D8DC"), (1.0, BLUE))
PROJECTED = 1.35  # how much larger than on a page type is on a projector of 1440 × 900 pixels
FONT_SIZE = 14
END = "end"  # the name of annotations that stand at the ends of lines, some pixels from them
# What opens a legend under a title, in the same text; the title alone is what stands before it.
BELOW_TITLE = f'<br><span style="font-size:{FONT_SIZE}px;font-weight:400">'
_FORMATTED = re.compile(r"%\{([xyz]):([^{}|]*f)\}")  # a number of an axis in plotly's templates, with its format
KEY_HEIGHT = 22  # pixels of such a line
TITLE_WIDTH = 38  # characters: fits the width of a phone


def line_style(index: int) -> dict[str, str | float]:
    """Colour and dash of the n-th curve; the first 28 are all different. Its marker is that of `marker_style`.

    The first three hues differ enough for everyone. From the fourth on, a hue may look like an earlier one to a
    colour-blind person, so that the dash or the marker differs too.
    """
    hue = index % len(PALETTE)
    dash = index // len(PALETTE) + _FIRST_DASH[hue]
    return {"color": PALETTE[hue], "dash": DASHES[dash % len(DASHES)], "width": 2.5}


def marker_style(index: int, is_open: bool = False) -> dict[str, str | int]:
    """Shape and size of the n-th curve's points, which are filled or `open`."""
    return {"symbol": SYMBOLS[index % len(SYMBOLS)] + ("-open" if is_open else ""), "size": 7}


def plain(text: str, limit: int = 60) -> str:
    """Text as a label in a figure: markup is shown as typed, long text is truncated with an ellipsis."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return html.escape(short, quote=False)


def diverging(blue_adds: bool, dark: bool = False) -> tuple[tuple[float, str], ...]:
    """A diverging scale, in which orange or blue adds; on a dark page its middle is dark."""
    (low, first), (middle, grey), (high, last) = ADDING if blue_adds else DIVERGING
    return (low, first), (middle, "#2B323B" if dark else grey), (high, last)


def name_colours(figure: go.Figure, names: Mapping[str, str]) -> None:
    """Write below a finished figure's title what its colours mean: a square of each colour with its name."""
    squares = "\u2003".join(f'<span style="color:{colour}">■</span> {name}' for colour, name in names.items())
    layout = figure.layout
    layout.title.text += f"{BELOW_TITLE}{squares}</span>"
    layout.margin.t += KEY_HEIGHT
    layout.height += KEY_HEIGHT


def wrapped(title: str, width: int = TITLE_WIDTH) -> str:
    """A title in lines short enough for a phone, and of about the same length; markup is shown as typed."""
    lines = textwrap.wrap(title, width)
    longest_word = max(map(len, title.split()), default=width)
    for narrower in range(width - 1, longest_word - 1, -1):
        if len(shorter := textwrap.wrap(title, narrower)) > len(lines):
            break
        lines = shorter
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def one_hue(dark: bool) -> tuple[tuple[float, str], ...]:
    """The scale of one hue for a light or a dark page."""
    return DARK_TO_BLUE if dark else PALE_TO_BLUE


def limits_of(values: np.ndarray, limits: tuple[float, float] | None = None) -> tuple[float, float]:
    """The ends of a colour scale: `limits`, else the smallest and largest value; NaN is ignored."""
    known = values[~np.isnan(values)]
    return limits or ((float(known.min()), float(known.max())) if len(known) else (0.0, 1.0))


def heatmap(
    matrix: np.ndarray,
    x: Sequence[object],
    y: Sequence[object],
    value: str,
    limits: tuple[float, float] | None,
    **options: Any,
) -> go.Heatmap:
    """A matrix [row, column] as coloured cells; `value` names the quantity, `limits` fixes the colours, NaN stays empty."""
    low, high = limits_of(matrix, limits)
    # Plotly writes 0.0002 as "200μ".
    name = {"text": value, "side": "right", "font": {"size": FONT_SIZE}}
    bar = {"title": name, "thickness": 14, "exponentformat": "none"}
    colours = {"colorscale": SEQUENTIAL, "colorbar": bar}
    return go.Heatmap(z=np.asarray(matrix, np.float32), x=x, y=y, zmin=low, zmax=high, **colours | options)


def layer_axis(figure: go.Figure, layers: int) -> None:
    name = {"text": "layer (0 = embeddings, before any block)"}
    _set_axes(figure, ("xaxis",), name, tickmode="linear", dtick=1 if layers <= 14 else 2)


def annotate(figure: go.Figure, notes: Sequence[Mapping[str, object]]) -> None:
    """Add annotations, all at once: for each one that `add_annotation` adds, plotly checks all that are there again."""
    figure.layout.annotations = (*figure.layout.annotations, *notes)


def add_shapes(figure: go.Figure, shapes: Sequence[Mapping[str, object]]) -> None:
    """Add shapes, all at once, for the same reason."""
    figure.layout.shapes = (*figure.layout.shapes, *shapes)


def small(text: str) -> str:
    """A text in smaller type, which grows with the rest of a figure on a projector."""
    return f'<span style="font-size: 0.83em">{text}</span>'


def legend_below(figure: go.Figure, shown: bool | None = None) -> None:
    """The legend at the figure's lower edge, in the order of the curves.

    It stands on the edge, not under the axis: on a phone it has many lines, and grows upwards while the plot shrinks, so
    that it never covers the axis's title.
    """
    place = {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0, "xanchor": "left"}
    figure.layout.legend = place | {"traceorder": "normal"}
    figure.layout.showlegend, figure.layout.hovermode = shown, "closest"


def whiskers(dark: bool) -> str:
    """The colour of intervals that lie on filled bars and beside them, on a light or a dark page."""
    return "#E3E8EE" if dark else "#2A313B"


def interval(
    values: object, low: object, high: object, *, color: str = GREY, thickness: float = 1.5, width: float = 3
) -> dict[str, object]:
    """Plotly's error bars of intervals that need not be symmetric: from `low` to `high` [point] around the values."""
    middle = np.asarray(values, np.float64)
    return {
        "type": "data",
        "symmetric": False,
        "array": np.asarray(high, np.float64) - middle,
        "arrayminus": middle - np.asarray(low, np.float64),
        "color": color,
        "thickness": thickness,
        "width": width,
    }


def finish(figure: go.Figure, title: str, height: int) -> go.Figure:
    """Set title, height, margins and font size."""
    text, layout = wrapped(title), figure.layout
    layout.title = {"text": text, "x": 0, "xanchor": "left"}
    layout.height = height
    layout.margin = {"l": 8, "r": 12, "t": 46 + 20 * text.count("<br>"), "b": 8}
    layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)"
    for trace in figure.data:
        _print_minus(trace)
    _set_type_sizes(figure, 1.0, automargin=True)
    return figure


def _print_minus(trace: Any) -> None:
    """Let the hover write numbers with a minus sign as in print.

    Plotly writes a hyphen where a template has a format, "%{y:.3f}", and a minus sign where the axis has it.
    """
    template = trace.hovertemplate if "hovertemplate" in trace else None
    if not isinstance(template, str):
        return
    for letter, digits in dict(_FORMATTED.findall(template)).items():
        trace[f"{letter}hoverformat"] = digits
        template = template.replace(f"%{{{letter}:{digits}}}", f"%{{{letter}}}")
    trace.hovertemplate = template


def enlarge(figure: go.Figure, scale: float) -> go.Figure:
    """Enlarge the type of a finished figure, and the room for it; for a projector."""
    if scale == 1.0:  # as most figures are
        return figure
    layout = figure.layout
    grown = scale / PROJECTED  # of what a larger window has more, type takes half, so that figures have the rest
    layout.height = round(layout.height * (1 + (PROJECTED - 1) / 2) * (grown if grown < 1 else 2 * grown - 1))
    layout.margin.t = round(layout.margin.t * scale)
    layout.margin.b = round(layout.margin.b * scale)
    layout.margin.r = round(layout.margin.r * scale)  # where curves have labels at their ends
    _set_type_sizes(figure, scale)
    layout.legend.font.size = FONT_SIZE * scale
    for label in layout.annotations:
        if label.name == END:  # as far from each other as their type is high
            label.ax, label.ay = label.ax * scale, label.ay * scale
    for trace in figure.data:
        if isinstance(trace, go.Heatmap) and trace.colorbar.title.font.size:
            trace.colorbar.title.font.size = FONT_SIZE * scale
    return figure


def _set_type_sizes(figure: go.Figure, scale: float, **of_axes: object) -> None:
    """Set the sizes of type, and further values of the axes."""
    layout, font = figure.layout, {"size": FONT_SIZE * scale}
    layout.font, layout.hoverlabel.font = font, font
    layout.title.font = {"size": FONT_SIZE * scale * 1.15}
    _set_axes(figure, ("xaxis", "yaxis"), {"font": font}, tickfont={"size": FONT_SIZE * scale * 0.92}, **of_axes)


def _set_axes(figure: go.Figure, begins: tuple[str, ...], title: Mapping[str, object], **values: object) -> None:
    """Set values of the axes whose names begin so, and of their titles: "xaxis", "xaxis2" and so on.

    Each axis as a whole: value by value it takes twice as long, with `update_xaxes` ten times.
    """
    layout = figure.layout
    for name in tuple(layout):
        if name.startswith(begins):
            own = layout[name].to_plotly_json()
            layout[name] = own | values | {"title": own.get("title", {}) | title}
