"""Before and after a block, and what its parts add: what is drawn, in which colours, and where bars break."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from components.charts import theme
from components.charts.cells import colours_of, ink
from components.charts.inside_blocks.added import BlockBars, added_bars
from components.charts.inside_blocks.before_after import (
    ANOTHER,
    ITSELF,
    NUMBERED,
    BlockPicture,
    Scales,
    before_and_after,
    scales_of,
)

MATRIX = np.array([[0.9, 0.1, -0.05], [0.2, 0.7, 0.45], [0.0, 0.3, 0.5]])
HEADS = ["Block 0, the first", "itself 0.70", "another 0.17", "other sentences 0.05"]
LABELS = ["0 [CLS]", "1 <b>", "2 c"]


def drawn(size: int = 3, dark: bool = False, second_text: int | None = None):
    matrix = MATRIX if size == 3 else np.full((size, size), 0.1)
    pictures = [BlockPicture(block, matrix, HEADS, [(1, 2)]) for block in (0, 3)]
    labels = LABELS if size == 3 else [f"{number} a" for number in range(size)]
    itself = np.tile(np.diagonal(matrix)[:, None], 4)
    scales = [scales_of(itself, np.array([-0.05, 0.3]))] * 2
    return before_and_after(pictures, labels, itself, "Title", scales=scales, second_text=second_text, dark=dark)


def test_the_diagonal_and_the_rest_are_two_traces_with_their_own_scales():
    figure = drawn()
    others, own = figure.data[:2]
    np.testing.assert_allclose(others.z, np.where(np.eye(3, dtype=bool), np.nan, MATRIX), atol=1e-7)
    np.testing.assert_allclose(own.z, np.diagonal(MATRIX), atol=1e-7)
    assert ((own.zmin, own.zmax), (others.zmin, others.zmax)) == (ITSELF, ANOTHER)
    assert own.colorscale != others.colorscale
    assert list(others.y) == ["0 [CLS]", "1 &lt;b&gt;", "2 c"]
    # Both pictures share the names of the rows; the strip has them once more, at its right, for a phone.
    assert {(trace.xaxis, trace.yaxis) for trace in figure.data} == {("x", "y"), ("x2", "y"), ("x3", "y2")}
    left, right = figure.layout.yaxis, figure.layout.yaxis2
    assert (right.ticktext, right.tickvals, right.range) == (left.ticktext, left.tickvals, left.range)
    assert (right.side, right.anchor) == ("right", "x3")


def test_the_numbers_are_those_of_the_diagonal_and_of_the_framed_cells():
    figure = drawn()
    texts = [np.array(trace.text) for trace in figure.data if trace.xaxis == "x" and trace.texttemplate]
    assert len(texts) == 2  # in black and in white
    together = [
        [(a + b).replace("\u00a0", "") for a, b in zip(*rows, strict=True)] for rows in zip(*texts, strict=True)
    ]
    assert together == [["0.90", "", ""], ["", "0.70", "0.45"], ["", "", "0.50"]]
    frames = [shape for shape in figure.layout.shapes if shape.xref == "x"]
    assert [(shape.x0, shape.y0) for shape in frames] == [(1.53, 0.53)]


@pytest.mark.parametrize("dark", [False, True])
def test_each_number_has_the_colour_that_can_be_read_on_its_cell(dark):
    figure = drawn(dark=dark)
    own = figure.data[1]
    for trace in figure.data:
        if trace.texttemplate and trace.xaxis == "x":
            is_white = trace.textfont.color == "#FFFFFF"
            for row, colour in enumerate(colours_of(own)):
                if trace.text[row][row].strip("\u00a0"):
                    assert bool(ink(colour)) == is_white


def test_many_tokens_have_no_numbers():
    assert any(trace.type == "heatmap" and trace.texttemplate for trace in drawn(NUMBERED).data)
    assert not any(trace.type == "heatmap" and trace.texttemplate for trace in drawn(NUMBERED + 1).data)


def test_the_strip_is_each_token_by_block_and_its_points_name_row_and_block():
    figure = drawn()
    strip, points = figure.data[-2:]
    assert strip.z.shape == (3, 4)
    assert [tuple(cell) for cell in points.customdata] == [(row, block) for row in range(3) for block in range(4)]
    assert "block 2" in points.text[2]
    many = drawn(512).data[-1]
    assert len(many.x) <= 41 * 4
    assert "512" not in "".join(many.text)  # a point that stands for several rows names none
    framed = [shape for shape in figure.layout.shapes if shape.xref == "x3"]
    assert sorted(shape.x0 for shape in framed) == [-0.5, 2.5]  # the blocks that are shown


def test_lines_between_the_texts_of_a_pair():
    lines = [shape for shape in drawn(second_text=2).layout.shapes if shape.type == "line"]
    assert sorted((shape.xref, shape.x0) for shape in lines) == [("x", -0.5), ("x", 1.5), ("x2", -0.5), ("x2", 1.5)]


def test_scales_are_the_usual_ones_until_the_data_go_beyond():
    usual = scales_of(np.array([0.4, 0.9]), np.array([-0.1, 0.4]))
    assert (usual.itself, usual.another, usual.is_widened, usual.or_more) == (ITSELF, ANOTHER, False, False)
    assert "beyond" not in usual.in_words()
    wider = scales_of(np.array([0.1, 0.97]), np.array([-0.4, *[0.8] * 20]))
    assert (wider.itself, wider.another, wider.is_widened) == ((0.1, 0.97), (-0.4, 0.8), True)
    assert "0.97" in wider.in_words()
    assert "The usual ends are 0.3 to 0.9 and 0 to 0.4; these cosines go beyond." in wider.in_words()
    assert scales_of(np.array([0.97]), np.array([])).another == ANOTHER  # one token has no others
    own = scales_of(np.array([0.6, 0.7]), np.array([0.1, 0.2]), narrow=True)
    assert own == Scales((0.6, 0.7), (0.1, 0.2))
    assert not own.is_widened  # they are others than the usual ends, and lie within
    assert "beyond" not in own.in_words()
    assert scales_of(np.array([0.6, 0.7]), np.array([0.1, 0.41]), narrow=True).is_widened
    assert not Scales(None, ANOTHER).is_widened


def test_a_few_high_cosines_with_others_do_not_leave_the_rest_pale():
    found = scales_of(np.array([0.4, 0.9]), np.array([*[0.1] * 40, 0.68]))
    assert (found.another, found.or_more) == (ANOTHER, True)
    assert "from 0 or less to 0.40 or more." in found.in_words()
    assert not scales_of(np.array([0.4, 0.9]), np.array([*[0.1] * 40, 0.68]), narrow=True).or_more
    picture = BlockPicture(0, MATRIX, HEADS)
    bar = before_and_after([picture], LABELS, MATRIX, "Title", scales=[found]).data[0].colorbar
    assert list(bar.ticktext) == ["≤ 0", "≥ 0.40"]


def test_for_a_phone_the_pictures_and_the_strip_stand_below_each_other():
    pictures = [BlockPicture(block, MATRIX, HEADS, [(1, 2)]) for block in (3, 0)]
    scales = [scales_of(MATRIX, MATRIX)] * 2
    figure = before_and_after(
        pictures, LABELS, np.tile(np.diagonal(MATRIX)[:, None], 4), "Title", scales=scales, is_stacked=True
    )
    assert {(trace.xaxis, trace.yaxis) for trace in figure.data} == {("x", "y"), ("x2", "y2"), ("x3", "y3")}
    layout = figure.layout
    assert {axis.domain for axis in (layout.xaxis, layout.xaxis2, layout.xaxis3)} == {(0, 1)}
    ends = [axis.domain for axis in (layout.yaxis, layout.yaxis2, layout.yaxis3)]
    assert ends[0][1] == 1
    assert all(above[0] > below[1] for above, below in itertools.pairwise(ends))
    np.testing.assert_allclose([top - bottom for bottom, top in ends], ends[0][1] - ends[0][0])
    heads = [(item.x, item.y) for item in layout.annotations]
    assert heads == [(0, top) for _, top in ends]
    assert {(shape.xref, shape.yref) for shape in layout.shapes} == {("x", "y"), ("x2", "y2"), ("x3", "y3")}
    wide = before_and_after(pictures, LABELS, MATRIX, "Title", scales=scales)
    assert layout.height > 2 * wide.layout.height


@pytest.mark.parametrize("is_stacked", [False, True])
def test_the_strip_has_one_scale_whatever_the_scales_of_the_pictures_and_their_order(is_stacked):
    pictures = [BlockPicture(block, MATRIX, HEADS) for block in (0, 3)]
    own = [Scales((0.6, 0.7), (0.1, 0.2)), Scales((0.1, 0.2), (0.0, 0.1))]
    itself = np.array([[0.2, 0.5], [0.6, 0.95], [0.4, 0.8]])
    for order in (1, -1):
        figure = before_and_after(
            pictures[::order], LABELS, itself, "Title", scales=own[::order], is_stacked=is_stacked
        )
        assert (figure.data[-2].zmin, figure.data[-2].zmax) == (0.2, 0.95)  # all blocks are within
        diagonals = [trace for trace in figure.data if trace.type == "heatmap" and np.ndim(trace.z) == 1]
        assert [(cells.zmin, cells.zmax) for cells in diagonals] == [item.itself for item in own[::order]]


def test_cells_of_several_tokens_have_one_scale():
    picture = BlockPicture(0, MATRIX, HEADS)
    figure = before_and_after([picture], LABELS, MATRIX[:, :2], "Title", scales=[Scales(None, (-0.05, 0.9))])
    np.testing.assert_allclose(figure.data[0].z, MATRIX, atol=1e-7)
    assert [trace.type for trace in figure.data] == ["heatmap", "heatmap", "scatter"]  # no diagonal of its own


def test_one_block_has_no_strip():
    picture = BlockPicture(0, np.array([[0.5]]), HEADS[:2])
    figure = before_and_after([picture], ["0 a"], np.array([[0.5]]), "Title", scales=[Scales(ITSELF, ANOTHER)])
    assert {trace.xaxis for trace in figure.data} == {"x"}


# What its parts add


def test_a_bar_far_above_all_others_breaks_and_ends_in_its_number():
    values = np.array([[4.0, 3.0, 5.0], [192.0, 6.0, 8.0]])
    figure = added_bars([BlockBars("Block 0", values)], ["[CLS]", "a", "b"], "Title", "length", break_above=8.5)
    attention, feed_forward = figure.data
    np.testing.assert_allclose(attention.x, values[0])
    assert feed_forward.x[0] < 10
    np.testing.assert_allclose(feed_forward.x[1:], values[1, 1:])
    assert feed_forward.customdata[0][1] == "192.000"  # the hover has the whole number
    (number,) = [item for item in figure.layout.annotations if "192" in item.text]
    assert (number.text, number.xanchor) == ("<b>192 //</b>", "right")  # in its bar: beside it stands the next block


def test_marks_are_drawn_on_the_axis_of_both_blocks():
    marks = np.array([[10.0, 11.0], [12.0, 13.0]])
    blocks = [BlockBars(f"Block {n}", np.array([[1.0, 2.0], [3.0, 4.0]]) * (n + 1), marks) for n in range(2)]
    figure = added_bars(blocks, ["a", "b"], "Title", "length", mark="before")
    assert figure.layout.xaxis.range == figure.layout.xaxis2.range
    drawn_marks = [trace for trace in figure.data if trace.type == "scatter"]
    assert [list(trace.x) for trace in drawn_marks] == 2 * [[10, 11], [12, 13]]


def test_attention_is_blue_above_feed_forward_and_no_mark_stands_beyond_the_axis():
    values = np.array([[4.0, 3.0], [192.0, 6.0]])
    block = BlockBars("Block 0", values, np.array([[5.0, 300.0], [6.0, 7.0]]))
    figure = added_bars([block], ["[CLS]", "a"], "Title", "length", mark="before", break_above=8.5)
    bars = {trace.name: trace for trace in figure.data if trace.type == "bar"}
    assert [bars[part].marker.color for part in ("attention", "feed-forward")] == [theme.BLUE, theme.ORANGE]
    assert (np.array(bars["attention"].y) < np.array(bars["feed-forward"].y)).all()  # the first row is on top
    marks = [list(trace.x) for trace in figure.data if trace.type == "scatter"]
    assert marks == [[5], [6, 7]]


def test_a_point_of_the_strip_says_how_much_its_token_is_like_itself_in_its_block():
    itself = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    picture = BlockPicture(0, MATRIX, HEADS)
    points = before_and_after([picture], LABELS, itself, "Title", scales=[Scales(ITSELF, ANOTHER)]).data[-1]
    for (row, block), text in zip(points.customdata, points.text, strict=True):
        assert f"block {block}: {itself[row, block]:.4f} like itself" in text


@pytest.mark.parametrize(("tokens", "kind"), [(24, "h"), (25, "v"), (65, None)])
def test_many_tokens_are_columns_and_very_many_lines(tokens, kind):
    values = np.arange(2 * tokens, dtype=float).reshape(2, tokens) + 50
    trace = added_bars([BlockBars("Block 0", values)], ["a"] * tokens, "Title", "length").data[0]
    assert (trace.orientation if kind else trace.mode) == (kind or "lines")


def test_bars_end_in_their_numbers_and_a_head_names_the_means():
    values = np.array([[27.6, 22.0], [14.2, 24.0]])
    block = BlockBars("Block <0>", values, means=["25°", "19°"])
    figure = added_bars([block], ["a", "b"], "Title", "degrees", numbers="°")
    assert [[text.strip() for text in trace.text] for trace in figure.data] == [["28°", "22°"], ["14°", "24°"]]
    heads = " ".join(item.text for item in figure.layout.annotations)
    assert "Block &lt;0&gt;" in heads
    assert "attention <b>25°</b>" in heads
    assert "feed-forward <b>19°</b>" in heads
    assert "attention" not in figure.layout.title.text  # the means name the colours
    many = added_bars([BlockBars("Block 0", np.ones((2, 13)))], ["a"] * 13, "Title", "degrees", numbers="°")
    assert all(trace.text is None for trace in many.data)
