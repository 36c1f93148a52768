"""The strips and curves of minimal pairs hold the values given."""

from __future__ import annotations

import itertools

import numpy as np
import plotly.graph_objects as go

from components.charts import theme
from components.charts.minimal_pairs import Strip, shares_by_layer, value_strips
from components.charts.retrieval.evaluation import Curve
from components.charts.why.end_labels import label_ends


def test_each_strip_has_its_points_its_median_and_a_ring_for_the_chosen_row():
    strips = [
        Strip("Paraphrases", np.array([0.5, 0.7, 0.6]), ["p", "q", "r"], [0, 1, 2]),
        Strip("Names", np.array([0.9, np.nan, 0.8]), ["s", "t", "u"], [3, 4, 5]),
        Strip("Empty", np.array([np.nan]), ["v"], [-2]),
    ]
    figure = value_strips(strips, "Cosines", value="cosine", level=(0.6, "median"), chosen=5)
    points, medians = figure.data[0:4:2], figure.data[1:4:2]
    np.testing.assert_allclose(points[0].x, [0.5, 0.7, 0.6])
    assert list(points[1].customdata) == [3, 5]  # NaN is not drawn
    assert list(points[1].text) == ["s", "u"]
    assert list(points[1].marker.line.width) == [0, 3]
    assert [median.x[0] for median in medians] == [0.6, np.median([0.9, 0.8])]
    assert all((np.abs(trace.y - number) < 0.4).all() for number, trace in enumerate(points))
    assert len(figure.data) == 5  # the empty strip has no median
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first strip is on top
    assert figure.layout.shapes[0].x0 == 0.6


def test_a_strip_has_its_median_at_its_right_and_the_level_ends_above_the_unrelated():
    strips = [
        Strip("Same", np.array([0.5, 0.7, 0.6]), ["p", "q", "r"], [0, 1, 2], has_number=True),
        Strip("Names", np.array([0.9, 0.8]), ["s", "t"], [3, 4], note="65 %", has_number=True),
        Strip("Unrelated", np.array([0.1, 0.2]), ["u", "v"], [-2, -2], is_faint=True),
    ]
    figure = value_strips(
        strips, "Cosines", value="cosine", level=(0.6, "same meaning"), notes=("typical", "% <nearer>")
    )
    beside = {item.y: item.text for item in figure.layout.annotations if item.xref == "paper" and item.yref != "paper"}
    assert beside == {0: "<b>0.60</b>", 1: "<b>0.85</b> 65 %"}
    assert "<b>typical</b><br>% &lt;nearer&gt;" in [item.text for item in figure.layout.annotations]
    numbered = value_strips(
        [Strip("Names (of <a>) (2)", np.array([0.9, 0.8]), ["s", "t"], [3, 4])], "Cosines", value="cosine"
    )
    assert list(numbered.layout.yaxis.ticktext) == ["Names (of &lt;a&gt;)"]
    assert figure.layout.shapes[0].y1 == 1.5  # the last row, of unrelated pairs, has a text there


def test_the_line_of_chance_goes_through_all_layers():
    values = np.array([50.0, 75.0, 100.0])
    curves = [Curve("probe", values, values - 5, values), Curve("control", values / 2)]
    figure = shares_by_layer(
        curves,
        [0, 1, 2],
        "Probe",
        y_title="%",
        colours=["#123456", "#654321"],
        names=["read 100 %", "by heart"],
        chosen=1,
    )
    chance = figure.data[-1]
    assert (list(chance.x), list(chance.y)) == ([0, 2], [50, 50])
    assert [trace.name for trace in figure.data] == ["interval of probe", "probe", "control", "guessing (50 %)"]
    np.testing.assert_allclose(figure.data[1].y, values)
    np.testing.assert_allclose(figure.data[0].y, [*values, *(values - 5)[::-1]])
    written = " ".join(item.text for item in figure.layout.annotations)
    assert all(name in written for name in ("read 100 %", "by heart", "guessing 50 %"))
    assert not figure.layout.showlegend
    # The names stand apart by a line's height, whatever the bands do to the axis, each with a stroke from its curve's end.
    near = shares_by_layer(
        [Curve("a", values, values - 45, values), Curve("b", values / 2 + 1)],
        [0, 1, 2],
        "Probe",
        y_title="%",
        colours=["#123456", theme.GREY],
        names=["a", "b"],
    )
    low, high = near.layout.yaxis.range
    assert low < 5
    pixels = near.layout.height - near.layout.margin.t - 60
    places = [(label.y - low) / (high - low) * pixels - label.ay for label in near.layout.annotations]
    assert [label.y for label in near.layout.annotations] == [100, 51, 50]
    assert min(abs(one - other) for one, other in itertools.combinations(places, 2)) >= 16.9
    assert all(label.showarrow and label.font.color is None for label in near.layout.annotations)


def test_only_a_strip_that_lies_farther_left_says_so():
    def said(*unrelated: float) -> list[str]:
        strips = [
            Strip("Same", np.array([0.5, 0.7]), ["p", "q"], [0, 1]),
            Strip("Unrelated", np.array(unrelated), ["u", "v", "w"], [-2] * 3, is_faint=True),
        ]
        notes = value_strips(strips, "Cosines", value="cosine").layout.annotations
        return [item.text for item in notes if "farther" in item.text]

    assert said(0.1, 0.2, 0.9) == ["← farther left: half below 0.20"]
    assert said(0.1, 0.6, 0.9) == []


def test_a_curve_without_a_number_leaves_the_others_their_names():
    figure = go.Figure([go.Scatter(x=[0, 1], y=y, line={"color": theme.BLUE}) for y in ([1, 2], [np.nan] * 2, [1, 9])])
    labels = label_ends(figure, ["first", "none", "<last>"]).layout.annotations
    assert [(label.text.split("</span> ")[1], label.y) for label in labels] == [("first", 2), ("&lt;last&gt;", 9)]
