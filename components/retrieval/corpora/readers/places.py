"""Where a corpus lies: a file, a folder of files, or an address of either (file://, s3://, gs://, ...).

What is not on this machine is first copied into a temporary folder, and then read as any file is: its texts are the same
from everywhere. No more than the limit of bytes is copied, whatever the other side says of its files, and only what can be
read. Addresses are opened by pyarrow with the credentials that the environment has for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from components.errors import InputError, first_line
from components.folders import lies_in, temporary_folder
from components.retrieval.corpora.readers.files import FORMATS
from components.retrieval.corpora.readers.limits import Limits
from components.sizes import in_words

SCHEME = "://"
MOST_FILES = 10_000  # of an address
_BLOCK_BYTES = 1 << 20
_ROLES = {"corpus": "corpus", "documents": "corpus", "queries": "queries", "qrels": "qrels"}


@contextmanager
def files_at(place: str, limits: Limits | None = None) -> Iterator[tuple[list[Path], list[str]]]:
    """The files of a corpus, and the names of those of a folder that are left out, since they have another format.

    The files of a folder and of the folders in it come in the order of their paths, without those whose path has a part
    that begins with "." or "_": programs write these for themselves. Links that lead out of the folder are left out.
    Raises InputError for a place that cannot be read, or that has more bytes than the limit and is not on this machine.
    """
    if SCHEME not in place:
        yield _files_of(Path(place))
        return
    from pyarrow import fs

    if "@" in place.partition(SCHEME)[2].partition("/")[0]:
        raise InputError(
            "The address of the corpus has a name or a password in front of the host.",
            "Addresses are shown and logged, so that credentials come from the environment.",
            "Leave out everything before @, and set for example AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        )
    shown = place.partition("?")[0][:200]  # what follows can hold secrets
    with temporary_folder() as folder:
        try:
            system, path = fs.FileSystem.from_uri(place)
            is_here = isinstance(system, fs.LocalFileSystem)
            files = _files_of(Path(path)) if is_here else _copied(system, path, folder, shown, limits)
        except InputError:
            raise
        except (OSError, ValueError, NotImplementedError) as problem:  # pyarrow's errors are among these
            raise InputError(
                f"{shown} cannot be read: {first_line(problem).replace(place, shown)}.",
                "A corpus is a file, a folder of files, or an address such as s3://bucket/folder.",
                "Check the address, the network and the credentials for it.",
            ) from problem
        yield files


def _copied(system: Any, path: str, folder: Path, shown: str, limits: Limits | None) -> tuple[list[Path], list[str]]:
    """Copy a file, or the files below a folder that can be read, into `folder`; returns what `files_at` does."""
    from pyarrow import fs

    found = system.get_file_info(path)
    if found.type == fs.FileType.NotFound:
        raise FileNotFoundError("there is nothing at this address")
    target = folder / (PurePosixPath(path).name or "corpus")
    if found.type == fs.FileType.File:
        _copy(system, [(found, target)], shown, limits)
        return [target], []
    target.mkdir()
    inside = [
        info for info in system.get_file_info(fs.FileSelector(path, recursive=True)) if info.type == fs.FileType.File
    ]
    if len(inside) > MOST_FILES:
        raise InputError(
            f"{shown} has {len(inside):,} files.",
            f"At most {MOST_FILES:,} are copied from an address.",
            "Name a folder of it, or copy it to this machine first.",
        )
    names = {PurePosixPath(info.path).relative_to(path): info for info in inside}
    own = [name for name in sorted(names) if not any(part.startswith((".", "_")) for part in name.parts)]  # ".." too
    wanted = [name for name in own if is_known(name.name)]
    _copy(system, [(names[name], target / name) for name in wanted], shown, limits)
    files, _ = _files_of(target)
    return files, [name.as_posix() for name in own if not is_known(name.name)]


def _copy(system: Any, files: list[tuple[Any, Path]], shown: str, limits: Limits | None) -> None:
    """Copy files. Raises InputError where they have more bytes together than the limit, by what is said of them or is read."""

    def count(size: int) -> None:
        if limits is not None and size > limits.bytes:
            raise limits.exceeded(shown, f"more than {in_words(limits.bytes, binary=True)}")

    count(sum(info.size or 0 for info, _ in files))
    read = 0
    for info, target in files:
        target.parent.mkdir(parents=True, exist_ok=True)
        with system.open_input_stream(info.path, compression=None) as source, target.open("xb") as copy:
            while block := source.read(_BLOCK_BYTES):
                read += len(block)
                count(read)
                copy.write(block)


def documents_alone(paths: Sequence[PurePath]) -> tuple[list[PurePath], list[PurePath]]:
    """The files of documents and all others, where a file or folder of documents and one of queries lie beside each other.

    Such are the folders of BEIR and mteb (corpus.jsonl beside queries.jsonl and qrels): searched together, each query would
    find itself. Anywhere else all files are documents.
    """
    roles = {path: _role(path) for path in paths}
    found = set(roles.values())
    if not {"corpus", "queries"} <= found:
        return list(paths), []
    documents = [path for path in paths if roles[path] == "corpus"]
    return documents, [path for path in paths if roles[path] != "corpus"]


def is_of_documents(path: PurePath) -> bool:
    """Whether a path names the documents of a retrieval collection, such as corpus.jsonl."""
    return _role(path) == "corpus"


def _role(path: PurePath) -> str:
    """Which part of a retrieval collection a path names: "corpus", "queries", "qrels", or ""."""
    for part in reversed(path.parts):
        word = re.split(r"[^a-z]", part.lower(), maxsplit=1)[0]
        if word in _ROLES:
            return _ROLES[word]
    return ""


def is_known(name: str) -> bool:
    """Whether the name of a file has an ending that can be read."""
    return name.lower().removesuffix(".gz").endswith(FORMATS)


def _files_of(place: Path) -> tuple[list[Path], list[str]]:
    if not place.is_dir():
        return [place], []
    found = [path for path in place.rglob("*") if path.is_file()]
    # A link that leads out of the folder is no file of it: it could put any file of this machine into the index.
    relative = sorted(path.relative_to(place) for path in found if lies_in(place, path))
    outside = sorted(path.relative_to(place) for path in found if not lies_in(place, path))
    own = [path for path in relative if not any(part.startswith((".", "_")) for part in path.parts)]
    if not any(is_known(path.name) for path in own):
        links = f" ({len(outside):,} links lead out of it)" if outside else ""
        raise InputError(
            f"The folder {place} has no file with sentences{links}.",
            f"Its files need one of these endings: {', '.join(FORMATS)}, each optionally followed by .gz.",
            "Choose another folder, or a file.",
        )
    left_out = [path.as_posix() for path in own if not is_known(path.name)]
    left_out += [f"{path.as_posix()}: a link that leads out of the folder" for path in outside]
    documents, others = documents_alone([path for path in own if is_known(path.name)])
    left_out += [f"{path.as_posix()}: not documents" for path in others]
    return [place / path for path in documents], left_out
