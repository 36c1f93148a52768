"""Static models: one vector for each piece of the vocabulary, and nothing else. Their files, and what is read from them.

Two libraries publish them. model2vec (Tulkens and van Dongen 2024) writes model_type "model2vec" into config.json, and the
tensor `embeddings`, which may be shorter than the vocabulary (`mapping` then has the row of each piece) and may have a factor
for each piece (`weights`). sentence-transformers lists a StaticEmbedding in modules.json, whose folder holds the tensor
`embedding.weight`, or those of model2vec. A text's vector is the mean of its pieces' vectors, without special tokens; that is
what sentence-transformers computes from both. (model2vec's own library leaves pieces out that are not in the vocabulary.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import ModelError, first_line
from components.model.files.published import is_inside, is_within, read_json, read_modules
from components.model.files.weight_sizes import WEIGHTS

if TYPE_CHECKING:
    import torch

MODEL2VEC = "model2vec"  # config.model_type
MODULE = "StaticEmbedding"  # sentence-transformers' class
TOKENIZER = "tokenizer.json"
NO_LIMIT = 1_000_000_000  # of the tokenizer; the model's own is MOST_TOKENS
# A table that many pieces share may become so many times as large, from this size on; published ones become some ten times.
MOST_REPEATED, SMALL_BYTES = 64, 256 << 20
MOST_TOKENS = 32_768  # of a text: such a model has no limit of its own, but memory has one


@dataclass(frozen=True, eq=False)
class StaticTokenizer:
    """A tokenizer file with the names that Tokenization asks for. It adds no special tokens."""

    backend_tokenizer: Any
    unk_token: str | None
    unk_token_id: int | None
    pad_token_id: int | None = None
    mask_token_id: int | None = None
    model_max_length: int = NO_LIMIT
    truncation_side: str = "right"
    model_input_names: tuple[str, ...] = ("input_ids", "attention_mask")


def static_folder(folder: Path) -> Path | None:
    """Where the table and the tokenizer of a static model are: its folder, or one in it; None for a model of another kind.

    What modules.json names counts, also where files of model2vec lie beside it.
    """
    modules = read_modules(folder)
    place = modules[0].path if modules else ""
    if modules and modules[0].kind == MODULE and is_inside(place) and is_within(folder / place, folder):
        return folder / modules[0].path
    config = read_json(folder / "config.json")
    if isinstance(config, dict) and config.get("model_type") == MODEL2VEC:
        return folder
    return None


def is_complete(folder: Path) -> bool:
    """Whether a static model's folder has its files."""
    return (folder / WEIGHTS).is_file() and (folder / TOKENIZER).is_file()


def read_table(folder: Path, name: str, most_bytes: int) -> torch.Tensor:
    """The vector of each piece, by its id, float32 [piece, dim], of at most `most_bytes`.

    Raises ModelError for files that are damaged, or whose mapping makes a table of them that is far larger than they are.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(folder / WEIGHTS)
        if "embedding.weight" in tensors:
            table = tensors["embedding.weight"].float()
        else:
            table = tensors["embeddings"].float()
            if "mapping" in tensors:
                table = _mapped(table, tensors["mapping"], most_bytes)
            if "weights" in tensors:
                if tensors["weights"].shape != table.shape[:1]:
                    raise ValueError(f"{len(table):,} rows have {tensors['weights'].numel():,} factors")
                table = table * tensors["weights"].float()[:, None]
        if table.dim() != 2 or not table.numel():
            raise ValueError("a table with a row for each piece was expected")
    except (OSError, SafetensorError, KeyError, ValueError, IndexError, RuntimeError) as problem:
        raise ModelError(
            "damaged",
            f"{name} has no table of vectors that can be read: {first_line(problem)}.",
            "A static model has a tensor “embeddings” or “embedding.weight”, with a vector for each piece.",
            "Download or save the model again, or pick another one.",
        ) from problem
    return table.contiguous()


def _mapped(table: torch.Tensor, rows: torch.Tensor, most_bytes: int) -> torch.Tensor:
    """The row of each piece, [piece, dim]. Raises ValueError where a few rows would become gigabytes."""
    needed, own = 4 * rows.numel() * table.shape[-1], 4 * table.numel()
    if (
        table.dim() != 2
        or rows.dim() != 1
        or needed > most_bytes // 4
        or needed > max(SMALL_BYTES, MOST_REPEATED * own)
    ):
        raise ValueError(f"its mapping of {rows.numel():,} pieces makes {needed:,} bytes of {own:,}")
    return table[rows.long()]


def read_tokenizer(content: Mapping[str, Any]) -> StaticTokenizer:
    """The tokenizer of a static model, from what its file says. Exceptions of the library are passed on."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.post_processor = None  # it would add special tokens, which the mean does not contain
    unknown = getattr(tokenizer.model, "unk_token", None)
    if unknown is None and getattr(tokenizer.model, "unk_id", None) is not None:  # a number in a Unigram model
        unknown = tokenizer.id_to_token(tokenizer.model.unk_id)
    number = None if unknown is None else tokenizer.token_to_id(unknown)
    cut = tokenizer.truncation  # which sentence-transformers leaves on, and takes padding off
    if cut is None:
        return StaticTokenizer(tokenizer, unknown, number)
    return StaticTokenizer(
        tokenizer, unknown, number, model_max_length=cut["max_length"], truncation_side=cut.get("direction", "right")
    )
