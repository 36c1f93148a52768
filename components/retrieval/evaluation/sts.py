"""Semantic textual similarity: how the cosine of each pair of sentences agrees with the score that people gave it.

Agreement is Spearman's and Pearson's correlation, at every layer and pooling from one embedding pass (STS benchmark,
Cer et al. 2017). Embeddings are float32, because bfloat16 changes the order of near neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from components.arrays import Float64, Int64, read_only
from components.errors import InputError
from components.jobs import IsCancelled, ReportProgress, part_of
from components.model.embedding.options import EmbedOptions
from components.model.trace import Pooling
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.corpora.texts import hash_of
from components.retrieval.evaluation.layer_grid import LayerGrid
from components.retrieval.search.exact import SAME, pair_similarity

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.search.lexical import Ranker

PAIRS_AT_ONCE = 1_024  # embedded together


@dataclass(frozen=True, eq=False)
class SimilarityGrid:
    """Cosines of every pair at every layer and pooling, and their correlations with the scores of people.

    Of a model that was published for another similarity, it stands in place of the cosine.
    """

    cosines: LayerGrid  # float64 [layer, pooling, pair], read-only
    spearman: LayerGrid  # one value per cell; NaN where all pairs have the same cosine
    pearson: LayerGrid  # the same

    @property
    def nbytes(self) -> int:
        return self.cosines.nbytes

    def of(self, layer: int, pooling: Pooling) -> tuple[float | None, float | None]:
        """Spearman's and Pearson's correlation of one cell; None where all pairs have the same cosine."""
        spearman, pearson = (float(grid.of(layer, pooling)) for grid in (self.spearman, self.pearson))
        return None if np.isnan(spearman) else spearman, None if np.isnan(pearson) else pearson


@dataclass(frozen=True)
class ScoredPairs:
    """Sentence pairs, each with a score given by people."""

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
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> SimilarityGrid:
    """Every layer and pooling of the options, from one pass over both sides. Raises Cancelled.

    Compared as the model was published: by the cosine, which nearly all are, or by the dot product or a negative distance.

    Pairs are embedded in blocks, and only their cosines are kept: vectors of 50,000 pairs would take gigabytes.
    """
    layers, poolings, count = options.layers, options.poolings, len(pairs.first)
    cosines = np.empty((len(layers), len(poolings), count))
    similarity = backend.sentence_config.similarity
    for start in range(0, count, PAIRS_AT_ONCE):
        first, second = (side[start : start + PAIRS_AT_ONCE] for side in (pairs.first, pairs.second))
        report_progress = part_of(progress, 2 * start, 2 * count)
        vectors = backend.embed([*first, *second], options=options, progress=report_progress, is_cancelled=is_cancelled)
        for row, column in np.ndindex(cosines.shape[:2]):
            both = vectors[row, column]
            sides = both[: len(first)].astype(np.float64), both[len(first) :].astype(np.float64)
            cosines[row, column, start : start + len(first)] = pair_similarity(*sides, similarity)
    agreement = [[correlations(values, pairs.scores) for values in rows] for rows in cosines]
    spearman, pearson = np.moveaxis(np.array(agreement, np.float64), -1, 0).copy()  # None becomes NaN
    return SimilarityGrid(*(LayerGrid(layers, poolings, read_only(values)) for values in (cosines, spearman, pearson)))


def ranker_pair_scores(make: Callable[[Sequence[str]], Ranker], pairs: ScoredPairs) -> Float64:
    """How similar the two texts of each pair are for a word ranking, float64 [pair].

    Words are counted over all texts of all pairs. Each text serves once as the query, and the two scores are averaged,
    since BM25 and Jelinek-Mercer are not symmetric.
    """
    count = len(pairs.first)
    ranker = make([*pairs.first, *pairs.second])
    first, second = np.arange(count), np.arange(count, 2 * count)
    forth, back = ranker.pair_scores(pairs.first, second), ranker.pair_scores(pairs.second, first)
    return (forth.astype(np.float64) + back) / 2


def correlations(predicted: Float64, gold: Sequence[float]) -> tuple[float | None, float | None]:
    """Spearman's and Pearson's correlation; None where all values of a side are equal, or one is not finite.

    Predicted values are equal if they differ by less than 1e-12, as cosines of equal vectors do in their last digits.
    Those of [CLS] at low layers differ by 1e-7 and less, so that rounding them would change their order.
    """
    if not (np.isfinite(predicted).all() and np.isfinite(gold).all()):
        return None, None  # NaN would have the highest rank
    levels = levels_of(predicted)
    if len(gold) < 2 or not levels.any() or np.ptp(np.asarray(gold)) == 0:
        return None, None
    return float(stats.spearmanr(levels, gold).statistic), float(stats.pearsonr(predicted, gold).statistic)


def levels_of(predicted: Float64) -> Int64:
    """The number of each value among the different ones, the lowest first, int64 [pair]; see `correlations`."""
    order = np.argsort(predicted, kind="stable")
    levels = np.empty(len(order), np.int64)
    levels[order] = np.cumsum(np.diff(predicted[order], prepend=predicted[order[:1]]) > SAME)
    return levels


def scored_pairs(corpus: Corpus, most: int | None = None) -> ScoredPairs:
    """The pairs of a corpus whose text column is sentence1. Raises InputError for unusable columns or too many pairs."""
    missing = [name for name in ("sentence2", "score") if name not in corpus.columns]
    if missing:
        raise InputError(
            f"{corpus.name} has no column {' and no column '.join(missing)}.",
            "The columns sentence1, sentence2 and score are needed.",
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
            "At least two such rows are needed.",
            "Choose another file.",
        )
    if len({score for *_, score in kept}) == 1:
        raise InputError(
            f"All pairs of {corpus.name} have the score {kept[0][2]:g}.",
            "Equal scores have no order, so different scores are needed.",
            "Choose another file.",
        )
    if most is not None and len(kept) > most:
        raise InputError(
            f"{corpus.name} has {len(kept):,} pairs.",
            f"The browser can be used for at most {most:,} pairs.",
            "Choose a part of the file, or use `python -m components sts`.",
        )
    first_texts, second_texts, scores = zip(*kept, strict=True)
    return ScoredPairs(first_texts, second_texts, scores, len(corpus) - len(kept) + corpus.report.bad_count)
