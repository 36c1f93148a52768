"""Vectors of jointly read pairs against transformers' own forward pass, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from components.errors import InputError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.embedding import pair_vectors

KINDS = ("bert", "electra", "roberta", "distilbert", "mpnet")
QUERIES = ["the cat sat on the bank", "money", "a red hat", "you will walk by the river, we will run", "x", "the"]
DOCUMENTS = ["a cat on a river bank", "put money in the bank!", "the cat ran", "walking " * 70, "the dog é 你", "hat"]


def expected(folder, queries, documents, layers, max_length):
    """Plain transformers, each pair by itself: [CLS], mean and maximum, [layer, pooling, pair, dim]."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    columns = []
    for query, document in zip(queries, documents, strict=True):
        inputs = tokenizer(query, document, truncation="longest_first", max_length=max_length, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs, output_hidden_states=True).hidden_states
        own = [states[layer][0] for layer in layers]
        columns.append(np.stack([torch.stack([s.mean(dim=0), s[0], s.amax(dim=0)]).numpy() for s in own]))
    return np.stack(columns, axis=2)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_those_of_transformers(kind, tiny_folder):
    folder = tiny_folder(kind)
    backend = Backend.load(str(folder), device_name="cpu")
    layers, length = list(range(backend.facts.layers + 1)), 24
    reference = expected(folder, QUERIES, DOCUMENTS, layers, length)
    for budget in (None, 1):  # together, and one pair at a time without padding
        vectors = backend.embed_pairs(
            QUERIES, DOCUMENTS, layers, ("mean", "cls", "max"), max_length=length, token_budget=budget
        )
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, reference, atol=1e-5)
    assert np.ptp(reference[-1, 1], axis=0).max() > 0.1
    # What is left out: [CLS] of the last layer.
    last = backend.embed_pairs(QUERIES, DOCUMENTS, max_length=length)
    np.testing.assert_allclose(last, reference[-1:, 1:2], atol=1e-5)


def test_each_pair_keeps_its_vector_beyond_the_first_block(embedded, monkeypatch):
    whole = embedded.embed_pairs(QUERIES, DOCUMENTS)
    monkeypatch.setattr(pair_vectors, "SENTENCES_PER_BLOCK", 2)
    np.testing.assert_allclose(embedded.embed_pairs(QUERIES, DOCUMENTS), whole, atol=1e-5)


def test_the_second_text_has_its_own_segment(embedded):
    """The included model has trained segments: a pair is neither its two texts joined, nor the same pair the other way."""
    together = embedded.embed_pairs(["river bank"], ["money bank"])[0, 0, 0]
    trace = embedded.trace(["river bank"], ["money bank"])
    np.testing.assert_allclose(together, trace.hidden_states[-1, 0, 0], atol=1e-5)
    assert trace.token_type_ids.max() == 1
    assert not np.allclose(together, embedded.embed_pairs(["money bank"], ["river bank"])[0, 0, 0], atol=1e-2)


def test_progress_stopping_and_what_is_refused(embedded):
    reports = []
    embedded.embed_pairs(QUERIES, DOCUMENTS, token_budget=1, progress=lambda *report: reports.append(report))
    assert reports == [(done, 6) for done in range(1, 7)]
    assert embedded.embed_pairs([], [], [0, 6], ("mean", "cls")).shape == (2, 2, 0, 384)
    with pytest.raises(Stopped):
        embedded.embed_pairs(QUERIES, DOCUMENTS, is_stopped=lambda: True)
    with pytest.raises(ValueError, match="equal numbers"):
        embedded.embed_pairs(QUERIES, DOCUMENTS[:1])
    with pytest.raises(InputError, match="Dense layers"):
        embedded.embed_pairs(QUERIES, DOCUMENTS, poolings=("own",))
    with pytest.raises(InputError, match="layers"):
        embedded.embed_pairs(QUERIES, DOCUMENTS, [7])
    with pytest.raises(InputError):
        embedded.embed_pairs(QUERIES, DOCUMENTS, max_length=10_000)
