"""Commands ended in the middle, or with a disk full or read-only: run again, they give what uninterrupted ones give."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.killed_commands import (
    CORPUS,
    STATUS,
    End,
    Ended,
    Stage,
    contents,
    index_command,
    new_folder,
    stage,
    without_killed_results,
)
from tests.support.places import ROOT
from tests.support.tiny import save_tiny

pytestmark = [
    pytest.mark.rare,
    pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there"),
]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands keep temporary files."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def commands(model: Path, temporary: Path) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        with stage(model, CROSS_ENCODER) as running:
            yield running


def whole(commands: Stage, folder: Path, *arguments: str) -> tuple[dict[str, str], Ended]:
    """What an uninterrupted command gives, and how it ended."""
    done = commands.run(folder, *arguments)
    assert done.status == 0, done.stderr
    assert done.changes > 10
    return contents(folder), done


def test_an_index_ended_before_any_of_its_changes_to_the_disk_is_finished_by_the_same_command(
    commands: Stage, model: Path, tmp_path: Path
) -> None:
    """Killed before each of them; stopped before every tenth."""
    command = index_command(model)
    expected, uninterrupted = whole(commands, new_folder(tmp_path / "whole"), *command)
    assert {"idx/layer-02-mean.npy", "idx/manifest.json", "idx/column-0.utf8", "made.json"} <= set(expected)
    for number in SIGNALS:
        step = 1 if number == signal.SIGKILL else 10
        for change in range(1, uninterrupted.changes + 1, step):
            folder = new_folder(tmp_path / f"{number}-{change}")
            ended = commands.run(folder, *command, end=End(number, change=change))
            assert ended.status == STATUS[number], (change, ended.stderr)
            if number != signal.SIGKILL:
                assert ended.stderr.splitlines()[-1].startswith("Stopped."), ended.stderr
                assert "Traceback" not in ended.stderr
            again = commands.run(folder, *command)
            assert again.status == 0, (number, change, again.stderr)
            assert without_killed_results(contents(folder)) == expected, (number, change)


def test_another_index_in_its_place_is_told_from_one_that_was_killed(
    commands: Stage, model: Path, tmp_path: Path
) -> None:
    """An unfinished index is removed for another one: killed meanwhile, it is never continued with files missing."""
    first, second = index_command(model), (*index_command(model), "--max-length", "5")
    expected, _ = whole(commands, new_folder(tmp_path / "whole"), *first)

    def unfinished(name: str) -> Path:
        """A folder with an index of which one block is done."""
        folder = new_folder(tmp_path / name)
        commands.run(folder, *first, end=End(signal.SIGKILL, change=in_second_block))
        return folder

    def blocks_after(change: int) -> int:
        """How many blocks an index has whose command was killed before this change."""
        nonlocal in_second_block
        in_second_block = change
        record = unfinished(f"trial-{change}") / "idx.part" / "done.json"
        return int(json.loads(record.read_text())["blocks"]) if record.exists() else 0

    in_second_block = 0
    assert any(blocks_after(change) == 1 for change in range(10, 50))
    for change in range(1, 20):  # by then it is removed
        folder = unfinished(f"killed-{change}")
        commands.run(folder, *second, end=End(signal.SIGKILL, change=change))
        again = commands.run(folder, *first)
        if (folder / "idx").exists() and again.status == 2:
            assert "contains another index" in again.stderr  # it was complete
            continue
        assert again.status == 0, (change, again.stderr)
        assert without_killed_results(contents(folder)) == expected, change


# The other commands: what they write is their result alone, and vectors that no file keeps

PAIRS = "sentence,compressed\n" + "".join(f"{text},{text.split()[0]} {number}\n" for number, text in enumerate(CORPUS))
CROSS_ENCODER = "embedded-cross-encoder"


@pytest.fixture(scope="module")
def prepared(commands: Stage, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read; to be copied."""
    folder = new_folder(tmp_path_factory.mktemp("prepared") / "folder")
    (folder / "pairs.csv").write_text(PAIRS)
    (folder / "queries.txt").write_text("\n".join(CORPUS[:5]))
    assert commands.run(folder, *index_command(model)).status == 0
    (folder / "made.json").write_text('{"earlier": 1}')
    return folder


def command_of(name: str, model: Path) -> tuple[str, ...]:
    return {
        "evaluate": ("evaluate", "pairs.csv", "--model", str(model), "--layers", "all", "--poolings", "mean,cls"),
        "rerank": ("rerank", "idx", "queries.txt", "-k", "3", "--precision", "float32", "--model", str(model)),
        "settings": ("settings",),
    }[name] + ("--json", "made.json")


def result_in(folder: Path) -> dict[str, object]:
    """What a command has written, without the times that it took."""
    result = json.loads((folder / "made.json").read_text())
    return {name: value for name, value in result.items() if name != "seconds"}


def copied(prepared: Path, folder: Path) -> Path:
    shutil.copytree(prepared, folder)
    return folder


def kept_in(temporary: Path) -> set[Path]:
    """The files with a content that commands have left, and the folders of this program."""
    files = {path for path in temporary.rglob("*") if path.is_file() and path.stat().st_size > 0}
    return files | set(temporary.glob("bert-internals-*"))


@pytest.mark.parametrize("name", ["evaluate", "rerank", "settings"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_ended_at_three_moments_leaves_the_earlier_result_and_no_files(
    commands: Stage, model: Path, prepared: Path, temporary: Path, tmp_path: Path, name: str, number: signal.Signals
) -> None:
    command = command_of(name, model)
    whole = copied(prepared, tmp_path / "whole")
    done = commands.run(whole, *command)
    assert done.status == 0, done.stderr
    moments = sorted({1, (done.changes + 1) // 2, done.changes})
    assert len(moments) == 3
    for change in moments:
        folder = copied(prepared, tmp_path / str(change))
        before, temporary_before = contents(folder), kept_in(temporary)
        ended = commands.run(folder, *command, end=End(number, change=change))
        assert ended.status == STATUS[number], ended.stderr
        found = without_killed_results(contents(folder))
        if result_in(folder) != {"earlier": 1}:  # the last of its changes come after its result is in place
            assert result_in(folder) == result_in(whole)
            assert change == done.changes
            found["made.json"] = before["made.json"]
        assert found == before
        # A kill may leave a model's small files, and those of tests before: no other signal adds any.
        if number != signal.SIGKILL:
            assert ended.stderr.splitlines()[-1].startswith("Stopped.")
            assert kept_in(temporary) <= temporary_before
        again = commands.run(folder, *command)
        assert again.status == 0, again.stderr
        assert result_in(folder) == result_in(whole)
        for path in temporary.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("name", ["index", "evaluate", "rerank"])
def test_on_a_full_disk_a_command_says_so_in_one_line_and_works_once_there_is_room(
    commands: Stage, model: Path, prepared: Path, tmp_path: Path, name: str
) -> None:
    """No file may become longer than some bytes: at first none, then few. What was there before stays."""
    if name == "index":
        prepared = new_folder(tmp_path / "prepared")
        (prepared / "made.json").write_text('{"earlier": 1}')
    command = index_command(model) if name == "index" else command_of(name, model)
    whole = copied(prepared, tmp_path / "whole")
    assert commands.run(whole, *command).status == 0
    folder = copied(prepared, tmp_path / "full")
    before = contents(folder)
    for most_bytes in (1_000, 5_000) if name != "rerank" else (1_000,):
        ended = commands.run(folder, *command, full_after=most_bytes)
        assert ended.status == 2, ended.stderr
        assert "Traceback" not in ended.stderr
        assert "File too large" in ended.stderr.splitlines()[-1]
        assert contents(folder) == before
    again = commands.run(folder, *command)
    assert again.status == 0, again.stderr
    assert result_in(folder) == result_in(whole) if name != "index" else contents(folder) == contents(whole)


DISK = """
set -e
mount -t tmpfs -o size={size} none "$DISK"
cp -r . "$DISK/work"
cd "$DISK/work"
{before}
set +e
"$PYTHON" -m components "$@" 2> /dev/stderr
echo "status $?"
set -e
{after}
"$PYTHON" -m components "$@"
cp -r idx made.json "$OUT"
"""
# A disk that has room for nothing more, and one that may only be read, until somebody changes that.
DISKS = {
    "full": ("head -c 20M /dev/zero > filler 2> /dev/null || true", "rm filler"),
    "read only": ('mount -o remount,ro "$DISK"', 'mount -o remount,rw "$DISK"'),
}


def may_mount() -> bool:
    return shutil.which("unshare") is not None and (
        subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0
    )


@pytest.mark.parametrize("kind", DISKS)
def test_a_real_disk_that_is_full_or_read_only_is_said_before_the_work(
    model: Path, commands: Stage, tmp_path: Path, kind: str
) -> None:
    if not may_mount():
        pytest.skip("this system lets nobody mount a small disk; the tests above do without")
    expected, _ = whole(commands, new_folder(tmp_path / "whole"), *index_command(model))
    folder, out, disk = new_folder(tmp_path / "folder"), tmp_path / "out", tmp_path / "disk"
    for path in (out, disk):
        path.mkdir()
    before, after = DISKS[kind]
    script = DISK.format(size="8m", before=before, after=after)
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", script, "bash", *index_command(model)],
        cwd=folder,
        env={**os.environ, "DISK": str(disk), "OUT": str(out), "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "status 2"
    assert "made.json could not be written" in done.stderr.splitlines()[0]
    assert ("No space left" if kind == "full" else "Read-only file system") in done.stderr.splitlines()[0]
    assert contents(out) == {
        name: content for name, content in expected.items() if name not in ("corpus.csv", "idx.lock")
    }
