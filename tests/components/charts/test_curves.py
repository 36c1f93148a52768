"""Curves hold the values they are given, and mark what they say they mark."""

from __future__ import annotations

import numpy as np
import pytest

from components.charts import theme
from components.charts.curves import (
    EXTREMES,
    BandData,
    EndLabel,
    block_curves,
    depth_curves,
    layer_curves,
    removal_curves,
    shared_range,
    small_curves,
    spread,
)

VALUES = np.array([[0.9, 0.5, 0.7], [0.2, np.nan, 0.4]])


def drawn(figure: object, name: str) -> object:
    return next(trace for trace in figure.data if trace.name == name)


def test_traces_hold_the_values_as_float32() -> None:
    figure = layer_curves(VALUES, ["a – b", "a – c"], "Title")
    for label, row in zip(["a – b", "a – c"], VALUES, strict=True):
        trace = drawn(figure, label)
        assert trace.y.dtype == np.float32
        np.testing.assert_array_equal(trace.y, row.astype(np.float32))
        np.testing.assert_array_equal(trace.x, [0, 1, 2])
    assert figure.layout.title.text == "Title"


def test_lowest_and_highest_layer_carry_triangles() -> None:
    figure = layer_curves(VALUES, ["a – b", "a – c"], "Title")
    for triangles, row in zip(figure.data[2:], VALUES, strict=True):
        assert list(triangles.marker.symbol) == ["triangle-down", "triangle-up"]
        np.testing.assert_array_equal(triangles.x, [np.nanargmin(row), np.nanargmax(row)])
        np.testing.assert_array_equal(triangles.y, np.float32([np.nanmin(row), np.nanmax(row)]))


def test_the_legend_has_each_curve_with_its_own_symbol() -> None:
    """The legend takes the symbol of a curve's first point, which is often its lowest."""
    for figure in (
        layer_curves(VALUES, ["a – b", "a – c"], "Title"),
        depth_curves(list(VALUES), ["a – b", "a – c"], "Title", y_title="cosine"),
    ):
        shown = [trace for trace in figure.data if trace.showlegend is not False]
        assert [trace.name for trace in shown] == ["a – b", "a – c"]
        assert [trace.marker.symbol for trace in shown] == [theme.marker_style(index)["symbol"] for index in range(2)]
        hidden = [trace for trace in figure.data if trace.showlegend is False]
        if hidden:  # those of the extremes, which curves of models do not have
            assert [trace.legendgroup for trace in hidden] == [trace.legendgroup for trace in shown]
            assert [trace.marker.color for trace in hidden] == [trace.line.color for trace in shown]


def test_a_flat_curve_has_no_extremes() -> None:
    figure = layer_curves(np.ones((1, 3)), ["a"], "Title")
    assert [trace.name for trace in figure.data] == ["a"]


def test_the_band_lies_behind_with_its_edges() -> None:
    band = BandData(np.array([0.2, 0.3, 0.1]), np.array([0.0, 0.1, 0.0]), np.array([0.4, 0.5, 0.2]), "unrelated")
    figure = layer_curves(VALUES, ["a – b", "a – c"], "Title", band=band)
    assert [trace.name for trace in figure.data] == ["95 %", "5 %", "unrelated", "a – b", "a – c", EXTREMES, EXTREMES]
    assert drawn(figure, "5 %").fill == "tonexty"
    np.testing.assert_allclose(drawn(figure, "unrelated").y, band.mean, rtol=1e-6)
    np.testing.assert_allclose([drawn(figure, name).y for name in ("5 %", "95 %")], [band.low, band.high], rtol=1e-6)
    assert [tuple(ends) for ends in drawn(figure, "unrelated").customdata][:2] == [
        ("0.000", "0.400"),
        ("0.100", "0.500"),
    ]


def test_tokens_before_and_after_each_block_are_lines_and_many_are_a_band() -> None:
    values = np.random.default_rng(0).random((65, 3))
    few, many = (block_curves(part, ["<b>"] * len(part), "Title") for part in (values[:64], values))
    assert [trace.name for trace in few.data] == ["&lt;b&gt;"] * 64 + ["mean of all tokens"]
    np.testing.assert_allclose(few.data[-1].y, values[:64].mean(axis=0), rtol=1e-6)
    high, low, _, mean = many.data
    np.testing.assert_allclose([low.y, high.y], np.percentile(values, (5, 95), axis=0), rtol=1e-6)
    np.testing.assert_allclose(mean.y, values.mean(axis=0), rtol=1e-6)
    assert many.layout.xaxis.title.text == "block (block b turns layer b into layer b+1)"


def test_layers_have_numbers_that_stand_apart() -> None:
    steps = [layer_curves(np.ones((1, layers)), ["a"], "Title").layout.xaxis.dtick for layers in (14, 15)]
    assert steps == [1, 2]


def test_names_are_text() -> None:
    figure = layer_curves(VALUES, ["<i>a</i>", "b"], "Title", details=["<a href='javascript:1'>", "d"])
    assert figure.data[0].name == "&lt;i&gt;a&lt;/i&gt;"
    assert "<a" not in figure.data[0].hovertemplate


def test_as_many_labels_as_curves() -> None:
    with pytest.raises(ValueError, match="zip"):
        layer_curves(VALUES, ["only one"], "Title")


def test_shared_range_holds_everything_and_ignores_nan() -> None:
    low, high = shared_range(VALUES, np.array([-0.1]))
    assert low < -0.1
    assert 0.9 < high < 1
    assert shared_range(np.array([np.nan])) == (-1.0, 1.0)
    assert shared_range(VALUES, floor=0.19)[0] == 0.19 < shared_range(VALUES + 1, floor=0.19)[0]


def test_removal_curves_hold_their_values_and_say_what_is_removed() -> None:
    figure = removal_curves(
        np.array([0.0, 50.0]),
        VALUES[:, ::2],
        ["Ledger", "Random"],
        [3, None],
        [["none", "<b>one</b>"], ["none", "1"]],
        "T",
        "words removed",
    )
    assert figure.layout.xaxis.title.text == "words removed"
    method, chance = figure.data
    np.testing.assert_allclose(method.y, [0.9, 0.7], rtol=1e-6)
    np.testing.assert_array_equal(method.x, [0, 50])
    assert list(method.customdata) == ["none", "&lt;b&gt;one&lt;/b&gt;"]
    assert (method.line.color, method.line.dash) == (theme.line_style(3)["color"], theme.line_style(3)["dash"])
    assert (chance.mode, chance.line.dash, chance.line.color) == ("lines", "dot", theme.GREY)


def test_curves_of_models_stand_at_their_relative_depth() -> None:
    short, long = np.array([0.1, 0.5, 0.3]), np.array([np.nan, 0.2, 0.4, 0.8, 0.6])
    figure = depth_curves([short, long], ["<b>A</b>", "B"], "Title", y_title="cosine")
    assert [trace.name for trace in figure.data] == ["&lt;b&gt;A&lt;/b&gt;", "B"]
    np.testing.assert_array_equal(figure.data[0].x, [0, 0.5, 1])
    np.testing.assert_array_equal(figure.data[1].x, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(figure.data[1].y, long.astype(np.float32))
    assert list(figure.data[1].customdata) == [0, 1, 2, 3, 4]  # the layer, for the hover
    assert "layer %{customdata} of 4" in figure.data[1].hovertemplate


def test_short_names_of_two_models_stand_at_the_ends_and_others_in_a_legend() -> None:
    rows = [np.array([0.1, 0.50]), np.array([0.1, 0.51]), np.array([0.1, 0.52])]
    named = depth_curves(rows[:2], ["<b>", "B"], "Title", y_title="cosine")
    assert [label.text for label in named.layout.annotations] == ["&lt;b&gt;", "B"]
    assert [label.yanchor for label in named.layout.annotations] == ["top", "bottom"]  # not on each other
    assert named.layout.showlegend is False
    crossing = [np.array([0.1, 0.3, 0.2]), np.array([0.1, 0.15, 0.5])]  # the lower name is below both
    placed = depth_curves(crossing, ["A", "B"], "T", y_title="cosine").layout.annotations
    assert [label.y for label in placed] == pytest.approx([0.15 + 0.35 * (0.57 - 0.5) / 0.5, 0.5])  # where it begins
    for drawn, labels in ((rows[:2], ["A", "a name with more letters than that"]), (rows, ["A", "B", "C"])):
        figure = depth_curves(drawn, labels, "Title", y_title="cosine")
        assert figure.layout.showlegend
        assert not figure.layout.annotations


def test_a_model_keeps_its_style_where_another_is_missing() -> None:
    line = np.array([0.1, 0.5])
    both = depth_curves([line, line], ["A", "B"], "Title", y_title="cosine")
    alone = depth_curves([line], ["B"], "Title", y_title="cosine", styles=[1])
    assert alone.data[0].line == both.data[1].line != both.data[0].line


def test_labels_stand_at_the_ends_of_the_curves_and_not_on_each_other() -> None:
    values = np.array([[0.9, 0.51], [0.9, 0.50], [0.9, np.nan]])
    band = BandData(np.array([0.1, 0.1]), np.zeros(2), np.array([0.2, 0.2]), "unrelated tokens")
    ends = [EndLabel("<b>", "0.510"), EndLabel("river – money", "0.500"), EndLabel("none", "")]
    figure = layer_curves(values, ["a", "b", "c"], "Title", band=band, ends=ends, y_range=(-0.1, 1.0), layer=1)
    labels = figure.layout.annotations
    assert [label.text for label in labels] == [
        "&lt;b&gt;<br><b>0.510</b>",
        "river – money<br><b>0.500</b>",
        "unrelated 0.10<br>band: 5–95 %",
    ]
    assert [(label.x, label.y) for label in labels] == [(1, 0.51), (1, 0.5), (1, 0.1)]
    height = (figure.layout.height - figure.layout.margin.t - 64) / 1.1
    places = [label.y * height - label.ay for label in labels]
    assert places[0] - places[1] >= 35.9
    assert figure.layout.showlegend is False
    assert not [trace for trace in figure.data if trace.name == EXTREMES]
    assert figure.layout.shapes[0].x0 == 1
    assert figure.layout.margin.r > 100


def test_curves_without_a_label_are_grey_below_the_others_and_counted() -> None:
    values = np.array([[0.9, 0.2], [0.9, 0.7], [0.9, 0.3], [0.9, 0.6], [0.9, 0.5]])
    ends = [EndLabel("low", "0.2"), EndLabel("high", "0.7"), None, None, None]
    figure = layer_curves(values, list("abcde"), "Title", ends=ends, y_range=(-0.1, 1.0))
    assert [trace.name for trace in figure.data] == ["c", "d", "e", "a", "b"]
    assert [trace.line.color for trace in figure.data[:3]] == [theme.GREY] * 3
    assert [trace.line.color for trace in figure.data[3:]] == [theme.line_style(n)["color"] for n in (0, 1)]
    assert [(label.text, label.y) for label in figure.layout.annotations] == [
        ("low<br><b>0.2</b>", 0.2),
        ("high<br><b>0.7</b>", 0.7),
        ("3 others", 0.5),
    ]
    assert figure.layout.showlegend is False


def test_places_are_spread_in_their_order_and_no_more_than_needed() -> None:
    assert spread([0, 100, 50], 20) == [0, 100, 50]
    np.testing.assert_allclose(spread([10, 12, 11], 20), [-9, 31, 11])
    np.testing.assert_allclose(spread([0, 1, 30], 20), [-9.5, 10.5, 30.5], atol=1)
    assert spread([], 20) == []


def test_small_curves_are_those_of_the_large_figure() -> None:
    figure = small_curves(VALUES, ["a", "<b>"], "Max", (-0.1, 1.0), [0, None])
    below, above = figure.data
    np.testing.assert_array_equal(above.y, VALUES[0].astype(np.float32))
    assert (above.line.color, below.line.color) == (theme.line_style(0)["color"], theme.GREY)
    assert below.hovertemplate.startswith("&lt;b&gt;<br>layer")
    assert figure.layout.yaxis.range == (-0.1, 1.0)
    assert not figure.layout.showlegend
    band = BandData(np.zeros(3), np.full(3, -0.2), np.full(3, 0.2), "unrelated")
    drawn = small_curves(VALUES, ["a", "b"], "Max", (-0.1, 1.0), [0, None], band).data
    assert len(drawn) > 2
    np.testing.assert_array_equal(drawn[-1].y, above.y)  # the curves lie on the band
