"""Checksums of an index's files: damage that leaves a file its size would otherwise go unnoticed.

Offsets that are exchanged give wrong sentences, and a changed byte of a vector gives wrong hits, without any error. When an
index is complete, the SHA-256 of each file goes into its manifest, and for files above 1 MB that of a sample: 16 blocks of
64 KB at equal distances. Opening an index reads its files whole, the smallest first, up to 64 MB together, and of the
others the samples: damage between the blocks of a large file is found by `python -m components check` alone. The manifest
has a checksum of its own content.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLED_BYTES = 1 << 20  # files above have a sample
BLOCKS, BLOCK_BYTES = 16, 64 << 10
WHOLE_BYTES = 64 << 20  # read when an index is opened, besides the samples
MOST_HOLES = 200  # times that a file may be larger than what of it is on the disk, as of what gzip packed
MOST_PARTS = 10_000  # between holes, that are looked at


@dataclass(frozen=True)
class Checksum:
    """SHA-256 in hexadecimal digits."""

    whole: str
    sample: str | None  # None for small files


def checksum_of(path: Path) -> Checksum:
    """The checksum of a file, which is read whole."""
    return Checksum(_whole(path), _sample(path) if path.stat().st_size > SAMPLED_BYTES else None)


def sample_of(path: Path) -> str:
    """A checksum that is read quickly: of the whole file, or of samples of a large one."""
    return _sample(path) if path.stat().st_size > SAMPLED_BYTES else _whole(path)


def checksum_of_json(content: Any) -> str:
    """SHA-256 of a JSON value in hexadecimal digits, whatever the order of its keys and its spaces."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def is_hollow(path: Path) -> bool:
    """Whether a file says to be large and holds next to nothing: all but a 200th of it are holes, which read as zeros.

    A folder of some kilobytes could otherwise name terabytes to read. Where the system does not tell of holes, no file is.
    """
    size = path.stat().st_size
    if size <= SAMPLED_BYTES or not hasattr(os, "SEEK_DATA"):
        return False
    data = end = 0
    with path.open("rb") as file:
        for _ in range(MOST_PARTS):
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError as problem:
                return problem.errno == errno.ENXIO  # no more data; else the system does not tell
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            data += end - start
            if data * MOST_HOLES >= size:
                return False
            if end >= size:
                break
    return True


def first_damaged(folder: Path, checksums: Mapping[str, Checksum], is_quick: bool) -> str | None:
    """The name of a file with other content than when the index was written; None if there is none.

    All bytes are compared, or where `is_quick` the files and samples that are read when an index is opened. A large file
    without a checksum of its sample is none of ours.
    """
    read = 0
    for size, name in sorted(((folder / name).stat().st_size, name) for name in checksums):
        if size > SAMPLED_BYTES and checksums[name].sample is None:
            return name
        expected, read = checksums[name], read + size
        if is_quick and read > WHOLE_BYTES and expected.sample is not None:
            is_same = _sample(folder / name) == expected.sample
        else:
            is_same = _whole(folder / name) == expected.whole
        if not is_same:
            return name
    return None


def _whole(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sample(path: Path) -> str:
    last = path.stat().st_size - BLOCK_BYTES
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in range(BLOCKS):
            file.seek(last * block // (BLOCKS - 1))
            digest.update(file.read(BLOCK_BYTES))
    return digest.hexdigest()
