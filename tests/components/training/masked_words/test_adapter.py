"""The forward pass of training equals transformers' BertForMaskedLM with the merged weights; what is saved comes back."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertForMaskedLM

from components.training.masked_words import adapter
from tests.support.masked_words import random_head, tiny_encoder

PIECES = torch.tensor([[2, 5, 6, 4, 8, 9, 3], [2, 7, 4, 3, 0, 0, 0]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoder")


@pytest.fixture(scope="module")
def model(folder):
    return random_head(tiny_encoder(folder))


def merged(folder, trained):
    """transformers' own model with W + B A in place of each W, and the head."""
    plain = BertForMaskedLM.from_pretrained(folder).eval()
    values = plain.state_dict()
    for name, value in trained.items():
        if name.endswith(".lora_A"):
            dense = name.removesuffix(".lora_A")
            values[f"bert.{dense}.weight"] += trained[f"{dense}.lora_B"] @ value
        elif not name.endswith(".lora_B"):
            values[name].copy_(value)
    plain.load_state_dict(values)
    return plain


def test_it_equals_transformers(folder, model):
    is_text = PIECES != 0
    with torch.no_grad():
        expected = merged(folder, model.trained)(PIECES, attention_mask=is_text.long()).logits[is_text]
        found = model.scores(model.last_layer(PIECES, is_text))[is_text]
        alone = model.scores(model.last_layer(PIECES[:1], None))[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(alone, expected[:7], atol=1e-5, rtol=1e-5)
    assert float(expected.std()) > 0.1


def test_bfloat16_is_near(model):
    with torch.no_grad():
        exact = model.scores(model.last_layer(PIECES, PIECES != 0))
        rough = model.scores(model.last_layer(PIECES, PIECES != 0, torch.bfloat16)).float()
    assert rough.dtype == torch.float32
    assert float((exact - rough)[0].abs().max()) < 0.1 * float(exact[0].std()) + 0.2


def test_training_begins_with_the_encoder_itself(folder, model):
    values = adapter.first_values(model.encoder, 2, torch.full((len(model.encoder.word_vectors),), -3.0), seed=1)
    begun = adapter.MaskedWordModel(model.encoder, values)
    plain = BertForMaskedLM.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = plain.bert(PIECES[:1]).last_hidden_state
        torch.testing.assert_close(begun.last_layer(PIECES[:1], None), expected, atol=1e-5, rtol=1e-5)
    assert begun.rank == 2
    assert set(values["cls.predictions.bias"].tolist()) == {-3.0}


def test_a_saved_head_comes_back(tmp_path, model):
    path = tmp_path / "head.safetensors"
    adapter.save_head(path, model)
    tensors = load_file(path)
    assert {value.dtype for value in tensors.values()} == {torch.float16}
    size, pieces = model.encoder.word_vectors.shape[1], len(model.encoder.word_vectors)
    expected = {f"cls.predictions.{name}": shape for name, shape in head_shapes(size, pieces).items()}
    inner = model.encoder.tensors["encoder.layer.0.intermediate.dense.weight"].shape[0]
    for block in range(3):
        for matrix in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            expected[f"encoder.layer.{block}.{matrix}.lora_A"] = (3, size)
            expected[f"encoder.layer.{block}.{matrix}.lora_B"] = (size, 3)
        for matrix, (out, into) in {"intermediate.dense": (inner, size), "output.dense": (size, inner)}.items():
            expected[f"encoder.layer.{block}.{matrix}.lora_A"] = (3, into)
            expected[f"encoder.layer.{block}.{matrix}.lora_B"] = (out, 3)
    assert {name: tuple(value.shape) for name, value in tensors.items()} == expected
    again, rounded = adapter.read_head(path, model.encoder), model.rounded()
    assert all(torch.equal(again.trained[name], value) for name, value in rounded.trained.items())
    assert all((again.trained[name] - value).abs().max() < 2e-3 for name, value in model.trained.items())


def head_shapes(size, pieces):
    """The shapes of the head's tensors."""
    return {
        "transform.dense.weight": (size, size),
        "transform.dense.bias": (size,),
        "transform.LayerNorm.weight": (size,),
        "transform.LayerNorm.bias": (size,),
        "bias": (pieces,),
    }
