"""The included model's guesses equal plain torch and transformers with the matrices of the file, and are as good as its card says."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer
from transformers.models.bert.modeling_bert import BertLMPredictionHead

from components.errors import ModelError
from components.model.catalog import EMBEDDED_SHA256
from components.model.guesses import included

FIRST, IN_FIRST_FIVE = 27 / 60, 42 / 60  # of the sentences, set before the first training
SETS = {"a": 60, "b": 60, "c": 49}
TEXTS = ("The capital of France is [MASK].", "She drank a cup of [MASK] with milk and two spoons of sugar.")


@pytest.fixture(scope="module")
def plain(embedded):
    """Scores [token, piece] of a text in float64, by transformers alone: the published encoder with W + BA, and the head."""
    folder, weights = embedded.loaded.folder, load_file(included.HEAD)
    encoder = AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()
    for name, matrix in weights.items():
        if name.endswith("lora_A"):
            place = name.removesuffix(".lora_A")
            change = weights[f"{place}.lora_B"].double() @ matrix.double()
            encoder.get_submodule(place).weight.data += change
    head = BertLMPredictionHead(encoder.config).double().eval()
    own = {
        name.removeprefix("cls.predictions."): values.double() for name, values in weights.items() if name[:3] == "cls"
    }
    words = encoder.embeddings.word_embeddings.weight.data
    head.load_state_dict({**own, "decoder.weight": words, "decoder.bias": own["bias"]})
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def scores(text: str) -> torch.Tensor:
        with torch.inference_mode():
            return head(encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state)[0]

    return scores


@pytest.mark.parametrize("text", TEXTS)
def test_guesses_are_those_of_plain_transformers(embedded, plain, text):
    guesses = embedded.guesses(text, k=5)
    best = plain(text).softmax(-1).topk(5)
    np.testing.assert_array_equal(guesses.ids[-1], best.indices.numpy())
    np.testing.assert_allclose(guesses.probabilities[-1], best.values.numpy(), atol=1e-5)


def test_the_encoder_of_the_other_pages_stays_as_it_was(embedded):
    folder = embedded.loaded.folder
    embedded.guesses(TEXTS[0])
    published = AutoModel.from_pretrained(folder).state_dict()
    for name, values in embedded.encoder.state_dict().items():
        assert torch.equal(values, published[name]), name
    with pytest.raises(ModelError, match="no masked-LM head"):
        embedded.trace([TEXTS[0]], mask_logits=True)


@pytest.mark.parametrize("letter", SETS)
def test_it_guesses_as_well_as_its_card_says(embedded, letter):
    """Set a was looked at while it was trained, set b twice, set c when all was done."""
    sentences = json.loads((included.FOLDER / "classroom.json").read_text(encoding="utf-8"))
    vocabulary = embedded.tokenization.vocabulary
    own = [item for item in sentences if item["set"] == letter]
    assert len(own) == SETS[letter]
    found = embedded.guesses_at_masks([item["sentence"] for item in own], k=40)
    ranks = []
    for item, guesses in zip(own, found, strict=True):
        pieces = [vocabulary[number] for number in guesses.ids[-1, 0]]
        whole = [piece for piece in pieces if not piece.startswith(("##", "["))]
        ranks.append(next((rank for rank, piece in enumerate(whole, 1) if piece in item["answers"]), 99))
    first, five = sum(rank == 1 for rank in ranks), sum(rank <= 5 for rank in ranks)
    assert first >= FIRST * len(own)
    assert five >= IN_FIRST_FIVE * len(own)
    measured = included.measured(f"class {letter}")
    assert measured.sentences == len(own)
    assert abs(measured.first - first) <= 1  # a tie on another chip
    assert abs(measured.in_first_five - five) <= 1


def test_its_card_says_that_it_passed_what_was_set_for_running_text():
    """Set before the first training: 15 % of content words among the first five, the lower bound above the trigram's."""
    news = included.card()["measured"]["news"]
    assert news["model"]["n"] == 2000
    assert news["model"]["top5"] >= 0.15
    assert news["model"]["top5_interval"][0] > news["trigram"]["top5"]
    assert included.card()["model_checksum"] == EMBEDDED_SHA256


def test_what_stands_beside_guesses_says_how_good_they_are():
    measured = included.measured(included.CLASSROOM)
    assert f"In {measured.in_first_five} of {measured.sentences} classroom sentences" in included.said()
    assert "BERT base guesses better" in included.said()


@pytest.mark.parametrize("damage", ["missing", "changed", "without a matrix"])
def test_a_damaged_file_is_refused(embedded, tmp_path, monkeypatch, damage):
    folder = tmp_path / "guesses"
    shutil.copytree(included.FOLDER, folder)
    head, card = folder / included.HEAD.name, folder / included.CARD.name
    if damage == "missing":
        head.unlink()
    elif damage == "changed":
        head.write_bytes(head.read_bytes()[:-2] + b"xx")
    else:
        card.unlink()
    monkeypatch.setattr(included, "HEAD", head)
    monkeypatch.setattr(included, "CARD", card)
    included.card.cache_clear()
    try:
        with pytest.raises(ModelError, match="cannot be read"):
            included.masked_lm(embedded.loaded.eager())
    finally:
        monkeypatch.undo()
        included.card.cache_clear()
