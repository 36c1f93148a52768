"""Outputs of the commands: whether they can be written is known before the work, and an earlier file is never destroyed."""

from __future__ import annotations

import errno
import json
import os
import sys
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components import folders
from components.command_line import options as shared
from components.command_line.program import COMMANDS
from components.errors import InputError
from components.model.backend import Backend
from components.retrieval.engines import opening
from tests.components.command_line.in_process import ARGUMENTS, run

REASONS = {
    "read only": (errno.EROFS, "Read-only file system"),
    "full": (errno.ENOSPC, "No space left on device"),
    "not allowed": (errno.EACCES, "Permission denied"),
}


@pytest.fixture
def no_trial(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """No file can be written, for the reason that the test names; returns what the system says."""
    number, said = REASONS[request.param]

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, said)

    monkeypatch.setattr(folders.tempfile, "TemporaryFile", refuse)
    return said


@pytest.mark.parametrize("no_trial", REASONS, indirect=True)
def test_every_command_refuses_a_file_that_it_could_not_write_before_its_work(
    no_trial: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[str] = []
    for command in COMMANDS:
        monkeypatch.setattr(command, "run", lambda options, name=command.NAME: begun.append(name))
    for command in COMMANDS:
        done = run(command.NAME, *ARGUMENTS.get(command.NAME, ()), "--json", str(tmp_path / "made.json"))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), command.NAME
        assert f"made.json could not be written: {no_trial}." in done.stderr
    assert begun == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("no_trial", REASONS, indirect=True)
def test_index_refuses_a_folder_that_it_could_not_write_before_its_work(
    no_trial: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise AssertionError("the model is loaded")

    monkeypatch.setattr(Backend, "load", load)
    for out in (tmp_path / "index", tmp_path / "not" / "there" / "index"):
        done = run("index", str(tmp_path / "there is none.txt"), "--out", str(out))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"{out} could not be written: {no_trial}." in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("no_trial", REASONS, indirect=True)
def test_a_file_of_milvus_that_could_not_be_written_is_refused_before_the_work(no_trial: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"cannot be written: {no_trial}"):
        opening.check_engine("milvus", str(tmp_path / "vectors.db"))


def result_of(command: Any, result: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setattr(command, "run", lambda options: result)
    return run(command.NAME, *ARGUMENTS.get(command.NAME, ()), *arguments)


def test_a_disk_that_fills_up_leaves_the_earlier_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, fsync = tmp_path / "made.json", os.fsync

    def few_blocks(file: int) -> None:
        if os.fstat(file).st_size > 100_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    monkeypatch.setattr(folders.os, "fsync", few_blocks)
    for command in COMMANDS:
        made.write_text('{"earlier": 1}')
        done = result_of(command, {"later": "x" * 200_000}, monkeypatch, "--json", str(made))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), command.NAME
        assert f"{made} could not be written: No space left on device." in done.stderr
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("made.json", '{"earlier": 1}')]
        done = result_of(command, {"later": 2}, monkeypatch, "--json", str(made))
        assert (done.returncode, json.loads(made.read_text())) == (0, {"later": 2}), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission of their own there")
def test_a_result_is_written_where_a_link_leads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "made.json").symlink_to(tmp_path / "elsewhere" / "real.json")
    for number in (1, 2):
        done = result_of(COMMANDS[0], {"number": number}, monkeypatch, "--json", str(tmp_path / "made.json"))
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "made.json").is_symlink()
        assert json.loads((tmp_path / "elsewhere" / "real.json").read_text()) == {"number": number}
        assert os.listdir(tmp_path / "elsewhere") == ["real.json"]


def test_a_file_that_may_only_be_read_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text("mine")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # permissions do not bind root
    done = result_of(COMMANDS[0], {}, monkeypatch, "--json", str(tmp_path / "made.json"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "it may only be read" in done.stderr
    assert (tmp_path / "made.json").read_text() == "mine"


def test_a_table_has_a_line_for_each_run_with_what_is_done_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    of_vectors = {"layer": 6, "pooling": "mean", "value": 12.345}
    runs = [
        of_vectors,
        of_vectors | {"reranked": 10},
        of_vectors | {"max_sim": 20},
        of_vectors | {"fused": ["bm25", "jm"], "weight": 0.25},
        of_vectors | {"fused": ["bm25"], "weight": None},
        {"layer": None, "pooling": None, "ranking": "SPLADE", "value": None},
    ]
    options: Any = SimpleNamespace(json=None)
    shared.write_table(options, runs, {"MRR": itemgetter("value")}, digits=2)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "layer pooling MRR",
        "6 mean 12.35",
        "6 mean 12.35 first 10 re-ranked",
        "6 mean 12.35 first 20 by MaxSim",
        "6 mean 12.35 with bm25 and jm, weight 0.25",
        "6 mean 12.35 with bm25, reciprocal ranks",
        "SPLADE -",
    ]
    options.json = "-"
    shared.write_table(options, runs, {"MRR": itemgetter("value")}, digits=2)
    assert capsys.readouterr().out == ""


def test_a_label_whose_name_is_a_number_is_chosen_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    named = SimpleNamespace(pair_labels=lambda: ("2", "1", "0"), spec=SimpleNamespace(title="A reranker"))
    monkeypatch.setattr(Backend, "load", lambda _: named)
    for label, number in (("2", 0), ("1", 1), ("0", 2)):
        assert shared.load_cross_encoder(SimpleNamespace(cross_encoder=None, label=label)) == (named, number)  # type: ignore[arg-type]
