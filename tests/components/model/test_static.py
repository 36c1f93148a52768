"""Static models: the vectors of sentence-transformers' own class, in both formats, and what such a model does not have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from components.errors import InputError, ModelError
from components.model.backend import Backend
from components.model.files.static_files import static_folder
from tests.support import static_models, tiny
from tests.support.closeness import assert_close

TEXTS = ["The cat sat on a bank.", "money", "we will walk, walking by the red river!", "zebra"]  # the last: only [UNK]


def model2vec(folder: Path) -> Path:
    return static_models.save_model2vec(folder)


def shared_and_weighted(folder: Path) -> Path:
    return static_models.save_model2vec(folder, is_shared=True, is_weighted=True)


def by_the_library(folder: Path) -> Path:
    """As this version of sentence-transformers saves it: the table in the model's own folder, without a config.json."""
    table = torch.randn(len(tiny.wordpiece_tokenizer()), 16, generator=torch.Generator().manual_seed(3))
    SentenceTransformer(modules=[StaticEmbedding(tiny.wordpiece_tokenizer(), table)], device="cpu").save(str(folder))
    return folder


FORMATS = [model2vec, shared_and_weighted, static_models.save_static_embedding, by_the_library]


def reference(folder: Path) -> SentenceTransformer:
    part = static_folder(folder)
    assert part is not None
    return SentenceTransformer(modules=[StaticEmbedding.load(str(part))], device="cpu")


@pytest.mark.parametrize("save", FORMATS)
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path, save: Callable[[Path], Path]) -> None:
    folder = save(tmp_path / "model")
    backend = Backend.load(str(folder), device_name="cpu")
    vectors = backend.embed(TEXTS)
    assert vectors.shape == (1, 1, len(TEXTS), 16)
    expected = reference(folder).encode(TEXTS)
    assert_close(vectors[0, 0], expected)
    trace = backend.trace(TEXTS)
    for row, sentence in enumerate(trace.sentences):
        assert not any(token.special for token in sentence.tokens)
        mean = trace.hidden_states[0, row, : len(sentence)].mean(axis=0)
        assert_close(mean, expected[row])


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("save", FORMATS)
def test_a_tokenizer_that_cuts_cuts_here_too(tmp_path: Path, save: Callable[[Path], Path], side: str) -> None:
    folder = save(tmp_path / "model")
    part = static_folder(folder)
    assert part is not None
    path = part / "tokenizer.json"
    cut = {"direction": side.title(), "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"truncation": cut}))
    backend = Backend.load(str(folder), device_name="cpu")
    assert_close(backend.embed(TEXTS)[0, 0], reference(folder).encode(TEXTS))
    assert backend.own_max_length == 4
    assert backend.tokenize([TEXTS[2]])[0].dropped


def test_what_a_static_model_is(tmp_path: Path) -> None:
    backend = Backend.load(str(model2vec(tmp_path)), device_name="cpu")
    assert (backend.facts.layers, backend.facts.heads, backend.facts.hidden_size) == (0, 0, 16)
    assert backend.facts.parameters == len(tiny.wordpiece_tokenizer()) * 16
    assert [(part.group, part.part) for part in backend.parameter_parts] == [("Embeddings", "word")]
    assert backend.structure.offered == ("tokens", "texts")
    assert (backend.poolings, backend.own_pooling, backend.not_applied) == (("mean",), "mean", ())
    assert backend.embed_options(precision="auto").precision == "float32"
    # The same word has the same vector in every sentence: nothing has read the others.
    first, second = backend.trace(["the bank", "money in the bank ."]).hidden_states[0]
    assert np.array_equal(first[1], second[3])


@pytest.mark.parametrize("what", ["inner", "queries", "speeds"])
def test_what_blocks_do_is_refused_with_the_reason(tmp_path: Path, what: str) -> None:
    backend = Backend.load(str(model2vec(tmp_path)), device_name="cpu")
    work = {
        "inner": lambda: backend.feed_forward(TEXTS[0]),
        "queries": lambda: backend.queries_and_keys(TEXTS[0], None, 0),
        "speeds": lambda: backend.rotation_speeds(0),
    }[what]
    with pytest.raises(ModelError, match="has no blocks"):
        work()


def test_a_layer_of_dense_after_the_mean_is_applied(tmp_path: Path) -> None:
    folder = static_models.save_static_embedding(tmp_path)
    numbers = torch.Generator().manual_seed(1)
    (folder / "1_Dense").mkdir()
    config = {
        "in_features": 16,
        "out_features": 8,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    (folder / "1_Dense" / "config.json").write_text(json.dumps(config))
    weights = {"linear.weight": torch.randn(8, 16, generator=numbers), "linear.bias": torch.randn(8, generator=numbers)}
    save_file(weights, folder / "1_Dense" / "model.safetensors")
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 1, "name": "1", "path": "1_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    backend = Backend.load(str(folder), device_name="cpu")
    assert (backend.poolings, backend.own_pooling, backend.not_applied) == (("mean", "own"), "own", ())
    own = backend.embed(TEXTS, poolings=["own"])[0, 0, :, :8]
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert_close(own, expected)


def test_a_text_without_a_token(tmp_path: Path) -> None:
    folder = model2vec(tmp_path)
    backend = Backend.load(str(folder), device_name="cpu")
    vectors = backend.embed(["the cat", "\u200b", "a dog"])[0, 0]
    assert not vectors[1].any()
    assert_close(vectors, reference(folder).encode(["the cat", "\u200b", "a dog"]))
    assert [len(item) for item in backend.own_token_vectors(["the cat", "\u200b"])] == [2, 0]
    with pytest.raises(InputError, match="Sentence 2 has no token"):
        backend.trace(["the cat", "\u200b"])


@pytest.mark.parametrize("what", ["attentions", "inside", "words", "gradient", "activations"])
def test_what_needs_blocks_is_refused(tmp_path: Path, what: str) -> None:
    backend = Backend.load(str(model2vec(tmp_path)), device_name="cpu")
    sentence = backend.tokenize(["the cat"])[0]
    work = {
        "attentions": lambda: backend.trace(["the cat"], attentions=True),
        "inside": lambda: backend.inside("the cat"),
        "words": lambda: backend.path_products(sentence, "mean", 0, "mean"),
        "gradient": lambda: backend.gradient_times_input(sentence, np.ones(16, np.float32), 0, "mean"),
        "activations": lambda: backend.activations(sentence),
    }[what]
    with pytest.raises(ModelError, match="has no blocks"):
        work()


def test_token_vectors_of_a_corpus(tmp_path: Path) -> None:
    backend = Backend.load(str(model2vec(tmp_path)), device_name="cpu")
    found = backend.token_vectors(["the bank", "a river bank"], word="bank")
    assert found.layers == (0,)
    assert [token.sentence for token in found.tokens] == [0, 1]
    row = backend.tokenization.vocabulary.index("bank")
    np.testing.assert_allclose(found.vectors[0, 1], backend.word_embeddings()[row], atol=1e-2)


def _without(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"other": tensors["embeddings"]}


def _short(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"embeddings": tensors["embeddings"][:5].clone()}


def _not_finite(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"embeddings": torch.full_like(tensors["embeddings"], torch.nan)}


def _beyond(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return tensors | {"mapping": torch.full((len(tensors["embeddings"]),), 1_000)}


def _multiplied(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A file of some MB with a table of 40 GB."""
    return {"embeddings": torch.zeros(1, 10_000), "mapping": torch.zeros(1_000_000, dtype=torch.int8)}


def _weighted(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same by factors, which one row would be multiplied by."""
    return {"embeddings": torch.zeros(1, 10_000), "weights": torch.zeros(1_000_000, dtype=torch.float16)}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        *((_without, "damaged"), (_short, "unsupported"), (_not_finite, "damaged"), (_beyond, "damaged")),
        *((_multiplied, "damaged"), (_weighted, "damaged")),
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, change: Callable[..., dict[str, torch.Tensor]], kind: str) -> None:
    folder = model2vec(tmp_path)
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        Backend.load(str(folder), device_name="cpu")
    assert caught.value.kind == kind


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_only_safetensors_are_read(tmp_path: Path, name: str) -> None:
    folder = model2vec(tmp_path)
    shutil.move(folder / name, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="lacks the table or the tokenizer"):
        Backend.load(str(folder), device_name="cpu")
