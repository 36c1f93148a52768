"""Numbers in cells: readable on every colour of both scales, as large as before, and where they were."""

from __future__ import annotations

import numpy as np
import pytest

from components.charts import matrices, theme
from components.charts.cells import colours_of
from components.charts.heatmap import similarity_heatmap
from tests.components.charts.cell_numbers import numbers, written
from tests.support.colours import contrast

STEPS = 400


@pytest.mark.parametrize(
    ("diverging", "limits", "pale", "dark"),
    [
        (False, None, False, False),
        (True, (-1.0, 1.0), False, False),
        (True, (-0.3, 1.0), False, True),
        (False, (0.0, 1.0), True, False),
        (False, (0.0, 1.0), True, True),
    ],
)
def test_the_contrast_over_the_whole_scale(
    diverging: bool, limits: tuple[float, float] | None, pale: bool, dark: bool
) -> None:
    values = np.linspace(-1.2, 1.2, STEPS).reshape(4, -1)  # beyond the ends, too
    names = [str(number) for number in range(STEPS // 4)]
    figure = matrices.token_matrix(
        values,
        names[:4],
        names,
        "t",
        rows="r",
        columns="c",
        value="cosine",
        limits=limits,
        diverging=diverging,
        pale=pale,
        dark=dark,
        show_values=True,
    )
    colours = np.rint(colours_of(figure.data[0])).astype(int).reshape(-1, 3)
    cells = ["#" + "".join(f"{channel:02x}" for channel in colour) for colour in colours]
    shown = [cell for row in written(figure) for cell in row]
    assert [text for text, _ in shown] == [theme.number(value, 2) for value in values.ravel()]
    assert min(contrast(cell, ink) for cell, (_, ink) in zip(cells, shown, strict=True)) >= 4.5
    for cell, (_, ink) in zip(cells, shown, strict=True):
        assert contrast(cell, ink) >= max(contrast(cell, other) for other in ("#000000", "#FFFFFF")) - 0.1


def test_the_colours_are_those_of_the_scale() -> None:
    figure = matrices.token_matrix(
        np.array([[0.0, 0.5, 1.0, np.nan]]),
        ["a"],
        list("bcde"),
        "t",
        rows="r",
        columns="c",
        value="v",
        show_values=True,
    )
    drawn = colours_of(figure.data[0])[0]
    np.testing.assert_allclose(drawn[[0, 2]], matrices.palette(2), atol=0.6)
    assert np.isnan(drawn[3]).all()
    assert written(figure)[0][3] == ("", "")


def test_both_colours_of_type_have_texts_of_one_length_for_plotly_sizes_them_by_the_longest() -> None:
    figure = matrices.token_matrix(
        np.array([[-1.0, 0.25], [0.0, 1.0]]),
        ["a", "b"],
        ["c", "d"],
        "t",
        rows="r",
        columns="c",
        value="v",
        show_values=True,
    )
    first, second = [trace for trace in figure.data if trace.texttemplate]
    lengths = [[list(map(len, row)) for row in trace.text] for trace in (first, second)]
    assert lengths[0] == lengths[1]
    assert second.hoverinfo == "skip"
    assert {colour for _, colour in second.colorscale} == {"rgba(0, 0, 0, 0)"}


def test_equal_values_and_no_numbers() -> None:
    alike = similarity_heatmap(np.ones((2, 2)), ["a", "b"], "t", dark=False, show_values=True)
    assert {ink for row in written(alike) for text, ink in row if text} <= {"#000000", "#FFFFFF"}
    assert numbers(alike) == [["", "1.00"], ["1.00", ""]]
    plain = similarity_heatmap(np.ones((2, 2)), ["a", "b"], "t", dark=False)
    assert len([trace for trace in plain.data if trace.type == "heatmap"]) == 2
