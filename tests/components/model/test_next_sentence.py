"""Next-sentence prediction against transformers' own, on a tiny model published with the head."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertForNextSentencePrediction, BertForPreTraining

from components.errors import InputError, ModelError
from components.model.backend import Backend
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.saved_models import save_with_head

TEXTS = ["the cat sat on the bank", "money", "we will walk by the river"]
FOLLOWERS = ["a dog ran", "put the red hat on the bank!", "x"]


@pytest.mark.parametrize("model_class", [BertForPreTraining, BertForNextSentencePrediction])
def test_the_probability_is_that_of_transformers(model_class, tmp_path):
    folder = save_with_head(tmp_path, model_class)
    ours = Backend.load(str(folder), device_name="cpu").next_sentence_probabilities(TEXTS, FOLLOWERS)
    plain = BertForNextSentencePrediction.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoding = tokenizer(TEXTS, FOLLOWERS, padding=True, return_token_type_ids=True, return_tensors="pt")
    with torch.inference_mode():
        expected = plain(**encoding).logits.softmax(dim=-1)[:, 0]  # label 0: the second text is the next sentence
    assert ours.dtype == np.float32
    assert ours.shape == (3,)
    assert_close(ours, expected)
    assert np.ptp(ours) > 0.01


def test_the_encoders_weights_are_read_once(tmp_path):
    backend = Backend.load(str(save_with_head(tmp_path)), device_name="cpu")
    before = backend.forward_passes
    backend.next_sentence_probabilities(TEXTS, FOLLOWERS)
    assert backend.forward_passes == before + 1
    assert sum(part.numel() for part in backend.loaded.next_sentence_head().parameters()) == 2 * 32 + 2
    with pytest.raises(InputError):
        backend.next_sentence_probabilities([" "], ["a"])


def test_models_without_the_head_are_refused(embedded, tiny_folder, tmp_path):
    for backend in (
        embedded,
        *(Backend.load(str(tiny_folder(kind)), device_name="cpu") for kind in ("bert", "roberta")),
    ):
        with pytest.raises(ModelError, match="next-sentence"):
            backend.next_sentence_probabilities(TEXTS, FOLLOWERS)
    masked = Backend.load(str(tiny.save_tiny_masked_lm(tmp_path)), device_name="cpu")  # without the pooler too
    with pytest.raises(ModelError, match="next-sentence"):
        masked.next_sentence_probabilities(TEXTS, FOLLOWERS)


@pytest.mark.parametrize("change", ["incomplete", "shape", "nan"])
def test_a_damaged_head_is_refused(change, tmp_path):
    folder = save_with_head(tmp_path)
    weights = load_file(folder / "model.safetensors")
    if change == "incomplete":
        del weights["cls.seq_relationship.weight"]
    elif change == "shape":
        weights["cls.seq_relationship.weight"] = torch.zeros(3, 32)
    else:
        weights["cls.seq_relationship.bias"] = torch.full((2,), torch.nan)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError):
        Backend.load(str(folder), device_name="cpu").next_sentence_probabilities(TEXTS, FOLLOWERS)
