"""Tests of the course of cosine curves: each kind, from curves made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.similarity.cosines import LayerCurves
from components.analysis.similarity.courses import course_of, courses_of


@pytest.mark.parametrize(
    ("values", "kind", "turn", "step"),
    [
        ([0.98, 0.97, 0.80, 0.75], "apart", None, (1, 2)),
        ([1.0, 1.0, 0.999, 0.999], "unchanged", None, (1, 2)),
        ([0.2, 0.25, 0.5, 0.52], "together", None, (1, 2)),
        ([0.9, 0.7, 0.5, 0.7], "apart", 0.5, (0, 1)),  # apart, and closer again
        ([0.7, 0.95, 0.9, 0.6], "apart", 0.95, (0, 1)),  # closer first
        ([0.9, 0.6, 0.7, 0.89], "back", 0.6, (0, 1)),
        ([0.9], "unchanged", None, (0, 0)),  # a model without blocks
    ],
)
def test_a_curve_has_the_course_that_it_shows(
    values: list[float], kind: str, turn: float | None, step: tuple[int, int]
) -> None:
    course = course_of(np.array(values))
    assert (course.kind, course.turn, course.step) == (kind, turn, step)
    assert (course.first, course.last) == (values[0], values[-1])


def test_curves_together_name_the_one_that_changes_most_and_leave_out_those_without_values() -> None:
    values = np.array([[0.9, 0.8], [0.9, 0.2], [np.nan, 0.5], [0.9, 0.9]])
    found = courses_of(LayerCurves(("a", "b", "c", "d"), ((0, 1),) * 4, values))
    assert found is not None
    assert found.labels == ("a", "b", "d")
    assert found.labels[found.largest] == "b"
    assert (found.count("apart"), found.count("unchanged")) == (2, 1)
    assert not found.are_alike
    assert courses_of(LayerCurves((), (), np.empty((0, 7)))) is None
    assert courses_of(LayerCurves(("a",), ((0, 1),), np.full((1, 7), np.nan))) is None
