"""Model folders of somebody who means harm, drawn from a seed, and a process that opens them and reports what it saw.

Each folder is a healthy tiny model of one family with up to three kinds of mischief: keys that name other files or code, steps
of a tokenizer that multiply a text, and numbers far beyond any model's. Outside the folder lie files with a word that nothing
may show, and code that leaves a mark when it runs.
"""

from __future__ import annotations

import json
import logging
import queue
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

SECRET = "canaryqz"  # a word of the files outside
SECRET_WEIGHT = 7777.25
MOST_BYTES = 2 << 30
MOST_SECONDS = 30.0  # of a processor
HANGS_SECONDS = 3_600.0  # of the clock
ADDRESS_SPACE = 6 << 30  # more than this, beyond what it has at first, ends a process

Json = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A folder and what is wrong with it."""

    folder: Path
    family: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Opened:
    """What became of a folder."""

    seed: int
    family: str
    kinds: tuple[str, ...]
    outcome: str  # "loaded", "refused", "error", or "ended": the process
    said: str  # the error, or what showed that the process ended
    seconds: float
    busy: float  # seconds of a processor, which other programs do not lengthen
    peak: int  # bytes of memory beyond those before
    faults: tuple[str, ...]  # of what may never happen


# --- Healthy models


def _published(folder: Path) -> Path:
    from tests.support import tiny

    tiny.save_tiny(folder)
    tiny.publish(folder, tiny.pooling_module(), tiny.dense_module(32, 12), ("Normalize", {}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32, "do_lower_case": False}))
    prompts = {"query": "the ", "document": ""}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return folder


def _without_tokenizer_json(folder: Path) -> Path:
    from tests.support import tiny

    tiny.save_tiny(folder)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )
    return folder


def _in_parts(folder: Path) -> Path:
    from safetensors import safe_open

    from tests.support import tiny

    tiny.save_tiny(folder)
    part = "model-00001-of-00001.safetensors"
    (folder / "model.safetensors").rename(folder / part)
    with safe_open(folder / part, "pt") as weights:
        index = {"metadata": {}, "weight_map": dict.fromkeys(weights.keys(), part)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def families() -> dict[str, Callable[[Path], Path]]:
    """By name: how a healthy model is saved."""
    from tests.support import decoder_models, saved_models, static_models, tiny

    def plain(architecture: str) -> Callable[[Path], Path]:
        return lambda folder: tiny.save_tiny(folder, architecture)

    return {
        **{architecture: plain(architecture) for architecture in tiny.ARCHITECTURES},
        "published": _published,
        "masked-lm": tiny.save_tiny_masked_lm,
        "cross-encoder": lambda folder: saved_models.save_cross_encoder(folder, "bert"),
        "cross-encoder roberta": lambda folder: saved_models.save_cross_encoder(folder, "roberta"),
        "sparse": saved_models.save_sparse,
        "multi-vector": saved_models.save_multi,
        "pylate": saved_models.save_pylate,
        "decoder": decoder_models.save_qwen3,
        "model2vec": static_models.save_model2vec,
        "static": static_models.save_static_embedding,
        "vocab.txt": _without_tokenizer_json,
        "parts": _in_parts,
    }


def plant(place: Path) -> None:
    """Write the files outside that nothing may show, each as good as its kind can be."""
    from tests.support import tiny

    outside = tiny.save_tiny(place / "outside")
    words = [f"{SECRET}{number}" for number in range(len(tiny.WORDS))]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (outside / "vocab.txt").write_text("\n".join(pieces))
    (outside / "merges.txt").write_text("\n".join(f"{word} {word}" for word in words))
    tokenizer = json.loads((outside / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
    (outside / "tokenizer.json").write_text(json.dumps(tokenizer))
    (outside / "vocab.json").write_text(json.dumps(tokenizer["model"]["vocab"]))
    for file in ("config.json", "tokenizer_config.json", "special_tokens_map.json", "sentence_bert_config.json"):
        values = json.loads((outside / file).read_text()) if (outside / file).exists() else {}
        (outside / file).write_text(json.dumps({**values, "architectures": [SECRET], "cls_token": f"[{SECRET}]"}))
    prompts = {"prompts": {"query": SECRET, "document": SECRET}, "model_type": SECRET}
    (outside / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (outside / "modules.json").write_text(json.dumps([{"type": f"x.{SECRET}", "path": ""}]))
    (outside / "secret.txt").write_text(f"{SECRET}\n" * 50)
    _with_secret_weights(outside / "model.safetensors")


def _with_secret_weights(path: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = {name: tensor * 0 + SECRET_WEIGHT for name, tensor in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})


# --- Mischief

LINKS = ("modules.json", "config_sentence_transformers.json", "vocab.txt", "vocab.json", "merges.txt",
         "added_tokens.json", "chat_template.jinja", "tokenizer.model", "1_Pooling", "2_Dense")  # fmt: skip
SMALL = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "sentence_bert_config.json")
OTHERS = ("config_sentence_transformers.json", "adapter_config.json", "generation_config.json", "processor_config.json",
          "preprocessor_config.json", "added_tokens.json")  # fmt: skip
PATH_KEYS = (
    *("vocab", "merges", "vocab_file", "merges_file", "tokenizer_file", "spm_file", "name_or_path", "_name_or_path"),
    *("chat_template", "init_inputs", "gguf_file", "configuration_files", "transformers_weights", "vocab_files_names"),
    *("fast_tokenizer_files", "base_model_name_or_path", "special_tokens_map_file", "added_tokens_file", "subfolder"),
    *("quantization_config", "attn_implementation", "_attn_implementation", "tokenizer_class", "processor_class"),
    *("adapter_config", "additional_special_tokens", "extra_special_tokens", "cls_token", "unk_token", "mask_token"),
    *("_spm_precompiled_charsmap", "post_processor", "tokenizer_object", "tokenizer_padding", "id2label", "label2id"),
    *(
        "architectures",
        "model_type",
        "pad_token",
        "prompts",
        "activation_fn",
        "keep_in_fp32_modules",
        "per_layer_config",
    ),
)
CODE = (
    *(
        "os.abort",
        "webbrowser.open",
        "antigravity.x",
        "torch.distributed.run.main",
        "torch.hub.list",
        "hostile_code.Run",
    ),
    *("torch.cuda.synchronize", "sentence_transformers.util.import_from_string", "subprocess.Popen", "sys.exit"),
)
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2, 3, 7, 10**5, 10**6, 2 * 10**8, 2**31 - 1, 2**31, 2**40, 2**63, 10**30, 10**400, -(2**63), -7),
    *(
        0.5,
        1e308,
        -1e9,
        float("nan"),
        float("inf"),
        float("-inf"),
        "10",
        "",
        "a",
        True,
        False,
        None,
        [],
        {},
        [1],
        [0] * 9,
    ),
    *([10**9], {"a": 10**9}, "9" * 5_000, [[[]]]),
)
NUMBER_KEYS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "head_dim"),
    *("max_position_embeddings", "type_vocab_size", "pad_token_id", "num_labels", "dim", "n_layers", "n_heads"),
    *("hidden_dim", "embedding_size", "num_hidden_groups", "inner_group_num", "num_key_value_heads", "layer_norm_eps"),
    *("hidden_dropout_prob", "initializer_range", "local_attention", "global_attn_every_n_layers", "sliding_window"),
    *("position_buckets", "max_relative_positions", "relative_attention_num_buckets", "task_type_vocab_size"),
    *("rope_theta", "rope_parameters", "rope_scaling", "norm_eps", "rms_norm_eps", "eos_token_id", "bos_token_id"),
    *("layer_types", "chunk_size_feed_forward", "pruned_heads", "hidden_act", "pos_att_type", "conv_kernel_size"),
    *("tie_word_embeddings", "is_decoder", "torch_dtype", "dtype", "pooler_hidden_size", "max_window_layers"),
    *(
        "id2label",
        "label2id",
        "sinusoidal_pos_embds",
        "output_hidden_states",
        "return_dict",
        "use_cache",
        "vision_config",
    ),
)


class Mischief:
    """What can be done to a folder. Each method draws one case of its kind."""

    def __init__(self, folder: Path, place: Path, chance: random.Random) -> None:
        self.folder, self.outside, self.chance = folder, place / "outside", chance

    # Keys

    def names_a_file(self) -> str:
        file = self.chance.choice([*SMALL, *SMALL, *OTHERS])
        key = self.chance.choice(PATH_KEYS)
        path = self._path()
        value: Any = self.chance.choice([path, path, path, [path], {"AutoTokenizer": path}, {"a": {"path": path}}])
        self._set(file, {key: value})
        return f"{file}: {key}"

    def a_vocabulary_is_a_path(self) -> str:
        part = self.chance.choice(["vocab", "merges"])
        self._tokenizer(lambda content: content["model"].update({part: self._path()}))
        return f"tokenizer.json: {part}"

    def is_a_link(self) -> str:
        files = [path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        path = self.chance.choice(sorted(files))
        target = self.outside / path.name
        target = target if target.exists() and self.chance.random() < 0.8 else self.outside / "secret.txt"
        path.unlink()
        path.symlink_to(target)
        return f"link: {path.name}"

    def adds_a_link(self) -> str:
        name = self.chance.choice([*LINKS])
        if (self.folder / name).exists():
            return f"no link: {name}"
        target = self.outside / name
        (self.folder / name).symlink_to(target if target.exists() else self.outside)
        return f"new link: {name}"

    def lists_modules(self) -> str:
        kinds = [*CODE, "sentence_transformers.models.Transformer", "sentence_transformers.models.Dense", "Pooling"]
        entries: list[Any] = [
            {
                "idx": at,
                "name": str(at),
                "path": self.chance.choice(
                    ["", "1_Pooling", "..", "../outside", str(self.outside), "x" * 5_000, "1_Pooling/../.."]
                ),
                "type": self.chance.choice(kinds),
            }
            for at in range(self.chance.choice([1, 2, 5, 100, 20_000]))
        ]
        (self.folder / "modules.json").write_text(
            json.dumps(self.chance.choice([entries, entries, {"a": entries}, "a", 7]))
        )
        return f"modules.json: {len(entries)}"

    def asks_for_code(self) -> str:
        (self.folder / "hostile_code.py").write_text(
            f"open({str(self.outside.parent / 'mark')!r}, 'w').close()\nclass Run:\n    pass\n"
        )
        named = self.chance.choice(["hostile_code.Run", "hostile_code--x.Run", str(self.folder / "hostile_code.Run")])
        auto = {f"Auto{kind}": named for kind in ("Config", "Model", "Tokenizer", "ModelForMaskedLM")}
        file = self.chance.choice(["config.json", "tokenizer_config.json"])
        self._set(
            file, {"auto_map": self.chance.choice([auto, {**auto, "AutoTokenizer": [None, named]}, [named, named]])}
        )
        if self.chance.random() < 0.5:
            code = self.chance.choice([*CODE, "torch.nn.modules.activation.Tanh"])
            self._set("config.json", {"sentence_transformers": {"activation_fn": code}})
            self._set("config_sentence_transformers.json", {"activation_fn": code, "model_type": "CrossEncoder"})
        return f"{file}: auto_map"

    def has_an_adapter(self) -> str:
        values = {
            "base_model_name_or_path": self._path(),
            "peft_type": "LORA",
            "r": self.chance.choice(NUMBERS),
            "lora_alpha": 1,
        }
        self._set(
            "adapter_config.json", {**values, "target_modules": ["query"], "auto_mapping": {"parent_library": "os"}}
        )
        return "adapter_config.json"

    def names_weights(self) -> str:
        part = self.chance.choice(
            ["../outside/model.safetensors", str(self.outside / "model.safetensors"), "x.bin", "../x", "a\0b"]
        )
        if self.chance.random() < 0.7:
            (self.folder / "model.safetensors").unlink(missing_ok=True)
        self._set("model.safetensors.index.json", {"weight_map": {"embeddings.word_embeddings.weight": part}})
        return f"index: {part[-20:]!r}"

    # Tokenizers

    def multiplies_tokens(self) -> str:
        a, b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
        special = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
        ids = [2] * self.chance.choice([1, 3, 1_000, 100_000])
        count = self.chance.choice([2, 3, 30, 1_000])
        tokens = {"[CLS]": {"id": "[CLS]", "ids": ids, "tokens": ["[CLS]"] * len(ids)}}
        single = self.chance.choice(
            [[special, *[a] * count], [special, a], [special] * count + [a], [special], [b], [b, a]]
        )
        pair = self.chance.choice(
            [[special, *[a] * count, b], [special, a, b], [special, a], [b, a, b], [*[special, a] * count, b]]
        )
        template: Json = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}
        for _ in range(self.chance.choice([0, 0, 1, 2, 20, 100])):
            template = {"type": "Sequence", "processors": [template] * self.chance.choice([1, 1, 2])} | (
                {} if len(json.dumps(template)) < 200_000 else {"processors": [template]}
            )
            if len(json.dumps(template)) > 2_000_000:
                break
        if self.chance.random() < 0.2:
            roberta = {"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
            template = {"type": "Sequence", "processors": [roberta] * self.chance.choice([2, 40, 5_000])}
        self._tokenizer(lambda content: content.update(post_processor=template))
        return f"template: {count} texts, {len(ids)} ids"

    def special_tokens_write_templates(self) -> str:
        value = self.chance.choice(
            ["$A", "[CLS] $A $A $A", "$A:0 " * 2_000, "$B", "[CLS]:0 " * 10_000, " ", "a b", "$", "x" * 10**6]
        )
        role = self.chance.choice(
            ["cls_token", "sep_token", "bos_token", "eos_token", "pad_token", "mask_token", "unk_token"]
        )
        self._set(self.chance.choice(["tokenizer_config.json", "special_tokens_map.json"]), {role: value})
        if self.chance.random() < 0.5:
            name = self.chance.choice(
                ["BertTokenizer", "XLMRobertaTokenizer", "LlamaTokenizer", "MPNetTokenizer", "Qwen2Tokenizer"]
            )
            self._set("tokenizer_config.json", {"tokenizer_class": name, "add_bos_token": True, "add_eos_token": True})
        return f"{role}: {value[:12]!r}"

    def lengthens_texts(self) -> str:
        grow = self.chance.choice([1, 2, 50, 10_000])
        step: Json = self.chance.choice([
            {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * grow},
            {"type": "Replace", "pattern": {"Regex": ""}, "content": "b" * grow},
            {"type": "Replace", "pattern": {"String": ""}, "content": "b" * grow},
            {"type": "Replace", "pattern": {"Regex": "((a{1,1000}){1,1000}){1,1000}"}, "content": "b"},
            {"type": "Replace", "pattern": {"Regex": "(" * grow + ")" * grow}, "content": "b"},
            {"type": "Prepend", "prepend": "a" * grow},
            {"type": "ByteLevel"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "Unknown"}, {"type": None},
            {"type": "Precompiled", "precompiled_charsmap": "/w" * 2_000}, {"type": "Precompiled", "precompiled_charsmap": 7},
        ])  # fmt: skip
        count = self.chance.choice([1, 5, 20, 60, 1_000])
        steps = {"type": "Sequence", "normalizers": [step] * count}
        for _ in range(self.chance.choice([0, 0, 3, 60, 120])):
            steps = {"type": "Sequence", "normalizers": [steps]}
        self._tokenizer(
            lambda content: content.update({self.chance.choice(["normalizer", "normalizer", "decoder"]): steps})
        )
        return f"normalizer: {step['type']} {count}"

    def cuts_texts(self) -> str:
        step: Json = self.chance.choice([
            {"type": "FixedLength", "length": self.chance.choice([0, 1, 10**18, -1])},
            {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False},
            {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": True},
            {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
            {"type": "Split", "pattern": {"Regex": "(a{1,99999}){1,99999}"}, "behavior": "Removed", "invert": False},
            {"type": "Split", "pattern": {"Regex": "[^ ]*" * 9 + "(?!)"}, "behavior": "Isolated", "invert": False},
            {"type": "Split", "pattern": {"Regex": "a?" * 8 + "b"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            {"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "Digits", "individual_digits": True},
            {"type": "UnicodeScripts"}, {"type": "Nothing"},
        ])  # fmt: skip
        count = self.chance.choice([1, 3, 30, 5_000])
        self._tokenizer(
            lambda content: content.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [step] * count})
        )
        return f"pre-tokenizer: {step['type']} {count}"

    def adds_tokens(self) -> str:
        count, length = self.chance.choice(
            [(1, 10), (50_000, 3), (300, 10_000), (1, 3_000_000), (200_000, 1), (19_000, 50)]
        )
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), self.chance.random() < 0.5)
        first = self.chance.choice([100, 0, 2**31, 4_000_000_000, -5])
        tokens: list[Json] = [{"id": first + at, "content": f"{at}" + "a" * length, **flags} for at in range(count)]
        file = self.chance.choice(["tokenizer.json", "tokenizer_config.json", "added_tokens.json", "special"])
        if file == "tokenizer.json":
            self._tokenizer(lambda content: content.update(added_tokens=tokens))
        elif file == "tokenizer_config.json":
            by_id = {str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in tokens}
            self._set(file, {"added_tokens_decoder": by_id})
        elif file == "added_tokens.json":
            self._set(file, {token["content"]: token["id"] for token in tokens})
        else:
            key = self.chance.choice(["additional_special_tokens", "extra_special_tokens"])
            self._set("special_tokens_map.json", {key: [token["content"] for token in tokens]})
        return f"{file}: {count} tokens of {length}"

    def bends_the_model_of_pieces(self) -> str:
        key = self.chance.choice(["max_input_chars_per_word", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                  "dropout", "type", "unk_id", "byte_fallback", "fuse_unk", "vocab", "merges"])  # fmt: skip
        value = self.chance.choice(
            [
                *NUMBERS[:30],
                "a" * 10**6,
                {"a": 2**32},
                {"a": -1},
                [["a", 0.0]] * 10,
                [["a" * n, -1.0] for n in range(1, 3_000)],
            ]
        )
        self._tokenizer(lambda content: content["model"].update({key: value}))
        return f"tokenizer.json: {key}"

    def pads_and_truncates(self) -> str:
        number = self.chance.choice([0, 1, 10**9, 2**40, -1])
        padding = {"strategy": {"Fixed": number}, "direction": "Right", "pad_to_multiple_of": number, "pad_id": 0,
                   "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
        truncation = {"direction": "Right", "max_length": number, "strategy": "LongestFirst", "stride": number}
        self._tokenizer(lambda content: content.update(padding=padding, truncation=truncation))
        self._set(
            "tokenizer_config.json", {"model_max_length": self.chance.choice(NUMBERS), "pad_to_multiple_of": number}
        )
        return f"padding: {number}"

    # Numbers

    def says_a_number(self) -> str:
        key, value = self.chance.choice(NUMBER_KEYS), self.chance.choice(NUMBERS)
        self._set("config.json", {key: value})
        return f"config.json: {key} = {str(value)[:12]}"

    def says_numbers_that_agree(self) -> str:
        """Sizes that fit each other, of a model that would fill any machine."""
        size, layers = self.chance.choice([2**12, 2**15, 2**19]), self.chance.choice([1, 100, 200, 1_000])
        sizes = {"hidden_size": size, "dim": size, "intermediate_size": size, "hidden_dim": size, "vocab_size": size}
        self._set("config.json", {**sizes, "num_hidden_layers": layers, "n_layers": layers})
        return f"config.json: {layers} layers of {size}"

    def names_many_labels(self) -> str:
        count = self.chance.choice([2, 10, 150_000])
        labels = {str(at): self.chance.choice(["a", "a" * 50, 7]) for at in range(count)}
        self._set(
            "config.json",
            self.chance.choice([{"num_labels": 2 * 10**8}, {"id2label": labels}, {"id2label": {"x": "a"}}]),
        )
        return f"config.json: {count} labels"

    def says_a_number_elsewhere(self) -> str:
        files = [
            "sentence_bert_config.json",
            "config_sentence_transformers.json",
            "tokenizer_config.json",
            "1_Pooling/config.json",
        ]
        file, value = self.chance.choice(files), self.chance.choice([*NUMBERS, "a" * 10**6, {"query": "a" * 10**6}])
        keys = ["max_seq_length", "query_length", "document_length", "prompts", "pad_token_type_id", "max_active_dims",
                "query_expansion", "skiplist_words", "model_input_names", "padding_side", "word_embedding_dimension",
                "pooling_mode", "query_prefix", "default_prompt_name", "truncate_dim"]  # fmt: skip
        key = self.chance.choice(keys)
        (self.folder / file).parent.mkdir(exist_ok=True)
        self._set(file, {key: value})
        return f"{file}: {key} = {str(value)[:12]}"

    def has_impossible_tensors(self) -> str:
        files = sorted(self.folder.rglob("*.safetensors"))
        if not files:
            return "no tensors"
        path = self.chance.choice(files)
        shape = self.chance.choice([[2**40, 0], [0, 10**12], [0], [2**63, 2**63], [10**9]])
        name = self.chance.choice(
            ["classifier.weight", "embeddings", "linear.weight", "embeddings.word_embeddings.weight"]
        )
        header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
        size = self.chance.choice([len(header), len(header), 10**12, 2**63])
        path.write_bytes(size.to_bytes(8, "little") + header)
        return f"{path.name}: {shape}"

    def reads_without_end(self) -> str:
        """Positions without a table, as a rotation has them, reach any number of tokens."""
        most = self.chance.choice([8_193, 20_000, 100_000, 10_000_000])
        self._set("config.json", {"max_position_embeddings": most, "max_relative_positions": most})
        self._set("tokenizer_config.json", {"model_max_length": most})
        self._set("sentence_bert_config.json", {"max_seq_length": most})
        return f"reads {most:,} tokens"

    def has_a_head_of_another_shape(self) -> str:
        import torch
        from safetensors import SafetensorError
        from safetensors.torch import load_file, save_file

        shape = self.chance.choice([[], [0, 32], [3], [1, 0], [2, 7], [1, 1, 1, 32]])
        path = self.folder / "model.safetensors"
        try:
            weights = load_file(path)
        except (OSError, SafetensorError):  # something is wrong with it already, or it is in parts
            weights = {}
        for name in ("classifier", "classifier.dense", "classifier.out_proj", "cls.seq_relationship"):
            weights |= {f"{name}.weight": torch.zeros(shape), f"{name}.bias": torch.zeros(shape[:1])}
        path.unlink(missing_ok=True)
        save_file(weights, path, metadata={"format": "pt"})
        return f"head of the shape {shape}"

    def multiplies_rows(self) -> str:
        """A few rows of weights that others make many of: a table that pieces share, factors, a product of rank 1."""
        import torch
        from safetensors import SafetensorError
        from safetensors.torch import load_file, save_file

        part = self.chance.choice(["mapping", "weights", "lora"])
        size = self.chance.choice([7, 10_000, 2_000_000])
        for path in sorted(self.folder.rglob("*.safetensors")):
            if path.is_symlink():
                continue
            try:
                tensors = load_file(path)
            except SafetensorError:  # something is wrong with it already
                continue
            table = "embeddings" if "embeddings" in tensors else "embedding.weight"
            if part == "lora":
                name = "base_model.model.bert.encoder.layer.0.attention.self.query"
                tensors |= {f"{name}.lora_A.weight": torch.ones(1, size), f"{name}.lora_B.weight": torch.ones(size, 1)}
            elif table in tensors:
                tensors[table] = torch.ones(1, self.chance.choice([16, 10_000]))
                tensors[part] = torch.zeros(size, dtype=torch.int8)
            save_file(tensors, path, metadata={"format": "pt"})
        return f"weights: {part} of {size}"

    def is_no_json(self) -> str:
        file = self.chance.choice([*SMALL, "modules.json", "tokenizer.json", "model.safetensors.index.json"])
        text = self.chance.choice(
            ["[" * 100_000, "[[]," * 2_000_000 + "[]]", "", "{", "\ufeff{}", "7", "[]", "null", '"a"', '{"a":1e999}']
        )
        (self.folder / file).unlink(missing_ok=True)
        (self.folder / file).write_text(text)
        return f"{file}: {text[:8]!r}"

    # How

    def _path(self) -> str:
        file = self.chance.choice(
            ["vocab.txt", "vocab.json", "secret.txt", "tokenizer.json", "config.json", "merges.txt", ""]
        )
        path = self.outside / file
        up = f"../../{self.outside.parent.name}/outside/{file}"
        others = [
            f"../outside/{file}",
            up,
            f"file://{path}",
            "/dev/zero",
            "/proc/self/environ",
            "google-bert/bert-base-uncased",
        ]
        return self.chance.choice([str(path), str(path), *others])

    def _set(self, file: str, values: Json) -> None:
        path = self.folder / file
        try:
            known = json.loads(path.read_text()) if path.is_file() and not path.is_symlink() else {}
        except (ValueError, RecursionError):
            known = {}
        path.unlink(missing_ok=True)
        path.write_text(json.dumps({**(known if isinstance(known, dict) else {}), **values}))

    def _tokenizer(self, change: Callable[[Json], Any]) -> None:
        for path in self.folder.rglob("tokenizer.json"):
            if not path.is_symlink():
                try:
                    content = json.loads(path.read_text(encoding="utf-8"))
                    change(content)
                    path.write_text(json.dumps(content), encoding="utf-8")
                except (
                    ValueError,
                    AttributeError,
                    TypeError,
                    KeyError,
                    RecursionError,
                ):  # something is wrong with it already
                    continue


KINDS: tuple[str, ...] = tuple(name for name in vars(Mischief) if not name.startswith("_"))


def draw(place: Path, seed: int) -> Drawn:
    """The folder of a seed, below a place that `plant` has prepared. Every kind and every family comes first of some seed."""
    chance = random.Random(seed)
    names = list(families())
    family, first = names[seed % len(names)], KINDS[seed % len(KINDS)]
    healthy = place / "healthy" / family.replace(" ", "-")
    if not healthy.exists():
        saved = families()[family](place / "saved" / family.replace(" ", "-"))
        shutil.copytree(saved, healthy)
    folder = place / f"model-{seed}"
    shutil.copytree(healthy, folder)
    mischief = Mischief(folder, place, chance)
    kinds = [first, *chance.sample(KINDS, chance.choice([0, 0, 1, 2]))]
    return Drawn(folder, family, tuple(getattr(mischief, kind)() for kind in kinds))


# --- The process that opens them

TEXTS = ["the cat sat on the bank", "a" * 300, "The RIVER, and money! ﷺ é 你"]
LONG_TEXT = "the cat sat. " * 10_000


def everything_of(folder: Path, seed: int) -> Iterator[Any]:
    """Whatever of a model comes back to people, and at last to training."""
    from components.errors import UserError
    from components.model.backend import Backend

    backend = Backend.load(str(folder))
    loaded = backend.loaded
    yield backend.spec, backend.not_applied, loaded.sentence_config, loaded.tokenization.special_tokens
    yield loaded.tokenization.vocabulary
    tensors = [*loaded.encoder.parameters(), *(loaded.head.layers.parameters() if loaded.head else ())]
    yield [SECRET for tensor in tensors if bool((tensor == SECRET_WEIGHT).any())]
    for use in (
        lambda: backend.trace(TEXTS, attentions=loaded.structure.has_blocks).sentences,
        lambda: backend.trace(TEXTS, list(reversed(TEXTS))).sentences,
        lambda: loaded.masked_lm(),
        lambda: loaded.pair_scorer() and (backend.pair_labels(), backend.score_pairs(TEXTS, TEXTS)),
        lambda: backend.next_sentence_probabilities(TEXTS, TEXTS),
        lambda: backend.embed([LONG_TEXT]).shape,
        lambda: (loaded.splade, loaded.late_interaction and loaded.late_interaction.readings),
    ):
        try:
            yield use()
        except UserError as problem:
            yield problem
    if seed % 3 == 0:
        from components.training.model import build
        from components.training.objectives import ModelKind
        from components.training.settings import TrainingSettings

        kinds: tuple[ModelKind, ...] = ("encoder", "cross-encoder")
        for kind in kinds:
            try:
                built = build(TrainingSettings(model=str(folder)), kind)
                yield built.tokenizer(TEXTS, TEXTS, truncation=True, max_length=16)["input_ids"]
                yield built.tokenizer.get_vocab(), built.transformers_model.config.to_dict()
            except UserError as problem:
                yield problem


def _bytes(key: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith(f"{key}:")))


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def open_one(place: Path, seed: int, log: list[str]) -> Opened:
    from components.errors import UserError

    drawn = draw(place, seed)
    log.clear()
    _forget_peak()
    before, started, busy = _bytes("VmRSS"), time.monotonic(), time.process_time()
    outcome, said, shown = "loaded", "", []
    problem: BaseException | None = None
    try:
        for part in everything_of(drawn.folder, seed):
            shown.append(repr(part))
    except UserError as refusal:
        outcome, problem = "refused", refusal
    except BaseException as failure:  # noqa: BLE001 - a panic of a library too
        outcome, problem = "error", failure
    seconds, busy, peak = time.monotonic() - started, time.process_time() - busy, _bytes("VmHWM") - before
    faults = []
    if problem is not None:
        said = f"{type(problem).__name__}: {problem}"
        causes = [problem]
        while causes[-1].__cause__ is not None:
            causes.append(causes[-1].__cause__)
        if any(isinstance(cause, MemoryError) or "alloc" in str(cause) for cause in causes):
            faults.append("memory ran out")
    names = str(drawn.folder), str(place)
    seen = "".join([*shown, said, *log])
    for name in names:
        seen = seen.replace(name, "")
    if SECRET in seen:
        faults.append("it showed a file outside")
    if (place / "mark").exists():
        (place / "mark").unlink()
        faults.append("its code was run")
    if peak > MOST_BYTES:
        faults.append("memory")
    if busy > MOST_SECONDS:
        faults.append("time")
    if outcome == "refused" and (not said.strip() or "\n" in said or len(said) > 1_500):
        faults.append("not one line")
    shutil.rmtree(drawn.folder, ignore_errors=True)
    return Opened(seed, drawn.family, drawn.kinds, outcome, said[:600], seconds, busy, peak, tuple(faults))


def serve(place: Path) -> None:
    """Open the folder of each seed on the standard input, and write what became of it, a line of JSON each."""
    import resource

    import torch

    from components.model.backend import Backend

    torch.set_num_threads(1)
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(handler.format(record))  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    if not (place / "outside").exists():
        plant(place)
    list(everything_of(_published(place / f"first-{random.getrandbits(32)}"), 0))  # imports what the others need
    Backend.load("embedded")
    resource.setrlimit(resource.RLIMIT_AS, (_bytes("VmSize") + ADDRESS_SPACE, resource.RLIM_INFINITY))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        opened = open_one(place, int(line), lines)
        sys.stdout.write(json.dumps(vars(opened)) + "\n")
        sys.stdout.flush()


def open_all(seeds: Iterable[int], place: Path) -> Iterator[Opened]:
    """What becomes of each seed's folder, opened one after another in a process of its own; a new one after each that ended."""
    waiting = list(seeds)
    while waiting:
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hostile_models", str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        answers: queue.Queue[str] = queue.Queue()
        errors: list[str] = []
        threading.Thread(target=_copy, args=(worker.stdout, answers.put), daemon=True).start()
        threading.Thread(target=_copy, args=(worker.stderr, errors.append), daemon=True).start()
        assert worker.stdin is not None
        try:
            if answers.get(timeout=1_200) != "ready\n":
                raise RuntimeError("".join(errors)[-2_000:])
            while waiting:
                seed = waiting.pop(0)
                worker.stdin.write(f"{seed}\n")
                worker.stdin.flush()
                started, busy = time.monotonic(), busy_seconds(worker.pid)
                answer = _answer(answers, worker.pid, busy)
                if not answer:
                    ending = None
                    spent = busy_seconds(worker.pid) - busy  # now: nothing is known of a process that was waited for
                    with suppress(subprocess.TimeoutExpired):  # its last output comes before its end
                        ending = worker.wait(timeout=10.0)
                    seconds, busy = time.monotonic() - started, max(0.0, spent)
                    fault = "time" if ending is None else "the process ended"
                    said = f"no answer, exit status {ending}: {''.join(errors)[-400:]}"
                    yield Opened(seed, "", (), "ended", said, seconds, busy, 0, (fault,))
                    break
                values = json.loads(answer)
                yield Opened(**{**values, "kinds": tuple(values["kinds"]), "faults": tuple(values["faults"])})
        finally:
            worker.kill()
            worker.wait()


def busy_seconds(process: int) -> float:
    """Seconds of a processor that a process took until now; 0 once it has ended."""
    try:
        times = psutil.Process(process).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _answer(answers: queue.Queue[str], process: int, busy: float) -> str:
    """The next answer; empty where the process ended, took far more seconds of a processor than it may, or hangs.

    On a machine that has much else to do a folder of two seconds takes minutes: seconds of the clock say nothing of it.
    """
    asked = time.monotonic()
    while time.monotonic() - asked < HANGS_SECONDS and busy_seconds(process) - busy < 2 * MOST_SECONDS:
        try:
            return answers.get(timeout=1.0)
        except queue.Empty:
            continue
    return ""


def _copy(stream: Any, take: Callable[[str], Any]) -> None:
    for line in stream:
        if line.startswith(("ready", "{")) or take.__name__ == "append":
            take(line)
    take("")  # the end


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
