"""The sentence about curves over the layers names a layer only where the curves move."""

from __future__ import annotations

import numpy as np

from components.analysis.similarity.cosines import LayerCurves
from dashboard.views.layers.layer_figures import summary


def curves(*values: list[float]) -> LayerCurves:
    labels = tuple(f"pair {number}" for number in range(1, len(values) + 1))
    return LayerCurves(labels, ((0, 1),) * len(values), np.array(values))


def test_the_figures_message_of_a_flat_curve_names_no_layer() -> None:
    assert (
        summary(curves([1.0, 0.9999, 0.999]))
        == "How similar the two are hardly changes: 0.999 to 1.000 over all layers."
    )
    assert "most similar at layer 0" in summary(curves([1.0, 0.8]))
