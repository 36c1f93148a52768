"""Bars of runs hold the values they are given, and names in them are text."""

from __future__ import annotations

import numpy as np

from components.charts import theme
from components.charts.retrieval.run_bars import Bar, FirstHits, first_hit_panels, recall_panels

NASTY = "<b>x</b>"


def test_each_collection_has_a_panel_with_each_run() -> None:
    bars = [
        [[Bar(10, 5, 20), Bar(30, 25, 40)], [Bar(1, 0, 6), Bar(2, 1, 9)]],
        [[Bar(50, 40, 61), Bar(70, 60, 79)], [Bar(3, 1, 8), Bar(4, 2, 9)]],
    ]
    figure = recall_panels(bars, ["one → two (first)", "three"], [1, 5], [NASTY, "BM25"], "Title")
    assert [trace.name for trace in figure.data] == ["&lt;b&gt;x&lt;/b&gt;", "BM25"] * 2
    assert [trace.showlegend for trace in figure.data] == [True, True, False, False]
    assert [trace.xaxis for trace in figure.data] == ["x", "x", "x2", "x2"]
    third = figure.data[2]
    assert list(third.x) == ["1", "5"]
    assert list(third.y) == [50, 70]
    assert (list(third.error_y.array), list(third.error_y.arrayminus)) == ([11, 9], [10, 10])
    assert figure.layout.xaxis.title.text == "k"
    assert [label.text for label in figure.layout.annotations] == [
        "one → two<br>(first)",
        "three",
    ]  # above their panels
    assert [label.xref for label in figure.layout.annotations] == ["x domain", "x2 domain"]
    assert NASTY not in str(figure.to_plotly_json())


def test_both_similarities_have_a_bar_in_each_of_three_panels() -> None:
    hits = [FirstHits(Bar(90, 85, 94), 1.5, -2.0), FirstHits(Bar(20, 10, 35), float("nan"), float("nan"))]
    figure = first_hit_panels(["Layer 6, Mean", NASTY], [("cosine", hits), ("dot product", hits[::-1])], "Title")
    assert [trace.name for trace in figure.data] == ["cosine"] * 3 + ["dot product"] * 3
    assert list(figure.data[0].y) == [90, 20]
    assert [figure.data[at].marker.color for at in (0, 3)] == [theme.BLUE, theme.ORANGE]
    assert figure.data[0].error_y.array[1] == 15
    np.testing.assert_array_equal(figure.data[1].y, np.array([1.5, np.nan], np.float32))
    assert figure.data[2].y[0] == -2
    assert figure.data[2].error_y.array is None
    assert NASTY not in str(figure.to_plotly_json())
