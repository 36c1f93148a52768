"""What is particular to a family of encoders, which each module of `families` declares once, as its FAMILY."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.model.architecture.modules import EncoderModules


@dataclass(frozen=True)
class BlockMemory:
    """How many vectors stand beside each other in a block at the moment when they take most memory."""

    inner: int = 2  # of the inner size in the feed-forward part; more with gates or an activation in steps
    hidden: int = 0  # of the hidden size there: a normalised copy and its source
    attention: int = 6  # of the hidden size in the attention
    attention_in_half: int = 6  # the same in bfloat16; more where queries and keys are rotated in float32
    is_whole: bool = True  # False: the attention makes more than is counted


@dataclass(frozen=True)
class Family:
    """Encoders that are read in one way. A type is what config.json calls model_type."""

    titles: Mapping[str, str]  # what people call each type
    modules_of: Callable[[Any], EncoderModules]  # the record of a loaded encoder
    # What of a configuration cannot be read, as the end of "it has ..."; empty if all can. Then what to pick.
    unsupported: Callable[[Any], str] = lambda config: ""
    instead: str = "Pick another model."
    # Without one, positions enter in the blocks, and what a file says of position embeddings has no effect.
    has_position_table: bool = True
    # Types that count positions from padding_idx + 1, so that the first rows of the table belong to no token.
    counts_from_padding: frozenset[str] = frozenset()
    # The row of padding in the position table, where it is not that of config.pad_token_id.
    padding_row: Mapping[str, int] = field(default_factory=dict)
    inner_size: Mapping[str, str] = field(default_factory=dict)  # what a type calls the size of its feed-forward part
    memory: BlockMemory = field(default_factory=BlockMemory)
