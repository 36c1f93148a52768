"""Made-up folders, as people publish them, give the numbers of sentence-transformers by page and by every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.model.backend import Backend
from components.model.files.decisions import TABLE
from tests.support import published_folders
from tests.support.published_folders import FAMILIES, FOLDERS, drawn, faults, rows, write
from tests.support.tiny import pooling_module, publish, save_tiny

FEW = 8  # one of each family


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command would load the same folder again."""
    backends: dict[str, Backend] = {}
    load = Backend.load

    def once(model: Any = "embedded", *_: Any, **__: Any) -> Backend:
        key = str(getattr(model, "key", model))
        if key not in backends:
            backends[key] = load(model, device_name="cpu")
        return backends[key]

    monkeypatch.setattr(Backend, "load", once)


@pytest.mark.parametrize("seed", range(FEW))
def test_a_folder_gives_the_numbers_of_sentence_transformers(seed: int, tmp_path: Path) -> None:
    published = write(tmp_path / "model", seed)
    assert list(faults(published, tmp_path)) == [], str(published)


@pytest.mark.rare
@pytest.mark.parametrize("seed", range(FEW, FOLDERS))
def test_many_folders_do(seed: int, tmp_path: Path) -> None:
    published = write(tmp_path / "model", seed)
    assert list(faults(published, tmp_path)) == [], str(published)


def test_every_row_that_is_applied_is_drawn_or_has_a_reason() -> None:
    given = {name for seed in range(FOLDERS) for name in published_folders.draft(seed).names}
    assert {f"{row.source}{f' {row.key}' if row.key else ''}" for row in rows()} <= given
    assert {published_folders.draft(seed).family for seed in range(FEW)} == set(FAMILIES)
    known = {(row.source, row.key) for row in TABLE}
    assert set(published_folders.DRAWN) | set(published_folders.NOT_DRAWN) <= known
    assert all(drawn(row) is None for row in TABLE if row.outcome != "applied")


def test_a_setting_that_is_overlooked_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder says another thing to sentence-transformers than what was loaded here."""
    folder = publish(save_tiny(tmp_path / "model"), pooling_module())
    Backend.load(str(folder))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"embedding_dimension": 32, "pooling_mode": "max"}))
    found = list(faults(published_folders.Published(folder, "bert", ("pooling",)), tmp_path))
    assert {said.split(" ")[0].rstrip(":") for said in found} >= {"vectors", "search", "why"}
