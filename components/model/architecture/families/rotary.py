"""Nomic BERT and EuroBERT: encoders whose positions enter by rotation, with gated feed-forward parts.

Nomic BERT (Nussbaum et al. 2024) is a BERT otherwise: token types at layer 0, norms after each part. EuroBERT (Boizard et al.
2025) is built like Llama: norms come first and are RMSNorms, layer 0 is the word vectors as they are, several heads may share
their keys and values, and a norm follows the last block.
"""

from __future__ import annotations

from typing import Any

import torch

from components.model.architecture.families.bert import Names, block_with_norms_after, tables_of
from components.model.architecture.family import BlockMemory, Family
from components.model.architecture.modules import (
    BlockModules,
    EncoderModules,
    Gate,
    Place,
    Rotations,
    block_with_norms_first,
    whole,
)
from components.model.architecture.structure import Structure

TITLES = {"nomic_bert": "Nomic BERT", "eurobert": "EuroBERT"}
_NAMES = Names(
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("post_attention_layernorm", "mlp.down_proj", "post_mlp_layernorm"),
)


# How the files of Nomic's own code name what transformers reads by other names, and the library's own values, which it takes
# where its names are missing: those of Nomic Embed 1.5.
_OTHER_NAMES: dict[str, tuple[str, float]] = {
    "n_layer": ("num_hidden_layers", 12),
    "n_embd": ("hidden_size", 768),
    "n_head": ("num_attention_heads", 12),
    "n_inner": ("intermediate_size", 3072),
}
_ROTATION_BASE = 1000.0
# What such files may ask for, and the only value that the library computes.
_ONLY: dict[str, object] = {
    "activation_function": "swiglu",
    "rotary_emb_fraction": 1,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None,
    "prenorm": False,
    "parallel_block": False,
    "causal": False,
    "use_rms_norm": False,
    "qkv_proj_bias": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "num_experts": 0,
}


def unsupported(config: Any) -> str:
    """What of a Nomic BERT cannot be read here, as the end of "it has ..."; empty if all can, as of a EuroBERT.

    Sizes under the names of Nomic's own code must be those that the library takes: it would load others without a word.
    """
    if config.model_type != "nomic_bert":
        return ""
    names = [
        name
        for name, (own, default) in _OTHER_NAMES.items()
        if getattr(config, name, None) not in (None, getattr(config, own, default))
    ]
    rotation = getattr(config, "rope_parameters", None) or {}
    base = rotation.get("rope_theta", _ROTATION_BASE) if isinstance(rotation, dict) else _ROTATION_BASE
    if getattr(config, "rotary_emb_base", None) not in (None, base):
        names.append("rotary_emb_base")
    names += [name for name, value in _ONLY.items() if getattr(config, name, None) not in (None, value)]
    return f"a config.json for code of its own ({', '.join(names)})" if names else ""


def modules_of(model: Any) -> EncoderModules:
    """The record of such an encoder."""
    return _euro(model) if model.config.model_type == "eurobert" else _nomic(model)


def _rotations(model: Any, table: torch.nn.Embedding, tokens: int) -> Rotations:
    """The same angles for every block."""
    device = table.weight.device
    cosines, sines = model.rotary_emb(torch.zeros(1, device=device), torch.arange(tokens, device=device)[None])
    return [(cosines[0], sines[0])] * len(model.layers)


def _gate(layer: Any) -> Gate:
    return Gate(whole(layer.mlp.gate_proj), whole(layer.mlp.up_proj), layer.mlp.act_fn)


def _nomic(model: Any) -> EncoderModules:
    blocks = tuple(block_with_norms_after(layer, _NAMES, _gate(layer)) for layer in model.layers)
    tables = tables_of(model.embeddings)
    return EncoderModules(
        Structure(
            "nomic_bert",
            TITLES["nomic_bert"],
            ("rotary",),
            tuple(tables),
            ("norm",),
            has_projection_biases=False,
            has_gated_feed_forward=True,
            windows=(None,) * len(blocks),
            block_weights=tuple(range(len(blocks))),
            scores_from_pooler=True,
        ),
        blocks,
        "layers",
        Place(model.embeddings),
        tables,
        (model.embeddings.LayerNorm,),
        rotations=lambda tokens: _rotations(model, model.embeddings.word_embeddings, tokens),
        pool=model.pooler,
    )


def blocks_like_llama(model: Any) -> tuple[BlockModules, ...]:
    """Blocks as in Llama (Touvron et al. 2023), which EuroBERT and Qwen3 have: norms first, a gated feed-forward part."""
    return tuple(
        block_with_norms_first(
            [whole(getattr(layer.self_attn, name)) for name in ("q_proj", "k_proj", "v_proj")],
            layer.self_attn.o_proj,
            layer.input_layernorm,
            layer.mlp.down_proj,
            layer.post_attention_layernorm,
            layer,
            _gate(layer),
        )
        for layer in model.layers
    )


def _euro(model: Any) -> EncoderModules:
    config = model.config
    blocks = blocks_like_llama(model)
    return EncoderModules(
        Structure(
            "eurobert",
            TITLES["eurobert"],
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
            scoring_head=("dense.", "classifier."),
        ),
        blocks,
        "layers",
        Place(model.embed_tokens),
        {"word": model.embed_tokens},
        (),
        final_norm=model.norm,
        rotations=lambda tokens: _rotations(model, model.embed_tokens, tokens),
    )


FAMILY = Family(TITLES, modules_of, unsupported, has_position_table=False, memory=BlockMemory(inner=3, hidden=1))
