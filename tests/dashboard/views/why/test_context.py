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
    said = context._with_interval(found, score)
    assert f"it would be higher than {interval} of the pairs (95 % interval)." in said
    assert "The pairs are made of 20,000 sentences" in said


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (0.9, "The cosine is **0.90**, higher than for any of 1,000 unrelated pairs"),
        (0.4985, "higher than for all but 2 of 1,000 unrelated pairs"),
        (0.5, "higher than for all but 1 of 1,000"),  # a tie counts against the score
        (0.4649, "higher than for 96 % of unrelated pairs"),
        (0.3, "The cosine is **0.30**, not above 95 % of unrelated pairs (mean 0.00, 95 % below 0.45)"),
        (-0.48, "lower than for 98 % of unrelated pairs"),
    ],
)
def test_the_place_of_a_score_in_words(monkeypatch: pytest.MonkeyPatch, score: float, said: str) -> None:
    """A high cosine is not called one where unrelated pairs reach it."""
    monkeypatch.setattr(context.state, "get", lambda name: "sample")
    found = of_pairs(np.linspace(-0.5, 0.5, 1_000), range(1_000), range(1_000))
    assert said in context.in_words(score, found)
    assert context.in_words(float("nan")) == "The cosine is **–**"
