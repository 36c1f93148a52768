"""Files that are written whole."""

from __future__ import annotations

import ast
import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components import folders
from components.folders import check_writable, is_unfinished, machine_key, whole_file, write_json, write_text
from tests.support.places import ROOT


def test_many_may_write_one_file_and_nothing_else_stays(tmp_path: Path) -> None:
    path, problems = tmp_path / "state.json", []

    def write(number: int) -> None:
        try:
            for _ in range(30):
                write_json(path, {"number": number, "padding": "x" * 5_000})
        except OSError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert json.loads(path.read_text())["number"] in range(6)
    assert [item.name for item in tmp_path.iterdir()] == ["state.json"]


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"set": {1}})
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [("a.json", "1")]


def test_a_full_disk_and_a_stop_leave_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "earlier")
    path.chmod(0o640)
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"half of", "what cannot be written"])  # type: ignore[list-item]
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [("a.txt", "earlier")]
    write_text(path, "later")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("later", 0o640)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folders.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "latest")
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [("a.txt", "later")]


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    for name in ("x" * 255, "ü" * 127):
        write_text(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"


def test_a_temporary_folder_is_private_and_gone_also_where_a_stop_comes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with folders.temporary_folder() as folder:
        (folder / "inside").mkdir()
        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []
    make = os.mkdir

    def made_and_stopped(path: Path, mode: int = 0o777) -> None:
        make(path, mode)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", made_and_stopped)
    with pytest.raises(KeyboardInterrupt), folders.temporary_folder():
        pass
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "mkdir", make)
    remove, calls = shutil.rmtree, []

    def stopped_at_first(path: Path, ignore_errors: bool) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", stopped_at_first)
    with pytest.raises(KeyboardInterrupt), folders.temporary_folder():
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_leaves_is_known_by_its_name(tmp_path: Path) -> None:
    names = []
    with whole_file(tmp_path / "done.json"):
        names = os.listdir(tmp_path)
    assert [is_unfinished(name) for name in names] == [True]
    assert not any(map(is_unfinished, ["done.json", "a.new", "job.json.new", "letter.0123.new", "x.0123456g.new"]))


def test_whether_files_can_be_written_is_known_by_writing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_writable(tmp_path)
    check_writable(tmp_path / "not" / "there yet")
    assert list(tmp_path.iterdir()) == []
    write_text(tmp_path / "file", "text")
    with pytest.raises(NotADirectoryError):
        check_writable(tmp_path / "file" / "below")

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(folders.tempfile, "TemporaryFile", read_only)
    with pytest.raises(OSError, match="Read-only"):
        check_writable(tmp_path)


# How a file can be written in place: functions and methods by name, and those whose second argument or `mode` says so.
WRITERS = {"write_text", "write_bytes", "save", "savez", "save_file", "save_pretrained", "to_csv", "to_parquet", "dump"}
OPENERS = {"open", "open_memmap", "ZipFile"}
# Where files are written in place, and why that is no loss: a file is new, and known to be unfinished until a later one.
IN_PLACE = {
    "components/folders.py": "a new file, which then replaces the earlier one",
    "components/model/files/checked_copy.py": "new files, in a private folder of its own",
    "components/model/verification/reference.py": "a new file, in a private folder of the caller's",
    "components/retrieval/corpora/readers/places.py": "new files, in a private folder of its own",
    "components/retrieval/corpora/texts.py": "of an unfinished index, before the record that it is there",
    "components/retrieval/engines/graph.py": "a new file, which then replaces the earlier one",
    "components/command_line/program.py": "os.devnull",
    "components/training/model.py": "new files and folders, which then replace the earlier ones",
    "components/training/run_folder.py": "new files, which then replace the earlier ones; a log that only grows",
    "components/training/runs.py": "a log that only grows, and an archive to be downloaded",
    "components/training/worker.py": "/proc",
    "dashboard/sharing/report.py": "text",
    "dashboard/ui/figures.py": "text",
}


def writing(tree: ast.AST) -> Iterator[str]:
    """The calls in a file's syntax tree that may write in place."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [ast.unparse(each) for each in (*node.args, *(keyword.value for keyword in node.keywords))]
        modes = [each for each in given if each.startswith("'") and len(each) <= 5 and set("wax+") & set(each)]
        is_method = isinstance(node.func, ast.Attribute)
        if (name in WRITERS and is_method) or (name == "save_file") or (name in OPENERS and modes):
            yield name


def test_the_key_of_a_machine_is_made_once_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path / "cache"))
    before = os.umask(0)  # the least careful user
    try:
        with ThreadPoolExecutor(8) as threads:
            keys = set(threads.map(lambda _: machine_key(), range(64)))
    finally:
        os.umask(before)
    (key,) = keys
    assert key is not None
    assert len(key) == 32
    assert len(set(key)) > 8
    path = tmp_path / "cache" / "machine.key"
    assert path.read_bytes() == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(each.name for each in path.parent.iterdir() if each.suffix != ".lock") == ["machine.key"]
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path / "another"))
    assert machine_key() not in (None, key)


def test_several_processes_make_one_key(tmp_path: Path) -> None:
    code = "import sys; from components.folders import machine_key; sys.stdin.read(); print(machine_key().hex())"
    environment = {**os.environ, "BERT_INTERNALS_CACHE": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]
    for process in started:  # they wait for one another before they ask
        assert process.stdin is not None
        process.stdin.close()
    keys = set()
    for process in started:
        assert process.stdout is not None
        keys.add(process.stdout.read().decode().strip())
        assert process.wait() == 0
    assert keys == {(tmp_path / "machine.key").read_bytes().hex()}


@pytest.mark.parametrize("kind", ["readable", "short", "long", "link", "pipe"])
def test_a_key_that_others_may_know_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    path, known = tmp_path / "machine.key", b"k" * 32
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(known)
        (tmp_path / "elsewhere").chmod(0o600)
        path.symlink_to("elsewhere")
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    else:
        path.write_bytes({"readable": known, "short": b"", "long": known * 2}[kind])
        path.chmod(0o644 if kind == "readable" else 0o600)
    key = machine_key()
    assert key is not None
    assert key not in (known, (known * 2)[:32])
    assert path.read_bytes() == key == machine_key()
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    if kind == "link":
        assert (tmp_path / "elsewhere").read_bytes() == known


def test_without_a_place_there_is_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path / "file"))
    assert machine_key() is None
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "machine.key").mkdir(parents=True)
    assert machine_key() is None


def test_no_other_file_is_written_in_place() -> None:
    found = {}
    for path in sorted(path for folder in ("components", "dashboard") for path in (ROOT / folder).rglob("*.py")):
        calls = sorted(writing(ast.parse(path.read_text(encoding="utf-8"))))
        if calls:
            found[path.relative_to(ROOT).as_posix()] = calls
    assert set(found) == set(IN_PLACE), found
