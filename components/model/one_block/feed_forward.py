"""The inner dimensions of the feed-forward parts: what each dimension gives for each token, and which gate lets through.

The feed-forward part of a BERT is two dense layers with an activation function between them (Vaswani et al. 2017, section
3.3):

    feed_forward_output = activation(x W_1 + b_1) W_2 + b_2

A gated one has a third matrix, and multiplies two projections dimension by dimension (Shazeer 2020, "GLU Variants Improve
Transformer"; GeGLU with GELU, SwiGLU with SiLU):

    feed_forward_output = (activation(x W_gate) * (x W_value)) W_2

In both, each row of W_2 is a vector of the hidden size that is added in proportion to its inner dimension (Geva et al. 2021,
"Transformer Feed-Forward Layers Are Key-Value Memories"). The tests hold both formulas for every architecture.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch

from components.arrays import Float32, arrays_of, read_only
from components.model import inside
from components.model.architecture.modules import Place
from components.model.loaded import LoadedModel, numpy_of
from components.model.trace import TokenizedSentence


@dataclass(frozen=True, eq=False)
class FeedForward:
    """The inner dimensions of every block's feed-forward part for one input, without padding; arrays are read-only."""

    sentence: TokenizedSentence
    activations: Float32  # [block, token, inner]: what the activation function gives; in a gated part, the gates
    values: Float32 | None  # [block, token, inner]: what the gates are multiplied with; None where there are none

    def __post_init__(self) -> None:
        for array in arrays_of(self):
            read_only(array)

    @property
    def nbytes(self) -> int:
        """Memory the arrays take, in bytes."""
        return sum(array.nbytes for array in arrays_of(self))

    def products(self, block: int) -> Float32:
        """What the last dense layer of a block reads, float32 [token, inner]."""
        return self.activations[block] if self.values is None else self.activations[block] * self.values[block]


def size_in_bytes(model: LoadedModel, tokens: int) -> int:
    """The size (nbytes) of the record of so many tokens, before anything is computed."""
    blocks = model.modules.blocks
    return (
        4 * len(blocks) * tokens * int(blocks[0].feed_forward_dense.in_features) * (1 if blocks[0].gate is None else 2)
    )


def feed_forward(model: LoadedModel, sentence: TokenizedSentence) -> FeedForward:
    """One pass over one text or pair of texts."""
    blocks = model.modules.blocks
    shape = (len(blocks), len(sentence), int(blocks[0].feed_forward_dense.in_features))
    gates = [block.gate for block in blocks if block.gate is not None]
    # NaN, so that an element that no hook wrote can never be mistaken for a result.
    activations = np.full(shape, np.nan, np.float32)
    values = np.full(shape, np.nan, np.float32) if gates else None
    tensors = model.tensors(*model.tokenization.arrays([sentence]))
    with model.forward_pass():
        with ExitStack() as hooks:
            if values is None:
                inside.copy_into(activations, [Place(block.feed_forward_dense, "input") for block in blocks], hooks)
            else:
                inside.copy_into(activations, [gate.gate for gate in gates], hooks)
                inside.copy_into(values, [gate.value for gate in gates], hooks)
            model.encoder(**tensors)
        for block, gate in enumerate(gates):
            projected = torch.from_numpy(activations[block]).to(model.device)
            activations[block] = numpy_of(gate.activation(projected))
    return FeedForward(sentence, activations, values)
