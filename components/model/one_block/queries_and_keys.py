"""Queries and keys of one block, for texts whose attentions are too many to be kept.

The attentions of all blocks and heads grow with the square of the text: ModernBERT base has 264 heads, and 8,192 tokens would
take 66 GiB. Its queries and keys grow with the text alone (48 MiB for a block), and give the attention of any head again, a
few rows at a time (components.analysis.attention.overview). The pass ends with the block and takes PyTorch's fused
attention, which never holds a whole matrix of weights.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.arrays import ArrayRecord, Float32
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model import inside
from components.model.architecture.record import first_blocks
from components.model.loaded import LoadedModel, numpy_of
from components.model.trace import TokenizedSentence


@dataclass(frozen=True, eq=False)
class QueriesAndKeys(ArrayRecord):
    """One block's queries and keys of one input, without padding; as in InsideBlocks, so after rotation."""

    sentence: TokenizedSentence
    block: int
    queries: Float32  # [head, token, head_dim]
    keys: Float32  # [head, token, head_dim]
    score_scale: float  # what their products are multiplied with
    window: int | None  # the furthest distance at which tokens attend in this block; None: any


def queries_and_keys(
    model: LoadedModel,
    sentence: TokenizedSentence,
    block: int,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> QueriesAndKeys:
    """One pass through the blocks up to this one. `progress(done, total)` counts blocks.

    Passes of other threads go in between two blocks: with a long text a block takes a second, and all of them minutes.

    Raises ModelError for a model whose blocks are not shown; ValueError for one that adds more to the scores than the
    products of queries and keys; IndexError for a block that does not exist; and Stopped between two blocks once
    `is_stopped()` is true.
    """
    model.need("blocks")
    if model.structure.adds_to_scores:
        raise ValueError(f"the scores of {model.structure.title} are more than products of queries and keys")
    if not 0 <= block < len(model.modules.blocks):
        raise IndexError(f"block {block} is not within 0..{len(model.modules.blocks) - 1}")
    blocks, heads = model.modules.blocks[: block + 1], model.facts.heads
    # NaN, so that an element that no hook wrote can never be mistaken for a result.
    arrays = [np.full((len(sentence), part.size), np.nan, np.float32) for part in (blocks[-1].query, blocks[-1].key)]
    begun, thread = 0, threading.get_ident()
    tensors = model.tensors(*model.tokenization.arrays([sentence]))
    with model.forward_pass():
        with ExitStack() as hooks:

            def begin(*_: Any) -> None:
                """Before each block. The last one is run without a break, so that only its own pass meets its hooks."""
                nonlocal begun
                if threading.get_ident() != thread:
                    return
                if is_stopped():
                    raise Stopped
                progress(begun, len(blocks))
                begun += 1
                model.let_others_in()
                if begun == len(blocks):
                    inside.copy_into(arrays[:1], [blocks[-1].query], hooks)
                    inside.copy_into(arrays[1:], [blocks[-1].key], hooks)

            for linear in {id(item.query.linear): item.query.linear for item in blocks}.values():
                hooks.callback(linear.register_forward_pre_hook(begin).remove)
            first_blocks(model.encoder, len(blocks))(**tensors)
        head_dim = arrays[0].shape[-1] // heads
        queries, keys = (inside.by_head(array, heads, head_dim) for array in arrays)
        if model.modules.rotations is not None:
            angles = [numpy_of(part) for part in model.modules.rotations(len(sentence))[block]]  # cosines and sines
            queries, keys = inside.rotated(queries, *angles), inside.rotated(keys, *angles)
    scale = model.modules.score_scale
    return QueriesAndKeys(
        sentence, block, queries, keys, head_dim**-0.5 if scale is None else scale, model.structure.windows[block]
    )
