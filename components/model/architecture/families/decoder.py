"""Decoders that were published for text vectors (Qwen3-Embedding): a token sees only those before it, so the last sees all.

Only the vector of the last token at the last layer was trained to stand for a text (Zhang et al. 2025); the dashboard shows
nothing else of such a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.model.architecture.families.rotary import blocks_like_llama
from components.model.architecture.family import BlockMemory, Family
from components.model.architecture.modules import EncoderModules, Place
from components.model.architecture.structure import Structure
from components.model.files.published import PublishedModule

TITLES = {"qwen3": "Qwen3"}
_APPLIED = {"Transformer", "Pooling", "Normalize"}


def is_for_texts(modules: Sequence[PublishedModule]) -> bool:
    """Whether the published modules say that the last token's vector stands for a text, and nothing else is needed."""
    poolings = [module.pooling_modes for module in modules if module.kind == "Pooling"]
    return poolings == [("lasttoken",)] and {module.kind for module in modules} <= _APPLIED


def modules_of(model: Any) -> EncoderModules:
    """The record of such a model."""
    config = model.config
    blocks = blocks_like_llama(model)
    kind = config.model_type
    structure = Structure(
        kind,
        TITLES[kind],
        ("rotary",),
        ("word",),
        (),
        normalises_first=True,
        norm="RMSNorm",
        has_final_norm=True,
        has_projection_biases=bool(config.attention_bias),
        has_gated_feed_forward=True,
        windows=(None,) * len(blocks),
        block_weights=tuple(range(len(blocks))),
        heads_per_key=int(config.num_attention_heads) // int(config.num_key_value_heads),
        is_causal=True,
    )
    return EncoderModules(
        structure, blocks, "layers", Place(model.embed_tokens), {"word": model.embed_tokens}, (), final_norm=model.norm
    )


FAMILY = Family(TITLES, modules_of, memory=BlockMemory(inner=3, hidden=1))
