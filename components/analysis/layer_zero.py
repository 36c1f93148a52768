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
class PartNorms:
    """Euclidean norms of the parts of each token of one sentence."""

    names: tuple[str, ...]  # "word", "position", perhaps "segment", "sum", "layer 0"
    values: Float64  # [part, token]


@dataclass(frozen=True, eq=False)
class PartCosines:
    """Cosines between two tokens of interest, part by part."""

    names: tuple[str, ...]
    labels: tuple[str, ...]  # one per pair of sentences
    values: Float64  # [pair, part]


def _parts(trace: Trace) -> dict[str, np.ndarray]:
    """Name to float32 [sentence, token, dim]. Raises ValueError for a trace without embedding parts."""
    parts = trace.embedding_parts
    if parts is None:
        raise ValueError("this trace has no embedding parts")
    named = {"word": parts.word, "position": parts.position}
    if parts.segment is not None:
        named["segment"] = parts.segment
    return {**named, "sum": parts.total, "layer 0": trace.hidden_states[0]}


def part_norms(trace: Trace, sentence: int) -> PartNorms:
    """Norm of each part, of their sum, and of layer 0 (after the LayerNorm), for a sentence's tokens."""
    length = len(trace.sentences[sentence])
    parts = _parts(trace)
    values = np.array(
        [np.linalg.norm(array[sentence, :length].astype(np.float64), axis=-1) for array in parts.values()]
    )
    return PartNorms(tuple(parts), values)


def part_cosines(trace: Trace, positions: list[int], pairs: list[tuple[int, int]]) -> PartCosines:
    """Cosine between the tokens at `positions` (one per sentence), for pairs of sentences, part by part."""
    parts = _parts(trace)
    values = [
        [float(cosine(array[a, positions[a]], array[b, positions[b]])) for array in parts.values()] for a, b in pairs
    ]
    labels = tuple(f"{a + 1} – {b + 1}" for a, b in pairs)
    return PartCosines(tuple(parts), labels, np.array(values).reshape(len(pairs), len(parts)))
