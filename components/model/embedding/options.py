"""What an embedding run computes. Code that only names the options (an index, a page) does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.model.trace import Pooling

Precision = Literal["auto", "float32", "bfloat16"]
Resolved = Literal["float32", "bfloat16"]

SENTENCES_PER_BLOCK = 4096  # sorted by length together; an interrupted index continues after its last whole block
MAX_TOKEN_VECTORS = 50_000  # of one set of tokens, at every layer


@dataclass(frozen=True)
class EmbedOptions:
    """Everything that determines the vectors. Batch sizes are not part of it: they only change rounding."""

    layers: tuple[int, ...]  # sorted, 0..L
    poolings: tuple[Pooling, ...]
    max_length: int  # tokens
    precision: Resolved
    prompt: str = ""  # put before each text


@dataclass(frozen=True)
class EmbedReport:
    """Counts of one run."""

    tokens: int  # after truncation, special tokens included
    truncated: int  # sentences that lost tokens
