"""The trainable model: a frozen encoder with a low-rank change of its matrices (LoRA, Hu et al. 2021), and a masked-LM head.

The adapted weight is W + up @ down, formed in float32 at every step. The head is BERT's (Devlin et al. 2018): a dense layer
with GELU, a LayerNorm, and as decoder the encoder's own word vectors with a bias. What is trained is one dictionary of tensors
under the names that the file has; everything else stays as it is.

The forward pass is written out for speed on a CPU: in bfloat16 torch's fused attention has a backward pass that takes several
times as long as the two products of which attention consists. In float32 it gives what transformers' BertForMaskedLM gives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import Tensor
from torch.nn import functional

from components.folders import whole_file

MATRICES = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)
DOWN, UP = "lora_A", "lora_B"  # [rank, in] and [out, rank]: the names that peft has given them
HEAD = "cls.predictions"
HEAD_NAMES = (
    *(f"{HEAD}.transform.dense.weight", f"{HEAD}.transform.dense.bias"),
    *(f"{HEAD}.transform.LayerNorm.weight", f"{HEAD}.transform.LayerNorm.bias", f"{HEAD}.bias"),
)
HEAD_DEVIATION = 0.05  # standard deviation of the dense layer's first weights
HEAD_EPSILON = 1e-12  # of the head's LayerNorm
SHUT = -1e4  # added to the scores of padding


@dataclass(frozen=True, eq=False)
class FrozenEncoder:
    """A BertModel's weights, float32, by their names in it."""

    tensors: Mapping[str, Tensor]
    blocks: int
    heads: int
    epsilon: float  # of its LayerNorms
    _words_as: dict[torch.dtype, Tensor] = field(default_factory=dict)

    @property
    def word_vectors(self) -> Tensor:
        """float32 [piece, dim]."""
        return self.tensors["embeddings.word_embeddings.weight"]

    def words_as(self, dtype: torch.dtype) -> Tensor:
        """The word vectors in another type, made once."""
        if dtype not in self._words_as:
            self._words_as[dtype] = self.word_vectors.to(dtype)
        return self._words_as[dtype]

    def dense_name(self, block: int, matrix: str) -> str:
        """The name of a matrix without its ".weight" or ".bias"."""
        return f"encoder.layer.{block}.{matrix}"


def read_encoder(folder: Path) -> FrozenEncoder:
    """The encoder in a folder with model.safetensors and config.json, as transformers' BertModel saves it. Raises OSError."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = {
        name.removeprefix("bert."): tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()
    }
    return FrozenEncoder(
        tensors, config["num_hidden_layers"], config["num_attention_heads"], float(config["layer_norm_eps"])
    )


def first_values(encoder: FrozenEncoder, rank: int, log_shares: Tensor, seed: int) -> dict[str, Tensor]:
    """What training begins with, float32: a change of nothing, a random dense layer, and the pieces' log shares as bias.

    log_shares: float32 [piece].
    """
    random_numbers = torch.Generator().manual_seed(seed)
    size = encoder.word_vectors.shape[1]
    values: dict[str, Tensor] = {}
    for block in range(encoder.blocks):
        for matrix in MATRICES:
            name = encoder.dense_name(block, matrix)
            out, into = encoder.tensors[f"{name}.weight"].shape
            values[f"{name}.{DOWN}"] = torch.randn(rank, into, generator=random_numbers) / into**0.5
            values[f"{name}.{UP}"] = torch.zeros(out, rank)
    dense, dense_bias, norm, norm_bias, bias = HEAD_NAMES
    values[dense] = torch.randn(size, size, generator=random_numbers) * HEAD_DEVIATION
    values[dense_bias], values[norm], values[norm_bias] = torch.zeros(size), torch.ones(size), torch.zeros(size)
    values[bias] = log_shares.clone()
    return values


@dataclass(frozen=True, eq=False)
class MaskedWordModel:
    """An encoder with its trained change and head."""

    encoder: FrozenEncoder
    trained: Mapping[str, Tensor]  # float32, by their names in the file

    @property
    def rank(self) -> int:
        return self.trained[f"{self.encoder.dense_name(0, MATRICES[0])}.{DOWN}"].shape[0]

    def weight(self, block: int, matrix: str) -> Tensor:
        """An adapted matrix, float32 [out, in]."""
        name = self.encoder.dense_name(block, matrix)
        change = self.trained[f"{name}.{UP}"] @ self.trained[f"{name}.{DOWN}"]
        return self.encoder.tensors[f"{name}.weight"] + change

    def last_layer(self, pieces: Tensor, is_text: Tensor | None, dtype: torch.dtype = torch.float32) -> Tensor:
        """The encoder's last hidden states, `dtype` [text, token, dim].

        pieces: int64 [text, token]; is_text: bool [text, token], false where there is padding, None without any.
        """
        encoder = self.encoder
        texts, length = pieces.shape
        size = encoder.word_vectors.shape[1]
        places = encoder.tensors["embeddings.position_embeddings.weight"][:length]
        places = places + encoder.tensors["embeddings.token_type_embeddings.weight"][0]
        states = self._norm(encoder.words_as(dtype)[pieces] + places.to(dtype), "embeddings.LayerNorm")
        shut = None
        if is_text is not None:
            shut = torch.zeros(texts, 1, 1, length, dtype=dtype).masked_fill_(~is_text[:, None, None], SHUT)
        for block in range(encoder.blocks):
            layer = f"encoder.layer.{block}"
            # Query, key and value in one product: [text, token, 3, head, dim of a head] -> [3, text, head, token, ...].
            weights = torch.cat([self.weight(block, matrix).to(dtype) for matrix in MATRICES[:3]])
            biases = torch.cat([encoder.tensors[f"{layer}.{matrix}.bias"] for matrix in MATRICES[:3]]).to(dtype)
            parts = functional.linear(states, weights, biases).view(texts, length, 3, encoder.heads, -1)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
            attention = (scores if shut is None else scores + shut).softmax(-1)
            context = (attention @ value).transpose(1, 2).reshape(texts, length, size)
            states = self._norm(
                states + self._dense(context, block, MATRICES[3]), f"{layer}.attention.output.LayerNorm"
            )
            inner = functional.gelu(self._dense(states, block, MATRICES[4]))
            states = self._norm(states + self._dense(inner, block, MATRICES[5]), f"{layer}.output.LayerNorm")
        return states

    def scores(self, vectors: Tensor) -> Tensor:
        """The head's score of every piece for vectors of the last layer, [..., dim] -> [..., piece], of their type."""
        dtype = vectors.dtype
        dense, dense_bias, norm, norm_bias, bias = (self.trained[name].to(dtype) for name in HEAD_NAMES)
        inner = functional.gelu(functional.linear(vectors, dense, dense_bias))
        inner = functional.layer_norm(inner, norm.shape, norm, norm_bias, HEAD_EPSILON)
        return functional.linear(inner, self.encoder.words_as(dtype), bias)

    def rounded(self) -> MaskedWordModel:
        """The model as its file has it: what is trained, rounded to float16."""
        return MaskedWordModel(
            self.encoder, {name: value.detach().half().float() for name, value in self.trained.items()}
        )

    def _dense(self, states: Tensor, block: int, matrix: str) -> Tensor:
        bias = self.encoder.tensors[f"{self.encoder.dense_name(block, matrix)}.bias"]
        return functional.linear(states, self.weight(block, matrix).to(states.dtype), bias.to(states.dtype))

    def _norm(self, states: Tensor, name: str) -> Tensor:
        weight, bias = (self.encoder.tensors[f"{name}.{part}"].to(states.dtype) for part in ("weight", "bias"))
        return functional.layer_norm(states, weight.shape, weight, bias, self.encoder.epsilon)


def save_head(path: Path, model: MaskedWordModel) -> None:
    """Write what is trained in float16, completely or not at all. Raises OSError."""
    halves = {name: value.detach().half().contiguous() for name, value in model.trained.items()}
    with whole_file(path) as file:
        file.write(save(halves))


def read_head(path: Path, encoder: FrozenEncoder) -> MaskedWordModel:
    """The model with what `save_head` wrote, as float32. Raises OSError."""
    return MaskedWordModel(encoder, {name: value.float() for name, value in load_file(path).items()})
