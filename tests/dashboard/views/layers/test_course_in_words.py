"""Tests of the sentence about curves over the layers: it says what they show, also where they do not move apart."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.similarity.cosines import LayerCurves
from dashboard.views.layers.layer_figures import course_in_words, summary


def curves(*values: list[float]) -> LayerCurves:
    labels = tuple(f"pair {number}" for number in range(1, len(values) + 1))
    return LayerCurves(labels, ((0, 1),) * len(values), np.array(values))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            [0.98, 0.97, 0.80, 0.75],
            "The two move apart, from 0.980 at layer 0 to 0.750 after the last block, most between layers 1 and 2.",
        ),
        ([1.0, 1.0, 0.9995, 0.999], "The two hardly differ at any layer: 0.999 after the last block."),
        (
            [0.2, 0.25, 0.5, 0.52],
            "The two come together, from 0.200 at layer 0 to 0.520 after the last block, most between layers 1 and 2.",
        ),
        (
            [0.9, 0.7, 0.5, 0.7],
            "The two move apart, from 0.900 at layer 0 to 0.500 at layer 2, and "
            "then come closer again: 0.700 after the last block.",
        ),
        (
            [0.7, 0.9, 0.6],
            "The two come together, from 0.700 at layer 0 to 0.900 at layer 1, and "
            "then move apart again: 0.600 after the last block.",
        ),
        (
            [0.3, 0.31, 0.30],
            "How similar the two are hardly changes from layer to layer: 0.300 at layer 0, 0.300 after the last block.",
        ),
    ],
)
def test_one_curve_is_told_as_it_is(values: list[float], said: str) -> None:
    assert course_in_words(curves(values)) == said


def test_several_curves_are_counted_and_the_largest_change_is_named() -> None:
    said = course_in_words(curves([0.9, 0.5], [0.9, 0.97], [0.9, 0.7]))
    assert said == (
        "2 of 3 pairs move apart, 1 comes together. The largest change is that of pair 1: they move apart, from 0.900 at "
        "layer 0 to 0.500 after the last block."
    )
    assert (
        course_in_words(curves([1, 0.97], [1, 0.99]))
        == "No pair differs much at any layer: the lowest cosine is 0.970."
    )
    assert course_in_words(curves([0.2, 0.21], [0.5, 0.5])).startswith("How similar the pairs are hardly changes")
    assert course_in_words(LayerCurves((), (), np.empty((0, 3)))) == ""


def test_the_figures_message_of_a_flat_curve_names_no_layer() -> None:
    assert (
        summary(curves([1.0, 0.9999, 0.999]))
        == "How similar the two are hardly changes: 0.999 to 1.000 over all layers."
    )
    assert "most similar at layer 0" in summary(curves([1.0, 0.8]))
