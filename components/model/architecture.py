"""The differences between the BERT-family architectures, in one place.

Supported: BERT, DistilBERT, RoBERTa (XLM-R, CamemBERT), ELECTRA, MPNet. All are encoders whose layer 0 is
LayerNorm(word + position [+ segment]) and whose blocks all have the same structure. Any other model is refused with
a reason.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from components.errors import ModelError
from components.model.catalog import ModelFacts

SUPPORTED = ("bert", "distilbert", "roberta", "xlm-roberta", "camembert", "electra", "mpnet")
MOST_LAYERS = 1_000  # the modules of a model are created before its weights are read
# These count positions from padding_idx + 1, so the first rows of the table belong to no token.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet"}


def check_supported(config: Any, name: str) -> None:
    """Raise ModelError unless the configuration belongs to a supported encoder."""
    if config.model_type not in SUPPORTED or getattr(config, "is_decoder", False):
        raise ModelError(
            "unsupported",
            f"{name} is a {config.model_type!r} model.",
            f"The dashboard reads encoders of the BERT family: {', '.join(SUPPORTED)}.",
            "Pick a model from the list, or another encoder.",
        )
    for name_of_layers in ("num_hidden_layers", "n_layers"):  # DistilBERT's files have the second
        layers = getattr(config, name_of_layers, 1)
        if type(layers) is not int or not 1 <= layers <= MOST_LAYERS:
            raise ModelError(
                "unsupported",
                f"{name} has {str(layers)[:40]} layers according to its config.json ({name_of_layers}).",
                f"An encoder can have 1 to {MOST_LAYERS:,} blocks.",
                "Correct config.json, or pick another model.",
            )
    positions = getattr(config, "position_embedding_type", "absolute") or "absolute"
    if positions != "absolute":
        raise ModelError(
            "unsupported",
            f"{name} uses {positions!r} positions.",
            "Absolute position embeddings are needed, because layer 0 is split into its parts.",
            "Pick another model.",
        )


def check_supported_file(values: dict[str, Any], name: str) -> None:
    """`check_supported` on the plain values of a config.json, before transformers reads it or the weights are fetched.

    For a type that it does not know, or that needs its own code, transformers only says that the file is invalid.
    """
    if "model_type" in values:
        check_supported(SimpleNamespace(**values), name)


def max_positions(config: Any) -> int:
    """The longest input in tokens: the rows of the position table minus those that belong to padding."""
    rows = int(config.max_position_embeddings)
    return rows - (int(config.pad_token_id) + 1) if config.model_type in _OFFSET_POSITIONS else rows


def facts_of(config: Any, model: torch.nn.Module) -> ModelFacts:
    """The sizes of a model, read from its configuration and its parameters."""
    return ModelFacts(
        architecture=config.model_type,
        layers=int(config.num_hidden_layers),
        heads=int(config.num_attention_heads),
        hidden_size=int(config.hidden_size),
        feed_forward_size=int(config.hidden_dim if config.model_type == "distilbert" else config.intermediate_size),
        max_positions=max_positions(config),
        vocabulary_size=int(config.vocab_size),
        segments=_segments(model),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


def _segments(model: Any) -> int:
    table = getattr(model.embeddings, "token_type_embeddings", None)
    return 0 if table is None else int(table.num_embeddings)


@dataclass(frozen=True)
class ParameterPart:
    """The number of parameters of one part of a model."""

    group: str  # "Embeddings", "Block 0", ..., "Pooler", "Other"
    part: str  # "word", "position", "segment", "attention", "feed-forward", "layer norm", ...
    count: int


def parameter_parts(model: torch.nn.Module) -> list[ParameterPart]:
    """All parameters, each counted once, by block and part, in the order of the forward pass."""
    counts: dict[tuple[str, str], int] = {}
    for name, parameter in model.named_parameters():
        key = _part_of(name)
        counts[key] = counts.get(key, 0) + parameter.numel()
    return [ParameterPart(group, part, count) for (group, part), count in counts.items()]


def _part_of(name: str) -> tuple[str, str]:
    norm = "norm" in name.lower()
    if name.startswith("embeddings"):
        for part in ("word", "position", "token_type"):
            if f"{part}_embeddings" in name:
                return "Embeddings", "segment" if part == "token_type" else part
        return "Embeddings", "layer norm" if norm else "projection"
    if name.startswith("pooler"):
        return "Pooler", "pooler"
    steps = name.split(".")
    block = next((int(step) for step in steps if step.isdigit()), None)
    if block is None:  # MPNet's table of relative positions, shared by all blocks
        return "Shared by the blocks", "relative positions"
    group = f"Block {block}"
    if norm:
        return group, "layer norm"
    # MPNet and BERT call the feed-forward part intermediate and output, DistilBERT calls it ffn.
    return group, "attention" if "attention" in steps else "feed-forward"


@dataclass(frozen=True)
class BlockModules:
    """The modules of one encoder block whose outputs are recorded, in the order of the forward pass.

    after attention = attention_norm(block's input + attention_dense), and the block's output is
    feed_forward_norm(after attention + feed_forward_dense): all supported architectures are post-LayerNorm.
    """

    query: torch.nn.Linear
    key: torch.nn.Linear
    value: torch.nn.Linear
    attention_dense: torch.nn.Linear  # the output projection, which mixes the heads
    attention_norm: torch.nn.LayerNorm
    feed_forward_dense: torch.nn.Linear  # the second of the two, back to the hidden size
    feed_forward_norm: torch.nn.LayerNorm


# The names that each architecture gives its blocks and, within a block, the modules above, in their order.
_BLOCKS = {"distilbert": "transformer.layer"}
_BERT_BLOCKS = "encoder.layer"
_BERT_BLOCK = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "attention.output.LayerNorm", "output.dense", "output.LayerNorm"),
)
_BLOCK = {
    "distilbert": (
        *("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        *("attention.out_lin", "sa_layer_norm", "ffn.lin2", "output_layer_norm"),
    ),
    "mpnet": (
        *("attention.attn.q", "attention.attn.k", "attention.attn.v"),
        *("attention.attn.o", "attention.LayerNorm", "output.dense", "output.LayerNorm"),
    ),
}


def block_modules(model: Any) -> list[BlockModules]:
    """The modules of every block of an encoder, block 0 first."""
    kind = model.config.model_type
    names = _BLOCK.get(kind, _BERT_BLOCK)
    blocks: Any = model.get_submodule(_BLOCKS.get(kind, _BERT_BLOCKS))
    return [BlockModules(*(block.get_submodule(name) for name in names)) for block in blocks]


def first_blocks(model: Any, count: int) -> Any:
    """An encoder that ends after its first `count` blocks, without a pooler; it shares all weights with `model`.

    Its last hidden state is layer `count`.
    """
    path = _BLOCKS.get(model.config.model_type, _BERT_BLOCKS)
    stack_name, list_name = path.split(".")
    # Copies of the modules on the way to the list of blocks, so that `model` keeps all of them.
    shortened, stack = (_shallow(module) for module in (model, model.get_submodule(stack_name)))
    stack._modules[list_name] = torch.nn.ModuleList(list(model.get_submodule(path))[:count])
    shortened._modules[stack_name] = stack
    if "pooler" in shortened._modules:
        shortened._modules["pooler"] = None
    return shortened


def _shallow(module: Any) -> Any:
    result = copy.copy(module)
    result._modules = dict(module._modules)
    return result


def embedding_module(model: Any) -> torch.nn.Module:
    """The module whose output is layer 0: in ELECTRA a projection follows the embeddings if their sizes differ."""
    module: torch.nn.Module = getattr(model, "embeddings_project", model.embeddings)
    return module


def embedding_parts(
    model: Any, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Word, position and segment vectors, each [sentence, token, dim], before they are summed.

    LayerNorm of their sum is layer 0 (ELECTRA: followed by a projection if the sizes differ); a test
    checks this for every architecture.
    """
    table = model.embeddings
    word = table.word_embeddings(input_ids)
    position = table.position_embeddings(position_ids(model, input_ids))
    if _segments(model) == 0:
        return word, position, None
    types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    return word, position.expand_as(word), table.token_type_embeddings(types)


def position_ids(model: Any, input_ids: torch.Tensor) -> torch.Tensor:
    """The row of the position table each token reads, int64 [sentence or 1, token]."""
    if model.config.model_type in _OFFSET_POSITIONS:
        padding = model.embeddings.padding_idx
        real = (input_ids != padding).long()
        return torch.cumsum(real, dim=1) * real + padding
    return torch.arange(input_ids.shape[1], device=input_ids.device)[None, :]
