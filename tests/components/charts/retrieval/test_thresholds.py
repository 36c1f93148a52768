"""The figures of a threshold: the steps enclose the average precision, and the four cells count every document once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve

from components.charts.retrieval.thresholds import confusion_matrix, threshold_curves

RECALL, PRECISION = np.array([100.0, 50.0, 0.0]), np.array([20.0, 60.0, 100.0])


def test_the_curve_has_steps_its_thresholds_chance_and_the_chosen_point():
    figure = threshold_curves(
        [("every threshold", RECALL, PRECISION)], 20.0, "t", thresholds=np.array([0.1, 0.9]), chosen=(50.0, 60.0)
    )
    curve, chance, chosen = figure.data
    assert list(curve.x) == [100, 50, 0]
    assert list(curve.y) == [20, 60, 100]
    assert list(curve.customdata) == ["0.100", "0.900", "above all scores"]
    assert set(chance.y) == {20}
    assert (chosen.x, chosen.y) == ((50,), (60,))
    assert figure.layout.xaxis.title.text == "recall (%)"


def test_a_wrong_first_hit_draws_no_line_from_0_to_100():
    recall, precision = np.array([100.0, 50.0, 0.0, 0.0]), np.array([20.0, 33.0, 0.0, 100.0])
    figure = threshold_curves([("every threshold", recall, precision)], 20.0, "t", thresholds=np.array([0.1, 0.5, 0.9]))
    curve = figure.data[0]
    assert (list(curve.x), list(curve.y)) == ([100, 50, 0], [20, 33, 33])
    assert list(curve.customdata) == ["0.100", "0.500", "above all scores"]


def test_several_curves_have_names_and_points():
    curves = [("test <b>", RECALL, PRECISION), ("training", RECALL, PRECISION)]
    figure = threshold_curves(curves, 20.0, "t", points=("11 points", RECALL, PRECISION))
    assert [trace.name for trace in figure.data] == ["test &lt;b&gt;", "training", "11 points", "by chance"]
    assert [trace.mode for trace in figure.data] == ["lines", "lines", "markers", "lines"]
    assert "threshold" not in figure.data[0].hovertemplate


def test_the_area_below_the_steps_is_the_average_precision():
    """A straight line would draw 0.55 for 100 pairs with one score, of which 10 are relevant."""
    rng = np.random.default_rng(0)
    for is_relevant, scores in ((np.arange(100) < 10, np.zeros(100)), (rng.random(60) < 0.3, rng.random(60).round(1))):
        precision, recall, _ = precision_recall_curve(is_relevant, scores)
        curve = threshold_curves([("test", 100 * recall, 100 * precision)], 10.0, "t").data[0]
        assert curve.line.shape == "hv"  # from point to point first across, then up or down
        area = sum((start - end) * height for start, end, height in zip(curve.x, curve.x[1:], curve.y, strict=False))
        assert area / 100**2 == pytest.approx(average_precision_score(is_relevant, scores), abs=1e-5)


def test_the_confusion_matrix_has_its_counts_in_their_cells():
    figure = confusion_matrix(8, 2, 3, 1187, "t", threshold="-1.59")
    (trace,) = figure.data
    cells = {
        (row, column): text.split("</b>")[0].removeprefix("<b>")
        for row, column, text in zip(trace.y, trace.x, trace.text, strict=True)
    }
    assert cells == {(0, 0): "8", (0, 1): "2", (1, 0): "3", (1, 1): "1,187"}
    assert trace.customdata[1] == "2 false negatives: relevant, but rejected"
    assert figure.layout.yaxis.range == (1.5, -0.5)  # relevant documents on top
    assert list(figure.layout.xaxis.ticktext) == ["accepted<br>(-1.59 or higher)", "rejected<br>(below -1.59)"]
    opacities = {(shape.y0 > 0, shape.x0 > 0): shape.opacity for shape in figure.layout.shapes}
    assert opacities[False, False] == opacities[True, True] > opacities[False, True] == opacities[True, False]
