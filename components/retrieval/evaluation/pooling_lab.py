"""What pooling and projection do to retrieval and to similarity: five poolings with each of five treatments.

Poolings of one layer L (with special tokens, as in sentence-transformers; Reimers and Gurevych 2019):
mean, [CLS] and max of its token vectors; `last4`, the mean over layers max(0, L - 3) to L of their mean-pooled vectors,
the same as pooling the layers' averaged hidden states (the last four together are among the choices of table 7 of Devlin
et al. 2019); `idf`, a mean in which rare word pieces have more weight: ln((1 + n) / (1 + df)) + 1, where df of the n
documents contain the piece (Arora et al. 2017 weight words by rarity too).

Treatments of the pooled vectors, all compared by cosine but one:
- cosine   unchanged, scaled to length 1
- dot      unchanged and not scaled: plain dot products, which favour long vectors in any direction
- random   a Gaussian random projection to d numbers, independent of the data (Johnson and Lindenstrauss 1984: it
           preserves distances)
- pca      minus the documents' mean, projected on their d directions of largest variance (Pearson 1901)
- whitened the same, and each direction divided by its standard deviation, so that the documents' vectors have mean 0
           and covariance 1: centring removes what all share, and dividing makes all variances equal (Su et al. 2021,
           "Whitening sentence representations for better semantics and faster retrieval")

PCA and whitening are fitted on the documents alone and applied to queries and scored sentences too. To make the three
projections comparable, d is at most min(dim, documents - 1). For pca and whitened it is also at most the number of
directions in which the documents differ by more than rounding errors, which whitening would magnify: none for [CLS] at
layer 0; dim - 1 for means and [CLS], since layer normalisation leaves token vectors in one hyperplane; and 381 of 384 at
the included model's last layer, where three numbers are the same for every token.

What it does not show: what a projection trained for the task would do. Whitening to as many directions as there are
documents describes these few documents more than the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from components.arrays import Float32, Float64, Int64, cosine, read_only
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.model.embedding.options import EmbedOptions
from components.model.files.sentence_config import Role
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.evaluation.sts import ScoredPairs, correlations
from components.retrieval.rankings.ranking import Ranking

if TYPE_CHECKING:
    from components.model.backend import Backend

LabPooling = Literal["mean", "cls", "max", "last4", "idf"]
Treatment = Literal["cosine", "dot", "random", "pca", "whitened"]
POOLINGS: tuple[LabPooling, ...] = get_args(LabPooling)
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
PROJECTIONS: tuple[Treatment, ...] = ("random", "pca", "whitened")
SWEEP = (8, 16, 32, 64, 128, 256, 384)
ROUNDING = float(np.finfo(np.float32).eps)  # share of a vector's length: smaller differences are rounding errors
MOST_PAIRS, MOST_BYTES = 5_000, 512 << 20
_KEPT: tuple[LabPooling, ...] = ("mean", "cls", "max", "idf")  # idf needs its own pass; last4 is computed from means
_BLOCK = 4096  # texts tokenized together
Texts = Sequence[str]
Pooled = Mapping[LabPooling, Float32]  # each [text, dim], or [layer, text, dim]


@dataclass(frozen=True, eq=False)
class LabVectors:
    """The vectors that the lab compares, for each pooling, read-only."""

    model: str
    revision: str
    layer: int
    documents: Pooled
    queries: Pooled
    first: Pooled  # of the scored pairs; no rows if there are none
    second: Pooled

    @property
    def most_dims(self) -> int:
        """The most numbers a projection can keep: min(dim, documents - 1)."""
        count, dim = self.documents["mean"].shape
        return min(dim, count - 1)


@dataclass(frozen=True, eq=False)
class LabLayers:
    """What `LabVectors` of several layers are made of, read-only, each [layer, text, dim]; last4 follows from the means."""

    model: str
    revision: str
    layers: tuple[int, ...]
    documents: Pooled
    queries: Pooled
    pairs: Pooled  # the first sentences of all scored pairs, then the second ones

    def of(self, layer: int) -> LabVectors:
        """Vectors at one layer, without a forward pass. Raises ValueError if it, or a layer that last4 needs, is missing."""
        documents, queries = (_at_layer(side, self.layers, layer) for side in (self.documents, self.queries))
        halves = _halves(self.pairs, self.layers, layer)
        return LabVectors(self.model, self.revision, layer, documents, queries, *halves)


def _at_layer(side: Pooled, layers: Sequence[int], layer: int, rows: slice = slice(None)) -> Pooled:
    """Some texts' vectors at one layer, each [text, dim], from those of several layers."""
    row, start = layers.index(layer), layers.index(max(0, layer - 3))
    last4 = read_only(side["mean"][start : row + 1, rows].mean(axis=0))
    return MappingProxyType({name: last4 if name == "last4" else side[name][row, rows] for name in POOLINGS})


def _halves(pairs: Pooled, layers: Sequence[int], layer: int) -> tuple[Pooled, Pooled]:
    """The vectors of the first and of the second sentences of the scored pairs at one layer."""
    half = pairs["mean"].shape[1] // 2
    return _at_layer(pairs, layers, layer, slice(half)), _at_layer(pairs, layers, layer, slice(half, None))


@dataclass(frozen=True, eq=False)
class LabCell(Ranking):
    """The results of one pooling and treatment. Correlations are None where all pairs have the same score, or without pairs."""

    pooling: LabPooling
    treatment: Treatment
    dims: int  # numbers per vector after the treatment; 0 where the documents do not differ at all
    spearman: float | None
    pearson: float | None
    similarities: Float64  # of the scored pairs, read-only

    def mean(self, measure: str) -> float:
        """The mean over queries of a measure of `metrics.MEASURES` ("Recall@1", "MRR", ...), 0..1."""
        return float(metrics.MEASURES[measure](self.ranks).mean())


def most_pairs(backend: Backend, scored_pairs: ScoredPairs | None = None) -> int:
    """How many pairs, besides the scored ones, have vectors of all layers within MOST_BYTES; 3 to 5,000."""
    text = 4 * len(_KEPT) * (backend.facts.layers + 1) * backend.facts.hidden_size  # bytes of float32
    scored = 0 if scored_pairs is None else 2 * len(scored_pairs.first)
    return max(3, min(MOST_PAIRS, (MOST_BYTES // text - scored) // 2))


def lab_layers(
    backend: Backend,
    documents: Texts,
    queries: Texts,
    scored_pairs: ScoredPairs | None,
    layers: Sequence[int] | None = None,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    embedded_pairs: Pooled | None = None,
) -> LabLayers:
    """Embed in float32 at all layers (or some) at once, with one pass for idf and one for all other poolings.

    Documents and queries get the model's own prompts, scored pairs none; `embedded_pairs` are those of `scored_vectors`,
    which are not embedded again. `progress(done, total)` counts texts over both passes. Raises InputError for fewer than
    two documents or a layer the model does not have, Stopped.
    """
    if len(documents) < 2:
        count = "is 1 document" if len(documents) else "are no documents"
        raise InputError(
            f"There {count} to search.", "At least two documents are needed.", "Choose a corpus with more pairs."
        )
    sides: list[tuple[Texts, Role | None]] = [(documents, "document"), (queries, "query")]
    if embedded_pairs is None:
        sides.append((() if scored_pairs is None else (*scored_pairs.first, *scored_pairs.second), None))
    layers = range(backend.facts.layers + 1) if layers is None else layers
    pooled = _pooled(backend, sides, documents, layers, max_length, progress, is_stopped)
    if embedded_pairs is not None:
        pooled.append(embedded_pairs)
    return LabLayers(backend.spec.key, backend.revision, tuple(layers), *pooled)


def scored_vectors(
    backend: Backend,
    documents: Texts,
    scored_pairs: ScoredPairs,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Pooled:
    """The vectors of the scored pairs alone at all layers, as in `LabLayers.pairs`: few texts, which are soon embedded.

    The `documents` give the idf weights. Raises Stopped.
    """
    pairs = (*scored_pairs.first, *scored_pairs.second)
    layers = range(backend.facts.layers + 1)
    return _pooled(backend, [(pairs, None)], documents, layers, None, progress, is_stopped)[0]


def _pooled(
    backend: Backend,
    sides: Sequence[tuple[Texts, Role | None]],
    documents: Texts,
    layers: Sequence[int],
    max_length: int | None,
    progress: ReportProgress,
    is_stopped: IsStopped,
) -> list[Pooled]:
    """The vectors of some texts, each with their role, at these layers; the documents give the idf weights."""
    options = [backend.embed_options(layers, _KEPT[:3], max_length, "float32", role) for _, role in sides]
    of_documents = backend.embed_options(layers, _KEPT[:3], max_length, "float32", "document")
    weights = idf_weights(backend, documents, of_documents, is_stopped)
    total, before = 2 * sum(len(texts) for texts, _ in sides), 0
    pooled: list[Pooled] = []
    for (texts, _), own_options in zip(sides, options, strict=True):
        stored = np.empty((len(_KEPT), len(own_options.layers), len(texts), backend.facts.hidden_size), np.float32)

        def keep(rows: Int64, vectors: Float32, stored: Float32 = stored) -> None:
            stored[:3, :, rows] = vectors.swapaxes(0, 1)  # [pooling, layer, n, dim]

        backend.embed_into(texts, own_options, keep, progress=part_of(progress, before, total), is_stopped=is_stopped)
        report_progress = part_of(progress, before + len(texts), total)
        stored[3] = backend.embed_weighted(texts, weights, own_options, report_progress, is_stopped)
        pooled.append(MappingProxyType(dict(zip(_KEPT, read_only(stored), strict=True))))
        before += 2 * len(texts)
    return pooled


def pair_correlations(
    pairs: Pooled, layers: Sequence[int], layer: int, scores: Sequence[float], dims: int, seed: int
) -> dict[tuple[LabPooling, Treatment], float | None]:
    """Spearman's correlation of `scored_vectors` at a layer, for the treatments that need no documents.

    The values are those of `lab_cells` with `dims` dimensions of the random projection and the same seed.
    """
    first, second = _halves(pairs, layers, layer)
    no_axes = _Axes(np.zeros(first["mean"].shape[1]), np.zeros((0, 0)), np.zeros(0))
    return {
        (pooling, treatment): correlations(
            _similarities(apply(first[pooling]), apply(second[pooling]), treatment), scores
        )[0]
        for treatment in ("cosine", "dot", "random")
        for apply in [_applied(treatment, no_axes, dims, seed)]
        for pooling in POOLINGS
    }


def idf_weights(
    backend: Backend, documents: Texts, options: EmbedOptions, is_stopped: IsStopped = lambda: False
) -> Float32:
    """ln((1 + n) / (1 + df)) + 1 for each piece, float32 [vocabulary]: 1 if all documents contain it, largest if none does.

    df counts the documents that contain the piece as the model reads them: with prompt and special tokens, truncated.
    """
    counts = np.zeros(backend.facts.vocabulary_size, np.int64)
    for start in range(0, len(documents), _BLOCK):
        block = (options.prompt + text for text in documents[start : start + _BLOCK])
        for ids in backend.tokenization.encode_many(block, options.max_length, is_stopped)[0]:
            counts[list(set(ids))] += 1
    return (np.log((1 + len(documents)) / (1 + counts)) + 1).astype(np.float32)


def lab_cells(
    vectors: LabVectors,
    scores: Sequence[float],
    dims: int = 128,
    seed: int = 0,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    rank: Callable[..., Ranks] = gold_ranks,
) -> Iterator[LabCell]:
    """A cell for each pooling and treatment, poolings outermost; `scores` are those of the scored pairs.

    `dims` is the number of dimensions of random, pca and whitened, if there are so many; `seed` fixes the random projection.
    `rank` finds the ranks of the correct answers, by default the document with the query's number. `progress(done, total)`
    counts queries over all cells. Raises Stopped.
    """
    _check(vectors, scores, (dims,))
    count, queries = min(dims, vectors.most_dims), len(vectors.queries["mean"])
    for row, pooling in enumerate(POOLINGS):
        axes = _fitted_axes(vectors.documents[pooling], count, is_stopped)
        for column, treatment in enumerate(TREATMENTS):
            apply = _applied(treatment, axes, count, seed)
            before = (row * len(TREATMENTS) + column) * queries
            report_progress = part_of(progress, before, len(POOLINGS) * len(TREATMENTS) * queries)
            yield _cell(vectors, pooling, treatment, apply, scores, report_progress, is_stopped, rank)


def dimension_sweep(
    vectors: LabVectors,
    pooling: LabPooling,
    scores: Sequence[float],
    dims: Sequence[int] = SWEEP,
    seed: int = 0,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    rank: Callable[..., Ranks] = gold_ranks,
) -> Iterator[LabCell]:
    """Cells of random, pca and whitened at each number of dimensions up to `vectors.most_dims`, smallest first.

    Where the documents differ in fewer directions, pca and whitened end there, for example at 381 instead of 384. The axes
    are fitted once: the first d of them are those of a PCA to d numbers. Progress and errors are as in `lab_cells`.
    """
    _check(vectors, scores, dims)
    possible = sorted({count for count in dims if count <= vectors.most_dims})
    axes = _fitted_axes(vectors.documents[pooling], max(possible, default=1), is_stopped)
    real = sorted({min(count, len(axes.spread)) for count in possible} - {0})
    cells = [(name, count) for name in PROJECTIONS for count in (possible if name == "random" else real)]
    queries = len(vectors.queries["mean"])
    for number, (treatment, count) in enumerate(cells):
        apply = _applied(treatment, axes, count, seed)
        report_progress = part_of(progress, number * queries, len(cells) * queries)
        yield _cell(vectors, pooling, treatment, apply, scores, report_progress, is_stopped, rank)


def _check(vectors: LabVectors, scores: Sequence[float], dims: Sequence[int]) -> None:
    if len(scores) != len(vectors.first["mean"]):
        raise ValueError(f"{len(scores)} scores of {len(vectors.first['mean'])} pairs: equal numbers were expected")
    if min(dims, default=1) < 1:
        raise ValueError(f"{min(dims)} dimensions: at least 1 was expected")


@dataclass(frozen=True, eq=False)
class _Axes:
    """Directions of largest variance of some documents, largest first."""

    mean: Float64  # [dim]
    directions: Float64  # [axis, dim], of length 1
    spread: Float64  # [axis], standard deviations

    def project(self, vectors: Float32, count: int, whitened: bool) -> Float32:
        """Vectors on the first `count` axes, float32 [text, axis]."""
        projected = (vectors - self.mean) @ self.directions[:count].T
        return (projected / self.spread[:count] if whitened else projected).astype(np.float32)


def _fitted_axes(documents: Float32, count: int, is_stopped: IsStopped) -> _Axes:
    """At most `count` axes: those in which the documents differ by more than rounding."""
    from sklearn.decomposition import PCA

    if is_stopped():
        raise Stopped
    exact = documents.astype(np.float64)
    mean = exact.mean(axis=0)
    # With many documents from the covariance: fast, and accurate enough in float64 of centred vectors.
    solver = "covariance_eigh" if len(exact) > exact.shape[1] else "full"
    with np.errstate(invalid="ignore"):  # shares of a variance of 0, which are not used
        fitted = PCA(count, svd_solver=solver).fit(exact - mean)
    spread = np.sqrt(fitted.explained_variance_)
    real = int(np.count_nonzero(spread > ROUNDING * np.sqrt(np.mean(np.sum(exact * exact, axis=1)))))
    return _Axes(mean, fitted.components_[:real], spread[:real])


def _applied(treatment: Treatment, axes: _Axes, count: int, seed: int) -> Callable[[Float32], Float32]:
    """What a treatment does to vectors [text, dim], before they are compared."""
    if treatment in ("cosine", "dot"):
        return lambda vectors: vectors
    if treatment != "random":
        return lambda vectors: axes.project(vectors, count, treatment == "whitened")
    from sklearn.random_projection import GaussianRandomProjection

    # Only the number of columns of the data it is fitted on matters.
    drawn = GaussianRandomProjection(count, random_state=seed).fit(axes.mean[None])
    return lambda vectors: (vectors @ drawn.components_.T).astype(np.float32)


def _cell(
    vectors: LabVectors,
    pooling: LabPooling,
    treatment: Treatment,
    apply: Callable[[Float32], Float32],
    scores: Sequence[float],
    progress: ReportProgress,
    is_stopped: IsStopped,
    rank: Callable[..., Ranks],
) -> LabCell:
    sides = (vectors.documents, vectors.queries, vectors.first, vectors.second)
    documents, queries, first, second = (apply(side[pooling]) for side in sides)
    ranks = rank(queries, documents, progress=progress, is_stopped=is_stopped, cosine=treatment != "dot")
    similarities = read_only(_similarities(first, second, treatment))
    agreement = correlations(similarities, scores)
    dims = documents.shape[1]
    return LabCell(f"{pooling}, {treatment}", pooling, treatment, dims, *agreement, similarities, ranks=_kept(ranks))


def _kept(ranks: Ranks) -> Ranks:
    return read_only(ranks) if isinstance(ranks, np.ndarray) else ranks


def _similarities(first: Float32, second: Float32, treatment: Treatment) -> Float64:
    """How similar each pair's treated vectors [pair, dim] are, [pair]."""
    return _pair_products(first, second) if treatment == "dot" else cosine(first, second)


def _pair_products(first: Float32, second: Float32) -> Float64:
    """Dot products of each pair, divided by the largest, [pair].

    This changes no correlation, and makes the difference below which `correlations` takes values to be equal a relative one.
    """
    products = np.einsum("pd,pd->p", first.astype(np.float64), second.astype(np.float64))
    return products / (np.abs(products).max(initial=0) or 1)
