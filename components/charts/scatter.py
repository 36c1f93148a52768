"""Maps of tokens: points in two or three dimensions, coloured by a property, for one layer or moving through the layers.

The `customdata` of every point is its row, which identifies a selection. Axes have no numbers, which would be meaningless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

LABELLED = 80  # points: up to this number each is labelled; with more, the most central ones
MOST_CHOSEN = 50  # selected points of a larger map that get labels
MOST_LABELS = 600  # labels of a larger map, most of which show only when the map is enlarged
CELLS = (7, 14)  # columns and rows of the grid for the labels that show at once: about a label's shape
SVG_POINTS = 1_500  # points: more are drawn by WebGL
TEXT_ON_HOVER = 12_000  # points: with more, the hover shows the token without its sentence
GROUPS = 12  # colours in a legend; all further groups share one
ROOM_FOR_LABELS = 1.12  # how much longer the axes are in projector mode, so that no large label is cut at the edge
REST = "all others"
SELECTED = "#D6246E"
PLAY = "#1F66A3"  # a darker BLUE: white type is read on it
HUES = (*theme.PALETTE, "#5B6BC0", "#A8683F", "#6A9A1F", "#C2477F", "#2A8F8F")
SAME_PLACE = 0.004  # of a map's extent: points that are nearer lie on one place
RING = 0.6  # how much larger a point is for each that lies on it
RINGS = 3  # points for which another becomes larger
TRAIL = "rgba(43, 123, 186, 0.4)"  # BLUE
# Lines to the nearest points of a map that moves, by whether they are dashed; as between points of maps that do not.
NEAREST = ({"color": theme.BLUE, "dash": "solid", "width": 1}, {"color": theme.GREY, "dash": "dash", "width": 2})
_STEP_MS = 700

Renderer = Literal["svg", "webgl"]


@dataclass(frozen=True, eq=False)
class Colours:
    """The colouring of the points: by a group each (`groups`), or by a number each (`numbers`)."""

    title: str
    groups: Sequence[str] | None = None
    numbers: np.ndarray | None = None
    hues: Sequence[str] = HUES  # one per group, in the order of the legend
    order: Sequence[str] = ()  # of the groups in the legend; by default by frequency
    shapes: Sequence[str] | None = None  # the symbol of each point; by default all have that of the map
    has_key: bool = True  # whether a legend names the groups; without it the page does


@dataclass(frozen=True, eq=False)
class PointTexts:
    """The texts of the points."""

    short: Sequence[str]  # the token
    long: Sequence[str]  # shown on hover
    important: frozenset[str] = frozenset()  # labels of a small map that are bold and never make room for others


@dataclass(frozen=True)
class MarkedPoints:
    """The points of the chosen word: in the product's blue in every map, larger than the others, with bold labels."""

    name: str
    rows: Sequence[int]


def token_map(
    points: np.ndarray,
    texts: PointTexts,
    colours: Colours,
    title: str,
    *,
    selected: Sequence[int] = (),
    renderer: Renderer = "svg",
    extent: float | None = None,
    symbol: str = "circle",
    height: int = 520,
    scale: float = 1.0,
    marked: MarkedPoints | None = None,
    places: np.ndarray | None = None,
) -> go.Figure:
    """Points [token, 2 or 3] as a figure. `extent` is half the axes' length, to compare maps; by default the points fill it.

    `scale` enlarges points and their labels, for a projector; for the rest of the type see `theme.enlarge`. Of points with
    shapes that lie on each other in `places` [token, dim], by default in the map, the lower ones are larger.
    """
    figure = go.Figure()
    for trace in _traces(points, texts, colours, selected, renderer, symbol, scale, marked, places):
        figure.add_trace(trace)
    if len(points) > LABELLED:
        for trace in _labels(points, texts, selected or (marked.rows if marked else ()), scale):
            figure.add_trace(trace)
    room = 1.0 if scale == 1 else ROOM_FOR_LABELS
    reach = (extent or fitting(points)) * room
    figure = _finish(figure, title, theme.plain(colours.title, 20), points.shape[1], reach, height)
    if extent is None and points.shape[1] == 2 and len(points):
        _fill(figure, points, room)
    return figure


def _fill(figure: go.Figure, points: np.ndarray, room: float) -> None:
    """Let points [token, 2] fill the frame; plotly lengthens one of the ranges, so that both axes have one scale."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2 * 1.16 * room + 1e-6
    figure.update_xaxes(range=[float(middle[0] - half[0]), float(middle[0] + half[0])])
    figure.update_yaxes(range=[float(middle[1] - half[1]), float(middle[1] + half[1])])


def moving_map(
    maps: dict[int, np.ndarray],
    texts: PointTexts,
    colours: Colours,
    title: str,
    *,
    selected: Sequence[int] = (),
    renderer: Renderer = "svg",
    height: int = 580,
    scale: float = 1.0,
    marked: MarkedPoints | None = None,
    nearest: Mapping[int, Sequence[tuple[int, int, bool]]] | None = None,
) -> go.Figure:
    """Maps [token, 2 or 3] by layer, with a slider and a button that plays them in order, on the same axes; the last is open.

    In two dimensions, with `nearest`, lines join its pairs of rows, as many at every layer, dashed ones those whose third is
    true, and the marked points trail the way that they have come from a ring at the first layer.
    """
    layers = sorted(maps)
    last = maps[layers[-1]]
    dims = last.shape[1]
    figure = token_map(
        last, texts, colours, title, selected=selected, renderer=renderer, extent=fitting(*maps.values()),
        height=height, scale=scale, marked=marked, places=np.concatenate([maps[layer] for layer in layers], axis=1),
    )  # fmt: skip
    if dims == 2 and len(last):
        _fill(figure, np.concatenate([maps[layer] for layer in layers]), 1.0 if scale == 1 else ROOM_FOR_LABELS)
    rows = [np.asarray(trace.customdata) for trace in figure.data]
    axes = "xyz"[:dims]
    kinds = [trace.type for trace in figure.data]
    joined = {} if dims == 3 or nearest is None else nearest
    trailed = marked.rows if joined and marked is not None else ()

    def lines(layer: int) -> list[dict[str, Any]]:
        if not joined:
            return []
        kinds = [_segments(maps[layer], joined[layer], is_dashed) for is_dashed in (True, False)]
        return [*kinds, _trails(maps, layer, trailed)]

    figure.frames = [
        go.Frame(
            name=str(layer),
            data=[
                {"type": kind, **{axis: maps[layer][own, column] for column, axis in enumerate(axes)}}
                for kind, own in zip(kinds, rows, strict=True)
            ]
            + [{"type": "scatter", **line} for line in lines(layer)],
            traces=list(range(len(rows) + len(lines(layer)))),
        )
        for layer in layers
    ]
    looks = (*(NEAREST[is_dashed] for is_dashed in (True, False)), {"color": TRAIL, "width": 3})
    for line, look in zip(lines(layers[-1]), looks, strict=False):
        figure.add_scatter(**line, **_LINES, line=look)
    redraw = set(kinds) != {"scatter"}  # only SVG points can be animated; the others are redrawn
    transition = {"duration": 0 if redraw else _STEP_MS - 100, "easing": "cubic-in-out"}
    play = {
        "frame": {"duration": _STEP_MS, "redraw": redraw},
        "transition": transition,
        "fromcurrent": True,
        "mode": "immediate",
    }
    stop = {"frame": {"duration": 0, "redraw": redraw}, "mode": "immediate", "transition": {"duration": 0}}
    above = {"y": 1.0, "yanchor": "bottom"}  # because the legend is below and may need several lines
    button = {
        **above,
        "type": "buttons",
        "showactive": False,
        "xanchor": "right",
        "x": 1,
        "bordercolor": PLAY,
    }
    figure.update_layout(
        # At the right, beside the layer; the style sheet keeps their colours while a pointer is on them.
        updatemenus=[
            {
                **button,
                "pad": {"b": round(70 * scale), "r": round(74 * scale)},
                "bgcolor": PLAY,
                "font": {"color": "#FFFFFF"},
                "buttons": [{"label": "▶ Play", "method": "animate", "args": [None, play]}],
            },
            {
                **button,
                "pad": {"b": round(70 * scale)},
                "bgcolor": "rgba(0,0,0,0)",
                "buttons": [{"label": "Pause", "method": "animate", "args": [[None], stop]}],
            },
        ],
        sliders=[
            {
                **above,
                "active": len(layers) - 1,
                "x": 0,
                "len": 1,
                "pad": {"b": 8},
                "currentvalue": {"prefix": "Layer ", "font": {"size": theme.FONT_SIZE * scale}},
                "steps": [
                    {
                        "label": str(layer),
                        "method": "animate",
                        "args": [[str(layer)], {**stop, "transition": transition}],
                    }
                    for layer in layers
                ],
            }
        ],
    )
    # By default the title would be in the middle of this margin, over the slider.
    figure.update_layout(
        margin_t=figure.layout.margin.t + 82,
        title={"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 12}},
    )
    return figure


def name_groups(figure: go.Figure, points: np.ndarray, groups: Sequence[str], scale: float = 1.0) -> go.Figure:
    """Write the name of each group of points [token, 2] above a point in its middle, the one that is freest of others.

    The middle half of its points: an outlier may stand among those of another group. The names are bold and in place of a
    legend: for up to six groups.
    """
    extent = max(float(np.ptp(points[:, axis])) for axis in (0, 1)) or 1.0
    for name in dict.fromkeys(groups):
        own = np.flatnonzero([group == name for group in groups])
        away = np.linalg.norm(points[own] - np.median(points[own], axis=0), axis=1)
        own = own[away <= np.median(away)]
        distances = np.linalg.norm(points[own][:, None] - points[None], axis=2)  # [own point, point]
        distances[np.arange(len(own)), own] = np.inf
        # Above a point, where the name stands, there should be nothing; and no other group near.
        above = (points[None, :, 1] - points[own][:, None, 1] > 0) & (
            np.abs(points[None, :, 0] - points[own][:, None, 0]) < 0.18 * extent
        )
        above[np.arange(len(own)), own] = False
        room = np.where(above, points[None, :, 1] - points[own][:, None, 1], extent).min(axis=1)
        best = own[int(np.argmax(np.minimum(room, 0.25 * extent) + 0.2 * np.minimum(distances.min(axis=1), extent)))]
        figure.add_annotation(
            x=float(points[best, 0]),
            y=float(points[best, 1]),
            text=f"<b>{theme.plain(name, 28)}</b>",
            showarrow=False,
            yshift=22 * scale,
            font={"size": 16 * scale},
        )
    if figure.layout.yaxis.range:  # room for a name above the topmost point
        low, high = figure.layout.yaxis.range
        figure.layout.yaxis.range = (low, high + 0.06 * extent)
    return figure


def join_pairs(
    figure: go.Figure,
    points: np.ndarray,
    pairs: Sequence[tuple[int, int, bool]],
    hues: tuple[str, str] = (theme.GREY, theme.VERMILION),
) -> go.Figure:
    """Lines below the points [token, 2] between pairs of rows; the third says whether a line is dashed.

    `hues` are those of the lines that are not dashed, and of the dashed ones.
    """
    lines = {
        is_dashed: {"color": hues[is_dashed], "dash": "dash" if is_dashed else "solid", "width": 2 if is_dashed else 1}
        for is_dashed in (False, True)
    }
    shapes = []
    for first, second, is_dashed in pairs:
        (x0, y0), (x1, y1) = points[[first, second], :2].astype(float).tolist()
        ends = {"x0": x0, "y0": y0, "x1": x1, "y1": y1}
        shapes.append({"type": "line", **ends, "layer": "below", "line": lines[is_dashed]})
    theme.add_shapes(figure, shapes)
    return figure


_RING_RADIUS = 0.025  # of a map's extent
_RING_ANGLES = np.linspace(0, 2 * np.pi, 17)
_LINES: dict[str, Any] = {"mode": "lines", "hoverinfo": "skip", "showlegend": False}


def _segments(
    points: np.ndarray, pairs: Sequence[tuple[int, int, bool]], is_dashed: bool
) -> dict[str, list[float | None]]:
    """Lines between the pairs of rows of points [token, 2] that are dashed or not, with a gap after each.

    The others have no length, so that there are as many lines at every layer, and one glides into the next.
    """
    ends = [(first, second if kind == is_dashed else first) for first, second, kind in pairs]
    return {
        axis: [place for pair in ends for place in (*(float(points[row, column]) for row in pair), None)]
        for column, axis in enumerate("xy")
    }


def turned(maps: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    """The maps [token, 2] turned together so that they are lowest: the frame is wide, and distances stay as they are."""
    places = np.concatenate(list(maps.values()))
    angles = np.radians(np.arange(0, 180, 5))
    heights = [np.ptp(places @ (np.sin(angle), np.cos(angle))) for angle in angles]
    sine, cosine = (function(angles[int(np.argmin(heights))]) for function in (np.sin, np.cos))
    turn = np.array([[cosine, sine], [-sine, cosine]], places.dtype)
    return {layer: points @ turn for layer, points in maps.items()}


def _trails(maps: Mapping[int, np.ndarray], until: int, rows: Sequence[int]) -> dict[str, list[float | None]]:
    """The ways of rows of points [token, 2] from the first layer to another, each from a ring on, with gaps between.

    Each has a place for every layer, those after `until` on the last one's, so that the lines of all layers are alike. Rings
    are lines: with a shape in the figure, plotly forgets what a lasso has selected.
    """
    layers = sorted(maps)
    radius = _RING_RADIUS * fitting(*maps.values())
    ring = radius * np.stack([np.cos(_RING_ANGLES), np.sin(_RING_ANGLES)])
    places: dict[str, list[float | None]] = {"x": [], "y": []}
    for row in rows:
        for column, axis in enumerate("xy"):
            start = float(maps[layers[0]][row, column])
            way = (float(maps[min(layer, until)][row, column]) for layer in layers)
            places[axis] += [*way, None, *(start + ring[column]).tolist(), None]
    return places


def fitting(*maps: np.ndarray) -> float:
    """Half the axes' length that contains all points of these maps, with a small margin."""
    return 1.08 * max((float(np.abs(points).max()) for points in maps if points.size), default=1.0) or 1.0


def _traces(
    points: np.ndarray,
    texts: PointTexts,
    colours: Colours,
    selected: Sequence[int],
    renderer: Renderer,
    symbol: str,
    scale: float,
    marked: MarkedPoints | None,
    places: np.ndarray | None,
) -> list[Any]:
    chosen = set(selected)
    result = []
    few = len(points) <= LABELLED
    larger = np.ones(len(points))  # where points lie on each other, the lower ones are larger, so that all are seen
    own = np.zeros(len(points), bool)
    if marked is not None and colours.groups is not None:  # where colours are numbers, blue would be one of them
        own[list(marked.rows)] = True
    groups = [(name, rows[~own[rows]], marker) for name, rows, marker in _groups(colours, len(points), scale)]
    groups = [group for group in groups if len(group[1])]
    if marked is not None and own.any():  # last, so that they lie above the others
        groups.append((marked.name, np.flatnonzero(own), {"color": theme.BLUE}))
    if few and colours.shapes is not None:
        order = np.concatenate([rows for _, rows, _ in groups])  # from the lowest point to the uppermost
        larger[order] = 1 + RING * _above((points if places is None else places)[order])
    for name, rows, marker in groups:
        is_marked = marked is not None and own[rows].all()
        chosen_points = [number for number, row in enumerate(rows) if int(row) in chosen]
        size = (9 if len(points) <= 400 else 6 if len(points) <= 5_000 else 3.5) * scale * (1.4 if is_marked else 1)
        sizes: Any = size if (larger[rows] == 1).all() else size * larger[rows]
        common: dict[str, Any] = {
            "name": theme.plain(name, 28),
            "mode": "markers+text" if few else "markers",
            "text": [_label(texts, row, bool(is_marked)) for row in rows] if few else None,
            "hovertext": [texts.long[row] for row in rows],
            "hoverinfo": "text",
            "customdata": rows.astype(np.int32),
            "showlegend": colours.has_key and colours.groups is not None and len(set(colours.groups)) > 1,
        }
        if points.shape[1] == 3:
            # Three-dimensional figures have no selected points: the chosen ones are larger and have their own colour.
            marker = marker | {
                "size": np.where(np.isin(rows, list(chosen)), 1.8, 1.0) * size * 0.75,
                "opacity": 0.85,
                "line": {"width": 0},
            }
            if chosen and "colorscale" not in marker:
                marker["color"] = [SELECTED if int(row) in chosen else marker["color"] for row in rows]
            coordinates = {axis: points[rows, column] for column, axis in enumerate("xyz")}
            result.append(go.Scatter3d(**common, **coordinates, marker=marker, textfont={"size": _label_size(scale)}))
            continue
        kind = go.Scattergl if renderer == "webgl" and not few else go.Scatter
        result.append(
            kind(
                **common,
                x=points[rows, 0],
                y=points[rows, 1],
                marker=marker
                | {"size": sizes, "opacity": 1.0 if is_marked else 0.85}
                | ({"line": {"width": 1.2, "color": "#FFFFFF"}} if is_marked and (larger[rows] > 1).any() else {})
                | {"symbol": symbol if colours.shapes is None else [colours.shapes[row] for row in rows]},
                # Alternately above and below, because neighbours in a sentence are often close together.
                textposition=[("top center", "bottom center")[int(row) % 2] for row in rows] if few else None,
                textfont={"size": _label_size(scale) * (1.15 if is_marked else 1)}
                | ({"color": theme.BLUE} if is_marked else {}),
                selectedpoints=chosen_points if chosen else None,
                selected={"marker": {"size": size * 1.35, "opacity": 1}},
                unselected={"marker": {"opacity": 0.15}, "textfont": {"color": "rgba(128,128,128,0.45)"}}
                if few
                else {"marker": {"opacity": 0.15}},
            )
        )
    return result


def _above(places: np.ndarray) -> np.ndarray:
    """How many of the later rows of `places` [row, dim] lie on the same place as each row; at most `RINGS`."""
    reach = SAME_PLACE * max(float(np.ptp(places, axis=0).max()), 1e-12)
    same = np.abs(places[:, None] - places[None]).max(axis=2) <= reach  # [row, row]
    return np.minimum(np.triu(same, 1).sum(axis=1), RINGS)


def _label_size(scale: float) -> float:
    """Pixels of a label's type: small beside other type, but in projector mode as large as that of other figures' axes."""
    return 11.0 if scale == 1 else theme.FONT_SIZE * scale * 0.92


def _label(texts: PointTexts, row: int, is_marked: bool = False) -> str:
    label = theme.plain(texts.short[row], 24)
    return f"<b>{label}</b>" if is_marked or texts.short[row].casefold() in texts.important else label


def central(points: np.ndarray) -> tuple[np.ndarray, int]:
    """The rows of points [token, 2 or 3] to label, the most important first; and how many of them have room at once.

    A grid is laid over the first two dimensions. Each cell with points gets a label: that of the point nearest to the
    mean of the cell's points, the fullest cell first. Finer grids then add labels for a map that is enlarged.
    """
    flat = points[:, :2]
    low = flat.min(axis=0)
    size = np.maximum(np.ptp(flat, axis=0), 1e-12)
    chosen: dict[int, None] = {}  # in order
    at_once = 0
    for finer in (1, 2, 4, 8):
        cells = np.array(CELLS) * finer
        column, row = np.minimum((flat - low) / size * cells, cells - 1).astype(int).T
        _, cell, counts = np.unique(column * cells[1] + row, return_inverse=True, return_counts=True)
        means = np.stack([np.bincount(cell, flat[:, axis]) / counts for axis in (0, 1)], axis=1)
        order = np.lexsort((np.square(flat - means[cell]).sum(axis=1), cell))
        nearest = order[np.searchsorted(cell[order], np.arange(len(counts)))]
        chosen |= dict.fromkeys(nearest[np.argsort(-counts, kind="stable")].tolist())
        at_once = at_once or len(chosen)
    return np.array(list(chosen)[:MOST_LABELS], dtype=int), at_once


def _labels(points: np.ndarray, texts: PointTexts, selected: Sequence[int], scale: float) -> list[Any]:
    """The labels of a large map; those without room are transparent, and the page shows them after a zoom.

    Those of the selected points come first. They are bold, so that the page lets others make room for them.
    """
    chosen = np.array(selected[:MOST_CHOSEN], dtype=int)
    rows, at_once = central(points)
    at_once -= int(np.isin(rows[:at_once], chosen).sum())
    rows = rows[~np.isin(rows, chosen)]
    names = [texts.short[row].casefold() for row in rows]
    is_first = np.array([number < at_once and names.index(name) == number for number, name in enumerate(names)])
    parts: list[tuple[str, np.ndarray, dict[str, str]]] = [
        ("chosen labels", chosen, {}),
        ("labels", rows[is_first], {}),
    ]
    if points.shape[1] == 2:
        parts.append(("more labels", rows[~is_first], {"color": "rgba(128,128,128,0)"}))
    kind = go.Scatter3d if points.shape[1] == 3 else go.Scatter
    return [
        kind(
            name=name,
            mode="text",
            text=[
                f"<b>{theme.plain(texts.short[row], 24)}</b>" if part is chosen else theme.plain(texts.short[row], 24)
                for row in part
            ],
            textposition="top center",
            textfont={"size": _label_size(scale), **font},
            customdata=part.astype(np.int32),
            hoverinfo="skip",
            showlegend=False,
            **{axis: points[part, column] for column, axis in enumerate("xyz"[: points.shape[1]])},
        )
        for name, part, font in parts
        if len(part)
    ]


def hues_of(groups: Sequence[str]) -> dict[str, str]:
    """The colour that a map gives each of some groups, without those that share one."""
    return dict(zip(_named(groups), HUES, strict=False))


def _named(groups: Sequence[str]) -> list[str]:
    """The groups that have a colour of their own: the most frequent ones first; numbered ones (sentences) in their order."""
    counted = Counter(groups)
    named = [name for name, _ in counted.most_common(GROUPS if len(counted) <= GROUPS else GROUPS - 1)]
    if all(name.isascii() and name.isdigit() for name in named):
        named.sort(key=int)
    return named


def _groups(colours: Colours, count: int, scale: float) -> list[tuple[str, np.ndarray, dict[str, Any]]]:
    """(name, rows, marker) of each trace; the most frequent groups have their own colour, the others share one."""
    if colours.groups is None:
        numbers = np.zeros(count) if colours.numbers is None else colours.numbers
        bar = {"title": {"text": colours.title, "side": "right"}, "thickness": 12 * scale, "len": 0.8}
        marker = {"color": numbers, "colorscale": theme.SEQUENTIAL, "colorbar": bar, "showscale": True}
        return [(colours.title, np.arange(count), marker)]
    named = _named(colours.groups)
    if colours.order:
        named.sort(key=list(colours.order).index)
    group_of = {name: group for group, name in enumerate(named)}
    groups = np.array([group_of.get(name, len(named)) for name in colours.groups])
    result = [
        (name, np.flatnonzero(groups == group), {"color": colours.hues[group % len(colours.hues)]})
        for group, name in enumerate(named)
    ]
    if (groups == len(named)).any():
        result.insert(0, (REST, np.flatnonzero(groups == len(named)), {"color": theme.GREY}))  # behind the others
    return result


def _finish(figure: go.Figure, title: str, legend: str, dims: int, extent: float, height: int) -> go.Figure:
    theme.finish(figure, title, height)
    hidden = {"showticklabels": False, "zeroline": False, "title": None, "ticks": "", "showgrid": False}
    if dims == 3:
        axis = {
            **hidden,
            "title": "",
            "range": [-extent, extent],
            "showspikes": False,
            "showgrid": True,
            "gridcolor": "#858B95",
            "gridwidth": 0.5,
            "showbackground": False,
        }
        scene = {f"{name}axis": axis for name in "xyz"}
        figure.update_layout(scene={**scene, "aspectmode": "cube", "camera": {"eye": {"x": 1.35, "y": 1.1, "z": 0.75}}})
    else:
        figure.update_xaxes(range=[-extent, extent], **hidden)
        # The same scale on both axes, so that shapes are not distorted.
        figure.update_yaxes(range=[-extent, extent], scaleanchor="x", **hidden)
        edge = {"color": "rgba(133,139,149,0.45)", "width": 1}
        figure.add_shape(type="rect", xref="paper", yref="paper", x0=0, x1=1, y0=0, y1=1, line=edge, layer="below")
    figure.update_layout(
        legend={
            "orientation": "h",
            "yanchor": "top",
            "y": -0.01,
            "x": 0,
            "itemsizing": "constant",
            "title": {"text": f"{legend} ", "side": "left"},
        },
        # Streamlit selects a clicked point only if the lasso is not active, so that dragging pans.
        dragmode="pan" if dims == 2 else "orbit",
        hovermode="closest",
        uirevision="map",  # zoom and rotation are kept while colours, marks and layers change
    )
    return figure
