"""What pooling and projection do to retrieval and to similarity: five poolings, five treatments, every pair of them.

Poolings of one layer L (special tokens count in each, as sentence-transformers has it; Reimers and Gurevych 2019):
mean, [CLS] and max of its token vectors; `last4`, the mean over layers max(0, L - 3) to L of their mean-pooled vectors,
which is the same as pooling the layers' averaged hidden states (the last four together are among the choices that
Devlin et al. 2019 compare in table 7); `idf`, a mean in which a word piece that few documents have counts for more
(Arora et al. 2017 weight words by rarity too). Its weight is ln((1 + n) / (1 + df)) + 1, where df of the n documents
have the piece.

Treatments of the pooled vectors, all compared by cosine but one:
- cosine   as they are, scaled to length 1
- dot      as they are and not scaled: plain dot products, where a long vector wins more often, wherever it points
- random   a Gaussian random projection to d numbers: distances survive for large d without a look at the data
           (Johnson and Lindenstrauss 1984)
- pca      minus the documents' mean, turned to their d directions of largest variance (Pearson 1901)
- whitened the same, and each direction divided by its standard deviation, so that the documents' vectors have mean 0
           and covariance 1: common directions that all sentences share count no more than others do (Su et al. 2021,
           "Whitening sentence representations for better semantics and faster retrieval")

PCA and whitening are fitted on the documents alone, then applied to queries and scored sentences too. d is at most
min(dim, documents - 1), for all three so that they can be compared, and for pca and whitened at most the number of
directions in which the documents differ by more than rounding, which whitening would blow up. [CLS] vectors of layer 0
have none, and nothing is found by them. Means and [CLS] have one less than their dims, since the layer normalisation that
ends a layer takes a mean away and leaves its token vectors in one hyperplane; and at the embedded model's last layer three
numbers are the same for every token, which leaves 381 of 384.

What it does not show: what a projection that was trained for the task would do; and fitted on few documents, a
whitening to as many directions as there are documents says more about them than about the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.errors import InputError
from components.model.embedding import EmbeddingCancelled, EmbedOptions
from components.model.published import Role
from components.model.trace import Float32, Int64, read_only
from components.retrieval import metrics
from components.retrieval.evaluation import ScoredPairs, correlations, pair_cosines
from components.retrieval.ranks import EvaluationCancelled, gold_ranks

if TYPE_CHECKING:
    from components.model.backend import Backend

LabPooling = Literal["mean", "cls", "max", "last4", "idf"]
Treatment = Literal["cosine", "dot", "random", "pca", "whitened"]
POOLINGS: tuple[LabPooling, ...] = get_args(LabPooling)
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
PROJECTIONS: tuple[Treatment, ...] = ("random", "pca", "whitened")
SWEEP = (8, 16, 32, 64, 128, 256, 384)
ROUNDING = float(np.finfo(np.float32).eps)  # of a vector's length: differences below it are rounding
_BLOCK = 4096  # texts tokenized together
Progress = Callable[[int, int], None]
Float64 = NDArray[np.float64]
Pooled = Mapping[LabPooling, Float32]  # each [text, dim]


@dataclass(frozen=True, eq=False)
class LabVectors:
    """Everything the lab compares: vectors of each pooling, read-only; query i's right document is document i."""

    model: str
    revision: str
    layer: int
    documents: Pooled
    queries: Pooled
    first: Pooled  # of the scored pairs; no rows without any
    second: Pooled

    @property
    def most_dims(self) -> int:
        """The most numbers a projection can keep: min(dim, documents - 1)."""
        count, dim = self.documents["mean"].shape
        return min(dim, count - 1)


@dataclass(frozen=True, eq=False)
class LabCell:
    """What one pooling and treatment reach. Correlations are None where all pairs score the same, or there are none."""

    pooling: LabPooling
    treatment: Treatment
    dims: int  # numbers a vector really has after the treatment; 0 where the documents do not differ at all
    ranks: Int64  # [query], from 1
    spearman: float | None
    pearson: float | None

    def recall_at(self, k: int) -> float:
        """The share of queries whose document is among the first k, 0..1."""
        return float(metrics.recall(self.ranks, k).mean())

    @property
    def recall_at_1(self) -> float:
        """Recall@1, 0..1."""
        return self.recall_at(1)

    @property
    def recall_at_10(self) -> float:
        """Recall@10, 0..1."""
        return self.recall_at(10)

    @property
    def mrr(self) -> float:
        """The mean of 1 / rank, 0..1."""
        return float(metrics.reciprocal_rank(self.ranks).mean())

    @property
    def ndcg_at_10(self) -> float:
        """nDCG@10, 0..1."""
        return float(metrics.ndcg(self.ranks).mean())


def lab_vectors(
    backend: Backend,
    documents: Sequence[str],
    queries: Sequence[str],
    scored_pairs: ScoredPairs | None,
    layer: int,
    max_length: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> LabVectors:
    """Embed in float32: one pass for all poolings but idf, and one for idf.

    Documents and queries get the model's own prompts, scored pairs none. `progress(done, total)` counts texts over both
    passes. Raises InputError for fewer than two documents or a layer the model does not have, EmbeddingCancelled.
    """
    if len(documents) != len(queries):
        raise ValueError(f"{len(documents)} documents and {len(queries)} queries: as many of both were expected")
    if len(documents) < 2:
        raise InputError(
            f"There {'is 1 document' if len(documents) == 1 else 'are no documents'} to search.",
            "At least two were expected: among fewer there is nothing to tell apart.",
            "Choose a corpus with more pairs.",
        )
    pairs = () if scored_pairs is None else (*scored_pairs.first, *scored_pairs.second)
    sides: tuple[tuple[Sequence[str], Role | None], ...] = ((documents, "document"), (queries, "query"), (pairs, None))
    total, before = 2 * sum(len(texts) for texts, _ in sides), 0
    backend.embed_options((layer,), precision="float32")  # refuses a layer the model does not have, and names it
    layers = range(max(0, layer - 3), layer + 1)

    def tell(done: int, _: int) -> None:
        if progress is not None:
            progress(before + done, total)

    found: list[dict[LabPooling, Float32]] = []
    weights: Float32 | None = None
    for texts, role in sides:
        options = backend.embed_options(layers, ("mean", "cls", "max"), max_length, "float32", role)
        if weights is None:  # the documents come first
            weights = idf_weights(backend, documents, options, cancelled)
        pooled = _all_but_idf(backend, texts, options, tell, cancelled)
        before += len(texts)
        pooled["idf"] = backend.embed_weighted(texts, weights, replace(options, layers=(layer,)), tell, cancelled)[0]
        before += len(texts)
        found.append({pooling: read_only(pooled[pooling]) for pooling in POOLINGS})
    half = len(pairs) // 2
    return LabVectors(
        backend.spec.key,
        backend.revision,
        layer,
        documents=MappingProxyType(found[0]),
        queries=MappingProxyType(found[1]),
        first=MappingProxyType({pooling: vectors[:half] for pooling, vectors in found[2].items()}),
        second=MappingProxyType({pooling: vectors[half:] for pooling, vectors in found[2].items()}),
    )


def _all_but_idf(
    backend: Backend, texts: Sequence[str], options: EmbedOptions, progress: Progress, cancelled: Callable[[], bool]
) -> dict[LabPooling, Float32]:
    """mean, cls and max of the last of the options' layers, and the mean of all their means."""
    shape = (len(texts), backend.facts.hidden_size)
    pooled: dict[LabPooling, Float32] = {name: np.empty(shape, np.float32) for name in ("mean", "cls", "max", "last4")}

    def keep(rows: Int64, vectors: Float32) -> None:
        """Of a batch [layer, pooling, n, dim], so that no grid of four layers is held."""
        for place, name in enumerate(options.poolings):
            pooled[name][rows] = vectors[-1, place]
        pooled["last4"][rows] = vectors[:, options.poolings.index("mean")].mean(axis=0)

    backend.embed_into(texts, options, keep, progress=progress, cancelled=cancelled)
    return pooled


def idf_weights(
    backend: Backend,
    documents: Sequence[str],
    options: EmbedOptions,
    cancelled: Callable[[], bool] = lambda: False,
) -> Float32:
    """ln((1 + n) / (1 + df)) + 1 for each piece of the vocabulary, float32 [vocabulary].

    df counts the documents whose tokens have the piece, as the model reads them: with its prompt, cut to its length, and
    with special tokens, which every document has and which therefore weigh 1, the least. A piece that no document has
    weighs most.
    """
    counts = np.zeros(backend.facts.vocabulary_size, np.int64)
    for start in range(0, len(documents), _BLOCK):
        if cancelled():
            raise EmbeddingCancelled
        block = [options.prompt + text for text in documents[start : start + _BLOCK]]
        for ids in backend.tokenization.encode_many(block, options.max_length)[0]:
            counts[list(set(ids))] += 1
    return (np.log((1 + len(documents)) / (1 + counts)) + 1).astype(np.float32)


def lab_cells(
    vectors: LabVectors,
    scores: Sequence[float],
    dims: int = 128,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[LabCell]:
    """A cell for each pooling x treatment, poolings outermost; `scores` are those of the scored pairs.

    `dims` is what random, pca and whitened keep, or as many as can be; `seed` decides the random projection.
    `progress(done, total)` counts queries over all cells. Raises EvaluationCancelled.
    """
    _check(vectors, scores, (dims,))
    count, cells = min(dims, vectors.most_dims), len(POOLINGS) * len(TREATMENTS)
    for at, pooling in enumerate(POOLINGS):
        axes = _fitted_axes(vectors.documents[pooling], count, cancelled)
        for place, treatment in enumerate(TREATMENTS):
            apply = _applied(treatment, axes, count, seed)
            tell = _part(progress, at * len(TREATMENTS) + place, cells)
            yield _cell(vectors, pooling, treatment, apply, scores, tell, cancelled)


def dimension_sweep(
    vectors: LabVectors,
    pooling: LabPooling,
    scores: Sequence[float],
    dims: Sequence[int] = SWEEP,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[LabCell]:
    """Cells of random, pca and whitened at each of the numbers of dims up to `vectors.most_dims`, smallest first.

    Where the documents differ in fewer directions, pca and whitened end with these: at 381 instead of 384, say. The axes
    are fitted once: the first d of them are those of a PCA to d numbers. Progress and errors as in `lab_cells`.
    """
    _check(vectors, scores, dims)
    possible = sorted({count for count in dims if count <= vectors.most_dims})
    axes = _fitted_axes(vectors.documents[pooling], max(possible, default=1), cancelled)
    real = sorted({min(count, len(axes.spread)) for count in possible} - {0})
    cells = [(name, count) for name in PROJECTIONS for count in (possible if name == "random" else real)]
    for at, (treatment, count) in enumerate(cells):
        apply, tell = _applied(treatment, axes, count, seed), _part(progress, at, len(cells))
        yield _cell(vectors, pooling, treatment, apply, scores, tell, cancelled)


def _check(vectors: LabVectors, scores: Sequence[float], dims: Sequence[int]) -> None:
    if len(scores) != len(vectors.first["mean"]):
        raise ValueError(f"{len(scores)} scores of {len(vectors.first['mean'])} pairs: as many of both were expected")
    if min(dims, default=1) < 1:
        raise ValueError(f"{min(dims)} numbers a vector were asked for, at least 1 was expected")


@dataclass(frozen=True, eq=False)
class _Axes:
    """Directions of largest variance of some documents, largest first."""

    mean: Float64  # [dim]
    directions: Float64  # [axis, dim], of length 1
    spread: Float64  # [axis], standard deviations

    def place(self, vectors: Float32, count: int, whitened: bool) -> Float32:
        """Vectors on the first `count` axes, float32 [text, axis]."""
        placed = (vectors - self.mean) @ self.directions[:count].T
        return (placed / self.spread[:count] if whitened else placed).astype(np.float32)


def _fitted_axes(documents: Float32, count: int, cancelled: Callable[[], bool]) -> _Axes:
    """At most `count` axes: those in which the documents differ by more than rounding."""
    from sklearn.decomposition import PCA

    if cancelled():
        raise EvaluationCancelled
    exact = documents.astype(np.float64)
    mean = exact.mean(axis=0)
    # By the covariance where there are many documents: quick, and in float64 of centred vectors exact enough.
    solver = "covariance_eigh" if len(exact) > exact.shape[1] else "full"
    with np.errstate(invalid="ignore"):  # shares of a variance of 0, which nobody reads
        found = PCA(count, svd_solver=solver).fit(exact - mean)
    spread = np.sqrt(found.explained_variance_)
    real = int(np.count_nonzero(spread > ROUNDING * np.sqrt(np.mean(np.sum(exact * exact, axis=1)))))
    return _Axes(mean, found.components_[:real], spread[:real])


def _applied(treatment: Treatment, axes: _Axes, count: int, seed: int) -> Callable[[Float32], Float32]:
    """What a treatment does to vectors [text, dim], before they are compared."""
    if treatment in ("cosine", "dot"):
        return lambda vectors: vectors
    if treatment != "random":
        return lambda vectors: axes.place(vectors, count, treatment == "whitened")
    from sklearn.random_projection import GaussianRandomProjection

    # Only the number of columns of what it is fitted on matters.
    drawn = GaussianRandomProjection(count, random_state=seed).fit(axes.mean[None])
    return lambda vectors: (vectors @ drawn.components_.T).astype(np.float32)


def _cell(
    vectors: LabVectors,
    pooling: LabPooling,
    treatment: Treatment,
    apply: Callable[[Float32], Float32],
    scores: Sequence[float],
    progress: Progress,
    cancelled: Callable[[], bool],
) -> LabCell:
    sides = (vectors.documents, vectors.queries, vectors.first, vectors.second)
    documents, queries, first, second = (apply(side[pooling]) for side in sides)
    ranks = gold_ranks(queries, documents, None, progress, cancelled, cosine=treatment != "dot")
    predicted = _pair_products(first, second) if treatment == "dot" else pair_cosines(first, second)
    return LabCell(pooling, treatment, documents.shape[1], read_only(ranks), *correlations(predicted, scores))


def _pair_products(first: Float32, second: Float32) -> Float64:
    """Dot products row by row in shares of the largest, [pair]: no correlation changes, and `correlations` rounds."""
    found = np.einsum("pd,pd->p", first.astype(np.float64), second.astype(np.float64))
    return found / (np.abs(found).max(initial=0) or 1)


def _part(progress: Progress | None, number: int, cells: int) -> Progress:
    """Progress within one of some cells told as progress over all, in queries."""

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(number * total + done, cells * total)

    return tell
