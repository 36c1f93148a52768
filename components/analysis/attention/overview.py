"""One head's attention over a long text, as a small matrix of blocks of tokens; the whole matrix is never in memory.

Rows are computed from queries and keys a few at a time, and each group of rows is reduced at once. The largest value of
`factor` x `factor` cells shows lines and stripes that their mean would hide; the mean shows where the mass is. Each row of
attention sums to 1 before it is reduced.

What it does not show: which token of a cell gets the attention. `attention_row` gives the exact row of one query.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from components.analysis.attention.scores import softmax
from components.arrays import Float32, Float64
from components.jobs import IsCancelled

Reduction = Literal["max", "mean"]
MOST_BYTES = 32 << 20  # of the rows that are in memory at once, in float64


def attention_overview(
    queries: Float32,
    keys: Float32,
    scale: float,
    window: int | None,
    factor: int,
    how: Reduction = "max",
    is_cancelled: IsCancelled = lambda: False,
) -> Float64:
    """Attention of one head [token, head_dim] as a matrix [query cell, key cell]; a cell is `factor` x `factor` tokens.

    The last cells hold the tokens that are left. Stops early, with rows of NaN, once `is_cancelled()` is true.
    """
    tokens = len(queries)
    cells = -(-tokens // factor)
    starts = np.arange(0, tokens, factor)
    result = np.full((cells, cells), np.nan)
    rows = max(1, MOST_BYTES // (8 * tokens) // factor) * factor  # whole cells
    for first in range(0, tokens, rows):
        if is_cancelled():
            break
        shares = _rows(queries, keys, scale, window, first, min(first + rows, tokens))  # [row, key]
        within = np.arange(0, len(shares), factor)
        if how == "max":
            reduced = np.maximum.reduceat(np.maximum.reduceat(shares, starts, axis=1), within, axis=0)
        else:
            sizes = np.diff(np.append(starts, tokens)) * np.diff(np.append(within, len(shares)))[:, None]
            reduced = np.add.reduceat(np.add.reduceat(shares, starts, axis=1), within, axis=0) / sizes
        result[first // factor : first // factor + len(reduced)] = reduced
    return result


def attention_row(queries: Float32, keys: Float32, scale: float, window: int | None, query: int) -> Float64:
    """The exact attention of one query to all keys, [key]."""
    return np.asarray(_rows(queries, keys, scale, window, query, query + 1)[0])


def _rows(queries: Float32, keys: Float32, scale: float, window: int | None, first: int, end: int) -> Float64:
    scores = (queries[first:end] @ keys.T).astype(np.float64) * scale  # [row, key]
    positions = np.arange(len(keys))
    distances = np.abs(np.arange(first, end)[:, None] - positions)
    return softmax(scores, distances <= (len(keys) if window is None else window))
