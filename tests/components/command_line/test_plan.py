"""`plan`: from a rate to hours, bytes and money."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from components.command_line.commands.operating import plan
from components.command_line.program import main
from tests.support.tiny import save_tiny


def test_a_plan_for_two_sizes_with_a_given_rate(tmp_path: Path, capsys) -> None:
    model = save_tiny(tmp_path / "model")
    options = ["--layers", "all", "--poolings", "mean,cls", "--rate", "1000", "--machines", "2"]
    prices = ["--hour-price", "3", "--storage-price", "0.5", "--json", str(tmp_path / "plan.json")]
    assert main(["plan", "--sentences", "7.2e6", "1e9", "--model", str(model), *options, *prices]) == 0
    made = json.loads((tmp_path / "plan.json").read_text())
    first, second = made["plans"]
    assert (first["sentences"], first["hours"], second["sentences"]) == (7_200_000, 1.0, 10**9)
    assert made["vector_bytes"] == {"float32": 132, "float16": 68, "int8": 36, "pq": 12}
    assert first["vector_bytes"]["float16"] == 7_200_000 * 4 * 2 * 68  # 4 layers, 2 poolings
    assert first["money_once"] == 6.0
    assert not made["rate_is_measured"]
    table = capsys.readouterr().out
    assert "1,000,000,000" in table
    assert "6.00" in table


def test_the_rate_is_measured_on_sentences_of_ones_own(tmp_path: Path) -> None:
    model, file = save_tiny(tmp_path / "model"), tmp_path / "own.txt"
    file.write_text("the cat sat\na dog ran on\n")
    to = tmp_path / "plan.json"
    assert main(["plan", "--sentences", "10", "--model", str(model), "--sample", str(file), "--json", str(to)]) == 0
    made = json.loads(to.read_text())
    assert made["rate_is_measured"]
    assert made["sentences_per_second"] > 0
    assert made["text_bytes_per_sentence"] == 11.5


def test_the_rate_is_that_of_all_sentences_that_were_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded: list[int] = []
    backend = SimpleNamespace(embed=lambda texts, **_: embedded.append(len(texts)))
    monkeypatch.setattr(plan, "time", SimpleNamespace(perf_counter=iter((10.0, 12.0)).__next__))
    assert plan._measured(backend, ["a", "b", "c"], None) == plan.MEASURED / 2  # type: ignore[arg-type]
    assert embedded == [plan.WARM_UP, plan.MEASURED]


def test_bad_numbers_are_one_line(capsys) -> None:
    assert main(["plan", "--sentences", "many"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
