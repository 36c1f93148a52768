"""The figure of late interaction sums up to the score by MaxSim, also for a model that has prompts of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.model.backend import Backend
from components.retrieval.search.rerank import late_interaction_scores
from dashboard.ui import token_matches
from tests.tiny import save_tiny


@pytest.mark.parametrize("layer", [1, None])
@pytest.mark.parametrize("max_length", [None, 6])
def test_the_sum_shown_is_the_score(tmp_path: Path, layer: int | None, max_length: int | None) -> None:
    folder = save_tiny(tmp_path / "prompted")
    prompts = {"query": "the cat ", "passage": "a dog "}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    backend = Backend.load(str(folder), device_name="cpu")
    query, document = "sat", "on the bank of the red hat"
    matches = token_matches.of_texts(backend, query, document, layer, max_length)
    assert matches is not None
    (score,) = late_interaction_scores(backend, query, [document], matches.layer, max_length)
    assert matches.similarity.total == pytest.approx(float(score), abs=1e-5)
    assert matches.layer == (backend.facts.layers if layer is None else layer)
    assert matches.document.text[matches.prompt_length :] == document
    assert [matches.query.tokens[place].piece for place in matches.similarity.query_positions] == ["the", "cat", "sat"]
