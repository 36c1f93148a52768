"""Array types that records, analyses and charts share, and what is done to any array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


def read_only(array: np.ndarray) -> np.ndarray:
    """Mark an array as not writeable and return it; sharing it between sessions is then safe."""
    array.flags.writeable = False
    return array
