"""Array files of their final size, with their disk space reserved from the start."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from components.folders import plain_file


def reserve_array(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Create a .npy file of this shape and reserve its space: writing to a memory map on a full disk ends the process.

    Raises OSError (ENOSPC) if there is too little space, and removes the file; also for a path that is a link.
    """
    kind = np.dtype(dtype)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with plain_file(path, "wb") as file:
        try:
            np.lib.format.write_array_header_1_0(file, header)
            file.flush()
            size = file.tell() + kind.itemsize * math.prod(shape)
            file.truncate(size)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError:
            path.unlink(missing_ok=True)
            raise


def writable_array(path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
    """A memory map to write, of the array that `reserve_array` made. Raises OSError for a link, or for other content."""
    with plain_file(path, "r+b") as file:
        try:
            version = np.lib.format.read_magic(file)
            found = np.lib.format.read_array_header_1_0(file)
        except Exception as problem:  # the header is parsed as Python, so a damaged one fails in many ways
            raise _no_array(path) from problem
        kind = np.dtype(dtype)
        size = file.tell() + kind.itemsize * math.prod(shape)
        # A shorter file would be made longer.
        if version != (1, 0) or found != (shape, False, kind) or os.fstat(file.fileno()).st_size != size:
            raise _no_array(path)
        return np.memmap(file, kind, "r+", file.tell(), shape)


def _no_array(path: Path) -> OSError:
    return OSError(errno.EINVAL, "it is no array that this program made", str(path))


def unnamed_array(folder: Path, shape: tuple[int, ...], dtype: Any) -> Any:
    """A memory map of this shape over a new file of the folder, whose space is reserved.

    The file has no name any more: its space is free once nothing uses the map, also when the process is killed. Raises OSError
    if it cannot be made.
    """
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".npy", delete=False) as file:
        path = Path(file.name)
    try:
        reserve_array(path, shape, dtype)
        return writable_array(path, shape, dtype)
    finally:
        with suppress(PermissionError):  # Windows keeps the name of a file that is mapped
            path.unlink(missing_ok=True)
