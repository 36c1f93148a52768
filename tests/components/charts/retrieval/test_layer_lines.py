"""The lines over the layers: names at their ends, quiet levels among them, a ring, and a note only where there is room."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from components.charts import theme
from components.charts.retrieval.layer_lines import LINE, RANGE, PoolingLine, layer_lines

NOTE = "one vector for all"


def line(name: str, *values: float) -> PoolingLine:
    of = np.array(values, float)
    return PoolingLine(name, of, of - 1, of + 2)


def test_labels_stand_apart_in_the_order_of_the_ends_with_the_levels_among_them() -> None:
    figure = layer_lines(
        [line("Mean", 40, 95), line("Max", 50, 94.5)], (0, 1), "Recall@1", levels=[("BM25", 95.2), ("TF-IDF", 60)]
    )
    labels = {note.text: note for note in figure.layout.annotations}
    assert [*labels] == ["<b>Mean  95.0</b>", "<b>Max  94.5</b>", "BM25  95.2", "TF-IDF  60.0"]
    pixels = figure.layout.height - 46 - 56
    places = sorted(
        (note.y - RANGE[0]) / (RANGE[1] - RANGE[0]) * pixels - note.ay for note in figure.layout.annotations
    )
    assert all(after - before >= LINE - 1e-6 for before, after in pairwise(places))
    assert [shape.y0 for shape in figure.layout.shapes] == [95.2, 60]
    near = [line("Mean", 79, 96.7), line("Max", 81, 95.7), line("[CLS]", 0, 91.6)]
    measured = layer_lines(near, (0, 1), "Recall@1", levels=[("TF-IDF", 82.4), ("BM25", 81.9)])
    on_projector = theme.enlarge(measured, 1.35).layout
    pixels = on_projector.height - on_projector.margin.t - 56
    places = sorted((note.y - RANGE[0]) / (RANGE[1] - RANGE[0]) * pixels - note.ay for note in on_projector.annotations)
    assert all(after - before >= 1.2 * 1.35 * theme.FONT_SIZE for before, after in pairwise(places))
    assert tuple(figure.layout.yaxis.range) == RANGE  # always all of 0 to 100
    assert figure.data[0].error_y.array.tolist() == [2, 2]
    assert [list(point) for point in figure.data[1].customdata] == [[0, 1, 49, 52], [1, 1, 93.5, 96.5]]


def test_the_ring_stands_at_the_chosen_cell() -> None:
    figure = layer_lines([line("Mean", 40, 95), line("Max", 50, 94)], (0, 1), "Recall@1", chosen=(1, 0))
    assert (figure.data[-1].x[0], figure.data[-1].y[0]) == (figure.data[0].x[1], 95)


def test_the_note_stands_only_where_one_line_begins_at_zero_and_no_other_is_near() -> None:
    def noted(*lines: PoolingLine) -> bool:
        figure = layer_lines(lines, range(4), "Recall@1", note=NOTE)
        return any(NOTE in note.text for note in figure.layout.annotations)

    assert noted(line("[CLS]", 0, 0, 0, 50), line("Mean", 60, 60, 60, 60))
    assert noted(line("[CLS]", 0, 10, 12, 50), line("Mean", 60, 60, 60, 60))
    assert not noted(line("[CLS]", 0, 0, 0, 50), line("Mean", 10, 60, 60, 60))
    assert not noted(line("[CLS]", 1, 0, 0, 50), line("Mean", 60, 60, 60, 60))
