"""Values by layer and pooling."""

from __future__ import annotations

import numpy as np
import pytest

from components.retrieval.evaluation.layer_grid import LayerGrid

GRID = LayerGrid((2, 5), ("mean", "max"), np.arange(12, dtype=np.int32).reshape(2, 2, 3))


def test_values_are_picked_by_layer_and_pooling():
    assert GRID.of(5, "mean").tolist() == [6, 7, 8]
    assert GRID.of(2, "max").tolist() == [3, 4, 5]
    assert list(GRID.cells) == [(2, "mean"), (2, "max"), (5, "mean"), (5, "max")]
    assert GRID.position(5, "max") == (1, 1)
    assert (5, "max") in GRID
    assert GRID.nbytes == 48
    for layer, pooling in ((0, "mean"), (5, "cls"), (1, "max")):
        assert (layer, pooling) not in GRID
        with pytest.raises(KeyError, match=f"layer {layer}, {pooling}"):
            GRID.of(layer, pooling)


def test_a_measure_of_each_cell_and_the_best_of_them():
    means = GRID.each(np.mean)
    assert means.values.tolist() == [[1, 4], [7, 10]]
    assert means.best == (5, "max")
    tied = LayerGrid((2, 5), ("mean", "max"), np.array([[np.nan, 3.0], [3.0, 1.0]]))
    assert tied.best == (2, "max")  # the first of several, and never NaN
    assert LayerGrid((2,), ("mean",), np.array([[np.nan]])).best == (2, "mean")
    assert LayerGrid((2, 5), ("mean",), np.array([[np.nan], [-0.2]])).best == (5, "mean")  # as correlations can be
