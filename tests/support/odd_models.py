"""Folders of tiny models with something wrong, each as a program could have saved it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, pre_tokenizers

from tests.support.tiny import save_tiny


def with_weight(folder: Path, number: float) -> Path:
    """One number of the second block's weights replaced."""
    save_tiny(folder)
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.1.output.dense.weight"][3, 4] = number
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def overflowing(folder: Path) -> Path:
    """Finite weights whose products are not: the last block multiplies by 1e38."""
    save_tiny(folder)
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.2.output.LayerNorm.weight"].fill_(3e38)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def with_config(folder: Path, **changes: Any) -> Path:
    save_tiny(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def with_id_beyond_the_rows(folder: Path) -> Path:
    """The tokenizer numbers "cat" far beyond the model's word embeddings."""
    return _with_tokenizer(save_tiny(folder), lambda content: content["model"]["vocab"].update(cat=4_000_000_000))


def all_unknown(folder: Path) -> Path:
    """No word of any text is in the vocabulary, so that every token is [UNK]."""

    def rename(content: dict[str, Any]) -> None:
        vocabulary = content["model"]["vocab"]
        content["model"]["vocab"] = {
            piece if piece.startswith("[") else f"zq{number}qz": number for piece, number in vocabulary.items()
        }

    return _with_tokenizer(save_tiny(folder), rename)


def backtracking(folder: Path) -> Path:
    """A pattern that tries every way to divide a run of the letter a; "aaaa…!" takes ten million steps."""
    save_tiny(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Split(Regex("(a+)+$"), "isolated")]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def exploding(folder: Path, *steps: dict[str, Any]) -> Path:
    """A tokenizer whose normalizer takes these steps after the others."""

    def add(content: dict[str, Any]) -> None:
        content["normalizer"] = {"type": "Sequence", "normalizers": [content["normalizer"], *steps]}

    return _with_tokenizer(save_tiny(folder), add)


def replacing(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def charsmap(longest: str) -> dict[str, Any]:
    """A table of sentencepiece whose replacements are an apostrophe and this text."""
    table = bytes(8)
    content = len(table).to_bytes(4, "little") + table + f"'\0{longest}\0".encode()
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(content).decode()}


def exploding_decoder(folder: Path) -> Path:
    steps = [replacing({"String": "a"}, "a" * 20)] * 5
    return _with_tokenizer(
        save_tiny(folder), lambda content: content.update(decoder={"type": "Sequence", "decoders": steps})
    )


def with_pipe(folder: Path, name: str) -> Path:
    save_tiny(folder)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    return folder


def _with_tokenizer(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return folder


# Name to how it is saved, and a word of the message that refuses it.
REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nan": (lambda folder: with_weight(folder, float("nan")), "NaN or infinity"),
    "infinite": (lambda folder: with_weight(folder, float("-inf")), "NaN or infinity"),
    "overflow": (overflowing, "vectors that are not finite"),
    "no layers": (lambda folder: with_config(folder, num_hidden_layers=0), "num_hidden_layers = 0"),
    "layers without end": (
        lambda folder: with_config(folder, num_hidden_layers=10**9),
        "num_hidden_layers = 1000000000",
    ),
    "ids beyond the rows": (with_id_beyond_the_rows, "4,000,000,000"),
    "a letter becomes a million": (
        lambda folder: exploding(folder, *[replacing({"String": "a"}, "a" * 20)] * 5),
        "16 times",
    ),
    "doubled many times": (lambda folder: exploding(folder, *[replacing({"Regex": ""}, "b")] * 20), "16 times"),
    "a long beginning": (lambda folder: exploding(folder, {"type": "Prepend", "prepend": "a" * 10_000}), "16 times"),
    "a table of long texts": (lambda folder: exploding(folder, charsmap("a" * 10_000)), "16 times"),
    "a decoder that explodes": (exploding_decoder, "16 times"),
    "one position": (lambda folder: with_config(folder, max_position_embeddings=1), ""),
    "pipe as configuration": (lambda folder: with_pipe(folder, "config.json"), "pipe"),
    "pipe as list of modules": (lambda folder: with_pipe(folder, "modules.json"), "pipe"),
    "pipe as chat template": (lambda folder: with_pipe(folder, "chat_template.jinja"), "pipe"),
    "pipe as weights": (lambda folder: with_pipe(folder, "model.safetensors"), "pipe"),
}
