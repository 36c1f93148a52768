"""The figure of a failed search: two dots a word on one line, with names, sums, and numbers written as in print."""

from __future__ import annotations

import numpy as np

from components.charts import theme
from components.charts.retrieval.failures import occurrence_histogram, word_dots

RIGHT, RIVAL = np.array([0.2, 0.05, -0.01]), np.array([0.1, 0.125, -0.01])


def dots(figure):
    return [trace for trace in figure.data if trace.mode == "markers"]


def notes(figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def test_each_text_has_its_name_its_sum_and_a_dot_for_each_word_on_one_scale() -> None:
    figure = word_dots(["<b>", "long", "[SEP]"], RIGHT, RIVAL, "Title")
    assert [note.split("</span> ")[1] for note in notes(figure)[0].split("<br>")] == [
        "Right text <b>0.240</b>",
        "Rival <b>0.215</b>",
    ]
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "long", "[SEP]"]
    right, rival = dots(figure)
    np.testing.assert_allclose(right.x, RIGHT, atol=1e-7)
    np.testing.assert_allclose(rival.x, RIVAL, atol=1e-7)
    assert (right.xaxis, rival.xaxis) == (None, None)  # one scale
    assert [number for dot in (right, rival) for _, number in dot.customdata] == [
        *("0.200", "0.050", "−0.010"),
        *("0.100", "0.125", "−0.010"),
    ]


def test_a_line_joins_both_dots_in_the_colour_of_the_text_for_which_the_word_speaks() -> None:
    figure = word_dots(["a", "b", "c"], RIGHT, RIVAL, "Title")
    lines = {trace.line.color: (trace.x, trace.y) for trace in figure.data if trace.mode == "lines"}
    assert lines[theme.ORANGE] == ((0.05, 0.125, None), (1, 1, None))
    assert lines[theme.BLUE] == ((0.2, 0.1, None, -0.01, -0.01, None), (0, 0, None, 2, 2, None))
    assert notes(figure)[1:] == ["rival more by<br><b>−0.025</b>", "−0.100", "+0.075", "0.000"]


def test_ticks_are_round_and_within_the_dots() -> None:
    figure = word_dots(["a"], np.array([0.134]), np.array([-0.09]), "Title")
    assert list(figure.layout.xaxis.tickvals) == [-0.05, 0.0, 0.1]
    assert list(figure.layout.xaxis.ticktext) == ["−0.05", "0", "0.1"]
    flat = word_dots(["a"], np.zeros(1), np.zeros(1), "Title")
    assert list(flat.layout.xaxis.tickvals) == [0.0]


def test_the_scale_has_zero_also_for_negative_parts() -> None:
    low, high = word_dots(["a"], np.array([-0.13]), np.array([-0.09]), "Title").layout.xaxis.range
    assert low < -0.13
    assert 0 < high < 0.13
    assert word_dots(["a"], np.zeros(1), np.zeros(1), "Title").layout.xaxis.range[1] == 1


def test_the_sum_of_many_words_has_numbers_and_does_not_set_the_scale() -> None:
    figure = word_dots(["a", "b", "160 others"], np.array([0.1, 0.02, 0.5]), np.array([0.08, 0.03, 0.6]), "Title", True)
    assert [len(dot.x) for dot in dots(figure)] == [2, 2]
    assert figure.layout.xaxis.range[1] < 0.2
    assert notes(figure)[2:] == ["−0.020", "+0.010", "+0.100", "0.500 and 0.600"]
    assert "<b>0.620</b>" in notes(figure)[0]  # the sums above the dots count all words


def test_texts_are_counted_by_how_often_they_are_found() -> None:
    figure = occurrence_histogram(np.array([0, 1, 1, 3]), {"right text": 3, "rival": 1}, 1.25, "Title")
    every, right, rival, mean = figure.data
    assert (list(every.x), list(every.y)) == ([0, 1, 2, 3], [1, 2, 0, 1])
    assert "%{x:,} queries" in every.hovertemplate
    assert [(line.name, list(line.x), line.line.color) for line in (right, rival)] == [
        ("right text (3)", [3, 3], theme.BLUE),
        ("rival (1)", [1, 1], theme.ORANGE),
    ]
    assert (mean.name, list(mean.x)) == ("mean (1.2)", [1.25, 1.25])
    counts = np.arange(0, 121, 3)
    bars = occurrence_histogram(counts, {}, 60, "Title").data[0]  # of many counts each bar has several
    assert len(bars.y) == 60
    for (low, high), number in zip(bars.customdata, bars.y, strict=True):
        assert number == np.count_nonzero((counts >= low) & (counts <= high))
