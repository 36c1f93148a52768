"""Matrices, bytes for the canvas, and labels."""

from __future__ import annotations

import itertools
import re

import numpy as np

from components.charts import theme
from components.charts.matrices import (
    MAX_TICKS,
    SMALL,
    SQUARE_FROM,
    as_cells,
    axis_labels,
    coarse_borders,
    key_bars,
    mean_cells,
    palette_bytes,
    shrink,
    side_by_side_limits,
    token_matrix,
    window_borders,
)
from tests.components.charts.cell_numbers import numbers


def drawn(matrix: np.ndarray, **options: object) -> object:
    labels = axis_labels([f"t{at}" for at in range(len(matrix))])
    names = {"rows": "query", "columns": "key", "value": "attention", **options}
    return token_matrix(matrix, labels, labels, "Title", **names)


def test_numbers_in_cells_have_the_decimals_asked_for() -> None:
    values = np.array([[-0.126, 1.0], [np.nan, -0.001]])
    assert numbers(drawn(values, show_values=True)) == [["−0.13", "1.00"], ["", "0.00"]]
    assert numbers(drawn(values, show_values=True, decimals=3))[1][1] == "−0.001"
    assert drawn(values).data[0].texttemplate is None


def test_a_key_under_the_title_leaves_the_width_to_the_columns() -> None:
    beside, key = (drawn(np.eye(3), diverging=True, limits=(-0.02, 0.02), colour_bar=bar) for bar in (True, "key"))
    assert (beside.data[0].showscale, key.data[0].showscale) == (True, False)
    assert re.findall(r"</span> ([^<\u2003]+)", key.layout.title.text) == ["−0.020", "0", "+0.020"]
    for blue_adds, colours in ((False, theme.DIVERGING), (True, theme.ADDING)):
        own = drawn(np.eye(3), diverging=True, limits=(-0.02, 0.02), colour_bar="key", blue_adds=blue_adds)
        assert [colour for _, colour in own.data[0].colorscale] == [colour for _, colour in colours]
        assert re.findall(r"color:(#\w+)", own.layout.title.text) == [colour for _, colour in colours]
    room = key.layout.margin.t - beside.layout.margin.t
    assert room > 0
    assert key.layout.height - beside.layout.height == room  # the matrix keeps its height


def test_a_matrix_keeps_values_and_thins_its_labels() -> None:
    matrix = np.random.default_rng(0).random((512, 512)).astype(np.float32)
    figure = drawn(matrix)
    np.testing.assert_array_equal(figure.data[0].z, matrix)
    assert len(figure.data[0].x) == 512
    assert len(figure.layout.xaxis.tickvals) <= MAX_TICKS
    assert len(figure.to_json()) < 3 * 2**20


def test_large_matrices_have_square_cells_and_upright_labels_and_end_within_a_screen() -> None:
    small, large = drawn(np.eye(SQUARE_FROM - 1)), drawn(np.eye(SQUARE_FROM + 1))
    assert small.layout.yaxis.scaleanchor is None
    assert large.layout.yaxis.scaleanchor == "x"
    assert large.layout.xaxis.autotickangles == (0, -90)  # level where they do not overlap
    assert large.layout.height <= 570
    wide = token_matrix(np.zeros((1, 2)), ["0 a"], ["0 " + 60 * "w", "1 b"], "T", rows="r", columns="c", value="v")
    assert len(wide.layout.xaxis.ticktext[0]) <= 14
    assert wide.layout.xaxis.tickvals == wide.data[0].x
    assert drawn(np.eye(3), colour_bar=False).data[0].showscale is False


def test_labels_are_plain_for_widgets_and_escaped_in_figures() -> None:
    assert axis_labels(["a", "<b>", "&"], [1, 2]) == ["1 <b>", "2 &"]
    figure = token_matrix(np.eye(1), ["0 <b>"], ["0 &"], "T", rows="<a href='x'>m</a>", columns="%{z}", value="v")
    assert list(figure.data[0].y) == ["0 &lt;b&gt;"]
    assert "<a" not in figure.layout.yaxis.title.text
    assert "key: %{x}" not in figure.data[0].hovertemplate
    assert figure.data[0].hovertemplate.count("%{z") == 1
    assert list(key_bars(np.ones(1), ["0 <b>"], "T").data[0].x) == ["0 &lt;b&gt;"]


def test_bars_keep_the_order_of_the_tokens_and_mark_one() -> None:
    labels = [f"{number} token" for number in range(5)]
    figure = key_bars(np.arange(5.0), labels, "T", keys="token", value="share (%)", itself=2, decimals=1)
    others, itself = figure.data
    assert (list(others.x), list(others.y)) == ([labels[number] for number in (0, 1, 3, 4)], [0, 1, 3, 4])
    assert (list(itself.x), list(itself.y)) == ([labels[2]], [2])
    assert itself.marker.color != others.marker.color
    assert list(figure.layout.xaxis.categoryarray) == labels
    # The chosen token is named at its bar; no legend is needed.
    assert not figure.layout.showlegend
    assert [(note.text, note.x) for note in figure.layout.annotations] == [("itself", labels[2])]
    assert itself.marker.color == theme.BLUE
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("token", "share (%)")
    assert [list(trace.text) for trace in figure.data] == [["0.0", "1.0", "3.0", "4.0"], ["2.0"]]
    many = key_bars(np.ones(40), [str(number) for number in range(40)], "T", itself=0, decimals=1)
    assert {trace.text for trace in many.data} == {None}
    plain = key_bars(np.ones(3), labels[:3], "T")
    assert (len(plain.data), plain.layout.showlegend) == (1, False)
    others = np.array([1.0, np.nan, 1.0, 9.0, 0.0])
    beside = key_bars(np.arange(5.0), labels, "T", itself=2, decimals=1, compared=("others", others))
    *bars, lines, numbers = beside.data
    assert [bar.text for bar in bars] == [None, None]
    np.testing.assert_array_equal(lines.y, others.astype(np.float32))
    assert (list(numbers.text), list(numbers.y)) == (["0.0", "1.0", "2.0", "3.0", "4.0"], [1, 1, 2, 9, 4])  # above both
    assert beside.layout.title.text.endswith("others</span>")


def test_limits_hold_all_matrices_and_ignore_nan() -> None:
    assert side_by_side_limits(np.array([[0.2, np.nan]]), np.array([[-0.5]])) == (-0.5, 0.2)
    assert side_by_side_limits(np.array([[np.nan]])) == (0.0, 1.0)


def test_cells_go_from_low_to_high_and_are_clipped() -> None:
    values = np.array([[-1.0, 0.0, 0.5, 1.0, 2.0, np.nan]])
    assert list(as_cells(values, 0.0, 1.0)) == [0, 0, 128, 255, 255, 0]


def test_the_palette_has_256_colours_from_dark_to_bright() -> None:
    colours = np.frombuffer(palette_bytes(), np.uint8).reshape(256, 3).astype(int)
    assert colours[0].sum() < 150
    assert colours[-1].sum() > 450


def test_a_pale_matrix_goes_to_blue() -> None:
    cells = token_matrix(np.eye(2), ["a", "b"], ["a", "b"], "T", rows="r", columns="c", value="v", pale=True).data[0]
    assert [colour for _, colour in cells.colorscale] == [colour for _, colour in theme.PALE_TO_BLUE]
    colours = np.frombuffer(palette_bytes(theme.PALE_TO_BLUE), np.uint8).reshape(256, 3).astype(int)
    assert [list(colours[at]) for at in (0, 255)] == [[0xE4, 0xED, 0xF6], [0x1F, 0x5F, 0x9E]]
    assert (np.diff(colours.sum(axis=1)) <= 0).all()  # ever darker


def test_on_a_dark_page_a_pale_matrix_begins_dark_and_its_numbers_can_be_read() -> None:
    colours = np.frombuffer(palette_bytes(theme.DARK_TO_BLUE), np.uint8).reshape(256, 3).astype(int)
    assert (np.diff(colours.sum(axis=1)) >= 0).all()  # ever brighter
    labels = ["a", "b"]
    matrix = token_matrix(
        np.eye(2), labels, labels, "T", rows="r", columns="c", value="v", pale=True, dark=True, show_values=True
    )
    below, above = matrix.data
    assert (below.textfont.color, [text.strip() for text in below.text[0]]) == ("#000000", ["1.00", ""])
    assert (above.textfont.color, [text.strip() for text in above.text[0]]) == ("#FFFFFF", ["", "0.00"])


def test_shrinking_keeps_the_largest_of_each_patch() -> None:
    values = np.arange(2 * 1 * 5 * 5).reshape(2, 1, 5, 5)
    small = shrink(values, 2)
    assert small.shape == (2, 1, 3, 3)
    np.testing.assert_array_equal(small[0, 0], [[6, 8, 9], [16, 18, 19], [21, 23, 24]])


def test_a_narrow_matrix_is_square_with_few_short_labels() -> None:
    labels = axis_labels(["a rather long token"] * 12)
    narrow = token_matrix(np.eye(12), labels, labels, "T", rows="r", columns="c", value="v", narrow=True)
    assert narrow.layout.yaxis.scaleanchor == "x"
    assert narrow.layout.xaxis.title.text is None
    for axis in (narrow.layout.xaxis, narrow.layout.yaxis):
        assert len(axis.tickvals) <= 9
        assert max(map(len, axis.ticktext)) <= 9
    assert narrow.layout.height < 330


def test_bars_by_sign_have_the_colours_of_a_diverging_heatmap():
    figure = key_bars(np.array([0.2, -0.1, 0.0]), ["a", "b", "c"], "Sums", by_sign=True)
    assert list(figure.data[0].marker.color) == [theme.ORANGE, theme.BLUE, theme.ORANGE]


def crossed(borders: list, row: int, columns: int) -> set[float]:
    """The columns' edges at which a row's cells lie on two sides of a border."""
    return {
        column
        for border in borders
        for (column, first), (other, last) in itertools.pairwise(border)
        if column == other and {first, last} == {row - 0.5, row + 0.5} and -0.5 < column < columns - 0.5
    }


def test_the_borders_of_a_window_are_between_the_last_cell_within_and_the_next() -> None:
    borders = window_borders(range(6), range(6), 2)
    for row in range(6):
        within = [column for column in range(6) if abs(row - column) <= 2]
        assert crossed(borders, row, 6) == {within[0] - 0.5, within[-1] + 0.5} - {-0.5, 5.5}
    left, right = borders
    assert left[0] == (-0.5, 2.5)  # a step to the edge of the matrix
    assert right[-1] == (5.5, 2.5)


def test_borders_count_positions_and_not_places() -> None:
    """Tokens that are left out: positions 1, 2, 9 and 10 with a window of 3."""
    (left, right) = window_borders([1, 2, 9, 10], [1, 2, 9, 10], 3)
    assert crossed([left], 2, 4) == crossed([right], 1, 4) == {1.5}
    assert window_borders(range(3), range(3), 2) == []


def test_borders_are_drawn_as_lines_of_cells() -> None:
    figure = drawn(np.eye(4), borders=window_borders(range(4), range(4), 1))
    assert [shape.type for shape in figure.layout.shapes] == ["path", "path"]
    assert figure.layout.shapes[1].path.startswith("M1.5,-0.5L1.5,0.5L2.5,0.5")


def test_the_borders_have_one_entry_in_a_legend() -> None:
    figure = drawn(np.eye(30), borders=window_borders(range(30), range(30), 3))
    assert [shape.showlegend for shape in figure.layout.shapes] == [True, False]
    assert {shape.name for shape in figure.layout.shapes} == {"border of the window"}
    assert figure.layout.showlegend
    assert not drawn(np.eye(30)).layout.showlegend


def test_the_colour_bar_of_square_cells_lies_above_them() -> None:
    square, wide = drawn(np.eye(30)), drawn(np.eye(4))
    assert (square.data[0].colorbar.orientation, square.layout.xaxis.constraintoward) == ("h", "left")
    assert square.layout.margin.t >= wide.layout.margin.t + 30
    assert wide.data[0].colorbar.orientation is None


def test_strong_numbers_are_written_again_in_small_type_for_a_phone_black_or_white() -> None:
    values = np.array([[0.98, 0.02], [0.998, 0.31]])
    figure = drawn(values, pale=True, show_values=True, small_from=0.15, colour_bar="above")
    small = [trace for trace in figure.data if trace.textfont.size == SMALL]
    assert {(trace.textfont.color, *itertools.chain(*trace.text)) for trace in small} == {
        ("#000000", "", "", "", ".31"),
        ("#FFFFFF", ".98", "", "1", ""),  # 1.00 is wider than a cell, and would be read as .00
    }
    assert figure.data[0].colorbar.orientation == "h"
    assert figure.data[0].colorbar.ticktext == ("0.02", "1.00")
    figure.data = [trace for trace in figure.data if trace not in small]
    assert numbers(figure) == [["0.98", "0.02"], ["1.00", "0.31"]]  # all of them where there is room
    ranks = token_matrix(
        np.array([[99.7, 40.0]]),
        ["a"],
        ["b", "c"],
        "",
        rows="r",
        columns="c",
        value="percentile",
        pale=True,
        small_from=50,
    )
    assert [*itertools.chain(*ranks.data[1].text)] == [">99", ""]
    weak = drawn(np.array([[0.11, 0.05]]), pale=True, small_from=0.15)  # one number, where none is strong
    assert [*itertools.chain(*weak.data[1].text)] == [".11", ""]


def test_coarse_borders_are_parallel_to_the_diagonal() -> None:
    for border, side in zip(coarse_borders(10, 2.5), (1, -1), strict=True):
        assert all(row - column == side * 2.5 for column, row in border)
        assert {max(point) for point in border} == {2.0, 9.5}


def test_mean_cells_by_hand() -> None:
    values = np.arange(15.0).reshape(3, 5)
    np.testing.assert_array_equal(mean_cells(values, 1), values)
    assert mean_cells(values, 2).tolist() == [[3, 5, 6.5], [10.5, 12.5, 14]]


def test_matrices_with_one_room_for_labels_have_rows_of_one_height() -> None:
    matrix = np.zeros((3, 2))
    figures = [
        token_matrix(
            matrix, ["a", "b", "c"], columns, "Title", rows="row", columns="column", value="cosine", room=9
        ).layout
        for columns in (["0 x", "1 y"], ["0 word", "1 children"])
    ]
    assert len({(layout.height, layout.margin.t, layout.margin.b) for layout in figures}) == 1
    assert all(layout.xaxis.automargin is False and layout.xaxis.tickangle == -90 for layout in figures)
    assert figures[0].margin.b > 9 * 7  # pixels of a letter
