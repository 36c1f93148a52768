"""What a model was published with and is not applied, and what a cross-encoder is, told by files as they are published."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from components.errors import ModelError
from components.model.backend import Backend
from components.model.files.published import is_inside, read_modules
from components.model.files.sentence_config import read_sentence_config
from components.model.files.sources import ModelFiles
from components.model.not_applied import is_cross_encoder
from components.model.verification.comparison import own_vectors
from components.model.verification.published_copy import published_copy
from tests.support.tiny import dense_module, pooling_module, publish

MEAN = pooling_module()


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("bert"), tmp_path / "model")


def loaded(folder):
    return Backend.load(str(folder), device_name="cpu")


def set_config(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_nothing_is_said_of_models_that_are_applied_in_full(embedded, tiny_folder, folder):
    assert embedded.not_applied == ()
    assert not embedded.is_cross_encoder
    assert loaded(tiny_folder("bert")).not_applied == ()
    publish(folder, pooling_module("cls_token"), ("Normalize", {}))
    assert loaded(folder).not_applied == ()
    assert loaded(folder).own_pooling == "cls"


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ([("Pooling", {"pooling_mode": "something new"})], ["something new", "mean"]),
        ([MEAN, MEAN], ["pools twice", "mean"]),
        ([MEAN, ("Whitening", {"dimension": 32})], ["Whitening", "mean"]),
        ([MEAN, ("LayerNorm", {"dimension": 16})], ["no LayerNorm for 32 numbers", "mean"]),
        ([MEAN, ("SparseAutoEncoder", {"k": 4})], ["SparseAutoEncoder", "mean"]),
        ([dense_module(32, 16), pooling_module(size=16), dense_module(32, 8)], ["turns 32 numbers", "mean"]),
        ([("SpladePooling", {"pooling_strategy": "max"})], ["SPLADE", "not applied"]),
        ([dense_module(32, 8, "Identity", bias=False)], ["ColBERT", "token by token"]),
    ],
)
def test_what_is_not_applied_is_said_in_one_sentence(folder, modules, words):
    publish(folder, *modules)
    backend = loaded(folder)
    (sentence,) = backend.not_applied
    assert sentence.startswith("It")
    assert sentence.endswith(".")
    assert "not applied" in sentence
    assert [word for word in words if word not in sentence] == []
    assert backend.loaded.head is None
    assert backend.own_pooling == "mean"
    assert backend.poolings == ("mean", "cls", "max")


def test_prompts_that_no_library_uses_are_named(folder):
    publish(folder, MEAN)
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"passage": "p : ", "query": "q : "}, "default_prompt_name": "nowhere"})
    )
    missing, unused = loaded(folder).not_applied
    assert "“nowhere”" in missing
    assert "“passage”" in unused
    assert "“document”" in unused


def test_a_late_interaction_model_by_its_architecture_its_library_or_its_kind(folder, tiny_folder, tmp_path):
    set_config(folder, architectures=["HF_ColBERT"])
    other = publish(shutil.copytree(tiny_folder("bert"), tmp_path / "b"), dense_module(32, 8), library="pylate.models")
    third = shutil.copytree(tiny_folder("bert"), tmp_path / "c")
    (third / "config_sentence_transformers.json").write_text('{"model_type": "MultiVectorEncoder"}')
    for place in (folder, other, third):
        (sentence,) = loaded(place).not_applied
        assert "late-interaction" in sentence


def test_a_sparse_model_by_its_first_module_or_its_kind(folder, tiny_folder, tmp_path):
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.x.MLMTransformer", "path": ""}]))
    other = shutil.copytree(tiny_folder("bert"), tmp_path / "b")
    (other / "config_sentence_transformers.json").write_text('{"model_type": "SparseEncoder"}')
    for place in (folder, other):
        (sentence,) = loaded(place).not_applied
        assert "SPLADE" in sentence


def test_a_cross_encoder_by_its_architecture_its_kind_or_its_collection(folder, tiny_folder, tmp_path):
    set_config(folder, architectures=["BertForSequenceClassification"])
    assert loaded(folder).is_cross_encoder
    other = shutil.copytree(tiny_folder("bert"), tmp_path / "b")
    assert not loaded(other).is_cross_encoder
    (other / "config_sentence_transformers.json").write_text('{"model_type": "CrossEncoder"}')
    assert loaded(other).is_cross_encoder
    set_config(other, architectures=["BertForSequenceClassification"])
    (other / "config_sentence_transformers.json").unlink()
    publish(other, MEAN, ("Normalize", {}))  # the name is left over from what the encoder was before
    assert not loaded(other).is_cross_encoder
    assert is_cross_encoder("cross-encoder/ms-marco-MiniLM-L6-v2", object(), "")
    assert not is_cross_encoder("google-bert/bert-base-uncased", object(), "")


def test_an_activation_that_is_not_of_torch_is_tanh_as_in_the_library(folder):
    kind, config = dense_module(32, 8)
    publish(folder, MEAN, (kind, config | {"activation_function": "transformers.activations.GELUActivation"}))
    texts = ["the cat sat on the bank", "a dog"]
    theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
    backend = loaded(folder)
    assert backend.not_applied == ()
    np.testing.assert_allclose(own_vectors(backend, texts, ""), theirs, atol=1e-5)
    with published_copy(ModelFiles(folder, "r"), "model") as copy:
        assert "activation_function" not in json.loads((copy / "2_Dense" / "config.json").read_text())
        np.testing.assert_allclose(SentenceTransformer(str(copy), device="cpu").encode(texts), theirs, atol=1e-6)


@pytest.mark.parametrize("has_root", [True, False])
@pytest.mark.parametrize("kind", ["BERT", "RoBERTa", "Transformer"])
def test_an_encoder_in_a_folder_of_its_own_is_refused_with_that_reason(folder, kind, has_root):
    """Another encoder beside the list is not used in its place."""
    publish(folder, MEAN)
    shutil.copytree(folder, folder / "0_Old", ignore=shutil.ignore_patterns("0_Old", "1_Pooling", "modules.json"))
    listed = json.loads((folder / "modules.json").read_text())
    listed[0] |= {"path": "0_Old", "type": f"sentence_transformers.models.{kind}"}
    (folder / "modules.json").write_text(json.dumps(listed))
    if not has_root:
        for file in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            (folder / file).unlink()
    with pytest.raises(ModelError, match="in its folder 0_Old"):
        loaded(folder)


@pytest.mark.parametrize("content", ["{", "{}", "[1, null]", '[{"type": 3, "path": 4}]', '[{"path": "/etc"}]'])
def test_a_list_of_modules_that_makes_no_sense_does_no_harm(folder, content):
    (folder / "modules.json").write_text(content)
    read_modules(folder)
    assert read_sentence_config(folder).pooling is None
    if content == "[1, null]":  # no module at all
        loaded(folder)
        return
    with pytest.raises(ModelError, match=r"cannot be (read|used)|without a class"):
        loaded(folder)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "..\\x", "C:\\x"])
def test_paths_that_leave_the_folder(path):
    assert not is_inside(path)
    assert is_inside("2_Dense")
