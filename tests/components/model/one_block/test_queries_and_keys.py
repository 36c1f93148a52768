"""Queries and keys of one block are those of the whole record, whatever the architecture."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from components.jobs import Stopped
from components.model import loaded
from components.model.backend import Backend
from tests.support import tiny
from tests.support.shared_models import shared_backend

TEXT, PAIR = "The cat sat on the bank.", "money in the river"


@pytest.fixture(scope="module", params=tiny.ARCHITECTURES)
def backend(request, tiny_folder):
    return shared_backend(tiny_folder(request.param))


@pytest.mark.parametrize("block", [0, 1, 2])
def test_they_are_those_of_the_record(backend, block):
    if backend.structure.adds_to_scores:
        with pytest.raises(ValueError, match="more than products"):
            backend.queries_and_keys(TEXT, PAIR, block)
        return
    steps = []
    part = backend.queries_and_keys(TEXT, PAIR, block, progress=lambda *step: steps.append(step))
    whole = backend.inside(TEXT, PAIR)
    np.testing.assert_allclose(part.queries, whole.queries[block], atol=1e-5)
    np.testing.assert_allclose(part.keys, whole.keys[block], atol=1e-5)
    assert part.score_scale == whole.score_scale
    assert part.window == backend.structure.windows[block]
    assert part.sentence == whole.sentence
    assert part.nbytes == 2 * 4 * len(part.sentence) * backend.facts.hidden_size
    assert steps == [(number, block + 1) for number in range(block + 1)]


@pytest.fixture(params=["bert", "albert", "modernbert"])
def products_only(request, tiny_folder):
    """Models whose scores are products of queries and keys; in ALBERT two blocks are one module."""
    return Backend.load(str(tiny_folder(request.param)), device_name="cpu")


def test_it_stops_between_blocks(products_only):
    steps = []
    with pytest.raises(Stopped):
        products_only.queries_and_keys(
            TEXT, None, 2, progress=lambda *step: steps.append(step), is_stopped=lambda: len(steps) == 2
        )
    assert len(steps) == 2
    assert not products_only.loaded.modules.blocks[0].query.linear._forward_pre_hooks


def test_a_block_that_is_not_there(products_only):
    with pytest.raises(IndexError, match=r"0\.\.2"):
        products_only.queries_and_keys(TEXT, None, 3)


def test_passes_of_other_threads_go_in_between_blocks(products_only, monkeypatch):
    """The other pass changes nothing of this one, and is not stopped or counted with it."""
    monkeypatch.setattr(loaded, "HANDOVER_SECONDS", 0.1)  # enough for a thread on a busy machine
    alone, expected = products_only.run([PAIR]), products_only.inside(TEXT)
    passes, others, found = [], [], []

    def step(done, total):
        passes.append(products_only.forward_passes)
        other = threading.Thread(target=lambda: found.append(products_only.run([PAIR])))
        other.start()
        others.append(other)
        time.sleep(0.02)  # it waits for the lock then

    part = products_only.queries_and_keys(TEXT, None, 2, progress=step)
    for other in others:
        other.join()
    first = passes[0]
    assert passes == [first, first + 1, first + 2]
    assert products_only.forward_passes == first + 3
    np.testing.assert_allclose(part.queries, expected.queries[2], atol=1e-5)
    np.testing.assert_allclose(part.keys, expected.keys[2], atol=1e-5)
    for trace in found:
        np.testing.assert_array_equal(trace.hidden_states, alone.hidden_states)
    query = products_only.loaded.modules.blocks[2].query.linear
    assert not query._forward_pre_hooks
    assert not query._forward_hooks


@pytest.mark.parametrize("family", ["modernbert", "nomic_bert", "eurobert"])
def test_speeds_are_those_of_the_configuration(tiny_folder, family):
    backend = Backend.load(str(tiny_folder(family)), device_name="cpu")
    config = backend.encoder.config
    for block in range(3):
        settings = config.rope_parameters
        settings = settings[config.layer_types[block]] if hasattr(config, "layer_types") else settings
        np.testing.assert_allclose(
            backend.rotation_speeds(block), settings["rope_theta"] ** (-np.arange(4) / 4), rtol=1e-5
        )


def test_speeds_of_a_model_that_does_not_rotate(tiny_folder):
    with pytest.raises(ValueError, match="does not rotate"):
        Backend.load(str(tiny_folder("bert")), device_name="cpu").rotation_speeds(0)


def test_whether_all_attentions_fit_is_known_before(tiny_folder):
    backend = Backend.load(str(tiny_folder("modernbert")), device_name="cpu")
    trace = backend.trace([TEXT], attentions=True)
    tokens = len(trace.sentences[0])
    assert backend.attention_bytes(tokens) == trace.attentions.nbytes
    assert backend.fits(tokens)
    assert not backend.fits(100_000)
