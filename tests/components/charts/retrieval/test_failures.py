"""The figure of a failed search: three groups of bars with names, sums, and numbers written as in print."""

from __future__ import annotations

import numpy as np

from components.charts import theme
from components.charts.retrieval.failures import word_bars

RIGHT, RIVAL = np.array([0.2, 0.05, -0.01]), np.array([0.1, 0.125, -0.01])


def test_each_group_has_its_name_and_its_sum() -> None:
    figure = word_bars(["<b>", "long", "[SEP]"], RIGHT, RIVAL, "Title")
    headings = [note.text for note in figure.layout.annotations]
    assert [heading.split("<br>")[0] for heading in headings] == [
        "Right text",
        "Rival",
        "Difference",
    ]
    assert [heading.split("<b>")[1].removesuffix("</b>") for heading in headings] == ["0.240", "0.215", "−0.025"]
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "long", "[SEP]"]
    right, rival, difference = (bar for bar in figure.data if bar.type == "bar")
    np.testing.assert_allclose(right.x, RIGHT, atol=1e-7)
    np.testing.assert_allclose(rival.x, RIVAL, atol=1e-7)
    np.testing.assert_allclose(difference.x, RIVAL - RIGHT, atol=1e-7)
    assert figure.layout.xaxis.range == figure.layout.xaxis2.range  # one scale
    widths = [axis.domain[1] - axis.domain[0] for axis in (figure.layout.xaxis, figure.layout.xaxis2)]
    assert abs(widths[0] - widths[1]) < 1e-9
    assert list(difference.marker.color) == [theme.BLUE, theme.ORANGE, theme.BLUE]


def test_the_differences_stand_opposite_to_their_bars_with_a_true_minus_sign() -> None:
    figure = word_bars(["a", "b", "c"], RIGHT, RIVAL, "Title")
    written = {
        (row, notes.textposition): text.strip("\u00a0")
        for notes in figure.data
        if notes.type == "scatter"
        for row, text in zip(notes.y.tolist(), notes.text, strict=True)
    }
    assert written == {(0, "middle right"): "−0.100", (1, "middle left"): "+0.075", (2, "middle right"): "0.000"}
    shown = [number for bar in figure.data if bar.type == "bar" for _, number in bar.customdata]
    assert shown == ["0.200", "0.050", "−0.010", "0.100", "0.125", "−0.010", "−0.100", "+0.075", "0.000"]


def test_ticks_are_round_and_within_the_bars() -> None:
    figure = word_bars(["a"], np.array([0.134]), np.array([-0.09]), "Title")
    assert list(figure.layout.xaxis.tickvals) == [-0.05, 0.0, 0.1]
    assert list(figure.layout.xaxis.ticktext) == ["−0.05", "0", "0.1"]
    flat = word_bars(["a"], np.zeros(1), np.zeros(1), "Title")
    assert list(flat.layout.xaxis.tickvals) == [0.0]


def test_the_scale_of_negative_parts_ends_at_zero() -> None:
    figure = word_bars(["a"], np.array([-0.13]), np.array([-0.09]), "Title")
    np.testing.assert_allclose(figure.layout.xaxis.range, (1.05 * -0.13, 0))
    assert tuple(word_bars(["a"], np.zeros(1), np.zeros(1), "Title").layout.xaxis.range) == (0, 1)


def test_the_sum_of_many_words_has_numbers_and_does_not_set_the_scale() -> None:
    figure = word_bars(["a", "b", "160 others"], np.array([0.1, 0.02, 0.5]), np.array([0.08, 0.03, 0.6]), "Title", True)
    assert [len(bar.x) for bar in figure.data if bar.type == "bar"] == [2, 2, 2]
    np.testing.assert_allclose(figure.layout.xaxis.range, (0, 1.05 * 0.1))
    np.testing.assert_allclose(figure.layout.xaxis3.range, (-1.1 * 0.02, 1.1 * 0.02))
    notes = [note.text for note in figure.layout.annotations]
    assert {"0.500", "0.600"} <= set(notes)
    assert any("<b>0.620</b>" in note for note in notes)  # the sums above the bars count all words
    written = [text.strip("\u00a0") for item in figure.data if item.type == "scatter" for text in item.text]
    assert sorted(written) == ["+0.010", "+0.100", "−0.020"]
