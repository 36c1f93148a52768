"""Scores above the attention that they become, rotation, and inner dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from components.charts import theme
from components.charts.inside_blocks.inner_dimensions import activation_histogram, bins, closed_by_block, strongest_bars
from components.charts.inside_blocks.rotation import distance_curve, rotation_heatmap
from components.charts.inside_blocks.scores import score_bars


def test_parts_are_stacked_and_their_sum_is_marked() -> None:
    parts = {"content to content": np.array([1.0, -2.0]), "content to position": np.array([0.5, 3.0])}
    figure = score_bars(parts, np.array([0.6, 0.4]), ["0 <b>", "1 b"], "Title")
    first, second, total, attention = figure.data
    assert figure.layout.barmode == "relative"
    assert [list(first.y), list(second.y), list(total.y)] == [[1, -2], [0.5, 3], [1.5, 1]]
    np.testing.assert_allclose(attention.y, [0.6, 0.4], rtol=1e-6)
    assert list(first.x) == ["0 &lt;b&gt;", "1 b"]
    assert attention.yaxis == "y2"


def test_a_single_part_has_no_sum_and_no_legend() -> None:
    figure = score_bars({"content to content": np.array([1.0])}, np.array([1.0]), ["0 a"], "Title")
    assert [trace.name for trace in figure.data] == ["score", "attention"]
    assert figure.layout.showlegend is False
    (between,) = figure.layout.annotations
    assert between.text == "softmax ↓"
    assert figure.layout.yaxis2.domain[1] < between.y < figure.layout.yaxis.domain[0]


def test_few_scores_have_their_numbers_and_of_several_parts_the_sum_has() -> None:
    one = score_bars({"content to content": np.array([-0.774, np.nan])}, np.array([0.6, 0.4]), ["0 a", "1 b"], "Title")
    assert [list(trace.text) for trace in one.data] == [["−0.77", ""], ["0.60", "0.40"]]
    # The key with most attention is blue in both, whatever its score.
    assert [list(trace.marker.color) for trace in one.data] == [[theme.BLUE, theme.GREY]] * 2
    parts = {"content to content": np.array([1.0, -2.0]), "distance": np.array([0.5, 3.0])}
    several = score_bars(parts, np.array([0.6, 0.4]), ["0 a", "1 b"], "Title")
    assert [trace.text for trace in several.data[:2]] == [None, None]
    assert list(several.data[2].text) == ["1.50", "1.00"]
    many = score_bars({"content to content": np.zeros(17)}, np.zeros(17), [f"{at} a" for at in range(17)], "Title")
    assert {trace.text for trace in many.data} == {None}


def test_angles_are_drawn_by_their_cosine_and_said_in_degrees() -> None:
    figure = rotation_heatmap(np.array([[0.0, 0.0], [np.pi, np.pi / 2]]), "Title")
    np.testing.assert_allclose(figure.data[0].z, [[1, 1], [-1, 0]], atol=1e-7)
    assert figure.data[0].customdata.tolist() == [[0, 0], [180, 90]]


def test_the_texts_own_distance_is_marked_and_a_window_that_lies_within() -> None:
    offsets, scores = np.arange(-4, 5), np.arange(9.0)
    figure = distance_curve(offsets, scores, -2, "Title", window=2)
    assert (list(figure.data[1].x), list(figure.data[1].y)) == ([-2], [2.0])
    assert sorted(shape.x0 for shape in figure.layout.shapes) == [-2.5, 2.5]
    assert not distance_curve(offsets, scores, -2, "Title", window=64).layout.shapes
    assert not distance_curve(offsets, scores, -2, "Title").layout.shapes


def test_the_histogram_counts_all_and_greys_those_up_to_the_limit() -> None:
    figure = activation_histogram(np.array([0.0, 0.19, 0.21, -0.02, 4.0]), 0.2, "Title", value="gate")
    assert [note.text for note in figure.layout.annotations] == ["60 % at most 0.20", "40 % above 0.20"]
    assert [(bar.x0, bar.x1) for bar in figure.layout.shapes] == [(0, 0.6), (0.6, 1)]
    bars = figure.data[0]
    grey = np.array(bars.marker.color) == theme.GREY
    assert (sum(bars.y), bars.y[grey].sum()) == (5, 3)
    edges = np.concatenate([bars.x - np.array(bars.width) / 2, [bars.x[-1] + bars.width[-1] / 2]])
    np.testing.assert_allclose(edges[[0, -1]], [-0.02, 4.0])  # no further than the numbers
    assert sum(activation_histogram(np.zeros(3), 0.0, "Title", value="gate").data[0].y) == 3
    on_limit = activation_histogram(np.array([0.25, 0.25, 0.5, 1.0]), 0.25, "Title", value="gate")
    assert [note.text for note in on_limit.layout.annotations] == ["50 % at most 0.25", "50 % above 0.25"]


@pytest.mark.parametrize("most", np.random.default_rng(0).uniform(0.5, 9, 40).astype(np.float32).tolist())
def test_the_zeros_of_relu_and_the_strongest_lie_in_bars_that_are_seen(most: float) -> None:
    """5 % of the strongest lie a whole number of bars above the zeros: an edge on either may be a rounding beside it."""
    counts, edges = bins(np.array([0.0, 0.0, 0.4 * most, most]), 0.05 * most)
    assert (counts.sum(), counts[0], counts[-1]) == (4, 2, 1)
    assert np.diff(edges).min() > most / 100


def test_strongest_bars_say_what_was_multiplied() -> None:
    products = np.array([6.0, -2.0])
    gated = strongest_bars([7, 3], products, np.array([2.0, 1.0]), np.array([3.0, -2.0]), "Title").data[0]
    assert list(gated.x) == ["7", "3"]
    assert list(gated.marker.color) == [theme.BLUE, theme.ORANGE]  # positive, negative
    assert list(gated.customdata) == ["<br>gate 2.000 × value 3.000", "<br>gate 1.000 × value −2.000"]
    assert list(strongest_bars([7, 3], products, products, None, "Title").data[0].customdata) == ["", ""]


def test_shares_by_block_of_one_token_and_of_all() -> None:
    one, mean = closed_by_block(np.array([[0.5, 0.1], [0.2, 0.4]]), 1, "<i>", "Title", "closed").data
    np.testing.assert_allclose(one.y, [10, 40], rtol=1e-6)
    np.testing.assert_allclose(mean.y, [30, 30], rtol=1e-6)
    assert one.name == "&lt;i&gt;"
