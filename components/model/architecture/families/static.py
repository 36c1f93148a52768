"""Static models: a table of vectors without any block. Layer 0 is the only layer, and a token has one vector everywhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from components.model.architecture.family import Family
from components.model.architecture.modules import EncoderModules, Place
from components.model.architecture.structure import Structure
from components.model.files.static_files import MOST_TOKENS

KIND = "static"
TITLE = "Static vectors"


class StaticEncoder(torch.nn.Module):
    """A table as an encoder of no blocks: its only hidden state is the row of each token."""

    def __init__(self, table: torch.Tensor) -> None:
        """`table` is float32 [piece, dim]."""
        super().__init__()
        self.vectors = torch.nn.Embedding.from_pretrained(table)
        rows, size = table.shape
        self.config = SimpleNamespace(
            model_type=KIND,
            hidden_size=size,
            vocab_size=rows,
            max_position_embeddings=MOST_TOKENS,
            num_attention_heads=0,
            intermediate_size=0,
        )

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.vectors

    def forward(self, input_ids: torch.Tensor, **_: Any) -> SimpleNamespace:
        """The vectors of the tokens, [sentence, token, dim], under the names of transformers."""
        layer = self.vectors(input_ids)
        return SimpleNamespace(last_hidden_state=layer, hidden_states=(layer,), attentions=(), pooler_output=None)


def modules_of(model: StaticEncoder) -> EncoderModules:
    """The record of such a model."""
    structure = Structure(KIND, TITLE, (), ("word",), ())
    return EncoderModules(structure, (), "", Place(model.vectors), {"word": model.vectors}, ())


FAMILY = Family({KIND: TITLE}, modules_of)
