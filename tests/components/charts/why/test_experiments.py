"""Maps of experiments: numbers, frames and the points that are clicked."""

from __future__ import annotations

import numpy as np

from components.charts import theme
from components.charts.why.experiments import MOST_NUMBERED, effect_map


def drawn(values, **options):
    rows, columns = values.shape
    arguments = {
        "row_title": "layer",
        "column_title": "token",
        "hints": [[f"<b>{row},{column}" for column in range(columns)] for row in range(rows)],
        "limit": 1.0,
        "as_percent": True,
    }
    names = [[f"{name}{number}" for number in range(count)] for name, count in (("r", rows), ("<c>", columns))]
    return effect_map(values, *names, "Title", **arguments | options)


def test_cells_have_their_numbers_and_a_point_to_click():
    values = np.array([[0.5, -0.004, np.nan], [1.093, -0.31, 0]])
    heat, points = drawn(values).data
    assert [list(row) for row in heat.text] == [["50", "0", ""], ["109", "−31", "0"]]
    assert (heat.zmin, heat.zmax) == (-1, 1)
    ends = [drawn(values, blue_adds=adds).data[0].colorscale[at][1] for adds, at in ((False, 0), (True, -1))]
    assert ends == [theme.BLUE] * 2
    assert [tuple(cell) for cell in points.customdata] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert list(zip(points.y, points.x, strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert points.text[1] == "&lt;b&gt;0,1"


def test_changes_have_their_sign():
    heat = drawn(np.array([[0.126, -0.126, 0.004]]), as_percent=False).data[0]
    assert list(heat.text[0]) == ["+0.13", "−0.13", "0"]
    heat = drawn(np.array([[12.0, -3.0, 0.0]]), as_percent=False, digits=0, limit=12.0).data[0]
    assert list(heat.text[0]) == ["+12", "−3", "0"]


def test_chosen_cells_are_framed_and_marked_columns_bold():
    figure = drawn(np.zeros((3, 4)), chosen=[(2, 1)], marked_columns=[3])
    below, frame = figure.layout.shapes
    assert below.line.color != frame.line.color
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (0.55, 1.45, 1.55, 2.45)
    assert list(figure.layout.xaxis.ticktext) == ["&lt;c&gt;0", "&lt;c&gt;1", "&lt;c&gt;2", "<b>&lt;c&gt;3</b>"]


def test_wide_maps_have_no_numbers_and_upright_labels():
    narrow, wide = drawn(np.zeros((2, 4))), drawn(np.zeros((2, MOST_NUMBERED + 1)))
    assert narrow.data[0].texttemplate == "%{text}"
    assert wide.data[0].texttemplate is None
    assert (narrow.layout.xaxis.tickangle, wide.layout.xaxis.tickangle) == (None, -90)
    assert narrow.layout.xaxis.autotickangles == (0, -90)  # level where the page is wide enough
