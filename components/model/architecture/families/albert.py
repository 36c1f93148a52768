"""ALBERT (Lan et al. 2020): BERT with small word vectors and one set of weights for all blocks, or a few sets for groups.

Layer 0 is a projection of LayerNorm(word + position + segment) to the hidden size. A module that several blocks share is
called once for each of them.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import torch

from components.model.architecture.families.bert import Names, block_with_norms_after, tables_of
from components.model.architecture.family import BlockMemory, Family
from components.model.architecture.modules import EncoderModules, Place
from components.model.architecture.structure import Structure

TITLES = {"albert": "ALBERT"}
_NAMES = Names(
    *("attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm"),
    *("ffn_output", "full_layer_layer_norm"),
)


def unsupported(config: Any) -> str:
    """What of an ALBERT cannot be read here, as the end of "it has ..."; empty if all can."""
    if getattr(config, "inner_group_num", 1) != 1:
        return "groups of several blocks (inner_group_num)"
    if getattr(config, "num_hidden_groups", 1) > getattr(config, "num_hidden_layers", 12):
        return "more groups of weights than blocks (num_hidden_groups)"
    return ""


def modules_of(model: Any) -> EncoderModules:
    """The record of an ALBERT whose groups have one block each, as all published ones have."""
    encoder, count = model.encoder, int(model.config.num_hidden_layers)
    groups = len(encoder.albert_layer_groups)
    weights = tuple(int(block / (count / groups)) for block in range(count))  # as the library computes it
    by_group = [block_with_norms_after(group.albert_layers[0], _NAMES) for group in encoder.albert_layer_groups]
    tables = tables_of(model.embeddings)

    def pool(states: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = model.pooler_activation(model.pooler(states[:, 0]))
        return pooled

    return EncoderModules(
        Structure(
            "albert",
            TITLES["albert"],
            ("absolute",),
            tuple(tables),
            ("norm", "projection"),
            windows=(None,) * count,
            block_weights=weights,
            scores_from_pooler=True,
        ),
        tuple(by_group[number] for number in weights),
        "encoder.albert_layer_groups",
        Place(encoder.embedding_hidden_mapping_in),
        tables,
        (model.embeddings.LayerNorm, encoder.embedding_hidden_mapping_in),
        pool=None if model.pooler is None else pool,
        first_blocks=lambda blocks: _first_blocks(model, weights[:blocks]),
    )


def _first_blocks(model: Any, weights: tuple[int, ...]) -> Any:
    """An ALBERT of as many blocks as there are numbers of weights, without a pooler: each block becomes a group of its own."""
    encoder, shortened = copy.copy(model.encoder), copy.copy(model)
    encoder._modules, shortened._modules = dict(model.encoder._modules), dict(model._modules)
    groups = model.encoder.albert_layer_groups
    encoder._modules["albert_layer_groups"] = torch.nn.ModuleList([groups[number] for number in weights])
    encoder.config = SimpleNamespace(num_hidden_layers=len(weights), num_hidden_groups=max(1, len(weights)))
    shortened._modules |= {"encoder": encoder, "pooler": None}
    return shortened


FAMILY = Family(TITLES, modules_of, unsupported, memory=BlockMemory(inner=4))
