"""From a loaded encoder to its record, and what follows from it: sizes, positions, the parts of layer 0, shorter encoders."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable
from typing import Any

import torch

from components.model.architecture.families import decoder, static
from components.model.architecture.family import BlockMemory
from components.model.architecture.modules import EncoderModules
from components.model.architecture.structure import Structure
from components.model.architecture.support import FAMILIES
from components.model.catalog import ModelFacts

_FAMILIES = FAMILIES | {kind: family for family in (static.FAMILY, decoder.FAMILY) for kind in family.titles}

# The tokens of a text that are read at most, whatever config.json says: a rotation reaches any number of them, and what is
# computed for each pair of tokens grows with the square. Published encoders read up to 8,192, decoders up to 32,768.
MOST_TOKENS, MOST_TOKENS_OF_DECODER = 8_192, 32_768
MOST_PAIR_BYTES = 1 << 30  # of the tables with numbers for each pair of tokens


def modules_of(model: Any) -> EncoderModules:
    """The record of an encoder: what it is, and where its modules are. A copy of the model needs a record of its own."""
    return _FAMILIES[model.config.model_type].modules_of(model)


def block_memory(kind: str) -> BlockMemory:
    """How much stands beside each other in a block of a type of model."""
    return _FAMILIES[kind].memory


def max_positions(config: Any) -> int:
    """The longest input in tokens: the rows of the position table minus those that belong to padding."""
    rows = int(config.max_position_embeddings)
    return rows - (_padding(config) + 1) if _counts_from_padding(config) else rows


def _padding(config: Any) -> int:
    """The row of the position table that belongs to padding; a family may have one of its own, whatever config.json says."""
    return _FAMILIES[config.model_type].padding_row.get(config.model_type, int(config.pad_token_id))


def _counts_from_padding(config: Any) -> bool:
    return config.model_type in _FAMILIES[config.model_type].counts_from_padding


def most_tokens(structure: Structure, heads: int) -> int:
    """The longest input in tokens for which there is memory.

    Attention that the library fuses keeps no table. Windows need one with the distance of each pair; attention of a model's own
    code four or so with a number for each pair and head.
    """
    if not structure.has_blocks:
        return sys.maxsize
    per_pair = 16 * (heads + 1) if structure.has_own_attention_code else 16
    if structure.is_causal:
        return MOST_TOKENS_OF_DECODER
    return min(MOST_TOKENS, math.isqrt(MOST_PAIR_BYTES // per_pair))


def facts_of(config: Any, model: torch.nn.Module, longest: int = 0) -> ModelFacts:
    """The sizes of a model, read from its configuration and its parameters.

    `longest` is the longest text that its other files give, in tokens. Where no table of positions ends before it, so many are
    read, as sentence-transformers does.
    """
    modules = modules_of(model)
    positions = max_positions(config)
    if not modules.structure.has_position_vectors:
        positions = max(positions, longest)
    kind, segments = config.model_type, modules.tables.get("segment")
    return ModelFacts(
        architecture=kind,
        layers=len(modules.blocks),
        heads=int(config.num_attention_heads),
        hidden_size=int(config.hidden_size),
        feed_forward_size=int(getattr(config, _FAMILIES[kind].inner_size.get(kind, "intermediate_size"))),
        max_positions=min(positions, most_tokens(modules.structure, int(config.num_attention_heads))),
        vocabulary_size=int(config.vocab_size),
        segments=0 if segments is None else int(segments.num_embeddings),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


def first_blocks(model: Any, count: int) -> Any:
    """An encoder that ends after its first `count` blocks, without a pooler; it shares all weights with `model`.

    Its last hidden state is layer `count`: a norm after the last block is only left where all blocks are.
    """
    modules = modules_of(model)
    if modules.first_blocks is not None:
        return modules.first_blocks(count)
    shortened = replaced(model, modules.blocks_path, lambda blocks: torch.nn.ModuleList(list(blocks)[:count]))
    if modules.final_norm is not None and count < len(modules.blocks):
        path = next(name for name, module in model.named_modules() if module is modules.final_norm)
        shortened = replaced(shortened, path, lambda _: torch.nn.Identity())
    return without_pooler(shortened)


def replaced(model: Any, path: str, change: Callable[[Any], Any]) -> Any:
    """A model in which the module at a path is another one; all that is not on the path is shared."""
    name, _, rest = path.partition(".")
    result = copy.copy(model)
    result._modules = dict(model._modules)
    child = model._modules[name]
    result._modules[name] = replaced(child, rest, change) if rest else change(child)
    return result


def without_pooler(model: Any) -> Any:
    """A copy that shares everything but its list of modules, without its pooler, if it has one."""
    result = copy.copy(model)
    result._modules = dict(model._modules)
    if "pooler" in result._modules:
        result._modules["pooler"] = None
    return result


def embedding_parts(
    modules: EncoderModules, config: Any, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None
) -> dict[str, torch.Tensor]:
    """The vectors whose sum layer 0 is computed from, by the name of the part, each [sentence, token, dim].

    Layer 0 is what `modules.layer_zero_steps` make of their sum, one after another; a test checks this for every
    architecture.
    """
    rows = {"word": input_ids, "position": position_ids(config, input_ids)}
    rows["segment"] = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    rows["task"] = torch.zeros_like(input_ids)  # the first task, as the library does
    return {part: table(rows[part].expand_as(input_ids)) for part, table in modules.tables.items()}


def position_ids(config: Any, input_ids: torch.Tensor) -> torch.Tensor:
    """The number of each token's position, int64 [sentence or 1, token]: the row of the position table, if there is one."""
    if _counts_from_padding(config):
        padding = _padding(config)
        real = (input_ids != padding).long()
        return torch.cumsum(real, dim=1) * real + padding
    return torch.arange(input_ids.shape[1], device=input_ids.device)[None, :]
