"""`predict`: the guesses of plain transformers as JSON; bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from components.command_line.commands import predict
from tests.components.command_line.in_process import run
from tests.support import tiny

TEXT = "the walking [MASK] sat on the [mask] ."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save_masked_lm_of(tmp_path_factory.mktemp("model"), "bert"))


def plain(folder, text, hidden=()):
    """Probabilities [token, piece] by plain transformers, and the ids as typed."""
    tokenizer, whole = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    inputs = tokenizer(text, return_tensors="pt")
    typed = inputs["input_ids"][0].tolist()
    inputs["input_ids"][0, list(hidden)] = tokenizer.mask_token_id
    with torch.inference_mode():
        return whole(**inputs).logits[0].double().softmax(-1), typed, tokenizer


def predictions_of(*arguments: str):
    done = run("predict", *arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result) == ["model", "predictions", "not_applied"]
    for item in result["predictions"]:
        assert list(item) == ["position", "layer", "pieces", "true_rank"]
        assert all(list(guess) == ["piece", "probability"] for guess in item["pieces"])
    return result, done.stderr


def test_masks_are_guessed_as_plain_transformers_do(model):
    result, noted = predictions_of(TEXT, "--model", model, "-k", "3")
    assert result["model"] == model
    assert "by itself" in noted
    assert [(item["position"], item["layer"]) for item in result["predictions"]] == [(4, 3), (8, 3)]
    probabilities, _, tokenizer = plain(model, TEXT.replace("[mask]", "[MASK]"))
    for item in result["predictions"]:
        best = probabilities[item["position"]].topk(3)
        assert [guess["piece"] for guess in item["pieces"]] == tokenizer.convert_ids_to_tokens(best.indices.tolist())
        assert [guess["probability"] for guess in item["pieces"]] == pytest.approx(best.values.tolist(), abs=1e-5)
        assert item["true_rank"] is None


def test_without_a_mask_every_token_is_hidden_in_turn(model):
    result, noted = predictions_of("the walking cat", "--model", model)
    assert noted == ""
    assert [item["position"] for item in result["predictions"]] == [1, 2, 3, 4]
    for item in result["predictions"]:
        position = item["position"]
        probabilities, typed, _ = plain(model, "the walking cat", (position,))
        at = probabilities[position]
        assert item["true_rank"] == int((at >= at[typed[position]]).sum())
        assert item["pieces"][0]["probability"] == pytest.approx(float(at.max()), abs=1e-5)
        assert len(item["pieces"]) == 5


def test_all_layers(model):
    result, _ = predictions_of("the [MASK] sat", "--model", model, "--layers", "all")
    assert [(item["position"], item["layer"]) for item in result["predictions"]] == [(2, layer) for layer in range(4)]
    result, _ = predictions_of("the cat", "--model", model, "--layers", "all", "-k", "1")
    assert [(item["position"], item["layer"]) for item in result["predictions"]] == [
        (position, layer) for position in (1, 2) for layer in range(4)
    ]


def test_people_get_lines_and_a_file(model, tmp_path):
    target = tmp_path / "guesses.json"
    done = run("predict", "the cat", "--model", model, "-k", "2", "--json", str(target))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("the (position 1), layer 3, itself in place ")
    first = json.loads(target.read_text())["predictions"][0]["pieces"][0]
    assert lines[1].split() == [f"{first['probability']:.4f}", first["piece"]]
    done = run("predict", "the [MASK]", "--model", model)
    assert done.stdout.splitlines()[0] == "[MASK] (position 2), layer 3:"


def test_what_is_truncated_is_said(model):
    done = run("predict", "the cat sat on", "--model", model, "--max-length", "4")
    assert "2 tokens of the text are truncated." in done.stderr


def test_ids_beyond_the_vocabulary_have_an_empty_piece(tmp_path):
    folder = str(tiny.save_masked_lm_of(tmp_path, "bert", rows=64))
    result, _ = predictions_of("the [MASK]", "--model", folder, "-k", "64")
    pieces = [guess["piece"] for guess in result["predictions"][0]["pieces"]]
    assert len(pieces) == 64
    assert pieces.count("") == 64 - len(tiny.tiny_tokenizer("bert"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((" ",), "no word"),
        (("the cat", "-k", "0"), "-k is 0"),
        (("the cat", "-k", "1001"), "-k is 1001"),
        (("the cat", "-k", "one"), "-k"),
        (("the cat", "--layers", "3"), "--layers 3 is not possible"),
        (("the cat", "--max-length", "1"), "outside this model's range"),
        (("the cat", "--model", "/there/is/no/such/folder"), "/there/is/no/such/folder"),
        ((), "TEXT"),
    ],
)
def test_bad_input_is_one_line_and_status_2(model, arguments, said):
    named = () if "--model" in arguments else ("--model", model)
    done = run("predict", *arguments, *named)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_a_model_without_a_head_names_those_that_have_one(tmp_path):
    done = run("predict", "the [MASK]", "--model", str(tiny.save_tiny(tmp_path)))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "without a masked-LM head" in done.stderr
    assert "BERT base (--model google-bert/bert-base-uncased)" in done.stderr


def test_the_default_is_chosen_in_one_place(model, monkeypatch):
    monkeypatch.setattr(predict, "default_model", lambda: model)
    result, _ = predictions_of("the [MASK]")
    assert Path(result["model"]) == Path(model)
