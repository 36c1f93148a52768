"""Files of people: kept by content, within the room for all and for one, and as private as their folder."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest

from components import kept_files
from components.kept_files import DAY, KeptFiles, Room

LARGE = Room(1 << 30, 1_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "uploads"


def opened(
    folder: Path | None,
    in_all: Room = LARGE,
    for_one: Room = LARGE,
    days: int = 7,
    is_present: Callable[[Hashable], bool] = lambda person: True,
) -> KeptFiles:
    return KeptFiles(folder, in_all, for_one, days, is_present)


def keep(files: KeptFiles, content: bytes, person: str = "Ann", days_ago: float = 0.0) -> str:
    """Keep a file, and date its last use back."""
    name = files.keep(content, person)
    assert name is not None
    path = getattr(files._folder, "path", None)
    if path is not None and days_ago:
        then = time.time() - days_ago * DAY
        os.utime(path / name, (then, then))
    return name


def test_a_file_is_found_by_its_content_after_a_restart_and_kept_once(folder: Path) -> None:
    first = opened(folder)
    name = keep(first, b"a file")
    assert name == hashlib.sha256(b"a file").hexdigest()
    assert keep(first, b"a file", "Ben") == name
    assert [path.name for path in folder.iterdir()] == [name]
    later = opened(folder)
    assert later.read(name) == b"a file"
    assert later.use(name, "Cem")
    assert later.read("0" * 64) is None
    assert not later.use("0" * 64, "Cem")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_only_the_owner_may_read_the_folder_and_its_files(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    name = keep(opened(folder), b"a file")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
def test_a_link_in_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"of the server")
    name = hashlib.sha256(b"of the server").hexdigest()
    folder.mkdir()
    (folder / name).symlink_to(secret)
    assert opened(folder).read(name) is None


def test_a_file_that_was_damaged_on_disk_is_gone_and_can_be_kept_again(folder: Path) -> None:
    files = opened(folder)
    name = keep(files, b"a file")
    (folder / name).write_bytes(b"a fil3")
    assert files.read(name) is None
    assert not files.use(name, "Ann")
    assert keep(files, b"a file") == name
    assert files.read(name) == b"a file"


@pytest.mark.parametrize("name", ["../secret", "0" * 63, "0" * 64 + "\n", "A" * 64, ""])
def test_no_other_name_reaches_the_disk(folder: Path, name: str) -> None:
    files = opened(folder)
    for reached in (files.read, lambda name: files.use(name, "Ann"), lambda name: files.leave(name, "Ann")):
        with pytest.raises(ValueError, match="no name"):
            reached(name)


def test_those_that_nobody_present_uses_go_first_and_then_the_oldest(folder: Path) -> None:
    there = {"Ann", "Ben"}
    files = opened(folder, in_all=Room(30, 1_000), is_present=there.__contains__)
    of_ann, of_ben = keep(files, b"a" * 10, "Ann", 3), keep(files, b"b" * 10, "Ben", 2)
    of_cem = keep(files, b"c" * 10, "Cem", 1)
    new = keep(files, b"n" * 10, "Ann")
    assert not files.use(of_cem, "Ann")  # used last, but by nobody who is there
    assert {path.name for path in folder.iterdir()} == {of_ann, of_ben, new}
    keep(files, b"m" * 10, "Ben")
    assert {path.name for path in folder.iterdir()} >= {of_ben, new}  # the oldest of those in use went


@pytest.mark.parametrize("room", [Room(25, 1_000), Room(1_000, 2)])
def test_one_person_takes_no_more_than_their_room_and_nobody_elses(folder: Path, room: Room) -> None:
    files = opened(folder, for_one=room)
    of_ben = keep(files, b"b" * 10, "Ben", 5)
    names = [keep(files, bytes([number]) * 10, "Ann", 4 - number) for number in range(3)]
    assert {path.name for path in folder.iterdir()} == {of_ben, *names[1:]}


def test_what_two_people_use_stays_for_the_other(folder: Path) -> None:
    files = opened(folder, for_one=Room(1_000, 1))
    shared = keep(files, b"shared", "Ann")
    keep(files, b"shared", "Ben")
    keep(files, b"another", "Ann")  # Ann has room for one
    assert files.read(shared) == b"shared"
    files.leave(shared, "Ben")
    assert files.read(shared) is None


def test_a_file_is_deleted_when_the_last_who_is_there_leaves_it(folder: Path) -> None:
    there = {"Ann", "Ben"}
    files = opened(folder, is_present=there.__contains__)
    name = keep(files, b"a file", "Ann")
    files.use(name, "Ben")
    files.leave(name, "Ann")
    assert files.read(name) == b"a file"
    there.remove("Ann")
    files.leave(name, "Ben")
    assert not list(folder.iterdir())


def test_who_is_not_there_keeps_nothing(folder: Path) -> None:
    files = opened(folder, for_one=Room(1_000, 1), is_present="Ann".__eq__)
    left, pushed_out = keep(files, b"a file", "Ann"), None
    files.use(left, "Ben")
    files.leave(left, "Ann")
    assert files.read(left) is None
    pushed_out = keep(files, b"another", "Ann")
    files.use(pushed_out, "Ben")
    keep(files, b"a third", "Ann")  # Ann has room for one
    assert files.read(pushed_out) is None


def test_a_file_larger_than_the_room_is_refused_and_pushes_nothing_out(folder: Path) -> None:
    files = opened(folder, in_all=Room(100, 10), for_one=Room(50, 10))
    name = keep(files, b"a file")
    assert files.keep(b"x" * 51, "Ann") is None
    assert files.keep(b"x" * 101, "Ann") is None
    assert files.read(name) == b"a file"


def test_what_was_not_used_for_days_is_deleted_and_what_is_used_is_not(folder: Path) -> None:
    files = opened(folder, days=7)
    new, used, old = keep(files, b"new", days_ago=6), keep(files, b"used"), keep(files, b"old")
    for name in (used, old):
        then = time.time() - 8 * DAY
        os.utime(folder / name, (then, then))
    restarted = opened(folder, days=7)
    assert restarted.use(used, "Ann")
    restarted.drop_old()
    assert {path.name for path in folder.iterdir()} == {used, new}


def test_with_no_days_nothing_reaches_the_disk_and_what_is_left_there_goes(folder: Path) -> None:
    keep(opened(folder), b"before")
    files = opened(folder, days=0)
    name = keep(files, b"a file")
    assert files.where == "memory"
    assert files.read(name) == b"a file"
    files.drop_old()
    assert not list(folder.iterdir())
    assert files.read(name) == b"a file"
    assert opened(folder, days=0).read(name) is None


def test_a_folder_that_cannot_be_written_leaves_files_in_memory_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_before = keep(opened(folder), b"before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    files = opened(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        name = keep(files, b"a file")
        assert (files.where, files.problem) == ("memory", "No space left on device")
        assert files.read(name) == b"a file"
        assert files.read(kept_before) == b"before"
        assert [path.name for path in folder.iterdir()] == [kept_before]  # nothing half written
    keep(files, b"another")
    assert (files.where, files.problem) == ("disk", "")
    assert files.read(name) == b"a file"


def test_memory_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "MEMORY_BYTES", 20)
    files = opened(None)
    first, second = keep(files, b"a" * 10), keep(files, b"b" * 10)
    files.use(first, "Ann")
    third = keep(files, b"c" * 10)
    assert [files.read(name) is not None for name in (first, second, third)].count(True) == 2
    assert files.read(third) == b"c" * 10


def test_a_note_has_a_name_of_its_own_and_is_replaced(folder: Path) -> None:
    files = opened(folder)
    name = "0" * 32 + ".json"
    for note in (b"{}", b'{"a": 1}'):
        assert files.keep(note, "Ann", name) == name
        assert opened(folder).read(name) == note


def test_what_a_note_replaces_takes_no_room(folder: Path) -> None:
    files, name = opened(folder, in_all=Room(12, 2)), "0" * 32 + ".json"
    other = keep(files, b"four", "Ben", 1)
    assert files.keep(b"of six", "Ann", name) == files.keep(b"of eight", "Ann", name) == name
    assert (files.read(other), files.read(name)) == (b"four", b"of eight")


def test_what_was_never_written_to_its_end_is_removed(folder: Path) -> None:
    files = opened(folder)
    keep(files, b"a file")
    old, new = (folder / f"{'0' * 64}.{number}.new" for number in ("00000000", "11111111"))
    for path in (old, new):
        path.write_bytes(b"half")
    hours_ago = time.time() - 2 * kept_files.LEFT_OVER_SECONDS
    os.utime(old, (hours_ago, hours_ago))
    files.drop_old()
    assert not old.exists()
    assert new.exists()  # another process may be writing it


def test_what_no_longer_holds_is_removed_for_everybody(folder: Path) -> None:
    files = opened(folder)
    name = keep(files, b"a file", "Ann")
    files.remove(name)
    assert not files.use(name, "Ann")


def test_a_folder_that_may_not_be_read_leaves_files_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = os.stat

    def refuse(path: object, *more: object, **named: object) -> object:
        if str(path).startswith(str(folder)):
            raise PermissionError(13, "Permission denied")
        return stat(path, *more, **named)  # type: ignore[arg-type]

    files = opened(folder)
    monkeypatch.setattr(os, "stat", refuse)
    name = keep(files, b"a file")
    assert files.use(name, "Ann")
    assert files.read(name) == b"a file"
    assert files.where == "memory"
