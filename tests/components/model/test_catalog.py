"""The facts of the catalog against models built from them, and names that people type."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components.errors import InputError
from components.model.architecture.record import facts_of
from components.model.catalog import CATALOG, GROUPS, ModelSpec, catalog_spec, parse_model
from components.model.files.sentence_config import SentenceConfig, prompt_for, with_prompts
from tests.support.models_of_sizes import model_of


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
