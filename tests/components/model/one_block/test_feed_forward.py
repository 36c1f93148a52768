"""The inner dimensions give what each block adds, for every architecture."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch

from components.errors import InputError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.one_block import feed_forward
from components.model.one_block.feed_forward import size_in_bytes
from components.model.one_block.nearly_closed import closed_share
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.shared_models import shared_backend

TEXT, PAIR = "The cat sat on the bank.", "money in the river"


@pytest.fixture(scope="module", params=tiny.ARCHITECTURES)
def backend(request, tiny_folder):
    return shared_backend(tiny_folder(request.param))


@pytest.mark.parametrize("pair", [None, PAIR])
def test_the_last_dense_layer_makes_of_them_what_is_added(backend, pair):
    record, inside = backend.feed_forward(TEXT, pair), backend.inside(TEXT, pair)
    assert record.sentence == inside.sentence
    for block, modules in enumerate(backend.loaded.modules.blocks):
        dense = modules.feed_forward_dense
        bias = 0 if dense.bias is None else dense.bias.detach().numpy()
        added = record.products(block) @ dense.weight.detach().numpy().T + bias
        np.testing.assert_allclose(added, inside.feed_forward_output[block], atol=2e-5, rtol=1e-5)


def test_gates_are_the_activation_of_one_projection_of_what_the_part_reads(backend):
    record = backend.feed_forward(TEXT)
    assert (record.values is not None) == backend.structure.has_gated_feed_forward
    if record.values is None:
        return
    for block, modules in enumerate(backend.loaded.modules.blocks):
        gate, read = modules.gate, []
        remove = gate.gate.linear.register_forward_pre_hook(lambda _, given, read=read: read.append(given[0])).remove
        with torch.inference_mode():
            backend.encoder(**backend.loaded.tensors(*backend.tokenization.arrays([record.sentence])))
            remove()
            rows = [read[0][0] @ part.weight.T for part in (gate.gate, gate.value)]
            function = (
                torch.nn.functional.gelu if backend.structure.architecture == "modernbert" else torch.nn.functional.silu
            )
            expected = [function(rows[0]), rows[1]]
        for ours, theirs in zip((record.activations, record.values), expected, strict=True):
            np.testing.assert_allclose(ours[block], theirs, atol=1e-5)


def test_the_size_is_known_before(backend):
    record = backend.feed_forward(TEXT)
    assert record.nbytes == size_in_bytes(backend.loaded, len(record.sentence), kept=3)
    passes = backend.forward_passes
    assert backend.feed_forward(TEXT) is record
    assert backend.forward_passes == passes
    assert backend.feed_forward(TEXT, block=2) is record  # a short text: all blocks are kept
    with pytest.raises(ValueError, match="read-only"):
        record.activations.fill(0)


def test_a_record_larger_than_the_store_is_refused(tiny_folder):
    backend = Backend.load(str(tiny_folder("modernbert")), store=TraceStore(1_000), device_name="cpu")
    with pytest.raises(InputError, match="keeps at most"):
        backend.feed_forward(TEXT)
    assert backend.forward_passes == 0


def test_of_a_long_text_one_block_is_kept_and_the_shares_of_all(backend, monkeypatch):
    whole = backend.feed_forward(TEXT)
    np.testing.assert_array_equal(whole.closed_shares, closed_share(whole.activations))
    monkeypatch.setattr(feed_forward, "MOST_BYTES", 0)
    for block in range(3):
        part = backend.feed_forward(TEXT, block=block)
        assert part.kept_blocks == range(block, block + 1)
        assert part.nbytes == size_in_bytes(backend.loaded, len(part.sentence), kept=1)
        assert_close(part.activations_of(block), whole.activations[block])
        assert_close(part.products(block), whole.products(block))
        np.testing.assert_allclose(part.closed_shares, whole.closed_shares, atol=0.04)  # a dimension at the border
        with pytest.raises(ValueError, match="not in range"):
            part.activations_of((block + 1) % 3)


def test_a_feed_forward_part_in_pieces_of_some_tokens_gives_the_same(tiny_folder):
    """chunk_size_feed_forward runs the part for a few tokens at a time."""
    backend = Backend.load(str(tiny_folder("bert")), device_name="cpu")
    whole = backend.feed_forward("the cat sat on the")  # 7 tokens, so that the last piece is as long as the others
    for layer in backend.encoder.encoder.layer:
        layer.chunk_size_feed_forward = 1
    pieces = feed_forward.feed_forward(backend.loaded, whole.sentence, range(3))
    np.testing.assert_allclose(pieces.activations, whole.activations, atol=1e-5)
    np.testing.assert_allclose(pieces.closed_shares, whole.closed_shares, atol=0.04)


def test_short_texts_go_in_between_the_blocks_and_change_nothing(backend):
    whole, thread = backend.feed_forward(TEXT), threading.Thread(target=backend.trace, args=(["the cat waits", PAIR],))
    done = []

    def progress(*counts):
        done.append(counts)
        if len(done) == 1:
            thread.start()
            while not backend.loaded._turns.are_awaited:  # it has come to the lock
                time.sleep(0.001)

    found = feed_forward.feed_forward(backend.loaded, whole.sentence, range(3), progress)
    thread.join(20)
    assert done == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_array_equal(found.activations, whole.activations)
    np.testing.assert_array_equal(found.closed_shares, whole.closed_shares)
    assert not thread.is_alive()


def test_it_stops_between_two_blocks_and_leaves_no_hook(backend):
    def hooks():
        return [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in backend.encoder.modules()]

    sentence, before, stopped = backend.feed_forward(TEXT).sentence, hooks(), []

    def is_stopped():
        stopped.append(True)
        return len(stopped) == 2

    with pytest.raises(Stopped):
        feed_forward.feed_forward(backend.loaded, sentence, range(3), is_stopped=is_stopped)
    assert len(stopped) == 2
    assert hooks() == before
    assert backend.trace([PAIR]).sentences[0].text == PAIR  # the lock is free


def test_a_block_that_is_not_there(backend):
    with pytest.raises(IndexError, match=r"0\.\.2"):
        backend.feed_forward(TEXT, block=3)
