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
    values: (
        np.ndarray
    )  # [layer, pooling], or [layer, pooling, query or pair]; of objects where a cell is no row of numbers

    @property
    def nbytes(self) -> int:
        return sum(cell.nbytes for cell in self.values.flat) if self.values.dtype == object else self.values.nbytes

    @property
    def cells(self) -> Iterator[tuple[int, Pooling]]:
        """Every layer with every pooling, layer by layer."""
        return product(self.layers, self.poolings)

    @property
    def best(self) -> tuple[int, Pooling]:
        """Layer and pooling of the highest value, the first of several, NaN ignored. For grids [layer, pooling]."""
        row, column = np.unravel_index(int(np.nan_to_num(self.values, nan=-np.inf).argmax()), self.values.shape)
        return self.layers[row], self.poolings[column]

    def __contains__(self, cell: tuple[int, str]) -> bool:
        return cell[0] in self.layers and cell[1] in self.poolings

    def position(self, layer: int, pooling: str) -> tuple[int, int]:
        """Row and column of a layer and pooling. Raises KeyError for a cell that is not in the grid."""
        if (layer, pooling) not in self:
            raise KeyError(f"layer {layer}, {pooling}")
        return self.layers.index(layer), list[str](self.poolings).index(pooling)

    def of(self, layer: int, pooling: str) -> Any:
        """The value, or the row of values, of one layer and pooling. Raises KeyError as `position` does."""
        return self.values[self.position(layer, pooling)]

    def each(self, measure: Callable[[Any], float]) -> LayerGrid:
        """One value per cell: a measure of the cell's row of values, for example their mean."""
        values = [[measure(row) for row in layer] for layer in self.values]
        return LayerGrid(self.layers, self.poolings, np.array(values))
