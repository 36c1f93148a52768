"""One value, or one row of values, for every layer and pooling of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from components.model.trace import Pooling


@dataclass(frozen=True, eq=False)
class LayerGrid:
    """Values of every layer and pooling."""

    layers: tuple[int, ...]
    poolings: tuple[Pooling, ...]
    values: np.ndarray  # [layer, pooling], or [layer, pooling, query or pair]

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    @property
    def cells(self) -> Iterator[tuple[int, Pooling]]:
        """Every layer with every pooling, layer by layer."""
        return product(self.layers, self.poolings)

    @property
    def best(self) -> tuple[int, Pooling]:
        """Layer and pooling of the highest value, the first one of several; NaN is never it. For one value a cell."""
        row, column = np.unravel_index(int(np.nan_to_num(self.values, nan=-np.inf).argmax()), self.values.shape)
        return self.layers[row], self.poolings[column]

    def __contains__(self, cell: tuple[int, str]) -> bool:
        return cell[0] in self.layers and cell[1] in self.poolings

    def place(self, layer: int, pooling: str) -> tuple[int, int]:
        """Row and column of a layer and pooling. Raises KeyError for one that is not here."""
        if (layer, pooling) not in self:
            raise KeyError(f"layer {layer}, {pooling}")
        return self.layers.index(layer), next(column for column, name in enumerate(self.poolings) if name == pooling)

    def of(self, layer: int, pooling: str) -> Any:
        """The value, or the row of values, of one layer and pooling. Raises KeyError for one that is not here."""
        return self.values[self.place(layer, pooling)]

    def each(self, measure: Callable[[Any], float]) -> LayerGrid:
        """One value a cell: a measure of the row of values that is there, for example the mean."""
        values = [[measure(rows) for rows in layer] for layer in self.values]
        return LayerGrid(self.layers, self.poolings, np.array(values))
