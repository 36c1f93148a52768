"""Array files of their final size, with their disk space reserved from the start."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


def reserve_array(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Create a .npy file of this shape and reserve its space: writing to a memory map on a full disk ends the process.

    Raises OSError (ENOSPC) if there is too little space, and removes the file.
    """
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    del array
    try:
        with path.open("r+b") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def unnamed_array(folder: Path, shape: tuple[int, ...], dtype: Any) -> Any:
    """A memory map of this shape over a new file of the folder, whose space is reserved.

    The file has no name any more: its space is free once nothing uses the map, also when the process is killed. Raises OSError
    if it cannot be made.
    """
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".npy", delete=False) as file:
        path = Path(file.name)
    try:
        reserve_array(path, shape, dtype)
        return np.lib.format.open_memmap(path, mode="r+")
    finally:
        with suppress(PermissionError):  # Windows keeps the name of a file that is mapped
            path.unlink(missing_ok=True)
