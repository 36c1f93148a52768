"""A pass that looks only left: nothing to the right, in any architecture, and no vector that depends on what follows."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from components.errors import ModelError
from components.model import inside
from components.model.backend import Backend
from components.model.interventions import only_left
from components.model.one_block import feed_forward
from components.model.store import TraceStore
from tests.support import static_models, tiny
from tests.support.closeness import assert_close
from tests.support.decoder_models import save_qwen3
from tests.support.hooks import hooks_of
from tests.support.shared_models import shared_backend

TEXT, OTHER = "The cat sat on the bank, we put money in.", "The cat sat on the bank by a red river"
SAME = 1e-5


@pytest.fixture(scope="module", params=("embedded", *tiny.ARCHITECTURES))
def backend(request, embedded, tiny_folder):
    return embedded if request.param == "embedded" else shared_backend(tiny_folder(request.param))


@pytest.fixture
def own(tiny_folder):
    """A tiny DeBERTa, whose encoder takes the mask by a hook, with a store and a count of its own."""
    return Backend.load(str(tiny_folder("deberta-v2")), store=TraceStore(1 << 24), device_name="cpu")


def test_nothing_to_the_right_and_all_of_it_to_the_left(backend):
    record, free = (backend.inside(TEXT, "a river", only_left=left) for left in (True, False))
    assert (np.triu(record.attentions, k=1) == 0).all()
    np.testing.assert_allclose(record.attentions.sum(-1), 1, atol=1e-6)
    assert record.only_left
    assert not free.only_left
    assert np.triu(free.attentions, k=1).any(axis=(1, 2, 3)).all()
    # Layer 0 is before any attention, and the last token sees all others anyway, as they were before this block.
    assert_close(record.hidden_states[0], free.hidden_states[0])
    assert_close(record.attentions[0, :, -1], free.attentions[0, :, -1], SAME)
    for block, window in enumerate(backend.structure.windows):
        if window is not None:
            assert not np.tril(record.attentions[block], k=-window - 1).any()


def test_vectors_do_not_depend_on_what_follows(backend):
    first, second = (backend.inside(text, only_left=True) for text in (TEXT, OTHER))
    pieces = [[token.id for token in record.sentence.tokens] for record in (first, second)]
    shared = next(at for at, (one, other) in enumerate(zip(*pieces, strict=False)) if one != other)
    assert 3 < shared < min(map(len, pieces))
    for name in ("hidden_states", "attention_output", "after_attention", "feed_forward_output"):
        left, right = (getattr(record, name)[:, :shared] for record in (first, second))
        assert_close(left, right, SAME, name)
    for name in ("queries", "keys", "values"):
        assert_close(getattr(first, name)[:, :, :shared], getattr(second, name)[:, :, :shared], SAME, name)
    neurons = [backend.feed_forward(text, only_left=True).activations[:, :shared] for text in (TEXT, OTHER)]
    assert_close(*neurons, SAME)
    free = [backend.inside(text).hidden_states[-1, :shared] for text in (TEXT, OTHER)]
    assert np.abs(free[0] - free[1]).max() > 0.01


def test_the_inner_dimensions_are_of_the_same_pass(backend):
    record, neurons = backend.inside(TEXT, only_left=True), backend.feed_forward(TEXT, only_left=True)
    assert neurons.only_left
    for block, modules in enumerate(backend.loaded.modules.blocks):
        dense = modules.feed_forward_dense
        bias = 0 if dense.bias is None else dense.bias.detach().numpy()
        added = neurons.products(block) @ dense.weight.detach().numpy().T + bias
        assert_close(added, record.feed_forward_output[block], SAME)


def test_without_attentions_it_is_the_same_pass(backend):
    record = backend.inside(TEXT, attentions=False, only_left=True)
    assert record.attentions is None
    assert_close(record.hidden_states, backend.inside(TEXT, only_left=True).hidden_states)


def test_it_is_kept_beside_the_other_pass(own):
    free, left = own.inside(TEXT), own.inside(TEXT, only_left=True)
    whole, neurons = own.feed_forward(TEXT), own.feed_forward(TEXT, only_left=True)
    assert own.forward_passes == 4
    assert own.inside(TEXT) is free
    assert own.inside(TEXT, only_left=True) is left
    assert own.feed_forward(TEXT) is whole
    assert own.feed_forward(TEXT, only_left=True) is neurons
    assert own.forward_passes == 4
    assert np.abs(free.hidden_states[1] - left.hidden_states[1]).max() > 0.01
    assert np.abs(whole.activations - neurons.activations).max() > 0.01


@contextmanager
def not_taken(model, tensors):
    yield tensors


@pytest.mark.parametrize("architecture", ["bert", "deberta-v2"])
def test_a_model_that_does_not_take_the_mask_is_refused(tiny_folder, monkeypatch, architecture):
    backend = Backend.load(str(tiny_folder(architecture)), store=TraceStore(1 << 24), device_name="cpu")
    for module in (inside, feed_forward, only_left):
        monkeypatch.setattr(module, "looking_left", not_taken)
    for run in (backend.inside, backend.feed_forward):
        with pytest.raises(ModelError, match="takes no mask that hides later tokens") as caught:
            run(TEXT, only_left=True)
        assert caught.value.kind == "unsupported"
    assert len(backend.store) == 0


def test_no_hook_remains(own, monkeypatch):
    eager = own.loaded.eager()
    before = hooks_of(own.encoder), hooks_of(eager)
    own.inside(TEXT, only_left=True)
    own.feed_forward(TEXT, only_left=True)
    assert (hooks_of(own.encoder), hooks_of(eager)) == before

    def fail(*_, **__):
        raise RuntimeError("no embeddings")

    for model in (own.encoder, eager):
        monkeypatch.setattr(model.embeddings, "forward", fail)
    for run in (own.inside, own.feed_forward):
        with pytest.raises(RuntimeError, match="no embeddings"):
            run(OTHER, only_left=True)
    assert (hooks_of(own.encoder), hooks_of(eager)) == before


def test_passes_that_go_in_between_the_blocks_look_everywhere(own):
    expected, alone = own.feed_forward(TEXT, only_left=True), own.run([OTHER])
    found, done = [], []
    thread = threading.Thread(target=lambda: found.append(own.run([OTHER])))

    def progress(*counts):
        done.append(counts)
        if len(done) == 1:
            thread.start()
            while not own.loaded._turns.are_awaited:  # it has come to the lock
                time.sleep(0.001)

    again = feed_forward.feed_forward(own.loaded, expected.sentence, range(3), progress, only_left=True)
    thread.join(20)
    assert not thread.is_alive()
    np.testing.assert_array_equal(again.activations, expected.activations)
    np.testing.assert_array_equal(found[0].hidden_states, alone.hidden_states)


def test_models_without_blocks_that_can_be_shown(tmp_path):
    static = Backend.load(str(static_models.save_model2vec(tmp_path / "static")), device_name="cpu")
    decoder = Backend.load(str(save_qwen3(tmp_path / "decoder")), device_name="cpu")
    for backend in (static, decoder):
        for run in (backend.inside, backend.feed_forward):
            with pytest.raises(ModelError):
                run("the cat", only_left=True)
