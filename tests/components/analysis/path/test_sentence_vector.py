"""The last of the steps is the vector of `Backend.embed`, with the model's own pooling and Dense layers."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from components.analysis.path.sentence_vector import sentence_steps
from components.analysis.pooling import pool
from components.model.backend import Backend
from tests.components.analysis.handmade import trace as handmade_trace
from tests.components.analysis.handmade import words
from tests.support import static_models, tiny
from tests.support.closeness import assert_close
from tests.support.shared_models import shared_backend
from tests.support.tiny import dense_module, pooling_module, publish

TEXTS = ["the cat sat", "a dog", "we will put money in the bank by the river ."]
SEVERAL_STEPS = 1e-5


def embedded_vectors(backend):
    return backend.embed(TEXTS, options=backend.embed_options(precision="float32"))[0, 0]


def assert_is_embed(backend):
    """Of each text, in one padded batch."""
    trace, expected = backend.trace(TEXTS), embedded_vectors(backend)
    found = [sentence_steps(trace, row, backend.own_pooling) for row in range(len(TEXTS))]
    for steps, vector in zip(found, expected, strict=True):
        assert_close(steps.vector, vector[: len(steps.vector)], SEVERAL_STEPS)
        assert not vector[len(steps.vector) :].any()
        assert steps.weights is None or steps.weights.sum() == pytest.approx(1)
        for array in (steps.pooled, steps.vector):
            assert array.dtype == np.float32
            assert not array.flags.writeable
    return found


@pytest.mark.parametrize("architecture", ["embedded", *tiny.ARCHITECTURES])
def test_it_is_the_models_own_vector(embedded, tiny_folder, architecture):
    backend = embedded if architecture == "embedded" else shared_backend(tiny_folder(architecture))
    for row, steps in enumerate(assert_is_embed(backend)):
        assert steps.pooling == "mean"
        assert steps.steps == ()
        states = backend.trace(TEXTS).hidden_states[-1, row, : len(steps.weights)].astype(np.float64)
        assert_close(steps.pooled, (steps.weights[:, None] * states).sum(axis=0))


@pytest.mark.parametrize("mode", ["mean_tokens", "cls_token", "max_tokens"])
def test_with_the_pooling_that_it_was_published_with(tiny_folder, tmp_path, mode):
    folder = shutil.copytree(tiny_folder("bert"), tmp_path / "model")
    backend = Backend.load(str(publish(folder, pooling_module(mode))))
    found = assert_is_embed(backend)
    assert {steps.pooling for steps in found} == {mode.partition("_")[0]}
    if mode == "cls_token":
        assert found[0].weights.tolist() == [1, 0, 0, 0, 0]
    assert (found[0].weights is None) == (mode == "max_tokens")


@pytest.mark.parametrize("mode", ["mean_tokens", "cls_token", "max_tokens"])
def test_dense_layers_and_scaling_are_steps(tiny_folder, tmp_path, mode):
    folder = shutil.copytree(tiny_folder("bert"), tmp_path / "model")
    parts = [dense_module(32, 48, "Identity"), ("Normalize", {}), dense_module(48, 20), ("Normalize", {})]
    backend = Backend.load(str(publish(folder, pooling_module(mode), *parts)))
    for steps in assert_is_embed(backend):
        names = [name for name, _ in steps.steps]
        assert names == ["Dense layer", "Scaled to length 1", "Dense layer, Tanh", "Scaled to length 1"]
        assert steps.pooling == mode.partition("_")[0]
        first, second, third, fourth = (vector for _, vector in steps.steps)
        dense = backend.loaded.head.layers
        weight, bias = (part.detach().numpy() for part in (dense[0].linear.weight, dense[0].linear.bias))
        assert_close(first, weight @ steps.pooled + bias)
        assert_close(second, first / np.linalg.norm(first))
        weight, bias = (part.detach().numpy() for part in (dense[2].linear.weight, dense[2].linear.bias))
        assert_close(third, np.tanh(weight @ second + bias))
        assert_close(fourth, third / np.linalg.norm(third))
        assert steps.vector is fourth


def test_of_a_static_model(tmp_path):
    for number, settings in enumerate(({}, {"is_weighted": True}, {"is_shared": True})):
        folder = static_models.save_model2vec(tmp_path / str(number), **settings)
        assert_is_embed(Backend.load(str(folder), device_name="cpu"))


def test_of_a_pass_that_looks_only_left(embedded):
    trace = embedded.trace(TEXTS)
    for row, text in enumerate(TEXTS):
        left = embedded.inside(text, only_left=True).hidden_states[-1]
        steps = sentence_steps(trace, row, "mean", left)
        assert_close(steps.vector, left.astype(np.float64).mean(axis=0))
        again = embedded.inside(text).hidden_states[-1]
        assert_close(sentence_steps(trace, row, "mean", again).vector, pool(trace, "mean")[-1, row], SEVERAL_STEPS)


def test_the_last_token_by_hand():
    trace = handmade_trace([words("cat"), words("a dog")], np.arange(2 * 4 * 3).reshape(1, 2, 4, 3))
    steps = sentence_steps(trace, 0, "last")  # [CLS] cat [SEP], then padding
    assert steps.weights.tolist() == [0, 0, 1]
    assert steps.vector.tolist() == [6, 7, 8]


def test_what_cannot_be_made_says_why(embedded):
    trace = embedded.trace(TEXTS)
    with pytest.raises(ValueError, match="unknown pooling 'own'"):
        sentence_steps(trace, 0, "own")
    with pytest.raises(ValueError, match="were expected"):
        sentence_steps(trace, 0, "mean", trace.hidden_states[-1, 0])  # with padding
    with pytest.raises(IndexError):
        sentence_steps(trace, 3, "mean")
