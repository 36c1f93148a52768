"""Where the program finds its own files, where it keeps what it computed, and how a file is opened and written there.

A folder can come from somebody else: a link in it would have a file elsewhere read or overwritten, and a pipe or a device
has no end. So files of runs, indexes and caches are opened by `plain_file` and read by `read_plain`, which follow no link, or
written by `whole_file`, which replaces it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from filelock import FileLock

from components.errors import InputError
from components.operator_settings import CACHE

ASSETS = Path(__file__).resolve().parents[1] / "assets"
UNFINISHED = ".new"  # how the name of a file ends that is being written
MOST_NAME = 40  # characters of its later name in it: whole, it could be longer than a name may be
TRIAL_BYTES = 4096  # the least that a file takes on most disks
KEY = "machine.key"
KEY_BYTES = 32
KEY_SECONDS = 10.0  # for another process to write the key


def cache_part(name: str) -> Path:
    """The folder `name` (indexes, runs, ...) in the operator's setting `cache` if that is set, else in the user's cache folder.

    It may not exist yet. Raises InputError for a path that no folder can have.
    """
    set_folder = CACHE.chosen()
    if not set_folder:
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base else Path.home() / ".cache") / "bert-internals" / name
    try:
        folder = Path(set_folder).expanduser() / name
        folder.exists()
    except (OSError, RuntimeError, ValueError) as problem:  # too long, a loop of links, or a user that does not exist
        raise InputError(
            f"{CACHE.variable} is {set_folder[:80]!r}: no folder can have this path.",
            "The cache needs the path of a folder.",
            f"Correct {CACHE.variable}, or leave it unset.",
        ) from problem
    return folder


def private_folder(folder: Path) -> None:
    """Create a folder, or take an existing one, that only its owner may read: it holds people's texts and vectors.

    Raises OSError if it cannot be created, or belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder with a name that nobody can guess, gone at the end, also where a signal comes meanwhile.

    tempfile.TemporaryDirectory leaves its folder where a signal comes between the folder and the record of it. A process that
    is killed leaves this one too. Raises OSError.
    """
    folder = Path(tempfile.gettempdir()) / f"bert-internals-{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        except BaseException:  # a signal meanwhile
            shutil.rmtree(folder, ignore_errors=True)
            raise


def machine_key() -> bytes | None:
    """32 random bytes that only this user of this machine knows, made once and kept in the cache folder; None if that fails.

    What is signed with them was made here. A file that others may read, or that is no plain file of 32 bytes, counts as none
    and is replaced. Raises InputError for a cache whose path no folder can have.
    """
    path = cache_part(KEY)
    try:
        kept = _kept_key(path)
        if kept is not None:
            return kept
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{KEY}.lock"), timeout=KEY_SECONDS, mode=0o600):
            kept = _kept_key(path)  # of another process, which was first
            if kept is None:
                path.unlink(missing_ok=True)  # else the new one would get the permissions of the old one
                kept = secrets.token_bytes(KEY_BYTES)
                with whole_file(path, mode=0o600) as file:
                    file.write(kept)
            return kept
    except OSError:  # a cache that may only be read, a full disk, a lock that does not come
        return None


def _kept_key(path: Path) -> bytes | None:
    try:
        file = plain_file(path, "rb")
    except OSError:
        return None
    with file:
        facts = os.fstat(file.fileno())
        is_private = os.name == "nt" or (facts.st_uid == os.geteuid() and not facts.st_mode & 0o077)
        return file.read() if is_private and facts.st_size == KEY_BYTES else None


def plain_file(path: Path, mode: Literal["rb", "r+b", "wb", "ab", "ab+"]) -> IO[bytes]:
    """Open a plain file. Raises OSError for a link, which is not followed, a pipe or a device, which is not waited for."""

    def opener(name: str, flags: int) -> int:
        descriptor = os.open(name, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "it is a pipe, a device or a folder", name)
        return descriptor

    try:
        return open(path, mode, opener=opener)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link", str(path)) from problem
        raise


def read_plain(path: Path, most_bytes: int) -> bytes:
    """The bytes of a plain file (see `plain_file`). Raises OSError too for one that is larger than `most_bytes`."""
    with plain_file(path, "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", str(path))
    return content


@contextmanager
def whole_file(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A file to write that becomes `path` at the end, completely or not at all: until then it has a name of its own beside it.

    What `path` held before stays as it was after any error, such as a full disk, and after a kill. Several processes and
    threads may write the same file: each has a new file of its own, and the last one stays. A file that is new gets the
    permissions `mode`, less those that the process leaves out. Raises OSError.
    """
    part = path.with_name(f"{path.name[:MOST_NAME]}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            with suppress(FileNotFoundError):  # there is no earlier file, whose permissions it would keep
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)  # after an error; else it has its name no longer


def is_unfinished(name: str) -> bool:
    """Whether a file has the name of one that `whole_file` was writing when its process was killed."""
    return re.fullmatch(rf".*\.[0-9a-f]{{8}}{re.escape(UNFINISHED)}", name, re.DOTALL) is not None


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 completely or not at all (see `whole_file`)."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file completely or not at all (see `whole_file`)."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False))


def lies_in(folder: Path, path: Path) -> bool:
    """Whether a file below a folder really lies there: links may lead to another place in the folder, and not out of it.

    A folder from somebody else could otherwise show, or have written, any file of this machine. Raises OSError.
    """
    return path.resolve().is_relative_to(folder.resolve())


def own_folder(folder: Path) -> None:
    """Create a folder that only its owner may read, or take an existing one. Raises OSError for one that is a link."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(folder))


def check_writable(folder: Path) -> None:
    """Raise OSError for a folder in which no file can be written: it may only be read, its disk is full, or it is none.

    Where it does not exist yet, its nearest parent that does is tried. The way to know is to write a file, which is removed
    again: permissions do not tell of a disk that is full or mounted to be read only.
    """
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(TRIAL_BYTES))
        file.flush()
        os.fsync(file.fileno())
