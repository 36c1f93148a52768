"""Vectors of stock transformers, and the ranks that they give: what a search is expected to find, by other means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch


def plain_vectors(folder: Path, sentences: Sequence[str], length: int) -> np.ndarray:
    """Stock transformers, sentences of one length together and so without padding, [layer, pooling, sentence, dim]."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    ids = tokenizer(list(sentences), truncation=True, max_length=length, padding=False)["input_ids"]
    by_length: dict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(ids):
        by_length[len(row)].append(at)
    found: list[Any] = [None] * len(ids)
    for rows in by_length.values():
        with torch.inference_mode():
            states = model(torch.tensor([ids[at] for at in rows]), output_hidden_states=True).hidden_states
        pooled = np.array([[s.mean(1).numpy(), s[:, 0].numpy(), s.amax(1).numpy()] for s in states])
        for place, at in enumerate(rows):
            found[at] = pooled[:, :, place]
    return np.array(found, np.float32).transpose(1, 2, 0, 3)


def cosines(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """In float64, [query, document]."""
    one, other = queries.astype(np.float64), documents.astype(np.float64)
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (one, other)]
    return unit[0] @ unit[1].T


def ranks_by(scores: np.ndarray) -> np.ndarray:
    """Ranks of the diagonal; what scores the same stands before it."""
    return (scores >= np.diag(scores)[:, None] - 1e-9).sum(axis=1)
