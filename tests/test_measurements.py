"""The record of what is measured: a row for each test of speed, its table in the document, and no failures."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.support import measurements
from tests.support.places import ROOT


def speed_tests(file: Path) -> set[str]:
    found = (node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef))
    return {f"{file.relative_to(ROOT)}::{name}" for name in found if name.startswith("test_")}


def test_each_test_of_speed_has_one_row() -> None:
    files = [*(ROOT / "tests/benchmarks").glob("test_*.py"), *(ROOT / "tests/load").glob("test_*.py")]
    every = set().union(*map(speed_tests, files)) | {"tests/faults/test_soak.py::test_nothing_grows_in_an_hour"}
    named = [row["test"] for row in measurements.rows()]
    assert sorted(named) == sorted(every)
    assert {tuple(row) for row in measurements.rows()} == {("test", "what", "promised", "measured", "machine", "date")}


def test_the_document_shows_the_record() -> None:
    text = measurements.TABLE.read_text("utf-8")
    between = text.partition(measurements.BEGIN)[2].partition(measurements.END)[0]
    assert between == "\n" + measurements.table(measurements.rows())


def test_what_was_measured_replaces_its_row_unless_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = measurements.rows()[:3]
    record, document = tmp_path / "record.json", tmp_path / "document.md"
    record.write_text(json.dumps(rows), "utf-8")
    document.write_text(f"Before.\n{measurements.BEGIN}\nold\n{measurements.END}\nAfter.\n", "utf-8")
    monkeypatch.setattr(measurements, "RECORD", record)
    monkeypatch.setattr(measurements, "TABLE", document)
    first, second = rows[0]["test"], rows[1]["test"]
    told = {first: ["1.2 ×", "1.3 ×"], second: ["9 ×"], "tests/other.py::test_else": ["7 ×"]}
    measurements.keep([f"{second}[the second of two]"], told)
    assert [row["measured"] for row in measurements.rows()] == ["1.2 ×; 1.3 ×", *(row["measured"] for row in rows[1:])]
    assert measurements.rows()[0]["machine"] == measurements.machine()
    text = document.read_text("utf-8")
    assert text.startswith(f"Before.\n{measurements.BEGIN}\n| | measured |")
    assert text.endswith(f"{measurements.END}\nAfter.\n")
    assert "| 1.2 ×; 1.3 × |" in text
    assert "old" not in text


def test_a_measurement_is_noted_for_the_test_that_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measurements, "_told", {})
    measurements.report("2 ×")
    assert "2 ×" in capsys.readouterr().out
    assert measurements._told == {
        "tests/test_measurements.py::test_a_measurement_is_noted_for_the_test_that_runs": ["2 ×"]
    }
