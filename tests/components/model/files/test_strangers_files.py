"""What a stranger's model folder says is handed on key by key, within bounds, and nothing of another folder is read."""

from __future__ import annotations

import functools
import inspect
import json
import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING, MODEL_MAPPING, AutoConfig, AutoTokenizer

from components.errors import ModelError
from components.model import loading
from components.model.architecture.families import decoder
from components.model.architecture.support import SUPPORTED
from components.model.backend import Backend
from components.model.catalog import parse_model
from components.model.files import allowed, tokenizer_files
from components.model.files import checked_copy as checked_copy_module
from components.model.files.checked_copy import check_sentence_files, checked_copy, left_out
from components.model.files.published import MOST_MODULES, listed_modules, read_json, read_modules
from components.model.files.sources import find_files
from tests.support import static_models, tiny

SECRET = "not-for-others"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.save_tiny(tmp_path / "model")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file outside the model's folder that could be a vocabulary."""
    path = tmp_path / "outside.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", SECRET]))
    return path


def change(folder: Path, file: str, **values: Any) -> Path:
    path = folder / file
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | values))
    return folder


def change_tokenizer(folder: Path, **parts: Any) -> Path:
    return change(folder, "tokenizer.json", **parts)


# --- Keys


@pytest.mark.parametrize("key", ["vocab", "merges", "vocab_file", "tokenizer_file", "name_or_path", "gguf_file"])
def test_a_path_in_the_tokenizers_configuration_is_never_opened(folder: Path, outside: Path, key: str) -> None:
    plain = Backend.load(str(folder), device_name="cpu").tokenization.vocabulary
    for architecture in ("TokenizersBackend", "BertTokenizer"):
        change(folder, "tokenizer_config.json", **{key: str(outside), "tokenizer_class": architecture})
        assert Backend.load(str(folder), device_name="cpu").tokenization.vocabulary == plain


def test_the_key_that_is_left_out_is_said(folder: Path, outside: Path) -> None:
    assert Backend.load(str(folder), device_name="cpu").not_applied == ()
    change(folder, "tokenizer_config.json", vocab=str(outside))
    change(folder, "config.json", auto_map={"AutoModel": "code.Model"})
    (said,) = Backend.load(str(folder), device_name="cpu").not_applied
    assert "auto_map in config.json, vocab in tokenizer_config.json" in said


@pytest.mark.parametrize("part", ["vocab", "merges"])
def test_a_vocabulary_of_tokenizer_json_that_is_a_path_is_refused(folder: Path, outside: Path, part: str) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    change_tokenizer(folder, model=content["model"] | {part: str(outside)})
    change(folder, "tokenizer_config.json", tokenizer_class="BertTokenizer")
    with pytest.raises(ModelError, match=rf"tokenizer\.json of x has '/.*' as its {part[:5]}"):
        loading.from_pretrained(folder, "x")


def test_no_file_of_the_folder_leads_out_of_it(folder: Path, tmp_path: Path) -> None:
    tiny.publish(folder, tiny.pooling_module(), tiny.dense_module(32, 12))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32}')
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "a"}}')
    (folder / "special_tokens_map.json").write_text("{}")
    (folder / "added_tokens.json").write_text("{}")
    (folder / "README.md").symlink_to(tmp_path)  # which nothing reads
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert len(files) >= 11
    find_files(parse_model(str(folder)))
    for path in files:
        moved = path.rename(tmp_path / "moved")
        path.symlink_to(moved)
        with pytest.raises(ModelError, match=f"{path.name} of .* leads out of the model's folder by a link") as refusal:
            find_files(parse_model(str(folder)))
        assert "\n" not in str(refusal.value)
        path.unlink()
        moved.rename(path)
    loading.from_pretrained(folder, "x")


def test_a_folder_of_a_module_that_leads_out_gives_no_settings(folder: Path, tmp_path: Path) -> None:
    tiny.publish(folder, tiny.pooling_module("cls_token"))
    assert read_modules(folder)[1].pooling_modes == ("cls",)
    (folder / "1_Pooling").rename(tmp_path / "elsewhere")
    (folder / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    assert read_modules(folder)[1].config is None


def test_the_checked_copy_holds_nothing_else(folder: Path, tmp_path: Path) -> None:
    (folder / "hostile_code.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    for file in ("modules.json", "adapter_config.json", "chat_template.jinja", "generation_config.json", "tekken.json"):
        (folder / file).write_text("[]")
    change(
        folder, "config.json", auto_map={"AutoConfig": "hostile_code.Config"}, _name_or_path=str(tmp_path), unknown=1
    )
    with checked_copy(folder, "x") as copy:
        names = {path.name for path in copy.iterdir()}
        assert names == {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}
        assert copy.stat().st_mode & 0o077 == 0
        kept = json.loads((copy / "config.json").read_text())
        assert kept.keys() <= allowed.CONFIG.keys()
        assert kept["hidden_size"] == 32
        assert (copy / "model.safetensors").resolve() == (folder / "model.safetensors").resolve()
    assert not copy.exists()
    (folder / "adapter_config.json").unlink()  # without its weights it would be refused
    loading.from_pretrained(folder, "x")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_a_healthy_tokenizer_is_the_same_from_the_checked_copy(architecture: str, tmp_path: Path) -> None:
    """What is left out and written anew changes no token, in any family."""
    folder = tiny.save_tiny(tmp_path / "m", architecture)
    texts = ["the cat sat on the river bank", "é 你 Walking, ＡＢ!"]
    plain = AutoTokenizer.from_pretrained(folder)
    with checked_copy(folder, "x") as copy:
        checked = AutoTokenizer.from_pretrained(copy)
    for pairs in (None, texts[::-1]):
        assert checked(texts, pairs)["input_ids"] == plain(texts, pairs)["input_ids"]
    assert checked.special_tokens_map == plain.special_tokens_map
    assert checked.model_max_length == plain.model_max_length
    assert left_out(folder, "x") == ()


def test_every_setting_that_the_library_reads_is_allowed_told_or_of_no_use() -> None:
    """The fields of each family's configuration, and what its code reads of it; a new version of the library may have more."""
    known = allowed.CONFIG.keys() | allowed.TOLD_OF_CONFIG | allowed.UNUSED_OF_CONFIG
    for kind in (*SUPPORTED, *decoder.TITLES):
        described = CONFIG_MAPPING[kind]
        names = {field.name for field in fields(described)}
        code = inspect.getsource(inspect.getmodule(MODEL_MAPPING[described]))  # type: ignore[arg-type]
        names |= set(re.findall(r"\bconfig\.([a-z][a-z_0-9]+)", code))
        names |= set(re.findall(r'getattr\((?:self\.)?config, "([a-z_0-9]+)"', code))
        assert names - known - {"to_dict", "get_text_config"} == set(), kind


def test_only_activations_are_imported_by_name() -> None:
    rule = allowed.activation
    assert not rule("torch.nn.modules.activation.Sigmoid")
    assert not rule("torch.nn.modules.linear.Identity")
    for named in (
        "torch.distributed.run.main",
        "torch.nn.Linear",
        "os.abort",
        "torch.hub.list",
        "torch.nn.a.b.c.Tanh",
        7,
        None,
    ):
        assert rule(named)


def test_a_class_of_a_tokenizer_that_is_not_known_is_refused(folder: Path) -> None:
    for file in ("config.json", "tokenizer_config.json"):
        change(folder, file, tokenizer_class="RagTokenizer")
        with pytest.raises(ModelError, match="tokenizer_class = 'RagTokenizer'"):
            loading.from_pretrained(folder, "x")
        change(folder, file, tokenizer_class="PreTrainedTokenizerFast")
    loading.from_pretrained(folder, "x")


def test_a_list_of_modules_is_bounded(folder: Path) -> None:
    entry = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    (folder / "modules.json").write_text(json.dumps([entry] * MOST_MODULES))
    check_sentence_files(folder, "x")
    (folder / "modules.json").write_text(json.dumps([entry] * 50_000))
    with pytest.raises(ModelError, match=f"more than {MOST_MODULES} modules"):
        loading.from_pretrained(folder, "x")
    assert len(listed_modules(folder)) == MOST_MODULES + 1
    assert len(read_modules(folder)) == 1  # all have one name


def test_json_of_many_small_values_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + "[]," * 2_000_000 + "[]]")
    assert read_json(path, 64 << 20) is None
    path.write_text("[" + "[]," * 1_000_000 + "[]]")
    assert len(read_json(path, 64 << 20)) == 1_000_001


# --- Tokenizers

A, B = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
CLS = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}


def template(single: list[Any] | None = None, pair: list[Any] | None = None, ids: int = 1) -> dict[str, Any]:
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [2] * ids, "tokens": ["[CLS]"] * ids}}
    return {
        "type": "TemplateProcessing",
        "single": [CLS, A] if single is None else single,
        "pair": [CLS, A, B] if pair is None else pair,
        "special_tokens": tokens,
    }


def in_sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "processors": list(steps)}


BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
ROBERTA = {"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
FRAMES = {
    "a text twice": (template([CLS, A, A]), "single names the texts A, A"),
    "a text a hundred thousand times": (template([A] * 100_000), "single names the texts A, A"),
    "no text": (template([CLS]), "single names"),
    "the second text alone": (template([B]), "single names the texts B"),
    "a pair with its first text twice": (template(pair=[A, A, B]), "pair names the texts A, A, B"),
    "a pair without its second": (template(pair=[CLS, A]), "pair names the texts A"),
    "a special token of many ids": (template(ids=100_000), "adds 100,000 special tokens"),
    "many special tokens": (template([CLS] * 65 + [A]), "adds 65 special tokens"),
    "a third segment": (template([{"SpecialToken": {"id": "[CLS]", "type_id": 2}}, A]), "segments"),
    "two templates": (in_sequence(template(), template()), "2 times"),
    "a template in a sequence in a sequence": (in_sequence(in_sequence(template([A, A]))), "single names"),
    "a template after another kind": (in_sequence(ROBERTA, in_sequence(template())), "2 times"),
    "many kinds": (in_sequence(*[ROBERTA] * 65), "more than 64 steps"),
    "sequences without end": (
        functools.reduce(lambda inner, _: in_sequence(inner), range(60), BYTES),
        "steps within steps",
    ),
    "an unknown one": ({"type": "Repeat"}, "post-processor 'Repeat'"),
    "no object": ("$A $A", "as a step"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_post_processor_that_multiplies_tokens_is_refused_before_it_runs(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, words = FRAMES[name]
    monkeypatch.setattr("tokenizers.Tokenizer.from_str", pytest.fail)
    monkeypatch.setattr("tokenizers.Tokenizer.from_file", pytest.fail)
    change_tokenizer(folder, post_processor=content)
    with pytest.raises(ModelError, match=words) as refusal:
        loading.from_pretrained(folder, "x")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_the_frames_of_published_tokenizers_are_allowed() -> None:
    """BERT's, RoBERTa's, ModernBERT's and Qwen's; that of a text that nothing is added to."""
    for frame in (
        None,
        ROBERTA,
        template(),
        template([A], [A, B]),
        in_sequence(BYTES, template()),
        BYTES,
        in_sequence(),
    ):
        tokenizer_files.check_frame(frame)


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_a_special_token_cannot_write_the_template_of_a_text(architecture: str, tmp_path: Path) -> None:
    """The library builds the template from the tokens' own texts: "[CLS] $A" as a token would name the text twice."""
    folder = tiny.save_tiny(tmp_path / "m", architecture)
    for token in ("[CLS] $A $A", "$A", "$A:0", "a b", "a\tb"):
        for said in (token, {"content": token, "lstrip": False}):
            change(folder, "tokenizer_config.json", cls_token=said)
            with pytest.raises(ModelError, match="cls_token can be a text of at most 1,000 characters without spaces"):
                loading.from_pretrained(folder, "x")


def steps(kind: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", kind: list(parts)}


WAYS: dict[str, tuple[dict[str, Any], str]] = {
    "bytes of bytes": ({"pre_tokenizer": steps("pretokenizers", *[BYTES] * 5)}, "16 times"),
    "many steps": ({"pre_tokenizer": steps("pretokenizers", *[{"type": "Whitespace"}] * 65)}, "more than 64 steps"),
    "steps under another name": (
        {"pre_tokenizer": {**steps("pretokenizers", *[BYTES] * 5), "normalizers": [{"type": "NFC"}]}},
        "16 times",
    ),
    "pieces of no length": ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "length = 0"),
    "a pattern written out": (
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "((a{1,999}){1,999}){1,999}"}, "content": "b"}},
        "could take minutes",
    ),
    "a table that announces 4 GB": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}},
        "announces 4,294,967,295 bytes and has 4",
    ),
    "an unknown step": ({"normalizer": {"type": "Double"}}, "the step 'Double'"),
    "too many added tokens": (
        {"added_tokens": [{"id": at, "content": str(at)} for at in range(20_001)]},
        "a list of 20,001 values as added_tokens",
    ),
    "long added tokens": ({"added_tokens": [{"id": 1, "content": "a" * 1_001}]}, "added_tokens"),
    "tokens that are much text together": (
        {"added_tokens": [{"id": at, "content": "a" * 1_000} for at in range(2_001)]},
        "added_tokens",
    ),
    "no model": ({"model": None}, "as its model"),
}


@pytest.mark.parametrize("name", WAYS)
def test_other_ways_to_grow_are_refused_before_the_library_reads_the_file(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, words = WAYS[name]
    monkeypatch.setattr("tokenizers.Tokenizer.from_str", pytest.fail)
    monkeypatch.setattr("tokenizers.Tokenizer.from_file", pytest.fail)
    change_tokenizer(folder, **parts)
    with pytest.raises(ModelError, match=words):
        loading.from_pretrained(folder, "x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_input_chars_per_word", 10**9),
        ("unk_token", "a" * 101),
        ("continuing_subword_prefix", "a" * 10**6),
        ("type", "X"),
    ],
)
def test_the_numbers_of_the_model_of_pieces_are_bounded(folder: Path, key: str, value: Any) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    change_tokenizer(folder, model=content["model"] | {key: value})
    with pytest.raises(ModelError, match=f"tokenizer.json of x says {key} = "):
        loading.from_pretrained(folder, "x")


def test_padding_and_truncation_keep_their_tokens_and_lose_their_lengths(folder: Path) -> None:
    padding = {
        "strategy": {"Fixed": 10**6},
        "direction": "Left",
        "pad_to_multiple_of": 10**6,
        "pad_id": 0,
        "pad_type_id": 0,
    }
    change_tokenizer(folder, padding=padding | {"pad_token": "[PAD]"})
    _, tokenizer = loading.from_pretrained(folder, "x")
    assert len(tokenizer.backend_tokenizer.encode("a cat").ids) == 4
    assert tokenizer.padding_side == "left"


def test_an_id_far_beyond_the_others_is_refused(folder: Path) -> None:
    """For some files the library lists every id up to the largest of these tokens."""
    change(folder, "tokenizer_config.json", added_tokens_decoder={"4000000000": {"content": "a"}})
    with pytest.raises(ModelError, match="added_tokens_decoder = a mapping of 1 values"):
        loading.from_pretrained(folder, "x")


def sentencepiece(folder: Path, pieces: int = 26, longest: int = 1, charsmap: bytes = b"") -> Path:
    """The folder of an XLM-RoBERTa whose tokenizer is a file of sentencepiece alone."""
    from sentencepiece import sentencepiece_model_pb2

    tiny.save_tiny(folder, "xlm-roberta")
    (folder / "tokenizer.json").unlink()
    change(folder, "tokenizer_config.json", tokenizer_class="XLMRobertaTokenizer")
    model: Any = sentencepiece_model_pb2.ModelProto()
    kinds = ("<unk>", 2), ("<s>", 3), ("</s>", 3)
    for text, kind in (*kinds, *((chr(ord("a") + at) * longest, 1) for at in range(pieces - len(kinds)))):
        model.pieces.add(piece=text, score=-1.0, type=kind)
    model.normalizer_spec.precompiled_charsmap = charsmap
    (folder / "sentencepiece.bpe.model").write_bytes(model.SerializeToString())
    return folder


def test_a_file_of_sentencepiece_is_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, tokenizer = loading.from_pretrained(sentencepiece(tmp_path / "sound"), "x")
    assert {"a", "b"} <= tokenizer.get_vocab().keys()
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", pytest.fail)
    monkeypatch.setattr(checked_copy_module, "MOST_LINES", 100)
    long_replacement = (4).to_bytes(4, "little") + bytes(4) + b"a" * 10_000 + bytes(1)
    for name, options, words in (
        ("pieces", {"pieces": 101}, "101 pieces"),
        ("long", {"longest": 1_001}, "one of more than 1,000 characters"),
        ("table", {"charsmap": b"\xff" * 8}, "announces 4,294,967,295 bytes"),
        ("replacement", {"charsmap": long_replacement}, "16 times"),
    ):
        with pytest.raises(ModelError, match=words):
            loading.from_pretrained(sentencepiece(tmp_path / name, **options), "x")  # type: ignore[arg-type]
    other = sentencepiece(tmp_path / "other")
    (other / "sentencepiece.bpe.model").write_bytes(b"no such file")
    with pytest.raises(ModelError, match="is not a file of sentencepiece"):
        loading.from_pretrained(other, "x")


# --- Numbers

FAR = [0, -1, 2**31, 10**400, 2.5, float("nan"), float("inf"), "12", True, [12], {"a": 12}]


@pytest.mark.parametrize("key", [key for key, rule in allowed.CONFIG.items() if not rule(3) and rule(2.5)])
def test_a_size_that_no_model_has_is_refused_in_one_line(
    key: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the library sees it: with the file, the key, the value and the bound."""
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", pytest.fail)
    refused = [value for value in FAR if allowed.CONFIG[key](value)]
    assert len(refused) >= 7
    for value in refused:
        change(folder, "config.json", **{key: value})
        with pytest.raises(ModelError, match=f"config.json of x says {key} = .*{key} can be ") as refusal:
            loading.from_pretrained(folder, "x")
        assert "\n" not in str(refusal.value)
        assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("key", [key for key, rule in allowed.CONFIG.items() if not rule(0.5)])
def test_a_share_or_a_scale_is_a_finite_number(key: str) -> None:
    for value in (float("nan"), float("inf"), -float("inf"), -1e13, 1e13, 10**400, "0.1", True, [0.1]):
        assert allowed.CONFIG[key](value), value


def test_labels_are_counted_before_they_are_made(folder: Path) -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"num_labels": 2 * 10**8},
        {"id2label": {str(at): "a" for at in range(100_001)}},
        {"id2label": {"x": "a"}},
        {"id2label": {"9" * 5_000: "a"}},
        {"label2id": {"a" * 1_001: 0}},
        {"label2id": {"a": {"b": {}}}},
    )
    for values in cases:
        with pytest.raises(ModelError, match=r"config\.json of x says"):
            loading.from_pretrained(
                change(shutil.copytree(folder, folder.parent / "copy"), "config.json", **values), "x"
            )
        shutil.rmtree(folder.parent / "copy")


def test_the_parameters_of_a_rotation_are_bounded() -> None:
    rule = allowed.CONFIG["rope_parameters"]
    for sound in (
        {"rope_type": "default", "rope_theta": 160_000.0},
        {"full_attention": {"rope_type": "default", "rope_theta": 1e4}, "sliding_attention": {"rope_theta": 1e4}},
        {"rope_type": "longrope", "long_factor": [1.0, 2.0], "short_factor": [1, 2], "factor": None},
    ):
        assert not rule(sound)
    for wrong in (
        {"rope_theta": float("nan")},
        {"factor": 1e300},
        {"a": {"b": {"c": 1}}},
        {"long_factor": [1.0] * 10_001},
        {"rope_type": "/etc/passwd"},
        [1],
        {"a" * 200: 1},
    ):
        assert rule(wrong), wrong


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_sizes_that_disagree_with_the_weights_are_refused_unbuilt(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 blocks of some thousand dimensions would take 40 GB, though each number is one that a model may have."""
    folder = tiny.save_tiny(tmp_path / "m", architecture)
    names = AutoConfig.from_pretrained(folder).attribute_map  # what the library's usual names stand for
    size, blocks = (names.get(name, name) for name in ("hidden_size", "num_hidden_layers"))
    change(folder, "config.json", **{size: 4_096, blocks: 4}, layer_types=None)
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", pytest.fail)
    with pytest.raises(ModelError, match=r"config.json of x describes [\d,]+ weights, and its files have [\d,]+\."):
        loading.from_pretrained(folder, "x")


def test_weights_beyond_the_machines_memory_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = load_file(folder / "model.safetensors").values()
    size = 4 * sum(tensor.numel() for tensor in weights)
    monkeypatch.setattr(loading, "machine_memory", lambda: size)
    loading.from_pretrained(folder, "x")
    monkeypatch.setattr(loading, "machine_memory", lambda: size - 1)
    with pytest.raises(ModelError, match=f"take {size:,} bytes"):
        loading.from_pretrained(folder, "x")


@pytest.mark.parametrize("shape", [[2**40, 0], [0, 10**12]])
def test_a_tensor_of_no_bytes_with_a_huge_side_is_refused(folder: Path, shape: list[int]) -> None:
    """A layer with a bias of this length would be built for it."""
    tiny.publish(folder, tiny.pooling_module(), tiny.dense_module(32, 12))
    header = json.dumps({"linear.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    (folder / "2_Dense" / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelError, match=f"a tensor of {max(shape):,} rows or columns, and 0 numbers in all"):
        find_files(parse_model(str(folder)))


def test_a_header_without_end_is_refused_unread(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((10**12).to_bytes(8, "little") + b"{")
    with pytest.raises(ModelError, match="a header of 1,000,000,000,000 bytes"):
        find_files(parse_model(str(folder)))


def test_a_head_of_very_many_outputs_gives_no_labels(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        weights | {"classifier.weight": torch.zeros(100_001, 1), "classifier.bias": torch.zeros(100_001)},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(ModelError, match="a head of 100,001 outputs"):
        Backend.load(str(folder), device_name="cpu").loaded.pair_scorer()


@pytest.mark.parametrize("shape", [[], [0, 32], [3], [1, 1, 32]])
def test_a_head_of_another_shape_gives_no_scores(folder: Path, shape: list[int]) -> None:
    weights = load_file(folder / "model.safetensors")
    head = {"classifier.weight": torch.zeros(shape), "classifier.bias": torch.zeros(shape[:1])}
    save_file(weights | head, folder / "model.safetensors", metadata={"format": "pt"})
    backend = Backend.load(str(folder), device_name="cpu")
    for use in (backend.pair_labels, lambda: backend.score_pairs(["the cat"], ["a dog"])):
        with pytest.raises(ModelError, match="has a head of the shape"):
            use()


def test_a_head_beside_a_table_of_vectors_gives_no_scores(tmp_path: Path) -> None:
    folder = static_models.save_model2vec(tmp_path / "model")
    head = {"classifier.weight": torch.zeros(2, 7), "classifier.bias": torch.zeros(2)}
    save_file(load_file(folder / "model.safetensors") | head, folder / "model.safetensors")
    with pytest.raises(ModelError, match="could not be loaded"):
        Backend.load(str(folder), device_name="cpu").pair_labels()


@pytest.mark.parametrize(
    ("architecture", "most"), [("modernbert", 8_192), ("nomic_bert", 8_192), ("eurobert", 8_192), ("deberta-v2", 3_663)]
)
def test_a_text_is_read_no_further_than_there_is_memory(architecture: str, most: int, tmp_path: Path) -> None:
    """Rotations and distances need no table of positions: a number in config.json would let a text take terabytes."""
    folder = tiny.save_tiny(tmp_path / "model", architecture)
    distances = {"max_relative_positions": 64} if architecture == "deberta-v2" else {}
    change(folder, "config.json", max_position_embeddings=10_000_000, **distances)
    change(folder, "tokenizer_config.json", model_max_length=10_000_000)
    change(folder, "sentence_bert_config.json", max_seq_length=10_000_000)
    backend = Backend.load(str(folder), device_name="cpu")
    assert backend.facts.max_positions == most
    assert backend.own_max_length == most
    ids, truncated = backend.tokenization.encode_many(["the cat " * 10_000])
    assert [len(row) for row in ids] == [most]
    assert truncated == [True]


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("sentence_bert_config.json", "max_seq_length", 10**9),
        ("sentence_bert_config.json", "query_length", -1),
        ("config_sentence_transformers.json", "prompts", {"query": "a" * 10_001}),
        ("config_sentence_transformers.json", "prompts", {str(at): "a" for at in range(1_001)}),
        ("config_sentence_transformers.json", "query_prefix", "a" * 1_001),
    ],
)
def test_settings_of_sentence_encoders_are_bounded(folder: Path, file: str, key: str, value: Any) -> None:
    change(folder, file, **{key: value})
    with pytest.raises(ModelError, match=f"{file} of x says {key} = "):
        loading.from_pretrained(folder, "x")
