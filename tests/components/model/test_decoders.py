"""Decoders that were published for text vectors: those of sentence-transformers, and nothing else of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from components.errors import InputError, ModelError
from components.model.architecture.support import check_supported_file
from components.model.backend import Backend
from tests.support import decoder_models

TEXTS = ["The cat sat on a bank.", "money", "we will walk, walking by the red river!", "in the hat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder_models.save_qwen3(tmp_path_factory.mktemp("qwen3") / "tiny-qwen3")


@pytest.fixture(scope="module")
def backend(folder: Path) -> Backend:
    return Backend.load(str(folder), device_name="cpu")


def normalised(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("role", [None, "query", "document"])
@pytest.mark.parametrize("budget", [16, 4096])  # alone, and together with padding
def test_vectors_are_those_of_sentence_transformers(
    folder: Path, backend: Backend, role: str | None, budget: int
) -> None:
    options = backend.embed_options(precision="float32", role=role)
    assert options.prompt == (decoder_models.PROMPT if role == "query" else "")
    vectors = backend.embed(TEXTS, options=options, token_budget=budget)
    assert vectors.shape == (1, 1, len(TEXTS), 32)
    library = SentenceTransformer(str(folder), device="cpu")
    encode = {None: library.encode, "query": library.encode_query, "document": library.encode_document}[role]
    np.testing.assert_allclose(normalised(vectors[0, 0]), encode(TEXTS), rtol=0, atol=2e-5)


def test_long_texts_are_truncated_as_the_library_does(folder: Path, backend: Backend) -> None:
    long = [("the cat sat on a bank by the river " * 20).strip(), "money"]
    library = SentenceTransformer(str(folder), device="cpu")
    assert library.max_seq_length == backend.own_max_length == 64
    vectors = backend.embed(long, options=backend.embed_options(precision="float32"))
    np.testing.assert_allclose(normalised(vectors[0, 0]), library.encode(long), rtol=0, atol=2e-5)


def test_what_is_offered(backend: Backend) -> None:
    assert backend.structure.offered == ("texts",)
    assert (backend.poolings, backend.own_pooling, list(backend.text_layers)) == (("last",), "last", [3])
    assert backend.not_applied == ()
    assert (backend.facts.layers, backend.facts.heads, backend.facts.max_positions) == (3, 4, 64)
    groups = [part.group for part in backend.parameter_parts]
    assert groups[0] == "Embeddings"
    assert {"Block 0", "Block 1", "Block 2", "After the blocks"} <= set(groups)
    with pytest.raises(InputError, match="not available"):
        backend.embed(TEXTS, layers=[0])
    with pytest.raises(InputError, match="not available"):
        backend.embed(TEXTS, poolings=["mean"])


@pytest.mark.parametrize("what", ["trace", "inside", "tokens", "sample", "inner", "queries", "speeds"])
def test_the_rest_is_refused_with_the_reason(backend: Backend, what: str) -> None:
    work = {
        "trace": lambda: backend.trace(TEXTS),
        "inside": lambda: backend.inside(TEXTS[0]),
        "tokens": lambda: backend.own_token_vectors(TEXTS),
        "sample": lambda: backend.token_vectors(TEXTS),
        "inner": lambda: backend.feed_forward(TEXTS[0]),
        "queries": lambda: backend.queries_and_keys(TEXTS[0], None, 0),
        "speeds": lambda: backend.rotation_speeds(0),
    }[what]
    with pytest.raises(ModelError, match="is a decoder, in which a token sees only those before it"):
        work()


def test_other_decoders_are_refused(folder: Path, tmp_path: Path) -> None:
    plain = shutil.copytree(folder, tmp_path / "plain")
    (plain / "modules.json").unlink()
    shutil.rmtree(plain / "1_Pooling")
    with pytest.raises(ModelError, match="lists last-token pooling"):
        Backend.load(str(plain), device_name="cpu")
    with pytest.raises(ModelError, match="lists last-token pooling"):
        Backend.load(str(decoder_models.save_qwen3(tmp_path / "mean", pooling="mean")), device_name="cpu")
    values = json.loads((folder / "config.json").read_text())
    check_supported_file(values, "x", is_for_texts=True)
    with pytest.raises(ModelError, match="lists last-token pooling"):
        check_supported_file(values, "x")


@pytest.mark.parametrize("kind", [["qwen3"], {"a": 1}, 3])
def test_a_type_that_is_no_text_is_refused(kind: object) -> None:
    with pytest.raises(ModelError):
        check_supported_file({"model_type": kind}, "x")
