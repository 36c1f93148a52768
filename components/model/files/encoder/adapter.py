"""A low-rank adapter beside an encoder's weights, in peft's two files, as what it adds to which matrix (Hu et al. 2021).

    W' = W + s B A        A [rank, in], B [out, rank], s = alpha / rank, or alpha / sqrt(rank) for rank-stabilised adapters

transformers applies such an adapter while it loads a folder, but wraps the layers, whose own matrix is then not the one that is
applied. Here it is added to the weights once, so that the weights that are shown are those that run, and peft is not needed.
Also known: weight-decomposed adapters (Liu et al. 2024: each row of W' is scaled to a learnt length), adapters of a table of
vectors, and parameters that were trained whole (modules_to_save, bias). Every other kind is refused by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from components.errors import ModelError
from components.model.files import allowed
from components.model.files.published import check_file, is_within, read_json

CONFIG, WEIGHTS, PICKLE = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"  # as peft names them
PREFIX = "base_model.model."  # of each name in the second
HEADS = ("cls.", "lm_head.", "classifier.", "pre_classifier.", "score.", "vocab_", "generator_")  # beginnings of names
_RULES: dict[str, allowed.Rule] = {
    "peft_type": allowed.one_of(["LORA"]),
    "r": allowed.whole(1, 100_000),
    "lora_alpha": allowed.number(-1e6, 1e6),
    **dict.fromkeys(("use_rslora", "use_dora"), allowed.flag),
    "bias": allowed.one_of(["none", "all", "lora_only"]),
    "modules_to_save": allowed.listed(allowed.text(), 1_000),
    "target_modules": allowed.listed(allowed.text(10_000), 10_000),
}
# Where the base weights come from, how it was trained, and what says again which matrices have one.
_WITHOUT_EFFECT = {
    *("auto_mapping", "base_model_name_or_path", "revision", "task_type", "inference_mode", "peft_version"),
    *("exclude_modules", "layers_to_transform", "layers_pattern", "lora_dropout", "loftq_config", "eva_config"),
    *("qalora_group_size", "runtime_config", "ephemeral_gpu_offload", "megatron_core", "ensure_weight_tying"),
    *("corda_config", "lora_ga_config", "fan_in_fan_out"),  # the last: only for layers that no encoder here has
}
_PATTERNS = ("rank_pattern", "alpha_pattern")
_PLAIN_STARTS = {"gaussian", "orthogonal", "eva", "true", "false"}  # other ones change the base weights too


@dataclass(frozen=True, eq=False)
class LowRank:
    """What is added to one matrix."""

    down: torch.Tensor  # A, [rank, in]
    up: torch.Tensor  # B, [out, rank]
    scale: float
    lengths: torch.Tensor | None = None  # of the rows of the sum, [out], if they were learnt
    is_table: bool = False  # the matrix is a table of vectors, [row, dim], and the sum is turned round


@dataclass(frozen=True, eq=False)
class Adapter:
    """An adapter by the names of what it changes, without peft's prefix."""

    added: Mapping[str, LowRank]  # by module
    whole: Mapping[str, torch.Tensor]  # by parameter, which it replaces

    def replaced_in(self, encoder: Any) -> frozenset[str]:
        """The names of the encoder's parameters that `merge` replaces."""
        return frozenset(part.removeprefix(f"{encoder.base_model_prefix}.") for part in self.whole)

    def merge(self, model: Any, name: str, is_head: bool = False) -> None:
        """Change a model's weights in place.

        Heads are left to who builds one, `is_head`: then they alone are changed. A pooler that the model does not have is
        left out. Raises ModelError for what does not fit the model.
        """
        prefix = f"{model.base_model_prefix}."
        with torch.no_grad():
            for part, change in self.added.items():
                where = part if is_head else part.removeprefix(prefix)
                if _is_of(model, where, is_head):
                    _add(_module(model, where, name), change, where, name)
            parameters = dict(model.named_parameters())
            for part, tensor in self.whole.items():
                where = part if is_head else part.removeprefix(prefix)
                if not _is_of(model, where, is_head):
                    continue
                parameter = parameters.get(where)
                if parameter is None or parameter.shape != tensor.shape:
                    raise _unfit(name, where)
                parameter.copy_(tensor)


def has_adapter(folder: Path) -> bool:
    """Whether a folder of weights has an adapter beside them, as transformers recognises it."""
    return (folder / CONFIG).is_file()


def read_adapter(folder: Path, name: str) -> Adapter:
    """The adapter of a folder. Raises ModelError for one that is a pickle, damaged, or of a kind that is not applied."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / WEIGHTS
    if not path.is_file():
        raise _missing(folder, name)
    for file in (folder / CONFIG, path):
        if not is_within(file, folder):
            raise _refused(name, f"{file.name} leads out of the model's folder by a link")
        check_file(file, f"{file.name} of {name}")
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict):
        raise _refused(name, f"{CONFIG} is not a JSON object")
    _check(config, name)
    try:
        weights = {key.removeprefix(PREFIX): value for key, value in load_file(path).items()}
    except (OSError, SafetensorError) as problem:
        raise _refused(name, f"{WEIGHTS} cannot be read ({str(problem)[:100]})") from problem
    return _adapter(
        {key.replace(".default.", ".").replace(".base_layer.", "."): value.float() for key, value in weights.items()},
        config,
        name,
    )


def _check(config: Mapping[str, Any], name: str) -> None:
    kind = str(config.get("peft_type", ""))[:40]
    if kind.upper() != "LORA":
        raise _refused(name, f"it is of the kind {kind or 'unknown'}, not LORA")
    allowed.checked({**config, "peft_type": "LORA"}, _RULES, CONFIG, name)
    known = _RULES.keys() | _WITHOUT_EFFECT | set(_PATTERNS) | {"init_lora_weights"}
    others = [key for key, value in config.items() if value and key not in known]
    if others:
        raise _refused(name, f"it sets {', '.join(key[:40] for key in others[:5])}")
    start = config.get("init_lora_weights", True)
    if str(start).lower() not in _PLAIN_STARTS:
        raise _refused(name, f"it begins from changed base weights (init_lora_weights = {allowed.shown(start)})")
    for pattern in _PATTERNS:
        values = config.get(pattern) or {}
        is_plain = isinstance(values, dict) and all(
            re.fullmatch(r"[\w.]{1,300}", key) and type(value) in (int, float) for key, value in values.items()
        )
        if not is_plain:
            raise _refused(name, f"its {pattern} has more than names of modules and numbers")


def _adapter(weights: dict[str, torch.Tensor], config: Mapping[str, Any], name: str) -> Adapter:
    added: dict[str, LowRank] = {}
    for key in [key for key in weights if re.search(r"\.lora_(embedding_)?A(\.weight)?$", key)]:
        part, kind = re.split(r"\.(?=lora_(?:embedding_)?A(?:\.weight)?$)", key)
        down, up = weights.pop(key), weights.pop(f"{part}.{kind.replace('A', 'B')}", None)
        if up is None or down.dim() != 2 or up.dim() != 2 or up.shape[1] != down.shape[0] or not len(down):
            raise _refused(name, f"its matrices of {part[:100]} do not fit each other")
        if not _is_targeted(part, config.get("target_modules")):
            raise _refused(name, f"it has weights for {part[:100]}, which its target_modules do not name")
        if len(down) != _by_pattern(config, "rank_pattern", part, config.get("r", 8)):
            raise _refused(name, f"its rank for {part[:100]} is not that of its matrices, {len(down)}")
        alpha = float(_by_pattern(config, "alpha_pattern", part, config.get("lora_alpha", 8)))
        rank = len(down)
        scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
        lengths = weights.pop(
            f"{part}.lora_magnitude_vector", weights.pop(f"{part}.lora_magnitude_vector.weight", None)
        )
        if (lengths is not None) != (config.get("use_dora") is True):
            raise _refused(name, f"its lengths of the rows of {part[:100]} (use_dora) do not fit its configuration")
        added[part] = LowRank(down, up, scale, lengths, "embedding" in kind)
    saved = config.get("modules_to_save") or []
    saved = {saved} if isinstance(saved, str) else set(saved)
    for key in weights:
        is_bias = key.endswith(".bias") and config.get("bias", "none") != "none"
        if "lora_" in key or not (is_bias or saved & set(_tails(key)) or key.startswith(HEADS)):
            raise _refused(name, f"it changes {key[:100]} in a way that is not known")
    return Adapter(added, weights)


def _tails(key: str) -> Iterable[str]:
    """Every name by which modules_to_save may mean the module of a parameter: "pooler.dense.weight": pooler, dense, ..."""
    parts = key.split(".")[:-1]
    return (".".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 1, len(parts) + 1))


def _is_targeted(part: str, targets: Any) -> bool:
    return not isinstance(targets, list) or any(part == target or part.endswith(f".{target}") for target in targets)


def _by_pattern(config: Mapping[str, Any], pattern: str, part: str, default: Any) -> Any:
    for key, value in (config.get(pattern) or {}).items():
        if part == key or part.endswith(f".{key}"):
            return value
    return default


def _is_of(model: Any, part: str, is_head: bool) -> bool:
    """Whether a part is to be changed in this model: an encoder's or a head's, and not of a pooler that was left out."""
    if part.startswith("pooler.") and getattr(model, "pooler", None) is None:
        return False
    return part.startswith(HEADS) == is_head


def _module(model: Any, part: str, name: str) -> Any:
    try:
        return model.get_submodule(part)
    except AttributeError as problem:
        raise _unfit(name, part) from problem


def _add(module: Any, change: LowRank, part: str, name: str) -> None:
    weight = getattr(module, "weight", None)
    expected = (change.up.shape[0], change.down.shape[1])
    if weight is None or tuple(weight.shape) != (expected[::-1] if change.is_table else expected):
        raise _unfit(name, part)
    product = change.scale * (change.up @ change.down)  # as large as the matrix, now that the sizes are known to fit
    weight += product.T if change.is_table else product
    if change.lengths is not None:
        if change.is_table or change.lengths.numel() != len(weight):
            raise _unfit(name, part)
        weight *= (change.lengths.flatten() / weight.norm(dim=1))[:, None]


def _missing(folder: Path, name: str) -> ModelError:
    if (folder / PICKLE).is_file():
        return ModelError(
            "unsupported",
            f"The adapter of {name} is a pickle ({PICKLE}).",
            "Pickled weights can run code when they are opened, so that they are never read.",
            f"Save the adapter as {WEIGHTS} (save_pretrained of peft does), or remove {CONFIG} to use the weights without it.",
        )
    return ModelError(
        "damaged",
        f"{name} has the configuration of an adapter ({CONFIG}), but not the adapter ({WEIGHTS}).",
        "The weights alone are not what the folder was made for.",
        f"Add the file, or remove {CONFIG} to use the weights without an adapter.",
    )


def _refused(name: str, reason: str) -> ModelError:
    return ModelError(
        "unsupported",
        f"The adapter of {name} is not applied here: {reason}.",
        "Known are low-rank adapters (LoRA) of linear layers and of vectors of pieces, with modules_to_save and bias.",
        "Merge it into the weights (merge_and_unload of peft) and save the model again, or pick another one.",
    )


def _unfit(name: str, part: str) -> ModelError:
    return ModelError(
        "damaged",
        f"The adapter of {name} does not fit the encoder: {part[:100]} is missing there, or has other sizes.",
        "An adapter belongs to the weights it was trained on.",
        "Put it beside its own base model, or pick another one.",
    )
