"""Tiny static models in the formats of the two libraries, made by hand: no library of theirs is needed to write them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.support import tiny

DIM = 16


def save_model2vec(folder: Path, seed: int = 0, is_shared: bool = False, is_weighted: bool = False) -> Path:
    """As model2vec writes it; `is_shared`: several pieces share a row (`mapping`); `is_weighted`: a factor for each piece."""
    tokenizer = tiny.wordpiece_tokenizer()
    pieces, numbers = len(tokenizer), torch.Generator().manual_seed(seed)
    rows = pieces // 2 if is_shared else pieces
    tensors = {"embeddings": torch.randn(rows, DIM, generator=numbers)}
    if is_shared:
        tensors["mapping"] = torch.randint(rows, (pieces,), generator=numbers)
    if is_weighted:
        tensors["weights"] = torch.rand(pieces, generator=numbers) + 0.1
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": DIM, "normalize": True}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def save_static_embedding(folder: Path, seed: int = 0) -> Path:
    """As sentence-transformers has long written it: no config.json, table and tokenizer in 0_StaticEmbedding."""
    part = folder / "0_StaticEmbedding"
    save_model2vec(part, seed)
    (part / "config.json").unlink()
    table = torch.randn(len(tiny.wordpiece_tokenizer()), DIM, generator=torch.Generator().manual_seed(seed))
    save_file({"embedding.weight": table}, part / "model.safetensors")
    modules = [{"idx": 0, "name": "0", "path": part.name, "type": "sentence_transformers.models.StaticEmbedding"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder
