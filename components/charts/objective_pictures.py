"""What each training objective asks for, drawn: points that are pulled together and pushed apart, or a small diagram."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import plotly.graph_objects as go

from components.charts import theme

PULL, PUSH, PLAIN = theme.BLUE, theme.ORANGE, theme.GREY  # as the ties of the first rows (row_cards.py)
POINT = 13  # pixels from the middle of a point to where an arrow ends beside it
_HEIGHT = 330
_AWAY = 1.4  # how far an arrow leads that pushes a point away: all as far
_WIDE = (0.0, 9.0)
_HIGH = (0.0, 6.0)


class _Picture:
    """A plane of 9 by 6 on which points, arrows and boxes are placed; labels are short enough for a phone."""

    def __init__(self) -> None:
        self.figure = go.Figure()

    def point(self, x: float, y: float, label: str, colour: str, *, below: bool = False, faint: bool = False) -> None:
        self.figure.add_scatter(
            x=[x],
            y=[y],
            mode="markers+text",
            text=[label],
            textposition="bottom center" if below else "top center",
            marker={"size": 18, "color": colour},
            opacity=0.4 if faint else 1.0,
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
            name=label,
        )

    def arrow(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        colour: str,
        *,
        off: int = 0,
        start_off: int | None = None,
    ) -> None:
        """An arrow whose ends stand so many pixels `off` the two places: POINT where they are points."""
        self.figure.add_annotation(
            x=end[0],
            y=end[1],
            ax=start[0],
            ay=start[1],
            xref="x",
            yref="y",
            axref="x",
            ayref="y",
            showarrow=True,
            arrowhead=2,
            arrowsize=1.1,
            arrowwidth=3,
            arrowcolor=colour,
            standoff=off,
            startstandoff=off if start_off is None else start_off,
            text="",
        )

    def text(self, x: float, y: float, text: str, colour: str | None = None) -> None:
        font = {"size": theme.FONT_SIZE} | ({"color": colour} if colour else {})
        self.figure.add_annotation(x=x, y=y, text=text, showarrow=False, font=font)

    def box(self, x: float, y: float, text: str, *, wide: float = 2.2, high: float = 1.1, colour: str = PLAIN) -> None:
        self.figure.add_shape(
            type="rect",
            x0=x - wide / 2,
            x1=x + wide / 2,
            y0=y - high / 2,
            y1=y + high / 2,
            line={"color": colour, "width": 2},
        )
        self.text(x, y, text)

    def circle(self, x: float, y: float, radius: float, colour: str) -> None:
        self.figure.add_shape(
            type="circle",
            x0=x - radius,
            x1=x + radius,
            y0=y - radius,
            y1=y + radius,
            line={"color": colour, "width": 2, "dash": "dot"},
        )

    def pulls_and_pushes(self) -> None:
        """Explain the two colours of arrows."""
        for name, colour in (("pulled together", PULL), ("pushed apart", PUSH)):
            self.figure.add_scatter(x=[None], y=[None], mode="lines", line={"color": colour, "width": 4}, name=name)
        theme.legend_below(self.figure, shown=True)


def _in_batch(picture: _Picture, wrong: str = "", query: str = "query", answer: str = "answer") -> None:
    """One answer is pulled, those of other rows are pushed, and the row's own `wrong` answer where it has one."""
    picture.point(2.9, 3.0, query, theme.BLUE)
    picture.point(6.6, 3.0, f"its own {answer}", theme.BLUE)
    picture.arrow((6.6, 3.0), (2.9, 3.0), PULL, off=POINT)
    places = ((6.4, 1.3), (6.4, 4.8), (1.8, 4.8), (1.8, 1.3))
    _others(picture, (2.9, 3.0), f"another {answer}", places[bool(wrong) : 3 if wrong else None])
    if wrong:
        _others(picture, (2.9, 3.0), f"its own {wrong}", places[:1], PUSH)
        _others(picture, (2.9, 3.0), f"another {wrong}", places[3:])
    picture.pulls_and_pushes()


def _others(
    picture: _Picture,
    centre: tuple[float, float],
    label: str,
    places: tuple[tuple[float, float], ...],
    colour: str = PLAIN,
) -> None:
    """Points that are pushed away from another one: an arrow behind each says where it goes, and none leads to it."""
    for x, y in places:
        picture.point(x, y, label, colour, below=y > centre[1])  # the arrow stands on the other side
        far = _AWAY / ((x - centre[0]) ** 2 + (y - centre[1]) ** 2) ** 0.5
        end = (x + far * (x - centre[0]), y + far * (y - centre[1]))
        picture.arrow((x, y), end, PUSH, off=0, start_off=POINT)


def _two_labels(picture: _Picture, hardest_only: bool) -> None:
    picture.circle(2.6, 3.0, 2.1, theme.GREY)
    picture.text(1.0, 0.5, "margin")
    picture.point(2.6, 3.0, "first text", theme.BLUE)
    picture.point(6.9, 4.7, "label 1: belongs", PULL)
    picture.arrow((6.9, 4.7), (2.6, 3.0), PULL, off=POINT)
    picture.point(3.9, 2.0, "label 0", PUSH, below=True)
    picture.arrow((3.9, 2.0), (5.6, 1.45), PUSH, off=POINT)
    picture.point(7.3, 1.6, "label 0: far enough", PLAIN, below=True, faint=True)
    if hardest_only:
        picture.point(2.2, 4.2, "label 1: close", PLAIN, faint=True)
    picture.pulls_and_pushes()


def _contrastive(picture: _Picture) -> None:
    _two_labels(picture, hardest_only=False)


def _online_contrastive(picture: _Picture) -> None:
    _two_labels(picture, hardest_only=True)


def _angle(picture: _Picture) -> None:
    picture.arrow((1.0, 0.8), (6.4, 1.2), theme.BLUE)
    picture.arrow((1.0, 0.8), (4.2, 5.0), theme.ORANGE)
    picture.text(7.4, 1.2, "first text")
    picture.text(5.4, 5.1, "second text")
    picture.figure.add_shape(type="path", path="M 3.4,0.98 Q 3.4,2.1 2.4,2.65", line={"color": PLAIN, "width": 2})
    picture.text(5.0, 2.3, "cosine = people's score")


def _softmax(picture: _Picture) -> None:
    for y, name in ((4.9, "u: first"), (3.0, "v: second"), (1.1, "|u − v|")):
        picture.box(1.3, y, name)
        picture.arrow((2.4, y), (3.4, 3.0 + (y - 3.0) * 0.3), PLAIN)
    picture.box(4.5, 3.0, "classifier", high=2.2)
    for y, name in ((4.9, "entailment"), (3.0, "neutral"), (1.1, "contradiction")):
        picture.arrow((5.6, 3.0 + (y - 3.0) * 0.3), (6.4, y), PLAIN)
        picture.box(7.7, y, name, wide=2.55)


def _triplet(picture: _Picture) -> None:
    picture.point(2.4, 3.0, "anchor", theme.BLUE)
    picture.point(6.4, 4.8, "positive", PULL)
    picture.arrow((6.4, 4.8), (2.4, 3.0), PULL, off=POINT)
    picture.point(4.2, 1.9, "negative", PUSH, below=True)
    picture.arrow((4.2, 1.9), (6.6, 0.9), PUSH, off=POINT)
    picture.pulls_and_pushes()


def _twice(picture: _Picture) -> None:
    picture.point(2.9, 3.0, "sentence, pass 1", theme.BLUE)
    picture.point(6.6, 3.0, "sentence, pass 2", theme.BLUE)
    picture.arrow((6.6, 3.0), (2.9, 3.0), PULL, off=POINT)
    _others(picture, (2.9, 3.0), "another sentence", ((5.4, 4.8), (5.4, 1.3), (1.8, 4.8), (1.8, 1.3)))
    picture.pulls_and_pushes()


def _chain(picture: _Picture, *boxes: tuple[float, float, str, str]) -> None:
    """Boxes from left to right with arrows between them, each (x, width, text, colour)."""
    for (x, wide, _, _), (next_x, next_wide, _, _) in itertools.pairwise(boxes):
        picture.arrow((x + wide / 2, 3.0), (next_x - next_wide / 2, 3.0), PLAIN)
    for x, wide, text, colour in boxes:
        picture.box(x, 3.0, text, wide=wide, high=2.6, colour=colour)


def _restored(picture: _Picture) -> None:
    _chain(
        picture,
        (1.2, 2.1, "the … sat<br>on … hat", PLAIN),
        (3.5, 1.6, "encoder", theme.BLUE),
        (5.4, 1.4, "one<br>vector", theme.BLUE),
        (7.7, 2.4, "decoder:<br>the cat sat<br>on the hat", PULL),
    )


def _read_together(picture: _Picture, target: str) -> None:
    _chain(
        picture,
        (1.4, 2.6, "[CLS] first<br>[SEP] second<br>[SEP]", PLAIN),
        (3.9, 1.6, "encoder", theme.BLUE),
        (5.8, 1.4, "score", theme.BLUE),
        (7.9, 2.0, target, PULL),
    )


def _relevance(picture: _Picture) -> None:
    _read_together(picture, "label:<br>0 or 1")


def _regression(picture: _Picture) -> None:
    _read_together(picture, "people's<br>score")


_DRAW: dict[str, Callable[[_Picture], None]] = {
    "mnrl": _in_batch,
    "contrastive": _contrastive,
    "online-contrastive": _online_contrastive,
    "cosine": _angle,
    "softmax": _softmax,
    "triplet": _triplet,
    "simcse": _twice,
    "tsdae": _restored,
    "relevance": _relevance,
    "regression": _regression,
}


def objective_picture(key: str, title: str, wrong: str = "", query: str = "query", answer: str = "answer") -> go.Figure:
    """The picture of an objective by its key.

    For "mnrl" `query` and `answer` name the texts of a row, and `wrong` the wrong answer that it has of its own, if any.

    Raises KeyError for an objective that has no picture.
    """
    picture = _Picture()
    if key == "mnrl":
        _in_batch(picture, wrong, query, answer)
    else:
        _DRAW[key](picture)
    picture.figure.update_xaxes(visible=False, range=_WIDE, fixedrange=True)
    picture.figure.update_yaxes(visible=False, range=_HIGH, fixedrange=True)
    picture.figure.update_layout(dragmode=False)
    return theme.finish(picture.figure, title, _HEIGHT)
