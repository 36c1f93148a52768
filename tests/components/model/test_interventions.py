"""Replaced activations: held by identities and by plain torch, for every architecture."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from components.errors import ModelError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.interventions import patched as patched_module
from components.model.interventions.patched import Replacement
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.hooks import hooks_of
from tests.support.saved_models import save_cross_encoder
from tests.support.shared_models import shared_backend

MODELS = ("embedded", *tiny.ARCHITECTURES)
FIRST, SECOND = "The cat sat on the bank.", "the dog sat in a river!"  # as many tokens, with a tokenizer of words


@pytest.fixture(scope="module", params=MODELS)
def backend(request, embedded, tiny_folder):
    return embedded if request.param == "embedded" else shared_backend(tiny_folder(request.param))


@pytest.fixture(scope="module", params=tiny.DISTINCT)
def distinct(request, tiny_folder):
    """One model of each structure, for what the code does with any patches."""
    return shared_backend(tiny_folder(request.param))


@pytest.fixture(scope="module")
def both(backend):
    return of_one_length(backend)


def of_one_length(backend):
    """Two inputs of one length: where the tokenizer splits into letters, both are cut to the shorter one."""
    sentences = backend.tokenize([FIRST, SECOND])
    length = min(map(len, sentences))
    return backend.tokenize([FIRST, SECOND], max_length=length)


def sites(backend, own, tokens):
    """Replacements of all tokens at every layer and part, and of three heads of each block; of the ends of a large model."""
    facts, everywhere = backend.facts, tuple(range(tokens))
    found = [("layer", layer, None) for layer in range(facts.layers + 1)]
    for block in range(0, facts.layers, max(1, facts.layers // 3)):
        found += [("attention", block, None), ("feed_forward", block, None)]
        found += [("head", block, head) for head in (0, 1, facts.heads - 1)]
    return [Replacement(site, number, everywhere, own.at(site, number, head), head) for site, number, head in found]


def plain_vector(backend, sentence, replacement=None):
    """The mean vector by plain torch: hooks of this test's own, on one sentence alone, that write the values as they are."""
    ids = torch.tensor([[token.id for token in sentence.tokens]])
    blocks, handles = backend.loaded.modules.blocks, []
    if replacement is not None:
        values = torch.tensor(np.array(replacement.values))
        head_dim = values.shape[1]

        def write(tensor):
            changed = tensor.clone()
            for row, position in enumerate(replacement.positions):
                if replacement.head is None:
                    changed[0, position] = values[row]
                else:
                    start = replacement.head * head_dim
                    changed[0, position, start : start + head_dim] = values[row]
            return changed

        path = backend.loaded.modules.blocks_path
        modules = {
            "head": [block.attention_dense for block in blocks],
            "attention": [block.attention_dense for block in blocks],
            "feed_forward": [block.feed_forward_dense for block in blocks],
            # What goes into a block; the last layer goes into none, and is replaced below.
            "layer": list(backend.encoder.get_submodule(path)),
        }[replacement.site]
        calls = itertools.count()  # blocks may share their modules: the call of the block's own number is meant

        def before(module, inputs):
            return (write(inputs[0]), *inputs[1:]) if next(calls) == replacement.number else None

        def after(module, inputs, output):
            return write(output) if next(calls) == replacement.number else None

        for module in dict.fromkeys(modules):
            if replacement.site in {"head", "layer"}:
                handles.append(module.register_forward_pre_hook(before))
            else:
                handles.append(module.register_forward_hook(after))
    try:
        with torch.inference_mode():
            states = backend.encoder(input_ids=ids).last_hidden_state
            if replacement is not None and (replacement.site, replacement.number) == ("layer", backend.facts.layers):
                states = write(states)
            return states[0].mean(0).numpy()
    finally:
        for handle in handles:
            handle.remove()


def test_recorded_activations_are_those_of_the_traces_and_of_inside(backend, both):
    for sentence in both:
        own = backend.activations(sentence)
        record = backend.inside(sentence.text, max_length=len(sentence))
        for ours, theirs in (
            (own.layers, record.hidden_states),
            (own.attention, record.attention_output),
            (own.feed_forward, record.feed_forward_output),
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-5 * max(1, np.abs(theirs).max() / 4))
        mixed = np.einsum("bhqk,bhkd->bqhd", record.attentions, record.values)  # before the output projection
        np.testing.assert_allclose(own.heads, mixed, atol=1e-5)
        assert not any(array.flags.writeable for array in (own.layers, own.heads, own.attention, own.feed_forward))


def test_nothing_replaced_gives_the_sentences_own_vector(backend, both):
    for sentence in both:
        np.testing.assert_allclose(
            backend.patched_vectors(sentence, [[]], "mean")[0], plain_vector(backend, sentence), atol=1e-5
        )


def test_all_tokens_of_any_one_layer_give_the_other_sentence(backend, both):
    a, b = both
    own = backend.activations(a)
    rows = [[item] for item in sites(backend, own, len(b)) if item.site == "layer"]
    for pooling in ("mean", "cls", "max") if backend.structure.architecture == "bert" else ("mean",):
        expected = backend.patched_vectors(a, [[]], pooling)[0]
        for vector in backend.patched_vectors(b, rows, pooling):
            np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_all_sites_of_a_block_and_everything_at_once_give_the_other_sentence(distinct):
    """What follows from layer 0 alone is written once more."""
    a, b = of_one_length(distinct)
    everything = sites(distinct, distinct.activations(a), len(b))
    expected = distinct.patched_vectors(a, [[]], "mean")[0]
    np.testing.assert_allclose(distinct.patched_vectors(b, [everything], "mean")[0], expected, atol=1e-5)


def test_each_experiment_of_a_batch_is_the_same_by_plain_torch(backend, both, embedded):
    a, b = both
    everywhere = sites(backend, backend.activations(a), len(b))
    some = (1, len(b) - 2)
    replacements = [
        Replacement(item.site, item.number, some, item.values[list(some)], item.head) for item in everywhere
    ]
    if backend.structure.architecture in tiny.DISTINCT and backend is not embedded:
        replacements += everywhere
    vectors = backend.patched_vectors(b, [[item] for item in replacements], "mean")
    own = plain_vector(backend, b)
    for item, vector in zip(replacements, vectors, strict=True):
        expected = plain_vector(backend, b, item)
        np.testing.assert_allclose(vector, expected, atol=2e-5)
        assert np.abs(expected - own).max() > 1e-4  # else a patch that does nothing would pass


def test_a_batch_is_its_experiments_one_by_one(distinct, monkeypatch):
    a, b = of_one_length(distinct)
    rows = [[item] for item in sites(distinct, distinct.activations(a), len(b))]
    rows.append([rows[1][0], rows[-1][0], rows[4][0]])
    together = distinct.patched_vectors(b, rows, "mean")
    monkeypatch.setattr(patched_module, "CHUNK_TOKENS", 1)
    np.testing.assert_allclose(distinct.patched_vectors(b, rows, "mean"), together, atol=1e-5)


def test_feed_forward_parts_that_run_in_pieces_are_patched_at_the_right_tokens(tiny_folder):
    whole = Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu")
    pieces = Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu")
    a, b = whole.tokenize(["the cat sat on hat", "the dog ran by bank"])  # 7 tokens
    for layer in pieces.encoder.encoder.layer:
        layer.chunk_size_feed_forward = 1
    own = whole.activations(a)
    np.testing.assert_allclose(pieces.activations(a).feed_forward, own.feed_forward, atol=1e-5)
    rows = [[Replacement(site, 1, (2, 5), own.at(site, 1)[[2, 5]])] for site in ("feed_forward", "layer", "attention")]
    np.testing.assert_allclose(
        pieces.patched_vectors(b, rows, "mean"), whole.patched_vectors(b, rows, "mean"), atol=1e-5
    )


def test_the_last_of_two_values_for_one_place_counts(embedded):
    (sentence,) = embedded.tokenize(["The cat sat."])
    zeros, ones = (np.full((1, 384), value, np.float32) for value in (0, 1))
    first, last = (Replacement("layer", 6, (2,), values) for values in (zeros, ones))
    both, alone = embedded.patched_vectors(sentence, [[first, last], [last]], "mean")
    np.testing.assert_array_equal(both, alone)


def test_no_hook_stays_also_after_a_failure(embedded, monkeypatch):
    (sentence,) = embedded.tokenize(["The cat sat."])
    before = hooks_of(embedded.encoder)
    zeros = np.zeros((1, 384), np.float32)
    embedded.activations(sentence)
    embedded.patched_vectors(sentence, [[Replacement("layer", 2, (1,), zeros)]], "mean")
    assert hooks_of(embedded.encoder) == before
    with pytest.raises(RuntimeError):  # of another size: the hook itself fails
        embedded.patched_vectors(sentence, [[Replacement("layer", 2, (1,), zeros[:, :7])]], "mean")
    assert hooks_of(embedded.encoder) == before
    with pytest.raises(ModelError):
        embedded.patched_vectors(sentence, [[Replacement("layer", 6, (1,), zeros + np.inf)]], "mean")
    assert hooks_of(embedded.encoder) == before


def test_other_sessions_passes_never_see_an_intervention(embedded):
    """Eight threads at once: four replace activations, four read plain states and vectors."""
    a, b = embedded.tokenize(["The cat sat on the bank.", "The dog sat on the sofa."])
    own = embedded.activations(a)
    rows = [[Replacement("head", block, (2, 5), own.at("head", block, head)[[2, 5]], head)]
            for block in range(6) for head in (0, 11)]  # fmt: skip
    expected = embedded.patched_vectors(b, rows, "mean")
    states = embedded.run([b.text]).hidden_states
    vectors = embedded.embed([b.text], options=embedded.embed_options(precision="float32"))
    start = threading.Barrier(8)

    def intervene():
        start.wait()
        return [embedded.patched_vectors(b, rows, "mean") for _ in range(2)]

    def read():
        start.wait()
        return [
            (
                embedded.run([b.text]).hidden_states,
                embedded.embed([b.text], options=embedded.embed_options(precision="float32")),
            )
            for _ in range(3)
        ]

    with ThreadPoolExecutor(8) as threads:
        interventions, plain = ([threads.submit(work) for _ in range(4)] for work in (intervene, read))
        for future in interventions:
            for found in future.result():
                assert_close(found, expected)
        for future in plain:
            for found_states, found_vectors in future.result():
                np.testing.assert_array_equal(found_states, states)
                np.testing.assert_array_equal(found_vectors, vectors)


def test_all_heads_of_the_embedded_model_are_one_pass(embedded):
    (sentence,) = embedded.tokenize(["The tower is in Rome."])
    positions = tuple(range(len(sentence)))
    zeros = np.zeros((len(sentence), 32), np.float32)
    rows = [[Replacement("head", block, positions, zeros, head)] for block in range(6) for head in range(12)]
    before = embedded.forward_passes
    assert embedded.patched_vectors(sentence, rows, "mean").shape == (72, 384)
    assert embedded.forward_passes == before + 1


def test_progress_and_stopping(embedded, monkeypatch):
    (sentence,) = embedded.tokenize(["The cat sat."])
    monkeypatch.setattr(patched_module, "CHUNK_TOKENS", 2 * len(sentence))
    steps = []
    embedded.patched_vectors(sentence, [[]] * 5, "mean", lambda done, total: steps.append((done, total)))
    assert steps == [(2, 5), (4, 5), (5, 5)]
    with pytest.raises(Stopped):
        embedded.patched_vectors(sentence, [[]] * 5, "mean", is_stopped=lambda: True)
    assert embedded.patched_vectors(sentence, [], "mean").shape == (0, 0)


@pytest.mark.parametrize(
    ("replacement", "error"),
    [
        (("layer", 7, (1,), None), IndexError),
        (("attention", 6, (1,), None), IndexError),
        (("layer", 1, (6,), None), IndexError),
        (("head", 0, (1,), 12), IndexError),
        (("head", 0, (1,), None), ValueError),
        (("layer", 0, (1,), 2), ValueError),
    ],
)
def test_what_does_not_exist_is_refused_before_any_pass(embedded, replacement, error):
    (sentence,) = embedded.tokenize(["The cat sat."])
    assert len(sentence) == 6
    site, number, positions, head = replacement
    before = embedded.forward_passes
    values = np.zeros((1, 384), np.float32)
    with pytest.raises(error):
        embedded.patched_vectors(sentence, [[Replacement(site, number, positions, values, head)]], "mean")
    assert embedded.forward_passes == before


@pytest.mark.parametrize(
    "architecture", ["bert", "distilbert", "roberta"]
)  # ELECTRA's head and MPNet's read what RoBERTa's reads
def test_a_cross_encoders_scores_are_patched_too(tmp_path, architecture):
    folder = save_cross_encoder(tmp_path, architecture)
    scorer = Backend.load(str(folder), store=TraceStore(1 << 20), device_name="cpu")
    a, b = scorer.tokenize(["the cat sat", "the dog sat"], ["on the bank"] * 2)
    assert len(a) == len(b)
    own = scorer.activations(a)
    plain = scorer.pair_logits([a.text, b.text], [a.pair, b.pair], max_length=len(a))
    np.testing.assert_allclose(scorer.patched_logits(b, [[]])[0], plain[1], atol=1e-5)
    rows = [[Replacement("layer", layer, tuple(range(len(b))), own.layers[layer])] for layer in range(4)]
    for logits in scorer.patched_logits(b, rows):
        np.testing.assert_allclose(logits, plain[0], atol=1e-5)
