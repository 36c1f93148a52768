"""Adapters beside weights: the numbers are those of peft's own merging, and the weights shown are those applied."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForMaskedLM

from components.errors import ModelError
from components.model.backend import Backend
from components.model.files.encoder.adapter import read_adapter
from tests.support import tiny

TEXTS = ["the cat sat on the red hat", "we will put money in the bank"]
ALL_LINEAR = ["query", "key", "value", "dense"]
KINDS: dict[str, dict[str, Any]] = {
    "queries and values": {"target_modules": ["query", "value"]},
    "every linear layer": {"target_modules": ALL_LINEAR},
    "rank-stabilised": {"target_modules": ["query"], "use_rslora": True},
    "weight-decomposed": {"target_modules": ["query", "dense"], "use_dora": True},
    "its own scale for one": {
        "target_modules": ["query", "value"],
        "alpha_pattern": {"layer.1.attention.self.query": 3},
    },
    "its own rank for one": {"target_modules": ["query", "value"], "rank_pattern": {"value": 2}},
    "biases too": {"target_modules": ["query"], "bias": "lora_only"},
    "all biases": {"target_modules": ["query"], "bias": "all"},
    "a norm trained whole": {"target_modules": ["query"], "modules_to_save": ["attention.output.LayerNorm"]},
    "a table of vectors": {"target_modules": ["query", "word_embeddings"]},
}


def without_pooler(folder: Path, architecture: str = "bert") -> Path:
    tiny.save_tiny(folder, architecture)
    weights = {name: value for name, value in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def with_adapter(base: Path, kind: dict[str, Any], folder: Path) -> tuple[Path, Any]:
    """The folder of a base with a seeded adapter beside it, and the model that peft merges."""
    torch.manual_seed(3)
    model = get_peft_model(AutoModel.from_pretrained(base), LoraConfig(r=4, lora_alpha=16, **kind))
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            with torch.no_grad():
                parameter += (
                    0.3 * torch.randn(parameter.shape) if "magnitude" not in name else torch.rand(parameter.shape)
                )
    model.save_pretrained(str(folder / "adapter"))
    shutil.copytree(base, folder, dirs_exist_ok=True)
    for path in (folder / "adapter").iterdir():
        shutil.copy(path, folder / path.name)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "somebody/another"}))
    merged = PeftModel.from_pretrained(AutoModel.from_pretrained(base), str(folder / "adapter")).merge_and_unload()
    return folder, merged.eval()


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_are_those_that_peft_merges(kind: str, tmp_path: Path) -> None:
    folder, merged = with_adapter(without_pooler(tmp_path / "base"), KINDS[kind], tmp_path / "with")
    own = Backend.load(str(folder), device_name="cpu")
    plain = Backend.load(str(tmp_path / "base"), device_name="cpu")
    names = {name for name, _ in own.encoder.named_parameters()}
    assert names == {name for name, _ in plain.encoder.named_parameters()}
    for name in names:
        torch.testing.assert_close(own.encoder.get_parameter(name), merged.get_parameter(name), atol=1e-5, rtol=1e-5)
    assert not own.has_pooler
    assert ["use_dora" in said for said in own.not_applied] == [True] * (
        kind == "weight-decomposed"
    )  # the library differs
    assert own.revision != plain.revision
    assert np.abs(own.embed(TEXTS) - plain.embed(TEXTS)).max() > 0.01


@pytest.mark.parametrize("architecture", ["distilbert", "roberta", "modernbert", "eurobert"])
def test_other_families(architecture: str, tmp_path: Path) -> None:
    folder, merged = with_adapter(
        tiny.save_tiny(tmp_path / "base", architecture), {"target_modules": "all-linear"}, tmp_path / "with"
    )
    own = Backend.load(str(folder), device_name="cpu")
    for name, parameter in own.encoder.named_parameters():
        torch.testing.assert_close(parameter, merged.get_parameter(name), atol=1e-5, rtol=1e-5)


def test_every_page_shows_the_sum(tmp_path: Path) -> None:
    """Head shares, norm-based attention, traces and bulk vectors of more than a thousand tokens are of the same weights."""
    folder, merged = with_adapter(without_pooler(tmp_path / "base"), KINDS["every linear layer"], tmp_path / "with")
    merged.pooler = None
    shutil.copytree(tmp_path / "base", tmp_path / "merged")
    merged.save_pretrained(tmp_path / "merged")
    own, other = (Backend.load(str(place), device_name="cpu") for place in (folder, tmp_path / "merged"))
    ours, theirs = own.inside(TEXTS[0]), other.inside(TEXTS[0])
    np.testing.assert_allclose(ours.projection.weights, theirs.projection.weights, atol=1e-5)
    np.testing.assert_allclose(ours.value_norms, theirs.value_norms, rtol=1e-4)
    np.testing.assert_allclose(ours.hidden_states, theirs.hidden_states, atol=1e-4)
    many = [f"{text} {word}" for text in TEXTS for word in tiny.WORDS] * 3
    np.testing.assert_allclose(own.embed(many), other.embed(many), atol=1e-4)
    np.testing.assert_allclose(own.trace(TEXTS).hidden_states, other.trace(TEXTS).hidden_states, atol=1e-4)


def test_the_head_that_guesses_words_is_changed_too(tmp_path: Path) -> None:
    base = tiny.save_tiny_masked_lm(tmp_path / "base")
    torch.manual_seed(4)
    model = get_peft_model(AutoModelForMaskedLM.from_pretrained(base), LoraConfig(r=4, target_modules=["dense"]))
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(str(tmp_path / "adapter"))
    shutil.copytree(tmp_path / "adapter", base, dirs_exist_ok=True)
    merged = model.merge_and_unload().eval()
    own = Backend.load(str(base), device_name="cpu").loaded.masked_lm()
    for name, parameter in merged.named_parameters():
        torch.testing.assert_close(own.get_parameter(name), parameter, atol=1e-5, rtol=1e-5)


def test_a_pickle_is_refused_by_name(tmp_path: Path) -> None:
    folder, _ = with_adapter(without_pooler(tmp_path / "base"), KINDS["queries and values"], tmp_path / "with")
    torch.save(load_file(folder / "adapter_model.safetensors"), folder / "adapter_model.bin")
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"adapter of with is a pickle \(adapter_model.bin\)"):
        Backend.load(str(folder), device_name="cpu")
    (folder / "adapter_model.bin").unlink()
    with pytest.raises(ModelError, match="but not the adapter"):
        Backend.load(str(folder), device_name="cpu")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"peft_type": "IA3"}, "of the kind IA3"),
        ({"use_qalora": True}, "it sets use_qalora"),
        ({"target_parameters": ["a"]}, "it sets target_parameters"),
        ({"init_lora_weights": "pissa"}, "changed base weights"),
        ({"rank_pattern": {"(a+)+": 2}}, "more than names"),
        ({"use_dora": True}, "lengths of the rows"),
        ({"r": 8}, "its rank"),
        ({"target_modules": ["key"]}, "target_modules do not name"),
        ({"lora_alpha": "x"}, "lora_alpha can be"),
    ],
)
def test_another_kind_is_refused_with_the_reason(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    folder, _ = with_adapter(without_pooler(tmp_path / "base"), KINDS["queries and values"], tmp_path / "with")
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=expected):
        read_adapter(folder, "x")
