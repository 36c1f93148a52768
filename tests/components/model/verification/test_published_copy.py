"""What is handed to sentence-transformers of a stranger's folder: nothing that runs code, and no file outside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from components.errors import ModelError
from components.model.files.sources import ModelFiles
from components.model.verification.published_copy import published_copy
from tests.support.tiny import dense_module, pooling_module, publish


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return publish(shutil.copytree(tiny_folder("bert"), tmp_path / "model"), pooling_module(), dense_module(32, 8))


def copied(folder: Path) -> dict[str, str]:
    """The small files of the copy, by path."""
    with published_copy(ModelFiles(folder, "r"), "model") as copy:
        paths = [path for path in copy.rglob("*") if path.is_file() and path.suffix != ".safetensors"]
        return {path.relative_to(copy).as_posix(): path.read_text() for path in paths}


def set_json(path: Path, **values: object) -> None:
    said = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(said | values))


def test_the_copy_has_the_modules_and_settings(folder):
    set_json(folder / "config_sentence_transformers.json", prompts={"query": "q: "}, truncate_dim=4, unknown="x")
    set_json(folder / "sentence_bert_config.json", max_seq_length=16, do_lower_case=True)
    (folder / "evil.py").write_text("raise SystemExit")
    (folder / "README.md").write_text("a card")
    files = copied(folder)
    assert [entry["type"].split(".")[-1] for entry in json.loads(files["modules.json"])] == [
        *("Transformer", "Pooling", "Dense")
    ]
    assert json.loads(files["config_sentence_transformers.json"]) == {"prompts": {"query": "q: "}, "truncate_dim": 4}
    assert json.loads(files["sentence_bert_config.json"]) == {"max_seq_length": 16, "do_lower_case": True}
    assert json.loads(files["2_Dense/config.json"])["out_features"] == 8
    assert not {"evil.py", "README.md"} & files.keys()


def test_the_library_reads_the_first_of_the_older_names_that_exists(folder):
    set_json(folder / "sentence_roberta_config.json", max_seq_length=9)
    set_json(folder / "sentence_xlnet_config.json", max_seq_length=5)
    assert json.loads(copied(folder)["sentence_bert_config.json"]) == {"max_seq_length": 9}


def changed_module(folder: Path, **values: str) -> None:
    listed = json.loads((folder / "modules.json").read_text())
    listed[1] |= values
    (folder / "modules.json").write_text(json.dumps(listed))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: changed_module(folder, type="hostile_code.Run"), "not one of sentence-transformers"),
        (lambda folder: changed_module(folder, type="os.system"), "not one of sentence-transformers"),
        (lambda folder: changed_module(folder, type="sentence_transformers.util.import_from_string"), "handed on"),
        (lambda folder: changed_module(folder, path="../outside"), "leads out"),
        (lambda folder: changed_module(folder, path="/etc"), "leads out"),
        (
            lambda folder: set_json(folder / "sentence_bert_config.json", tokenizer_name_or_path="/etc"),
            "tokenizer_name",
        ),
        (lambda folder: set_json(folder / "sentence_bert_config.json", model_args={"config": "/etc/x"}), "says config"),
        (
            lambda folder: set_json(folder / "sentence_bert_config.json", tokenizer_args={"vocab_file": "/x"}),
            "vocab_file",
        ),
        (
            lambda folder: set_json(folder / "sentence_bert_config.json", transformer_task="any-to-any"),
            "transformer_task",
        ),
        (
            lambda folder: set_json(
                folder / "sentence_bert_config.json",
                modality_config={"text": {"method": "save_pretrained", "method_output_name": "x"}},
            ),
            "modality_config",
        ),
        (lambda folder: set_json(folder / "1_Pooling" / "config.json", something="x"), "something"),
        (
            lambda folder: set_json(folder / "2_Dense" / "config.json", activation_function="torch.hub.load"),
            "activation_function",
        ),
        (lambda folder: set_json(folder / "2_Dense" / "config.json", out_features=1_000_000), "sizes"),
        (lambda folder: set_json(folder / "adapter_config.json", base_model_name_or_path="/etc"), "adapter"),
    ],
)
def test_what_could_do_harm_or_is_not_known_is_not_handed_on(folder, change, words):
    change(folder)
    with pytest.raises(ModelError, match=words):
        copied(folder)


def test_an_activation_that_is_not_of_torch_is_left_out_as_the_library_does(folder):
    set_json(folder / "2_Dense" / "config.json", activation_function="os.system")
    assert "activation_function" not in json.loads(copied(folder)["2_Dense/config.json"])


def test_a_pickle_is_not_handed_on(folder):
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="none as safetensors"):
        copied(folder)


def test_weights_outside_the_folder_are_not_handed_on(folder, tmp_path):
    outside = tmp_path / "outside.safetensors"
    (folder / "2_Dense" / "model.safetensors").rename(outside)
    (folder / "2_Dense" / "model.safetensors").symlink_to(outside)
    with pytest.raises(ModelError, match="leads out"):
        copied(folder)


def test_code_for_the_encoder_is_left_out(folder):
    set_json(folder / "config.json", auto_map={"AutoModel": "evil.Model"})
    set_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Tokenizer", None]})
    assert not [name for name, content in copied(folder).items() if "auto_map" in content]
    set_json(folder / "sentence_bert_config.json", tokenizer_args={"trust_remote_code": True, "do_lower_case": True})
    assert json.loads(copied(folder)["sentence_bert_config.json"])["tokenizer_args"] == {"do_lower_case": True}


def test_a_folder_in_two_parts_is_not_compared(folder):
    with pytest.raises(ModelError, match="two folders"), published_copy(ModelFiles(folder, "r", folder), "model"):
        pass
