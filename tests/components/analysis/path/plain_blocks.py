"""The blocks of an encoder with plain transformers: what its modules get and give, by names that are written down here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

LIKE_BERT = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
LIKE_LLAMA = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
# Of each block: queries, keys, values, attention's output; the first norm; the last dense layer; the second norm.
NAMES = {
    "bert": (*LIKE_BERT, "attention.output.LayerNorm", "output.dense", "output.LayerNorm"),
    "distilbert": (
        *("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
        *("sa_layer_norm", "ffn.lin2", "output_layer_norm"),
    ),
    "mpnet": (
        *("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"),
        *("attention.LayerNorm", "output.dense", "output.LayerNorm"),
    ),
    "xlm-roberta-xl": (*LIKE_BERT, "attention.self_attn_layer_norm", "output.dense", "LayerNorm"),
    "roberta-prelayernorm": (*LIKE_BERT, "attention.LayerNorm", "output.dense", "intermediate.LayerNorm"),
    "albert": (
        *("attention.query", "attention.key", "attention.value", "attention.dense"),
        *("attention.LayerNorm", "ffn_output", "full_layer_layer_norm"),
    ),
    "modernbert": ("attn.Wqkv", "attn.Wqkv", "attn.Wqkv", "attn.Wo", "attn_norm", "mlp.Wo", "mlp_norm"),
    "deberta-v2": (
        *("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj"),
        *("attention.output.dense", "attention.output.LayerNorm", "output.dense", "output.LayerNorm"),
    ),
    "nomic_bert": (*LIKE_LLAMA, "post_attention_layernorm", "mlp.down_proj", "post_mlp_layernorm"),
    "eurobert": (*LIKE_LLAMA, "input_layernorm", "mlp.down_proj", "post_attention_layernorm"),
}
PLACES = {"distilbert": "transformer.layer", "modernbert": "layers", "nomic_bert": "layers", "eurobert": "layers"}
Dense = tuple[np.ndarray, np.ndarray]  # weight [to, from] and bias [to], float64


@dataclass(frozen=True, eq=False)
class PlainBlock:
    """One block in one pass, by hooks; vectors are [token, size]."""

    reads: np.ndarray  # what queries, keys and values are computed from
    joined: np.ndarray  # the heads side by side: what the output projection reads
    attention_output: np.ndarray
    first_norm: np.ndarray | None  # what it gives; None where there is none
    neurons: np.ndarray  # what the last dense layer reads
    feed_forward_output: np.ndarray
    second_norm: np.ndarray
    attention: np.ndarray  # [head, query, key]
    query: Dense
    key: Dense
    value: Dense
    output: Dense  # the output projection
    last_dense: Dense
    speeds: np.ndarray | None  # radians from one position to the next, [pair]; None where nothing is rotated


@dataclass(frozen=True, eq=False)
class PlainPass:
    """All of one sentence."""

    blocks: list[PlainBlock]
    layers: np.ndarray  # [layer, token, dim]


@cache
def _model(folder: Path) -> Any:
    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()


def plain_pass(folder: Path, ids: Sequence[int], segments: Sequence[int], only_left: bool) -> PlainPass:
    """One pass with eager attention. `only_left`: in each softmax of scores, the keys to the right count for nothing."""
    model, tokens = _model(folder), len(ids)
    kind = model.config.model_type
    names = NAMES.get(kind, NAMES["bert"])
    place, count = PLACES.get(kind, "encoder.layer"), int(model.config.num_hidden_layers)
    paths = [f"{place}.{number}" for number in range(count)]
    if kind == "albert":  # two sets of weights for three blocks
        paths = [f"encoder.albert_layer_groups.{group}.albert_layers.0" for group in (0, 0, 1)]
    calls: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}  # by module: what it got and gave, in turn
    hooks = []

    def keep(name: str) -> None:
        def hook(_: Any, given: tuple[torch.Tensor, ...], result: torch.Tensor) -> None:
            if given[0].shape[1] == tokens:  # DeBERTa's projections are called for the vectors of distances too
                calls.setdefault(name, []).append((given[0][0].numpy().copy(), result[0].numpy().copy()))

        hooks.append(model.get_submodule(name).register_forward_hook(hook))

    for name in {f"{path}.{name}" for path in paths for name in names}:
        keep(name)
    tensors = {"input_ids": torch.tensor([list(ids)])}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        tensors["token_type_ids"] = torch.tensor([list(segments)])
    with pytest.MonkeyPatch.context() as patch, torch.inference_mode():
        if only_left:
            patch.setattr(torch.nn.functional, "softmax", _to_the_left(torch.nn.functional.softmax))
        out = model(**tensors, output_hidden_states=True, output_attentions=True)
    for hook in hooks:
        hook.remove()
    blocks = []
    for number, path in enumerate(paths):
        call = paths[:number].count(path)
        query, _, _, output, first, last, second = (calls[f"{path}.{name}"][call] for name in names)
        modules = [model.get_submodule(f"{path}.{name}") for name in names]
        blocks.append(
            PlainBlock(
                query[0],
                *output,
                None if isinstance(modules[4], torch.nn.Identity) else first[1],
                *last,
                second[1],
                out.attentions[number][0].numpy(),
                *(_dense(module, part if kind == "modernbert" else None) for part, module in enumerate(modules[:3])),
                _dense(modules[3]),
                _dense(modules[5]),
                _speeds(model.config, number),
            )
        )
    return PlainPass(blocks, torch.stack(out.hidden_states)[:, 0].numpy())


def _to_the_left(softmax: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def masked(scores: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
        right = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return softmax(scores.masked_fill(right, -torch.inf), *arguments, **named)

    return masked


def _dense(module: Any, third: int | None = None) -> Dense:
    """A linear layer, or a third of its rows, where one matrix gives queries, keys and values."""
    weight = module.weight.detach().double().numpy()
    bias = np.zeros(len(weight)) if module.bias is None else module.bias.detach().double().numpy()
    if third is None:
        return weight, bias
    return np.split(weight, 3)[third], np.split(bias, 3)[third]


def _speeds(config: Any, block: int) -> np.ndarray | None:
    if config.model_type not in ("modernbert", "nomic_bert", "eurobert"):
        return None
    settings, half = config.rope_parameters, config.hidden_size // config.num_attention_heads // 2
    settings = settings[config.layer_types[block]] if hasattr(config, "layer_types") else settings
    return np.asarray(settings["rope_theta"] ** (-np.arange(half) / half))
