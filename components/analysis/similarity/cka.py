"""How similarly two layers, of one model or of two, arrange the same tokens: linear CKA.

Linear centred kernel alignment (Kornblith et al. 2019, "Similarity of Neural Network Representations
Revisited", sections 2 and 3) compares the similarities between tokens, not the vectors themselves:

    CKA(X, Y) = ||Y^T X||^2 / (||X^T X|| ||Y^T Y||) = <K, L> / (||K|| ||L||),   K = X X^T, L = Y Y^T,

with X [n, dim1] and Y [n, dim2] centred, row i of both being the same token. It is 1 if Y is X rotated,
mirrored or scaled, and 0 if no direction of Y correlates with one of X; widths may differ.

With few tokens it is meaningless. If n is not far above dim, all n tokens are nearly orthogonal to each other, K and
L are both close to the unit matrix, and CKA is close to 1 even for unrelated vectors: dim / (n + dim) for unrelated
normal vectors, so 0.5 at n = dim and 0.1 at n = 9 dim. Layers of real models use far fewer directions than they
have. The bias is therefore measured: `chance` is the mean CKA over all ways to match the rows of X and Y at random,
exactly tr K tr L / ((n - 1) ||K|| ||L||). Only the part of a value above it is meaningful (on this bias: Murphy et
al. 2024, "Correcting Biased Centered Kernel Alignment Measures").

`debiased` replaces <K, L> by its unbiased estimate (Song et al. 2012, "Feature Selection via Dependence Maximization",
equation 5, which leaves out the similarity of each token with itself; Nguyen et al. 2021, "Do Wide and Deep Networks Learn
the Same Things?"):

    HSIC1(K, L) = [<K0, L0> + sum(K0) sum(L0) / ((n - 1)(n - 2)) - 2 (K0 1).(L0 1) / (n - 2)] / (n (n - 3)),

with K0 and L0 being K and L with zeros on the diagonal; debiased CKA is HSIC1(K, L) / sqrt(HSIC1(K, K) HSIC1(L, L)). For
unrelated vectors its mean is near 0 whatever n is, so that values may be a little below 0. Since X and Y are centred,
every row of K sums to 0, and with k and l being the diagonals of K and L (the squared lengths of the vectors)

    <K0, L0> = <K, L> - k.l,   K0 1 = -k,   sum(K0) = -tr K,

so that it costs no more than the other: HSIC1 = [<K, L> - n k.l / (n - 2) + tr K tr L / ((n - 1)(n - 2))] / (n (n - 3)).

What it does not show: which tokens differ, or whether both layers contain the same information. A few directions
with large variance, such as those of [CLS] and [SEP], can alone determine the value (Davari et al. 2023,
"Reliability of CKA"): compare with special tokens left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from components.arrays import Float64, Int64, read_only
from components.errors import InputError

Judgement = Literal["too few", "few", "enough"]

TOO_FEW, FEW = 0.5, 0.1  # at these chance levels or above, there are too few, or few, tokens
MEANINGLESS = 0.9  # a chance level that leaves no room above it
MOST_TOKENS = 1_500  # the cost grows with the square: two seconds for 13 layers of 768 dimensions on two cores
SEED = 20_190
CHUNK = 1 << 23  # numbers computed at once of all layers' similarities, 64 MiB


@dataclass(frozen=True, eq=False)
class LayerCKA:
    """CKA of each layer of one run with each layer of another (or the same) on the same tokens."""

    matrix: Float64  # [layer_a, layer_b], 0..1; NaN for a layer whose vectors are all equal
    chance: Float64  # [layer_a, layer_b]: the mean value with tokens matched at random
    debiased: (
        Float64  # [layer_a, layer_b], at most 1: its mean for unrelated vectors is near 0; NaN with too few tokens
    )
    tokens: int  # rows compared

    @property
    def judgement(self) -> Judgement:
        """Whether there are enough tokens, by the highest chance level of all pairs of layers."""
        known = self.chance[~np.isnan(self.chance)]
        if not len(known) or known.max() >= TOO_FEW:
            return "too few"
        return "few" if known.max() >= FEW else "enough"

    @property
    def needed(self) -> int | None:
        """About how many tokens of the same kind bring every chance level below FEW; None if that is not known.

        In n tokens whose vectors have d effective directions the level is d / (n + d), as for normal vectors (see above):
        from a level c, d = n c / (1 - c), and d / (m + d) = FEW needs m = d (1 - FEW) / FEW.
        """
        known = self.chance[~np.isnan(self.chance)]
        if not len(known) or known.max() >= 1:
            return None
        directions = self.tokens * known.max() / (1 - known.max())
        return max(self.tokens, int(np.ceil(directions * (1 - FEW) / FEW)))


def layer_cka(first: np.ndarray, second: np.ndarray | None = None, most: int = MOST_TOKENS) -> LayerCKA:
    """CKA of all layers of `first` [layer, n, dim] with all of `second` (or of `first` itself).

    Row i must be the same token in both (see components.analysis.matched_words for two models). If there are more
    than `most` tokens, a sample with a fixed seed is used. Raises InputError if there are so few tokens
    that even a random matching reaches 0.9 between all layers, ValueError if the numbers of rows differ.
    """
    count = first.shape[1]
    if second is not None and second.shape[1] != count:
        raise ValueError(f"{count} and {second.shape[1]} vectors cannot be matched row by row")
    rows = np.arange(count)
    if count > most:
        rows = np.sort(np.random.default_rng(SEED).choice(count, most, replace=False))
    a = _centred(first, rows)
    b = a if second is None else _centred(second, rows)
    cross, norms_a, norms_b = _alignments(a, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = norms_a[:, None] * norms_b[None, :]  # ||K|| ||L||
        matrix = np.where(scale > 0, cross / scale, np.nan)
        traces = _traces(a)[:, None] * _traces(b)[None, :]
        chance = np.where(scale > 0, traces / ((len(rows) - 1) * scale), np.nan)
        debiased = np.where(scale > 0, _debiased(a, b, cross, norms_a, norms_b), np.nan)
    known = chance[~np.isnan(chance)]
    if len(rows) < 3 or (len(known) and known.min() >= MEANINGLESS):
        raise InputError(
            f"There {'is one token' if len(rows) == 1 else f'are {len(rows)} tokens'} for comparing layers.",
            "At least a hundred are needed: with so few, any two layers look similar.",
            "Add sentences, or use longer ones.",
        )
    return LayerCKA(
        read_only(np.clip(matrix, 0.0, 1.0)),
        read_only(np.clip(chance, 0.0, 1.0)),
        read_only(np.clip(debiased, -1.0, 1.0)),
        len(rows),
    )


def _centred(vectors: np.ndarray, rows: Int64) -> Float64:
    """[layer, n, dim] to the chosen rows in float64 with mean 0; zero if only rounding errors remain."""
    wide = vectors[:, rows].astype(np.float64)
    shifted = wide - wide.mean(axis=1, keepdims=True) if len(rows) else wide
    # [CLS] at layer 0 is equal in all sentences except for rounding errors, which must not be compared.
    constant = np.linalg.norm(shifted, axis=(1, 2)) < 1e-6 * np.linalg.norm(wide, axis=(1, 2))
    shifted[constant] = 0
    return shifted


def _traces(vectors: Float64) -> Float64:
    """tr K of each layer: the squared length of all vectors, [layer]."""
    return (vectors**2).sum(axis=(1, 2))


def _debiased(a: Float64, b: Float64, cross: Float64, norms_a: Float64, norms_b: Float64) -> Float64:
    """Debiased CKA of all pairs of layers, [layer_a, layer_b], from <K, L> and each layer's ||K||; NaN if not known."""
    n = a.shape[1]
    if n <= 3:
        return np.full(cross.shape, np.nan)
    lengths_a, lengths_b = ((side**2).sum(axis=2) for side in (a, b))  # [layer, token]: the diagonals of K and L
    own_a, own_b = (
        _unbiased(norms**2, (lengths**2).sum(axis=1), lengths.sum(axis=1) ** 2, n)
        for norms, lengths in ((norms_a, lengths_a), (norms_b, lengths_b))
    )
    both = _unbiased(cross, lengths_a @ lengths_b.T, lengths_a.sum(axis=1)[:, None] * lengths_b.sum(axis=1)[None, :], n)
    # With very few tokens the estimate of a layer with itself may be 0 or less: then there is no value.
    scale = np.sqrt(np.where(own_a > 0, own_a, np.nan))[:, None] * np.sqrt(np.where(own_b > 0, own_b, np.nan))[None, :]
    return np.asarray(both / scale)


def _unbiased(products: Float64, diagonals: Float64, traces: Float64, n: int) -> Float64:
    """HSIC1 from <K, L>, k.l and tr K tr L of centred vectors of n tokens."""
    return np.asarray((products - n * diagonals / (n - 2) + traces / ((n - 1) * (n - 2))) / (n * (n - 3)))


def _alignments(a: Float64, b: Float64) -> tuple[Float64, Float64, Float64]:
    """<K, L> of all pairs of layers, [layer_a, layer_b], and ||K||, ||L|| of each, by the cheaper of two methods."""
    return cheaper(a.shape, b.shape)(a, b)


def cheaper(a: tuple[int, ...], b: tuple[int, ...]) -> Callable[[Float64, Float64], tuple[Float64, Float64, Float64]]:
    """Which of the two methods computes less, for vectors of these shapes, [layer, token, dim]."""
    (layers_a, n, dim_a), (layers_b, _, dim_b) = a, b
    of_tokens = n * (layers_a * dim_a + layers_b * dim_b + layers_a * layers_b)
    of_dimensions = layers_a * layers_b * dim_a * dim_b + layers_a * dim_a**2 + layers_b * dim_b**2
    return by_tokens if of_tokens <= of_dimensions else by_dimensions


def by_tokens(a: Float64, b: Float64) -> tuple[Float64, Float64, Float64]:
    """From K = X X^T, some rows at a time, so that n x n numbers for all layers are never in memory at once."""
    n = a.shape[1]
    step = max(1, CHUNK // max(1, n * (len(a) + len(b))))
    cross = np.zeros((len(a), len(b)))
    squares_a, squares_b = np.zeros(len(a)), np.zeros(len(b))
    for start in range(0, n, step):
        part_a = (a[:, start : start + step] @ a.transpose(0, 2, 1)).reshape(len(a), -1)  # [layer_a, row * n]
        part_b = part_a
        if b is not a:
            part_b = (b[:, start : start + step] @ b.transpose(0, 2, 1)).reshape(len(b), -1)  # [layer_b, row * n]
        cross += part_a @ part_b.T
        squares_a += (part_a**2).sum(axis=1)
        squares_b += (part_b**2).sum(axis=1)
    return cross, np.sqrt(squares_a), np.sqrt(squares_b)


def by_dimensions(a: Float64, b: Float64) -> tuple[Float64, Float64, Float64]:
    """From ||Y^T X||^2, one pair of layers at a time."""
    cross = np.array([[_square(right.T @ left) for right in b] for left in a])  # [layer_a, layer_b]
    own_a, own_b = (np.array([np.sqrt(_square(layer.T @ layer)) for layer in side]) for side in (a, b))
    return cross, own_a, own_b


def _square(matrix: Float64) -> float:
    return float((matrix**2).sum())
