"""Bars of words: falls up, rises down, the word that matters most in full colour."""

from __future__ import annotations

import re

import numpy as np

from components.charts import theme
from components.charts.why.left_out import falls


def test_bars_stand_in_the_order_of_the_texts_with_numbers_on_the_long_ones() -> None:
    drawn = falls([["<b>", "bank"], ["money"]], [np.array([-0.02, 0.3]), np.array([0.1])], ["A", "B"], "Falls", (0, 1))
    first, second = drawn.data
    np.testing.assert_allclose([*first.y, *second.y], [-0.02, 0.3, 0.1], atol=1e-6)
    assert list(first.x) == [0, 1]
    assert list(second.x) == [3]  # a gap between the texts
    assert list(first.marker.color) == [theme.ORANGE, theme.BLUE]
    assert list(first.marker.opacity) == [0.55, 1.0]
    assert [*first.text, *second.text] == ["", "0.30", "0.10"]
    assert "<b>bank</b>" in drawn.layout.xaxis.ticktext
    assert not any("<b><" in str(name) for name in drawn.layout.xaxis.ticktext)  # what people typed is escaped
    names = re.sub("<[^>]*>", "", drawn.layout.title.text.split(theme.BELOW_TITLE)[1])
    assert names == "■ without it the cosine falls\u2003■ it rises"
    assert len(names) <= 45  # a phone has room for no more
    low, high = drawn.layout.yaxis.range
    assert low < -0.02
    assert high > 0.3


def test_a_text_without_words_and_no_falls_are_drawn() -> None:
    drawn = falls([["a"], []], [np.array([0.0]), np.array([])], ["A", "B"], "Falls")
    assert len(drawn.data) == 2
    assert drawn.layout.yaxis.range[0] < drawn.layout.yaxis.range[1]
