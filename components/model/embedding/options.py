"""What an embedding run computes, without torch: whoever only names it (an index, a page) loads at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.model.trace import Pooling

Precision = Literal["auto", "float32", "bfloat16"]
Resolved = Literal["float32", "bfloat16"]

BLOCK = 4096  # sentences sorted by length together


@dataclass(frozen=True)
class EmbedOptions:
    """Everything that determines the vectors. Batch sizes are not part of it: they only change rounding."""

    layers: tuple[int, ...]  # sorted, 0..L
    poolings: tuple[Pooling, ...]
    max_length: int  # tokens
    precision: Resolved
    prompt: str = ""  # put before each text
