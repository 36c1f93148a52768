"""Array types that records, analyses and charts share, and operations on any array."""

from __future__ import annotations

import io
import math
import zipfile
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
MOST_ARRAYS = 16  # of a file


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


def read_arrays(content: bytes, most_bytes: int) -> dict[str, np.ndarray]:
    """The arrays in an .npz file by name, of at most `most_bytes` together. Raises ValueError for any other content.

    Nothing is unpickled. What the headers announce is compared with what the file has before memory is taken for it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_ARRAYS:
                raise ValueError(f"it has {len(entries)} arrays")
            if sum(entry.file_size for entry in entries) > most_bytes:
                raise ValueError(f"its arrays take more than {most_bytes:,} bytes")
            for entry in entries:
                with archive.open(entry) as file:
                    version = np.lib.format.read_magic(file)
                    read_header = (
                        np.lib.format.read_array_header_1_0
                        if version == (1, 0)
                        else np.lib.format.read_array_header_2_0
                    )
                    shape, _, dtype = read_header(file)
                if dtype.hasobject or math.prod(shape) * max(1, dtype.itemsize) > entry.file_size:
                    raise ValueError(f"{entry.filename[:40]} announces more than it has")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except ValueError:
        raise
    except Exception as problem:  # a damaged archive fails in many ways
        raise ValueError(f"it is no file of arrays that can be read ({first_line(problem, most=100)})") from problem


def arrays_of(*records: object) -> list[np.ndarray]:
    """The arrays among the fields of some records; a record that is None has none."""
    fields = [value for record in records if record is not None for value in vars(record).values()]
    return [value for value in fields if isinstance(value, np.ndarray)]


class ArrayRecord:
    """What frozen records of arrays have in common: nobody changes their arrays, and they know what these take."""

    def __post_init__(self) -> None:
        for array in arrays_of(self):
            read_only(array)

    @property
    def nbytes(self) -> int:
        """Memory the arrays take, in bytes."""
        return sum(array.nbytes for array in arrays_of(self))


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
