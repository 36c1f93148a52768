"""Files that people gave this program, kept by their content: they outlive what is parsed of them, and a restart.

A file is named by the SHA-256 of its bytes, so that equal files are kept once, a name can do no harm on disk, and only
somebody who had the file can name it. Beside the files stand small notes under names of their own, which are the hash of
something else: how a corpus was read from its file.

Room is bounded by bytes and by number, for all together and for each person. What is dropped first is what nobody who is
there uses, then what was used longest ago. Files that were not used for some days are deleted. Where the folder cannot be
written, files are kept in memory until the program ends.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from components.folders import is_unfinished, private_folder, whole_file

log = logging.getLogger(__name__)
DAY = 86_400.0  # seconds
MEMORY_BYTES = 512 << 20  # of files that cannot be kept on disk
SEEN_AGAIN_SECONDS = 60.0  # the time of a file's last use is written this often at most
LEFT_OVER_SECONDS = 3_600.0  # a file that was being written so long ago never will be
_NAME = re.compile(r"[0-9a-f]{64}|[0-9a-f]{32}\.json")
Where = Literal["disk", "memory"]


@dataclass(frozen=True)
class Room:
    """How much may be kept."""

    bytes: int
    files: int

    def has(self, size: int, count: int) -> bool:
        return size <= self.bytes and count <= self.files


@dataclass(frozen=True)
class KeptFile:
    """A file that is kept."""

    size: int  # bytes
    used_at: float  # time.time() of its last use


class Storage(Protocol):
    """Where files are kept. Every method but `has` may raise OSError."""

    def entries(self) -> Mapping[str, KeptFile]: ...
    def has(self, name: str) -> bool: ...
    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, content: bytes | memoryview) -> None: ...
    def touch(self, name: str) -> None: ...
    def remove(self, name: str) -> None: ...


class FolderStorage:
    """A folder of the disk that only its owner may read; each file is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> dict[str, KeptFile]:
        found: dict[str, KeptFile] = {}
        if not self.path.is_dir():
            return found
        with os.scandir(self.path) as listing:
            for item in listing:
                with suppress(FileNotFoundError):  # another process removes files too
                    status = item.stat(follow_symlinks=False)
                    if _NAME.fullmatch(item.name):
                        found[item.name] = KeptFile(status.st_size, status.st_mtime)
                    elif is_unfinished(item.name) and time.time() - status.st_mtime > LEFT_OVER_SECONDS:
                        os.unlink(item.path)
        return found

    def has(self, name: str) -> bool:
        return os.path.isfile(self.path / name)  # unlike that of Path, False where the folder may not be read

    def read(self, name: str) -> bytes | None:
        try:
            descriptor = os.open(self.path / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return None
        with open(descriptor, "rb") as file:
            return file.read()

    def write(self, name: str, content: bytes | memoryview) -> None:
        private_folder(self.path)
        with whole_file(self.path / name, 0o600) as file:
            file.write(content)

    def touch(self, name: str) -> None:
        os.utime(self.path / name)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


class MemoryStorage:
    """The memory of this process."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[bytes, float]] = {}

    def entries(self) -> dict[str, KeptFile]:
        return {name: KeptFile(len(content), used_at) for name, (content, used_at) in tuple(self._kept.items())}

    def has(self, name: str) -> bool:
        return name in self._kept

    def read(self, name: str) -> bytes | None:
        kept = self._kept.get(name)
        return None if kept is None else kept[0]

    def write(self, name: str, content: bytes | memoryview) -> None:
        self._kept[name] = (bytes(content), time.time())

    def touch(self, name: str) -> None:
        kept = self._kept.get(name)
        if kept is not None:
            self._kept[name] = (kept[0], time.time())

    def remove(self, name: str) -> None:
        self._kept.pop(name, None)


class KeptFiles:
    """The files of everybody who uses this program. All methods may be called by many threads at once."""

    def __init__(
        self,
        folder: Path | None,
        in_all: Room,
        for_one: Room,
        days: int,
        is_present: Callable[[Hashable], bool] = lambda person: True,
    ) -> None:
        """`folder`: where they are kept on disk, with 0 `days` or None: in memory only. `is_present` says whether a person
        is still there."""
        self.days, self.in_all, self.for_one = days, in_all, for_one
        self._is_present = is_present
        self._memory: Storage = MemoryStorage()
        self._folder: Storage | None = None if folder is None or days == 0 else FolderStorage(folder)
        self._no_longer_used = FolderStorage(folder) if folder is not None and days == 0 else None
        self._lock = threading.Lock()
        self._people: dict[str, set[Hashable]] = {}  # who has used each file, as far as this process knows
        self._seen: dict[str, float] = {}  # time.monotonic() of the last written use
        self.problem = ""  # why the folder could not be written the last time; "" if it could

    @property
    def where(self) -> Where:
        """Where a file that came now would be kept."""
        return "memory" if self._folder is None or self.problem else "disk"

    def keep(self, content: bytes | memoryview, person: Hashable, name: str | None = None) -> str | None:
        """Keep a file, or a note under a `name` of its own; returns its name. None for one that is larger than the room."""
        name = hashlib.sha256(content).hexdigest() if name is None else _checked(name)
        if self.use(name, person) and not name.endswith(".json"):
            return name
        for place in self._places():
            is_memory = place is self._memory
            room = Room(min(MEMORY_BYTES, self.in_all.bytes), self.in_all.files) if is_memory else self.in_all
            try:
                if not self._make_room(place, room, name, len(content), person):
                    return None
                place.write(name, content)
            except OSError as problem:
                reason = problem.strerror or type(problem).__name__
                if reason != self.problem:
                    log.warning("uploads are kept in memory, because the cache cannot be written: %s", reason)
                self.problem = reason
                continue
            if not is_memory:
                self.problem = ""
            with self._lock:
                self._people.setdefault(name, set()).add(person)
            return name
        return None

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if it is not kept, or no longer what its name says."""
        for place in self._places():
            try:
                content = place.read(_checked(name))
            except OSError as problem:
                log.warning("a kept file cannot be read: %s", problem.strerror)
                continue
            if content is None:
                continue
            if name.endswith(".json") or hashlib.sha256(content).hexdigest() == name:
                return content
            with suppress(OSError):  # damaged: whoever has the file gives it again
                place.remove(name)
        return None

    def use(self, name: str, person: Hashable) -> bool:
        """Note that a person uses a file now; returns whether it is kept."""
        now = time.monotonic()
        place = next((place for place in self._places() if place.has(_checked(name))), None)
        with self._lock:
            if place is None:
                self._people.pop(name, None)
                self._seen.pop(name, None)
                return False
            self._people.setdefault(name, set()).add(person)
            was_just_seen = now - self._seen.get(name, -SEEN_AGAIN_SECONDS) < SEEN_AGAIN_SECONDS
            self._seen[name] = self._seen.get(name, now) if was_just_seen else now
        if not was_just_seen:
            with suppress(OSError):  # a folder that may only be read, or another process has removed the file
                place.touch(name)
        return True

    def leave(self, name: str, person: Hashable) -> None:
        """A person needs a file no more: it is deleted unless somebody else who is there uses it."""
        with self._lock:
            others = self._people.get(_checked(name), set()) - {person}
        if any(map(self._is_present, others)):
            with self._lock:
                self._people[name] = others
            return
        for place in self._places():
            self._remove(place, name)

    def remove(self, name: str) -> None:
        """Delete a file or note for everybody: one that no longer holds."""
        for place in self._places():
            self._remove(place, _checked(name))

    def drop_old(self) -> None:
        """Delete what was not used for `days` days; with 0, what an earlier setting has left on disk."""
        if self._no_longer_used is not None:
            with suppress(OSError):
                for name in self._no_longer_used.entries():
                    self._no_longer_used.remove(name)
            return
        for place in self._places():
            with suppress(OSError):
                for name, entry in place.entries().items():
                    if time.time() - entry.used_at > self.days * DAY:
                        self._remove(place, name)

    def _places(self) -> tuple[Storage, ...]:
        return (self._memory,) if self._folder is None else (self._folder, self._memory)

    def _remove(self, place: Storage, name: str) -> None:
        with suppress(OSError):  # it stays, and is tried again when room is needed
            place.remove(name)
        with self._lock:
            self._people.pop(name, None)
            self._seen.pop(name, None)

    def _make_room(self, place: Storage, room: Room, name: str, size: int, person: Hashable) -> bool:
        """Drop files until one more fits, for its person and in all; returns False if it never can."""
        if not room.has(size, 1) or not self.for_one.has(size, 1):
            return False
        self.drop_old()
        entries = dict(place.entries())
        entries.pop(name, None)  # what it replaces
        with self._lock:
            people = {kept: set(self._people.get(kept, ())) for kept in entries}
        present = {one for known in people.values() for one in known if one == person or self._is_present(one)}
        oldest_first = sorted(entries, key=lambda kept: entries[kept].used_at)

        def drop_until_it_fits(limit: Room, candidates: list[str], count_those_of: Callable[[str], bool]) -> None:
            counted = [kept for kept in entries if count_those_of(kept)]
            used, number = sum(entries[kept].size for kept in counted), len(counted)
            for kept in candidates:
                if limit.has(used + size, number + 1):
                    return
                used, number = used - entries[kept].size, number - 1
                others = (people[kept] & present) - {person}
                if limit is self.for_one and others:  # it stays for them
                    with self._lock:
                        self._people[kept] = others
                else:
                    self._remove(place, kept)
                    del entries[kept]

        own = [kept for kept in oldest_first if person in people[kept]]
        drop_until_it_fits(self.for_one, own, lambda kept: person in people[kept])
        left_first = sorted(entries, key=lambda kept: (bool(people[kept] & present), entries[kept].used_at))
        drop_until_it_fits(room, left_first, lambda kept: True)
        return True


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a kept file")
    return name
