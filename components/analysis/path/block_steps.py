"""One block, opened: every step from layer b to layer b+1, each computed from the one before it.

Where the norms come after (BERT), with the norms of `BlockSteps.norms` in this order:

    after_attention = norm(layer b + attention_output)
    output          = norm(after_attention + feed_forward_output)

Where they come first (ModernBERT), each part reads a normalised copy, and both are added as they are:

    after_attention = layer b + attention_output               attention reads norm(layer b)
    output          = after_attention + feed_forward_output    the feed-forward part reads norm(after_attention)

and in the last block the output is norm(before_final_norm). In both, attention is the softmax of score_scale * queries keys^T +
terms over the keys that a query may attend to, which are those within the window, and only those to the left in a pass that
looks only left.

What it does not show: why a step has these numbers, and whether a later block undoes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.arrays import Float32, Float64, arrays_of, read_only
from components.model.architecture.structure import Structure
from components.model.contributions.block_norms import AppliedNorm, NormPlace
from components.model.inside import InsideBlocks
from components.model.one_block.feed_forward import FeedForward


@dataclass(frozen=True, eq=False)
class BlockSteps:
    """What happens to the tokens of one sentence or pair in one block; arrays are read-only."""

    block: int
    only_left: bool  # a token attends only to itself and to those before it
    attention_reads: Float32 | None  # [token, dim]: the normalised copy; None where attention reads layer b itself
    queries: Float32  # [head, token, head_dim], after rotation where positions enter by it
    keys: Float32  # [head, token, head_dim]
    values: Float32  # [head, token, head_dim]
    terms: dict[str, Float32]  # what is added to the scaled products, by name, [head, query, key]; mostly empty
    score_scale: float  # what the products of queries and keys are multiplied with
    window: int | None  # the furthest distance at which tokens attend; None: any
    attention_output: Float32  # [token, dim]: after the output projection, before it is added
    after_attention: Float32  # [token, dim]
    feed_forward_reads: Float32 | None  # [token, dim]: the normalised copy; None where it reads after_attention itself
    neurons: Float32  # [token, inner]: what the last dense layer reads; where there are gates, their products
    feed_forward_output: Float32  # [token, dim]: after the last dense layer, before it is added
    before_final_norm: Float32 | None  # [token, dim]: the last block's sum, where a norm follows the last block
    output: Float32  # [token, dim]: layer b+1
    norms: tuple[AppliedNorm, ...]  # in the order in which they are applied, each with its place

    def __post_init__(self) -> None:
        for array in (*arrays_of(self), *self.terms.values()):
            read_only(array)

    def norm(self, place: NormPlace) -> AppliedNorm | None:
        """The norm at a place of this block, or None."""
        return _norm_at(self.norms, place)


def block_steps(
    record: InsideBlocks, neurons: FeedForward, structure: Structure, norms: Sequence[AppliedNorm], block: int
) -> BlockSteps:
    """The steps of a block, from records of one pass over the same input, and its norms (`Backend.applied_norms`).

    Raises IndexError for a block that does not exist; ValueError for records of different inputs or masks, for neurons of
    another block, and for a record without the terms that the model adds to the scores.
    """
    if not 0 <= block < record.n_blocks:
        raise IndexError(f"block {block} is not within 0..{record.n_blocks - 1}")
    if (record.sentence, record.only_left) != (neurons.sentence, neurons.only_left):
        raise ValueError("the two records are of different inputs, or of different masks")
    terms = record.score_parts(block)
    del terms["content to content"]
    if structure.adds_to_scores and not terms:
        raise ValueError("this record has no terms of the scores")
    before, middle = record.hidden_states[block], record.after_attention[block]
    added, is_last = record.feed_forward_output[block], block == record.n_blocks - 1
    return BlockSteps(
        block=block,
        only_left=record.only_left,
        attention_reads=_normalised(_norm_at(norms, "before attention"), before),
        queries=record.queries[block],
        keys=record.keys[block],
        values=record.values[block],
        terms=terms,
        score_scale=record.score_scale,
        window=structure.windows[block],
        attention_output=record.attention_output[block],
        after_attention=middle,
        feed_forward_reads=_normalised(_norm_at(norms, "before feed-forward"), middle),
        neurons=neurons.products(block),
        feed_forward_output=added,
        before_final_norm=middle + added if is_last and structure.has_final_norm else None,
        output=record.hidden_states[block + 1],
        norms=tuple(norms),
    )


def _norm_at(norms: Sequence[AppliedNorm], place: NormPlace) -> AppliedNorm | None:
    return next((norm for norm in norms if norm.place == place), None)


def _normalised(norm: AppliedNorm | None, vectors: Float32) -> Float32 | None:
    """A normalised copy of vectors [token, dim], worked out in float64; None without a norm."""
    if norm is None:
        return None
    wide: Float64 = vectors.astype(np.float64)
    return np.asarray(norm(wide), np.float32)
