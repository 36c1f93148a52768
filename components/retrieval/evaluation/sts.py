"""Semantic textual similarity: how the cosine of each pair of sentences agrees with the score that people gave it.

Agreement is Spearman's and Pearson's correlation, at every layer and pooling from one embedding pass (STS benchmark,
Cer et al. 2017). Embeddings are float32, because bfloat16 changes the order of near neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from components.arrays import Float64, Int64, read_only
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, part_of
from components.model.embedding.options import EmbedOptions
from components.model.trace import Pooling
from components.numbers import counted
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.corpora.readers.limits import BROWSER_LIMITS, Count, Limits, browser_limits, never
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.retrieval.corpora.readers.table import BadRows, Table
from components.retrieval.corpora.rows.parts import TO_MEASURE
from components.retrieval.corpora.rows.read import Rows, reasons_in_brackets, rows_of, table_of
from components.retrieval.corpora.rows.reading import RowUse
from components.retrieval.corpora.texts import hash_of
from components.retrieval.evaluation.layer_grid import LayerGrid
from components.retrieval.search.exact import SAME, pair_similarity

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.search.lexical import Ranker

PAIRS_AT_ONCE = 1_024  # embedded together
DRAWS = 500  # of a collection's pairs with replacement


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
    reading: RowUse | None = field(default=None, compare=False)  # what became of every row of the file

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
    is_stopped: IsStopped = lambda: False,
) -> SimilarityGrid:
    """Every layer and pooling of the options, from one pass over both sides. Raises Stopped.

    Compared as the model was published: by the cosine, which nearly all are, or by the dot product or a negative distance.

    Pairs are embedded in blocks, and only their cosines are kept: vectors of 50,000 pairs would take gigabytes.
    """
    layers, poolings, count = options.layers, options.poolings, len(pairs.first)
    cosines = np.empty((len(layers), len(poolings), count))
    similarity = backend.sentence_config.similarity
    for start in range(0, count, PAIRS_AT_ONCE):
        first, second = (side[start : start + PAIRS_AT_ONCE] for side in (pairs.first, pairs.second))
        report_progress = part_of(progress, 2 * start, 2 * count)
        vectors = backend.embed([*first, *second], options=options, progress=report_progress, is_stopped=is_stopped)
        for row, column in np.ndindex(cosines.shape[:2]):
            both = vectors[row, column]
            sides = both[: len(first)].astype(np.float64), both[len(first) :].astype(np.float64)
            cosines[row, column, start : start + len(first)] = pair_similarity(*sides, similarity)
    agreement = [[correlations(values, pairs.scores) for values in rows] for rows in cosines]
    spearman, pearson = np.moveaxis(np.array(agreement, np.float64), -1, 0).copy()  # None becomes NaN
    return SimilarityGrid(*(LayerGrid(layers, poolings, read_only(values)) for values in (cosines, spearman, pearson)))


def spearman_interval(value: float, pairs: int) -> tuple[float, float]:
    """The 95 % interval of Spearman's correlation of so many pairs (Bonett and Wright 2000); NaN for fewer than four.

    Of the correlation's inverse hyperbolic tangent, whose standard error is about ((1 + value² / 2) / (pairs - 3))^½.
    """
    if pairs < 4 or not abs(value) < 1:
        return np.nan, np.nan
    reach = 1.96 * np.sqrt((1 + value**2 / 2) / (pairs - 3))
    return float(np.tanh(np.arctanh(value) - reach)), float(np.tanh(np.arctanh(value) + reach))


def agrees_more(higher: Float64, lower: Float64, gold: Sequence[float], comparisons: int = 1, seed: int = 0) -> bool:
    """Whether one similarity [pair] has a higher Spearman's correlation with people's scores than another, beyond chance.

    The pairs are drawn anew, the same for both similarities: the difference must be above what its standard error over the
    draws explains in 95 of 100 cases, or in all of so many `comparisons` at once (Bonferroni), where the best was chosen.
    """
    values = np.stack([levels_of(higher), levels_of(lower), np.asarray(gold)]).astype(np.float64)
    drawn = np.random.default_rng(seed).integers(0, values.shape[1], (DRAWS, values.shape[1]))

    def difference(rows: Int64) -> Float64:
        ranks = stats.rankdata(values[:, rows], axis=-1)  # [similarity or gold, draw, pair]
        ranks -= ranks.mean(axis=-1, keepdims=True)
        lengths = np.sqrt((ranks**2).sum(axis=-1))
        with np.errstate(invalid="ignore"):  # draws of one value alone
            first, second = (ranks[:2] * ranks[2]).sum(axis=-1) / (lengths[:2] * lengths[2])
        return first - second

    reach = NormalDist().inv_cdf(1 - 0.025 / comparisons) * float(np.nanstd(difference(drawn)))
    return bool(difference(np.arange(values.shape[1])[None])[0] > max(reach, 1e-12))


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


def read_scored_pairs(
    source: Path | bytes | Sequence[Path],
    name: str,
    *,
    chosen: Mapping[str, str] | None = None,
    part: str | None = None,
    most: int | None = None,
    limits: Limits | None = BROWSER_LIMITS,
    is_stopped: IsStopped = never,
    dialect: DialectChoice = AS_FOUND,
    encoding: str | None = None,
) -> ScoredPairs:
    """The pairs of a file: two sentences and a score in each row, with or without names of columns.

    `chosen` names the file's columns by ours ("sentence1", "sentence2", "label"). `part` is train, dev, test or all, of a file
    that says to which of them each row belongs; without it the test rows are used. `dialect` is what a person
    chose of how separated text is written, and `encoding` the file's, which is detected without it. Raises InputError for a
    file that cannot be read, for unusable columns, and for too few or too many pairs, and Stopped.
    """
    limits = browser_limits() if limits is BROWSER_LIMITS else limits
    sources = [source] if isinstance(source, Path | bytes) else source
    count = Count(name, limits, is_stopped)
    table = table_of(sources, name, limits, count, dialect, encoding)
    rows = rows_of(table, name, chosen=chosen, part=part, preferred=TO_MEASURE, wanted="scored")
    return _usable(rows, name, most)


def scored_pairs(corpus: Corpus, most: int | None = None) -> ScoredPairs:
    """The pairs of a corpus, whose text column is the first sentence. Raises InputError as `read_scored_pairs` does."""
    columns: dict[str, Sequence[str]] = {corpus.report.text_column: corpus.texts, **corpus.columns}
    table = Table(columns, range(1, len(corpus) + 1))
    pairs = _usable(rows_of(table, corpus.name, preferred=TO_MEASURE, wanted="scored"), corpus.name, most)
    return replace(pairs, bad_rows=pairs.bad_rows + corpus.report.bad_count)


def _usable(rows: Rows, name: str, most: int | None) -> ScoredPairs:
    reading = rows.reading(rows.rows, BadRows())
    lost = reasons_in_brackets(reading.reasons, reading.values)
    if len(rows.rows) < 2:
        raise InputError(
            f"{name} has {counted(len(rows.rows), 'row')} with two sentences and a number{lost}.",
            "At least two such rows are needed.",
            "Choose another file.",
        )
    scores = tuple(float(row.label or 0) for row in rows.rows)
    if len(set(scores)) == 1:
        raise InputError(
            f"All pairs of {name} have the score {scores[0]:g}{lost}.",
            "Equal scores have no order, so different scores are needed.",
            "Choose another file.",
        )
    if most is not None and len(scores) > most:
        raise InputError(
            f"{name} has {len(scores):,} pairs.",
            f"The browser can be used for at most {most:,} pairs.",
            "Choose a part of the file, or use `python -m components sts`.",
        )
    first, second = zip(*(row.texts for row in rows.rows), strict=True)
    reading = replace(
        reading, notes=(*reading.notes, *_note_on_repeated(list(zip(first, second, strict=True)), scores))
    )
    return ScoredPairs(first, second, scores, reading.lost, reading)


def _note_on_repeated(pairs: Sequence[tuple[str, str]], scores: Sequence[float]) -> list[str]:
    """That pairs repeat an earlier one, which the measures count each time, and how many of them have another score."""
    first: dict[tuple[str, str], float] = {}
    others = [score != first.setdefault(pair, score) for pair, score in zip(pairs, scores, strict=True)]
    repeated, differ = len(pairs) - len(first), sum(others)
    if not repeated:
        return []
    other = f", {differ:,} of them with another score" if differ else ""
    return [
        f"{counted(repeated, 'pair')} {'repeats' if repeated == 1 else 'repeat'} an earlier one{other}; each counts."
    ]
