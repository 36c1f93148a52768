"""The course of cosine curves over the layers: what moves apart, what comes together, what hardly changes, and where.

A sentence about a figure of curves is made of this record, so that it says what the curves show. A change of less than
FAINT is called none: in a figure of cosines it is hardly to be seen, and small differences of cosines mean nothing in models
whose vectors are all similar. The course says nothing of why a curve bends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

FAINT = 0.05  # of a cosine: less is no change
ALIKE = 0.95  # a pair that never falls below this cosine is hardly different at any layer

Kind = Literal["apart", "together", "back", "unchanged"]


@dataclass(frozen=True)
class CosineCourse:
    """One curve: how its cosine changes from the first layer to the last."""

    kind: Kind  # "back": it changes on the way and ends within FAINT of where it began
    first: float
    last: float
    turn: float | None  # the value farthest from the last layer's, if the curve comes back from it by FAINT or more
    turn_layer: int  # its layer; without such a value that of the last layer


def course_of(values: np.ndarray) -> CosineCourse:
    """The course of one curve [layer 0..L], without NaN and with at least one value."""
    curve = np.asarray(values, np.float64)
    first, last = float(curve[0]), float(curve[-1])
    farthest = int(np.argmax(np.abs(curve - first)))
    overshoot = abs(float(curve[farthest]) - last)
    turns = overshoot >= FAINT and abs(float(curve[farthest]) - first) >= FAINT
    kind: Kind = "unchanged"
    if abs(last - first) >= FAINT:
        kind = "apart" if last < first else "together"
    elif turns:
        kind = "back"
    if turns:
        return CosineCourse(kind, first, last, float(curve[farthest]), farthest)
    return CosineCourse(kind, first, last, None, len(curve) - 1)
