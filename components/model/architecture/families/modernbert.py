"""ModernBERT (Warner et al. 2024): norms first, rotated queries and keys, gated feed-forward parts, and local attention.

Layer 0 is the LayerNorm of the word vectors alone: positions enter by rotation in each block (Su et al. 2021). One matrix gives
queries, keys and values. In two of three blocks tokens attend only to those within half a window. The first block's attention
reads layer 0 as it is, since that is normalised already. A norm after the last block makes the last layer.
"""

from __future__ import annotations

from typing import Any

import torch

from components.model.architecture.family import BlockMemory, Family
from components.model.architecture.modules import (
    EncoderModules,
    Gate,
    Place,
    Projection,
    Rotations,
    block_with_norms_first,
)
from components.model.architecture.structure import Structure

TITLES = {"modernbert": "ModernBERT"}


def modules_of(model: Any) -> EncoderModules:
    """The record of a ModernBERT."""
    config = model.config
    size, inner = int(config.hidden_size), int(config.intermediate_size)
    kinds = [layer.attention_type for layer in model.layers]
    blocks = tuple(
        block_with_norms_first(
            [Projection(layer.attn.Wqkv, part * size, size) for part in range(3)],
            layer.attn.Wo,
            None if isinstance(layer.attn_norm, torch.nn.Identity) else layer.attn_norm,
            layer.mlp.Wo,
            layer.mlp_norm,
            layer,
            Gate(Projection(layer.mlp.Wi, 0, inner), Projection(layer.mlp.Wi, inner, inner), layer.mlp.act),
        )
        for layer in model.layers
    )

    def rotations(tokens: int) -> Rotations:
        device = model.embeddings.tok_embeddings.weight.device
        positions, states = torch.arange(tokens, device=device)[None], torch.zeros(1, device=device)
        angles = {kind: model.rotary_emb(states, positions, kind) for kind in set(kinds)}
        return [(angles[kind][0][0], angles[kind][1][0]) for kind in kinds]

    return EncoderModules(
        Structure(
            "modernbert",
            TITLES["modernbert"],
            ("rotary",),
            ("word",),
            ("norm",),
            normalises_first=True,
            has_final_norm=True,
            has_fused_projections=True,
            has_projection_biases=bool(config.attention_bias),
            has_gated_feed_forward=True,
            windows=tuple(int(config.sliding_window) if kind == "sliding_attention" else None for kind in kinds),
            block_weights=tuple(range(len(blocks))),
            scoring_head=("head.", "classifier."),
        ),
        blocks,
        "layers",
        Place(model.embeddings),
        {"word": model.embeddings.tok_embeddings},
        (model.embeddings.norm,),
        final_norm=model.final_norm,
        rotations=rotations,
        mask_names=tuple(kinds),
    )


FAMILY = Family(
    TITLES, modules_of, has_position_table=False, memory=BlockMemory(inner=4, hidden=2, attention_in_half=14)
)
