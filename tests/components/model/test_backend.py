"""The forward pass against plain transformers, for every architecture and every output."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import random
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertForMaskedLM, BertModel

from components.errors import InputError, ModelError
from components.model import loading
from components.model.backend import Backend
from components.model.one_block import feed_forward as inner_dimensions
from components.model.store import TraceStore
from components.model.trace import TraceOptions
from tests.support import tiny
from tests.support.shared_models import shared_backend

MODELS = ("embedded", *tiny.ARCHITECTURES)
TEXTS = ["The cat sat on the bank.", "a bank", "Walking, we will put money on the bank! é 你 🏦"]
PAIRS = ["The river is red?", "money in the bank of the river", "x"]
BANK = [
    "We will rob a bank next week!",
    "The children skipped stones by the bank of the river.",
    "I put money in the bank.",
]


class Plain:
    """The same files in transformers alone: a tokenizer call with padding, and a model call."""

    def __init__(self, folder):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.models = {
            False: AutoModel.from_pretrained(folder).eval(),
            True: AutoModel.from_pretrained(folder, attn_implementation="eager").eval(),
        }
        self.segments = getattr(self.models[False].config, "type_vocab_size", 0) > 1

    def encode(self, texts, pairs=None, **options):
        return self.tokenizer(
            texts, pairs, padding=True, return_token_type_ids=self.segments, return_tensors="pt", **options
        )

    def __call__(self, texts, pairs=None, attentions=False, **options):
        encoding = self.encode(texts, pairs, **options)
        with torch.inference_mode():
            output = self.models[attentions](**encoding, output_hidden_states=True, output_attentions=attentions)
        return encoding, output


@pytest.fixture(scope="module")
def both_of(embedded, embedded_folder, tiny_folder):
    """A backend and plain transformers, loaded from the same folder once for all tests here."""

    @cache
    def load(name):
        if name == "embedded":
            return embedded, Plain(embedded_folder)
        return shared_backend(tiny_folder(name)), Plain(tiny_folder(name))

    return load


@pytest.fixture(params=MODELS)
def both(request, both_of):
    return both_of(request.param)


@pytest.fixture
def backend(tiny_folder):
    """A tiny BERT with a store and a count of its own."""
    return Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu")


@pytest.fixture(scope="module")
def unused(tiny_folder):
    """A tiny BERT that never makes a pass."""
    return Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu")


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("bert"), tmp_path / "model")


@pytest.fixture(scope="module")
def masked_lm_folder(tmp_path_factory):
    return tiny.save_tiny_masked_lm(tmp_path_factory.mktemp("masked-lm"))


@pytest.fixture(scope="module")
def masked_lm(masked_lm_folder):
    return Backend.load(str(masked_lm_folder), device_name="cpu")


def assert_close(ours, theirs, atol=1e-5):
    np.testing.assert_allclose(ours, theirs.numpy() if isinstance(theirs, torch.Tensor) else theirs, atol=atol, rtol=0)


# Pairs or not, and with attentions, which is the eager kind of attention; the fused one of all architectures is in the tests
# of truncated input and of both kinds below.
FUSED, FUSED_PAIRS, EAGER, EAGER_PAIRS = itertools.product((False, True), (None, PAIRS))


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("embedded", case) for case in (FUSED, EAGER_PAIRS)),
        *tiny.with_cases((FUSED, FUSED_PAIRS, EAGER, EAGER_PAIRS), others=[EAGER_PAIRS]),
    ],
)
def test_every_output_equals_plain_transformers(both_of, name, case):
    (backend, plain), (attentions, pairs) = both_of(name), case
    trace = backend.trace(TEXTS, pairs, attentions=attentions)
    encoding, output = plain(TEXTS, pairs, attentions)

    np.testing.assert_array_equal(trace.input_ids, encoding["input_ids"])
    np.testing.assert_array_equal(trace.attention_mask, encoding["attention_mask"])
    if plain.segments:
        np.testing.assert_array_equal(trace.token_type_ids, encoding["token_type_ids"])
        assert trace.token_type_ids.max() == (pairs is not None)
    else:
        assert trace.token_type_ids is None

    assert trace.hidden_states.dtype == np.float32
    assert trace.n_layers == backend.facts.layers == len(output.hidden_states) - 1
    assert_close(trace.hidden_states, torch.stack(output.hidden_states))
    assert_close(trace.hidden_states[-1], output.last_hidden_state)

    if attentions:
        assert trace.attentions.dtype == np.float32
        assert trace.attentions.shape[:3] == (backend.facts.layers, len(TEXTS), backend.facts.heads)
        assert_close(trace.attentions, torch.stack(output.attentions))
    else:
        assert trace.attentions is None

    pooled = getattr(output, "pooler_output", None)
    assert (trace.pooler_output is None) == (pooled is None)
    if pooled is not None:
        assert_close(trace.pooler_output, pooled)
    assert trace.mask_logits is None
    assert (trace.model, trace.revision) == (backend.spec.key, backend.revision)
    assert [sentence.text for sentence in trace.sentences] == TEXTS


def tables_of(model):
    """The names and the tables of a model that have a vector for each of some numbers."""
    return [(name, each) for name, each in model.named_modules() if isinstance(each, torch.nn.Embedding)]


def test_which_models_have_a_pooler_segments_and_position_vectors(both):
    backend, plain = both
    model = plain.models[False]
    rows = {name.split(".")[-1]: table.num_embeddings for name, table in tables_of(model)}
    assert backend.has_pooler == (getattr(model, "pooler", None) is not None)
    assert backend.facts.segments == rows.get("token_type_embeddings", 0)
    assert backend.structure.has_position_vectors == ("position_embeddings" in rows)


def after_the_sum(model, total):
    """What each architecture makes of the sum of its parts."""
    kind = model.config.model_type
    if kind in {"xlm-roberta-xl", "eurobert"}:
        return total
    if kind == "modernbert":
        return model.embeddings.norm(total)
    if kind == "deberta-v2" and model.embeddings.embed_proj is not None:
        total = model.embeddings.embed_proj(total)
    normed = model.embeddings.LayerNorm(total)
    if kind == "albert":
        return model.encoder.embedding_hidden_mapping_in(normed)
    return model.embeddings_project(normed) if hasattr(model, "embeddings_project") else normed


def test_layer_0_is_made_of_the_sum_of_its_parts(both):
    backend, plain = both
    for pairs in (None, PAIRS):
        trace = backend.trace(TEXTS, pairs)
        assert tuple(trace.embedding_parts.named) == backend.structure.layer_zero_parts
        with torch.inference_mode():
            layer_0 = after_the_sum(plain.models[False], torch.from_numpy(trace.embedding_parts.total)).numpy()
        real = trace.attention_mask.astype(bool)  # DeBERTa sets padding to zero
        assert_close(trace.hidden_states[0][real], layer_0[real])


def test_each_part_is_a_row_of_its_table(both):
    backend, plain = both
    model = plain.models[False]
    trace = backend.trace(TEXTS, PAIRS)
    parts = trace.embedding_parts
    words = model.get_input_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(parts.word, words[trace.input_ids])
    if backend.structure.has_position_vectors:
        # The same position has the same vector in every sentence, two positions never have.
        shortest = min(len(sentence) for sentence in trace.sentences)
        for row in range(1, len(TEXTS)):
            np.testing.assert_array_equal(parts.position[row, :shortest], parts.position[0, :shortest])
        assert len(np.unique(parts.position[0, :shortest], axis=0)) == shortest
    else:
        assert parts.position is None
    if backend.facts.segments == 0:
        assert parts.segment is None
    else:
        types = np.zeros_like(trace.input_ids) if trace.token_type_ids is None else trace.token_type_ids
        rows = model.embeddings.token_type_embeddings.weight.detach().numpy()[types]
        np.testing.assert_array_equal(parts.segment, rows)


def test_padding_does_not_change_a_result(both):
    backend, _ = both
    for attentions in (False, True):
        together = backend.trace(TEXTS, PAIRS, attentions=attentions)
        widths = [len(sentence) for sentence in together.sentences]
        assert min(widths) < max(widths)
        for row, width in enumerate(widths):
            alone = backend.trace([TEXTS[row]], [PAIRS[row]], attentions=attentions)
            assert alone.hidden_states.shape[2] == width
            assert_close(together.hidden_states[:, row, :width], alone.hidden_states[:, 0], atol=5e-5)
            if together.pooler_output is not None:
                assert_close(together.pooler_output[row], alone.pooler_output[0], atol=5e-5)
            if attentions:
                assert_close(together.attentions[:, row, :, :width, :width], alone.attentions[:, 0], atol=5e-5)


def test_attention_goes_to_real_tokens_and_sums_to_one(both):
    backend, _ = both
    trace = backend.trace(TEXTS, attentions=True)
    for row, sentence in enumerate(trace.sentences):
        real = trace.attentions[:, row, :, : len(sentence)]
        assert real.min() >= 0
        np.testing.assert_allclose(real.sum(axis=-1), 1, atol=1e-5)
        assert real[..., len(sentence) :].sum() == 0


def test_fused_and_eager_attention_agree(both):
    backend, _ = both
    fused, eager = backend.trace(TEXTS), backend.trace(TEXTS, attentions=True)
    for row, sentence in enumerate(fused.sentences):
        width = len(sentence)
        assert_close(fused.hidden_states[:, row, :width], eager.hidden_states[:, row, :width], atol=5e-5)


def test_texts_with_and_without_a_pair_can_be_mixed(both):
    backend, _ = both
    mixed = backend.trace(TEXTS, [PAIRS[0], None, None])
    paired, single = backend.trace(TEXTS, PAIRS), backend.trace(TEXTS)
    for row, expected in enumerate((paired, single, single)):
        width = len(mixed.sentences[row])
        assert mixed.sentences[row] == expected.sentences[row]
        assert_close(mixed.hidden_states[:, row, :width], expected.hidden_states[:, row, :width], atol=5e-5)


LENGTHS = [(6, None), (7, PAIRS), (12, None), (6, PAIRS), (7, None), (12, PAIRS)]


@pytest.mark.parametrize(("name", "case"), [*(("embedded", case) for case in LENGTHS[1:3]), *tiny.with_cases(LENGTHS)])
def test_truncated_input_equals_plain_transformers(both_of, name, case):
    (backend, plain), (max_length, pairs) = both_of(name), case
    trace = backend.trace(TEXTS, pairs, max_length=max_length)
    encoding, output = plain(TEXTS, pairs, truncation=True, max_length=max_length)
    np.testing.assert_array_equal(trace.input_ids, encoding["input_ids"])
    assert_close(trace.hidden_states, torch.stack(output.hidden_states))


def test_a_text_beyond_the_models_maximum_is_cut_there(both):
    backend, plain = both
    text = " ".join(["the cat sat on a bank"] * 120)
    assert backend.trace([text]).input_ids.shape == (
        1,
        backend.own_max_length,
    )  # as published, unless more is asked for
    trace = backend.trace([text], max_length=backend.facts.max_positions)
    encoding, output = plain([text], truncation=True, max_length=backend.facts.max_positions)
    assert trace.input_ids.shape == (1, backend.facts.max_positions)
    np.testing.assert_array_equal(trace.input_ids, encoding["input_ids"])
    assert_close(trace.hidden_states, torch.stack(output.hidden_states))
    (cut,) = trace.sentences[0].dropped
    assert text[: cut.start] + cut.text == text
    whole = plain.tokenizer(text)["input_ids"]
    assert cut.tokens == len(whole) - backend.facts.max_positions


def test_unusual_characters_are_read_as_transformers_reads_them(both):
    backend, plain = both
    texts = [
        "bell\u0007 null\u0000 escape\u001b[31m delete\u007f",
        "zero\u200bwidth \u2060joiner \ufeffmark soft\u00adhyphen",
        "\u200b",  # nothing is left of it: only the special tokens
        "שלום עולם",
        "مرحبا بالعالم",
        "left \u202eright\u202c left",
        "🏦 👩🏽‍🚀 🇩🇪",
        "e\u0301 vs é",
        "𐍈 𝔘 ꙮ \ue000 \U0010fffe",
        "日本語のテキスト",
        "a\u2028b\u2029c\u0085d",
        "x" * 300,
        "the bank",
    ]
    trace = backend.trace(texts)
    encoding, output = plain(texts, truncation=True, max_length=backend.facts.max_positions)
    np.testing.assert_array_equal(trace.input_ids, encoding["input_ids"])
    assert_close(trace.hidden_states, torch.stack(output.hidden_states))
    assert np.isfinite(trace.hidden_states).all()


def test_characters_the_vocabulary_does_not_know_become_the_unknown_piece(embedded):
    (sentence,) = embedded.tokenize(["ok ꙮ 🏦 ok"])
    unknown = [token for token in sentence.tokens if token.id == embedded.tokenization.unknown_id]
    assert [sentence.surface(token.position) for token in unknown] == ["ꙮ", "🏦"]
    assert len(sentence) == 6


# The cosine of "bank" between the sentences of the bank set, layers 0..6, as published in the issue.
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (0, 1, [0.966, 0.878, 0.841, 0.834, 0.836, 0.882, 0.773]),
        (0, 2, [0.988, 0.964, 0.897, 0.883, 0.893, 0.913, 0.856]),
        (1, 2, [0.989, 0.921, 0.849, 0.818, 0.810, 0.835, 0.745]),
    ],
)
def test_the_curves_of_bank(embedded, first, second, expected):
    trace = embedded.trace(BANK)

    def vectors(row):
        (place,) = [token.position for token in trace.sentences[row].tokens if token.piece == "bank"]
        return trace.hidden_states[:, row, place].astype(np.float64)

    one, other = vectors(first), vectors(second)
    cosine = (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
    np.testing.assert_allclose(cosine, expected, atol=0.002)


def arrays_of(value):
    """Every array in a record, at any depth."""
    if isinstance(value, np.ndarray):
        return [value]
    if dataclasses.is_dataclass(value):
        return [array for field in dataclasses.fields(value) for array in arrays_of(getattr(value, field.name))]
    return []


def test_no_array_of_a_result_can_be_written(masked_lm):
    trace = masked_lm.trace(["the [MASK] sat"], attentions=True, mask_logits=True)
    arrays = arrays_of(trace)
    assert len(arrays) == 10  # all but the pooler's, which this model was saved without
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array.fill(0)
        assert array.base is None or not array.base.flags.writeable


def test_a_repeated_trace_costs_no_pass(backend):
    first = backend.trace(["the cat", "a dog"])
    assert backend.forward_passes == 1
    assert backend.trace(("the cat", "a dog")) is first
    assert backend.trace(["the cat", "a dog"], None, False, None, False) is first
    assert backend.forward_passes == 1


def test_every_option_is_part_of_the_key(backend):
    asked = [
        {"texts": ["the cat"]},
        {"texts": ["the cat", "the cat"]},
        {"texts": ["the cat"], "pairs": ["a dog"]},
        {"texts": ["the cat"], "attentions": True},
        {"texts": ["the cat"], "max_length": 3},
    ]
    traces = [backend.trace(**options) for options in asked]
    assert backend.forward_passes == len(asked)
    assert [backend.trace(**options) for options in asked] == traces  # records compare by identity
    assert backend.forward_passes == len(asked)


def test_models_share_a_store_without_mixing_up(tiny_folder, tmp_path):
    store = TraceStore(1 << 20)
    other = tiny.save_tiny(tmp_path, "bert", seed=1)
    backends = [Backend.load(str(place), store=store, device_name="cpu") for place in (tiny_folder("bert"), other)]
    first, second = (backend.trace(["the cat"]) for backend in backends)
    assert len(store) == 2
    assert np.abs(first.hidden_states - second.hidden_states).max() > 0.1


def test_the_store_and_run_agree_and_run_keeps_nothing(backend):
    kept = backend.trace(["the cat"], attentions=True)
    run = backend.run(["the cat"], None, TraceOptions(attentions=True))
    np.testing.assert_array_equal(run.hidden_states, kept.hidden_states)
    np.testing.assert_array_equal(run.attentions, kept.attentions)
    assert backend.forward_passes == 2
    assert len(backend.store) == 1


def test_tokens_cost_no_pass(backend):
    sentences = backend.tokenize(["the cat sat", "a"], ["a dog", None], max_length=5)
    assert sentences == backend.trace(["the cat sat", "a"], ["a dog", None], max_length=5).sentences
    assert backend.forward_passes == 1


def test_thirty_threads_asking_for_the_same_cost_one_pass(backend):
    results = [None] * 30
    start = threading.Barrier(30)

    def work(number):
        start.wait()
        results[number] = backend.trace(["the cat sat on the bank"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert backend.forward_passes == 1
    assert {id(result) for result in results} == {id(results[0])}


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_sixteen_threads_get_what_one_thread_gets(name, tiny_folder):
    """Mixed sentences, pairs, lengths and options at once, the store too small to keep them."""
    store = TraceStore({"bert": 200_000, "roberta": 1_000_000}[name])
    backend = Backend.load(str(tiny_folder(name)), store=store, device_name="cpu")
    randomness = random.Random(0)
    words = ["the", "a", "bank", "river", "money", "walking", "élan", "你", "🏦", "unaffable", "x"]
    jobs = []
    for number in range(24):
        texts = [" ".join(randomness.choices(words, k=randomness.randint(1, 14))) for _ in range(number % 3 + 1)]
        pairs = [" ".join(randomness.choices(words, k=4)) for _ in texts] if number % 4 == 0 else None
        jobs.append((texts, pairs, number % 5 == 0, randomness.choice([None, 6, 9, 16, 17])))
    expected = [
        backend.run(texts, pairs, TraceOptions(attentions, length)) for texts, pairs, attentions, length in jobs
    ]
    wrong, done = [], []
    start = threading.Barrier(16)

    def work(seed):
        order = random.Random(seed).sample(range(len(jobs)), 10)
        start.wait()
        for number in order:
            trace, truth = backend.trace(*jobs[number]), expected[number]
            same = trace.sentences == truth.sentences and np.allclose(
                trace.hidden_states, truth.hidden_states, atol=1e-5, rtol=0
            )
            if truth.attentions is not None:
                same = same and np.allclose(trace.attentions, truth.attentions, atol=1e-5, rtol=0)
            done.append(number)
            if not same:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(done) == 160
    assert len(backend.store) < len({(tuple(texts), *map(str, rest)) for texts, *rest in jobs})  # some had to go


def test_the_eager_twin_is_the_same_weights_with_another_attention(both):
    backend, _ = both
    backend.trace(["the bank"], attentions=True)
    fast = {**dict(backend.encoder.named_parameters()), **dict(backend.encoder.named_buffers())}
    eager = {**dict(backend.loaded.eager().named_parameters()), **dict(backend.loaded.eager().named_buffers())}
    assert fast.keys() == eager.keys()
    assert all(eager[name].data_ptr() == fast[name].data_ptr() for name in fast)
    assert backend.loaded.eager() is not backend.encoder
    assert backend.loaded.eager().config._attn_implementation == "eager"
    if not backend.structure.has_own_attention_code:  # else there may be no other kind
        assert backend.encoder.config._attn_implementation == "sdpa"
        assert backend.trace(["the bank"]).attentions is None


def test_mask_logits_equal_the_published_heads(masked_lm, masked_lm_folder):
    assert masked_lm.spec.masked_lm
    texts = ["the [MASK] sat on the [MASK] .", "a dog", "[MASK] x"]
    for pairs in (None, ["[MASK] cat", "the river", "a"]):
        trace = masked_lm.trace(texts, pairs, attentions=True, mask_logits=True)
        plain = BertForMaskedLM.from_pretrained(masked_lm_folder, attn_implementation="eager").eval()
        encoding = AutoTokenizer.from_pretrained(masked_lm_folder)(
            texts, pairs, padding=True, return_token_type_ids=True, return_tensors="pt"
        )
        with torch.inference_mode():
            output = plain(**encoding, output_hidden_states=True, output_attentions=True)
        places = [tuple(place) for place in (encoding["input_ids"] == 4).nonzero().tolist()]
        assert trace.mask_logits.positions == tuple(places)
        assert len(places) == (3 if pairs is None else 4)
        assert_close(trace.mask_logits.logits, torch.stack([output.logits[place] for place in places]))
        assert_close(trace.hidden_states, torch.stack(output.hidden_states))
        assert_close(trace.attentions, torch.stack(output.attentions))


def test_without_a_mask_token_there_are_no_logits(masked_lm):
    logits = masked_lm.trace(["the cat sat"], mask_logits=True).mask_logits
    assert logits.positions == ()
    assert logits.logits.shape == (0, masked_lm.facts.vocabulary_size)


def test_logits_do_not_change_what_comes_with_them(folder):
    """A model whose pooler was published too, as BERT base has it: the masked-LM model alone leaves it out."""
    model = BertForMaskedLM.from_pretrained(folder)  # a head of random numbers will do here
    state = {
        **{f"bert.{name}": tensor for name, tensor in BertModel.from_pretrained(folder).state_dict().items()},
        **{name: tensor for name, tensor in model.state_dict().items() if name.startswith("cls.")},
    }
    model.save_pretrained(folder, state_dict=state)
    backend = Backend.load(str(folder), device_name="cpu")
    with_logits = backend.trace(["the [MASK] sat"], mask_logits=True)
    without = backend.trace(["the [MASK] sat"])
    assert_close(with_logits.pooler_output, without.pooler_output)
    assert_close(with_logits.hidden_states, without.hidden_states)
    assert with_logits.mask_logits.logits.shape == (1, backend.facts.vocabulary_size)


def test_models_loaded_at_once_leave_transformers_as_it_was(masked_lm_folder, monkeypatch):
    from transformers import PreTrainedModel, initialization

    ties, without_ties = PreTrainedModel.tie_weights, initialization.no_tie_weights
    monkeypatch.setattr(PreTrainedModel, "tie_weights", ties)  # put back whatever happens here

    @contextmanager
    def slow():  # transformers' own, which replaces tie_weights for the whole process; the first to begin ends first
        with without_ties():
            time.sleep(0.2)
            yield

    monkeypatch.setattr(initialization, "no_tie_weights", slow)

    def head(delay):
        time.sleep(delay)
        return Backend.load(str(masked_lm_folder)).loaded.masked_lm()

    with ThreadPoolExecutor(3) as people:
        heads = list(people.map(head, (0, 0.1, 0.15)))
    assert PreTrainedModel.tie_weights is ties
    for each in heads:
        assert each.cls.predictions.decoder.weight is each.bert.embeddings.word_embeddings.weight


def test_a_head_that_waits_for_another_models_load_holds_up_no_pass(masked_lm_folder):
    backend = Backend.load(str(masked_lm_folder), device_name="cpu")
    with ThreadPoolExecutor(2) as people:
        with loading.BUILDING:  # as while another model is loaded, by another thread
            of_head = people.submit(backend.trace, ["the [MASK] sat"], mask_logits=True)
            while not backend.loaded._building_head.locked():
                assert not of_head.done()
            passed = people.submit(backend.trace, ["a dog ran"]).result(timeout=30)
            assert not of_head.done()
        assert of_head.result(timeout=30).mask_logits is not None
    assert passed.mask_logits is None


def test_the_head_runs_on_the_encoders_own_weights(masked_lm):
    masked_lm.trace(["the [MASK]"], mask_logits=True)
    inside = dict(masked_lm.loaded.masked_lm().bert.named_parameters())
    own = dict(masked_lm.encoder.named_parameters())
    assert inside.keys() == own.keys()
    assert all(inside[name].data_ptr() == own[name].data_ptr() for name in own)


def test_a_model_without_a_head_gives_no_logits(embedded, backend):
    for model in (embedded, backend):
        passes = model.forward_passes
        with pytest.raises(ModelError) as caught:
            model.trace(["the [MASK]"], mask_logits=True)
        assert caught.value.kind == "unsupported"
        assert model.spec.title in caught.value.problem
        assert model.forward_passes == passes


def test_a_head_that_was_promised_but_not_saved_is_not_made_up(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    backend = Backend.load(str(folder), device_name="cpu")
    assert backend.spec.masked_lm
    with pytest.raises(ModelError) as caught:
        backend.trace(["the [MASK]"], mask_logits=True)
    assert caught.value.kind == "unsupported"
    assert backend.trace(["the [MASK]"]).mask_logits is None


@pytest.mark.parametrize("architecture", ["bert", "roberta", "mpnet"])
def test_a_pooler_that_was_not_saved_is_left_out_not_made_up(tmp_path, architecture):
    model, tokenizer = tiny.tiny_model(architecture)
    complete = sum(parameter.numel() for parameter in model.parameters())
    pooler = sum(parameter.numel() for parameter in model.pooler.parameters())
    model.pooler = None
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backend = Backend.load(str(tmp_path), device_name="cpu")
    assert not backend.has_pooler
    assert backend.facts.parameters == complete - pooler
    for attentions in (False, True):
        assert backend.trace(["the cat"], attentions=attentions).pooler_output is None


def test_a_block_that_was_not_saved_is_not_made_up(folder):
    model = BertModel.from_pretrained(folder)
    state = {name: tensor for name, tensor in model.state_dict().items() if "layer.1.attention" not in name}
    model.save_pretrained(folder, state_dict=state)
    with pytest.raises(ModelError) as caught:
        Backend.load(str(folder), device_name="cpu")
    assert caught.value.kind == "damaged"
    assert "layer.1.attention" in caught.value.problem


@pytest.mark.parametrize(
    ("texts", "options", "given"),
    [
        ([], {}, "no sentence"),
        ([""], {}, "empty"),
        (["fine", "  \t "], {}, "Sentence 2"),
        (["fine"], {"pairs": [""]}, "empty"),
        (["a"] * 65, {}, "65 sentences"),
        (["a" * 20_001], {}, "20,001 characters"),
        (["half \ud83d"], {}, "U+D83D"),
        (["a"], {"max_length": 2}, "length of 2"),
        (["a"], {"max_length": 65}, "length of 65"),
        (["a"], {"max_length": -1}, "length of -1"),
        (["a"], {"pairs": ["b"], "max_length": 3}, "length of 3"),
    ],
)
def test_input_that_cannot_be_shown_says_why_and_costs_nothing(unused, texts, options, given):
    for ask in (unused.trace, unused.tokenize):
        with pytest.raises(InputError) as caught:
            ask(texts, **options)
        assert given in caught.value.problem
    assert unused.forward_passes == 0
    assert len(unused.store) == 0


def test_the_most_that_is_allowed(backend):
    assert backend.trace(["a"] * 64).hidden_states.shape == (4, 64, 3, 32)
    (sentence,) = backend.trace(["a " * 9_999 + "a."]).sentences
    assert len(sentence.text) == 20_000
    assert sentence.dropped[0].tokens == 10_001 - 62


def test_a_result_larger_than_the_store_is_refused_before_it_is_computed(tiny_folder):
    # Four layers and three parts of layer 0 for five tokens, the pooler, and what ids and masks take at most.
    store = TraceStore(4 * 5 * 32 * (4 + 3) + 4 * 32 + 40 * 5)
    backend = Backend.load(str(tiny_folder("bert")), store=store, device_name="cpu")
    with pytest.raises(InputError) as caught:
        backend.trace(["the cat sat on the bank"])
    assert "1 sentences of up to 8 tokens" in caught.value.problem
    assert "attentions" not in caught.value.fix
    assert backend.forward_passes == 0
    assert store.limit - 200 <= backend.run(["the cat sat"]).nbytes <= store.limit
    with pytest.raises(InputError):
        backend.run(["the cat sat"], None, TraceOptions(attentions=True))
    assert backend.forward_passes == 1


def test_loading_leaves_the_global_state_of_torch_alone(tiny_folder):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    Backend.load(str(tiny_folder("bert")), device_name="cpu").trace(["the cat"], attentions=True)
    assert torch.is_grad_enabled()
    np.testing.assert_array_equal(torch.rand(3), expected)


def test_the_model_is_in_evaluation_mode_and_float32(both):
    backend, _ = both
    assert not any(module.training for module in backend.encoder.modules())
    assert {parameter.dtype for parameter in backend.encoder.parameters()} == {torch.float32}
    first, second = (backend.run(["the cat sat"]).hidden_states for _ in range(2))
    np.testing.assert_array_equal(first, second)  # dropout would show


def test_weights_saved_in_half_precision_are_computed_in_float32(tmp_path):
    model, tokenizer = tiny.tiny_model("bert")
    model.half().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backend = Backend.load(str(tmp_path), device_name="cpu")
    assert {parameter.dtype for parameter in backend.encoder.parameters()} == {torch.float32}
    assert backend.precision == "float32"
    plain = BertModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    with torch.inference_mode():
        output = plain(**tokenizer(["the cat"], return_tensors="pt"), output_hidden_states=True)
    assert_close(backend.trace(["the cat"]).hidden_states, torch.stack(output.hidden_states))


def test_whatever_changes_a_result_changes_its_place_in_the_store(tiny_folder, monkeypatch):
    """Of what is kept for everybody, nobody gets what was asked for with other texts, options, or another model."""
    keys = []

    class Recorder:
        limit = 1 << 40

        def get(self, key, compute):
            keys.append(key)
            return SimpleNamespace(of_texts=())

    backend = copy.copy(shared_backend(tiny_folder("bert")))
    backend.store = Recorder()
    monkeypatch.setattr(backend.loaded, "masked_lm", lambda: None)  # nothing is computed here
    monkeypatch.setattr(inner_dimensions, "kept_blocks", lambda loaded, tokens, block: (block,))
    backend.structure = SimpleNamespace(adds_to_scores=True)
    text = ("the cat sat on the bank",)
    pair = (*text, "a river")

    def ask(asked):
        keys.clear()
        for arguments, options in (
            ((text,), {}),
            ((text[:1] * 2,), {}),
            ((text, pair[1:]), {}),
            *(((text,), option) for option in ({"attentions": True}, {"mask_logits": True}, {"prompt": "a "})),
            ((text,), {"max_length": 5}),
        ):
            asked.trace(*arguments, **options)
        left = {"only_left": True}
        options = ({}, {"max_length": 5}, left)
        for of in (text, pair, ("a bank",)):
            for option in (*options, {"attentions": False}, {"score_terms": True}):
                asked.inside(*of, **option)
            for option in (*options, {"block": 1}):
                asked.feed_forward(*of, **option)
            chosen = (*options, {"k": 3}, {"positions": (1, 2)}, {"positions": (2,)}, {"layers": (0,)})
            for option in chosen if of != ("a bank",) else ({},):
                asked.guesses_in_turn(*of, **option)
                asked.guesses(*of, **option)
        for option in ({"hidden": (1,)}, {"hidden": (2,)}, {"asked": (5,)}):
            asked.guesses(*text, **option)
        for texts, option in ((text, {}), (text * 2, {}), (text, {"k": 3}), (text, {"asked": (5,)})):
            asked.guesses_at_masks(texts, **option)
        return list(keys)

    found = ask(backend)
    for name, value in (
        ("revision", "another"),
        ("device", torch.device("meta")),
        ("spec", dataclasses.replace(backend.spec, key="another")),
    ):
        other = copy.copy(backend)
        setattr(other, name, value)
        found += ask(other)
    assert len(set(found)) == len(found) > 100
