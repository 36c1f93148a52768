"""Lines of ranks and the cost of comparing all texts: what is drawn are the values given."""

from __future__ import annotations

import numpy as np

from components.charts import bars, theme
from components.charts.retrieval.reranking import (
    CostLine,
    LookPoint,
    pair_cost,
    quality_and_time,
    rank_changes,
    strong_lines,
)


def test_each_candidate_has_a_line_and_the_correct_one_is_on_top():
    texts = ["a <b>", "second text", "third"]
    before = np.array([3, 1, 2])
    figure = rank_changes(before, ["correct", "other", "topic"], texts, first="vectors", second="cross-encoder")
    lines = [(tuple(trace.x), tuple(trace.y)) for trace in figure.data]
    assert sorted(lines) == [((0, 1), (1, 2)), ((0, 1), (2, 3)), ((0, 1), (3, 1))]
    top = figure.data[-1]
    assert top.y == (3, 1)
    assert top.line.color == theme.VERMILION
    assert top.text[1] == " a &lt;b&gt;"
    assert "rank 3" in top.hovertemplate
    low, high = figure.layout.yaxis.range
    assert low > 3 > 1 > high  # the first rank is at the top
    assert [trace.showlegend for trace in figure.data] == [True] * 3


def test_of_many_candidates_the_correct_one_and_the_largest_moves_are_strong():
    count = 100
    before = np.random.default_rng(0).permutation(count) + 1
    kinds = ["other"] * 40 + ["correct"] + ["topic"] * 59
    strong = strong_lines(before, kinds)
    assert 40 in strong
    assert len(strong) == 7
    assert min(np.diff(strong)) >= 4  # their texts do not cover each other
    moves = np.abs(before - np.arange(1, count + 1))
    assert int(np.argmax(moves)) in strong
    figure = rank_changes(before, kinds, [f"text {number}" for number in range(count)], first="a", second="b")
    assert len(figure.data) == count
    shown = {trace.text[1].strip() for trace in figure.data if trace.text[1]}
    assert shown == {f"text {number}" for number in strong}
    assert [trace.opacity for trace in figure.data].count(1.0) == len(strong)
    assert [trace.opacity for trace in figure.data[-len(strong) :]] == [1.0] * len(strong)  # drawn above the faint ones
    assert figure.data[-1].name == "correct answer"
    names = [trace.name for trace in figure.data if trace.showlegend]
    assert sorted(names) == ["correct answer", "large move", "other candidate", "same topic"]
    assert not any(trace.cliponaxis for trace in figure.data)
    assert figure.layout.height <= 520


def test_the_largest_falls_are_strong_as_the_largest_rises_are():
    before = np.arange(1, 101)
    before[[10, 60]] = before[[60, 10]]  # ten and sixty change places: one rises as far as the other falls
    assert strong_lines(before, ["other"] * 100) == (10, 60)


def test_candidates_that_keep_their_ranks_are_no_moves():
    assert strong_lines(np.arange(1, 61), ["other"] * 59 + ["correct"]) == (59,)
    assert strong_lines(np.arange(1, 26), ["other"] * 25) == tuple(range(25))


def test_costs_are_drawn_on_logarithmic_axes_with_the_published_marks():
    sizes = np.array([10, 100])
    line = CostLine("single", np.array([0.1, 1.0]))
    figure = pair_cost(sizes, [line], [("published", 10_000, 5.0)], "Costs")
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    np.testing.assert_array_equal(figure.data[0].y, line.seconds)
    assert (figure.data[1].x[0], figure.data[1].y[0], figure.data[1].mode) == (10_000, 5.0, "markers")


def test_drops_keep_the_order_of_the_words_and_equal_words_apart():
    drops = np.array([0.5, -0.25, 1.0], np.float32)
    figure = bars.drop_bars(["the", "cat", "the"], drops, ["query", "query", "document"], "Drops")
    query, document = figure.data
    assert (list(query.y), list(query.x)) == ([1, 2], [0.5, -0.25])
    assert (list(document.y), list(document.x), document.name) == ([4], [1.0], "document")
    # As in all bars of left-out words: blue falls, orange rises.
    assert (list(query.marker.color), list(document.marker.color)) == ([theme.BLUE, theme.ORANGE], [theme.BLUE])
    assert (list(query.text), list(document.text)) == (["+0.50", "−0.25"], ["+1.00"])
    labels = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert labels == {0: "<b>query</b>", 1: "the", 2: "cat", 3: "<b>document</b>", 4: "the"}
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # from top to bottom
    many = bars.drop_bars(list("abcde"), np.array([0.2, -0.9, 0.1, 0.5, 0.3]), ["query"] * 5, "Drops")
    assert list(many.data[0].text) == ["", "−0.90", "", "+0.50", "+0.30"]  # the three largest, whatever their signs
    low, high = many.layout.xaxis.range
    assert low < -0.9
    assert high > 0.5


def test_a_second_look_is_compared_with_the_search_without_one():
    points = [
        LookPoint("no second look", 0, 70, 60, 78),
        LookPoint("<10>", 5, 80, 71, 88),
        LookPoint("50", 20, 82, 73, 89),
    ]
    figure = quality_and_time(points, "Quality and time")
    (line,) = figure.data
    assert (list(line.x), list(line.y)) == ([0, 5, 20], [70, 80, 82])
    assert list(line.marker.symbol) == ["circle-open", "circle", "circle"]
    assert (list(line.error_y.array), list(line.error_y.arrayminus)) == ([8, 8, 7], [10, 9, 9])
    assert [list(point) for point in line.customdata][1] == ["&lt;10&gt;", "80.0"]
    assert [shape.y0 for shape in figure.layout.shapes] == [70]  # the dashed line
