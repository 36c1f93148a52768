"""The course of cosine curves over the layers: what moves apart, what comes together, what hardly changes, and where.

A sentence about a figure of curves is made of this record, so that it says what the curves show. A change of less than
FAINT is called none: in a figure of cosines it is hardly to be seen, and small differences of cosines mean nothing in models
whose vectors are all similar. The course says nothing of why a curve bends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from components.analysis.similarity.cosines import LayerCurves

FAINT = 0.05  # of a cosine: less is no change
ALIKE = 0.95  # a pair that never falls below this cosine is hardly different at any layer

Kind = Literal["apart", "together", "back", "unchanged"]


@dataclass(frozen=True)
class Course:
    """One curve: how its cosine changes from the first layer to the last."""

    kind: Kind  # "back": it changes on the way and ends within FAINT of where it began
    first: float
    last: float
    turn: float | None  # the value farthest from the last layer's, if the curve comes back from it by FAINT or more
    turn_layer: int  # its layer; without such a value that of the last layer
    step: tuple[int, int]  # the two layers between which it changes most in its direction

    @property
    def change(self) -> float:
        """How far it goes at most from where it began."""
        return max(abs(self.last - self.first), 0.0 if self.turn is None else abs(self.turn - self.first))


def course_of(values: np.ndarray) -> Course:
    """The course of one curve [layer 0..L], without NaN and with at least one value."""
    curve = np.asarray(values, np.float64)
    first, last = float(curve[0]), float(curve[-1])
    farthest = int(np.argmax(np.abs(curve - first)))
    overshoot = abs(float(curve[farthest]) - last)
    turns = overshoot >= FAINT and abs(float(curve[farthest]) - first) >= FAINT
    goal = float(curve[farthest]) if turns else last
    kind: Kind = "unchanged"
    if abs(last - first) >= FAINT:
        kind = "apart" if last < first else "together"
    elif turns:
        kind = "back"
    steps = np.diff(curve[: farthest + 1] if turns else curve) * (1 if goal >= first else -1)
    largest = int(np.argmax(steps)) if len(steps) else 0
    between = (largest, min(largest + 1, len(curve) - 1))
    return Course(kind, first, last, goal if turns else None, farthest if turns else len(curve) - 1, between)


@dataclass(frozen=True)
class Courses:
    """The courses of all curves of a figure."""

    labels: tuple[str, ...]  # one per curve
    courses: tuple[Course, ...]
    lowest: float  # of all values of all curves
    last_layer: int

    @property
    def are_alike(self) -> bool:
        """Whether the two things of each pair hardly differ at any layer."""
        return self.lowest >= ALIKE

    @property
    def largest(self) -> int:
        """The number of the curve that changes most."""
        return int(np.argmax([course.change for course in self.courses]))

    def count(self, kind: Kind) -> int:
        return sum(course.kind == kind for course in self.courses)


def courses_of(curves: LayerCurves) -> Courses | None:
    """The courses of the curves that have a value at every layer; None if there is none."""
    known = [row for row, values in enumerate(curves.values) if len(values) and not np.isnan(values).any()]
    if not known:
        return None
    values = curves.values[known]
    return Courses(
        tuple(curves.labels[row] for row in known),
        tuple(course_of(row) for row in values),
        float(values.min()),
        values.shape[1] - 1,
    )
