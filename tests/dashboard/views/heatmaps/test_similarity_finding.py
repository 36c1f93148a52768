"""What the matrix of sentences says: which pairs are most and least similar, and which are no more so than unrelated ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.analysis.similarity.sentences import SentenceSimilarity
from dashboard.views.heatmaps import similarity


def said(limit: float, *cosines: float) -> str:
    """Of two or three sentences with these cosines of 1–2, 1–3, 2–3."""
    count = 2 if len(cosines) == 1 else 3
    matrix = np.eye(count)
    matrix[np.triu_indices(count, 1)] = cosines
    baseline: Any = SimpleNamespace(
        is_measured=True, raw=SimpleNamespace(high=np.array([0.0, limit])), calibration=lambda layer: None
    )
    found = SentenceSimilarity(matrix + np.triu(matrix, 1).T)
    return similarity._finding(found, baseline, 1, False, ("",) * count)


@pytest.mark.parametrize(
    ("limit", "cosines", "expected"),
    [
        (
            0.22,
            (0.21, 0.44, 0.19),
            "At layer 1 sentences 1 and 3 are most similar (0.44), 2 and 3 least (0.19); 95 % of unrelated pairs lie below "
            "0.22, as do 2 of these 3.",
        ),
        (0.2, (0.21, 0.44, 0.19), "lie below 0.20, as does 1 of these 3."),
        (0.1, (0.21, 0.44, 0.19), "least (0.19); 95 % of unrelated pairs lie below 0.10."),  # none is as low
        (0.5, (0.21, 0.44, 0.19), "lie below 0.50, as do all of these 3."),  # the most similar is nothing special
        (
            0.9,
            (0.805, 0.81, 0.802),
            "all pairs are about equally similar, 0.80 to 0.81; 95 % of unrelated pairs lie below",
        ),
        (0.22, (0.44,), "At layer 1 the two sentences have a cosine of 0.44; 95 % of unrelated pairs lie below 0.22."),
        (0.22, (0.14,), "lie below 0.22, as does this pair."),
        (0.414, (0.412, 0.44, 0.41), "2 and 3 least (0.41); 95 % of unrelated pairs lie below 0.41."),  # as written
    ],
)
def test_pairs_that_are_no_more_alike_than_unrelated_ones_are_counted(
    limit: float, cosines: tuple[float, ...], expected: str
) -> None:
    assert expected in said(limit, *cosines)
