"""The stops of the whole path, from a text to the similarity of two: each view of a stop says which one it treats."""

from __future__ import annotations

from typing import Literal

Stop = Literal["pieces", "zero", "look", "take", "alone", "blocks", "pool", "compare"]
STOPS: dict[Stop, tuple[str, str]] = {  # in their order: name, and what is seen there
    "pieces": ("Pieces", "The text as pieces of the vocabulary"),
    "zero": ("Layer 0", "The vectors before any block"),
    "look": ("Look", "One head: which tokens the chosen token looks at"),
    "take": ("Take", "What comes out of attention"),
    "alone": ("Alone", "What comes out of the block"),
    "blocks": ("All blocks", "All layers, one below the other"),
    "pool": ("Mean", "All tokens into one vector"),
    "compare": ("Compare", "Two sentences, one number"),
}
WITHOUT_BLOCKS: tuple[Stop, ...] = ("pieces", "zero", "pool", "compare")  # those of a model that has no blocks
VIEW = "whole-path"  # the view that shows all of them
MORE: dict[str, str] = {  # the view that treats a stop by itself
    "pieces": "pieces",
    "zero": "layer-zero",
    "look": "head-view",
    "take": "inside-block",
    "alone": "feed-forward",
    "blocks": "one-word",
    "pool": "sentence-curves",
    "compare": "score-split",
}
