"""From scores of the whole vocabulary to what is kept of them: the best pieces, and the place of those that are asked for.

A masked-LM head scores every piece of the vocabulary; softmax turns the scores into probabilities. Of 30,000 and more numbers
for each token only a few are wanted, so that the rest is never kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from components.arrays import Float64, Int64
from components.model.device import on_device, widest


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of the scores of some tokens, one row each."""

    ids: Int64  # [row, k]: most probable first; on a tie the lower id first
    probabilities: Float64  # [row, k]
    asked_ranks: Int64  # [row, asked]: 1 is the first; a tie counts against it; 0 for the id -1
    asked_probabilities: Float64  # [row, asked]; NaN for the id -1
    asked_bits: Float64  # [row, asked]: -log2 of them, also of those too small for a float; NaN for the id -1


def kept(logits: torch.Tensor, k: int, asked: Int64) -> Kept:
    """The `k` best of scores [row, vocabulary], and the place of each row's `asked` ids [row, asked] among them.

    An asked id is -1 where nothing is asked. `k` beyond the vocabulary means all of it. Raises ValueError for k < 1.
    """
    if k < 1:
        raise ValueError(f"k is {k}; expected 1 or more")
    best = _best(logits, min(k, logits.shape[1]))
    top = logits.amax(dim=-1, keepdim=True)
    # Summed in float64, where the device has it: thousands of small numbers.
    total = _numpy(torch.exp(logits - top).sum(dim=-1, dtype=widest(logits.device)))[:, None]
    highest = _numpy(top)

    def log_probability(scores: torch.Tensor) -> Float64:
        return _numpy(scores) - highest - np.log(total)

    (wanted,) = on_device([torch.from_numpy(np.maximum(asked, 0))], logits.device)
    scores = logits.gather(1, wanted)  # [row, asked]
    ranks = np.zeros(asked.shape, np.int64)
    for column in range(
        asked.shape[1]
    ):  # one after another: together they would take as much memory as `logits` for each
        ranks[:, column] = (logits >= scores[:, column : column + 1]).sum(dim=-1).cpu().numpy()
    is_known = asked >= 0
    logs = np.where(is_known, log_probability(scores), np.nan)
    return Kept(
        best.cpu().numpy(),
        np.exp(log_probability(logits.gather(1, best))),
        np.where(is_known, ranks, 0),
        np.exp(logs),
        np.abs(logs / math.log(2)),  # abs: no -0.0 where one piece has it all
    )


def _numpy(tensor: torch.Tensor) -> Float64:
    return np.asarray(tensor.cpu().numpy(), np.float64)


def _best(logits: torch.Tensor, k: int) -> torch.Tensor:
    """The ids of the `k` highest scores of each row, int64 [row, k]; of equal scores the lower id comes first."""
    values, ids = logits.topk(k, dim=-1)
    # Which of several equal scores `topk` takes, and in which order, is not certain.
    for row in torch.nonzero((logits >= values[:, -1:]).sum(dim=-1) > k)[:, 0].tolist():
        ids[row] = torch.sort(logits[row], descending=True, stable=True).indices[:k]
    ids = ids.sort(dim=-1).values
    order = torch.sort(logits.gather(1, ids), dim=-1, descending=True, stable=True).indices
    return ids.gather(1, order)
