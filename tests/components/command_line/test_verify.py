"""`verify`: whether a model gives the same vectors here as in sentence-transformers, by exit status, words and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from components.model.catalog import parse_model, typed_model
from components.model.files import hub
from components.model.verification import comparison
from tests.components.command_line.in_process import run
from tests.support.reference import compare_in_this_process
from tests.support.tiny import pooling_module, publish, save_tiny

TEXTS = "the cat sat\nmoney is in the bank\na red hat\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    compare_in_this_process(monkeypatch)
    made = save_tiny(tmp_path / "model")
    publish(made, pooling_module("cls_token"))
    return made


def test_an_equal_model_is_said_to_be_equal(folder: Path, tmp_path: Path) -> None:
    said = run("verify", str(folder))
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("Equal to sentence-transformers 6.")
    (tmp_path / "texts.txt").write_text(TEXTS, encoding="utf-8")
    found = json.loads(run("verify", str(folder), str(tmp_path / "texts.txt"), "--json", "-").stdout)
    assert found["equal"] is True
    assert 0 < found["largest_difference"] < 1e-5
    assert found["lowest_cosine"] == pytest.approx(1)
    assert found["not_applied"] == []
    assert {item["text"] for item in found["texts"]} == set(TEXTS.splitlines())


def test_a_model_that_differs_ends_with_status_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = comparison.own_vectors

    def turned(*arguments: object, **named: object) -> np.ndarray:
        return own(*arguments, **named)[..., ::-1]  # type: ignore[arg-type]

    monkeypatch.setattr(comparison, "own_vectors", turned)
    said = run("verify", str(folder), "--json", "-")
    assert said.returncode == 1
    found = json.loads(said.stdout)
    assert found["equal"] is False
    assert found["lowest_cosine"] < 0.99


def test_what_cannot_be_compared_is_bad_input(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    for arguments in (
        (str(folder), str(tmp_path / "empty.txt")),
        (str(tmp_path / "none"),),
        (str(folder), "no-file.txt"),
    ):
        said = run("verify", *arguments)
        assert said.returncode == 2, said.stdout
        assert said.stderr.strip()


def test_a_typed_folder_comes_before_a_model_of_the_hub(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("verify", "model").returncode == 0  # without ./
    found = json.loads(run("why", "the cat", "a red hat", "--model", "model", "--json", "-").stdout)
    assert found["model"] == str(folder)
    for name in ("embedded", "nothing"):
        (tmp_path / name).mkdir()
    (tmp_path / "embedded" / "config.json").write_text("{}")
    assert typed_model("embedded") == "embedded"  # no folder takes the name of an included model
    assert typed_model("nothing") == "nothing"  # and an empty one is no model
    assert parse_model("model").source == "hub"  # what others name, in an index or an address, chooses no folder
    assert "is meant by ./nothing." in str(hub.offline("nothing"))
