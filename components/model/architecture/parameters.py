"""How many parameters each part of a model has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from components.model.architecture.modules import EncoderModules
from components.model.architecture.record import modules_of


@dataclass(frozen=True)
class ParameterPart:
    """The number of parameters of one part of a model."""

    group: str  # "Embeddings", "Block 0", ..., "Pooler", "Other"
    part: str  # "word", "position", "segment", "attention", "feed-forward", "layer norm", ...
    count: int


def parameter_parts(model: torch.nn.Module) -> list[ParameterPart]:
    """All parameters, each counted once, by block and part, in the order of the forward pass."""
    parts = parts_by_name(model)
    counts: dict[tuple[str, str], int] = {}
    for name, parameter in model.named_parameters():
        counts[parts[name]] = counts.get(parts[name], 0) + parameter.numel()
    return [ParameterPart(group, part, count) for (group, part), count in counts.items()]


def parts_by_name(model: torch.nn.Module) -> dict[str, tuple[str, str]]:
    """Group and part of each parameter, by its name."""
    modules = modules_of(model)
    known = _outside_the_blocks(modules)
    return {name: known.get(id(each)) or _part_of(name, modules) for name, each in model.named_parameters()}


def totals_by_part(parts: Iterable[ParameterPart]) -> dict[str, int]:
    """The parameters of a whole model by kind of part, so that models can be compared; each parameter counts once.

    Norms are one kind wherever they stand, and all other parameters of layer 0 are "embeddings".
    """
    totals: dict[str, int] = {}
    for item in parts:
        kind = "norms" if item.part == "layer norm" else "embeddings" if item.group == "Embeddings" else item.part
        totals[kind] = totals.get(kind, 0) + item.count
    order = ("embeddings", "attention", "feed-forward", "norms", "relative positions", "pooler")
    return {kind: totals[kind] for kind in (*order, *(totals.keys() - set(order))) if kind in totals}


def _outside_the_blocks(modules: EncoderModules) -> dict[int, tuple[str, str]]:
    """Group and part of the parameters of the embeddings and of a norm after the last block, by the parameter's id."""
    steps = zip(modules.structure.layer_zero_steps, modules.layer_zero_steps, strict=True)
    parts: list[tuple[str, str, torch.nn.Module]] = [
        ("Embeddings", part, table) for part, table in modules.tables.items()
    ]
    parts += [("Embeddings", "layer norm" if step == "norm" else step, module) for step, module in steps]
    if modules.final_norm is not None:
        parts.append(("After the blocks", "layer norm", modules.final_norm))
    return {id(parameter): (group, part) for group, part, module in parts for parameter in module.parameters()}


def _part_of(name: str, modules: EncoderModules) -> tuple[str, str]:
    """Group and part of any other parameter, from its name."""
    if name.startswith("pooler"):
        return "Pooler", "pooler"
    if not name.startswith(f"{modules.blocks_path}."):  # tables for distances (MPNet, DeBERTa)
        return "Shared by the blocks", "relative positions"
    number, *steps = name.removeprefix(f"{modules.blocks_path}.").split(".")
    blocks = [block for block, weights in enumerate(modules.structure.block_weights) if weights == int(number)]
    group = f"Block {blocks[0]}" if len(blocks) == 1 else f"Blocks {blocks[0]} to {blocks[-1]}"
    if "norm" in name.lower():
        return group, "layer norm"
    # BERT and MPNet call the feed-forward part intermediate and output, others call it ffn or mlp.
    return group, "attention" if {"attention", "attn", "self_attn"} & set(steps) else "feed-forward"
