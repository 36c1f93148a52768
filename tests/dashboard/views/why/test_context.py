"""How high a score is: the sentence with its interval."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.similarity.calibration import of_pairs
from dashboard.views.why import context


@pytest.mark.parametrize(
    ("score", "interval"), [(9_998.5, "99.9 to > 99.9 %"), (20_000, "> 99.9 to 100 %"), (5_000, "49.0 to 51.0 %")]
)
def test_no_end_of_an_interval_below_100_is_written_as_100(
    monkeypatch: pytest.MonkeyPatch, score: float, interval: str
) -> None:
    monkeypatch.setattr(context.state, "get", lambda setting: "sample")
    numbers = np.arange(10_000)
    found = of_pairs(numbers, 2 * numbers, 2 * numbers + 1)  # no two pairs have a sentence in common
    assert f"(95 % interval {interval})" in context._with_interval(found, score)
