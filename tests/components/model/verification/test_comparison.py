"""Comparing a model with sentence-transformers: equal ones are called equal, different ones different, others are named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from components import operator_settings
from components.errors import InputError, ModelError
from components.model.backend import Backend
from components.model.verification import comparison, process
from components.model.verification.comparison import TEXTS, VectorDifference, Verification, compared, verify
from tests.support import decoder_models
from tests.support.reference import compare_in_this_process
from tests.support.tiny import dense_module, pooling_module, publish, save_tiny


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    compare_in_this_process(monkeypatch)


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("bert"), tmp_path / "model")


def backend(folder):
    return Backend.load(str(folder), device_name="cpu")


@pytest.mark.parametrize("modules", [None, [pooling_module("cls_token")], [pooling_module(), dense_module(32, 8)]])
def test_a_model_that_is_computed_alike_is_equal(folder, modules):
    if modules is not None:
        publish(folder, *modules)
    result = verify(backend(folder))
    assert result.is_equal is True
    assert 0 < result.largest_difference < 1e-5
    assert result.lowest_cosine == pytest.approx(1)
    assert len(result.differences) == 3 * len(TEXTS)
    assert result.sentence().startswith("Equal to sentence-transformers 6.")
    assert "on this machine (largest difference " in result.sentence()


def test_a_folder_that_is_computed_otherwise_differs(folder):
    """The weights are changed after ours were loaded: nothing but the vectors can show it."""
    publish(folder, pooling_module())
    ours = backend(folder)
    path = folder / "model.safetensors"
    weights = load_file(path)
    generator = torch.Generator().manual_seed(0)
    weights["embeddings.word_embeddings.weight"] += torch.randn(
        weights["embeddings.word_embeddings.weight"].shape, generator=generator
    )
    save_file(weights, path, metadata={"format": "pt"})
    result = verify(ours)
    assert result.is_equal is False
    assert result.largest_difference > 0.01
    assert f"(cosine {result.lowest_cosine:.2f})" in result.sentence()
    assert result.sentence().startswith("Differs from sentence-transformers 6.")
    assert ours.revision in result.report()
    assert "pieces are equal, and the tokens' vectors differ first" in result.report()


def test_a_difference_in_length_alone_is_a_difference(folder):
    """Scaling to length 1 changes no cosine, and every dot product."""
    publish(folder, pooling_module())
    ours = backend(folder)
    listed = json.loads((folder / "modules.json").read_text())
    listed.append({"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})
    (folder / "2_Normalize").mkdir()
    (folder / "modules.json").write_text(json.dumps(listed))
    result = verify(ours)
    assert result.is_equal is False
    assert result.lowest_cosine > 0.99995
    assert "cosine 1.0000" in result.sentence()
    assert "so is the pooling; what follows it differs first" in result.first_step


def test_a_prompt_for_queries_alone_shows(folder):
    publish(folder, pooling_module())
    ours = backend(folder)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "the river bank "}}))
    result = verify(ours)
    assert {item.role for item in result.differences if item.difference > 0.01} == {"query"}
    assert "as a query" in result.report()
    assert "the pieces differ first: " in result.first_step


def test_another_pooling_is_named(folder):
    publish(folder, pooling_module("cls_token"))
    ours = backend(folder)
    (config,) = folder.glob("*_Pooling/config.json")
    config.write_text(json.dumps(pooling_module()[1]))
    result = verify(ours)
    assert "there the mean of all tokens, here the vector of the first token." in result.first_step


@pytest.mark.parametrize(
    ("modules", "prompts"),
    [
        ([pooling_module("weightedmean_tokens")], {}),
        ([pooling_module(include_prompt=False)], {"prompts": {"query": "the river bank "}}),
    ],
)
def test_a_pooling_of_the_models_own_is_not_called_equal_unseen(folder, modules, prompts):
    """The library pools by a plain mean, as one of the poolings that are computed here; the model's own is none of them."""
    publish(folder, *modules)
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    ours = backend(folder)
    assert ours.own_pooling == "own"
    (config,) = folder.glob("*_Pooling/config.json")
    config.write_text(json.dumps(pooling_module()[1]))
    result = verify(ours)
    assert result.is_equal is False
    assert "; the pooling or what follows it differs first." in result.first_step


@pytest.mark.parametrize("case", ["no such pass", "second process", "long text"])
def test_a_model_differs_also_where_the_step_is_not_known(folder, tmp_path, monkeypatch, case):
    if case == "no such pass":
        folder = decoder_models.save_qwen3(tmp_path / "decoder")
    else:
        publish(folder, pooling_module("cls_token"))
    ours = backend(folder)
    (config,) = folder.glob("*_Pooling/config.json")
    config.write_text(json.dumps(pooling_module("cls_token" if case == "no such pass" else "mean_tokens")[1]))
    texts = [TEXTS[0]]
    if case == "long text":
        texts = ["the river bank " * 2_000]
    elif case == "second process":
        computed = comparison.reference_vectors

        def fails_the_second_time(*given, **named):
            if "steps" in named:
                raise ModelError("unsupported", "The library took too long.", "", "")
            return computed(*given, **named)

        monkeypatch.setattr(comparison, "reference_vectors", fails_the_second_time)
    result = verify(ours, texts)
    assert result.is_equal is False
    assert result.largest_difference > 0.01
    assert result.first_step.startswith("Where the two computations part is not known: ")
    assert result.first_step in result.report()


def test_other_sizes_differ_and_padding_does_not():
    vectors = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    assert [item.difference for item in compared(["a", "b"], "", vectors, vectors)] == [0, 0]
    padded = np.pad(vectors, ((0, 0), (0, 4)))
    assert [item.difference for item in compared(["a", "b"], "", vectors, padded)] == [0, 0]
    assert all(np.isinf(item.difference) for item in compared(["a", "b"], "", padded, vectors))
    assert all(np.isinf(item.difference) for item in compared(["a", "b"], "", vectors, padded + 1))
    (of_zero,) = compared(["a"], "", np.zeros((1, 8), np.float32), vectors[:1])
    assert of_zero.difference > 0.1
    (not_finite,) = compared(["a"], "", vectors[:1], np.full((1, 8), np.nan, np.float32))
    assert np.isinf(not_finite.difference)


def test_the_line_says_what_was_found():
    same = Verification("A", "r", "sentence-transformers 6.2.0", (VectorDifference("x", "", 2.2e-7, 1.0),))
    assert same.sentence() == "Equal to sentence-transformers 6.2.0 on this machine (largest difference 2e-7)."
    other = replace(same, differences=(*same.differences, VectorDifference("y", "query", 0.4, 0.873)))
    assert other.sentence() == "Differs from sentence-transformers 6.2.0 (cosine 0.87)."
    assert other.worst.text == "y"
    shorter = replace(same, differences=(VectorDifference("x", "", float("inf"), float("nan")),), sizes=(8, 32))
    assert shorter.sentence() == "Differs from sentence-transformers 6.2.0: its vectors have 8 numbers, here 32."
    assert Verification("A", "r", why_not="A is not compared.").sentence() == "A is not compared."
    assert Verification("A", "r", why_not="A is not compared.").is_equal is None


def test_what_gives_no_vectors_of_texts_is_named(folder, monkeypatch):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForSequenceClassification"]}))
    with pytest.raises(ModelError, match="score pairs"):
        verify(backend(folder))
    (folder / "config.json").write_text(json.dumps(config))
    publish(folder, ("SpladePooling", {"pooling_strategy": "max"}))
    with pytest.raises(ModelError, match="not compared"):
        verify(backend(folder))


def test_a_model_that_is_too_large_to_be_held_twice_says_so(folder, monkeypatch):
    ours = backend(folder)
    monkeypatch.setattr(comparison, "reference_vectors", lambda *_: pytest.fail("it was tried"))
    monkeypatch.setenv("BERT_INTERNALS_MODEL_BYTES", str(2 * ours.nbytes - 1))
    with pytest.raises(ModelError, match="too large to be held twice"):
        verify(ours)
    monkeypatch.delenv("BERT_INTERNALS_MODEL_BYTES")
    monkeypatch.setattr(comparison, "free_memory", lambda: comparison.LIBRARY_BYTES)
    with pytest.raises(ModelError, match="too little memory is free"):
        verify(ours)


def test_the_number_of_texts_is_bounded(folder):
    ours = backend(folder)
    for texts in ([], ["a"] * (comparison.MOST_TEXTS + 1), ["a" * (comparison.MOST_CHARACTERS + 1)]):
        with pytest.raises(InputError, match="texts of at most"):
            verify(ours, texts)


@pytest.mark.rare
def test_the_library_runs_in_a_process_of_its_own(tmp_path: Path):
    folder = publish(save_tiny(tmp_path / "model"), pooling_module())
    ours = backend(folder)
    files = comparison.sources.find_files(ours.spec)
    version, vectors = process.reference_vectors(files, "model", ours.nbytes, TEXTS, comparison.ROLES)
    assert version.startswith("sentence-transformers 6.")
    assert vectors.shape == (3, len(TEXTS), 32)
    assert (
        max(item.difference for item in compared(TEXTS, "", vectors[0], comparison.own_vectors(ours, TEXTS, ""))) < 1e-5
    )
    with pytest.raises(ModelError, match="took more than 0 seconds"):
        process.reference_vectors(files, "model", ours.nbytes, TEXTS, comparison.ROLES, most_seconds=0.01)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"embedding_dimension": 32, "pooling_mode": []}))
    with pytest.raises(ModelError, match="cannot load or run it"):
        process.reference_vectors(files, "model", ours.nbytes, TEXTS, comparison.ROLES)


@pytest.mark.rare
def test_a_process_that_takes_more_memory_than_it_may_ends(tmp_path: Path, monkeypatch):
    folder = publish(save_tiny(tmp_path / "model"), pooling_module())
    ours = backend(folder)
    monkeypatch.setattr(process, "WORKING_MEMORY", 1 << 20)
    with pytest.raises(ModelError, match="not compared"):
        process.reference_vectors(comparison.sources.find_files(ours.spec), "model", 0, TEXTS, comparison.ROLES)


def test_the_librarys_process_gets_what_the_operator_set_and_nothing_that_this_process_set_for_itself(monkeypatch):
    monkeypatch.setattr(operator_settings, "_here_alone", set())
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "7")
    monkeypatch.setenv("GOMP_SPINCOUNT", "10")  # so that it is as before after the test
    monkeypatch.delenv("GOMP_SPINCOUNT")
    for name in ("OPENBLAS_THREAD_TIMEOUT", "GOMP_SPINCOUNT"):
        operator_settings.set_here(name, "10")
    given = process._environment()
    assert given["OPENBLAS_THREAD_TIMEOUT"] == "7"
    assert "GOMP_SPINCOUNT" not in given
    assert given["HF_HUB_OFFLINE"] == "1"
    assert given["CUDA_VISIBLE_DEVICES"] == ""
