"""Every step of a block from the one before it, in float64, for every architecture, with both masks; and as plain transformers.

What a step is compared with: its recomputation here from the step before it, and what a hook of this folder read in a pass of
the library alone (plain_blocks.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from components.analysis.path.block_steps import block_steps
from components.model.one_block import feed_forward
from tests.components.analysis.path.plain_blocks import plain_pass
from tests.support import tiny
from tests.support.shared_models import shared_backend

TEXT, PAIR = "The cat sat on the bank, we put money in.", "a river"
CLOSE = 1e-5  # of the length of each vector
TERMS = {"deberta-v2": ["content to position", "position to content"], "mpnet": ["distance"]}


@pytest.fixture(scope="module", params=("embedded", *tiny.ARCHITECTURES))
def model(request, embedded, embedded_folder, tiny_folder):
    """A backend and the folder of its files."""
    if request.param == "embedded":
        return embedded, embedded_folder
    folder = tiny_folder(request.param)
    return shared_backend(folder), folder


@pytest.fixture(scope="module", params=[False, True], ids=["all", "left"])
def opened(request, model):
    """The backend, its record, the steps of all blocks, and the same pass by plain transformers."""
    (backend, folder), only_left = model, request.param
    record = backend.inside(TEXT, PAIR, score_terms=True, only_left=only_left)
    neurons = backend.feed_forward(TEXT, PAIR, only_left=only_left)
    steps = [
        block_steps(record, neurons, backend.structure, backend.applied_norms(block), block)
        for block in range(record.n_blocks)
    ]
    tokens = record.sentence.tokens
    ids, segments = [token.id for token in tokens], [token.segment for token in tokens]
    return backend, record, steps, plain_pass(folder, ids, segments, only_left)


def far(actual, expected):
    """The largest distance of two arrays of vectors [.., size], each as a share of the expected vector's length."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape
    return float((np.linalg.norm(actual - expected, axis=-1) / np.linalg.norm(expected, axis=-1)).max())


def by_head(flat, size):
    """[token, heads * size] as [head, token, size]."""
    return flat.reshape(len(flat), -1, size).swapaxes(0, 1)


def turned(vectors, speeds):
    """Vectors [head, token, size] as points of the complex plane, turned by their positions."""
    half = len(speeds)
    points = vectors[..., :half] + 1j * vectors[..., half:]
    points = points * np.exp(1j * np.arange(vectors.shape[1])[:, None] * speeds)
    return np.concatenate([points.real, points.imag], axis=-1)


def softmax(scores):
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def weights_of(step):
    """The attention that the scores of a step give, [head, query, key]."""
    queries, keys = (part.astype(np.float64) for part in (step.queries, step.keys))
    scores = queries @ keys.swapaxes(1, 2) * step.score_scale + sum(step.terms.values(), np.float64(0))
    positions = np.arange(scores.shape[-1])
    distances = positions[:, None] - positions
    allowed = np.ones_like(distances, bool) if step.window is None else abs(distances) <= step.window
    if step.only_left:
        allowed &= distances >= 0
    return softmax(np.where(allowed, scores, -np.inf))


def test_queries_keys_and_values_come_from_what_attention_reads(opened):
    _, record, steps, plain = opened
    for step, block in zip(steps, plain.blocks, strict=True):
        reads = record.hidden_states[step.block] if step.attention_reads is None else step.attention_reads
        assert far(reads, block.reads) <= CLOSE
        for vectors, (weight, bias), is_turned in (
            (step.queries, block.query, True),
            (step.keys, block.key, True),
            (step.values, block.value, False),
        ):
            expected = by_head(reads.astype(np.float64) @ weight.T + bias, vectors.shape[-1])
            expected = np.repeat(expected, len(vectors) // len(expected), axis=0)  # heads may share keys and values
            if is_turned and block.speeds is not None:
                expected = turned(expected, block.speeds)
            assert far(vectors, expected) <= CLOSE


def test_scores_windows_and_masks_give_the_attention(opened):
    backend, record, steps, plain = opened
    for step, block in zip(steps, plain.blocks, strict=True):
        assert sorted(step.terms) == TERMS.get(backend.structure.architecture, [])
        assert far(weights_of(step), block.attention) <= CLOSE
        assert far(record.attentions[step.block], block.attention) <= CLOSE


def test_weighted_values_through_the_output_projection_are_what_attention_adds(opened):
    _, _, steps, plain = opened
    for step, block in zip(steps, plain.blocks, strict=True):
        heads = weights_of(step) @ step.values.astype(np.float64)  # [head, token, head_dim]
        joined = heads.swapaxes(0, 1).reshape(len(block.joined), -1)
        assert far(joined, block.joined) <= CLOSE
        weight, bias = block.output
        assert far(step.attention_output, joined @ weight.T + bias) <= CLOSE
        assert far(step.attention_output, block.attention_output) <= CLOSE


def test_sums_and_norms_in_the_order_of_the_family(opened):
    backend, record, steps, plain = opened
    first = backend.structure.normalises_first
    for step, block in zip(steps, plain.blocks, strict=True):
        layer = record.hidden_states[step.block].astype(np.float64)
        after = layer + step.attention_output
        if first:
            assert (step.attention_reads is None) == (block.first_norm is None)
            if block.first_norm is not None:
                assert far(step.attention_reads, block.first_norm) <= CLOSE
            assert far(step.feed_forward_reads, block.second_norm) <= CLOSE
            assert far(step.feed_forward_reads, step.norm("before feed-forward")(after)) <= CLOSE
        else:
            assert step.attention_reads is step.feed_forward_reads is None
            after = step.norm("after attention")(after)
            assert far(step.after_attention, block.first_norm) <= CLOSE
        assert far(step.after_attention, after) <= CLOSE


def test_neurons_through_the_last_dense_layer_are_what_the_part_adds(opened):
    _, _, steps, plain = opened
    for step, block in zip(steps, plain.blocks, strict=True):
        assert far(step.neurons, block.neurons) <= CLOSE
        weight, bias = block.last_dense
        assert far(step.feed_forward_output, step.neurons.astype(np.float64) @ weight.T + bias) <= CLOSE
        assert far(step.feed_forward_output, block.feed_forward_output) <= CLOSE


def test_the_last_step_is_the_next_layer(opened):
    backend, _, steps, plain = opened
    trace = backend.trace([TEXT], [PAIR])
    structure = backend.structure
    for step in steps:
        is_last = step.block == len(steps) - 1
        total = step.after_attention.astype(np.float64) + step.feed_forward_output
        assert (step.before_final_norm is None) == (not (is_last and structure.has_final_norm))
        if step.before_final_norm is not None:
            assert far(step.before_final_norm, total) <= CLOSE
            total = step.norm("final")(total)
        elif not structure.normalises_first:
            total = step.norm("after feed-forward")(total)
        assert far(step.output, total) <= CLOSE
        assert far(step.output, plain.layers[step.block + 1]) <= CLOSE
        if not step.only_left:
            assert far(step.output, trace.hidden_states[step.block + 1, 0]) <= CLOSE


def test_norms_stand_in_their_order(opened):
    backend, _, steps, _ = opened
    structure = backend.structure
    places = ["before attention", "before feed-forward"]
    places = places if structure.normalises_first else ["after attention", "after feed-forward"]
    for step in steps:
        expected = places + ["final"] * (structure.has_final_norm and step is steps[-1])
        if structure.architecture == "modernbert" and step.block == 0:
            expected = expected[1:]  # layer 0 is normalised already
        assert [norm.place for norm in step.norms] == expected


def test_all_of_it_is_read_only(opened):
    _, _, steps, _ = opened
    for step in steps:
        for array in (*vars(step).values(), *step.terms.values()):
            if isinstance(array, np.ndarray):
                assert array.dtype == np.float32
                assert not array.flags.writeable


def test_records_that_do_not_belong_together_are_refused(tiny_folder, monkeypatch):
    backend = shared_backend(tiny_folder("deberta-v2"))
    norms, structure = backend.applied_norms(1), backend.structure
    record, neurons = backend.inside(TEXT, score_terms=True), backend.feed_forward(TEXT)
    with pytest.raises(ValueError, match="different masks"):
        block_steps(record, backend.feed_forward(TEXT, only_left=True), structure, norms, 1)
    with pytest.raises(ValueError, match="different inputs"):
        block_steps(record, backend.feed_forward(PAIR), structure, norms, 1)
    with pytest.raises(ValueError, match="no terms"):
        block_steps(backend.inside(TEXT), neurons, structure, norms, 1)
    with pytest.raises(IndexError, match=r"0\.\.2"):
        block_steps(record, neurons, structure, norms, 3)
    with pytest.raises(IndexError, match=r"0\.\.2"):
        backend.applied_norms(3)
    monkeypatch.setattr(feed_forward, "MOST_BYTES", 0)
    one = feed_forward.feed_forward(backend.loaded, record.sentence, range(2, 3))
    assert far(block_steps(record, one, structure, norms, 2).neurons, neurons.products(2)) <= CLOSE
    with pytest.raises(ValueError, match="not in range"):
        block_steps(record, one, structure, norms, 1)
    with pytest.raises(ValueError, match="different inputs"):
        block_steps(replace(record, sentence=replace(record.sentence, text="x")), neurons, structure, norms, 1)
