"""Cosine similarity of vectors at every layer, as curves for pairs of things.

In BERT-family encoders cosines are high for any two tokens (Ethayarajh 2019,
"How Contextual are Contextualized Word Representations?"), so that a curve must be compared with the baseline of
components.analysis.similarity.baseline. It shows how similar two directions are, not why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from components.arrays import Float32, Float64, Int64, cosine, unit


@dataclass(frozen=True, eq=False)
class LayerCurves:
    """Cosines of pairs over the layers."""

    labels: tuple[str, ...]  # one per pair
    pairs: tuple[tuple[int, int], ...]  # indices of the two things of each pair
    values: Float64  # [pair, layer 0..L], NaN if a vector is missing

    @property
    def lowest(self) -> Int64:
        """Layer of each pair's lowest cosine, [pair]; the first one on a tie, 0 for a curve without values."""
        return np.argmin(np.where(np.isnan(self.values), np.inf, self.values), axis=1)

    @property
    def highest(self) -> Int64:
        """Layer of each pair's highest cosine, [pair]; the first one on a tie, 0 for a curve without values."""
        return np.argmax(np.where(np.isnan(self.values), -np.inf, self.values), axis=1)


def turn(before: np.ndarray, after: np.ndarray) -> Float64:
    """Degrees between two states of the same tokens, [token, dim] each, to [token]; 90 for a zero vector."""
    return np.degrees(np.arccos(cosine(before, after)))


def cosine_matrix(vectors: np.ndarray) -> Float64:
    """Cosines of all pairs of vectors at each layer: [layer, n, dim] to [layer, n, n]."""
    directions = unit(np.asarray(vectors, np.float64))
    return np.clip(directions @ np.swapaxes(directions, -1, -2), -1.0, 1.0)


def cross_cosines(rows: np.ndarray, columns: np.ndarray) -> Float64:
    """Cosines of each of `rows` [row, dim] with each of `columns` [column, dim]: float64 [row, column]."""
    first, second = unit(np.asarray(rows, np.float64)), unit(np.asarray(columns, np.float64))
    return np.clip(first @ second.T, -1.0, 1.0)


def pair_curves(
    vectors: Float32,
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None = None,
    centre: np.ndarray | None = None,
) -> LayerCurves:
    """A curve for each pair (all pairs by default) of `vectors` [layer, n, dim], named by `names`.

    `centre` [layer, dim] is subtracted from every vector first (centred cosine).
    """
    layers, count = vectors.shape[:2]
    if len(names) != count:
        raise ValueError(f"{count} vectors but {len(names)} names")
    chosen = tuple(combinations(range(count), 2)) if pairs is None else tuple(pairs)
    shifted = vectors if centre is None else centred(vectors, centre)
    first, second = [pair[0] for pair in chosen], [pair[1] for pair in chosen]
    values = cosine(shifted[:, first], shifted[:, second]).T if chosen else np.empty((0, layers))  # [pair, layer]
    return LayerCurves(tuple(f"{names[a]} – {names[b]}" for a, b in chosen), chosen, values)


def centred(vectors: Float32, centre: np.ndarray) -> Float32:
    """`vectors` [layer, n, dim] minus `centre` [layer, dim].

    A vector that equals the centre except for rounding errors becomes NaN, and so do its cosines, which would be
    noise. This concerns [CLS] at layer 0, which is equal in all sentences.
    """
    shifted = vectors - np.asarray(centre, np.float32)[:, None, :]
    small = np.linalg.norm(shifted, axis=-1) < 1e-5 * np.linalg.norm(vectors, axis=-1)
    shifted[small] = np.nan
    return shifted
