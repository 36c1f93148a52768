"""Bars of pieces: each in its row and in the colour of where it comes from."""

from __future__ import annotations

import numpy as np
import pytest

from components.charts.retrieval.pieces import COLOURS, piece_bars


def test_each_piece_has_a_bar_in_its_row_and_colour() -> None:
    pieces = ("volcano", "<b>eruption</b>", "ash")
    sources = ("in the text", "added by the model", "in the text")
    figure = piece_bars(pieces, np.array([3.0, 2.0, 1.0]), sources, "The heaviest pieces")
    found = {}
    for bar in figure.data:
        assert bar.marker.color == COLOURS[bar.name]
        for row, value, piece in zip(bar.y, bar.x, bar.customdata, strict=True):
            found[int(row)] = (float(value), bar.name, piece)
    assert [found[row][:2] for row in range(3)] == [(3.0, sources[0]), (2.0, sources[1]), (1.0, sources[2])]
    assert "<b>" not in found[1][2]
    assert [found[row][2] for row in (0, 2)] == ["volcano", "ash"]
    assert "<b>" not in "".join(figure.layout.yaxis.ticktext)
    assert {bar.width for bar in figure.data} == {0.75}
    low, high = figure.layout.yaxis.range
    assert low > 2 > 0 > high  # the first piece at the top


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(KeyError, match="elsewhere"):
        piece_bars(("a",), np.ones(1), ("elsewhere",), "Pieces")
