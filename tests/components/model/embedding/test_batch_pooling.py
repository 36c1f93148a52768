"""Pooling inside a batch: shares of a mean by hand, and weighted means equal to plain transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.jobs import Stopped
from components.model.backend import Backend
from components.model.embedding import embedder
from components.model.embedding.batch_pooling import pooled_states, weighted_shares
from components.model.trace import POOLINGS
from tests.support.closeness import assert_close
from tests.support.shared_models import shared_backend
from tests.support.tiny import ARCHITECTURES, pooling_module, publish, save_tiny, tiny_model

TEXTS = [
    "the cat sat",
    "a dog",
    "the cat and the dog sat on the mat",
    "cat",
    "",
    "we walked by the river bank , in a red hat !",
]


def test_shares_and_pools_by_hand():
    keep = torch.tensor([[True, True, True], [True, True, False]])
    lengths = torch.tensor([3, 2])
    share = keep.float() / lengths[:, None]
    weights = torch.tensor([[1.0, 2.0, 1.0], [3.0, 1.0, 9.0]])  # the 9 stands on padding
    shares = weighted_shares(share, weights)
    torch.testing.assert_close(shares, torch.tensor([[0.25, 0.5, 0.25], [0.75, 0.25, 0.0]]))
    torch.testing.assert_close(weighted_shares(share, torch.zeros(2, 3)), share)
    states = torch.tensor([[[4.0], [8.0], [0.0]], [[4.0], [-8.0], [100.0]]])  # [sentence, token, dim]
    found = pooled_states([states], POOLINGS, keep, lengths, shares)[0, ..., 0]
    assert dict(zip(POOLINGS, found.tolist(), strict=True)) == {"mean": [5, 1], "cls": [4, 4], "max": [8, 4]}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_weighted_means_equal_plain_transformers(architecture, tiny_folder):
    backend = shared_backend(tiny_folder(architecture))
    model, tokenizer = tiny_model(architecture)
    weights = np.random.default_rng(0).uniform(0, 3, len(tokenizer)).astype(np.float32)
    options = backend.embed_options(range(4), precision="float32")
    found = backend.embed_weighted(TEXTS, weights, options)
    assert found.shape == (4, len(TEXTS), 32)
    assert found.dtype == np.float32
    for row, text in enumerate(TEXTS):  # one by one: no padding at all
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.inference_mode():
            states = model(ids, output_hidden_states=True).hidden_states
        parts = torch.from_numpy(weights)[ids[0]][:, None]
        expected = np.array([((state[0] * parts).sum(0) / parts.sum()).numpy() for state in states])
        np.testing.assert_allclose(found[:, row], expected, atol=2e-5)


def test_equal_weights_and_no_weight_at_all_give_the_plain_mean(embedded):
    options = embedded.embed_options((0, 6), ("cls",), precision="float32")  # poolings are not read
    plain = embedded.embed(TEXTS, options=embedded.embed_options((0, 6), ("mean",), precision="float32"))[:, 0]
    ones = np.ones(embedded.facts.vocabulary_size, np.float32)
    for weights in (ones, 0.01 * ones, 0 * ones):
        assert_close(embedded.embed_weighted(TEXTS, weights, options), plain)


def test_a_single_weight_picks_that_token(embedded):
    trace = embedded.trace(["the bank", "a long walk along the river bank"])
    weights = np.zeros(embedded.facts.vocabulary_size, np.float32)
    weights[trace.input_ids[0, 2]] = 0.5
    found = embedded.embed_weighted(
        ["the bank", "a long walk along the river bank"], weights, embedded.embed_options((2, 6), precision="float32")
    )
    places = np.argwhere(trace.input_ids == trace.input_ids[0, 2])
    assert places.tolist() == [[0, 2], [1, 7]]
    for at, layer in enumerate((2, 6)):
        for sentence, token in places:
            expected = trace.hidden_states[layer, sentence, token]
            np.testing.assert_allclose(found[at, sentence], expected, atol=2e-5)


def test_prompt_length_progress_and_memory_are_those_of_embed(tmp_path, monkeypatch):
    folder = publish(save_tiny(tmp_path / "prompted"), pooling_module("mean_tokens"))
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "the cat "}}')
    backend = Backend.load(str(folder))
    weights = np.arange(backend.facts.vocabulary_size, dtype=np.float32)
    options = backend.embed_options(max_length=6, precision="float32", role="query")
    plain = backend.embed_options(max_length=6, precision="float32")
    told: list[tuple[int, int]] = []
    expected = backend.embed_weighted([f"the cat {text}" for text in TEXTS], weights, plain)
    found = backend.embed_weighted(TEXTS, weights, options, progress=lambda *counts: told.append(counts))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert told[-1] == (len(TEXTS), len(TEXTS))

    whole = backend.embedder._forward

    def small_memory(ids, chosen, weights=None):
        if len(ids) > 2:
            raise torch.OutOfMemoryError("a pretended one")
        return whole(ids, chosen, weights)

    monkeypatch.setattr(backend.embedder, "_forward", small_memory)
    np.testing.assert_allclose(backend.embed_weighted(TEXTS, weights, options), expected, atol=1e-5)


def test_more_texts_than_a_block_keep_their_order(tiny_folder, monkeypatch):
    backend = Backend.load(str(tiny_folder("bert")))
    weights = np.arange(backend.facts.vocabulary_size, dtype=np.float32)
    options = backend.embed_options(precision="float32")
    expected = backend.embed_weighted(TEXTS, weights, options)
    monkeypatch.setattr(embedder, "SENTENCES_PER_BLOCK", 2)
    np.testing.assert_allclose(backend.embed_weighted(TEXTS, weights, options), expected, atol=1e-5)


def test_wrong_weights_are_refused_and_a_stop_is_heard(embedded):
    options = embedded.embed_options(precision="float32")
    size = embedded.facts.vocabulary_size
    for weights in (np.ones(size - 1), -np.ones(size), np.full(size, np.nan), np.ones((1, size))):
        with pytest.raises(ValueError, match=f"{size} weights"):
            embedded.embed_weighted(["a"], weights.astype(np.float32), options)
    with pytest.raises(Stopped):
        embedded.embed_weighted(["a"], np.ones(size, np.float32), options, is_stopped=lambda: True)
