"""Whatever a published folder sets on the way from hidden states to a vector is applied: equal to sentence-transformers.

Each folder is written here, with two or three settings away from the default, and its vectors are compared with
`SentenceTransformer` for texts without a role, queries and documents, in the bulk path and in a trace.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from components.analysis.path.sentence_vector import sentence_steps
from components.analysis.pooling import pool
from components.analysis.why.residual_split import split_of_trace
from components.analysis.why.token_ledger import token_ledger, token_weights
from components.analysis.why.word_scores import PairSimilarity, by_gradient, by_leaving_out, by_rollout
from components.errors import InputError
from components.model.backend import Backend
from components.model.contributions.path_products import path_products
from tests.support.static_models import save_model2vec, save_static_embedding
from tests.support.tiny import Module, dense_module, pooling_module, publish

TEXTS = ["the cat sat", "we will put money in the bank by the river .", "a dog", "walking , walked"]
MEAN = pooling_module()
NORMALIZE: Module = ("Normalize", {})
TOKEN_DENSE = dense_module(32, 20, module_input_name="token_embeddings")
PROMPTS = {"query": "find the river : ", "document": "a text : ", "similarity": "the same meaning ? "}
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")

# The modules after the encoder, and what config_sentence_transformers.json says.
FOLDERS: dict[str, tuple[list[Module], dict[str, Any]]] = {
    **{mode: ([("Pooling", {"embedding_dimension": 32, "pooling_mode": mode})], {}) for mode in MODES},
    "all joined": ([("Pooling", {"embedding_dimension": 32, "pooling_mode": list(MODES)})], {"truncate_dim": 150}),
    "joined in the order of the list": (
        [("Pooling", {"embedding_dimension": 32, "pooling_mode": ["mean", "cls"]})],
        {},
    ),
    "joined by old flags": ([pooling_module(pooling_mode_max_tokens=True, pooling_mode_cls_token=True)], {}),
    "joined, then Dense": (
        [("Pooling", {"embedding_dimension": 32, "pooling_mode": ["max", "weightedmean"]}), dense_module(64, 12)],
        {"similarity_fn_name": "dot"},
    ),
    "truncated": ([MEAN], {"truncate_dim": 8}),
    "truncated beyond its size": ([MEAN], {"truncate_dim": 64}),
    "scaled, then truncated": ([MEAN, NORMALIZE], {"truncate_dim": 8, "similarity_fn_name": "dot"}),
    "scaled for the dot product": ([MEAN, NORMALIZE], {"similarity_fn_name": "dot"}),
    "scaled for a distance": ([pooling_module("cls_token"), NORMALIZE], {"similarity_fn_name": "euclidean"}),
    "Dense, LayerNorm, Normalize": ([MEAN, dense_module(32, 24), ("LayerNorm", {"dimension": 24}), NORMALIZE], {}),
    "LayerNorm": ([MEAN, ("LayerNorm", {"dimension": 32})], {"similarity_fn_name": "manhattan"}),
    "Dense on tokens": (
        [TOKEN_DENSE, ("Pooling", {"embedding_dimension": 20, "pooling_mode": "max"})],
        {"truncate_dim": 11},
    ),
    "Dense on tokens, joined": (
        [TOKEN_DENSE, ("Pooling", {"embedding_dimension": 20, "pooling_mode": ["cls", "mean"]}), dense_module(40, 40)],
        {},
    ),
    "a prompt that does not count": (
        [pooling_module(include_prompt=False)],
        {"prompts": PROMPTS, "default_prompt_name": "similarity"},
    ),
    "a prompt that does not count, every mode": (
        [("Pooling", {"embedding_dimension": 32, "pooling_mode": list(MODES), "include_prompt": False})],
        {"prompts": PROMPTS, "default_prompt_name": "query"},
    ),
    "a prompt before every text": (
        [MEAN, dense_module(32, 8)],
        {"prompts": PROMPTS, "default_prompt_name": "similarity"},
    ),
    "prompts of roles": ([MEAN], {"prompts": {"query": "q : ", "document": None, "passage": "p : "}}),
    "no prompt for a query": ([MEAN], {"prompts": {"all": "a : "}, "default_prompt_name": "all"}),
}


@pytest.fixture
def make(tiny_folder: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """A folder of an architecture with these modules and these settings."""

    def made(modules: list[Module], top: dict[str, Any], architecture: str = "bert", **config: Any) -> Path:
        folder = shutil.copytree(tiny_folder(architecture), tmp_path / "model")
        publish(folder, *modules)
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {}} | top))
        written = json.loads((folder / "config.json").read_text()) | config
        (folder / "config.json").write_text(json.dumps(written))
        return Path(folder)

    return made


def assert_equal(folder: Path, texts: list[str] = TEXTS) -> Backend:
    """Equal vectors in every role, and a trace's are those of a text without a role. Returns the model."""
    library, backend = SentenceTransformer(str(folder), device="cpu"), Backend.load(str(folder))
    for role, encode in (
        (None, library.encode),
        ("query", library.encode_query),
        ("document", library.encode_document),
    ):
        expected = encode(texts)
        found = backend.embed(texts, options=backend.embed_options(precision="float32", role=role))[0, 0]  # type: ignore[arg-type]
        assert found.shape == expected.shape
        scale = np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(found / scale, expected / scale, atol=1e-5)
    if backend.structure.has_blocks:
        found = pool(backend.trace(texts), backend.own_pooling)[-1]
        np.testing.assert_allclose(found / scale, library.encode(texts) / scale, atol=1e-5)
    return backend


@pytest.mark.parametrize("name", FOLDERS)
def test_it_equals_sentence_transformers(name: str, make: Callable[..., Path]) -> None:
    modules, top = FOLDERS[name]
    backend = assert_equal(make(modules, top))
    others = ["“passage”"] if name == "prompts of roles" else []
    assert [quoted for quoted in others if quoted not in "".join(backend.not_applied)] == []
    assert len(backend.not_applied) == len(others)
    assert backend.sentence_config.similarity == top.get("similarity_fn_name", "cosine")


@pytest.mark.parametrize("architecture", ["distilbert", "roberta", "modernbert", "deberta-v2", "albert", "mpnet"])
@pytest.mark.parametrize("name", ["all joined", "a prompt that does not count, every mode", "Dense on tokens, joined"])
def test_it_does_in_other_families(name: str, architecture: str, make: Callable[..., Path]) -> None:
    assert_equal(make(*FOLDERS[name], architecture))


def test_a_mean_of_layers_where_the_encoder_gives_all_of_them(make: Callable[..., Path]) -> None:
    weighted: Module = ("WeightedLayerPooling", {"embedding_dimension": 32, "layer_start": 1, "num_hidden_layers": 3})
    assert_equal(make([weighted, MEAN, dense_module(32, 8)], {}, output_hidden_states=True))


def test_a_mean_of_layers_that_the_encoder_does_not_give_changes_nothing(make: Callable[..., Path]) -> None:
    weighted: Module = ("WeightedLayerPooling", {"embedding_dimension": 32, "layer_start": 1, "num_hidden_layers": 3})
    backend = assert_equal(make([weighted, MEAN], {}))
    assert backend.own_pooling == "mean"


@pytest.mark.parametrize("top", [{"truncate_dim": 5}, {"prompts": PROMPTS, "default_prompt_name": "query"}])
def test_static_models_too(top: dict[str, Any], tmp_path: Path) -> None:
    folder = save_static_embedding(tmp_path / "model")
    (folder / "config_sentence_transformers.json").write_text(json.dumps(top))
    assert_equal(folder)


def test_lengths_by_task(make: Callable[..., Path]) -> None:
    folder = make([MEAN], {"prompts": PROMPTS})
    (folder / "sentence_bert_config.json").write_text('{"query_length": 8, "document_length": 10}')
    backend = assert_equal(folder, [text + " and the bank of the river" for text in TEXTS])
    lengths = [backend.embed_options(role=role).max_length for role in (None, "query", "document")]
    assert lengths[1:] == [8, 10]
    assert lengths[0] > 10


def rewrite(path: Path, **values: Any) -> None:
    """Set keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


LONG = " ".join(["we will put money in the bank by the river ."] * 15)


@pytest.mark.parametrize("architecture", ["modernbert", "deberta-v2", "eurobert", "nomic_bert"])
def test_a_published_length_beyond_the_positions_where_no_table_ends(
    architecture: str, make: Callable[..., Path]
) -> None:
    folder = make([MEAN], {}, architecture, max_position_embeddings=64)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    rewrite(folder / "tokenizer_config.json", model_max_length=128)
    backend = assert_equal(folder, [LONG, "a dog"])
    assert backend.loaded.own_max_length == 128
    assert backend.not_applied == ()


def test_the_length_of_a_role_stands_above_the_tokenizers(make: Callable[..., Path]) -> None:
    folder = make([MEAN], {})
    (folder / "sentence_bert_config.json").write_text('{"document_length": 50}')
    rewrite(folder / "tokenizer_config.json", model_max_length=33)
    backend = assert_equal(folder, [LONG])
    assert backend.embed_options(role="document").max_length == 50


@pytest.mark.parametrize("file", ["tokenizer_config.json", "sentence_bert_config.json"])
def test_special_tokens_that_a_text_spells_are_split_where_the_folder_says_so(
    file: str, make: Callable[..., Path]
) -> None:
    folder = make([MEAN], {})
    setting = {"split_special_tokens": True}
    if file == "tokenizer_config.json":
        rewrite(folder / file, **setting)
    else:
        (folder / file).write_text(json.dumps({"processor_kwargs": setting}))
    backend = assert_equal(folder, ["the cat [SEP] sat", "[MASK]"])
    assert len(backend.tokenization.tokenize("[MASK]").tokens) > 3


def test_a_prompt_that_ends_with_a_special_token_of_its_own(make: Callable[..., Path]) -> None:
    folder = make(
        [pooling_module(include_prompt=False)], {"prompts": {"query": "the bank [MASK]", "document": "[SEP]"}}
    )
    written = json.loads((folder / "tokenizer.json").read_text())
    written["post_processor"] = None  # the tokenizer adds nothing around a text
    (folder / "tokenizer.json").write_text(json.dumps(written))
    assert_equal(folder)


def test_static_vectors_have_no_settings_of_an_encoder(tmp_path: Path) -> None:
    folder = save_static_embedding(tmp_path / "model")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 3, "query_length": 2, "do_lower_case": true}')
    assert_equal(folder, ["The cat sat by the river", LONG])


def test_the_table_of_static_vectors_is_that_of_the_list_of_modules(tmp_path: Path) -> None:
    folder = save_static_embedding(tmp_path / "model", seed=2)
    beside = save_model2vec(tmp_path / "other", seed=1)
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(beside / file, folder / file)
    assert_equal(folder)


def test_a_kind_that_the_library_does_not_know_is_named(make: Callable[..., Path]) -> None:
    backend = Backend.load(str(make([pooling_module("cls_token"), NORMALIZE], {"model_type": "Embedder"})))
    assert "a model of the kind “Embedder”" in "".join(backend.not_applied)
    assert backend.own_pooling == "cls"


@pytest.mark.parametrize("file", ["sentence_bert_config.json", "config_sentence_transformers.json"])
@pytest.mark.parametrize("content", ['\ufeff{"max_seq_length": 12}', '{"max_seq_length": 12,}'])
def test_settings_that_cannot_be_read_are_named(file: str, content: str, make: Callable[..., Path]) -> None:
    folder = make([MEAN], {})
    (folder / file).write_text(content, "utf-8")
    assert f"{file} cannot be read" in "".join(Backend.load(str(folder)).not_applied)


def test_joins_of_pieces_are_not_left_out_by_chance(make: Callable[..., Path]) -> None:
    folder = make([MEAN], {}, "roberta")
    written = json.loads((folder / "tokenizer.json").read_text())
    written["model"]["dropout"] = 0.9
    (folder / "tokenizer.json").write_text(json.dumps(written))
    backend = Backend.load(str(folder))
    assert "by chance (dropout 0.9)" in "".join(backend.not_applied)
    found = {tuple(token.id for token in backend.tokenization.tokenize(TEXTS[1]).tokens) for _ in range(20)}
    assert len(found) == 1


def test_float32_that_is_asked_for_is_not_called_another_precision(make: Callable[..., Path]) -> None:
    folder = make([MEAN], {}, dtype="float16")
    assert "published in float16" in "".join(Backend.load(str(folder)).not_applied)
    (folder / "sentence_bert_config.json").write_text('{"model_kwargs": {"torch_dtype": "float32"}}')
    assert assert_equal(folder).not_applied == ()


def test_a_rotation_that_changes_with_the_batch_is_named(make: Callable[..., Path]) -> None:
    rope = {"rope_type": "dynamic", "rope_theta": 1000.0, "factor": 4.0}
    backend = Backend.load(str(make([MEAN], {}, "nomic_bert", rope_parameters=rope)))
    assert "rotated by “dynamic”" in "".join(backend.not_applied)


def test_the_padding_row_of_mpnet_is_its_own(make: Callable[..., Path]) -> None:
    folder = make([MEAN], {}, "mpnet")
    before = Backend.load(str(folder)).spec.facts
    rewrite(folder / "config.json", pad_token_id=0)
    after = Backend.load(str(folder)).spec.facts
    assert before is not None
    assert after is not None
    assert after.max_positions == before.max_positions


def test_the_size_of_a_shortened_vector(make: Callable[..., Path]) -> None:
    backend = Backend.load(str(make([MEAN], {"truncate_dim": 8})))
    assert backend.embed(TEXTS).shape[-1] == 8
    assert backend.vector_size(("own",)) == 8
    assert backend.vector_size(("mean", "own")) == 32


@pytest.mark.parametrize("name", ["all joined", "weightedmean", "joined, then Dense", "a prompt that does not count"])
def test_why_adds_up_to_the_published_cosine(name: str, make: Callable[..., Path]) -> None:
    """The ledger, the split by blocks, and the four ways of words are those of the vectors that encode gives."""
    backend = Backend.load(str(make(*FOLDERS[name])))
    layer, pooling = backend.facts.layers, backend.own_pooling
    first, second = SentenceTransformer(str(backend.loaded.folder), device="cpu").encode(TEXTS[:2])
    expected = float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    trace = backend.trace(TEXTS[:2])
    ledger = token_ledger(trace, layer, pooling)
    assert ledger.cosine == pytest.approx(expected, abs=1e-5)
    whole = ledger.contributions.sum() + sum(term.value for term in ledger.terms)
    assert whole == pytest.approx(expected, abs=1e-5)
    split = split_of_trace(backend, trace, layer, pooling, 0, 1)
    assert split.cosine == pytest.approx(expected, abs=1e-5)
    similarity = PairSimilarity.of(backend, *TEXTS[:2], layer, pooling)
    assert similarity.cosine == pytest.approx(expected, abs=1e-5)
    assert similarity.cosines([TEXTS[0]], [TEXTS[1]])[0] == pytest.approx(expected, abs=1e-5)
    for method in (by_leaving_out, by_rollout, by_gradient):
        assert np.isfinite(method(similarity, lambda done, total: None, lambda: False)).all()


@pytest.mark.parametrize("name", ["all joined", "lasttoken", "Dense on tokens, joined", "scaled, then truncated"])
def test_the_path_ends_at_the_published_vector(name: str, make: Callable[..., Path]) -> None:
    backend = Backend.load(str(make(*FOLDERS[name])))
    trace = backend.trace(TEXTS[:2])
    expected = SentenceTransformer(str(backend.loaded.folder), device="cpu").encode(TEXTS[:2])
    for row in range(2):
        np.testing.assert_allclose(sentence_steps(trace, row, "own").vector, expected[row], atol=1e-5)
        vectors, weights = token_weights(trace, 3, "own", row)
        assert vectors.shape == weights.shape


def test_a_vector_of_changed_tokens_is_not_split_by_blocks(make: Callable[..., Path]) -> None:
    backend = Backend.load(str(make(*FOLDERS["Dense on tokens"])))
    with pytest.raises(InputError, match="changes its tokens' vectors"):
        split_of_trace(backend, backend.trace(TEXTS[:2]), 3, "own", 0, 1)


def test_patched_and_path_vectors_are_the_published_ones(make: Callable[..., Path]) -> None:
    weighted: Module = ("WeightedLayerPooling", {"embedding_dimension": 32, "layer_start": 1, "num_hidden_layers": 3})
    joined: Module = ("Pooling", {"embedding_dimension": 32, "pooling_mode": ["cls", "weightedmean"]})
    backend = Backend.load(str(make([weighted, joined], {"truncate_dim": 40}, output_hidden_states=True)))
    expected = SentenceTransformer(str(backend.loaded.folder), device="cpu").encode(TEXTS[:2])
    sentences = backend.tokenize(TEXTS[:2])
    np.testing.assert_allclose(backend.patched_vectors(sentences[0], [()], "own")[0], expected[0], atol=1e-5)
    products = path_products(backend.loaded, sentences[0], "padding", 3, "own")
    np.testing.assert_allclose(products.vector, expected[0], atol=1e-5)
    summed = products.reference_vector + products.contributions.sum(axis=0)
    np.testing.assert_allclose(summed, expected[0], atol=1e-3)


def test_the_tokens_of_a_prompt_are_special_and_stand_for_nothing_that_was_typed(make: Callable[..., Path]) -> None:
    backend = Backend.load(str(make([MEAN], {"prompts": PROMPTS, "default_prompt_name": "similarity"})))
    (sentence,) = backend.tokenize(["walking cats"])
    plain = backend.tokenize(["walking cats"], prompt="")[0]
    assert sentence.text == "walking cats"
    assert sentence.prompt == PROMPTS["similarity"]
    assert plain.prompt == ""
    shift = len(sentence) - len(plain)
    assert shift > 0
    own, expected = ([token for token in each.tokens if not token.special] for each in (sentence, plain))
    assert [(t.id, t.word, t.start, t.end) for t in own] == [(t.id, t.word, t.start, t.end) for t in expected]
    assert sentence.prompt_tokens == 1 + shift
    assert all(token.special for token in sentence.tokens[: sentence.prompt_tokens])
    # A long text is cut later by as many tokens as the prompt has.
    (long,) = backend.tokenize(["cat " * 40], max_length=16)
    assert len(long) == 16
    assert long.dropped[0].text == long.text[long.dropped[0].start :]
    assert long.dropped[0].tokens == 40 - (16 - 1 - long.prompt_tokens)
    # A pair that is read together has no prompt.
    assert backend.tokenize(["a cat"], ["a dog"])[0].prompt == ""


def test_equal_vectors_stay_equal_in_any_batch(make: Callable[..., Path]) -> None:
    backend = Backend.load(str(make(*FOLDERS["all joined"])))
    found = backend.embed([TEXTS[1], *TEXTS, TEXTS[1]], token_budget=40)[0, 0]
    torch.testing.assert_close(torch.tensor(found[0]), torch.tensor(found[-1]), rtol=0, atol=1e-5)
