"""One head's attention over a long text, as a small matrix of blocks of tokens; the whole matrix is never in memory.

Rows are computed from queries and keys a few at a time, and each group of rows is reduced at once. The largest value of
`factor` x `factor` cells shows lines and stripes that their mean would hide; the mean shows where the mass is. Each row of
attention sums to 1 before it is reduced.

What it does not show: which token of a cell gets the attention. `attention_row` gives the exact row of one query.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from components.arrays import Float32, Float64
from components.jobs import IsStopped

Reduction = Literal["max", "mean"]
MOST_BYTES = 32 << 20  # of the rows that are in memory at once


def attention_overview(
    queries: Float32,
    keys: Float32,
    scale: float,
    window: int | None,
    factor: int,
    how: Reduction = "max",
    is_stopped: IsStopped = lambda: False,
) -> Float64:
    """Attention of one head [token, head_dim] as a matrix [query cell, key cell]; a cell is `factor` x `factor` tokens.

    The last cells hold the tokens that are left. Stops early, with rows of NaN, once `is_stopped()` is true.
    """
    tokens = len(queries)
    cells = -(-tokens // factor)
    result = np.full((cells, cells), np.nan)
    rows = max(1, MOST_BYTES // (4 * tokens) // factor) * factor  # whole cells
    for first in range(0, tokens, rows):
        if is_stopped():
            break
        end = min(first + rows, tokens)
        # Of a local block only the cells that its window reaches: elsewhere attention is 0.
        begin, stop = 0, tokens
        if window is not None:
            begin = max(0, first - window) // factor * factor
            stop = min(tokens, -(-(end + window) // factor) * factor)
        shares = _rows(queries, keys, scale, window, first, end, begin, stop)  # [row, key]
        starts, within = np.arange(0, stop - begin, factor), np.arange(0, end - first, factor)
        if how == "max":
            reduced = np.maximum.reduceat(np.maximum.reduceat(shares, starts, axis=1), within, axis=0)
        else:
            sums = np.add.reduceat(np.add.reduceat(shares, starts, axis=1), within, axis=0, dtype=np.float64)
            sizes = [np.diff(np.append(starts, stop - begin)), np.diff(np.append(within, end - first))]  # of cells
            reduced = sums / (sizes[0] * sizes[1][:, None])
        where = slice(first // factor, first // factor + len(reduced))
        result[where] = 0
        result[where, begin // factor : begin // factor + reduced.shape[1]] = reduced
    return result


def attention_row(queries: Float32, keys: Float32, scale: float, window: int | None, query: int) -> Float32:
    """The exact attention of one query to all keys, [key]."""
    return _rows(queries, keys, scale, window, query, query + 1, 0, len(keys))[0]


def _rows(
    queries: Float32, keys: Float32, scale: float, window: int | None, first: int, end: int, begin: int, stop: int
) -> Float32:
    """The attention of queries first..end-1 to keys begin..stop-1, which are all that they may attend to."""
    scores = (queries[first:end] @ keys[begin:stop].T) * np.float32(scale)  # [row, key]
    if window is not None:
        distances = np.abs(np.arange(first, end)[:, None] - np.arange(begin, stop))
        scores[distances > window] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return np.asarray(scores, np.float32)
