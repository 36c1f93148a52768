"""How much of a score each block and each head adds to the vectors of text A, with text B held fixed.

A token's vector at layer l is a sum: its embedding, and what every head, every feed-forward part and every constant (the
bias after the heads, the shifts of the norms) has added to it since (Elhage et al. 2021, "A Mathematical Framework for
Transformer Circuits", call it the residual stream). In BERT each addition is followed by a LayerNorm, which scales all that
was added before. With its denominator held at the value that it has for this token, the LayerNorm is linear, so that the
sum stays exact (Kobayashi et al. 2021, "Incorporating Residual and Normalization Layers into Analysis of Masked Language
Models"). Where norms come first (as in ModernBERT), what is added stays as it is, and only the norm after the last block is
passed back through; its shift counts as a constant of the last block. Each part's product with the direction of B's vector,
divided by the norm of A's, is its share of the cosine.

Computed from the end: the direction of B is passed back through each norm, and at each block the outputs of its heads
are multiplied by it. Pooling is linear, with the maximum taken from the tokens that have it. For the model's own vector the
split is that of the vectors before its Dense layers.

What it does not show: why a head adds what it adds, since it reads what earlier blocks have added. A block with a small
share may prepare what a later one adds, and the norms' denominators depend on all parts. Swap A and B for the other
side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.why.ledger import Term
from components.analysis.why.token_ledger import HEAD_TERM, cosine_of, pooled_pair, token_weights
from components.arrays import Float64, arrays_of, cosine, read_only, unit
from components.errors import InputError
from components.model.contributions.block_norms import BlockNorms, VectorNorm
from components.model.inside import InsideBlocks
from components.model.trace import Pooling, Trace

if TYPE_CHECKING:
    from components.model.backend import Backend


@dataclass(frozen=True)
class TopPart:
    """One cell of the split."""

    name: str  # "block 3, head 7", "block 5, feed-forward", "embeddings"
    contribution: float


@dataclass(frozen=True, eq=False)
class ResidualSplit:
    """The parts of a sum over the tokens of a text: with the right directions, a cosine."""

    embeddings: float  # layer 0
    heads: Float64  # [block, head]
    feed_forward: Float64  # [block]: with its bias
    constants: Float64  # [block]: the bias after the heads, and the shifts of the norms
    cosine: float  # what they should sum to, computed directly
    terms: tuple[Term, ...] = ()  # of no part of the model

    def __post_init__(self) -> None:
        for array in arrays_of(self):
            read_only(array)

    @property
    def left_over(self) -> float:
        """What the parts and the terms do not explain of the cosine."""
        return self.cosine - self.total - sum(term.value for term in self.terms)

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return self.embeddings + float(self.matrix.sum())

    @property
    def matrix(self) -> Float64:
        """[block, part]: each head, then the feed-forward part, then the constants."""
        return np.hstack([self.heads, self.feed_forward[:, None], self.constants[:, None]])

    def columns(self) -> tuple[str, ...]:
        """The names of the matrix's columns."""
        return (*(f"head {head}" for head in range(self.heads.shape[1])), "feed-forward", "constants")

    def by_block(self) -> Float64:
        """The embeddings, then the sum of each block, float64 [1 + block]."""
        return np.concatenate([[self.embeddings], self.matrix.sum(axis=1)])

    def top(self, count: int) -> tuple[TopPart, ...]:
        """The heads, feed-forward parts and embeddings that add most, largest first; only those above 0."""
        parts = self._named_parts()
        return tuple(
            sorted((part for part in parts if part.contribution > 0), key=lambda part: -part.contribution)[:count]
        )

    def lowest(self) -> TopPart | None:
        """The head, feed-forward part or embeddings that takes most away; None if none is below 0."""
        part = min(self._named_parts(), key=lambda part: part.contribution)
        return part if part.contribution < 0 else None

    def _named_parts(self) -> list[TopPart]:
        parts = [TopPart("the embeddings", self.embeddings)]
        for block, values in enumerate(self.matrix[:, :-1]):
            parts += [
                TopPart(f"{name} of block {block}", float(value))
                for name, value in zip(self.columns(), values, strict=False)
            ]
        return parts


def split_of_texts(
    backend: Backend, first: str, second: str, layer: int, pooling: Pooling, max_length: int | None = None
) -> ResidualSplit:
    """The split of a text's vector as compared with another text's. Raises InputError as `Backend.trace` does."""
    return split_of_trace(
        backend, backend.trace([first, second], max_length=max_length), layer, pooling, 0, 1, max_length
    )


def split_of_trace(
    backend: Backend,
    trace: Trace,
    layer: int,
    pooling: Pooling,
    first: int,
    second: int,
    max_length: int | None = None,
) -> ResidualSplit:
    """The same for two sentences of a trace: one more pass over the first, which the backend keeps."""
    head = trace.head if pooling == "own" else None
    if head is not None and not head.pools_states:
        raise InputError(
            "The vector of this model cannot be split into parts of the blocks.",
            "It changes its tokens' vectors, or mixes layers, before it pools them.",
            "Choose another pooling.",
        )
    record = backend.inside(trace.sentences[first].text, max_length=max_length)
    before, final = pooled_pair(trace, layer, pooling, first, second)
    _, weights = token_weights(trace, layer, pooling, first)
    final_cosine = cosine_of(final) if pooling == "own" else None
    return residual_split(record, backend.block_norms(), layer, weights, (before[0], before[1]), final_cosine)


def residual_split(
    record: InsideBlocks,
    norms: BlockNorms,
    layer: int,
    weights: Float64,
    vectors: tuple[Float64, Float64],
    final_cosine: float | None = None,
) -> ResidualSplit:
    """The parts of the cosine of a text with another at a layer, from one pass with attentions.

    `weights` [token, dim] times the hidden states, summed over tokens, is the text's vector; `vectors` are that vector and
    the other text's, [dim]. Where poolings are joined, they have a block of dimensions for each. `final_cosine` is the cosine
    after what follows the pooling, if something does; its term is the difference. Raises ValueError for a layer that does not
    exist, or a record without attentions.
    """
    own, other = (np.asarray(vector, np.float64) for vector in vectors)
    directions = weights * unit(other) / (float(np.linalg.norm(own)) or 1.0)
    # Joined poolings repeat the hidden states: what each adds goes along the sum of their directions.
    directions = directions.reshape(len(directions), -1, record.hidden_states.shape[-1]).sum(axis=1)
    embeddings, heads, feed_forward, constants = (
        part.sum(axis=0) for part in split_along(record, norms, layer, directions)
    )
    value = float(cosine(own, other))
    terms = () if final_cosine is None else (Term(HEAD_TERM, final_cosine - value),)
    return ResidualSplit(
        float(embeddings),
        heads,
        feed_forward,
        constants,
        value if final_cosine is None else final_cosine,
        terms,
    )


def split_along(
    record: InsideBlocks, norms: BlockNorms, layer: int, directions: Float64
) -> tuple[Float64, Float64, Float64, Float64]:
    """The parts of each token's vector at a layer along a direction of its own; `directions` is [token, dim].

    Float64: embeddings [token], heads [token, block, head], feed-forward [token, block], constants [token, block]. For each
    token they sum to the product of its hidden state and its direction.
    """
    if not 0 <= layer <= record.n_blocks:
        raise ValueError(f"layer {layer} is not within 0..{record.n_blocks}")
    if record.attentions is None:
        raise ValueError("a record with attentions is needed")
    tokens, n_heads = len(directions), record.values.shape[1]
    heads = np.zeros((tokens, layer, n_heads))
    feed_forward, constants = np.zeros((tokens, layer)), np.zeros((tokens, layer))
    back = np.asarray(directions, np.float64)
    if norms.final is not None and layer == record.n_blocks and layer:
        before = record.after_attention[-1].astype(np.float64) + record.feed_forward_output[-1]
        back, shift = _through(norms.final, before, back)
        constants[:, -1] += shift
    for block in reversed(range(layer)):
        after_attention, after_feed_forward = norms.blocks[block] if norms.blocks else (None, None)
        if after_feed_forward is not None:
            before = record.after_attention[block].astype(np.float64) + record.feed_forward_output[block]
            back, shift = _through(after_feed_forward, before, back)
            constants[:, block] += shift
        feed_forward[:, block] = np.einsum("td,td->t", back, record.feed_forward_output[block])
        if after_attention is not None:
            before = record.hidden_states[block].astype(np.float64) + record.attention_output[block]
            back, shift = _through(after_attention, before, back)
            constants[:, block] += shift
        constants[:, block] += back @ record.projection.bias[block]
        mixed = np.matmul(record.attentions[block], record.values[block], dtype=np.float64)  # [head, token, head_dim]
        # The direction in each head's own space: W_O applied backwards.
        asked = np.einsum("hed,td->hte", record.projection.weights[block], back)  # [head, token, head_dim]
        heads[:, block] = (mixed * asked).sum(axis=-1).T
    embeddings = np.einsum("td,td->t", back, record.hidden_states[0])
    return embeddings, heads, feed_forward, constants


def _through(norm: VectorNorm, before: Float64, after: Float64) -> tuple[Float64, Float64]:
    """Directions after a norm [token, dim] as directions before it, and the share of its shift [token].

    `before` is what goes into it. Its denominator is taken as it is.
    """
    scaled = after * norm.scale
    centred = scaled - scaled.mean(axis=-1, keepdims=True) if norm.is_centred else scaled
    return centred / norm.deviation(before)[:, None], after @ norm.shift
