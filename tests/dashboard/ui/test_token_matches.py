"""The figure of late interaction sums up to the score by MaxSim, also for a model that has prompts of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.model.backend import Backend
from components.retrieval.search.rerank import late_interaction_scores
from dashboard.ui import token_matches
from tests.support.saved_models import save_pylate
from tests.support.tiny import pooling_module, publish, save_tiny


@pytest.mark.parametrize("layer", [1, None])
@pytest.mark.parametrize("max_length", [None, 6])
def test_the_sum_shown_is_the_score(tmp_path: Path, layer: int | None, max_length: int | None) -> None:
    folder = publish(save_tiny(tmp_path / "prompted"), pooling_module("mean_tokens"))
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


def test_trained_vectors_add_up_to_the_score_and_hidden_states_do_not(tmp_path: Path) -> None:
    backend = Backend.load(str(save_pylate(tmp_path / "pylate", document_length=12)), device_name="cpu")
    query, document = "the dog in a hat", "the dog ran on the bank"
    (score,) = late_interaction_scores(backend, query, [document], backend.facts.layers)
    matches = token_matches.of_trained_vectors(backend, query, document)
    assert matches is not None
    assert matches.products.shape == (len(matches.query_pieces), len(matches.document_pieces))
    assert matches.products.max(axis=1).sum() == pytest.approx(float(score), abs=1e-4)
    assert f"is {score:.2f}: the best product" in matches.message
    hidden = token_matches.of_texts(backend, query, document)
    assert hidden is not None
    assert hidden.similarity.total != pytest.approx(float(score), abs=0.01)


def test_only_a_text_that_was_cut_has_a_note() -> None:
    assert token_matches.cut_note("four", 4) == ""
    assert "has 5 characters, of which only the first 4 are explained" in token_matches.cut_note("fifth", 4)
