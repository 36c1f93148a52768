"""The figure of approximate search: how many exact hits each way finds, by the bytes of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from components.charts import theme

_WIDTHS = (270, 950)  # pixels of the plot on a phone and on a laptop
_HEIGHT = 300  # pixels of the plot
_LINE, _CHARACTER = 17, 7.2  # pixels of a label's height and of one of its characters, at the size of _TYPE
_TYPE = 12.5
_DOT = 5  # pixels from the middle of a point to its edge
_MARGIN = 0.2  # decades on both sides of the outermost points, for their labels
_APART = 1.6  # times as many bytes: as near as two numbers on the axis may be
# Where a label may stand, in pixels from its point: near first. Downwards is positive.
_PLACES = sorted(
    [
        *((across, down) for down in (-16, 16, *range(-112, 113, 16)) for across in (0, -48, 48, -92, 92)),
        (-64, 0),  # beside it
        (64, 0),
    ],
    key=lambda place: (abs(place[0]) * 0.8 + abs(place[1]), place),
)


@dataclass(frozen=True)
class Point:
    """One way to search."""

    name: str
    family: str  # points of a family have one colour and are joined by a line
    bytes_per_vector: float
    recall: float  # per cent
    milliseconds: float | None = None  # median per query


def recall_by_bytes(points: Sequence[Point], title: str, *, k: int, scale: float = 1.0) -> go.Figure:
    """A labelled point per way: Recall@k against exact search by the bytes of a vector (logarithmic)."""
    figure = go.Figure()
    low, high = _range(points)
    families = list(dict.fromkeys(point.family for point in points))
    for number, family in enumerate(families):
        own = [point for point in points if point.family == family]
        figure.add_scatter(
            x=[point.bytes_per_vector for point in own],
            y=[point.recall for point in own],
            mode="lines+markers" if len(own) > 1 else "markers",
            line=theme.line_style(number) | {"width": 1.5},
            marker=theme.marker_style(number) | {"size": 10},
            name=theme.plain(own[0].name),
            showlegend=False,
            text=[_hover(point, k) for point in own],
            hovertemplate="%{text}<extra></extra>",
        )
    labelled = _labelled(points, _HEIGHT / (high - low))
    for point, (across, down) in zip(labelled, _places(points, labelled, low, high, scale), strict=True):
        figure.add_annotation(
            x=float(np.log10(point.bytes_per_vector)),
            y=point.recall,
            text=theme.plain(point.name),
            ax=across,
            ay=down,
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=theme.GREY,
            standoff=6,
            font={"size": _TYPE * scale, "color": theme.line_style(families.index(point.family))["color"]},
        )
    sizes = [point.bytes_per_vector for point in points]
    ticks: list[float] = []
    for size in sorted(sizes):
        if not ticks or size > _APART * ticks[-1]:
            ticks.append(size)
    figure.update_xaxes(
        title="bytes per vector in memory (logarithmic)",
        type="log",
        range=[np.log10(min(sizes)) - _MARGIN, np.log10(max(sizes)) + _MARGIN],
        tickvals=ticks,
        ticktext=[f"{tick:,.0f}" for tick in ticks],
        tickangle=0,
        zeroline=False,
    )
    shown = [tick for tick in range(0, 101, 10 if high - low < 75 else 20) if tick >= low]
    figure.update_yaxes(title=f"Recall@{k} (%)", range=[low, high], tickvals=shown, zeroline=False)
    return theme.finish(figure, title, 400)


def _range(points: Sequence[Point]) -> tuple[float, float]:
    """The ends of the vertical axis, with room for labels above 100 and below the lowest point."""
    span = max(20.0, 100 - min(point.recall for point in points))
    return max(-0.12 * span, 100 - 1.15 * span), 100 + 0.14 * span


def _hover(point: Point, k: int) -> str:
    recall = theme.number(point.recall, 2)
    text = f"{theme.plain(point.name)}<br>Recall@{k} {recall} %<br>{point.bytes_per_vector:,.0f} bytes per vector"
    return text if point.milliseconds is None else f"{text}<br>{theme.number(point.milliseconds)} ms per query (median)"


def _labelled(points: Sequence[Point], pixels: float) -> list[Point]:
    """The points that have a label; those of a family that lie closer than a label is high, `pixels` a per cent, share one."""
    found: list[Point] = []
    for point in points:
        last = found[-1] if found else None
        if (
            last is not None
            and (last.family, last.bytes_per_vector) == (point.family, point.bytes_per_vector)
            and abs(point.recall - last.recall) * pixels < _LINE
        ):
            found[-1] = replace(last, name=f"{last.name}, {point.name.split()[-1]}", recall=point.recall)
        else:
            found.append(point)
    return found


def _places(
    points: Sequence[Point], labelled: Sequence[Point], low: float, high: float, scale: float
) -> list[tuple[int, int]]:
    """Where each label stands, in pixels from its point: beside no point and no other label, on any width.

    Where no place is free, the one that covers least is taken.
    """
    logs = np.log10([point.bytes_per_vector for point in points])
    start, length = float(logs.min()) - _MARGIN, float(np.ptp(logs)) + 2 * _MARGIN

    def placed(some: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
        """Shares of the width, and pixels from the top."""
        x = (np.log10([point.bytes_per_vector for point in some]) - start) / length
        return x, _HEIGHT * (high - np.array([point.recall for point in some])) / (high - low)

    share, y = placed(points)
    own_share, own_y = placed(labelled)
    taken: list[tuple[int, int, int]] = []  # number of the label, and its place
    lines = _line_points(points, share, y)
    for number in np.lexsort((own_share, own_y)).tolist():

        def covered(place: tuple[int, int], number: int = number) -> float:
            total = 0.0
            for width in _WIDTHS:
                x, own_x = share * width, own_share * width
                box = _box(labelled[number].name, own_x[number] + place[0], own_y[number] + place[1], scale)
                total += max(0.0, -box[0]) + max(0.0, box[2] - width) + max(0.0, box[3] - _HEIGHT) + max(0.0, -box[1])
                own = _stroke(own_x[number], own_y[number], *place)
                for other, across, down in taken:
                    theirs = _box(labelled[other].name, own_x[other] + across, own_y[other] + down, scale)
                    total += _common(box, theirs) + sum(_common(theirs, part) for part in own)
                    total += sum(_common(box, part) for part in _stroke(own_x[other], own_y[other], across, down))
                others = [at for at in zip(x, y, strict=True) if at != (own_x[number], own_y[number])]
                total += sum(
                    _common(part, (across - _DOT, down - _DOT, across + _DOT, down + _DOT))
                    for part in own
                    for across, down in others
                )
                for across, down in [*zip(x, y, strict=True), *((part * width, line_y) for part, line_y in lines)]:
                    total += _common(box, (across - _DOT, down - _DOT, across + _DOT, down + _DOT))
            return total

        best = min(_PLACES, key=lambda place: (covered(place) > 0, covered(place)))
        taken.append((number, *best))
    return [(across, down) for _, across, down in sorted(taken)]


def _line_points(points: Sequence[Point], share: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """Places on the lines that join the points of a family: the share of the width, and pixels from the top."""
    found = []
    for family in dict.fromkeys(point.family for point in points):
        own = [number for number, point in enumerate(points) if point.family == family]
        for one, other in pairwise(own):
            for part in np.linspace(0, 1, 9):
                found.append(
                    (float(share[one] + part * (share[other] - share[one])), float(y[one] + part * (y[other] - y[one])))
                )
    return found


Box = tuple[float, float, float, float]  # left, top, right, bottom


def _stroke(x: float, y: float, across: float, down: float) -> list[Box]:
    """Parts of the line from a point to its label, up to where the label begins."""
    places = [(x + part * across, y + part * down) for part in (0.25, 0.4, 0.55, 0.7, 0.85)]
    return [(at_x - 2, at_y - 2, at_x + 2, at_y + 2) for at_x, at_y in places]


def _box(text: str, x: float, y: float, scale: float) -> Box:
    width, height = _CHARACTER * len(text) * scale, _LINE * scale
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _common(one: Box, other: Box) -> float:
    """The area that two boxes have in common."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, across) * max(0.0, down)
