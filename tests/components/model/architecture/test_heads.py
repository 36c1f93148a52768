"""The heads of the newer families: a masked-LM head and a scoring head give the numbers of plain transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer

from components.errors import ModelError
from components.model.backend import Backend
from tests.support import tiny

WITH_PIECES = ("ernie", "albert", "modernbert", "deberta-v2", "nomic_bert", "eurobert")  # and BERT's special tokens


def saved(folder, family, auto):
    """A tiny model with a seeded head, and the folder that it is saved in."""
    model, tokenizer = tiny.tiny_model(family)
    torch.manual_seed(3)
    model.config.num_labels = 1
    whole = auto.from_config(model.config).eval()
    for parameter in whole.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    whole.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return auto.from_pretrained(folder, attn_implementation="eager").eval()


@pytest.mark.parametrize("family", WITH_PIECES)
def test_mask_logits_are_those_of_the_published_head(family, tmp_path):
    plain = saved(tmp_path, family, AutoModelForMaskedLM)
    backend = Backend.load(str(tmp_path), device_name="cpu")
    assert backend.spec.masked_lm
    texts = ["the [MASK] sat on the [MASK] .", "a dog"]
    trace = backend.trace(texts, mask_logits=True)
    encoding = AutoTokenizer.from_pretrained(tmp_path)(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        output = plain(**{name: encoding[name] for name in ("input_ids", "attention_mask")}, output_hidden_states=True)
    places = [tuple(place) for place in (encoding["input_ids"] == 4).nonzero().tolist()]
    assert trace.mask_logits.positions == tuple(places)
    expected = torch.stack([output.logits[place] for place in places]).numpy()
    np.testing.assert_allclose(trace.mask_logits.logits, expected, atol=2e-5 * np.abs(expected).max())
    assert (trace.pooler_output is None) == (not backend.has_pooler)
    if trace.pooler_output is not None:
        assert trace.pooler_output.shape == (2, 32)


@pytest.mark.parametrize("family", [family for family in WITH_PIECES if family != "nomic_bert"])
def test_a_pair_s_score_is_that_of_the_published_head(family, tmp_path):
    plain = saved(tmp_path, family, AutoModelForSequenceClassification)
    backend = Backend.load(str(tmp_path), device_name="cpu")
    assert backend.is_cross_encoder
    (sentence,) = backend.tokenize(["the cat sat"], ["on a bank"])
    ids, mask, segments = backend.loaded.tokenization.arrays([sentence])
    with torch.inference_mode():
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if segments is not None and backend.loaded.tokenization.gives_segments:
            inputs["token_type_ids"] = torch.from_numpy(segments)
        expected = float(plain(**inputs).logits[0, 0])
    assert float(backend.pair_logits(["the cat sat"], ["on a bank"])[0, 0]) == pytest.approx(expected, abs=1e-4)


def test_nomic_bert_s_scoring_head_is_refused(tmp_path):
    """It reads a pooler that the library leaves out of the encoder."""
    saved(tmp_path, "nomic_bert", AutoModelForSequenceClassification)
    with pytest.raises(ModelError, match="no head that scores"):
        Backend.load(str(tmp_path), device_name="cpu").pair_logits(["a"], ["b"])
