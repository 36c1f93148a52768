"""A test collection packed as one .zip, as BEIR is published and as a folder is sent: the files that it needs.

The folder may be packed with or without its own name. Files that are no part of a collection, hidden files and what macOS
adds are left aside. Nothing is written to disk, and each file is read no further than the limits.

Only stored and deflated files are read: of those Python's zipfile unpacks as many bytes as it is asked for, but of bzip2
and LZMA a whole chunk, which can be a gigabyte out of some hundred bytes.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import PurePosixPath

from components.errors import InputError
from components.jobs import IsStopped, Stopped
from components.retrieval.corpora.readers.limits import (
    EXPANDED_BYTES,
    MOST_EXPANSION,
    Limits,
    never,
    unreadable,
)
from components.sizes import in_words

_MOST_FILES = 10_000
_MOST_PATH = 1_000  # characters of a file's path
_MOST_DESCRIPTION = 4 << 20  # bytes of the paths, the comments and the other descriptions of all files
_LENGTHS = struct.Struct("<HHH")  # of the path, other description and comment, in an entry
_LENGTHS_AT = 28
_BLOCK_BYTES = 1 << 20
_ENTRY = b"PK\x01\x02"  # begins each entry of the archive's directory
_READ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OTHER_METHODS = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "LZMA"}
_LINES, _PACKED = {".jsonl", ".json", ".tsv", ".txt", ".csv", ".trec", ".qrels"}, ".gz"


def is_archive(name: str) -> bool:
    return name.lower().endswith(".zip")


def unpacked(
    content: bytes,
    name: str,
    part_of: Callable[[str], Hashable | None],
    limits: Limits | None = None,
    is_stopped: IsStopped = never,
) -> dict[str, bytes]:
    """The files of a .zip that are a part of a collection, by their path in the packed folder.

    `part_of(path)` says which part a file is, None for none. All files together may take as many bytes as one file.
    Raises InputError for an archive that is damaged, encrypted, too large or packed by a method that is not read, and
    Stopped.
    """
    _check_number(content, name)
    files: dict[str, bytes] = {}
    size = 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = _asking(archive.infolist(), is_stopped)
            for path, entry in _needed(entries, part_of).items():
                _check_entry(entry, path, name)
                blocks = io.BytesIO()
                with archive.open(entry) as file:
                    while block := file.read(_BLOCK_BYTES):
                        if is_stopped():
                            raise Stopped
                        size += len(block)
                        _check(size, len(content), name, limits)
                        blocks.write(block)
                files[path] = blocks.getvalue()
            if not files:
                _check_no_table(archive.namelist(), name)
    except (InputError, Stopped):
        raise
    except Exception as problem:  # a damaged archive fails in many ways
        raise unreadable(name, problem) from problem
    return files


def _needed(
    entries: Iterable[zipfile.ZipInfo], part_of: Callable[[str], Hashable | None]
) -> dict[str, zipfile.ZipInfo]:
    """The files that are a part of a collection, by their path in the folder that was packed.

    Topics and judgements have endings of many kinds, such as .301-350. A file with another ending than the usual ones
    counts if its own name says which part it is, and no file with a usual ending is this part.
    """
    paths = ((entry.filename.replace("\\", "/"), entry) for entry in entries)
    data = {
        path: entry
        for path, entry in paths
        if len(path) <= _MOST_PATH
        and _is_visible(path)
        and not path.endswith("/")
        and (_is_usual(path) or part_of(PurePosixPath(path).name) is not None)
    }
    tops = {path.partition("/")[0] for path in data}
    if len(tops) == 1 and all("/" in path for path in data) and tops != {"qrels"}:
        data = {path.partition("/")[2]: entry for path, entry in data.items()}
    parts = {path: part for path in data if (part := part_of(path)) is not None}
    usual = {part for path, part in parts.items() if _is_usual(path)}
    return {path: data[path] for path, part in parts.items() if part not in usual or _is_usual(path)}


def _asking(entries: Iterable[zipfile.ZipInfo], is_stopped: IsStopped) -> Iterator[zipfile.ZipInfo]:
    """The entries, as long as nobody stops the work. Raises Stopped."""
    for entry in entries:
        if is_stopped():
            raise Stopped
        yield entry


def _is_visible(path: str) -> bool:
    """Whether a path of an archive names a file that is neither hidden nor one of those that macOS adds."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not any(part.startswith((".", "__MACOSX")) for part in parts)


def _check_no_table(paths: Iterable[str], name: str) -> None:
    """Raise InputError where all that an archive holds is one table: it is no collection."""
    seen = [path for path in paths if _is_visible(path) and not path.endswith("/")]
    if len(seen) == 1 and len(seen[0]) <= _MOST_PATH and _is_usual(seen[0]):
        file = PurePosixPath(seen[0]).name[:100]
        raise InputError(
            f"{name[:100]} contains {file}, and no collection.",
            "A .zip is read as a collection with graded relevance: documents, queries and judgements.",
            f"Unpack it, and choose {file}.",
        )


def _is_usual(path: str) -> bool:
    """Whether a file has an ending of texts or tables."""
    return PurePosixPath(path.lower().removesuffix(_PACKED)).suffix in _LINES


def _check_number(content: bytes, name: str) -> None:
    """Raise InputError for too many files, or too long paths of them. They are counted before zipfile makes objects of them.

    What is packed can look like an entry by chance: a few of these change nothing.
    """
    count = content.count(_ENTRY)
    if count > _MOST_FILES:
        raise InputError(
            f"{name} holds {count:,} files.",
            f"At most {_MOST_FILES:,} are looked at.",
            "Pack only corpus.jsonl, queries.jsonl and the folder qrels.",
        )
    size, place = 0, content.find(_ENTRY)
    while place >= 0:
        lengths = content[place + _LENGTHS_AT : place + _LENGTHS_AT + _LENGTHS.size]
        size += sum(_LENGTHS.unpack(lengths)) if len(lengths) == _LENGTHS.size else 0
        place = content.find(_ENTRY, place + 1)
    if size > _MOST_DESCRIPTION:
        raise InputError(
            f"The paths and descriptions of the files in {name} take {in_words(size, binary=True)}.",
            f"At most {in_words(_MOST_DESCRIPTION, binary=True)} are read.",
            "Pack only corpus.jsonl, queries.jsonl and the folder qrels.",
        )


def _check_entry(entry: zipfile.ZipInfo, path: str, name: str) -> None:
    """Raise InputError for a file that is encrypted or packed by a method that is not read."""
    if entry.flag_bits & 1:
        raise InputError(f"{name} is encrypted.", "A .zip without a password is needed.", "Pack the folder again.")
    if entry.compress_type not in _READ_METHODS:
        method = _OTHER_METHODS.get(entry.compress_type, f"method {entry.compress_type}")
        raise InputError(
            f"{path[:100]} in {name} is compressed by {method}.",
            "Files that are deflated, which is usual in a .zip, or not compressed can be read.",
            "Pack the folder again with the usual settings.",
        )


def _check(size: int, packed: int, name: str, limits: Limits | None) -> None:
    """Raise InputError where an archive takes too many bytes, or expands far more than texts do."""
    if limits is None:
        return
    if size > limits.bytes:
        raise limits.exceeded(name, f"more than {in_words(limits.bytes, binary=True)} when unpacked")
    if size > max(EXPANDED_BYTES, MOST_EXPANSION * packed):
        raise InputError(
            f"{name} expands to more than {MOST_EXPANSION} times its {packed:,} bytes.",
            "Compressed texts usually expand 3 to 20 times.",
            "Unpack it, and check that it contains what you expect.",
        )
