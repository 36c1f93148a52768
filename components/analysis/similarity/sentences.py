"""Sentences against sentences: cosines of their pooled vectors, in an order that places similar sentences together.

One vector per sentence (components.analysis.pooling), and the cosine of every pair. The order is that of the leaves
of average-linkage clustering on 1 - cosine: at each step the two groups with the highest mean similarity are
joined (Sokal and Michener 1958), and branches are ordered so that neighbours are as similar as possible
(Bar-Joseph et al. 2001).

What it does not show: that there *are* groups. Clustering gives an order for any data; look at the values. The
model's training determines what is similar: sentence encoders give paraphrases similar vectors, a plain masked-LM
encoder gives all sentences similar vectors (components.analysis.similarity.baseline measures it for unrelated ones).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from components.analysis.similarity.cosines import cosine_matrix
from components.arrays import Float64, read_only

TIED = 6  # decimals of a cosine: what is equal in them is a tie, since equal sentences differ by rounding


@dataclass(frozen=True)
class SentencePair:
    first: int  # the lower of the two indices
    second: int
    similarity: float  # cosine; NaN if one of the two has no vector


@dataclass(frozen=True, eq=False)
class SentenceSimilarity:
    """Cosines of all pairs of sentences, in the given order."""

    matrix: Float64  # [sentence, sentence]; NaN for a missing vector

    def pairs(self) -> tuple[SentencePair, ...]:
        """Every pair of two sentences, most similar first; in reading order on a tie, pairs without a value last."""
        pairs = [SentencePair(a, b, float(self.matrix[a, b])) for a, b in combinations(range(len(self.matrix)), 2)]
        # NaN is neither smaller nor larger than a number, so it must not take part in the comparison.
        return tuple(
            sorted(pairs, key=lambda pair: (np.isnan(pair.similarity), -np.nan_to_num(round(pair.similarity, TIED))))
        )

    def clustered_order(self) -> tuple[int, ...]:
        """All sentences, similar ones next to each other; sentences without a vector at the end, in reading order."""
        known = np.flatnonzero(~np.isnan(np.diagonal(self.matrix)))
        unknown = [row for row in range(len(self.matrix)) if row not in set(known.tolist())]
        return (*(int(known[leaf]) for leaf in _leaves(self.matrix[np.ix_(known, known)])), *unknown)

    def ordered(self, order: Sequence[int]) -> Float64:
        """The matrix with rows and columns in another order. Raises ValueError unless it contains each row once."""
        if sorted(order) != list(range(len(self.matrix))):
            raise ValueError(f"{list(order)} is not an order of {len(self.matrix)} sentences")
        return self.matrix[np.ix_(order, order)]


def sentence_similarity(vectors: np.ndarray) -> SentenceSimilarity:
    """Similarities of pooled vectors of one layer, [sentence, dim]."""
    matrix = cosine_matrix(vectors[None])[0]
    return SentenceSimilarity(read_only((matrix + matrix.T) / 2))  # the product is not always symmetric to the last bit


def _leaves(matrix: Float64) -> list[int]:
    """Leaves from left to right of the average-linkage tree of similarities [n, n]."""
    if len(matrix) < 3:
        return list(range(len(matrix)))
    # Imported here because scipy's clustering is slow to import and rarely used.
    from scipy.cluster.hierarchy import leaves_list, linkage

    distances = np.maximum(1 - matrix[np.triu_indices(len(matrix), 1)], 0)  # scipy's condensed form, row by row
    return [int(leaf) for leaf in leaves_list(linkage(distances, "average", optimal_ordering=True))]
