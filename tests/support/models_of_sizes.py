"""Models of given sizes that take no memory."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    EuroBertConfig,
    EuroBertModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    NomicBertConfig,
    NomicBertModel,
    Qwen3Config,
    Qwen3Model,
    RobertaConfig,
    RobertaModel,
)

from components.model.architecture.families.static import StaticEncoder
from components.model.catalog import ModelFacts


def model_of(facts: ModelFacts) -> Any:
    """A model of these sizes on the meta device: every parameter has a shape, none takes memory."""
    sizes = {
        "vocab_size": facts.vocabulary_size,
        "hidden_size": facts.hidden_size,
        "num_hidden_layers": facts.layers,
        "num_attention_heads": facts.heads,
        "intermediate_size": facts.feed_forward_size,
        "max_position_embeddings": facts.max_positions,
    }
    # RoBERTa and MPNet count positions from 2: two rows of their table are never a token's.
    offset = {**sizes, "max_position_embeddings": facts.max_positions + 2, "pad_token_id": 1}
    with torch.device("meta"):
        if facts.architecture == "static":
            return StaticEncoder(torch.empty(facts.vocabulary_size, facts.hidden_size))
        if facts.architecture == "bert":
            return BertModel(BertConfig(**sizes, type_vocab_size=facts.segments))
        if facts.architecture == "electra":
            return ElectraModel(
                ElectraConfig(**sizes, type_vocab_size=facts.segments, embedding_size=facts.hidden_size)
            )
        if facts.architecture == "roberta":
            return RobertaModel(RobertaConfig(**offset, type_vocab_size=facts.segments))
        if facts.architecture == "mpnet":
            return MPNetModel(MPNetConfig(**offset))
        if facts.architecture == "modernbert":
            return ModernBertModel(ModernBertConfig(**sizes))
        if facts.architecture == "deberta-v2":
            distances = {"relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm"}
            kinds = {"share_att_key": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
            return DebertaV2Model(DebertaV2Config(**sizes, **distances, **kinds, type_vocab_size=facts.segments))
        if facts.architecture == "nomic_bert":
            return NomicBertModel(NomicBertConfig(**sizes, type_vocab_size=facts.segments))
        if facts.architecture == "eurobert":
            return EuroBertModel(EuroBertConfig(**sizes))
        if facts.architecture == "qwen3":  # eight pairs of heads share their keys, and a head has 128 numbers
            return Qwen3Model(Qwen3Config(**sizes, num_key_value_heads=8, head_dim=128))
        if facts.architecture == "albert":
            return AlbertModel(AlbertConfig(**sizes, embedding_size=128, type_vocab_size=facts.segments))
        assert facts.architecture == "distilbert"
        return DistilBertModel(
            DistilBertConfig(
                vocab_size=facts.vocabulary_size,
                dim=facts.hidden_size,
                n_layers=facts.layers,
                n_heads=facts.heads,
                hidden_dim=facts.feed_forward_size,
                max_position_embeddings=facts.max_positions,
            )
        )
