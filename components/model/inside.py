"""Inside each block: what attention and the feed-forward part add to every token's vector, and where it comes from.

Block b of a BERT-family encoder turns layer b into layer b+1 in two steps (Vaswani et al. 2017, section 3.1;
Devlin et al. 2019):

    after_attention = LayerNorm(layer b + attention_output)
    layer b+1       = LayerNorm(after_attention + feed_forward_output)

where attention_output sums the contributions of all keys j in all heads h to query i:

    attention_output[i] = sum_h sum_j attentions[h, i, j] * f_h(x_j) + output bias
    f_h(x) = (x W_V[h] + b_V[h]) W_O[h]

This form and its use are from Kobayashi et al. 2020, "Attention is Not Only a Weight" (section 3): a key
with a high weight still adds little if the norm of f(x) is small, as it often is for [CLS], [SEP] and
punctuation. It is exact, and the tests of this module check it for every architecture.

What it does not show: the residual and the LayerNorms come afterwards, and may undo or outweigh what was added
(Kobayashi et al. 2021). Norms say how much is added, not what it is used for.

Forward hooks on the library's own modules read all of it in one pass with eager attention. The hooks fire for every
pass of the shared module, so the caller holds the backend's lock around `run_with_hooks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from components.arrays import Float32, arrays_of, read_only
from components.model.architecture import BlockModules, block_modules
from components.model.catalog import ModelFacts
from components.model.loaded import numpy_of, stacked
from components.model.trace import TokenizedSentence

# One array of the record for each hooked module: [block, token, dim], and those that are split by head.
_WHOLE = {
    "attention_output": "attention_dense",
    "after_attention": "attention_norm",
    "feed_forward_output": "feed_forward_dense",
}
_BY_HEAD = {"queries": "query", "keys": "key", "values": "value"}


@dataclass(frozen=True, eq=False)
class OutputProjection:
    """A model's attention output projections, split by head. All records of a model share one copy."""

    weights: Float32  # [block, head, head_dim, dim]: W_O, multiplied from the right
    bias: Float32  # [block, dim]: belongs to no head and no token

    def __post_init__(self) -> None:
        read_only(self.weights)
        read_only(self.bias)


@dataclass(frozen=True, eq=False)
class InsideBlocks:
    """One forward pass over one sentence or pair, without padding, recorded inside the blocks.

    Block b has index b in every array except hidden_states, which counts layers. All arrays are read-only.
    attentions = softmax(queries keys^T / sqrt(head_dim)); only MPNet adds a bias for the tokens' distance
    before the softmax; it is the same in every block and not part of the queries or keys.
    """

    sentence: TokenizedSentence
    hidden_states: Float32  # [layer 0..L, token, dim]
    attention_output: Float32  # [block, token, dim]: after the output projection, before residual and LayerNorm
    after_attention: Float32  # [block, token, dim]: LayerNorm(layer b + attention_output)
    feed_forward_output: Float32  # [block, token, dim]: after its second dense layer, before residual and LayerNorm
    queries: Float32  # [block, head, token, head_dim]
    keys: Float32  # [block, head, token, head_dim]
    values: Float32  # [block, head, token, head_dim]: x W_V + b_V
    attentions: Float32 | None  # [block, head, query, key], each row sums to 1; only on request
    projection: OutputProjection  # shared by all records of the model, so not part of nbytes
    value_norms: Float32 = field(init=False)  # [block, head, token]: Euclidean norm of value_contributions

    def __post_init__(self) -> None:
        norms = np.empty(self.values.shape[:3], dtype=np.float32)
        for block in range(len(norms)):
            norms[block] = np.linalg.norm(self.value_contributions(block), axis=-1)
        object.__setattr__(self, "value_norms", norms)
        for array in arrays_of(self):
            read_only(array)

    @property
    def n_blocks(self) -> int:
        """L: blocks count 0..L-1, layers 0..L."""
        return len(self.queries)

    @property
    def nbytes(self) -> int:
        """Memory the arrays take, in bytes, without the projection."""
        return sum(array.nbytes for array in arrays_of(self))

    def value_contributions(self, block: int) -> Float32:
        """f_h(x_j) of one block, float32 [head, token, dim]: the result for a query that attends to one token only.

        Computed anew in every call, since for all blocks it would take heads x hidden size for each token (226 MB
        for 512 tokens of BERT base). attentions[block] times it, summed over heads and keys, plus
        projection.bias[block] is attention_output[block]. Raises IndexError for a block that does not exist.
        """
        if not 0 <= block < self.n_blocks:
            raise IndexError(f"block {block} is not within 0..{self.n_blocks - 1}")
        return read_only(np.matmul(self.values[block], self.projection.weights[block]))


def size_in_bytes(facts: ModelFacts, tokens: int, attentions: bool = True) -> int:
    """The size (nbytes) of the record of a sentence with this many tokens, before anything is computed."""
    vectors = (facts.layers + 1) + (len(_WHOLE) + len(_BY_HEAD)) * facts.layers  # each of the hidden size
    by_head = (tokens if attentions else 0) + 1  # a row of weights and a norm for each token
    return 4 * tokens * (vectors * facts.hidden_size + by_head * facts.heads * facts.layers)


def output_projection(model: Any) -> OutputProjection:
    """Copy an encoder's attention output projections to the CPU (28 MB for BERT base, 3.5 MB for MiniLM)."""
    denses = [modules.attention_dense for modules in block_modules(model)]
    heads, dim = int(model.config.num_attention_heads), denses[0].out_features
    weights = np.empty((len(denses), heads, denses[0].in_features // heads, dim), dtype=np.float32)
    bias = np.empty((len(denses), dim), dtype=np.float32)
    for block, dense in enumerate(denses):
        # PyTorch stores a weight as [output, input]; the heads follow one another in the input.
        weights[block] = numpy_of(dense.weight).T.reshape(weights.shape[1:])  # [head, head_dim, dim]
        bias[block] = numpy_of(dense.bias)
    return OutputProjection(weights, bias)


def run_with_hooks(model: Any, tensors: dict[str, torch.Tensor], attentions: bool = True) -> dict[str, Float32 | None]:
    """One pass over one sentence; the arrays of InsideBlocks by name, `attentions` and `hidden_states` included.

    Hold the lock of the module tree and use inference mode. `model` is an encoder, with eager
    attention if `attentions` are requested. No hook remains, even if the pass fails.
    """
    tokens = tensors["input_ids"].shape[1]
    with _hooked(block_modules(model), int(model.config.num_attention_heads), tokens) as arrays:
        output = model(**tensors, output_hidden_states=True, output_attentions=attentions, return_dict=True)
    return {
        **arrays,
        "hidden_states": stacked([states[0] for states in output.hidden_states]),  # [layer, token, dim]
        # [block, head, query, key]
        "attentions": stacked([weights[0] for weights in output.attentions]) if attentions else None,
    }


@contextmanager
def _hooked(blocks: list[BlockModules], heads: int, tokens: int) -> Iterator[dict[str, Float32]]:
    """Arrays that a pass within this context fills; every hook is removed at its end."""
    arrays: dict[str, Float32] = {}
    with ExitStack() as hooks:
        for name, part in (_WHOLE | _BY_HEAD).items():
            modules = [getattr(block, part) for block in blocks]
            dim = modules[0].weight.shape[0]  # the size of the output, for a linear layer and a LayerNorm
            shape = (heads, tokens, dim // heads) if name in _BY_HEAD else (tokens, dim)
            # NaN, so that an element that no hook wrote can never be mistaken for a result.
            arrays[name] = np.full((len(blocks), *shape), np.nan, dtype=np.float32)
            for target, module in zip(arrays[name], modules, strict=True):
                by_token = target.swapaxes(0, 1) if name in _BY_HEAD else target  # a view: [token, head, head_dim]
                hooks.callback(module.register_forward_hook(_writer(by_token)).remove)
        yield arrays


def _writer(target: Float32) -> Callable[[Any, Any, torch.Tensor], None]:
    """A forward hook that copies a module's output [1, token, dim] into `target` [token, dim or head, head_dim].

    Copied at once, because a later step may work in place. If its configuration has chunk_size_feed_forward,
    a model runs the feed-forward part several times, each time for the next few tokens.
    """
    written = 0

    def write(module: Any, arguments: Any, output: torch.Tensor) -> None:
        nonlocal written
        count = output.shape[1]
        target[written : written + count] = numpy_of(output[0]).reshape(count, *target.shape[1:])
        written += count

    return write
