"""Commands that are ended in the middle: the same command afterwards gives what an uninterrupted one gives."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.killed_commands import SENTENCES_PER_BLOCK, End, Ended, Stage, stage
from tests.support.made_up_corpora import sentences
from tests.support.tiny import save_tiny

pytestmark = [
    pytest.mark.rare,
    pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there"),
]
CORPUS = sentences(3 * SENTENCES_PER_BLOCK + 7).texts
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}


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
        with stage(model) as running:
            yield running


def index_command(model: Path) -> tuple[str, ...]:
    return (
        *("index", "corpus.csv", "--text-column", "text", "--model", str(model), "--layers", "2"),
        *("--poolings", "mean", "--precision", "float32", "--out", "idx", "--json", "made.json"),
    )


def new_folder(folder: Path) -> Path:
    """A folder with a corpus that has another column."""
    folder.mkdir()
    rows = "".join(f"{number % 3},{text}\n" for number, text in enumerate(CORPUS))
    (folder / "corpus.csv").write_text(f"label,text\n{rows}")
    return folder


def contents(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file below a folder, without what the stage writes and where the result says that it lies."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if name == "made.json":
            result = json.loads(content)
            content = json.dumps({key: value for key, value in result.items() if key != "folder"}).encode()
        if name not in ("stdout.txt", "stderr.txt"):
            found[name] = hashlib.sha256(content).hexdigest()
    return found


def whole(commands: Stage, folder: Path, *arguments: str) -> tuple[dict[str, str], Ended]:
    """What an uninterrupted command gives, and how it ended."""
    done = commands.run(folder, *arguments)
    assert done.status == 0, done.stderr
    assert done.changes > 10
    return contents(folder), done


def without_killed_results(found: dict[str, str]) -> dict[str, str]:
    """Without a result that was being written when its command was killed: nothing can remove it then."""
    return {name: content for name, content in found.items() if not name.startswith("made.json.")}


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
