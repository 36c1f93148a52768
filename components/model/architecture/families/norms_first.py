"""RoBERTa with the norms first: XLM-RoBERTa XL (Goyal et al. 2021) and RoBERTa-PreLayerNorm.

Each part of a block reads a normalised copy of the token's vector, and what it gives is added as it is. A norm after the last
block makes the last layer. XLM-RoBERTa XL has no norm at layer 0.
"""

from __future__ import annotations

from typing import Any

from components.model.architecture.families.bert import tables_of
from components.model.architecture.family import Family
from components.model.architecture.modules import EncoderModules, Place, block_with_norms_first, whole
from components.model.architecture.structure import Structure

TITLES = {"xlm-roberta-xl": "XLM-RoBERTa XL", "roberta-prelayernorm": "RoBERTa with norms first"}


def modules_of(model: Any) -> EncoderModules:
    """The record of such an encoder."""
    kind = model.config.model_type
    is_xl = kind == "xlm-roberta-xl"
    blocks = tuple(
        block_with_norms_first(
            [whole(getattr(block.attention.self, name)) for name in ("query", "key", "value")],
            block.attention.output.dense,
            block.attention.self_attn_layer_norm if is_xl else block.attention.LayerNorm,
            block.output.dense,
            block.LayerNorm if is_xl else block.intermediate.LayerNorm,
            block,
        )
        for block in model.encoder.layer
    )
    tables = tables_of(model.embeddings)
    return EncoderModules(
        Structure(
            kind,
            TITLES[kind],
            ("absolute",),
            tuple(tables),
            () if is_xl else ("norm",),
            normalises_first=True,
            has_final_norm=True,
            windows=(None,) * len(blocks),
            block_weights=tuple(range(len(blocks))),
        ),
        blocks,
        "encoder.layer",
        Place(model.embeddings),
        tables,
        () if is_xl else (model.embeddings.LayerNorm,),
        final_norm=model.encoder.LayerNorm if is_xl else model.LayerNorm,
        pool=model.pooler,
    )


FAMILY = Family(TITLES, modules_of, counts_from_padding=frozenset(TITLES))
