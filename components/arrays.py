"""Array types that records, analyses and charts share, and operations on any array."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from components.errors import first_line

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
F = TypeVar("F", bound=np.floating)


def read_only(array: np.ndarray) -> np.ndarray:
    """Mark an array as not writeable and return it; sharing it between sessions is then safe."""
    array.flags.writeable = False
    return array


def mapped_array(path: Path) -> np.ndarray:
    """The array in a .npy file, read-only and mapped into memory. Raises OSError, or ValueError for any other content.

    Nothing is unpickled. Mapping takes no memory before the shape is compared with the size of the file.
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as problem:  # the header is parsed as Python, so a damaged one fails in many ways
        raise ValueError(f"{path.name} is no array that can be read ({first_line(problem, most=100)})") from problem


def arrays_of(*records: object) -> list[np.ndarray]:
    """The arrays among the fields of some records; a record that is None has none."""
    fields = [value for record in records if record is not None for value in vars(record).values()]
    return [value for value in fields if isinstance(value, np.ndarray)]


def unit(vectors: NDArray[F]) -> NDArray[F]:
    """Vectors scaled to length 1 along the last axis, in their own precision.

    One rule everywhere: a zero vector has no direction and stays zero, so that its cosine with any other is 0. A missing
    vector is NaN, and so are its cosines. Convert float16 first: its squares overflow.
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), vectors.dtype)


def cosine(a: np.ndarray, b: np.ndarray) -> Float64:
    """cos(a, b) = a.b / (|a| |b|) along the last axis, in float64, within -1..1; 0 for a zero vector, NaN for a missing one."""
    return cosines_of_directions(unit(np.asarray(a, np.float64)), unit(np.asarray(b, np.float64)))


def cosines_of_directions(a: Float64, b: Float64) -> Float64:
    """As `cosine`, for float64 vectors that `unit` has scaled."""
    return np.asarray(np.clip((a * b).sum(axis=-1), -1.0, 1.0))


def wilson(shares: Float64, count: float) -> tuple[Float64, Float64]:
    """Wilson's (1927) 95 % interval of shares of `count` independent cases, float64 [share]: its lower and upper ends.

    The ends are the shares from which the observed one is as far as 1.96 of their own standard errors. Also for means of
    other values between 0 and 1, for which it may be wider than needed. `count` need not be a whole number: pairs that
    have members in common say as much as fewer independent ones. Raises ValueError without a case.
    """
    if count <= 0:
        raise ValueError("no case to take a share of")
    z = NormalDist().inv_cdf(0.975)
    centre = (shares + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(shares * (1 - shares) / count + (z / (2 * count)) ** 2) / (1 + z**2 / count)
    return np.clip(centre - half, 0, shares), np.clip(centre + half, shares, 1)  # rounding must not exclude the share
