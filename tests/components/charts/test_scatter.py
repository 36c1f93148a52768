"""Maps as figures: every point once, with its row, its group's colour, and the selection."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest

from components.charts import scatter, theme
from components.charts.scatter import (
    GROUPS,
    MOST_CHOSEN,
    REST,
    Colours,
    MarkedPoints,
    PointTexts,
    moving_map,
    token_map,
)


def texts(count: int) -> PointTexts:
    return PointTexts([f"t{row}" for row in range(count)], [f"long {row}" for row in range(count)])


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)


def test_every_point_is_drawn_once_with_its_row_and_place(points):
    figure = token_map(points, texts(30), Colours("sentence", [str(row % 3) for row in range(30)]), "Map")
    seen = {}
    for trace in figure.data:
        assert trace.type == "scatter"
        for row, x, y, text, hover in zip(trace.customdata, trace.x, trace.y, trace.text, trace.hovertext, strict=True):
            seen[int(row)] = (x, y)
            assert text == f"t{row}"
            assert hover == f"long {row}"
    assert seen == {row: (points[row, 0], points[row, 1]) for row in range(30)}
    assert [trace.name for trace in figure.data] == ["0", "1", "2"]
    assert len({trace.marker.color for trace in figure.data}) == 3


def test_one_unit_is_as_long_on_both_axes_and_numbers_are_hidden(points):
    figure = token_map(points, texts(30), Colours("x", ["a"] * 30), "Map", extent=2.5)
    assert figure.layout.yaxis.scaleanchor == "x"
    assert tuple(figure.layout.xaxis.range) == (-2.5, 2.5)
    assert figure.layout.xaxis.showticklabels is False
    assert figure.data[0].showlegend is False  # one group needs no legend


def test_frequent_groups_have_colours_and_the_rest_is_one_group_behind(points):
    many = np.random.default_rng(1).normal(size=(100, 2)).astype(np.float32)
    names = [f"g{min(row, 40) % 40}" for row in range(100)]
    figure = token_map(many, texts(100), Colours("topic", names), "Map")
    groups = [trace for trace in figure.data if trace.mode == "markers"]
    assert len(groups) == GROUPS
    assert groups[0].name == REST
    assert sum(len(trace.x) for trace in groups) == 100
    assert len({trace.marker.color for trace in groups}) == GROUPS
    assert figure.data[1].name == "g0"  # the most frequent


def test_groups_stand_in_the_order_asked_for_and_numbered_ones_in_theirs(points):
    numbered = ["10"] * 20 + ["2"] * 10
    assert [trace.name for trace in token_map(points, texts(30), Colours("s", numbered), "Map").data] == ["2", "10"]
    ordered = Colours("s", ["a"] * 20 + ["b"] * 10, order=["b", "a"])
    first, second = token_map(points, texts(30), ordered, "Map").data
    assert [trace.name for trace in (first, second)] == ["b", "a"]
    assert (first.showlegend, first.marker.color) == (True, scatter.HUES[0])
    without = Colours("s", ["a"] * 20 + ["b"] * 10, has_key=False)
    assert not any(trace.showlegend for trace in token_map(points, texts(30), without, "Map").data)
    assert scatter.hues_of(["a", "b", "b"]) == {"b": scatter.HUES[0], "a": scatter.HUES[1]}  # the most frequent first


def test_the_marked_points_are_blue_and_bold_above_the_others(points):
    words = PointTexts([f"T{row}" for row in range(30)], [""] * 30, frozenset({"t7"}))
    marked = MarkedPoints("bank", [3, 28])
    *others, own = token_map(
        points, words, Colours("s", [str(row % 2) for row in range(30)]), "Map", marked=marked
    ).data
    assert (own.name, own.marker.color, list(own.customdata)) == ("bank", theme.BLUE, [3, 28])
    assert own.marker.size > others[0].marker.size
    bold = {
        int(row)
        for trace in (*others, own)
        for row, text in zip(trace.customdata, trace.text, strict=True)
        if "<b>" in text
    }
    assert bold == {3, 7, 28}  # and the important one
    by_number = token_map(points, words, Colours("position", numbers=np.arange(30.0)), "Map", marked=marked)
    assert len(by_number.data) == 1  # blue would be one of the numbers


def test_labels_stand_alternately_above_and_below(points):
    (trace,) = token_map(points, texts(30), Colours("s", ["a"] * 30), "Map").data
    assert list(trace.textposition)[:3] == ["top center", "bottom center", "top center"]


def test_lines_join_pairs_of_points_dashed_where_they_say_so(points):
    figure = scatter.join_pairs(go.Figure(), points, [(0, 1, False), (2, 3, True)], ("#111111", "#222222"))
    looks = [(shape.line.color, shape.line.dash) for shape in figure.layout.shapes]
    assert looks == [("#111111", "solid"), ("#222222", "dash")]
    for shape, (first, second) in zip(figure.layout.shapes, ((0, 1), (2, 3)), strict=True):
        ends = [(shape.x0, shape.y0), (shape.x1, shape.y1)]
        np.testing.assert_allclose(ends, points[[first, second]], rtol=1e-6)


def test_numbers_become_a_colour_scale(points):
    numbers = np.arange(30, dtype=np.float32)
    figure = token_map(points, texts(30), Colours("position", numbers=numbers), "Map")
    (trace,) = figure.data
    np.testing.assert_array_equal(trace.marker.color, numbers)
    assert trace.marker.showscale
    assert trace.marker.colorbar.title.text == "position"


def test_the_selection_is_marked_in_every_group(points):
    figure = token_map(points, texts(30), Colours("s", [str(row % 2) for row in range(30)]), "Map", selected=[1, 4, 28])
    assert [list(trace.selectedpoints) for trace in figure.data] == [[2, 14], [0]]
    none = token_map(points, texts(30), Colours("s", ["a"] * 30), "Map")
    assert none.data[0].selectedpoints is None


@pytest.mark.parametrize(
    ("count", "renderer", "kind"), [(30, "webgl", "scatter"), (200, "webgl", "scattergl"), (200, "svg", "scatter")]
)
def test_few_points_carry_their_text_and_many_can_be_drawn_by_webgl(count, renderer, kind):
    points = np.random.default_rng(1).normal(size=(count, 2)).astype(np.float32)
    figure = token_map(points, texts(count), Colours("s", ["a"] * count), "Map", renderer=renderer)
    assert figure.data[0].type == kind
    assert figure.data[0].mode == ("markers+text" if count <= scatter.LABELLED else "markers")


def test_the_most_central_point_of_a_dense_place_is_labelled_first():
    """Two clouds in opposite corners: the fuller one's most central point comes first, then the other one's."""
    random = np.random.default_rng(2)
    clouds = [random.uniform(-0.4, 0.4, size=(80, 2)), random.uniform(-0.4, 0.4, size=(20, 2)) + 20]
    many = np.concatenate(clouds)
    rows, at_once = scatter.central(many)
    nearest = [int(np.square(cloud - cloud.mean(axis=0)).sum(axis=1).argmin()) for cloud in clouds]
    assert rows[:2].tolist() == [nearest[0], 80 + nearest[1]]
    assert at_once == 2  # the others have room only in an enlarged map
    assert len(rows) == len(set(rows.tolist())) > at_once
    assert len(scatter.central(random.normal(size=(20_000, 2)))[0]) == scatter.MOST_LABELS
    assert scatter.central(np.zeros((90, 2)))[1] == 1


def test_a_large_map_labels_each_word_once_and_hides_the_other_labels():
    many = np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32)
    words = PointTexts(["The" if row % 2 else f"w{row}" for row in range(300)], [""] * 300)
    figure = token_map(many, words, Colours("s", ["a"] * 300), "Map")
    shown, hidden = (trace for trace in figure.data if trace.mode == "text")
    assert list(shown.text).count("The") == 1
    assert hidden.textfont.color.endswith(",0)")
    for trace in (shown, hidden):
        np.testing.assert_array_equal(trace.x, many[trace.customdata, 0])
        assert list(trace.text) == [words.short[row] for row in trace.customdata]
    moving = moving_map({0: many, 1: -many}, words, Colours("s", ["a"] * 300), "Map")
    np.testing.assert_array_equal(moving.frames[0].data[1].x, many[moving.data[1].customdata, 0])


def test_selected_points_of_a_large_map_are_always_labelled():
    many = np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32)
    names = PointTexts([f"w{row}" for row in range(300)], [""] * 300)
    edge = int(np.argmax(many[:, 0]))  # not central
    first = int(scatter.central(many)[0][0])
    figure = token_map(many, names, Colours("s", ["a"] * 300), "Map", selected=[edge, first])
    chosen, others, hidden = (trace for trace in figure.data if trace.mode == "text")
    assert list(chosen.text) == [f"<b>w{edge}</b>", f"<b>w{first}</b>"]  # bold labels never make room
    np.testing.assert_array_equal(chosen.y, many[[edge, first], 1])
    labelled = [row for trace in (chosen, others, hidden) for row in trace.customdata]
    assert len(labelled) == len(set(labelled))
    every = token_map(many, names, Colours("s", ["a"] * 300), "Map", selected=range(100))
    assert [len(trace.x) for trace in every.data if trace.name == "chosen labels"] == [MOST_CHOSEN]
    marked = token_map(many, names, Colours("s", ["a"] * 300), "Map", marked=MarkedPoints("bank", [edge]))
    assert [list(trace.text) for trace in marked.data if trace.name == "chosen labels"] == [[f"<b>w{edge}</b>"]]


def test_three_dimensions_mark_the_selection_by_size_and_colour():
    points = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)
    figure = token_map(points, texts(10), Colours("s", ["a"] * 10), "Map", selected=[3])
    (trace,) = figure.data
    assert trace.type == "scatter3d"
    np.testing.assert_array_equal(trace.z, points[:, 2])
    assert trace.marker.size[3] > trace.marker.size[0]
    assert [row for row, colour in enumerate(trace.marker.color) if colour == scatter.SELECTED] == [3]


@pytest.mark.parametrize("dims", [2, 3])
def test_a_moving_map_has_a_frame_for_each_layer_with_its_own_places(dims):
    random = np.random.default_rng(0)
    maps = {layer: random.normal(size=(20, dims)).astype(np.float32) for layer in (0, 1, 2)}
    groups = [str(row % 2) for row in range(20)]
    figure = moving_map(maps, texts(20), Colours("sentence", groups), "Map", selected=[2])
    assert [frame.name for frame in figure.frames] == ["0", "1", "2"]
    for frame in figure.frames:
        for trace, data in zip(figure.data, frame.data, strict=True):
            np.testing.assert_array_equal(data.x, maps[int(frame.name)][trace.customdata, 0])
            np.testing.assert_array_equal(data.y, maps[int(frame.name)][trace.customdata, 1])
    assert [step.label for step in figure.layout.sliders[0].steps] == ["0", "1", "2"]
    # It opens with the last layer, as the sentence above it ends.
    assert figure.layout.sliders[0].active == 2
    np.testing.assert_array_equal(figure.data[0].x, maps[2][figure.data[0].customdata, 0])
    assert figure.layout.updatemenus[0].buttons[0].label == "▶ Play"
    # The buttons stand above the slider, beside the title: not over either.
    assert figure.layout.updatemenus[0].pad.b > figure.layout.sliders[0].pad.b + 60
    assert (figure.layout.updatemenus[0].x, figure.layout.title.x) == (1, 0)
    if dims == 2:
        # One frame for all layers, in which each point has room.
        for column, axis in enumerate((figure.layout.xaxis, figure.layout.yaxis)):
            values = np.concatenate([points[:, column] for points in maps.values()])
            low, high = float(values.min()), float(values.max())
            margin = 0.08 * (high - low)
            assert axis.range == pytest.approx((low - margin, high + margin), abs=1e-5)
        redraw = figure.layout.updatemenus[0].buttons[0].args[1]["frame"]["redraw"]
        assert redraw is False  # SVG points glide


def test_marked_points_trail_the_way_that_they_have_come():
    maps = {layer: np.array([[layer, 0], [2 * layer, 1], [0, 5]], np.float32) for layer in (0, 1, 2)}
    figure = moving_map(
        maps,
        texts(3),
        Colours("sentence", ["1", "1", "2"]),
        "Map",
        marked=scatter.MarkedPoints("bank", [0, 1]),
        nearest={layer: [(0, 2, layer == 0)] for layer in maps},
    )
    trail, ring = figure.data[-1], 18  # of 17 points and a gap; a way has one point for each layer and a gap
    assert (trail.mode, len(trail.x)) == ("lines", 2 * (4 + ring))
    ways = [list(zip(trail.x[at : at + 4], trail.y[at : at + 4], strict=True)) for at in (0, 4 + ring)]
    assert ways == [[(0, 0), (1, 0), (2, 0), (None, None)], [(0, 1), (2, 1), (4, 1), (None, None)]]
    for at, way in zip((4, 8 + ring), ways, strict=True):
        places = zip(trail.x[at : at + ring - 1], trail.y[at : at + ring - 1], strict=True)
        radii = [np.hypot(x - way[0][0], y - way[0][1]) for x, y in places]  # around where it begins
        assert np.allclose(radii, radii[0])
        assert radii[0] > 0
    # A dashed line at layer 0, a solid one later; the other has no length, so that both glide.
    assert [trace.line.dash for trace in figure.data[-3:-1]] == ["dash", "solid"]
    for frame, drawn in zip(figure.frames, (0, 1, 1), strict=True):
        assert [len(set(data.y[:2])) for data in frame.data[-3:-1]] == [1 + (kind == drawn) for kind in (0, 1)]
    first = figure.frames[1].data[-1]
    assert [first.x[:4], first.x[4 + ring : 8 + ring]] == [(0, 1, 1, None), (0, 2, 2, None)]  # up to its layer
    assert {shape.type for shape in figure.layout.shapes} == {"rect"}  # with a circle, plotly forgets a lasso


def test_maps_turn_together_until_they_are_lowest_and_distances_stay():
    upright = np.random.default_rng(0).normal(size=(30, 2)) @ np.diag([1, 9])
    maps = scatter.turned({0: upright, 1: upright + np.array([0.0, 1.0])})
    assert np.ptp(maps[0][:, 0]) > 4 * np.ptp(maps[0][:, 1])
    for points in maps.values():
        np.testing.assert_allclose(
            np.linalg.norm(points - points[0], axis=1), np.linalg.norm(upright - upright[0], axis=1)
        )
    np.testing.assert_allclose(np.linalg.norm(maps[1] - maps[0], axis=1), 1)


def test_markup_in_a_token_is_shown_as_text(points):
    bad = PointTexts(["<b>x</b>"] * 30, ["safe"] * 30)
    figure = token_map(points, bad, Colours("<i>t</i>", ["<script>"] * 15 + ["b"] * 15), "<img>")
    assert figure.data[0].text[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert figure.data[0].name == "&lt;script&gt;"
    assert "<img" not in figure.layout.title.text
    assert "<i>" not in figure.layout.legend.title.text


def test_hues_differ_and_the_palette_comes_first():
    assert len(set(scatter.HUES)) == len(scatter.HUES) >= GROUPS
    assert scatter.HUES[: len(theme.PALETTE)] == theme.PALETTE


def test_of_points_on_one_place_the_lower_are_larger_so_that_all_are_seen():
    places = np.array([[0, 0], [1, 0], [0, 0], [1, 1], [0, 0]], np.float32)
    colours = Colours("sentence", ["1", "1", "2", "2", "3"], shapes=["circle", "circle", "square", "square", "star"])
    sizes = {}
    for trace in token_map(places, texts(5), colours, "Map").data:
        sizes |= dict(zip(trace.customdata.tolist(), np.broadcast_to(trace.marker.size, len(trace.x)), strict=True))
    assert sizes[0] > sizes[2] > sizes[4] == sizes[1] == sizes[3]
    # Of a map that moves: what lies together at every layer.
    apart = places.copy()
    apart[2] = [0.5, 0.5]
    moving = moving_map({0: places, 1: apart}, texts(5), colours, "Map").data
    assert moving[0].marker.size[0] == sizes[2]
    assert moving[1].marker.size == sizes[4]


def test_the_name_of_a_group_stands_in_its_middle_and_not_at_an_outlier():
    middle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    points = np.concatenate([middle, [[20.0, 20.0]], middle + 30.0])  # the lonely fifth has most room
    figure = scatter.name_groups(go.Figure(), points, ["a"] * 5 + ["b"] * 4)
    places = {item.text: (item.x, item.y) for item in figure.layout.annotations}
    assert max(places["<b>a</b>"]) <= 1
    assert min(places["<b>b</b>"]) >= 30


def test_a_map_has_room_for_a_name_above_its_topmost_point():
    points = np.array([[0.0, 1.0], [0.0, 0.0], [3.0, 0.0], [3.0, 1.0]])
    figure = scatter.name_groups(go.Figure({"layout": {"yaxis": {"range": (-0.5, 1.5)}}}), points, ["a", "a", "b", "b"])
    assert figure.layout.yaxis.range == pytest.approx((-0.5, 1.68))
