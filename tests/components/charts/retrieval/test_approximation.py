"""The figure of approximate search: every way has a label, which covers no other and no point, on any width."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from components.charts.retrieval import approximation
from components.charts.retrieval.approximation import Point, recall_by_bytes

POINTS = [
    Point("exact", "exact", 1536, 100),
    Point("float16", "float16", 768, 99.9),
    Point("int8", "int8", 388, 99.3),
    Point("bits", "bits", 48, 58, 0.25),
    Point("bits 40", "bits", 48, 90),
    Point("bits 100", "bits", 48, 98),
    Point("first 192", "first", 768, 65),
    Point("first 96", "first", 384, 48),
    Point("first 48", "first", 192, 33),
    Point("HNSW 16", "hnsw", 1684, 97),
    Point("HNSW 64", "hnsw", 1684, 99.8),
    Point("HNSW 256", "hnsw", 1684, 100),
]


@pytest.mark.parametrize("width", approximation._WIDTHS)
def test_no_label_covers_another_or_a_point(width: int) -> None:
    figure = recall_by_bytes(POINTS, "Found", k=10)
    left, right = figure.layout.xaxis.range
    low, high = figure.layout.yaxis.range
    places = [
        (
            width * (np.log10(point.bytes_per_vector) - left) / (right - left),
            approximation._HEIGHT * (high - point.recall) / (high - low),
        )
        for point in POINTS
    ]
    starts = [
        places[number] for number in (*range(len(POINTS) - 3), len(POINTS) - 1)
    ]  # of the labels: graphs share one
    boxes = [
        approximation._box(label.text, x + label.ax, y + label.ay, 1.0)
        for label, (x, y) in zip(figure.layout.annotations, starts, strict=True)
    ]
    for one, other in combinations(boxes, 2):
        assert approximation._common(one, other) == 0
    for box in boxes:
        assert all(not (box[0] < x < box[2] and box[1] < y < box[3]) for x, y in places)
        assert box[0] >= -1
        assert box[2] <= width + 1


def test_values_labels_and_hover() -> None:
    figure = recall_by_bytes(POINTS, "Found", k=10)
    names = [*(point.name for point in POINTS[:-3]), "HNSW 16, 64, 256"]  # three points that touch have one label
    assert [label.text for label in figure.layout.annotations] == names
    apart = [*POINTS[:-3], Point("HNSW 16", "hnsw", 1684, 80), *POINTS[-2:]]
    labels = recall_by_bytes(apart, "Found", k=10).layout.annotations
    assert [label.text for label in labels][-2:] == ["HNSW 16", "HNSW 64, 256"]
    (bits,) = (trace for trace in figure.data if "bits" in trace.name)
    assert (list(bits.x), list(bits.y)) == ([48, 48, 48], [58, 90, 98])
    assert bits.text[0] == "bits<br>Recall@10 58.00 %<br>48 bytes per vector<br>0.250 ms per query (median)"
    assert "ms per query" not in bits.text[1]
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.yaxis.range[1] > 100


def test_a_single_point_has_a_figure() -> None:
    figure = recall_by_bytes([Point("a <b>", "x", 100, 100)], "", k=3)
    assert figure.layout.annotations[0].text == "a &lt;b&gt;"
