"""A test collection packed as one .zip, as BEIR is published and as a folder is sent: the files that it needs.

The folder may be packed with or without its own name. Files that are no part of a collection, hidden files and what macOS
adds are left aside. Nothing is written to disk, and each file is read no further than the limits.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from components.errors import InputError
from components.jobs import Cancelled, IsCancelled
from components.retrieval.corpora.readers.limits import (
    EXPANDED_BYTES,
    MOST_EXPANSION,
    Limits,
    megabytes,
    never,
    unreadable,
)

_MOST_FILES = 10_000
_BLOCK_BYTES = 1 << 20
_LINES, _PACKED = {".jsonl", ".json", ".tsv", ".txt", ".csv", ".trec", ".qrels"}, ".gz"


def is_archive(name: str) -> bool:
    return name.lower().endswith(".zip")


def unpacked(
    content: bytes,
    name: str,
    is_needed: Callable[[str], bool],
    limits: Limits | None = None,
    is_cancelled: IsCancelled = never,
) -> Mapping[str, bytes]:
    """The files of a .zip for which `is_needed(path)` holds, by their path in the packed folder.

    All together may take as many bytes as one file. Raises InputError for an archive that is damaged, encrypted or too
    large, and Cancelled.
    """
    files: dict[str, bytes] = {}
    size = 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_FILES:
                raise InputError(
                    f"{name} holds {len(entries):,} files.",
                    f"At most {_MOST_FILES:,} are looked at.",
                    "Pack only corpus.jsonl, queries.jsonl and the folder qrels.",
                )
            paths = _paths(entries)
            for path, entry in paths.items():
                if not is_needed(path):
                    continue
                if entry.flag_bits & 1:
                    raise InputError(
                        f"{name} is encrypted.", "A .zip without a password is needed.", "Pack the folder again."
                    )
                blocks = io.BytesIO()
                with archive.open(entry) as file:
                    while block := file.read(_BLOCK_BYTES):
                        if is_cancelled():
                            raise Cancelled
                        size += len(block)
                        _check(size, len(content), name, limits)
                        blocks.write(block)
                files[path] = blocks.getvalue()
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as problem:
        raise unreadable(name, problem) from problem
    return files


def _paths(entries: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """What can be a file of a collection, by its path in the folder that was packed."""
    data = {entry.filename.replace("\\", "/"): entry for entry in entries if not entry.is_dir()}
    data = {path: entry for path, entry in data.items() if _is_data(path)}
    tops = {path.partition("/")[0] for path in data}
    is_with_folder = len(tops) == 1 and all("/" in path for path in data) and tops != {"qrels"}
    return {path.partition("/")[2] if is_with_folder else path: entry for path, entry in data.items()}


def _is_data(path: str) -> bool:
    """Whether a path of an archive can be a file of a collection."""
    parts = PurePosixPath(path).parts
    if any(part.startswith((".", "__MACOSX")) for part in parts):
        return False
    return PurePosixPath(parts[-1].lower().removesuffix(_PACKED)).suffix in _LINES


def _check(size: int, packed: int, name: str, limits: Limits | None) -> None:
    """Raise InputError where an archive takes too many bytes, or expands far more than texts do."""
    if limits is None:
        return
    if size > limits.bytes:
        raise limits.exceeded(name, f"more than {megabytes(limits.bytes)} when unpacked")
    if size > max(EXPANDED_BYTES, MOST_EXPANSION * packed):
        raise InputError(
            f"{name} expands to more than {MOST_EXPANSION} times its {packed:,} bytes.",
            "Compressed texts usually expand 3 to 20 times.",
            "Unpack it, and check that it contains what you expect.",
        )
