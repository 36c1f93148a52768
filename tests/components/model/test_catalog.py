"""The facts of the catalog against models built from them, and names that people type."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    EuroBertConfig,
    EuroBertModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    NomicBertConfig,
    NomicBertModel,
    Qwen3Config,
    Qwen3Model,
    RobertaConfig,
    RobertaModel,
)

from components.errors import InputError
from components.model.architecture.families.static import StaticEncoder
from components.model.architecture.record import facts_of
from components.model.catalog import CATALOG, GROUPS, ModelSpec, catalog_spec, parse_model
from components.model.files.sentence_config import SentenceConfig, prompt_for, with_prompts


def model_of(facts):
    """A model of these sizes on the meta device: every parameter has a shape, none takes memory."""
    sizes = {
        "vocab_size": facts.vocabulary_size,
        "hidden_size": facts.hidden_size,
        "num_hidden_layers": facts.layers,
        "num_attention_heads": facts.heads,
        "intermediate_size": facts.feed_forward_size,
        "max_position_embeddings": facts.max_positions,
    }
    # RoBERTa and MPNet count positions from 2: two rows of their table are never a token's.
    offset = {**sizes, "max_position_embeddings": facts.max_positions + 2, "pad_token_id": 1}
    with torch.device("meta"):
        if facts.architecture == "static":
            return StaticEncoder(torch.empty(facts.vocabulary_size, facts.hidden_size))
        if facts.architecture == "bert":
            return BertModel(BertConfig(**sizes, type_vocab_size=facts.segments))
        if facts.architecture == "electra":
            return ElectraModel(
                ElectraConfig(**sizes, type_vocab_size=facts.segments, embedding_size=facts.hidden_size)
            )
        if facts.architecture == "roberta":
            return RobertaModel(RobertaConfig(**offset, type_vocab_size=facts.segments))
        if facts.architecture == "mpnet":
            return MPNetModel(MPNetConfig(**offset))
        if facts.architecture == "modernbert":
            return ModernBertModel(ModernBertConfig(**sizes))
        if facts.architecture == "deberta-v2":
            distances = {"relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm"}
            kinds = {"share_att_key": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
            return DebertaV2Model(DebertaV2Config(**sizes, **distances, **kinds, type_vocab_size=facts.segments))
        if facts.architecture == "nomic_bert":
            return NomicBertModel(NomicBertConfig(**sizes, type_vocab_size=facts.segments))
        if facts.architecture == "eurobert":
            return EuroBertModel(EuroBertConfig(**sizes))
        if facts.architecture == "qwen3":  # eight pairs of heads share their keys, and a head has 128 numbers
            return Qwen3Model(Qwen3Config(**sizes, num_key_value_heads=8, head_dim=128))
        if facts.architecture == "albert":
            return AlbertModel(AlbertConfig(**sizes, embedding_size=128, type_vocab_size=facts.segments))
        assert facts.architecture == "distilbert"
        return DistilBertModel(
            DistilBertConfig(
                vocab_size=facts.vocabulary_size,
                dim=facts.hidden_size,
                n_layers=facts.layers,
                n_heads=facts.heads,
                hidden_dim=facts.feed_forward_size,
                max_position_embeddings=facts.max_positions,
            )
        )


@pytest.mark.parametrize("spec", CATALOG, ids=lambda spec: spec.key)
def test_a_model_built_from_an_entrys_facts_has_exactly_these_facts(spec):
    model = model_of(spec.facts)
    assert facts_of(model.config, model) == spec.facts


def test_bert_base_reads_as_published():
    facts = catalog_spec("google-bert/bert-base-uncased").facts
    assert (facts.layers, facts.heads, facts.hidden_size, facts.feed_forward_size) == (12, 12, 768, 3072)
    assert (facts.max_positions, facts.vocabulary_size, facts.parameters) == (512, 30522, 109_482_240)


def test_the_embedded_entry_is_what_the_package_holds(embedded):
    entry = catalog_spec("embedded")
    assert embedded.facts == entry.facts
    assert embedded.spec == entry


def test_the_embedded_model_comes_first_and_keys_are_unique():
    assert CATALOG[0].key == "embedded"
    assert [spec.source for spec in CATALOG] == ["embedded"] * 2 + ["hub"] * (len(CATALOG) - 2)
    assert len({spec.key for spec in CATALOG}) == len(CATALOG)


@pytest.mark.parametrize("spec", CATALOG, ids=lambda spec: spec.key)
def test_every_key_names_its_own_entry(spec):
    assert parse_model(spec.key) is spec
    assert parse_model(f"  {spec.key}\n") is spec


@pytest.mark.parametrize(
    ("alias", "key"),
    [
        ("bert-base-uncased", "google-bert/bert-base-uncased"),
        ("distilbert-base-uncased", "distilbert/distilbert-base-uncased"),
        ("roberta-base", "FacebookAI/roberta-base"),
        ("bert-base-multilingual-cased", "google-bert/bert-base-multilingual-cased"),
    ],
)
def test_older_names_of_the_hub_still_work(alias, key):
    assert parse_model(alias).key == catalog_spec(alias).key == key


@pytest.mark.parametrize("name", ["prajjwal1/bert-tiny", "gpt2", "Owner-1/Model_v1.5-large", "a/b"])
def test_other_names_are_taken_as_hub_ids(name):
    assert catalog_spec(name) is None
    assert parse_model(name) == ModelSpec(name, "hub", name, "from the Hugging Face hub")


def test_a_folder_is_named_by_its_place(tmp_path, monkeypatch):
    (tmp_path / "my model").mkdir()
    expected = str((tmp_path / "my model").resolve())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for text in (expected, "./my model", "~/my model", f"{expected}/../my model/", f" {expected} "):
        spec = parse_model(text)
        assert (spec.key, spec.source, spec.title) == (expected, "folder", "my model")
    os.symlink(expected, tmp_path / "link")
    assert parse_model("./link").key == expected  # one model, one key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "a/b/c",
        "owner/",
        "/owner",
        "-rf",
        "owner/-model",
        "owner//model",
        "models--owner--name",
        "owner/na me",
        "owner/../../etc/passwd",
        "owner/..",
        "..",
        "../no such folder",
        "./no such folder",
        "~/no such folder",
        "~nobody-of-this-name/model",
        "/no/such/folder",
        "/etc/passwd",
        "C:\\models\\bert",
        "C:/models/bert",
        "\\\\server\\share",
        "file:///etc",
        "https://huggingface.co/bert-base-uncased",
        "owner/model@main",
        "owner/model?v=model-facts&x=1",
        "owner/<script>",
        "/\u0000",
        "./\ud800",
        "./" + "a" * 5_000,
        "a" * 97,
        "a" * 97 + "/b",
        "größe/modell",
        "owner/modell-größe",
        "owner/mo\ndel",
    ],
)
def test_text_that_is_no_models_name(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "..")  # so that ".." is not the repository
    if text == "..":
        monkeypatch.setattr(Path, "is_dir", lambda self: False)
    with pytest.raises(InputError) as caught:
        parse_model(text)
    assert len(caught.value.problem) < 300
    assert caught.value.problem.isprintable()
    assert "hub" in caught.value.expected + caught.value.fix


def test_every_entry_says_what_the_picker_shows():
    for spec in CATALOG:
        assert spec.group in GROUPS, spec.key
        assert spec.cross_encoder == (spec.group == "pairs"), spec.key
        assert (spec.pooling is None) == (spec.group in {"classic", "modern", "pairs"}), spec.key
        assert spec.year is not None, spec.key
        assert spec.megabytes is not None, spec.key
        # Published in float32 or in half of it, some with a head that is not counted here, or as an adapter alone.
        weights = spec.megabytes * 1e6 / spec.facts.parameters
        assert 1.9 < weights < 4.5 or spec.key == "embedded-cross-encoder", (spec.key, weights)


def test_prompts_of_the_catalog_are_used_where_the_files_have_none():
    e5 = catalog_spec("intfloat/e5-small-v2").prompts
    described = with_prompts(SentenceConfig(prompts={"query": "", "document": ""}), e5)
    assert (prompt_for(described, "query"), prompt_for(described, "document")) == ("query: ", "passage: ")
    assert prompt_for(described, None) == ""
    bge = with_prompts(SentenceConfig(), catalog_spec("BAAI/bge-small-en-v1.5").prompts)
    assert prompt_for(bge, "query").startswith("Represent this sentence")
    assert prompt_for(bge, "document") == ""
    own = with_prompts(SentenceConfig(prompts={"query": "ask: "}), e5)
    assert (prompt_for(own, "query"), prompt_for(own, "document")) == ("ask: ", "")
