"""Semantic textual similarity: the cosine of each pair of sentences against the score that people gave.

Agreement is Spearman's and Pearson's correlation, at every layer and pooling from one embedding pass (STS benchmark,
Cer et al. 2017). Embeddings are float32: bfloat16 moves near neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from components.arrays import Float64, cosine, read_only
from components.errors import InputError
from components.jobs import IsCancelled, ReportProgress
from components.model.embedding.embedder import EmbedOptions
from components.model.trace import Pooling
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.corpora.texts import hash_of
from components.retrieval.evaluation.layer_grid import LayerGrid

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.search.lexical import Ranker

PAIRS_AT_ONCE = 1_024  # of scored pairs


@dataclass(frozen=True)
class SimilarityRun:
    """The correlations of one layer and pooling; None where all pairs have the same cosine."""

    model: str
    revision: str
    layer: int
    pooling: Pooling
    spearman: float | None
    pearson: float | None
    n: int


@dataclass(frozen=True, eq=False)
class SimilarityGrid:
    """Cosines of every pair at every layer and pooling, and how they agree with people."""

    cosines: LayerGrid  # float64 [layer, pooling, pair], read-only
    spearman: LayerGrid  # one value a cell; NaN where all pairs have the same cosine
    pearson: LayerGrid  # the same

    @property
    def nbytes(self) -> int:
        return self.cosines.nbytes


@dataclass(frozen=True)
class ScoredPairs:
    """Sentence pairs with a human score each."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: tuple[float, ...]
    bad_rows: int = 0

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of texts and scores."""
        texts = hash_of((*self.first, *self.second))
        return hashlib.sha256(f"{texts} {self.scores}".encode()).hexdigest()


def similarity_grid(
    backend: Backend,
    pairs: ScoredPairs,
    options: EmbedOptions,
    progress: ReportProgress | None = None,
    is_cancelled: IsCancelled = lambda: False,
) -> SimilarityGrid:
    """Every layer and pooling of the options, from one pass over both sides. Raises Cancelled.

    Pairs are embedded some at a time, and only their cosines are kept: vectors of 50,000 pairs would take gigabytes.
    """
    layers, poolings, count = options.layers, options.poolings, len(pairs.first)
    cosines = np.empty((len(layers), len(poolings), count))
    for start in range(0, count, PAIRS_AT_ONCE):
        first, second = (side[start : start + PAIRS_AT_ONCE] for side in (pairs.first, pairs.second))

        def tell(done: int, _: int, before: int = 2 * start) -> None:
            if progress is not None:
                progress(before + done, 2 * count)

        vectors = backend.embed([*first, *second], options=options, progress=tell, cancelled=is_cancelled)
        for row, column in np.ndindex(cosines.shape[:2]):
            both = vectors[row, column]
            cosines[row, column, start : start + len(first)] = cosine(both[: len(first)], both[len(first) :])
    agreement = [[correlations(each, pairs.scores) for each in rows] for rows in cosines]
    known = np.array(agreement, np.float64)  # None becomes NaN
    return SimilarityGrid(
        *(
            LayerGrid(layers, poolings, read_only(values))
            for values in (cosines, known[..., 0].copy(), known[..., 1].copy())
        )
    )


def similarity_runs(
    backend: Backend,
    pairs: ScoredPairs,
    options: EmbedOptions,
    progress: ReportProgress | None = None,
    is_cancelled: IsCancelled = lambda: False,
) -> list[SimilarityRun]:
    """A run for each layer and pooling of the options."""
    grid = similarity_grid(backend, pairs, options, progress, is_cancelled)
    return [
        SimilarityRun(
            backend.spec.key,
            backend.revision,
            layer,
            pooling,
            _known(grid.spearman.of(layer, pooling)),
            _known(grid.pearson.of(layer, pooling)),
            len(pairs.first),
        )
        for layer, pooling in grid.cosines.cells
    ]


def ranker_pair_scores(make: Callable[[Sequence[str]], Ranker], pairs: ScoredPairs) -> Float64:
    """How similar a ranking by words finds the two texts of each pair, float64 [pair].

    The corpus that words are counted over is all texts of all pairs. Either text is once the query, and the two scores
    are averaged: BM25 and the language model are not symmetric.
    """
    count = len(pairs.first)
    ranker = make([*pairs.first, *pairs.second])
    first, second = np.arange(count), np.arange(count, 2 * count)
    forth, back = ranker.pair_scores(pairs.first, second), ranker.pair_scores(pairs.second, first)
    return (forth.astype(np.float64) + back) / 2


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def correlations(predicted: Float64, gold: Sequence[float]) -> tuple[float | None, float | None]:
    """Spearman's and Pearson's correlation; None where either side is the same throughout."""
    rounded = np.round(predicted, 9)  # vectors that are equal give cosines that differ in the last digit
    if len(gold) < 2 or np.ptp(rounded) == 0 or np.ptp(np.asarray(gold)) == 0:
        return None, None
    return float(stats.spearmanr(rounded, gold).statistic), float(stats.pearsonr(predicted, gold).statistic)


def scored_pairs(corpus: Corpus, most: int | None = None) -> ScoredPairs:
    """The pairs of a corpus read by its column sentence1, with columns sentence2 and score; at most so many."""
    missing = [name for name in ("sentence2", "score") if name not in corpus.columns]
    if missing:
        raise InputError(
            f"{corpus.name} has no column {' and no column '.join(missing)}.",
            "The columns sentence1, sentence2 and score were expected.",
            "Rename its columns, or choose another file.",
        )
    kept = []
    for first, second, text in zip(corpus.texts, corpus.columns["sentence2"], corpus.columns["score"], strict=True):
        try:
            score = float(text)
        except ValueError:
            continue
        if second.strip() and np.isfinite(score):
            kept.append((first, second, score))
    if len(kept) < 2:
        raise InputError(
            f"{corpus.name} has {len(kept)} rows with two sentences and a number.",
            "At least two were expected.",
            "Choose another file.",
        )
    if len({score for *_, score in kept}) == 1:
        raise InputError(
            f"All pairs of {corpus.name} have the score {kept[0][2]:g}.",
            "Scores that differ were expected: there is no order to agree with.",
            "Choose another file.",
        )
    if most is not None and len(kept) > most:
        raise InputError(
            f"{corpus.name} has {len(kept):,} pairs.",
            f"At most {most:,} are compared in the browser.",
            "Choose a part of it, or use `python -m components sts`.",
        )
    first_texts, second_texts, scores = zip(*kept, strict=True)
    return ScoredPairs(first_texts, second_texts, scores, len(corpus) - len(kept) + corpus.report.bad_count)
