"""Scores of a cross-encoder against sentence-transformers' own, and the included one against peft's merge."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification

from components.errors import InputError, ModelError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, catalog_spec
from components.model.embedding import embedder, pair_scores
from components.model.files import sources
from components.model.files.encoder.adapter import read_adapter
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.processors import packs_bfloat16
from tests.support.saved_models import save_cross_encoder

KINDS = ("bert", "bert with segments", "electra", "roberta", "distilbert", "mpnet")
QUERIES = ["the cat sat on the bank", "money", "a red hat", "you will walk by the river, we will run", "x", ""]
DOCUMENTS = ["a cat on a river bank", "put money in the bank!", "the cat ran", "walking " * 70, "the dog é 你", "hat"]


@pytest.fixture(scope="module", params=KINDS)
def scorers(request, tmp_path_factory):
    from sentence_transformers import CrossEncoder

    folder = save_cross_encoder(tmp_path_factory.mktemp(request.param), request.param)
    return Backend.load(str(folder), device_name="cpu"), CrossEncoder(str(folder), device="cpu", local_files_only=True)


@pytest.fixture(scope="module")
def included():
    return Backend.load(EMBEDDED_CROSS_ENCODER_KEY, device_name="cpu")


def exact_scores(theirs, queries, documents):
    """The library's logits, computed in float64: its float32 ones differ from these by up to 1e-5 themselves."""
    theirs.model.double()
    try:
        return theirs.predict(list(zip(queries, documents, strict=True)), activation_fn=torch.nn.Identity())
    finally:
        theirs.model.float()


def test_scores_are_those_of_sentence_transformers(scorers):
    ours, theirs = scorers
    assert ours.is_cross_encoder
    expected = exact_scores(theirs, QUERIES, DOCUMENTS)
    scores = ours.score_pairs(QUERIES, DOCUMENTS)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-5)
    assert np.ptp(scores) > 0.1
    # One pair at a time, without padding.
    np.testing.assert_allclose(ours.score_pairs(QUERIES, DOCUMENTS, token_budget=1), expected, rtol=1e-6, atol=1e-5)


def test_each_pair_keeps_its_score_beyond_the_first_block(included, monkeypatch):
    whole = included.score_pairs(QUERIES, DOCUMENTS)
    monkeypatch.setattr(pair_scores, "SENTENCES_PER_BLOCK", 2)
    np.testing.assert_allclose(included.score_pairs(QUERIES, DOCUMENTS), whole, atol=1e-4)


def test_a_published_prompt_stands_before_each_query(tmp_path):
    from sentence_transformers import CrossEncoder

    plain = save_cross_encoder(tmp_path / "plain", "bert")
    prompts = {"ask": "the red bank by the river "}
    prompted = CrossEncoder(str(plain), device="cpu", prompts=prompts, default_prompt_name="ask", local_files_only=True)
    prompted.save_pretrained(str(tmp_path / "with"), create_model_card=False)
    ours = Backend.load(str(tmp_path / "with"), device_name="cpu")
    theirs = CrossEncoder(str(tmp_path / "with"), device="cpu", local_files_only=True)
    scores = ours.score_pairs(QUERIES, DOCUMENTS)
    np.testing.assert_allclose(scores, exact_scores(theirs, QUERIES, DOCUMENTS), rtol=1e-6, atol=1e-5)
    without = Backend.load(str(plain), device_name="cpu").score_pairs(QUERIES, DOCUMENTS)
    assert np.abs(scores - without).max() > 0.01
    (said,) = ours.not_applied
    assert prompts["ask"] in said


def test_packed_weights_and_short_attention_change_no_score(scorers, monkeypatch):
    ours, theirs = scorers
    monkeypatch.setattr(embedder, "BULK_TOKENS", 1)  # small batches use packed weights too
    queries, documents = QUERIES * 3, (DOCUMENTS * 3)[7:] + DOCUMENTS[:1] * 7
    expected = exact_scores(theirs, queries, documents)
    trials = {"float32": (1.0, True), "bfloat16": (1.0, packs_bfloat16())}
    monkeypatch.setattr(ours.embedder, "_trial", trials.__getitem__)
    scores = ours.score_pairs(queries, documents, precision="float32")
    assert ("float32", True, True) in ours.embedder._modules
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-5)
    rough = ours.score_pairs(queries, documents, precision="bfloat16")
    assert 0 < np.abs(rough - expected).max() < 0.1 * np.ptp(expected)
    # The head works in float32: its results are not rounded to the 8 bits of bfloat16.
    assert (torch.from_numpy(rough).bfloat16().float().numpy() != rough).any()
    with pytest.raises(InputError, match="precision"):
        ours.score_pairs(queries, documents, precision="float16")


def test_pairs_are_truncated_as_sentence_transformers_truncates_them(scorers):
    ours, theirs = scorers
    theirs.max_seq_length = 12
    expected = theirs.predict(list(zip(QUERIES, DOCUMENTS, strict=True)), activation_fn=torch.nn.Identity())
    theirs.max_seq_length = ours.own_max_length
    np.testing.assert_allclose(ours.score_pairs(QUERIES, DOCUMENTS, max_length=12), expected, atol=1e-5)
    with pytest.raises(InputError):
        ours.score_pairs(QUERIES, DOCUMENTS, max_length=10_000)


def test_only_the_document_is_truncated_if_asked(scorers):
    ours, _ = scorers
    rows = ours.tokenize(["the cat"] * 2, ["walking " * 30, "a dog"], 12, "only_second")
    kept = [
        text if not row.dropped else text[: row.dropped[0].start]
        for row, text in zip(rows, ["walking " * 30, "a dog"], strict=True)
    ]
    shorter = ours.pair_logits(["the cat"] * 2, kept)
    logits = ours.pair_logits(["the cat"] * 2, ["walking " * 30, "a dog"], max_length=12, truncation="only_second")
    np.testing.assert_allclose(logits, shorter, atol=1e-5)
    with pytest.raises(InputError, match="has room for"):
        ours.pair_logits(["walking " * 30], ["a dog"], max_length=12, truncation="only_second")


def test_the_encoders_weights_are_shared_with_the_scorer(scorers):
    ours, _ = scorers
    shared = {parameter.data_ptr() for parameter in ours.encoder.parameters()}
    own = [p for p in ours.loaded.pair_scorer().parameters() if p.data_ptr() not in shared]
    assert 0 < sum(parameter.numel() for parameter in own) < 3_000


def test_progress_stopping_and_wrong_numbers(scorers):
    ours, _ = scorers
    reports = []
    ours.score_pairs(QUERIES, DOCUMENTS, token_budget=1, progress=lambda *report: reports.append(report))
    assert reports == [(done, 6) for done in range(1, 7)]
    assert ours.score_pairs([], []).shape == (0,)
    with pytest.raises(Stopped):
        ours.score_pairs(QUERIES, DOCUMENTS, is_stopped=lambda: True)
    with pytest.raises(ValueError, match="equal numbers"):
        ours.score_pairs(QUERIES, DOCUMENTS[:1])


def test_models_without_one_score_are_refused(embedded, tiny_folder, tmp_path):
    with pytest.raises(ModelError, match="no head"):
        embedded.score_pairs(["a"], ["b"])
    with pytest.raises(ModelError, match="no head"):
        Backend.load(str(tiny_folder("bert")), device_name="cpu").score_pairs(["a"], ["b"])


def test_a_model_of_three_labels_gives_all_and_ranks_by_the_chosen_one(tmp_path):
    from sentence_transformers import CrossEncoder

    folder = save_cross_encoder(tmp_path, "bert", outputs=3)
    theirs = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    expected = theirs.predict(list(zip(QUERIES, DOCUMENTS, strict=True)), activation_fn=torch.nn.Identity())
    three = Backend.load(str(folder), device_name="cpu")
    assert three.pair_labels() == ("LABEL_0", "LABEL_1", "LABEL_2")
    np.testing.assert_allclose(three.pair_logits(QUERIES, DOCUMENTS), expected, atol=1e-5)
    np.testing.assert_allclose(three.score_pairs(QUERIES, DOCUMENTS, label=2), expected[:, 2], atol=1e-5)
    with pytest.raises(ModelError, match="3 numbers"):
        three.score_pairs(["a"], ["b"])


def test_labels_have_their_published_names(tmp_path):
    folder = save_cross_encoder(tmp_path, "bert", outputs=3)
    path = folder / "config.json"
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": names}))
    assert Backend.load(str(folder), device_name="cpu").pair_labels() == ("contradiction", "entailment", "neutral")


@pytest.mark.parametrize("change", ["incomplete", "shape", "nan"])
def test_a_damaged_head_is_refused(change, tmp_path):
    folder = save_cross_encoder(tmp_path, "distilbert")
    weights = load_file(folder / "model.safetensors")
    if change == "incomplete":
        del weights["pre_classifier.weight"]
    elif change == "shape":
        weights["classifier.weight"] = torch.zeros(1, 7)
    else:
        weights["classifier.bias"] = torch.full((1,), torch.nan)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError):
        Backend.load(str(folder), device_name="cpu").score_pairs(["a"], ["b"])


def test_the_included_adapter_is_merged_as_peft_merges_it(included, embedded_folder):
    from peft import PeftModel

    config = AutoConfig.from_pretrained(embedded_folder, num_labels=1)
    base = AutoModelForSequenceClassification.from_pretrained(embedded_folder, config=config)
    merged = PeftModel.from_pretrained(base, str(sources.CROSS_ENCODER)).merge_and_unload().eval()
    for name, parameter in merged.named_parameters():
        own = included.loaded.pair_scorer().get_parameter(name)
        assert_close(own, parameter.float(), what=name)
    plain = AutoModelForSequenceClassification.from_pretrained(embedded_folder, config=config)
    query = "bert.encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(included.loaded.pair_scorer().get_parameter(query), plain.get_parameter(query))


def test_the_included_cross_encoder_is_small_and_says_what_it_is(included):
    assert included.is_cross_encoder
    assert included.not_applied == ()
    assert included.spec == catalog_spec(EMBEDDED_CROSS_ENCODER_KEY)
    assert included.facts == included.spec.facts
    assert sum(path.stat().st_size for path in sources.CROSS_ENCODER.iterdir()) < 2_000_000
    record = json.loads((sources.CROSS_ENCODER / "record.json").read_text())
    assert "CC BY-SA 4.0" in record["data"]["licence"]
    assert included.revision.endswith(record["adapter_sha256"][:12])


def test_the_included_cross_encoders_fast_path_equals_its_plain_one(included):
    queries, documents = QUERIES * 20, ["the cat ran to the river bank. " * (1 + row % 7) for row in range(120)]
    packed, some = included.score_pairs(queries, documents), slice(None, None, 5)  # all queries, all lengths
    plain = included.score_pairs(queries[some], documents[some], token_budget=1)
    np.testing.assert_allclose(packed[some], plain, atol=1e-4)


def test_training_can_continue_from_the_included_cross_encoder(included):
    from components.training import model as models
    from components.training.settings import TrainingSettings

    settings = TrainingSettings(model=EMBEDDED_CROSS_ENCODER_KEY, objectives=("relevance",))
    start = models.build(settings, "cross-encoder")
    expected = start.predict([("a cat", "the dog"), ("a cat", "one cat")], activation_fn=torch.nn.Identity())
    np.testing.assert_allclose(included.score_pairs(["a cat"] * 2, ["the dog", "one cat"]), expected, atol=1e-5)


def test_it_scores_similar_texts_higher(included):
    scores = included.score_pairs(
        ["A man plays a guitar."] * 3,
        ["A man is playing the guitar.", "A woman plays a violin.", "The stock market fell on Monday."],
    )
    assert scores[0] > scores[1] > scores[2]


def test_a_changed_adapter_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CROSS_ENCODER", shutil.copytree(sources.CROSS_ENCODER, tmp_path / "copy"))
    path = tmp_path / "copy" / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(ModelError, match="damaged"):
        sources.find_files(catalog_spec(EMBEDDED_CROSS_ENCODER_KEY))
    path.unlink()
    with pytest.raises(ModelError, match="missing"):
        sources.find_files(catalog_spec(EMBEDDED_CROSS_ENCODER_KEY))


def adapter_folder(folder, weights, rank=2, alpha=6):
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": rank, "lora_alpha": alpha}))
    save_file(
        {f"base_model.model.{name}": value for name, value in weights.items()}, folder / "adapter_model.safetensors"
    )
    return folder


def test_an_adapter_adds_its_scaled_product(tmp_path):
    model, _ = tiny.tiny_model("bert")
    before = model.encoder.layer[1].attention.self.query.weight.detach().clone()
    down, up = torch.randn(2, 32), torch.randn(32, 2)
    part = "bert.encoder.layer.1.attention.self.query"
    folder = adapter_folder(tmp_path / "a", {f"{part}.lora_A.weight": down, f"{part}.lora_B.weight": up})
    read_adapter(folder, "tiny").merge(model, "tiny")
    after = model.encoder.layer[1].attention.self.query.weight
    torch.testing.assert_close(after.detach(), before + 3 * up @ down)
    assert after.requires_grad == model.encoder.layer[0].attention.self.query.weight.requires_grad


@pytest.mark.parametrize(
    ("up", "down", "rank"), [((10**5, 1), (1, 10**5), 1), ((32, 2), (2, 1), 2), ((32, 2), (2, 32), 0)]
)
def test_the_product_of_an_adapter_is_as_large_as_what_it_changes(up, down, rank, tmp_path):
    """The first of 800 kB would take 40 GB. Its rank is a number of the file too."""
    model, _ = tiny.tiny_model("bert")
    part = "bert.encoder.layer.1.attention.self.query"
    weights = {f"{part}.lora_A.weight": torch.ones(down), f"{part}.lora_B.weight": torch.ones(up)}
    with pytest.raises(ModelError, match=r"has other sizes|can be a whole number from 1"):
        read_adapter(adapter_folder(tmp_path / "a", weights, rank), "tiny").merge(model, "tiny")


@pytest.mark.parametrize(
    "names",
    [
        ["bert.encoder.layer.1.attention.self.query.lora_A.weight"],
        ["bert.no.such.part.lora_A.weight", "bert.no.such.part.lora_B.weight"],
        ["bert.encoder.layer.0.attention.self.query.lora_magnitude_vector"],
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(names, tmp_path):
    model, _ = tiny.tiny_model("bert")
    folder = adapter_folder(tmp_path / "a", {name: torch.ones(2, 2) for name in names})
    with pytest.raises(ModelError):
        read_adapter(folder, "tiny").merge(model, "tiny")
    with pytest.raises(ModelError):
        read_adapter(tmp_path, "tiny")
