"""Curves over relative depth: worked out on paper, and equal to what plain transformers and torch give."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from components.analysis.pooling import pool
from components.analysis.similarity import depth
from components.model.backend import Backend
from components.model.trace import Trace
from components.words.typed import typed_words
from tests.support.closeness import assert_close

TEXTS = ["We put money in the bank.", "The cat sat by the river!", "a"]


@pytest.fixture(scope="module")
def trace(embedded: Backend) -> Trace:
    return embedded.trace(TEXTS)


@pytest.fixture(scope="module")
def states(embedded: Backend) -> list[torch.Tensor]:
    """The hidden states of the first text by the library's own model and tokenizer, [token, dim] for each layer."""
    ids = [token.id for token in embedded.tokenize(TEXTS[:1])[0].tokens]
    with torch.inference_mode():
        found = embedded.encoder(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
    return [layer[0].double() for layer in found]


def test_depths_go_from_0_to_1_in_equal_steps() -> None:
    np.testing.assert_array_equal(depth.relative_depths(4), [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(depth.relative_depths(0), [0])


def test_all_pairs_of_tokens(trace: Trace, states: list[torch.Tensor]) -> None:
    expected = []
    for layer in states:
        words = layer[1:-1]  # without [CLS] and [SEP]
        pairs = [cosine_similarity(words[a], words[b], dim=0) for a, b in combinations(range(len(words)), 2)]
        expected.append(float(torch.stack(pairs).mean()))
    np.testing.assert_allclose(depth.token_pairs(trace, 0), expected, atol=1e-5)


def test_layer_steps(trace: Trace, states: list[torch.Tensor]) -> None:
    expected = [float(cosine_similarity(before[1:-1], after[1:-1], dim=1).mean()) for before, after in pairwise(states)]
    found = depth.layer_steps(trace, 0)
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:], expected, atol=1e-5)


def test_two_words_are_found_by_their_characters(trace: Trace, states: list[torch.Tensor]) -> None:
    words = {TEXTS[0][start:end]: (start, end) for start, end in typed_words(TEXTS[0])}
    found = depth.two_words(trace, 0, [words["money"], words["bank"]])
    expected = [
        float(cosine_similarity(layer[3], layer[6], dim=0)) for layer in states
    ]  # [CLS] we put money in the bank
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_word_of_several_pieces_is_their_mean(embedded: Backend) -> None:
    text = "An embedding resembles another."
    trace = embedded.trace([text])
    start, end = typed_words(text)[1]
    pieces = depth.pieces_of(trace.sentences[0], start, end)
    assert len(pieces) > 1
    other = typed_words(text)[3]
    one = trace.hidden_states[:, 0, list(pieces)].astype(np.float64).mean(axis=1)
    two = trace.hidden_states[:, 0, depth.pieces_of(trace.sentences[0], *other)[0]].astype(np.float64)
    expected = (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
    assert_close(depth.two_words(trace, 0, [(start, end), other]), expected)


def test_two_sentences(trace: Trace) -> None:
    vectors = pool(trace, "mean")
    found = depth.two_vectors(vectors, 0, 1)
    expected = cosine_similarity(torch.tensor(vectors[:, 0]), torch.tensor(vectors[:, 1]), dim=1)
    assert_close(found, expected)


def test_one_token_has_no_pairs_and_a_truncated_word_no_curve(embedded: Backend, trace: Trace) -> None:
    assert np.isnan(depth.token_pairs(trace, 2)).all()
    assert np.isfinite(depth.layer_steps(trace, 2)[1:]).all()
    short = embedded.trace(TEXTS[:1], max_length=5)  # [CLS] we put money [SEP]
    spans = typed_words(TEXTS[0])
    assert np.isfinite(depth.two_words(short, 0, [spans[0], spans[2]])).all()
    assert np.isnan(depth.two_words(short, 0, [spans[0], spans[5]])).all()
