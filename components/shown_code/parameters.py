"""Code that counts the parameters of models, by transformers, which names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from components.model.architecture.parameters import parameter_parts, parts_by_name
from components.shown_code.arrays import TRANSFORMERS, is_elsewhere, model_name
from components.shown_code.code import AnyCode, Code, Command
from components.shown_code.written import literal

if TYPE_CHECKING:
    from components.model.backend import Backend

COUNTED = """\
counts = Counter()
for model, (name, blocks) in models.items():
    for path, parameter in AutoModel.from_pretrained(name).named_parameters():
        if path.startswith(blocks):
            block, *steps = path.removeprefix(blocks).split(".")
            is_attention = {{"attention", "attn", "self_attn"}} & set(steps)
            part = "layer norm" if "norm" in path.lower() else "attention" if is_attention else "feed-forward"
            counts[{of_block}] += parameter.numel()
        elif path in outside:
            counts[{of_other}] += parameter.numel()"""


def parameters_of(backends: Mapping[str, Backend], by_kind: bool) -> AnyCode:
    """The parameters of a model by block and part, or those of some models, by their titles, `by_kind` of part."""
    if not all(map(is_elsewhere, backends.values())):
        return Command(parameter_parts)
    models: dict[str, tuple[str, str]] = {}
    outside: dict[str, str | tuple[str, str]] = {}
    for title, backend in backends.items():
        encoder = backend.loaded.encoder
        blocks = f"{backend.loaded.modules.blocks_path}."
        models[title] = (model_name(backend), blocks)
        for path, (group, part) in parts_by_name(encoder).items():
            if not path.startswith(blocks):
                kind = "norms" if part == "layer norm" else "embeddings" if group == "Embeddings" else part
                outside[path] = kind if by_kind else (group, part)
    keys = (
        ("model, part.replace('layer norm', 'norms')", "model, outside[path]")
        if by_kind
        else ("block, part", "outside[path]")
    )
    arrays = [
        TRANSFORMERS,
        "from collections import Counter",
        "",
        "from transformers import AutoModel",
        "",
        f"models = {literal(models)}  # of each its name, and how the names of what is inside the blocks begin",
        f"outside = {literal(outside)}",
    ]
    statements = COUNTED.format(of_block=keys[0], of_other=keys[1]), "values = list(counts.values())", "print(counts)"
    return Code("\n".join(arrays), (), statements)
