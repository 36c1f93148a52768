"""Figures of evaluations hold the values they are given, and names in them are text."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from components.charts import theme
from components.charts.curves import BELOW_PLOT
from components.charts.retrieval.evaluation import (
    MARKED,
    Curve,
    RankedBar,
    RunCost,
    agreement_bars,
    agreement_curves,
    curves_over,
    grid_height,
    measure_grid,
    precision_recall,
    predicted_against_people,
    quality_and_cost,
    ranking_bars,
)
from components.charts.theme import GREY
from tests.components.charts.cell_numbers import numbers

VALUES = np.array([[10.0, 20.5, 30.0], [40.0, np.nan, 61.24]])
NASTY = "<b>bold</b> & <a href='javascript:1'>x</a>"


def grid(values: np.ndarray = VALUES, **options: object) -> go.Figure:
    rows, columns = [f"layer {at}" for at in range(len(values))], list("abcdef"[: values.shape[1]])
    named = {"unit": "MRR", "row_title": "layer", "column_title": "pooling", **options}
    return measure_grid(values, named.pop("rows", rows), named.pop("columns", columns), "Title", **named)


def heights(figure: go.Figure, ends: list[go.layout.Annotation]) -> list[float]:
    """How far above the lower end of the axis each of some names stands, in pixels."""
    low, high = figure.layout.yaxis.range
    scale = (figure.layout.height - figure.layout.margin.t - BELOW_PLOT) / (high - low)
    return [scale * (item.y - low) - item.ay for item in ends]


def finite(bounds: object) -> bool:
    low, high = bounds
    return bool(np.isfinite([low, high]).all() and low < high)


def strings(value: object) -> list[str]:
    """Every text anywhere in a figure."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


# The grid


def test_cells_have_their_numbers_and_what_is_not_known_stays_empty():
    heatmap, cells, _ = grid().data  # the last one has the white numbers
    np.testing.assert_array_equal(heatmap.z, VALUES.astype(np.float32))
    assert heatmap.z.dtype == np.float32
    assert heatmap.texttemplate == "%{text}"
    assert numbers(grid()) == [["10.0", "20.5", "30.0"], ["40.0", "", "61.2"]]
    assert (heatmap.zmin, heatmap.zmax) == (10, pytest.approx(61.24))
    # [row, column] of each point that can be clicked, where that cell is drawn.
    assert [list(place) for place in cells.customdata] == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 2]]
    assert list(cells.x) == [0, 1, 2, 0, 2]
    assert list(cells.y) == [0, 0, 0, 1, 1]
    assert cells.text[4] == "layer 1, c<br>MRR: 61.24"
    assert cells.text[1] == "layer 0, b<br>MRR: 20.50"
    assert cells.hovertemplate == "%{text}<extra></extra>"


def test_clicking_hides_nothing():
    cells = grid().data[1]
    assert cells.marker.opacity == cells.selected.marker.opacity == cells.unselected.marker.opacity == 0


def test_the_chosen_cell_has_a_frame():
    (frame,) = grid(chosen=(1, 2)).layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)
    assert frame.line.color == MARKED
    assert not grid().layout.shapes


def test_the_starred_cell_has_a_star():
    texts = numbers(grid(starred=(1, 2)))
    assert [(row, column) for row in range(2) for column in range(3) if "★" in texts[row][column]] == [(1, 2)]
    assert texts[1][2].startswith("61.2")


def test_axes_hold_every_cell_and_its_name():
    layout = grid().layout
    assert tuple(layout.xaxis.range) == (-0.5, 2.5)
    assert tuple(layout.yaxis.range) == (-0.5, 1.5)
    assert list(layout.xaxis.ticktext) == ["a", "b", "c"]
    assert list(layout.yaxis.ticktext) == ["layer 0", "layer 1"]
    assert (layout.xaxis.title.text, layout.yaxis.title.text) == ("pooling", "layer")
    assert list(layout.xaxis.tickvals) == [0, 1, 2]
    assert list(layout.yaxis.tickvals) == [0, 1]


def test_colours_span_what_is_known_or_the_limits():
    assert grid(limits=(0, 100)).data[0].zmax == 100
    for values in (np.full((2, 2), np.nan), np.full((2, 2), 7.0)):
        heatmap = grid(values).data[0]
        assert finite((heatmap.zmin, heatmap.zmax))
    assert len(grid(np.full((2, 2), np.nan)).data[1].customdata or ()) == 0


def test_digits_and_more_rows():
    figure = grid(np.zeros((13, 2)) + 0.1234, digits=3)
    assert all(len(text.split(".")[1]) == 3 for row in numbers(figure) for text in row)
    assert figure.data[1].text[0].endswith("0.1234")
    assert figure.layout.height == grid_height(13) > grid_height(7) > grid_height(6) == grid_height(1)


# Curves


def test_curves_hold_their_values_and_bands_go_round_them():
    low, high = np.array([1.0, 2, 3]), np.array([5.0, 6, 7])
    curves = [Curve("plain", np.array([1.0, 2, 3])), Curve("sure", np.array([3.0, 4, 5]), low, high)]
    figure = curves_over(curves, [1, 2, 10], "Title", x_title="k", y_title="Recall@k (%)", y_range=(0, 100))
    assert [trace.name for trace in figure.data] == ["interval of sure", "plain", "sure"]  # bands lie behind
    band, plain, sure = figure.data
    np.testing.assert_array_equal(band.x, [1, 2, 10, 10, 2, 1])
    np.testing.assert_array_equal(band.y, [5, 6, 7, 3, 2, 1])
    assert band.fill == "toself"
    assert band.hoverinfo == "skip"
    red, green, blue = (int(sure.line.color[at : at + 2], 16) for at in (1, 3, 5))
    assert band.fillcolor == f"rgba({red},{green},{blue},0.16)"
    np.testing.assert_array_equal(plain.y, [1, 2, 3])
    np.testing.assert_array_equal(sure.x, [1, 2, 10])
    assert plain.y.dtype == np.float32
    assert plain.line.color != sure.line.color
    assert tuple(figure.layout.yaxis.range) == (0, 100)
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("k", "Recall@k (%)")
    named = [Curve("a", np.ones(3)), Curve("b", np.ones(3), is_marked=True), Curve("c", np.ones(3))]
    drawn = curves_over(named, [1, 2, 10], "Title", x_title="k", y_title="%").data
    assert [trace.line.color == theme.ORANGE for trace in drawn] == [False, True, False]
    assert len({trace.line.color for trace in drawn}) == 3
    assert figure.layout.showlegend
    assert not curves_over(curves[:1], [1, 2, 10], "Title", x_title="k", y_title="%").layout.showlegend


def test_points_are_marked_where_they_are_few():
    for count, mode in ((20, "lines+markers"), (21, "lines")):
        figure = curves_over([Curve("a", np.zeros(count))], range(1, count + 1), "T", x_title="k", y_title="%")
        assert figure.data[0].mode == mode


def test_a_logarithmic_axis_shows_whole_numbers():
    def axis(most: int, **options: object) -> object:
        points = np.arange(1, most + 1)
        figure = curves_over([Curve("a", np.ones(most))], points, "T", x_title="k", y_title="%", **options)
        return figure.layout.xaxis

    found = axis(50, logarithmic=True)
    assert found.type == "log"
    assert list(found.tickvals) == [1, 2, 5, 10, 20, 50]
    assert list(found.ticktext) == ["1", "2", "5", "10", "20", "50"]
    assert list(axis(49, logarithmic=True).tickvals) == [1, 2, 5, 10, 20]
    assert list(axis(50, logarithmic=True, ticks=[1, 32]).tickvals) == [1, 32]
    assert axis(50).type is None
    assert axis(50).tickvals is None


def test_precision_and_recall_carry_k():
    figure = precision_recall([("one", np.array([10.0, 20]), np.array([50.0, 25]))], "Title")
    (line,) = figure.data
    np.testing.assert_array_equal(line.x, [10, 20])
    np.testing.assert_array_equal(line.y, [50, 25])
    assert list(line.customdata) == [1, 2]
    assert figure.layout.yaxis.rangemode == "tozero"


# Quality and cost


def test_points_lie_at_time_and_quality_and_their_areas_are_sizes():
    costs = [RunCost("a", 50, 1, 4), RunCost("b", 80, 100, 1), RunCost("c", 60, 10, 0)]
    figure = quality_and_cost(costs, "Title", "MRR")
    assert [(trace.x[0], trace.y[0]) for trace in figure.data] == [(1, 50), (100, 80), (10, 60)]
    grown = [trace.marker.size - 10 for trace in figure.data]
    assert grown[0] ** 2 == pytest.approx(4 * grown[1] ** 2)
    assert grown[2] == 0
    axis, upright = figure.layout.xaxis, figure.layout.yaxis
    assert axis.type == "log"
    assert axis.range[0] < 0 < 2 < axis.range[1]  # the exponents of 1 and 100 ms lie inside
    assert upright.range[0] < 50 < 80 < upright.range[1]
    assert upright.title.text == "MRR (%)"
    assert "4.00 MB" in figure.data[0].hovertemplate


@pytest.mark.parametrize(
    "costs",
    [
        [],
        [RunCost("one", 50, 3, 1)],
        [RunCost("no time", 50, 0, 0)],
        [RunCost("no time", 0, 0, 0), RunCost("some", 0, 5, 0)],
        [RunCost("a", 100, 1e-4, 1e6), RunCost("b", 0, 1e6, 1e-6)],
    ],
)
def test_axes_are_finite_whatever_the_runs(costs):
    figure = quality_and_cost(costs, "Title", "MRR")
    assert finite(figure.layout.xaxis.range)
    assert finite(figure.layout.yaxis.range)
    assert all(np.isfinite(trace.marker.size) for trace in figure.data)
    low, high = figure.layout.xaxis.range
    assert all(low < np.log10(cost.milliseconds) < high for cost in costs if cost.milliseconds)


# Similarity


def test_a_point_a_pair():
    figure = predicted_against_people(np.array([0.1, 0.9]), np.array([1.0, 5]), ["a", "b"], "Title", unit="cosine")
    (points,) = figure.data
    np.testing.assert_array_equal(points.x, [1, 5])
    np.testing.assert_array_equal(points.y, np.array([0.1, 0.9], np.float32))
    assert list(points.text) == ["a", "b"]
    assert figure.layout.yaxis.title.text == "cosine"


def test_methods_without_layers_are_level_lines_that_can_be_told_apart():
    flat = [(f"ranking {number}", 0.1 * number) for number in range(6)]
    figure = agreement_curves(np.array([[0.1, 0.2], [np.nan, 0.3]]), ["Mean", "CLS"], flat, "T", y_title="y")
    lines = figure.data[2:]
    assert [tuple(np.round(line.y, 6)) for line in lines] == [(round(value, 6),) * 2 for _, value in flat]
    assert {(line.mode, line.line.color, line.line.dash) for line in lines} == {("lines", GREY, "dash")}
    ends = [item for item in figure.layout.annotations if item.xanchor == "left"]
    assert [item.text for item in ends] == [
        *("<b>Mean 0.200</b>", "<b>CLS 0.300</b>"),
        *(f"{name} {value:.3f}" for name, value in flat),
    ]
    assert min(np.diff(sorted(heights(figure, ends)))) > 18  # no name lies on another
    assert [item.y for item in ends] == pytest.approx(
        [line.y[-1] for line in figure.data]
    )  # a stroke leads to each line
    assert not figure.layout.showlegend
    long = agreement_curves(
        np.array([[0.1, 0.2]]), ["Mean"], [("Static word vectors", 0.2), *flat[:2]], "T", y_title=""
    )
    _, two_lines, *_ = ends = [item for item in long.layout.annotations if item.xanchor == "left"]
    assert two_lines.text == "Static word<br>vectors 0.200"
    lines = [item.text.count("<br>") + 1 for item in ends]
    places = sorted(zip(heights(long, ends), lines, strict=True))
    gaps = [above - below - 19 * (first + second) / 2 for (below, first), (above, second) in itertools.pairwise(places)]
    assert min(gaps) > -1e-9  # neither does a name of two lines


# Names


@pytest.mark.parametrize(
    "figure",
    [
        grid(rows=[NASTY, "b"], columns=[NASTY, "b", "c"]),
        curves_over(
            [Curve(NASTY, np.ones(2), np.zeros(2), np.ones(2) * 2), Curve(NASTY, np.ones(2))],
            [1, 2], NASTY, x_title="k", y_title="%",
        ),
        precision_recall([(NASTY, np.ones(2), np.ones(2))], NASTY),
        quality_and_cost([RunCost(NASTY, 1, 1, 1)], NASTY, "MRR"),
        predicted_against_people(np.ones(1), np.ones(1), ["a"], NASTY, unit="cosine"),
    ],
    ids=["grid", "curves", "precision", "cost", "similarity"],
)  # fmt: skip
def test_names_are_text(figure):
    found = strings(figure.to_dict())
    assert any("&lt;b" in text for text in found)
    assert not any("<b>" in text or "<a" in text or "</" in text.replace("</extra>", "") for text in found)


def test_a_projector_gets_larger_type():
    for figure in (
        grid(),
        curves_over([Curve("a", np.ones(2))], [1, 2], "T", x_title="k", y_title="%"),
        precision_recall([("a", np.ones(2), np.ones(2))], "T"),
        quality_and_cost([RunCost("a", 1, 1, 1)], "T", "MRR"),
        predicted_against_people(np.ones(1), np.ones(1), ["a"], "T", unit="u"),
    ):
        height, margin = figure.layout.height, figure.layout.margin.t
        layout = theme.enlarge(figure, 1.35).layout
        assert layout.font.size == 1.35 * theme.FONT_SIZE
        assert (layout.height, layout.margin.t) == (round(1.175 * height), round(1.35 * margin))
        # In a window half as large again type grows by a quarter, and the figure by half.
        again = theme.enlarge(
            go.Figure(layout={"height": 400, "margin": {"t": 40, "r": 8, "b": 40}}), 1.25 * 1.35
        ).layout
        assert again.height == round(1.5 * 1.175 * 400)


def test_axes_of_curves_that_are_all_100_per_cent_show_per_cents():
    """Plotly alone would show a sliver around the value, such as 99 to 101 %."""
    flat = [Curve(name, np.full(5, 100.0)) for name in ("a", "b")]
    figure = curves_over(flat, range(1, 6), "Recall", x_title="k", y_title="Recall@k (%)")
    assert figure.layout.yaxis.range == (0, 105)
    rising = curves_over([Curve("a", np.arange(5.0))], range(1, 6), "R", x_title="k", y_title="y")
    assert rising.layout.yaxis.range is None
    costs = [RunCost(name, 100.0, milliseconds, 1.0) for name, milliseconds in (("a", 1.0), ("b", 20.0))]
    low, high = quality_and_cost(costs, "Cost", "Recall@1").layout.yaxis.range
    assert low < 99
    assert 100 < high < 105


def test_ranking_bars_have_the_best_on_top_and_their_intervals():
    bars = [
        RankedBar("BM25", 20.0, 15.0, 26.0),
        RankedBar("learnt <b>", 30.0, 24.0, 37.0, is_marked=True),
        RankedBar("by chance", 2.0, 1.0, 4.0),
    ]
    figure = ranking_bars(bars, "title", measure="MAP")
    (trace,) = figure.data
    assert list(trace.y) == ["by chance", "BM25", "learnt &lt;b&gt;"]  # plotly draws the last on top
    assert list(trace.x) == [2, 20, 30]
    assert list(trace.error_x.array) == [2, 6, 7]
    assert list(trace.error_x.arrayminus) == [1, 5, 6]
    colours = trace.marker.color
    assert colours[2] != colours[0] == colours[1]
    compared = (
        ranking_bars([replace(bars[0], is_compared=True), *bars[1:]], "title", measure="MAP").data[0].marker.color
    )
    assert compared == (GREY, colours[0], colours[2])
    ends = [(note.text, note.x) for note in figure.layout.annotations]
    assert ends == [
        ("<b>2.0</b>", 4),
        ("<b>20.0</b>", 26),
        ("<b>30.0</b>", 37),
    ]  # behind the interval, which crosses none
    assert figure.layout.xaxis.range[1] > 37
    unsure = ranking_bars([RankedBar("b", 20, 18, 22), RankedBar("a", 10, 1, 50)], "title", measure="MAP").data[0]
    assert list(unsure.y) == ["a", "b"]  # by the value, not by what it may be
    assert [list(ends) for ends in unsure.customdata] == [[1, 50], [18, 22]]
    dark = ranking_bars(bars, "title", measure="MAP", dark=True).data[0]
    assert dark.error_x.color != trace.error_x.color  # seen on the bars of both pages


def test_agreement_bars_name_each_run_with_its_value():
    figure = agreement_bars([("a <b> model", 0.5), ("BM25", -0.125)], "T", unit="Spearman's correlation")
    (bars,) = figure.data
    assert list(bars.y) == ["a &lt;b&gt; model", "BM25"]
    np.testing.assert_allclose(bars.x, [0.5, -0.125])
    assert list(bars.text) == ["0.500", ""]  # too short for a number
    assert bars.marker.color[0] != bars.marker.color[1]
    assert figure.layout.yaxis.autorange == "reversed"
