"""The parts of layer 0: the word, position and segment vectors that a token's first vector is the sum of.

layer 0 = LayerNorm(word + position [+ segment]) (Devlin et al. 2019, figure 2). The same word in two
sentences has the same word part, but usually another position part: at layer 0 its two vectors are then similar, but
not equal. At the same position they are identical.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float64, cosine
from components.model.trace import Trace


@dataclass(frozen=True, eq=False)
class PartValues:
    """A number for each part of layer 0."""

    names: tuple[str, ...]  # those that the model has of "word", "position", "segment", "task"; "sum", "layer 0"
    values: Float64  # [part, token], or [pair, part]


def _parts(trace: Trace) -> dict[str, np.ndarray]:
    """Name to float32 [sentence, token, dim]. Raises ValueError for a trace without embedding parts."""
    parts = trace.embedding_parts
    if parts is None:
        raise ValueError("this trace has no embedding parts")
    named = parts.named
    total = {"sum": parts.total} if len(named) > 1 else {}  # of one part, it is that part
    return {**named, **total, "layer 0": trace.hidden_states[0]}


def part_norms(trace: Trace, sentence: int) -> PartValues:
    """Euclidean norms of the parts, their sum, and layer 0 (after the LayerNorm) of a sentence's tokens, [part, token]."""
    length = len(trace.sentences[sentence])
    parts = _parts(trace)
    values = np.array(
        [np.linalg.norm(array[sentence, :length].astype(np.float64), axis=-1) for array in parts.values()]
    )
    return PartValues(tuple(parts), values)


def part_cosines(trace: Trace, positions: list[int], pairs: list[tuple[int, int]]) -> PartValues:
    """Cosine between the tokens at `positions` (one per sentence), for pairs of sentences, [pair, part]."""
    parts = _parts(trace)
    values = [
        [float(cosine(array[a, positions[a]], array[b, positions[b]])) for array in parts.values()] for a, b in pairs
    ]
    return PartValues(tuple(parts), np.array(values).reshape(len(pairs), len(parts)))
