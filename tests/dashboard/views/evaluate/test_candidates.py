"""What is said of the best layer and pooling: also where it is no better than others, nothing is found, or words do better."""

from __future__ import annotations

import numpy as np
import pytest

from components.model.trace import Pooling
from components.retrieval.evaluation.chance.best import BestOf, best_of
from dashboard.views.evaluate.rows import candidates
from dashboard.views.evaluate.rows.candidates import ComparedCells

CELLS: tuple[tuple[int, Pooling], ...] = ((0, "mean"), (0, "cls"), (1, "mean"), (1, "cls"))


def of(
    means: list[float], may: list[bool], first: list[float], halves: tuple[float, float] = (0.5, 0.5)
) -> ComparedCells:
    found = BestOf(np.array(means), np.array(first), np.array(may), *halves)
    low, high = (100 * np.clip(found.means + step, 0, 1) for step in (-0.05, 0.05))
    return ComparedCells(CELLS[: len(means)], low, high, found, (1, "mean"))


@pytest.mark.parametrize(
    ("measured", "levels", "said"),
    [
        (
            of([0.2, 0, 0.9, 0.5], [False, False, True, False], [0, 0, 1, 0]),
            [],
            "**Layer 1, Mean** (as published) has the best MRR, **90.0 %**: it would still win in 100 of 100 random samples "
            "of the queries. With all 4 compared at once, no other may be as good.",
        ),
        (
            of([0.2, 0, 0.6, 0.61], [False, False, True, True], [0, 0, 0.4, 0.6]),
            [],
            "**Layer 1, [CLS]** has the best MRR, **61.0 %**: it would still win in 60 of 100 random samples of "
            "the queries. With all 4 compared at once, only 1 other may be as good.",
        ),
        (
            of(
                [0.2, 0, 0.57, 0.61], [False, False, True, True], [0, 0, 0, 1]
            ),  # the comparison is stricter than the draws
            [],
            "**Layer 1, [CLS]** has the best MRR, **61.0 %**: it would still win in 100 of 100 random samples of "
            "the queries. With all 4 compared at once, only 1 other may be as good.",
        ),
        (
            of([0.6, 0, 0.6, 0.59], [True, False, True, True], [0.4, 0, 0.4, 0.2]),
            [],
            "**Layer 0, Mean** and another one share the best MRR, **60.0 %**: it would still win in 40 of 100 random samples "
            "of the queries. With all 4 compared at once, 2 others may be as good.",
        ),
        (
            of([0.6, 0, 0.6, 0.1], [True, False, True, False], [0.5, 0, 0.5, 0]),
            [("BM25", 75.0), ("TF-IDF", 61.04)],
            "**Layer 0, Mean** and another one share the best MRR, **60.0 %**: it would still win in 50 of 100 random samples "
            "of the queries. With all 4 compared at once, no further one may be as good. **BM25** finds more by words "
            "alone: 75.0 %.",
        ),
        (of([0, 0, 0, 0], [True] * 4, [0.25] * 4), [], "No layer and pooling finds anything: MRR is 0 % everywhere."),
        (of([0.5], [True], [1]), [("BM25", 20.0)], "**Layer 0, Mean** has MRR **50.0 %**."),
    ],
)
def test_the_finding_says_what_the_measures_say(
    measured: ComparedCells, levels: list[tuple[str, float]], said: str
) -> None:
    assert candidates.finding(measured, "MRR", levels) == said


def test_the_rows_are_in_order_with_what_may_be_the_best_and_what_choosing_costs() -> None:
    measured = of([0.2, 0, 0.6, 0.61], [False, False, True, True], [0, 0, 0.4, 0.6], (0.62, 0.6))
    drawn = candidates.rows(measured, "MRR", 40, candidates.colours(2))
    places = [drawn.index(name) for name in ("layer 1, [CLS]", "layer 1, Mean", "layer 0, Mean", "layer 0, [CLS]")]
    assert places == sorted(places)
    assert drawn.count(">clearly worse<") == 2
    assert "Pale bars: 95 % intervals. 2 of 4 are clearly worse: by more than chance" in drawn
    assert "On other queries the best loses 2.0 points" in drawn
    assert drawn.count("62.0 %") == drawn.count("60.0 %") == 1


def test_choosing_that_does_not_flatter_is_said() -> None:
    level, worse = of([0.6], [True], [1], (0.6, 0.6)), of([0.6], [True], [1], (0.58, 0.6))
    assert "On other queries the best does as well<" in candidates.rows(level, "MRR", 40, ["#000000"])
    assert "On other queries the best gains 2.0 points<" in candidates.rows(worse, "MRR", 40, ["#000000"])
    rounded = of([0.9674], [True], [1], (0.9674, 0.96460))
    drawn = candidates.rows(rounded, "MRR", 40, ["#000000"])
    assert drawn.count("96.7 %") == drawn.count("96.5 %") == 1
    assert "On other queries the best loses 0.2 points" in drawn  # not 0.3, by the numbers that nobody sees
    one = best_of(np.array([[1.0], [0.0]]))
    single = ComparedCells(CELLS[:2], np.zeros(2), np.full(2, 100.0), one)
    assert "half" not in candidates.rows(single, "MRR", 1, ["#000000"])  # one query has none
