"""A file from somebody else cannot take the machine's memory: the pages' limits hold for every command that reads one."""

from __future__ import annotations

import argparse
import ast
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.command_line import options as shared
from components.command_line import program
from components.errors import InputError
from components.model.backend import Backend
from components.retrieval.corpora.readers.limits import CommandLimits, browser_limits
from tests.components.command_line.in_process import run
from tests.support.places import ROOT
from tests.support.rare_cases import but_a_few

# Of each command that reads a file: what stands before the file, and behind it.
READING = {
    "index": (["index"], ["--out", "out"]),
    "evaluate": (["evaluate"], []),
    "diagnose": (["diagnose"], []),
    "sts": (["sts"], []),
    "train": (["train"], ["--out", "out"]),
    "train --scored": (["train", "demo:nli", "--grid", "1", "--out", "out", "--scored"], []),
    "plan": (["plan", "--sample"], []),
    "site": (["site", "out", "--sentences"], []),
    "reproduce --pairs": (["reproduce", "--pairs"], []),
    "reproduce --sts": (["reproduce", "--sts"], []),
    "rerank": (["rerank", "index"], []),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, where no model may be loaded and an index is at hand."""

    def never_loaded(*_: object, **__: object) -> None:
        raise AssertionError("the model was loaded before the file was read")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(Backend, "load", never_loaded)
    monkeypatch.setattr("components.command_line.commands.search.opened", lambda _: (None, 0, "mean"))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2 MB that unpack to 1.2 GB."""
    path = tmp_path_factory.mktemp("bomb") / "file.csv.gz"
    path.write_bytes(gzip.compress(b"x" * (8 << 20), 9, mtime=0) * 150)
    assert path.stat().st_size < 2_000_000
    return path


@pytest.fixture(scope="module")
def nulls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """64 kB that hold 40 million rows."""
    path, rows = tmp_path_factory.mktemp("nulls") / "file.parquet", 40_000_000
    pq.write_table(pa.table({"sentence1": pa.nulls(rows)}), path, row_group_size=rows)
    assert path.stat().st_size < 100_000
    return path


@pytest.mark.parametrize("command", but_a_few(READING, 3))
@pytest.mark.parametrize(
    ("file", "says"), [("bomb", "has more than 200 MiB when decompressed"), ("nulls", "has more than 3,000,000 rows")]
)
def test_a_small_file_that_becomes_large_is_refused_in_one_line(
    tmp_path: Path, request: pytest.FixtureRequest, command: str, file: str, says: str
) -> None:
    before, behind = READING[command]
    done = run(*before, str(request.getfixturevalue(file)), *behind)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", READING)
def test_the_limits_can_be_raised_and_lowered(tmp_path: Path, command: str) -> None:
    before, behind = READING[command]
    path = tmp_path / "file.csv"
    path.write_text("sentence1,sentence2,score\n" + "a b,c d,1\n" * 20)
    lowered = run(*before, str(path), *behind, "--most-sentences", "5")
    assert lowered.returncode == 2
    assert "15 rows" in lowered.stderr or "5 sentences" in lowered.stderr, lowered.stderr
    assert "--most-sentences 10000000 --most-bytes 2G" in lowered.stderr
    smaller = run(*before, str(path), *behind, "--most-bytes", "100")
    assert smaller.returncode == 2
    assert "100 bytes" in smaller.stderr


def test_the_limits_of_a_command_are_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    def limits_of(*arguments: str) -> CommandLimits:
        parser = argparse.ArgumentParser()
        shared.add_limits(parser)
        limits = shared.limits_of(parser.parse_args(arguments))
        assert isinstance(limits, CommandLimits)
        return limits

    usual = browser_limits()
    assert (usual.sentences, usual.bytes) == (1_000_000, 200 << 20)
    assert (limits_of().sentences, limits_of().bytes) == (usual.sentences, usual.bytes)
    raised = limits_of("--most-sentences", "7000000", "--most-bytes", "3G")
    assert (raised.sentences, raised.bytes) == (7_000_000, 3 << 30)
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_SENTENCES", "12")
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_BYTES", "5M")
    assert (limits_of().sentences, limits_of().bytes) == (12, 5 << 20)
    for wrong in (
        ("--most-sentences", "0"),
        ("--most-sentences", "-3"),
        ("--most-bytes", "much"),
        ("--most-bytes", "0"),
    ):
        with pytest.raises(InputError):
            limits_of(*wrong)


def test_a_raised_limit_lets_a_file_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_SENTENCES", "5")
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"text {number}\n" for number in range(20)))
    assert "more than 15 rows" in run("index", str(path), "--out", "out").stderr
    monkeypatch.setattr(shared, "load", lambda _: (_ for _ in ()).throw(InputError("Read.", "", "")))
    assert "Read." in run("index", str(path), "--out", "out", "--most-sentences", "20").stderr


def test_every_command_that_reads_a_table_has_the_options() -> None:
    """And none of them reads one without limits."""
    parser = program._parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    with_limits = {
        name
        for name, command in commands.choices.items()
        if any("--most-bytes" in action.option_strings for action in command._actions)
    }
    readers = {"read_corpus", "read_table", "read_folder_fields", "read_graded_folder", "load", "Sources"}
    readers |= {"table_of", "read_scored_pairs", "read_pairs", "texts_of"}
    reading, without = set(), []
    for path in (ROOT / "components" / "command_line").rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in readers:
                text = ast.unparse(node)
                if text.startswith(("shared.load(", "Backend.load(")):
                    continue
                if path.name != "options.py":  # what commands share, whose own call has to have limits too
                    reading.add(path.stem)
                if "shared.texts_of(" not in text and ("limits" not in text or "limits=None" in text):
                    without.append(f"{path.name}:{node.lineno} {text}")
    assert without == []
    expected = {"index", "evaluate", "diagnose", "sts", "rerank", "train", "plan", "reproduce", "verify", "site"}
    assert reading == expected == with_limits
