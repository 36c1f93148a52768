"""Integrated Jacobians: against an independent slow integration, and by their sum, for every architecture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from components.analysis.pooling import pool
from components.errors import InputError
from components.jobs import Stopped
from components.model.architecture.record import position_ids
from components.model.backend import Backend
from components.model.contributions.path_products import (
    MOST_TOKENS,
    REFERENCES,
    SIGHTINGS,
    _word_vectors,
    steps_of_path,
)
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.shared_models import shared_backend

TEXT = "The cat sat on the bank"
SHORT = "a bank sat"  # also where a tokenizer splits into letters


@pytest.fixture(scope="module", params=tiny.ARCHITECTURES)
def backend(request, tiny_folder):
    return shared_backend(tiny_folder(request.param))


@pytest.fixture(scope="module")
def bert(tiny_folder):
    return Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu")


def sentence_of(backend, text=TEXT):
    return backend.tokenize([text])[0]


def assert_vector_of_the_trace(backend, layer, pooling):
    products = backend.path_products(sentence_of(backend, SHORT), "unknown", layer, pooling, steps=1)
    assert (products.layer, products.pooling) == (layer, pooling)
    np.testing.assert_allclose(products.vector, pool(backend.trace([SHORT]), pooling)[layer, 0], atol=1e-5)


def test_the_text_s_vector_is_that_of_the_trace_at_every_layer(backend):
    """A shorter encoder for each layer; the pooling after it is the same code for all, and is held below."""
    for layer, pooling in enumerate(("mean", "cls", "max", "mean")):
        assert_vector_of_the_trace(backend, layer, pooling)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_text_s_vector_is_that_of_the_trace_with_every_pooling(bert, pooling):
    for layer in range(4):
        assert_vector_of_the_trace(bert, layer, pooling)


# The others differ in nothing that the sum depends on, and are held to the Jacobians of plain torch below.
@pytest.mark.parametrize("architecture", tiny.DISTINCT)
def test_contributions_sum_to_the_way_from_the_reference(tiny_folder, architecture):
    backend = shared_backend(tiny_folder(architecture))
    sentence = sentence_of(backend, SHORT)
    # Where nothing normalises layer 0, a tiny model's random vectors turn more quickly on the way.
    products = backend.path_products(
        sentence, "mask", 2, "mean", steps=20 if backend.structure.layer_zero_steps else 50
    )
    way = products.vector - products.reference_vector
    assert np.linalg.norm(way) > 0.1
    np.testing.assert_allclose(products.contributions.sum(0), way, atol=0.01 * np.linalg.norm(way))
    special = [token.special for token in sentence.tokens]
    assert not products.contributions[special].any()


def test_they_are_the_jacobians_of_plain_torch_integrated(backend):
    """`torch.func.jacrev` of the model itself, at the same places, in a loop over single tokens."""
    sentence, steps = sentence_of(backend, SHORT), 3
    model = backend.loaded.eager()
    ids = torch.tensor([[token.id for token in sentence.tokens]])
    table = model.get_input_embeddings().weight.detach()
    own, start = table[ids], table[ids].clone()
    replaced = [token.position for token in sentence.tokens if not token.special]
    start[0, replaced] = table[backend.tokenization.mask_id]
    positions = position_ids(model.config, ids)

    def vector(words):
        output = model(inputs_embeds=words, position_ids=positions, output_hidden_states=True)
        return output.hidden_states[2].mean(1)[0]

    with torch.no_grad():
        seen = [vector(start + number / SIGHTINGS * (own - start)).numpy() for number in range(SIGHTINGS + 1)]
    expected = np.zeros((len(sentence), backend.facts.hidden_size))
    for share, weight in zip(*steps_of_path(np.stack(seen).astype(np.float64), steps), strict=True):
        place = start + float(share) * (own - start)
        jacobian = torch.func.jacrev(vector)(place)[:, 0].detach()  # [dim, token, dim of a word vector]
        for position in replaced:
            expected[position] += weight * (jacobian[:, position] @ (own - start)[0, position]).numpy()
    products = backend.path_products(sentence, "mask", 2, "mean", steps=steps)
    np.testing.assert_allclose(products.contributions, expected, atol=1e-5, rtol=1e-4)


def test_the_steps_of_a_path_lie_where_the_vector_moves():
    """A vector that turns quickly in the middle: the steps crowd there, and the sum is nearer than with equal steps."""

    def place(t):
        return np.stack([np.tanh(20 * (t - 0.5)), t], axis=-1)

    def velocity(t):
        return np.stack([20 / np.cosh(20 * (t - 0.5)) ** 2, np.ones_like(t)], axis=-1)

    shares, weights = steps_of_path(place(np.linspace(0, 1, SIGHTINGS + 1)), 12)
    assert ((shares > 0) & (shares < 1)).all()
    assert (np.diff(shares) > 0).all()
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1, abs=0.03)
    way = place(1.0) - place(0.0)
    middles = (np.arange(12) + 0.5) / 12
    error = np.linalg.norm(weights @ velocity(shares) - way)
    assert error < 0.25 * np.linalg.norm(velocity(middles).mean(0) - way)
    assert error < 0.03


def test_the_steps_of_a_path_without_turns_are_those_of_gauss():
    for vectors in (np.linspace([0.0, 1.0], [3.0, 2.0], SIGHTINGS + 1), np.ones((SIGHTINGS + 1, 2))):
        shares, weights = steps_of_path(vectors, 5)
        places, gauss = np.polynomial.legendre.leggauss(5)
        np.testing.assert_allclose(shares, (places + 1) / 2, atol=0.01)
        np.testing.assert_allclose(weights, gauss / 2, atol=0.01)


def test_no_contribution_reaches_cls_at_layer_0(bert):
    """Before the first block, [CLS] has seen no other token."""
    products = bert.path_products(sentence_of(bert), "unknown", 0, "cls", steps=4)
    assert not products.contributions.any()
    assert np.abs(products.vector).max() > 0


def test_more_steps_make_the_sum_more_exact(embedded):
    sentence = sentence_of(embedded, "A dog runs.")
    errors = []
    for steps in (4, 16):
        products = embedded.path_products(sentence, "unknown", 6, "mean", steps=steps)
        rest = products.contributions.sum(0) - (products.vector - products.reference_vector)
        errors.append(np.linalg.norm(rest) / np.linalg.norm(products.vector))
    assert errors[1] < 0.02 < errors[0]


def test_the_reference_mean_is_the_mean_of_all_word_vectors(bert):
    sentence = sentence_of(bert, "a bank")
    table = bert.loaded.encoder.get_input_embeddings().weight.detach()
    vectors = _word_vectors(bert.loaded, sentence, "mean")[0]
    own = [token.position for token in sentence.tokens if not token.special]
    assert_close(vectors[own].numpy(), np.broadcast_to(table.mean(dim=0).numpy(), (len(own), table.shape[1])))


def test_references(bert):
    sentence = sentence_of(bert)
    assert bert.references == REFERENCES
    vectors = bert.reference_vectors(sentence, REFERENCES, 3, "mean")
    for name, vector in zip(REFERENCES, vectors, strict=True):
        products = bert.path_products(sentence, name, 3, "mean", steps=1)
        assert_close(products.reference_vector, vector)
    assert len({round(float(vector[0]), 6) for vector in vectors}) == len(REFERENCES)
    # A text of nothing but the reference has nowhere to go: each contribution is 0.
    products = bert.path_products(sentence_of(bert, "[UNK] [UNK]"), "unknown", 3, "mean", steps=2)
    assert not products.contributions.any()


def test_a_published_head_is_part_of_the_function(tmp_path):
    folder = tiny.publish(
        tiny.save_tiny(tmp_path / "own"), tiny.pooling_module(), tiny.dense_module(32, 8), ("Normalize", {})
    )
    backend = Backend.load(str(folder), store=TraceStore(1 << 20), device_name="cpu")
    products = backend.path_products(sentence_of(backend), "unknown", 3, "own", steps=40)
    np.testing.assert_allclose(products.vector, pool(backend.trace([TEXT]), "own")[3, 0], atol=1e-5)
    np.testing.assert_allclose(products.contributions.sum(0), products.vector - products.reference_vector, atol=0.01)


def test_a_text_without_tokens_of_its_own(bert):
    sentence = sentence_of(bert, "\u200b")
    assert all(token.special for token in sentence.tokens)
    products = bert.path_products(sentence, "mask", 3, "mean", steps=2)
    assert not products.contributions.any()
    np.testing.assert_allclose(products.vector, products.reference_vector)


def test_progress_stopping_and_the_lock(bert):
    """Between two batches the lock is free, and a stop is heeded."""
    sentence, seen, others = sentence_of(bert), [], ThreadPoolExecutor(1)

    def is_free():
        """In another thread: the lock is reentrant."""
        if bert.loaded.lock.acquire(blocking=False):
            bert.loaded.lock.release()
            return True
        return False

    def progress(done, total):
        assert others.submit(is_free).result()
        assert not torch.is_inference_mode_enabled()
        seen.append((done, total))

    before = bert.forward_passes
    bert.path_products(sentence, "unknown", 3, "mean", steps=3, progress=progress)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert bert.forward_passes - before == 2 + 2 + 3  # the path is looked at in two passes
    with pytest.raises(Stopped):
        bert.path_products(sentence, "unknown", 3, "mean", steps=3, is_stopped=lambda: len(seen) >= 3)


def test_the_model_is_left_as_it_was(bert):
    blocks = len(bert.loaded.eager().encoder.layer)
    bert.path_products(sentence_of(bert), "unknown", 1, "mean", steps=1)
    eager = bert.loaded.eager()
    assert len(eager.encoder.layer) == blocks == 3
    assert eager.pooler is not None
    assert len(bert.encoder.encoder.layer) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dog", 3, "mean", 5), "reference"),
        (("mask", 4, "mean", 5), "Layer 4"),
        (("mask", 3, "own", 5), "own"),
        (("mask", 3, "mean", 0), "0 steps"),
    ],
)
def test_what_does_not_exist_is_refused(bert, arguments, said):
    with pytest.raises(InputError, match=said):
        bert.path_products(sentence_of(bert), *arguments)


def test_a_long_text_is_refused(embedded):
    with pytest.raises(InputError, match=str(MOST_TOKENS)):
        embedded.path_products(sentence_of(embedded, "dog " * 200), "unknown", 6, "mean")
