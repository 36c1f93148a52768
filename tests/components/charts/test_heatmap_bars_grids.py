"""Heatmaps, bars and grids hold what they are given."""

from __future__ import annotations

import math
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from components.charts import theme
from components.charts.bars import (
    cosine_bars,
    models_by_part,
    parameter_bars,
    part_norm_bars,
    vector_bars,
    word_bars,
)
from components.charts.grids import GridRow, KnownRow, known_pieces, tensor_grids
from components.charts.heatmap import (
    layer_strip,
    off_diagonal_limits,
    percentile_cells,
    similarity_heatmap,
    word_scores,
    written,
)
from components.charts.matrices import token_matrix
from tests.components.charts.cell_numbers import numbers


def test_similarity_heatmap_keeps_equal_labels_apart() -> None:
    matrix = np.array([[1, 0.25], [0.25, 1]])
    figure = similarity_heatmap(matrix, ["bank", "bank"], "Title", dark=False, limits=(0, 1))
    heat = figure.data[0]
    np.testing.assert_array_equal(heat.z, [[np.nan, 0.25], [0.25, np.nan]])
    np.testing.assert_array_equal(figure.data[1].z, [[1, np.nan], [np.nan, 1]])  # grey, whatever the colour scale
    assert figure.data[1].showscale is False
    assert list(heat.x) == ["1", "2"]
    assert list(heat.y) == ["1  bank", "2  bank"]
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert figure.layout.yaxis.autorange == "reversed"  # row 1 on top, as in the table


def test_limits_leave_the_diagonals_out() -> None:
    layers = np.array([[[1, 0.2], [0.2, 1]], [[1, -0.4], [-0.4, 1]]])
    assert off_diagonal_limits(layers, np.array([[1, 0.3], [0.3, 1]])) == (-0.4, 0.3)


def test_a_strip_has_a_column_for_each_layer_and_its_last_values_at_the_right() -> None:
    values = np.arange(6).reshape(2, 3) / 6
    options = {"ends": ["0.33", "0.83"], "strong": [False, True], "dark": False, "layer": 2}
    figure = layer_strip(values, ["<a>", "b"], "Title", **options)
    said = layer_strip(values, ["<a>", "b"], "Title", **options, bold="bold: above <95 %>")
    assert {item.text for item in said.layout.annotations} - {item.text for item in figure.layout.annotations} == {
        "bold: above &lt;95 %&gt;"
    }
    below = said.layout.annotations[-1]
    assert below.yshift <= -60  # under the colour bar, for which there is room
    assert said.layout.margin.b >= -below.yshift + 36
    heat = figure.data[0]
    np.testing.assert_allclose(heat.z, values, rtol=1e-6)
    assert list(heat.x) == [0, 1, 2]
    assert [item.text for item in figure.layout.annotations] == ["0.33", "<b>0.83</b>"]
    assert list(figure.layout.yaxis.ticktext) == ["&lt;a&gt;", "<b>b</b>"]
    assert (heat.zmin, heat.zmax) == (0, 1)
    (column,) = figure.layout.shapes
    assert (column.x0, column.x1, column.line.color) == (1.5, 2.5, theme.ORANGE)
    assert (column.y0, column.y1) == (-0.5, 1.5)  # around all rows


def test_a_title_in_two_lines_takes_no_room_from_a_strip_nor_the_line_of_its_axis() -> None:
    short, long = strip(np.eye(3)), strip(np.eye(3), title="A title in so many words that a phone needs a second line")
    assert long.layout.title.text.count("<br>") == 1
    more = long.layout.margin.t - short.layout.margin.t
    assert more == long.layout.height - short.layout.height == 28


def strip(values: np.ndarray, value: str = "cosine", title: str = "Title") -> go.Figure:
    names = [str(row) for row in range(len(values))]
    return layer_strip(values, names, title, ends=names, strong=[False] * len(names), dark=False, value=value)


def test_word_bars_keep_signs_and_equal_words_apart() -> None:
    figure = word_bars(["a <b>", "dog", "dog"], np.array([0.5, -0.25, 1]), ["A", "A", "B"], "Title", "share")
    assert [(bar.name, list(bar.x), list(bar.y)) for bar in figure.data] == [
        ("A", [0.5, -0.25], [1, 2]),
        ("B", [1], [4]),
    ]
    assert [list(bar.customdata) for bar in figure.data] == [["a &lt;b&gt;", "dog"], ["dog"]]  # named in the hover
    labels = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert labels == {0: "<b>A</b>", 1: "a &lt;b&gt;", 2: "dog", 3: "<b>B</b>", 4: "dog"}
    assert figure.layout.xaxis.title.text == "share"


def test_word_bars_of_signs_and_sums_of_many_words() -> None:
    values = np.array([0.5, -0.25, 30, 0.1])
    figure = word_bars(
        ["a", "b", "9 others", "c"], values, ["A", "A", "A", "B"], "Title", "share", rests=[2], by_sign=True
    )
    assert [list(bar.x) for bar in figure.data] == [[0.5, -0.25], [np.float32(0.1)]]  # the sum does not set the scale
    assert [list(bar.marker.color) for bar in figure.data] == [[theme.ORANGE, theme.BLUE], [theme.ORANGE]]
    assert [(note.text, note.y) for note in figure.layout.annotations] == [("+30.000", 3)]
    assert "9 others" in figure.layout.yaxis.ticktext


def test_parameter_bars_count_everything_once_in_order() -> None:
    groups = ["Embeddings", "Embeddings", "Block 0", "Block 0"]
    figure = parameter_bars(groups, ["word", "layer norm", "attention", "layer norm"], [10, 1, 5, 2], "Title")
    assert sum(sum(bar.x) for bar in figure.data) == 18
    assert list(figure.data[0].customdata) == pytest.approx([100 * 10 / 18])  # per cent of all
    assert list(figure.layout.yaxis.categoryarray) == ["Block 0", "Embeddings"]  # drawn from the bottom up
    norm = next(bar for bar in figure.data if bar.name == "layer norm")
    assert dict(zip(norm.y, norm.x, strict=True)) == {"Embeddings": 1, "Block 0": 2}


def test_blocks_that_are_used_again_are_hatched_and_not_counted() -> None:
    groups, parts, counts = (
        ["Embeddings", "Blocks 0 to 2", "Blocks 0 to 2"],
        ["word", "attention", "layer norm"],
        [10, 5, 2],
    )
    figure = parameter_bars(groups, parts, counts, "Title", {"Blocks 0 to 2": 3})
    *stored, again = figure.data
    assert sum(sum(bar.x) for bar in stored) == 17
    assert (list(again.y), list(again.x), list(again.customdata)) == (["Blocks 0 to 2"], [2 * 7], [2])
    assert len(parameter_bars(groups, parts, counts, "Title", {"Blocks 0 to 2": 1}).data) == len(stored)


def test_the_parts_of_each_model_are_shares_of_that_model() -> None:
    figure = models_by_part(["<i>A</i>", "B"], [{"embeddings": 30, "attention": 10}, {"embeddings": 50}], "Title")
    assert list(figure.layout.yaxis.ticktext) == ["&lt;i&gt;A&lt;/i&gt;", "B"]
    assert (list(figure.layout.yaxis.tickvals), figure.layout.yaxis.autorange) == ([0, 1], "reversed")  # from the top
    embeddings, attention = figure.data
    assert list(embeddings.x) == [30, 50]
    assert [tuple(row) for row in embeddings.customdata] == [("&lt;i&gt;A&lt;/i&gt;", 75), ("B", 100)]
    assert (list(attention.y), [tuple(row) for row in attention.customdata]) == ([0], [("&lt;i&gt;A&lt;/i&gt;", 25)])


def test_models_with_names_that_begin_alike_have_bars_of_their_own() -> None:
    name = "contrastive-mnrl-20261123-190926-ab12"
    figure = models_by_part([name, f"{name}, before training"], [{"embeddings": 30}, {"embeddings": 30}], "Title")
    assert len(set(figure.data[0].y)) == 2


def test_part_norms_keep_equal_tokens_apart() -> None:
    figure = part_norm_bars(["word", "sum"], ["the", "the"], np.array([[1.0, 2.0], [3.0, 4.0]]), "Title")
    assert list(figure.data[0].x) == ["0 the", "1 the"]
    np.testing.assert_array_equal(figure.data[1].y, [3, 4])
    kinds = [part_norm_bars(["a"], ["x"] * count, np.ones((1, count)), "Title").data[0].type for count in (64, 65)]
    assert kinds == ["bar", "scatter"]  # bars of more tokens would be thinner than a pixel


def test_few_lone_bars_have_their_numbers_and_a_line_names_a_value() -> None:
    values = np.array([[43.6, np.nan], [np.nan, 92.2]])
    named = {"decimals": 0, "unit": "°", "mark": (90.0, "90°: nothing in common"), "chosen": ("b", "hidden")}
    figure = part_norm_bars(["a", "b"], ["x", "y"], values, "Title", **named)
    assert [list(trace.text) for trace in figure.data] == [["44°", ""], ["", "92°"]]
    (line,) = figure.layout.shapes
    assert (line.y0, line.y1) == (90, 90)
    assert [note.text for note in figure.layout.annotations] == ["hidden", "90°: nothing in common"]
    assert figure.layout.annotations[0].textangle == -90  # on a phone the bar is narrower than the word
    assert figure.layout.yaxis.range[1] > 92.2  # the line and the numbers are within the figure
    low = part_norm_bars(["a"], ["x", "y"], np.array([[3.0, 4.0]]), "Title", mark=(90.0, "far"))
    assert low.layout.yaxis.range[1] > 90
    many = part_norm_bars(["a"], ["x"] * 17, np.ones((1, 17)), "Title", decimals=0)
    assert many.data[0].text is None


@pytest.mark.parametrize(
    ("values", "powers"),
    [([3.0, 11.0], (0, 2)), ([0.2, 0.4], (-1, 0)), ([10.0, 10.0], (1, 2)), ([np.nan, 5.0], (0, 1))],
)
def test_a_logarithmic_axis_has_at_least_two_numbers(values: list[float], powers: tuple[int, int]) -> None:
    axis = part_norm_bars(["a"], ["x", "y"], np.array([values]), "Title", logarithmic=True).layout.yaxis
    assert axis.dtick == 1
    assert (math.ceil(axis.range[0]), math.floor(axis.range[1])) == powers


def test_a_logarithmic_axis_has_points_and_lone_parts_stand_over_their_tokens() -> None:
    values = np.array([[1.0, np.nan], [np.nan, 4.0]])
    assert part_norm_bars(["a", "b"], ["x", "y"], values, "Title").layout.barmode == "overlay"
    figure = part_norm_bars(["a", "b"], ["x", "y"], np.ones((2, 2)), "Title", logarithmic=True)
    assert [(trace.type, trace.mode) for trace in figure.data] == [("scatter", "markers")] * 2
    assert figure.layout.yaxis.type == "log"


def test_vector_bars_name_the_three_largest() -> None:
    values = np.zeros(10, np.float32)
    values[[2, 5, 7]] = [1, -3, 2]
    figure = vector_bars(values, "Title")
    np.testing.assert_array_equal(figure.data[0].y, values)
    assert [figure.data[0].marker.color[at] for at in (2, 5)] == [theme.BLUE, theme.ORANGE]  # positive, negative
    assert {note.text for note in figure.layout.annotations} == {"dim 2", "dim 5", "dim 7"}


def test_cosine_bars_hold_pairs_by_part() -> None:
    figure = cosine_bars(["word", "layer 0"], ["1 – 2"], np.array([[1.0, 0.9]]), "Title")
    assert list(figure.data[0].x) == ["word", "layer 0"]
    np.testing.assert_allclose(figure.data[0].y, [1, 0.9], rtol=1e-6)
    assert figure.data[0].name == "1 – 2"
    # The six pairs of four sentences have six colours.
    figure = cosine_bars(["word"], [f"pair {number}" for number in range(6)], np.ones((6, 1)), "Title")
    assert len({trace.marker.color for trace in figure.data}) == 6


def test_grids_align_grey_the_padding_and_escape() -> None:
    ids, mask = np.array([[7, 8], [9, 0]]), np.array([[1, 1], [1, 0]])
    rows = [GridRow("sentence 5", [("a<b>", 2)], ["a", "<script>"]), GridRow("sentence 6", [("", 1)], ["b"])]
    html = tensor_grids([("<ids>", ids), ("attention_mask", mask)], rows, mask, total=9)
    cells = re.findall(r'<td(?: class="(\w+)")? title="([^"]+)">(\d)</td>', html)
    assert cells == [
        ("", "a", "7"),
        ("", "&lt;script&gt;", "8"),
        ("read", "a", "1"),
        ("read", "&lt;script&gt;", "1"),
        ("", "b", "9"),
        ("pad", "padding", "0"),
        ("read", "b", "1"),
        ("pad", "padding", "0"),
    ]
    for text in ("<script>", "<ids>", "a<b>"):
        assert text not in html
    # Each word stands over its pieces; what was added and what is padding say so.
    assert '<td class="word" colspan="2"><b>a&lt;b&gt;</b></td>' in html
    assert '<td class="word" colspan="1"><small>added</small></td>' in html
    assert '<td class="word" colspan="1"><small>padding</small></td>' in html
    assert '<th scope="rowgroup">sentence 5</th>' in html
    assert "2 tensors of 9 × 2 numbers" in html
    assert "<span>2 columns →</span>" in html  # seen where they have no room


def test_a_tick_stands_where_its_id_is_among_all() -> None:
    rows = [
        KnownRow("contains “<i>”", "", (0, 100), 2, ["<b>", "c"], "found"),
        KnownRow("<b>", "25", (25,), 0, [], "chosen"),
        KnownRow("c", "100", (100,), 9, ["cat", "cab"]),
    ]
    html = known_pieces(rows, 101)
    assert re.findall(r"left: ([\d.]+)%", html) == ["0.00", "100.00", "25.00", "100.00"]
    assert "<b>2</b> found<em> (orange)</em>: &lt;b&gt;, c<" in html
    assert "<b>9</b> cat, cab, …" in html
    assert html.index("(orange)") < html.index('scope="col"')  # above the table
    assert "<b>1</b> piece: “…”<" in known_pieces([KnownRow(".", "12", (12,), 1, ["…"])], 101)
    assert html.count("none") == 1
    assert "<i>&lt;b&gt;</i>" in html
    assert 'class="chosen"' in html


def test_word_scores_part_the_texts_on_one_symmetric_scale() -> None:
    values = np.array([[1.0, -0.5], [0.2, 0.0], [0.0, 1.0]])
    figure = word_scores(values, ["A1  <b>", "A2  cat", "B1  cat"], ["Leave one out", "Ledger"], 2, "Title")
    heat = figure.data[0]
    np.testing.assert_allclose(heat.z, values, rtol=1e-6)
    assert (heat.zmin, heat.zmax) == (-1, 1)
    assert (heat.colorscale[0][1], heat.colorscale[-1][1]) == (theme.ADDING[0][1], theme.BLUE)  # blue adds
    key = figure.layout.title.text.split(theme.BELOW_TITLE)[1]
    assert re.findall(r'color:(#\w+)">■</span> ([a-z ]+)', key) == [
        (theme.BLUE, "holds the two together"),
        (theme.ADDING[0][1], "keeps them apart"),
    ]
    assert list(heat.y) == ["A1  &lt;b&gt;", "A2  cat", "B1  cat"]
    assert list(heat.x) == ["Leave<br>one out", "Ledger"]
    (line,) = figure.layout.shapes
    assert (line.y0, line.y1) == (1.5, 1.5)
    assert word_scores(values, ["A1", "A2", "A3"], ["a", "b"], 3, "Title").layout.shapes == ()
    grey = word_scores(values, ["A1", "A2", "A3"], ["a", "b"], 3, "Title", without_sign=[0]).data[0]
    assert grey.z[:, 0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(grey.customdata, values, rtol=1e-6)


def test_every_cell_of_a_similarity_heatmap_can_be_clicked_and_the_chosen_pair_is_framed_twice() -> None:
    matrix = np.array([[1.0, 0.25, 0.5], [0.25, 1.0, 0.75], [0.5, 0.75, 1.0]])
    figure = similarity_heatmap(
        matrix, ["<b>", "two", "three"], "Title", dark=False, numbers=[3, 1, 2], clickable=True, chosen=(0, 2)
    )
    points = figure.data[-1]
    assert [tuple(cell) for cell in points.customdata] == [(row, column) for row in range(3) for column in range(3)]
    for (row, column), x, y, hint in zip(points.customdata, points.x, points.y, points.text, strict=True):
        assert x == figure.data[0].x[column]
        assert y == figure.data[0].y[row]
        assert ("with itself" if row == column else f"cosine {matrix[row, column]:.4f}") in hint
    assert "3  &lt;b&gt;" in points.text[1]
    centres = {((shape.y0 + shape.y1) / 2, (shape.x0 + shape.x1) / 2) for shape in figure.layout.shapes}
    assert centres == {(0, 2), (2, 0)}
    assert figure.layout.hoverdistance == -1  # a click anywhere in a cell hits it


def test_cells_can_be_clicked_only_on_request_and_show_their_hint_anyway() -> None:
    matrix = np.array([[1.0, 0.25], [0.25, 1.0]])
    figure = similarity_heatmap(matrix, ["<b>", "two"], "Title", dark=False)
    assert [trace.type for trace in figure.data] == ["heatmap", "heatmap"]
    assert figure.layout.dragmode is None
    for cells in figure.data:  # the diagonal is the second's
        assert cells.hovertemplate == "%{customdata}<extra></extra>"
        assert cells.hoverongaps is False
        assert cells.hoverinfo is None
    assert figure.data[0].customdata[0][1] == "1  &lt;b&gt;<br>2  two<br>cosine 0.2500"
    assert figure.data[1].customdata[1][1] == "2  two<br>with itself: 1"
    assert figure.data[0].texttemplate is None


def test_a_sentence_without_a_vector_has_no_hints() -> None:
    matrix = np.array([[1.0, np.nan, 0.5], [np.nan, np.nan, np.nan], [0.5, np.nan, 1.0]])
    figure = similarity_heatmap(matrix, ["a", "b", "c"], "Title", dark=False, clickable=True)
    assert [tuple(cell) for cell in figure.data[-1].customdata] == [(0, 0), (0, 2), (2, 0), (2, 2)]
    assert figure.layout.hoverdistance == 20
    drawn = similarity_heatmap(matrix, ["a", "b", "c"], "Title", dark=False).data[0]
    assert [list(row) for row in drawn.customdata][1] == ["", "", ""]


def test_columns_have_the_short_name_of_their_own_sentence() -> None:
    figure = similarity_heatmap(np.eye(2), ["a long one", "b"], "Title", dark=False, short=["<one>", "two"])
    assert list(figure.layout.xaxis.ticktext) == ["1<br>&lt;one&gt;", "2<br>two"]


def test_no_percentile_is_rounded_to_100_in_a_cell() -> None:
    assert percentile_cells(np.array([[99.5, 99.4]])) == [["> 99", "99"]]
    assert written(np.array([[0.1, 0.2]]), "cosine", least=0.2) == [["", "0.20"]]  # from the least one on
    matrix = np.array([[100, 99.85, 99.4], [99.85, 100, 100], [99.4, 100, 100]])
    figure = similarity_heatmap(
        matrix, ["a", "b", "c"], "Title", dark=False, show_values=True, value="percentile", clickable=True
    )
    assert figure.data[0].texttemplate == "%{text}"
    assert numbers(figure) == [["", "> 99", "99"], ["> 99", "", "> 99"], ["99", "> 99", ""]]
    hints = dict(zip(map(tuple, figure.data[-1].customdata), figure.data[-1].text, strict=True))
    assert hints[0, 1].endswith("percentile 99.8500")
    assert hints[1, 2].endswith("percentile > 99.99")
    others = token_matrix(
        np.array([[99.85, np.nan]]),
        ["a"],
        ["b", "c"],
        "Title",
        rows="r",
        columns="c",
        value="percentile",
        show_values=True,
    )
    assert numbers(others) == [["> 99", ""]]
    pointed_at = strip(np.array([[100, 99.85]]), "percentile")
    assert [list(row) for row in others.data[0].customdata] == [["99.8500", ""]]
    assert [[text for _, text in row] for row in pointed_at.data[0].customdata] == [["> 99.99", "99.8500"]]
    for drawn in (others, pointed_at):
        assert "%{customdata" in drawn.data[0].hovertemplate
        assert "%{z" not in drawn.data[0].hovertemplate
    assert strip(matrix / 100).data[0].zhoverformat == ".4f"
    cosines = similarity_heatmap(matrix / 100, ["a", "b", "c"], "Title", dark=False, show_values=True)
    assert numbers(cosines)[0][1] == "1.00"
