"""Inside the blocks: every array is held by an identity of the architecture, for every architecture."""

from __future__ import annotations

import dataclasses
import random
import threading

import numpy as np
import pytest
import torch
from transformers import EuroBertConfig, EuroBertModel

from components.errors import InputError
from components.model import inside as inside_module
from components.model.architecture.record import modules_of
from components.model.backend import Backend
from components.model.catalog import ModelSpec
from components.model.inside import InsideBlocks, size_in_bytes
from components.model.store import TraceStore
from components.model.trace import TraceOptions
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.hooks import hooks_of
from tests.support.shared_models import shared_backend

MODELS = ("embedded", *tiny.ARCHITECTURES)
NAMES = ("one", "shortest", "pair", "cut", "cut pair")
CASES = [
    ("The cat sat on the bank.", None, None),
    ("a", None, None),
    ("The river is red? é 你 🏦", "money in the bank of the river", None),
    ("Walking, we will put money on the bank!", None, 7),
    ("Walking, we will put money on the bank!", "the cat sat on the red hat", 12),
]
# All cases where tokens see others by a rule of their own (distances, windows), and in one model without such a rule.
ALL_CASES = ("bert", "mpnet", "modernbert", "deberta-v2")
CASES_OF_MODELS = [(name, case) for name in MODELS for case in (CASES if name in ALL_CASES else CASES[2::2])]


def loaded(name, embedded, tiny_folder):
    return embedded if name == "embedded" else shared_backend(tiny_folder(name))


@pytest.fixture(scope="module", params=MODELS)
def backend(request, embedded, tiny_folder):
    return loaded(request.param, embedded, tiny_folder)


@pytest.fixture(scope="module", params=CASES_OF_MODELS, ids=lambda item: f"{item[0]}-{NAMES[CASES.index(item[1])]}")
def recorded(request, embedded, tiny_folder):
    """A model, one of the cases, and the record of it."""
    name, case = request.param
    model = loaded(name, embedded, tiny_folder)
    return model, case, model.inside(*case, score_terms=True)


@pytest.fixture(scope="module")
def unused(tiny_folder):
    """A tiny BERT that never makes a pass."""
    return Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu")


@pytest.fixture
def tiny_bert(tiny_folder):
    """With a store and a count of its own."""
    return Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu")


# The fields of the record with what is added to the products of queries and keys, by the last way in which positions enter.
TERMS = {
    "absolute": (),
    "rotary": (),
    "relative": ("distance",),
    "disentangled": ("content_to_position", "position_to_content"),
}


SEVERAL_STEPS = 1e-5  # each rounds what the one before it has rounded


def normed(module, array):
    """A norm of the model on a float32 array [token, dim], worked out in float64."""
    wide = array.astype(np.float64)
    scale = module.weight.detach().numpy()
    if not isinstance(module, torch.nn.LayerNorm):  # RMSNorm
        return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + module.variance_epsilon) * scale
    centred = wide - wide.mean(-1, keepdims=True)
    shift = 0 if module.bias is None else module.bias.detach().numpy()
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + module.eps) * scale + shift


def rotated(backend, block, vectors):
    """Vectors [token, head_dim] as points of the complex plane, turned by angles from the configuration."""
    config, half = backend.encoder.config, vectors.shape[1] // 2
    settings = config.rope_parameters
    settings = settings[config.layer_types[block]] if hasattr(config, "layer_types") else settings
    speeds = settings["rope_theta"] ** (-np.arange(half) / half)
    turned = (vectors[:, :half] + 1j * vectors[:, half:]) * np.exp(1j * np.arange(len(vectors))[:, None] * speeds)
    return np.concatenate([turned.real, turned.imag], axis=1)


def read_by_attention(backend, record, block):
    """What a block's attention reads [token, dim]: its input, or a normalised copy."""
    norm = backend.loaded.modules.blocks[block].attention_norm
    states = record.hidden_states[block]
    return normed(norm, states) if backend.structure.normalises_first and norm is not None else states


def arrays_of(record):
    """Every array of a record and of the projection it shares, by name."""
    found = {}
    for part in (record, record.projection):
        values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
        found |= {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return found


def test_shapes(recorded):
    backend, _, record = recorded
    facts, tokens = backend.facts, len(record.sentence)
    vectors = (facts.layers, tokens, facts.hidden_size)
    by_head = (facts.layers, facts.heads, tokens, facts.hidden_size // facts.heads)
    terms = TERMS[backend.structure.positions[-1]]
    assert {name: array.shape for name, array in arrays_of(record).items()} == {
        "hidden_states": (facts.layers + 1, tokens, facts.hidden_size),
        **dict.fromkeys(("attention_output", "after_attention", "feed_forward_output"), vectors),
        **dict.fromkeys(("queries", "keys", "values"), by_head),
        **dict.fromkeys(("attentions", *terms), (facts.layers, facts.heads, tokens, tokens)),
        "value_norms": by_head[:3],
        "weights": (facts.layers, facts.heads, by_head[3], facts.hidden_size),
        "bias": (facts.layers, facts.hidden_size),
    }
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for array in arrays_of(record).values())
    assert record.n_blocks == facts.layers
    assert record.nbytes == size_in_bytes(facts, tokens, score_terms=len(terms))


def test_attention_is_added_to_the_blocks_input_and_normed(recorded):
    backend, _, record = recorded
    for block, modules in enumerate(backend.loaded.modules.blocks):
        total = record.hidden_states[block] + record.attention_output[block]
        expected = total if backend.structure.normalises_first else normed(modules.attention_norm, total)
        assert_close(record.after_attention[block], expected, SEVERAL_STEPS)


def test_the_feed_forward_part_is_added_to_that_and_gives_the_next_layer(recorded):
    backend, _, record = recorded
    final = backend.loaded.modules.final_norm
    for block, modules in enumerate(backend.loaded.modules.blocks):
        total = record.after_attention[block] + record.feed_forward_output[block]
        if not backend.structure.normalises_first:
            total = normed(modules.feed_forward_norm, total)
        if final is not None and block == record.n_blocks - 1:
            total = normed(final, total)
        assert_close(record.hidden_states[block + 1], total, SEVERAL_STEPS)


def test_queries_and_keys_give_the_attentions(recorded):
    backend, _, record = recorded
    assert_attentions(backend, record)


def assert_attentions(backend, record):
    """The attentions of a record are the softmax of its scores, within the windows of its blocks."""
    tokens = record.queries.shape[2]
    distances = np.abs(np.subtract.outer(np.arange(tokens), np.arange(tokens)))
    for block, window in enumerate(backend.structure.windows):
        parts = record.score_parts(block)
        assert len(parts) == 1 + len(TERMS[backend.structure.positions[-1]])
        scores = sum(part.astype(np.float64) for part in parts.values())
        if window is not None:
            scores = np.where(distances <= window, scores, -np.inf)
        exponentials = np.exp(scores - scores.max(-1, keepdims=True))
        assert_close(record.attentions[block], exponentials / exponentials.sum(-1, keepdims=True), SEVERAL_STEPS)


def test_the_heads_are_the_projections_of_what_attention_reads(recorded):
    """With the weights cut up by head here once more, by hand."""
    backend, _, record = recorded
    heads, head_dim = record.values.shape[1], record.values.shape[3]
    for block, modules in enumerate(backend.loaded.modules.blocks):
        states = read_by_attention(backend, record, block)
        for array, part in (
            (record.queries, modules.query),
            (record.keys, modules.key),
            (record.values, modules.value),
        ):
            weight = part.linear.weight.detach().numpy()[part.first : part.first + part.size]
            bias = 0 if part.linear.bias is None else part.linear.bias.detach().numpy()[part.first :]
            for head in range(heads):
                start = head // (heads * head_dim // part.size) * head_dim  # heads may share their keys
                rows = slice(start, start + head_dim)
                expected = states @ weight[rows].T + (bias if isinstance(bias, int) else bias[rows])
                if backend.structure.rotates and array is not record.values:
                    expected = rotated(backend, block, expected)
                assert_close(array[block, head], expected, SEVERAL_STEPS)


def test_attention_weights_times_transformed_values_is_the_attention_output(recorded):
    """Kobayashi et al. 2020: summed over heads and keys, plus the bias that belongs to no token."""
    _, _, record = recorded
    for block in range(record.n_blocks):
        transformed = record.value_contributions(block)  # [head, token, dim]
        together = np.einsum("hqk,hkd->qd", record.attentions[block], transformed, dtype=np.float64)
        assert_close(together + record.projection.bias[block], record.attention_output[block], SEVERAL_STEPS)


def test_norms_are_those_of_the_transformed_values(recorded):
    _, _, record = recorded
    for block in range(record.n_blocks):
        norms = np.sqrt((record.value_contributions(block).astype(np.float64) ** 2).sum(-1))
        assert_close(record.value_norms[block], norms, SEVERAL_STEPS)


@pytest.mark.parametrize("block", [-1, 3])
def test_a_block_that_is_not_there(tiny_folder, block):
    record = shared_backend(tiny_folder("bert")).inside("the cat")
    with pytest.raises(IndexError, match=r"0\.\.2"):
        record.value_contributions(block)


def test_it_is_the_pass_that_a_trace_shows(recorded):
    backend, (text, pair, max_length), record = recorded
    trace = backend.trace([text], [pair], True, max_length)
    assert_close(record.hidden_states, trace.hidden_states[:, 0])
    assert_close(record.attentions, trace.attentions[:, 0])
    assert record.sentence == trace.sentences[0]
    assert bool(record.sentence.dropped) == (max_length is not None)
    assert (record.sentence.pair is not None) == (pair is not None)


def test_no_array_can_be_written(recorded):
    _, _, record = recorded
    arrays = [*arrays_of(record).values(), record.value_contributions(0)]
    assert len(arrays) >= 12
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array.fill(0)
        assert array.base is None or not array.base.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.keys = record.queries


def test_a_repeated_question_costs_no_pass(tiny_bert):
    first = tiny_bert.inside("the cat", "a dog")
    assert tiny_bert.forward_passes == 1
    assert tiny_bert.inside("the cat", "a dog") is first
    assert tiny_bert.inside("the cat", pair="a dog", max_length=None) is first
    assert tiny_bert.forward_passes == 1
    others = [tiny_bert.inside("the cat"), tiny_bert.inside("a dog"), tiny_bert.inside("the cat", "a dog", 5)]
    assert tiny_bert.forward_passes == 4
    assert len({id(record) for record in (first, *others)}) == 4


def test_it_does_not_take_a_trace_for_its_own(tiny_bert):
    """Both lie in one store, under keys of their own, and share its budget."""
    trace = tiny_bert.trace(["the cat"], attentions=True)
    record = tiny_bert.inside("the cat")
    assert isinstance(record, InsideBlocks)
    assert tiny_bert.trace(["the cat"], attentions=True) is trace
    assert (len(tiny_bert.store), tiny_bert.store.used) == (2, trace.nbytes + record.nbytes)


def test_models_share_a_store_without_mixing_up(tiny_folder, tmp_path):
    store = TraceStore(1 << 20)
    places = (tiny_folder("bert"), tiny.save_tiny(tmp_path, "bert", seed=1))
    first, second = (
        Backend.load(str(place), store=store, device_name="cpu").inside("the cat").values for place in places
    )
    assert len(store) == 2
    assert np.abs(first - second).max() > 0.1


def test_the_projection_is_copied_once_for_all_records(tiny_bert):
    first, second = tiny_bert.inside("the cat"), tiny_bert.inside("a dog")
    assert first.projection is second.projection
    weight = modules_of(tiny_bert.encoder).blocks[0].attention_dense.weight
    assert not np.shares_memory(first.projection.weights, weight.detach().numpy())


def test_thirty_threads_asking_for_the_same_cost_one_pass(tiny_bert):
    results = [None] * 30
    start = threading.Barrier(30)

    def work(number):
        start.wait()
        results[number] = tiny_bert.inside("the cat sat on the bank")

    in_threads(30, work)
    assert tiny_bert.forward_passes == 1
    assert {id(result) for result in results} == {id(results[0])}


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("name", ["bert", "distilbert", "mpnet"])
def test_passes_side_by_side_do_not_write_into_each_other(name, tiny_folder):
    """Sentences of one length, so that what strays from another's pass would fit; a store too small to keep any."""
    backend = Backend.load(str(tiny_folder(name)), store=TraceStore(80_000), device_name="cpu")
    words = random.Random(0).sample(["cat", "dog", "bank", "river", "money", "red", "hat", "sat"], 8)
    texts = [f"the {word} sat on a {word} by the {other}" for word, other in zip(words, words[::-1], strict=True)]
    inside = [arrays_of(backend.inside(text)) for text in texts]
    traces = [backend.run([text], None, TraceOptions(attentions=True)) for text in texts]
    assert len(backend.store) < len(texts)  # some had to go
    wrong, done = [], []
    start = threading.Barrier(12)

    def work(number):
        order = random.Random(number).choices(range(len(texts)), k=10)
        start.wait()
        for row in order:
            if number % 3 == 2:
                trace = backend.run([texts[row]], None, TraceOptions(attentions=number % 2 == 0))
                same = np.allclose(trace.hidden_states, traces[row].hidden_states, atol=1e-5, rtol=0)
            else:
                arrays = arrays_of(backend.inside(texts[row]))
                same = all(np.allclose(arrays[key], inside[row][key], atol=1e-5, rtol=0) for key in arrays)
            done.append(row)
            if not same:
                wrong.append((number, row))

    in_threads(12, work)
    assert wrong == []
    assert len(done) == 120


def test_no_hook_stays(backend):
    backend.trace(["the cat"], attentions=True)  # transformers places its own at its first pass, for good
    before = [hooks_of(tree) for tree in (backend.encoder, backend.loaded.eager())]
    backend.inside("the cat sat on a hat that was red and on a dog")
    assert [hooks_of(tree) for tree in (backend.encoder, backend.loaded.eager())] == before
    assert not any(hook.__module__.startswith("components") for hooks in before for hook in hooks.values())


def module_of(block, part):
    found = getattr(block, part)
    return found if isinstance(found, torch.nn.Module) else found.linear


@pytest.mark.parametrize("part", ["query", "feed_forward_dense"])
@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt])
def test_no_hook_stays_after_a_pass_that_failed(tiny_bert, monkeypatch, part, problem):
    expected = tiny_bert.inside("the cat")
    before = hooks_of(tiny_bert.loaded.eager())
    kept = len(tiny_bert.store)

    def fail(*_):
        raise problem("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(module_of(modules_of(tiny_bert.loaded.eager()).blocks[-1], part), "forward", fail)
        with pytest.raises(problem, match="no memory"):
            tiny_bert.inside("a dog")
    assert hooks_of(tiny_bert.loaded.eager()) == before
    assert len(tiny_bert.store) == kept
    tiny_bert.inside("a dog")
    tiny_bert.store.clear()
    assert_close(tiny_bert.inside("the cat").queries, expected.queries, SEVERAL_STEPS)


def test_no_hook_stays_when_one_cannot_be_placed_or_fails(tiny_bert, monkeypatch):
    tiny_bert.inside("the cat")
    before = hooks_of(tiny_bert.loaded.eager())
    last = modules_of(tiny_bert.loaded.eager()).blocks[-1].value.linear

    def fail(*_):
        raise RuntimeError("no hook")

    with monkeypatch.context() as patch:
        patch.setattr(last, "register_forward_hook", fail)
        with pytest.raises(RuntimeError, match="no hook"):
            tiny_bert.inside("a dog")
    assert hooks_of(tiny_bert.loaded.eager()) == before
    with monkeypatch.context() as patch:
        patch.setattr(inside_module, "_writer", lambda *_: fail)
        with pytest.raises(RuntimeError, match="no hook"):
            tiny_bert.inside("a dog")
    assert hooks_of(tiny_bert.loaded.eager()) == before


@pytest.mark.parametrize("name", ["bert", "distilbert", "electra"])
def test_a_model_that_takes_the_feed_forward_part_in_pieces(name):
    """chunk_size_feed_forward runs it for a few tokens at a time; the result is the same."""
    whole = Backend(ModelSpec(name, "folder", name), "0", *tiny.tiny_model(name)).inside("the cat sat on a hat")
    model, tokenizer = tiny.tiny_model(name)
    pieces = [module for module in model.modules() if hasattr(module, "chunk_size_feed_forward")]
    assert len(pieces) == 3
    for module in pieces:
        module.chunk_size_feed_forward = 2
    chunked = Backend(ModelSpec(name, "folder", name), "0", model, tokenizer).inside("the cat sat on a hat")
    assert len(chunked.sentence) == 8
    for name, array in arrays_of(whole).items():
        assert_close(arrays_of(chunked)[name], array, SEVERAL_STEPS)


def test_a_place_no_hook_wrote_to_is_not_a_number(tiny_bert, monkeypatch):
    """So that a module another version of transformers goes around could never show as a result."""
    monkeypatch.setattr(inside_module, "_writer", lambda *_: lambda *_: None)
    assert np.isnan(tiny_bert.inside("the cat").queries).all()


def test_a_text_beyond_the_models_maximum_is_cut_there(backend):
    text = " ".join(["the cat sat on a bank"] * 12)
    record = backend.inside(text, max_length=min(64, backend.facts.max_positions), score_terms=True)
    assert_attentions(backend, record)  # at all distances
    assert len(record.sentence) == 64
    (cut,) = record.sentence.dropped
    assert text[: cut.start] + cut.text == text
    np.testing.assert_allclose(record.attentions.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("",), "empty"),
        (("fine", "  \t "), "empty"),
        (("a" * 20_001,), "20,001 characters"),
        (("half \ud83d",), "U+D83D"),
        (("a", None, 2), "length of 2"),
        (("a", None, 65), "length of 65"),
        (("a", "b", 3), "length of 3"),
    ],
)
def test_input_that_cannot_be_shown_says_why_and_costs_nothing(unused, arguments, given):
    with pytest.raises(InputError) as caught:
        unused.inside(*arguments)
    assert given in caught.value.problem
    assert unused.forward_passes == 0
    assert len(unused.store) == 0


def test_heads_that_together_are_longer_than_a_hidden_state(tmp_path):
    ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "mask_token_id": 4}
    model = EuroBertModel(
        EuroBertConfig(
            vocab_size=40,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            intermediate_size=64,
            **ids,
        )
    )
    model.save_pretrained(tmp_path)
    tiny.wordpiece_tokenizer().save_pretrained(tmp_path)
    backend = Backend.load(str(tmp_path), store=TraceStore(16 << 20), device_name="cpu")
    record = backend.inside("the cat sat on the bank")
    assert record.queries.shape == (2, 4, 8, 16)
    assert record.nbytes == size_in_bytes(backend.facts, 8, head_size=16)
    assert_attentions(backend, record)


def test_a_record_larger_than_the_store_is_refused_before_it_is_computed(tiny_folder):
    backend = Backend.load(str(tiny_folder("bert")), device_name="cpu")
    size = size_in_bytes(backend.facts, 8)
    backend.store = TraceStore(size)
    assert backend.inside("the cat sat on the bank").nbytes == size
    assert len(backend.store) == 1
    with pytest.raises(InputError) as caught:
        backend.inside("the cat sat on the red bank")
    assert "1 sentences of up to 9 tokens" in caught.value.problem
    assert backend.forward_passes == 1
