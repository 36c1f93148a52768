from __future__ import annotations

import numpy as np
import pytest

from components.charts import theme
from components.charts.bars import count_bars
from components.charts.histogram import BINS, nearest_histogram, score_histogram, two_histograms


def test_only_counts_travel_and_the_chosen_are_marked():
    scores = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    chosen = np.argsort(-scores)[:7]
    figure = score_histogram(scores, chosen, "All scores")
    bars, marks = figure.data
    assert len(bars.y) == BINS
    assert sum(bars.y) == 100_000
    np.testing.assert_allclose(marks.x, scores[chosen])
    assert list(marks.customdata) == [1, 2, 3, 4, 5, 6, 7]
    low, high = figure.data[0].customdata[0]
    assert (low, high) == tuple(theme.number(edge) for edge in np.histogram_bin_edges(scores, bins=BINS)[:2].tolist())
    assert low.startswith("−")
    assert len(figure.to_json()) < 30_000
    assert figure.layout.yaxis.type == "log"


def test_equal_scores_and_none_at_all():
    assert sum(score_histogram(np.ones(5, np.float32), [0], "x").data[0].y) == 5
    assert len(score_histogram(np.empty(0, np.float32), [], "x").data[1].x) == 0


def test_lengths_as_bars():
    figure = count_bars(np.array([1.0, 3.0, 5.0]), np.array([4, 6]), "Lengths")
    np.testing.assert_array_equal(figure.data[0].x, [1.5, 3.5])  # 1 and 2, 3 and 4
    np.testing.assert_array_equal(figure.data[0].y, [4, 6])
    np.testing.assert_array_equal(figure.data[0].customdata, [[1, 2], [3, 4]])
    assert "to %{customdata[1]" in figure.data[0].hovertemplate
    figure = count_bars(np.arange(6), np.array([0, 0, 0, 1, 2]), "Lengths")
    assert list(figure.data[0].x) == [0, 1, 2, 3, 4]  # a bar stands over its number
    assert " to " not in figure.data[0].hovertemplate  # and names it alone
    assert figure.layout.xaxis.range == (1.5, 4.5)  # from below the shortest


def test_two_histograms_share_their_bins_and_hide_nothing():
    randomness = np.random.default_rng(0)
    scores = np.append(randomness.normal(size=300), [4.5, 5.0])
    relevant = np.arange(302) % 30 == 0
    figure = two_histograms(scores, relevant, "Scores", value="logit", x_title="score (logit)", threshold=6.0)
    others, hits = figure.data
    np.testing.assert_array_equal(others.x, hits.x)
    assert (sum(others.y), sum(hits.y)) == (291, 11)
    assert (others.name, hits.name) == ("not relevant (291)", "relevant (11)")
    assert others.marker.color != hits.marker.color
    (line,) = figure.layout.shapes
    assert line.x0 == line.x1 == 6.0
    assert others.x[-1] < 6.0 < others.x[-1] + others.width[-1]  # the axis reaches a threshold above all scores
    assert figure.layout.yaxis.type == "log"


@pytest.mark.parametrize("level", [0.5, 0.7, 0.9])  # as controls have it: where a bin ends
def test_blue_bars_count_the_sentences_above_the_threshold(level: float):
    cosines = level + np.array([-0.3, -0.005, -0.005, 0.005, 0.02, 0.095, np.nan])
    (bars,) = nearest_histogram(cosines, level, "Nearest").data
    assert sum(bars.y) == 6
    assert sum(bars.y[np.array(bars.marker.color) == theme.BLUE]) == 3
