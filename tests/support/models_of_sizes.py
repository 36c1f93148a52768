"""Models of given sizes that take no memory."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModel

from components.model.architecture.families.static import StaticEncoder
from components.model.catalog import ModelFacts

SEGMENTED = (
    "bert",
    "electra",
    "roberta",
    "deberta-v2",
    "nomic_bert",
    "albert",
)  # architectures whose config counts segments


def model_of(facts: ModelFacts) -> Any:
    """A model of these sizes on the meta device: every parameter has a shape, none takes memory."""
    # RoBERTa and MPNet count positions from 2: two rows of their table are never a token's.
    offset = 2 if facts.architecture in ("roberta", "mpnet") else 0
    own: dict[str, dict[str, Any]] = {
        "electra": {"embedding_size": facts.hidden_size},
        "albert": {"embedding_size": 128},
        "roberta": {"pad_token_id": 1},
        "mpnet": {"pad_token_id": 1},
        "deberta-v2": {
            "relative_attention": True,
            "position_buckets": 256,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
        },
        "qwen3": {"num_key_value_heads": 8, "head_dim": 128},  # pairs of heads share their keys
        "distilbert": {
            "dim": facts.hidden_size,
            "n_layers": facts.layers,
            "n_heads": facts.heads,
            "hidden_dim": facts.feed_forward_size,
        },
    }
    sizes = {
        "hidden_size": facts.hidden_size,
        "num_hidden_layers": facts.layers,
        "num_attention_heads": facts.heads,
        "intermediate_size": facts.feed_forward_size,
    }
    with torch.device("meta"):
        if facts.architecture == "static":
            return StaticEncoder(torch.empty(facts.vocabulary_size, facts.hidden_size))
        return AutoModel.from_config(
            AutoConfig.for_model(
                facts.architecture,
                vocab_size=facts.vocabulary_size,
                max_position_embeddings=facts.max_positions + offset,
                **({} if facts.architecture == "distilbert" else sizes),
                **({"type_vocab_size": facts.segments} if facts.architecture in SEGMENTED else {}),
                **own.get(facts.architecture, {}),
            )
        )
