"""A run starts from what its model's folder sets, and the trained folder sets it again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from components.model.backend import Backend
from components.model.files.sentence_config import read_sentence_config
from components.training import model as models
from components.training.settings import TrainingSettings
from tests.support.tiny import publish

PROMPTS = {"query": "find : ", "document": "text : ", "similarity": "same : "}
TOP: dict[str, Any] = {
    "prompts": PROMPTS,
    "default_prompt_name": "similarity",
    "similarity_fn_name": "dot",
    "truncate_dim": 12,
}


@pytest.mark.parametrize("mode", ["mean", ["weightedmean", "cls"], "lasttoken"])
def test_they_are_kept(mode: str | list[str], tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    pooling = {"embedding_dimension": 32, "pooling_mode": mode, "include_prompt": False}
    folder = publish(shutil.copytree(tiny_folder("bert"), tmp_path / "m"), ("Pooling", pooling), ("Normalize", {}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(TOP))
    settings = TrainingSettings(model=str(folder), adapter=False)
    trained = models.build(settings, "encoder")
    models.save(trained, settings, tmp_path / "trained", tmp_path / "adapter")
    before, after = read_sentence_config(folder), read_sentence_config(tmp_path / "trained")
    for name in ("prompts", "default_prompt", "similarity", "truncate_dim"):
        assert getattr(after, name) == getattr(before, name), name
    kinds = [[module.kind for module in published.modules] for published in (before, after)]
    assert kinds[0] == kinds[1]
    assert before.modules[1].pooling_modes == after.modules[1].pooling_modes
    assert after.modules[1].config is not None
    assert after.modules[1].config["include_prompt"] is False
    texts = ["the cat sat", "a river bank"]
    expected = SentenceTransformer(str(folder), device="cpu").encode(texts)
    found = Backend.load(str(tmp_path / "trained")).embed(texts)[0, 0]
    assert found == pytest.approx(expected, abs=1e-5)  # nothing was learnt yet
