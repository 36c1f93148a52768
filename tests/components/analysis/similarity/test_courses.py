"""Tests of the course of cosine curves: each kind, from curves made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.similarity.courses import course_of


@pytest.mark.parametrize(
    ("values", "kind", "turn"),
    [
        ([0.98, 0.97, 0.80, 0.75], "apart", None),
        ([1.0, 1.0, 0.999, 0.999], "unchanged", None),
        ([0.2, 0.25, 0.5, 0.52], "together", None),
        ([0.9, 0.7, 0.5, 0.7], "apart", 0.5),  # apart, and closer again
        ([0.7, 0.95, 0.9, 0.6], "apart", 0.95),  # closer first
        ([0.9, 0.6, 0.7, 0.89], "back", 0.6),
        ([0.9], "unchanged", None),  # a model without blocks
    ],
)
def test_a_curve_has_the_course_that_it_shows(values: list[float], kind: str, turn: float | None) -> None:
    course = course_of(np.array(values))
    assert (course.kind, course.turn) == (kind, turn)
    assert (course.first, course.last) == (values[0], values[-1])
