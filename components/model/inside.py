"""Inside each block: what attention and the feed-forward part add to every token's vector, and where it comes from.

Block b turns layer b into layer b+1 in two steps (Vaswani et al. 2017, section 3.1). In BERT (Devlin et al. 2019) and most of
its relatives a norm follows each:

    after_attention = norm(layer b + attention_output)
    layer b+1       = norm(after_attention + feed_forward_output)

Where norms come first (`Structure.normalises_first`, as in ModernBERT), each part reads a normalised copy, and what it gives
is added as it is; the last layer is that sum behind a final norm, if there is one:

    after_attention = layer b + attention_output
    layer b+1       = after_attention + feed_forward_output

In both, attention_output sums the contributions of all keys j in all heads h to query i:

    attention_output[i] = sum_h sum_j attentions[h, i, j] * f_h(x_j) + output bias
    f_h(x) = (x W_V[h] + b_V[h]) W_O[h]

where x is what attention reads: layer b, or its normalised copy. This form and its use are from Kobayashi et al. 2020,
"Attention is Not Only a Weight" (section 3): a key with a high weight still adds little if the norm of f(x) is small, as it
often is for [CLS], [SEP] and punctuation. It is exact, and the tests of this module check it for every architecture.

What it does not show: the residual and the norms come afterwards, and may undo or outweigh what was added
(Kobayashi et al. 2021). Norms say how much is added, not what it is used for.

Forward hooks on the library's own modules read all of it in one pass with eager attention. The hooks fire for every
pass of the shared module, so the caller holds the backend's lock around `run_with_hooks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from components.arrays import Float32, arrays_of, read_only
from components.model.architecture.modules import EncoderModules, Place, Projection, ScoreTerms
from components.model.architecture.record import modules_of
from components.model.architecture.structure import Structure
from components.model.catalog import ModelFacts
from components.model.device import on_device
from components.model.interventions.only_left import looking_left
from components.model.loaded import numpy_of, stacked
from components.model.trace import TokenizedSentence

# The arrays of the record that hooks fill: [block, token, dim], and those that are split by head.
_WHOLE = ("attention_output", "after_attention", "feed_forward_output")
_BY_HEAD = ("queries", "keys", "values")
# What is added to the products of queries and keys: the first two by disentangled attention, the last by MPNet.
_TERMS = ("content_to_position", "position_to_content", "distance")


@dataclass(frozen=True, eq=False)
class OutputProjection:
    """A model's attention output projections, split by head. All records of a model share one copy."""

    weights: Float32  # [block, head, head_dim, dim]: W_O, multiplied from the right
    bias: Float32  # [block, dim]: belongs to no head and no token; 0 where the model has none

    def __post_init__(self) -> None:
        read_only(self.weights)
        read_only(self.bias)


@dataclass(frozen=True, eq=False)
class InsideBlocks:
    """One forward pass over one sentence or pair, without padding, recorded inside the blocks.

    Block b has index b in every array except hidden_states, which counts layers. All arrays are read-only.

    Queries and keys are those that are multiplied with each other: where positions enter by rotation, after it, and where
    several heads share their keys and values, each of these heads has a copy. attentions = softmax(score_scale * queries
    keys^T + the terms for positions, if there are some), for keys that the query may attend to (`Structure.windows`).
    """

    sentence: TokenizedSentence
    hidden_states: Float32  # [layer 0..L, token, dim]
    attention_output: Float32  # [block, token, dim]: after the output projection, before it is added
    after_attention: Float32  # [block, token, dim]: the token's vector between the two steps
    feed_forward_output: Float32  # [block, token, dim]: after its last dense layer, before it is added
    queries: Float32  # [block, head, token, head_dim]
    keys: Float32  # [block, head, token, head_dim]
    values: Float32  # [block, head, token, head_dim]: x W_V + b_V
    attentions: Float32 | None  # [block, head, query, key], each row sums to 1; only on request
    projection: OutputProjection  # shared by all records of the model, so not part of nbytes
    score_scale: float  # what products of queries and keys are multiplied with: 1 / sqrt(head_dim) in most models
    # On request, [block, head, query, key], already scaled. Disentangled attention (DeBERTa): what the product of a query with
    # the vector of its distance to a key adds to their score, and the same for a key. MPNet: the number for their distance.
    content_to_position: Float32 | None = None
    position_to_content: Float32 | None = None
    distance: Float32 | None = None
    only_left: bool = False  # in this pass a token attended only to itself and to those before it
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

    def score_parts(self, block: int, head: int | None = None) -> dict[str, Float32]:
        """The terms of a block's scores before the softmax, float32 [head, query, key], or of one head [query, key].

        "content to content" is the scaled product of queries and keys. Disentangled attention adds "content to position" and
        "position to content", MPNet "distance".
        """
        where = block if head is None else (block, head)
        products = np.matmul(self.queries[where], self.keys[where].swapaxes(-1, -2)) * np.float32(self.score_scale)
        terms = {"content to content": products}
        for name in _TERMS:
            values: Float32 | None = getattr(self, name)
            if values is not None:
                terms[name.replace("_", " ")] = values[where]
        return terms

    def value_contributions(self, block: int) -> Float32:
        """f_h(x_j) of one block, float32 [head, token, dim]: the result for a query that attends to one token only.

        Computed anew in every call, since for all blocks it would take heads x hidden size for each token (226 MB
        for 512 tokens of BERT base). attentions[block] times it, summed over heads and keys, plus
        projection.bias[block] is attention_output[block]. Raises IndexError for a block that does not exist.
        """
        if not 0 <= block < self.n_blocks:
            raise IndexError(f"block {block} is not within 0..{self.n_blocks - 1}")
        return read_only(np.matmul(self.values[block], self.projection.weights[block]))


def terms_of(structure: Structure) -> int:
    """How many terms are added to the products of queries and keys."""
    return 2 * structure.has_disentangled_terms + ("relative" in structure.positions)


def size_in_bytes(
    facts: ModelFacts, tokens: int, attentions: bool = True, score_terms: int = 0, head_size: int | None = None
) -> int:
    """The size (nbytes) of the record of a sentence with this many tokens, before anything is computed.

    `score_terms` is the number of terms of the scores that are kept, `head_size` the length of a head's vectors where the
    heads together are not as long as a hidden state.
    """
    heads = facts.hidden_size if head_size is None else facts.heads * head_size
    vectors = (facts.layers + 1 + len(_WHOLE) * facts.layers) * facts.hidden_size + len(_BY_HEAD) * facts.layers * heads
    by_head = tokens * (attentions + score_terms) + 1  # rows of weights and terms, a norm for each token
    return 4 * tokens * (vectors + by_head * facts.heads * facts.layers)


def output_projection(modules: EncoderModules, heads: int) -> OutputProjection:
    """Copy an encoder's attention output projections to the CPU (28 MB for BERT base, 3.5 MB for MiniLM)."""
    denses = [block.attention_dense for block in modules.blocks]
    dim = denses[0].out_features
    weights = np.empty((len(denses), heads, denses[0].in_features // heads, dim), dtype=np.float32)
    bias = np.zeros((len(denses), dim), dtype=np.float32)
    for block, dense in enumerate(denses):
        # PyTorch stores a weight as [output, input]; the heads follow one another in the input.
        weights[block] = numpy_of(dense.weight).T.reshape(weights.shape[1:])  # [head, head_dim, dim]
        if dense.bias is not None:
            bias[block] = numpy_of(dense.bias)
    return OutputProjection(weights, bias)


def run_with_hooks(
    model: Any,
    tensors: dict[str, torch.Tensor],
    attentions: bool = True,
    score_terms: bool = False,
    only_left: bool = False,
) -> dict[str, Any]:
    """One pass over one sentence; the arrays of InsideBlocks by name, `attentions`, `hidden_states` and the scale included.

    `only_left`: with a mask that hides from each token those after it.

    Hold the lock of the module tree and use inference mode. `model` is an encoder, with eager
    attention if `attentions` are requested. No hook remains, even if the pass fails.
    """
    tokens, modules = tensors["input_ids"].shape[1], modules_of(model)
    masked = looking_left(model, tensors) if only_left else nullcontext(tensors)
    with _hooked(modules, int(model.config.num_attention_heads), tokens) as arrays, masked as arguments:
        output = model(**arguments, output_hidden_states=True, output_attentions=attentions, return_dict=True)
    if modules.rotations is not None:
        rotations = modules.rotations(tokens)
        for name in ("queries", "keys"):
            for block, (cosines, sines) in enumerate(rotations):
                arrays[name][block] = rotated(arrays[name][block], numpy_of(cosines), numpy_of(sines))
    terms: dict[str, Float32] = {}
    if modules.score_terms is not None and score_terms:
        terms = _terms(modules.score_terms, arrays["queries"], arrays["keys"], tensors["input_ids"].device)
    scale = modules.score_scale
    return {
        **arrays,
        **terms,
        "score_scale": arrays["queries"].shape[-1] ** -0.5 if scale is None else scale,
        "hidden_states": stacked([states[0] for states in output.hidden_states]),  # [layer, token, dim]
        # [block, head, query, key]
        "attentions": stacked([weights[0] for weights in output.attentions]) if attentions else None,
    }


def rotated(vectors: Float32, cosines: Float32, sines: Float32) -> Float32:
    """Queries or keys [head, token, head_dim], turned by each token's angles, [token, head_dim] (Su et al. 2021).

    Dimension d and d + head_dim / 2 are the two coordinates of a point that is rotated.
    """
    half = vectors.shape[-1] // 2
    turned = np.concatenate([-vectors[..., half:], vectors[..., :half]], axis=-1)
    return np.asarray(vectors * cosines + turned * sines, np.float32)


def _terms(score_terms: ScoreTerms, queries: Float32, keys: Float32, device: torch.device) -> dict[str, Float32]:
    """The terms that are added to the scores, each [block, head, query, key]."""
    found: dict[str, list[torch.Tensor]] = {}
    for block in range(len(queries)):
        both = on_device([torch.from_numpy(array[block]) for array in (queries, keys)], device)
        for name, values in score_terms(block, *both).items():
            found.setdefault(name, []).append(values)
    return {name: stacked(values) for name, values in found.items()}


@contextmanager
def _hooked(modules: EncoderModules, heads: int, tokens: int) -> Iterator[dict[str, Float32]]:
    """Arrays that a pass within this context fills; every hook is removed at its end."""
    blocks = modules.blocks
    dim = blocks[0].attention_dense.out_features
    places = {
        "attention_output": [Place(block.attention_dense) for block in blocks],
        "after_attention": [block.after_attention for block in blocks],
        "feed_forward_output": [Place(block.feed_forward_dense) for block in blocks],
    }
    projections = {
        "queries": [block.query for block in blocks],
        "keys": [block.key for block in blocks],
        "values": [block.value for block in blocks],
    }
    # NaN, so that an element that no hook wrote can never be mistaken for a result.
    arrays = {name: np.full((len(blocks), tokens, dim), np.nan, dtype=np.float32) for name in _WHOLE}
    flat = {  # [block, token, head with keys of its own * head_dim]
        name: np.full((len(blocks), tokens, parts[0].size), np.nan, dtype=np.float32)
        for name, parts in projections.items()
    }
    with ExitStack() as hooks:
        for name, wanted in places.items():
            copy_into(arrays[name], wanted, hooks)
        for name, parts in projections.items():
            copy_into(flat[name], parts, hooks)
        yield arrays
    for name, array in flat.items():
        arrays[name] = by_head(array, heads, flat["queries"].shape[-1] // heads)


def by_head(flat: Float32, heads: int, head_dim: int) -> Float32:
    """Queries, keys or values [..., token, head with own ones * head_dim] as [..., head, token, head_dim].

    Where several heads share theirs, each of them has a copy.
    """
    split = flat.reshape(*flat.shape[:-1], -1, head_dim).swapaxes(-2, -3)  # [..., head with own ones, token, head_dim]
    return np.ascontiguousarray(np.repeat(split, heads // split.shape[-3], axis=-3))


def copy_into(targets: Float32 | Sequence[Float32], wanted: Sequence[Place | Projection], hooks: ExitStack) -> None:
    """Until `hooks` is closed, a pass over one sentence copies each of these into the target [token, dim] of its number.

    They are one for each block, in order. Blocks may share a module, which is then called once for each.
    """
    groups: dict[int, tuple[Place | Projection, list[Float32]]] = {}
    for item, target in zip(wanted, targets, strict=True):
        module = item.module if isinstance(item, Place) else item.linear
        groups.setdefault(id(module), (item, []))[1].append(target)
    for item, shared in groups.values():
        if isinstance(item, Projection):
            removable = item.linear.register_forward_hook(_writer(shared, item.rows))
        elif item.end == "input":
            removable = item.module.register_forward_pre_hook(partial(_with_input, _writer(shared)))
        else:
            removable = item.module.register_forward_hook(_writer(shared))
        hooks.callback(removable.remove)


def _with_input(hook: Callable[..., None], module: Any, arguments: tuple[torch.Tensor, ...]) -> None:
    hook(module, None, arguments[0])


def _writer(targets: list[Float32], rows: slice = slice(None)) -> Callable[[Any, Any, torch.Tensor], None]:
    """A forward hook that copies a module's outputs [1, token, dim] into the targets [token, dim], one after another.

    Copied at once, because a later step may work in place. If its configuration has chunk_size_feed_forward,
    a model runs the feed-forward part several times, each time for the next few tokens. Where blocks share a module, it is
    called once for each. What a module is called for after that (DeBERTa's, for distances) is left out.
    """
    tokens, written = len(targets[0]), 0

    def write(module: Any, arguments: Any, output: torch.Tensor) -> None:
        nonlocal written
        call, first = divmod(written, tokens)
        if call < len(targets):
            count = output.shape[1]
            targets[call][first : first + count] = numpy_of(output[0, :, rows])
            written += count

    return write
