"""No writer follows a link: what a folder from somebody else points to stays as it was, whichever file of ours it replaces."""

from __future__ import annotations

import ast
import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from components.errors import InputError
from components.folders import own_folder, plain_file, read_plain
from components.model.embedding.disk import reserve_array, unnamed_array, writable_array
from components.retrieval.corpora.texts import text_files, write_texts
from components.training import runs
from components.training.run_folder import (
    DATA,
    EVENTS,
    LOG,
    MOST_EVENT_BYTES,
    ROWS,
    SETTINGS,
    STATE,
    STOP,
    WATCH,
    EventReader,
    RunFolder,
)
from tests.support.places import ROOT
from tests.support.training_runs import watch_vectors, write_run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes of Unix")
KEPT = "a file of somebody"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside.txt"
    path.write_text(KEPT)
    return path


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "events": (EVENTS, lambda folder: RunFolder(folder).append({"event": "loss", "step": 1})),
    "the log of a process": (LOG, lambda folder: runs._start(RunFolder(folder), outlives=True)),
    "a wish to stop": (STOP, lambda folder: RunFolder(folder).ask_to_stop()),
    "an array": ("a.npy", lambda folder: reserve_array(folder / "a.npy", (4, 2), np.float32)),
    "a part of an array": ("a.npy", lambda folder: writable_array(folder / "a.npy", (4, 2), np.float32)),
    "texts": ("texts.utf8", lambda folder: write_texts(folder / "texts", ["One."])),
    "offsets": ("texts.offsets.npy", lambda folder: write_texts(folder / "texts", ["One."])),
}
REPLACING: dict[str, tuple[str, Callable[[Path], object]]] = {
    "events that are forgotten": (EVENTS, lambda folder: RunFolder(folder).forget_after(0)),
    "vectors": (f"{WATCH}/3.npz", lambda folder: RunFolder(folder).write_watch(3, *watch_vectors(3, 2))),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_writer_refuses_a_link(
    name: str, is_there: bool, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs.subprocess, "Popen", pytest.fail)
    file, write = WRITERS[name]
    folder = tmp_path / "folder"
    folder.mkdir()
    if not is_there:
        outside.unlink()
    (folder / file).symlink_to(outside)
    with pytest.raises(OSError, match="it is a link"):
        write(folder)
    assert outside.read_text() == KEPT if is_there else not outside.exists()


@pytest.mark.parametrize("name", REPLACING)
def test_what_is_written_whole_replaces_a_link(name: str, outside: Path, tmp_path: Path) -> None:
    file, write = REPLACING[name]
    path = tmp_path / "folder" / file
    path.parent.mkdir(parents=True)
    path.symlink_to(outside)
    for left in (path.with_name(path.name + ".new"), path.with_suffix(".new")):  # names that were once written to
        left.symlink_to(outside)
    write(tmp_path / "folder")
    assert outside.read_text() == KEPT
    assert not path.is_symlink()


def test_a_folder_that_is_a_link_gets_no_files(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / WATCH).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="it is a link"):
        RunFolder(tmp_path / "run").write_watch(3, *watch_vectors(3, 2))
    assert not list((tmp_path / "elsewhere").iterdir())
    own_folder(tmp_path / "new")
    own_folder(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", ["rb", "r+b", "wb", "ab", "ab+"])
def test_pipes_devices_and_folders_are_not_waited_for(mode: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), tmp_path):
        with pytest.raises(OSError, match=r"pipe|No such device|Is a directory"):
            plain_file(path, mode)  # type: ignore[arg-type]


def test_a_file_is_read_no_further_than_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert read_plain(path, 3) == b"abc"
    with pytest.raises(OSError, match="more than 2 bytes") as problem:
        read_plain(path, 2)
    assert problem.value.errno == errno.EFBIG
    os.truncate(path, 1 << 40)  # a hole
    with pytest.raises(OSError, match="more than 100 bytes"):
        read_plain(path, 100)


def test_arrays_are_written_as_numpy_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    reserve_array(path, (5, 3), "float16")
    array = writable_array(path, (5, 3), "float16")
    array[:] = np.arange(15).reshape(5, 3)
    array.flush()
    found = np.load(path)
    assert (found.dtype, found.tolist()) == (np.float16, np.arange(15).reshape(5, 3).tolist())
    assert unnamed_array(tmp_path, (2,), np.float32).tolist() == [0, 0]
    whole = path.read_bytes()
    np.save(path, np.array([{}], object), allow_pickle=True)
    for content in (path.read_bytes(), whole[:-1], whole + b"x", whole.replace(b"(5, 3)", b"(50,3)"), b"", b"no array"):
        path.write_bytes(content)
        with pytest.raises(OSError, match="no array that this program made"):
            writable_array(path, (5, 3), "float16")
        assert path.read_bytes() == content
    assert text_files(tmp_path / "texts")[0].name == "texts.utf8"


@pytest.mark.parametrize("file", [STATE, SETTINGS, ROWS, EVENTS, f"{WATCH}/0.npz"])
@pytest.mark.parametrize("kind", ["pipe", "link", "hole"])
def test_what_a_strangers_run_holds_is_damaged_and_read_at_once(file: str, kind: str, tmp_path: Path) -> None:
    """A run that somebody copied among those of the server is listed on its pages."""
    run = write_run(tmp_path)
    path = run.path / file
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, MOST_EVENT_BYTES + 1)
    reads: dict[str, Callable[[], object]] = {
        STATE: run.state,
        SETTINGS: run.settings,
        ROWS: run.data,
        EVENTS: EventReader(run).read,
        f"{WATCH}/0.npz": lambda: run.watch(0),
    }
    if (file, kind) == (ROWS, "hole"):
        return  # a line of it may have any length: the data of a run are as large as they are
    started = time.process_time()
    if file == EVENTS:
        assert reads[file]() == ()
    else:
        with pytest.raises(InputError, match="is damaged"):
            reads[file]()
    assert time.process_time() - started < 2
    with pytest.raises(InputError, match="cannot be used" if kind != "hole" else "cannot be used|is done|is damaged"):
        runs.resume(run)


@pytest.mark.parametrize("kind", ["U900000000", "V900000000", "O", "datetime64", ["f4"], 7])
def test_labels_of_a_strangers_run_are_numbers(kind: object, tmp_path: Path) -> None:
    """numpy takes as many bytes for each as the name of their kind says."""
    run = write_run(tmp_path)
    content = json.loads((run.path / DATA).read_text())
    (run.path / DATA).write_text(json.dumps(content | {"labels": kind}))
    with pytest.raises(InputError, match="is damaged"):
        run.data()


def test_a_download_of_a_run_holds_no_file_from_outside(outside: Path, tmp_path: Path) -> None:
    import zipfile

    run = write_run(tmp_path)
    run.model_folder.mkdir()
    (run.model_folder / "config.json").write_text("{}")
    (run.model_folder / "vocab.txt").symlink_to(outside)
    with zipfile.ZipFile(runs.export_zip(run)) as archive:
        names = [Path(name).name for name in archive.namelist()]
        assert "config.json" in names
        assert "vocab.txt" not in names


def test_files_are_opened_to_be_written_in_one_place() -> None:
    """`open` for writing, and what writes by a name, stand in components/folders.py alone, or in private folders."""
    private = {"model/files/checked_copy.py", "training/model.py", "training/worker.py", "command_line/program.py"}
    # Copies of an address, in a new folder of their own; and a path that belongs to the system.
    private |= {"retrieval/corpora/readers/places.py", "folders.py"}
    found = set()
    for path in sorted((ROOT / "components").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            modes = [value.value for value in given if isinstance(value, ast.Constant)]
            writes = name == "open" and any(
                isinstance(mode, str) and set(mode) <= set("rwxab+t") and set(mode) & set("wxa+") for mode in modes
            )
            maps = name == "open_memmap" and "r" not in modes
            is_ours = name == "write_text" and isinstance(call.func, ast.Name)  # that of folders.py
            if writes or maps or (name in {"write_text", "write_bytes"} and not is_ours):
                found.add(path.relative_to(ROOT / "components").as_posix())
    assert found - private == set()
    assert {"folders.py", "training/worker.py"} <= found
