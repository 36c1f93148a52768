"""The figures of a diagnosis: shares of failed and found queries, and what each remedy repairs and harms."""

from __future__ import annotations

from components.charts import theme
from components.charts.retrieval.diagnosis import RemedyBar, TraitBar, remedy_bars, trait_shares


def test_traits_have_both_shares_and_the_interval_of_their_difference() -> None:
    bars = [
        TraitBar("long <b>", failed=60, found=20, difference=(10, 90), is_named=True),
        TraitBar("short", failed=5, found=10, difference=(-12, 2), is_named=False),
        TraitBar("not compared", failed=1, found=2, difference=None, is_named=False),
    ]
    figure = trait_shares(bars, "Traits")
    found, failed = figure.data[-2:]
    assert (found.name, list(found.x), found.marker.symbol) == ("found", [20, 10, 2], "circle-open")
    assert (failed.name, list(failed.x), failed.marker.symbol) == ("failed", [60, 5, 1], "circle")
    assert list(failed.marker.color) == [theme.ORANGE, theme.GREY, theme.GREY]  # the named one
    assert list(found.marker.color) == [theme.GREY] * 3
    intervals, differences = figure.data[:-2:2], figure.data[1:-2:2]
    assert [list(line.x) for line in intervals] == [[30, 100], [0, 12]]  # of the failed ones, within 0 to 100 %
    assert [list(line.x) for line in differences] == [[20, 60], [10, 5]]
    assert [line.line.color for line in differences] == [theme.ORANGE, theme.GREY]
    assert list(figure.layout.yaxis.ticktext) == ["<b>long &lt;b&gt;</b>", "short", "not compared"]


def test_a_remedy_is_blue_or_orange_only_where_its_whole_interval_is_on_one_side() -> None:
    bars = [
        RemedyBar("helps", False, 9, 2, (1, 3), recall=77, low=1.5, high=9, is_advised=True),
        RemedyBar("harms", False, 1, 8, (0, 0), recall=63, low=-9, high=-1),
        RemedyBar("may be chance", False, 3, 2, (0, 0), recall=71, low=-2, high=4),
        RemedyBar("left", True, 0, 0, (0, 0), recall=70, low=0, high=0),
    ]
    figure = remedy_bars(bars, 70, "Remedies")
    dots = [trace for trace in figure.data if trace.type == "scatter" and trace.mode == "markers"]
    assert [dot.marker.color for dot in dots] == [theme.BLUE, theme.ORANGE, theme.GREY, theme.GREY]
    assert [dot.x[0] for dot in dots] == [77, 63, 71, 70]
    lines = [list(trace.x) for trace in figure.data if trace.type == "scatter" and trace.mode == "lines"]
    assert lines == [[71.5, 79], [61, 69], [68, 74]]  # around what is found now
    of = {trace.name: list(trace.x) for trace in figure.data if trace.type == "bar"}
    assert of == {
        "repaired": [9, 1, 3, 0],
        "sham, repaired": [1, 0, 0, 0],
        "harmed": [-2, -8, -2, 0],
        "sham, harmed": [-3, 0, 0, 0],
    }
    said = [item.text for item in figure.layout.annotations]
    assert theme.small("a sham of this kind repaired 1 and harmed 3") in said
    assert sum("■ advice" in text for text in said) == 1
    assert "┆ now 70.0 %" in said
    assert {line.x0 for line in figure.layout.shapes if line.type == "line"} == {70}
