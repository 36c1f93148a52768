"""Figures of training runs, and the pictures of objectives."""

from __future__ import annotations

import re

import numpy as np
import pytest

from components.charts import objective_pictures, theme, training
from components.training.objectives import OBJECTIVES

STEPS = np.arange(1, 6)
NONE = (np.zeros(0, int), np.zeros(0))


def plain(text: str) -> str:
    """A label without its markup."""
    return re.sub("<[^>]*>", "", text)


def test_smoothing_is_the_mean_of_the_values_around_each() -> None:
    values = np.array([4.0, 2.0, 6.0, 0.0])
    np.testing.assert_allclose(training.smoothed(values, 1), values)
    np.testing.assert_allclose(training.smoothed(values, 2), [4, 4, 3, 0])
    np.testing.assert_allclose(training.smoothed(values, 99), [4, 4, 3, 3])
    falling = np.arange(20.0, 0.0, -1.0)
    np.testing.assert_allclose(training.smoothed(falling, 9)[:16], falling[:16])  # not above the values that it is of
    assert len(training.smoothed(np.zeros(0), 3)) == 0


def test_the_loss_is_drawn_raw_and_smoothed_with_the_held_out_loss() -> None:
    values = np.array([5.0, 3.0, 4.0, 2.0, 1.0])
    held_out = (np.array([0, 4, 5]), np.array([5.5, 2.5, 1.5]))
    figure = training.loss_curves({"Triplet": (STEPS, values)}, held_out, "Loss", window=2, steps=10, marked=4)
    names = {trace.name: trace for trace in figure.data}
    assert list(names) == ["training loss, each step", "training loss, mean of 2 steps", "held-out loss", "kept"]
    np.testing.assert_allclose(names["training loss, each step"].y, values)
    np.testing.assert_allclose(names["training loss, mean of 2 steps"].y, [5, 3.5, 3, 1.5, 1])
    np.testing.assert_allclose(names["held-out loss"].y, [5.5, 2.5, 1.5])
    assert (names["kept"].x[0], names["kept"].y[0]) == (4, 2.5)
    assert figure.layout.xaxis.range[1] > 10  # room for the steps to come
    assert figure.layout.shapes[0].x0 == 4
    ends = {item.text: item.y for item in figure.layout.annotations if item.text.startswith("<b>")}
    assert set(ends) == {"<b>training 1.00</b>", "<b>held out 1.50</b>"}  # names in place of a legend
    assert len(set(ends.values())) == 2  # apart, though both lines end at one place
    assert not figure.layout.showlegend
    learnt = training.loss_curves(
        {"T": (STEPS, values - 1)}, (held_out[0], np.zeros(3)), "", window=1, steps=5, marked=4
    )
    low, _ = learnt.layout.yaxis.range
    assert low < 0  # the ring at 0 is whole
    assert min(item.y for item in learnt.layout.annotations if item.text.startswith("<b>")) >= low


def test_measures_stand_in_panels_with_the_undamaged_level() -> None:
    steps = np.array([0, 4])
    panels = {
        "Found": ("Recall@1", (steps, np.array([0.2, 0.5]))),
        "Among ten": ("Recall@10", (steps, np.array([0.6, 0.9]))),
        "Cosine": ("unrelated", (steps, np.array([0.6, 0.2]))),
    }
    figure = training.measure_panels(panels, {"Recall@1": 0.7}, steps=8)
    assert [trace.name for trace in figure.data] == ["Recall@1", "Recall@10", "unrelated"]
    assert [trace.yaxis for trace in figure.data] == ["y", "y2", "y3"]
    assert [shape.y0 for shape in figure.layout.shapes] == [0.7]
    texts = [plain(item.text) for item in figure.layout.annotations]
    assert texts[:3] == ["Found 0.50, before 0.20", "Among ten 0.90, before 0.60", "Cosine 0.20, before 0.60"]
    assert texts[3:] == ["now 0.50", "undamaged 0.70", "now 0.90", "now 0.20"]
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range == (-0.08, 1.08)
    heights = [axis.domain[1] - axis.domain[0] for axis in (figure.layout.yaxis, figure.layout.yaxis2)]
    assert heights[0] == pytest.approx(2 * heights[1])  # the measure that decides is the largest
    # The three models have the colours of their bars.
    assert figure.data[0].marker.color == (training.BEFORE, training.AFTER)
    assert figure.layout.shapes[0].line.color == training.UNDAMAGED
    # Before training there is nothing in the colour of the trained model; names are no markup.
    begun = training.measure_panels({"<b>Found": ("Recall@1", (steps[:1], np.array([0.2])))}, {}, steps=8)
    heading, end = begun.layout.annotations
    assert training.AFTER not in heading.text
    assert f'<span style="color:{training.BEFORE}">0.20' in heading.text
    assert heading.text.count("<b>") == 1
    assert (end.text, end.font.color) == ("<b>now 0.20</b>", training.BEFORE)
    kept = training.measure_panels(
        {"Found": ("Recall@1", (np.array([0, 4, 8]), np.array([0.2, 0.5, 0.4])))},
        {},
        steps=8,
        marked=4,
        shares={"Recall@1"},
    )
    texts = [plain(item.text) for item in kept.layout.annotations]
    assert texts == [
        "Found 50 %, before 20 %",
        "step 8: 40 %",
    ]  # the number of the step that is kept, then the last one
    assert [shape.x0 for shape in kept.layout.shapes] == [4]
    assert (kept.data[1].name, kept.data[1].x, kept.data[1].y) == ("kept", (4,), (0.5,))
    assert kept.layout.yaxis.ticktext == ("0 %", "50 %", "100 %")
    last = [item.text for item in training.measure_panels(panels, {}, steps=4, marked=4).layout.annotations]
    assert "<b>kept 0.50</b>" in last
    assert not any(text.startswith("step") for text in last)
    near = training.measure_panels({"Found": ("Recall@1", (steps, np.array([1.0, 1.0])))}, {"Recall@1": 1.0}, steps=4)
    ends = [item.y for item in near.layout.annotations if item.xshift == 12]
    assert len(set(ends)) == 2  # apart, and where plotly draws them
    assert max(ends) <= 1.08
    negative = training.measure_panels({"Spearman": ("Spearman", (STEPS, -STEPS / 9))}, {}, steps=5)
    assert negative.layout.yaxis.range is None
    assert "no step yet" in [item.text for item in training.measure_panels({}, {}, steps=5).layout.annotations]


def test_three_models_are_three_bars_with_intervals_on_one_axis() -> None:
    models = [
        ("undamaged", "as published", (96.7, 95.0, 97.8)),
        ("before (damaged)", "", (76.8, 73.4, 80.0)),
        ("after", "248 rows", (88.7, 86.0, 91.0)),
    ]
    figure = training.model_bars(models, "Recall", x_title="%", unit=" %")
    assert [(trace.name, trace.x[0]) for trace in figure.data] == [(name, values[0]) for name, _, values in models]
    for trace, (_, _, (value, low, high)) in zip(figure.data, models, strict=True):
        assert (trace.error_x.array[0], trace.error_x.arrayminus[0]) == pytest.approx((high - value, value - low))
        assert list(trace.customdata[0]) == [low, high]
    assert figure.layout.xaxis.range == (0, 100)
    assert [(line.x0, line.x1) for line in figure.layout.shapes] == [(96.7, 96.7)] * 2
    names = [
        item.y for item in figure.layout.annotations if item.xref != "paper"
    ]  # above their bars: no line crosses one
    assert all(line.y0 >= name for line, name in zip(figure.layout.shapes, names[1:], strict=True))
    assert "<b>88.7</b>" in [item.text for item in figure.layout.annotations]
    assert len({trace.marker.color for trace in figure.data}) == 3
    two = training.model_bars(
        [("before", "", (-0.2, -0.3, -0.1)), ("after", "", (0.4, 0.3, 0.5))], "", x_title="", top=1.0
    )
    assert not two.layout.shapes
    assert two.layout.xaxis.range == (-0.3, 1.0)
    colours = [[trace.marker.color for trace in drawn.data] for drawn in (figure, two)]
    assert colours == [[theme.GREY, theme.ORANGE, theme.BLUE], [theme.ORANGE, theme.BLUE]]  # before, after


def test_two_objectives_have_two_curves_each() -> None:
    curves = {"A": (STEPS[::2], np.ones(3)), "B": (STEPS[1::2], np.ones(2))}
    figure = training.loss_curves(curves, NONE, "Loss", window=1, steps=5)
    assert [trace.name for trace in figure.data] == ["A loss, each step", "A loss", "B loss, each step", "B loss"]


def test_a_run_without_a_step_says_so() -> None:
    for figure in (
        training.loss_curves({}, NONE, "Loss", window=1, steps=5),
        training.step_curves({"rate": NONE}, "Rate", y_title="rate", steps=5),
    ):
        assert "no step yet" in [item.text for item in figure.layout.annotations]


def test_long_runs_are_thinned_and_short_ones_are_whole() -> None:
    for count in (training.MOST_POINTS, 10 * training.MOST_POINTS + 1):
        curve = (np.arange(count), np.arange(count, dtype=float))
        figure = training.step_curves({"rate": curve}, "Rate", y_title="rate", steps=count, markers=False)
        assert len(figure.data[0].x) == (count if count == training.MOST_POINTS else -(-count // 11))


def test_the_histogram_counts_every_text_once_and_marks_the_cut_off() -> None:
    lengths = {"query": np.array([3, 5, 5, 9]), "answer": np.array([200, 100])}
    figure = training.length_histogram(lengths, 128, "Lengths")
    assert [int(trace.y.sum()) for trace in figure.data] == [4, 2]
    for trace, values in zip(figure.data, lengths.values(), strict=True):
        for (low, high), count in zip(trace.customdata, trace.y, strict=True):
            assert count == np.count_nonzero((values >= low) & (values <= high))
    assert figure.layout.shapes[0].x0 == 128.5
    assert len(training.length_histogram({"query": np.array([79])}, 128, "Lengths").data[0].y) == 40  # at most
    texts = [item.text for item in figure.layout.annotations]
    assert texts == ["<b>query</b>", "<b>answer</b>", "cut-off: 128 tokens"]
    assert [trace.yaxis for trace in figure.data] == ["y", "y2"]  # a row each: colours that lie on each other mix
    # Above the bars, the names on the other side of the line, which strikes through none.
    assert {item.yanchor for item in figure.layout.annotations} == {"bottom"}
    assert [(item.x, item.xanchor) for item in figure.layout.annotations[:2]] == [(0, "left")] * 2
    early = training.length_histogram(lengths, 12, "Lengths").layout.annotations
    assert [(item.x, item.xanchor) for item in early] == [(1, "right")] * 2 + [(12.5, "left")]
    assert early[2].yshift > 0  # above the first name
    short = training.length_histogram(
        {"query": np.array([5, 20])}, 128, "Lengths"
    )  # not with an axis that is mostly empty
    assert not short.layout.shapes
    assert short.layout.annotations[0].text == "cut-off: 128 tokens →"
    assert list(short.layout.xaxis.range) == [0, 27]


def test_before_and_after_have_their_intervals() -> None:
    before, after = np.array([[50.0, 40.0, 65.0]]), np.array([[70.0, 60.0, 75.0]])
    figure = training.before_after_bars(["Recall@1"], before, after, "Change", quantity="per cent", unit=" %")
    assert [trace.name for trace in figure.data] == ["before", "after"]
    assert [float(trace.x[0]) for trace in figure.data] == [50, 70]
    assert (figure.data[0].error_x.array[0], figure.data[0].error_x.arrayminus[0]) == (15, 10)
    values = [item for item in figure.layout.annotations if item.xref == "paper"]
    assert [item.text for item in values] == ["50.0", "70.0"]  # at the right, crossed by no interval
    names = [(item.text, item.x) for item in figure.layout.annotations if item.xref != "paper"]
    assert names == [("before", 0), ("after", 0)]  # in the first bars, which are long
    assert not figure.layout.showlegend
    without_unit = training.before_after_bars(["MRR"], before / 100, after / 100, "T", quantity="MRR")
    assert [item.text for item in without_unit.layout.annotations if item.xref == "paper"] == ["0.500", "0.700"]
    short = training.before_after_bars(
        ["a", "b"], np.array([[2.0], [3.0]]), np.array([[9.0], [1.0]]), "T", quantity="q"
    )
    assert [item.x for item in short.layout.annotations if item.xref != "paper"] == [2, 0]  # behind a short one
    third = training.before_after_bars(
        ["Recall@1"],
        before,
        after,
        "Change",
        quantity="per cent",
        untouched=after + 20,
        untouched_name="undamaged",
        guessing=50,
    )
    assert [shape.x0 for shape in third.layout.shapes] == [50]
    assert [(trace.name, float(trace.x[0])) for trace in third.data][:1] == [("undamaged", 90)]
    # The colours of the models are those of the other figures.
    assert [trace.marker.color for trace in third.data] == [training.UNDAMAGED, training.BEFORE, training.AFTER]


@pytest.mark.parametrize("key", OBJECTIVES)
def test_every_objective_has_a_picture(key: str) -> None:
    figure = objective_pictures.objective_picture(key, OBJECTIVES[key].name)
    assert OBJECTIVES[key].name in figure.layout.title.text.replace("<br>", " ")
    assert len(figure.layout.annotations) >= 2  # arrows
    drawn = [item.x for item in figure.layout.annotations] + [
        trace.x[0] for trace in figure.data if trace.x[0] is not None
    ]
    assert all(0 <= place <= 9 for place in drawn)


def test_the_wrong_answer_of_a_row_itself_is_pushed_away_too() -> None:
    def labels(wrong: str) -> list[str]:
        figure = objective_pictures.objective_picture("mnrl", "Ranking", wrong)
        return [text for trace in figure.data if trace.text for text in trace.text]

    assert labels("").count("another answer") == 4
    assert (labels("opposite").count("another answer"), labels("opposite").count("another opposite")) == (2, 1)
    assert labels("opposite").count("its own opposite") == 1


def test_what_is_pushed_away_has_its_arrow_behind_it_and_the_texts_have_their_names() -> None:
    figure = objective_pictures.objective_picture("mnrl", "Ranking", "opposite", "sentence", "paraphrase")
    labels = [text for trace in figure.data if trace.text for text in trace.text]
    assert labels[:2] == ["sentence", "its own paraphrase"]
    assert labels[2:] == [*["another paraphrase"] * 2, "its own opposite", "another opposite"]
    pushes = [item for item in figure.layout.annotations if item.arrowcolor == objective_pictures.PUSH]
    assert len(pushes) == 4
    for arrow in pushes:  # it begins at the text and leads away from the query
        assert np.hypot(arrow.x - 2.9, arrow.y - 3) > np.hypot(arrow.ax - 2.9, arrow.ay - 3) > 1


def test_what_is_pulled_is_blue_and_what_is_pushed_is_orange() -> None:
    assert (objective_pictures.PULL, objective_pictures.PUSH) == (theme.BLUE, theme.ORANGE)  # as in the first rows


def test_the_pictures_are_those_of_the_objectives() -> None:
    assert set(objective_pictures._DRAW) == set(OBJECTIVES)
