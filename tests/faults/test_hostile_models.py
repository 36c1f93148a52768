"""Model folders of somebody who means harm, drawn by kind (tests.support.hostile_models): each is read, or refused in a line.

None ends the process, takes more than 2 GB or 30 seconds of a processor, shows a byte of a file outside its folder, or runs
code. A few kinds are opened by `make test`, each kind by `make test-all`, and many folders by `make fuzz`, or FUZZ_FOLDERS=...
"""

from __future__ import annotations

import os
import queue
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import hostile_models
from tests.support.hostile_models import KINDS, SECRET, Opened, draw, families, open_all, plant

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is watched by Linux's own numbers")
FOLDERS = int(os.environ.get("FUZZ_FOLDERS", "1000"))


def faults(opened: list[Opened]) -> list[Opened]:
    return [one for one in opened if one.faults or one.outcome not in {"loaded", "refused"}]


@pytest.mark.parametrize("seeds", [range(1, len(KINDS), 3), pytest.param(range(len(KINDS)), marks=pytest.mark.rare)])
def test_a_folder_of_each_kind_does_no_harm_and_a_process_that_ends_is_seen_while_the_others_go_on(
    tmp_path: Path, seeds: range
) -> None:
    unreadable: Any = "no number"  # of a folder: the process ends
    ended, *opened = open_all([unreadable, *seeds], tmp_path)
    assert (ended.outcome, ended.faults) == ("ended", ("the process ended",))
    assert ended.busy >= 0
    assert faults(opened) == []
    assert len(opened) == len(seeds)
    assert {"loaded", "refused"} == {one.outcome for one in opened}


@pytest.mark.fuzz
@pytest.mark.timeout(7_200)
def test_many_folders_do_no_harm(tmp_path: Path) -> None:
    opened = list(open_all(range(len(KINDS), len(KINDS) + FOLDERS), tmp_path))
    assert faults(opened) == []
    assert len(opened) == FOLDERS


def show_a_file_outside(place: Path) -> str:
    return (place / "outside" / "secret.txt").read_text()


def leave_a_mark(place: Path) -> str:
    return str((place / "mark").write_text(""))


def take_memory(_: Path) -> int:
    return len(bytearray(random.randbytes(200 << 20)))


def run_out(_: Path) -> None:
    raise ValueError("it could not be read") from MemoryError()


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (show_a_file_outside, "it showed a file outside"),
        (leave_a_mark, "its code was run"),
        (take_memory, "memory"),
        (run_out, "memory ran out"),
    ],
)
def test_the_watcher_sees_harm(
    harm: Callable[[Path], Any], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path)
    monkeypatch.setattr(hostile_models, "MOST_BYTES", 100 << 20)
    monkeypatch.setattr(hostile_models, "everything_of", lambda folder, seed: iter(["healthy"]))
    assert hostile_models.open_one(tmp_path, 0, []).faults == ()
    monkeypatch.setattr(hostile_models, "everything_of", lambda folder, seed: map(harm, [tmp_path]))
    assert hostile_models.open_one(tmp_path, 0, []).faults == (fault,)


def test_what_a_library_logs_is_seen_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path)
    log: list[str] = []
    monkeypatch.setattr(hostile_models, "everything_of", lambda folder, seed: map(log.append, [SECRET]))
    assert hostile_models.open_one(tmp_path, 0, log).faults == ("it showed a file outside",)


@pytest.mark.parametrize(("does", "answer"), [("time.sleep(60)", "{}"), ("[0 for _ in iter(int, 1)]", "")])
def test_seconds_of_a_processor_count_and_not_those_of_a_machine_that_has_much_to_do(
    does: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of two seconds took minutes of the clock beside other programs, and counted as one that ended its process."""
    monkeypatch.setattr(hostile_models, "MOST_SECONDS", 0.1)
    answers: queue.Queue[str] = queue.Queue()
    with subprocess.Popen([sys.executable, "-c", f"import time; {does}"]) as process:
        late = threading.Timer(2.0 if answer else 60.0, answers.put, ["{}"])
        late.start()
        try:
            assert hostile_models._answer(answers, process.pid, 0.0) == answer
        finally:
            late.cancel()
            process.kill()


def test_a_seed_draws_the_same_folder_again_and_every_kind_and_family_comes(tmp_path: Path) -> None:
    plant(tmp_path)
    first = draw(tmp_path, 7)
    content = {path.name: path.read_bytes() for path in first.folder.iterdir() if path.is_file()}
    shutil.rmtree(first.folder)
    again = draw(tmp_path, 7)
    assert again == first
    assert {path.name: path.read_bytes() for path in again.folder.iterdir() if path.is_file()} == content
    pairs = {(seed % len(KINDS), seed % len(families())) for seed in range(len(KINDS) * len(families()))}
    assert len(pairs) == len(KINDS) * len(families())
