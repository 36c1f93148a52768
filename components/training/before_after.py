"""What training changed: a base model and the model tuned from it, on the same texts. Arrays in, frozen results out.

Row i of each array belongs to the same sentence, token, pair or query in both models.

Differences are tuned minus base. Their intervals are paired percentile bootstraps (Efron 1979): each resample draws the same
pairs or queries for both models, because what both find easy or hard does not separate them.

What it does not show: why something changed, or whether the change holds for other texts than these. A head's attention can
change much without an effect on the vectors (components.analysis.attention.flow).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from components.analysis.similarity.cka import Judgement, layer_cka
from components.analysis.similarity.sentences import sentence_similarity
from components.arrays import Float64, Int64, cosine, read_only
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.metrics import Interval
from components.retrieval.evaluation.sts import correlations, levels_of
from components.words.function import FUNCTION_WORDS

if TYPE_CHECKING:
    from components.training.run_folder import WatchToken

MEASURES = ("Recall@1", "Recall@10", "MRR")
MOST_CURVES = 6  # of a word
_AT_ONCE = 2_000_000  # numbers drawn together


@dataclass(frozen=True)
class GroupMeans:
    """Mean cosines of one model's sentences; NaN where there is no such pair."""

    within: float  # of pairs in the same group
    between: float  # of pairs in different groups

    def gap(self, digits: int = 3) -> float:
        """Within minus between, of both as they are shown, with so many decimals: how far apart the groups are."""
        return round(self.within, digits) - round(self.between, digits)


@dataclass(frozen=True, eq=False)
class SimilarityChange:
    """The cosines of all pairs of sentences before and after, in the given order."""

    base: Float64  # [sentence, sentence]; NaN for a missing vector
    tuned: Float64  # [sentence, sentence]
    base_means: GroupMeans
    tuned_means: GroupMeans


def similarity_change(base: np.ndarray, tuned: np.ndarray, groups: Sequence[str | None]) -> SimilarityChange:
    """Similarity matrices of pooled vectors of one layer, [sentence, dim] each; the two widths may differ.

    `groups` names each sentence's group; None: it belongs to no group, and its pairs count for neither mean. Raises
    ValueError if the numbers of sentences differ.
    """
    if not len(base) == len(tuned) == len(groups):
        raise ValueError(f"{len(base)} and {len(tuned)} vectors, {len(groups)} groups: equal numbers were expected")
    before, after = sentence_similarity(base).matrix, sentence_similarity(tuned).matrix
    return SimilarityChange(before, after, _group_means(before, groups), _group_means(after, groups))


def _group_means(matrix: Float64, groups: Sequence[str | None]) -> GroupMeans:
    values: dict[bool, list[float]] = {True: [], False: []}
    for (row, first), (column, second) in combinations(enumerate(groups), 2):
        if first is not None and second is not None and not np.isnan(matrix[row, column]):
            values[first == second].append(float(matrix[row, column]))
    within, between = (float(np.mean(values[same])) if values[same] else np.nan for same in (True, False))
    return GroupMeans(within, between)


@dataclass(frozen=True, eq=False)
class WordCurves:
    """Cosines of a word's occurrences over the layers, with a name for each curve."""

    values: Float64  # [curve, layer]
    names: tuple[str, ...]


def repeated_words(tokens: Sequence[WatchToken]) -> list[str]:
    """Whole words in more than one watch sentence, the most frequent first; words of grammar only if there are no others."""
    sentences: dict[str, set[int]] = {}
    for token in tokens:
        if token.piece.isalpha():
            sentences.setdefault(token.piece, set()).add(token.sentence)
    repeated = [word for word in sentences if len(sentences[word]) > 1]
    repeated.sort(key=lambda word: (-len(sentences[word]), word))
    return [word for word in repeated if word not in FUNCTION_WORDS] or repeated


def word_curves(
    vectors: np.ndarray, tokens: Sequence[WatchToken], word: str, groups: Sequence[str] | None
) -> WordCurves:
    """The word's first occurrence in each sentence, compared over the layers; vectors [layer, token, dim].

    With `groups`, one name for each sentence: the mean of the pairs of each two groups. Without: the first pairs, numbered
    from 1.
    """
    pairs = word_pairs(tokens, word, groups)
    values = [
        np.mean([cosine(vectors[:, a], vectors[:, b]) for a, b in of_curve], axis=0) for of_curve in pairs.values()
    ]
    return WordCurves(np.array(values, np.float64), tuple(pairs))


def word_pairs(
    tokens: Sequence[WatchToken], word: str, groups: Sequence[str] | None
) -> dict[str, list[tuple[int, int]]]:
    """The numbers of the two tokens of each pair that a curve of `word_curves` is the mean of, by the name of the curve."""
    first: dict[int, int] = {}  # sentence to the number of the token
    for number, token in enumerate(tokens):
        if token.piece == word:
            first.setdefault(token.sentence, number)
    named: dict[str, list[tuple[int, int]]] = {}
    for (row_a, a), (row_b, b) in combinations(first.items(), 2):
        pair = f"{row_a + 1} – {row_b + 1}" if groups is None else " – ".join(sorted((groups[row_a], groups[row_b])))
        named.setdefault(f"{word}: {pair}", []).append((a, b))
    return {name: named[name] for name in list(named)[:MOST_CURVES]}


def same_topic_share(vectors: np.ndarray, sentences: Sequence[int], groups: Sequence[str]) -> float:
    """The share of tokens, 0..1, whose most similar token of another sentence is of the same group.

    Vectors [token, dim], the number of each token's sentence, and one group for each sentence. The first token wins a tie.
    """
    owners = np.asarray(sentences)
    similar = sentence_similarity(vectors).matrix.copy()
    similar[owners[:, None] == owners] = -np.inf
    nearest = owners[np.argmax(similar, axis=1)]
    return float(np.mean([groups[own] == groups[other] for own, other in zip(owners, nearest, strict=True)]))


@dataclass(frozen=True)
class CorrelationChange:
    """Spearman's correlation of two models' cosines with the same scores of people, -1..1.

    All values are NaN where all cosines of a model are equal (it has collapsed) or some are not finite (it has diverged);
    `difference` is NaN if one of the two is.
    """

    base: Interval
    tuned: Interval
    difference: Interval  # tuned minus base
    pairs: int

    @property
    def is_clear(self) -> bool:
        """Whether the 95 % interval of the difference leaves out 0."""
        return self.difference.low > 0 or self.difference.high < 0


def spearman_change(
    base: Float64, tuned: Float64, scores: Sequence[float], seed: int = 0, resamples: int = metrics.RESAMPLES
) -> CorrelationChange:
    """Cosines (or other predictions) of both models for the same pairs, [pair] each, and the scores of people.

    Correlations are those of components.retrieval.evaluation.sts. Raises ValueError for fewer than two pairs, or if the
    numbers of pairs differ.
    """
    count = len(scores)
    if not len(base) == len(tuned) == count or count < 2:
        raise ValueError(f"{len(base)}, {len(tuned)} and {count} values: equal numbers of two or more were expected")
    sides = np.array([levels_of(np.asarray(base)), levels_of(np.asarray(tuned)), scores], np.float64)  # [side, pair]
    numbers, drawn = np.random.default_rng(seed), []
    step = max(1, _AT_ONCE // count)
    for start in range(0, resamples, step):
        rows = numbers.integers(0, count, size=(min(step, resamples - start), count))
        drawn.append(_spearman(sides[:, rows]))
    resampled = np.concatenate(drawn, axis=1)  # [model, resample]
    values = (correlations(np.asarray(predicted), scores)[0] for predicted in (base, tuned))
    before, after = (np.nan if value is None else value for value in values)
    return CorrelationChange(
        _interval(before, resampled[0]),
        _interval(after, resampled[1]),
        _interval(after - before, resampled[1] - resampled[0]),
        count,
    )


def _spearman(sides: Float64) -> Float64:
    """Correlations of the ranks of base and of tuned with those of the scores: [3, resample, pair] to [2, resample]."""
    from scipy.stats import rankdata

    ranks = rankdata(sides, axis=-1)
    ranks -= ranks.mean(axis=-1, keepdims=True)
    norms = np.linalg.norm(ranks, axis=-1)
    products = np.einsum("mrp,rp->mr", ranks[:2], ranks[2])
    with np.errstate(invalid="ignore"):
        return np.asarray(products / (norms[:2] * norms[2]))  # NaN where all values of a resample are equal


def _interval(value: float, resampled: Float64) -> Interval:
    known = resampled[~np.isnan(resampled)]
    if np.isnan(value) or not len(known):
        return Interval(np.nan, np.nan, np.nan)
    low, high = np.quantile(known, [(1 - metrics.LEVEL) / 2, (1 + metrics.LEVEL) / 2])
    return Interval(float(value), float(low), float(high))


@dataclass(frozen=True)
class MeasureChange:
    """One retrieval measure before and after, over the same queries."""

    name: str  # a key of metrics.MEASURES
    base: Interval
    tuned: Interval
    difference: Interval  # of the mean difference per query, -1..1
    p_value: float  # paired randomisation test, adjusted for the number of measures (Holm)
    p_text: str  # for people: a bound where the test cannot give a smaller number

    @property
    def is_significant(self) -> bool:
        return self.p_value < metrics.ALPHA


def retrieval_changes(
    base_ranks: Int64, tuned_ranks: Int64, measures: Sequence[str] = MEASURES, seed: int = 0
) -> tuple[MeasureChange, ...]:
    """Measures of the ranks of each query's correct answer, int64 [query] from 1, with paired intervals and tests.

    Raises ValueError for no query, and if the numbers of queries differ.
    """
    _check_queries(base_ranks, tuned_ranks)
    values = [(metrics.MEASURES[name](base_ranks), metrics.MEASURES[name](tuned_ranks)) for name in measures]
    raw = [metrics.randomisation_test(after, before, seed) for before, after in values]
    return tuple(
        MeasureChange(
            name,
            metrics.interval(before, seed),
            metrics.interval(after, seed),
            metrics.difference_interval(after - before, seed),
            p_value,
            metrics.shown_p(p_value, raw_p),
        )
        for name, (before, after), p_value, raw_p in zip(measures, values, metrics.holm(raw), raw, strict=True)
    )


@dataclass(frozen=True)
class QueryChange:
    """A query and the rank of its correct answer in both models."""

    query: int  # index of the query
    base_rank: int
    tuned_rank: int


@dataclass(frozen=True)
class QueryChanges:
    """How the ranks of the correct answers changed."""

    gained: tuple[QueryChange, ...]  # the largest gains, largest first
    lost: tuple[QueryChange, ...]  # the largest losses, largest first
    better: int  # number of all queries that gained
    worse: int  # number of all queries that lost
    unchanged: int


def query_changes(base_ranks: Int64, tuned_ranks: Int64, most: int = 10) -> QueryChanges:
    """The queries whose correct answer rose or fell most, by 1 / rank; at most `most` of each.

    A step from rank 2 to 1 counts for more than one from 100 to 50: the first hits are what people read. On a tie the
    query that comes first is first. Raises ValueError if the numbers of queries differ, or for no query.
    """
    _check_queries(base_ranks, tuned_ranks)
    gains = metrics.reciprocal_rank(tuned_ranks) - metrics.reciprocal_rank(base_ranks)  # [query]

    def changes(rows: Int64) -> tuple[QueryChange, ...]:
        return tuple(QueryChange(int(row), int(base_ranks[row]), int(tuned_ranks[row])) for row in rows[:most])

    order, losses = np.argsort(-gains, kind="stable"), np.argsort(gains, kind="stable")
    better, worse = int((gains > 0).sum()), int((gains < 0).sum())
    return QueryChanges(changes(order[:better]), changes(losses[:worse]), better, worse, len(gains) - better - worse)


def _check_queries(base_ranks: Int64, tuned_ranks: Int64) -> None:
    if len(base_ranks) != len(tuned_ranks) or not len(base_ranks):
        raise ValueError(f"{len(base_ranks)} and {len(tuned_ranks)} queries: equal numbers above 0 were expected")


@dataclass(frozen=True, eq=False)
class LayerChange:
    """How each layer's vectors changed, [layer 0..L] each."""

    cka: Float64  # base with tuned, 0..1; 1 if only rotated, mirrored or scaled; NaN for a layer of equal vectors
    chance: Float64  # the CKA with tokens matched at random: only what lies above it is meaningful
    cosine: Float64  # mean cosine of each token's two vectors: a rotation lowers it, but does not lower CKA
    tokens: int  # number of tokens that CKA compares
    judgement: Judgement  # whether there are enough tokens for CKA

    @property
    def most_moved(self) -> tuple[int, ...]:
        """All layers with a CKA, the lowest first; the lower layer on a tie."""
        return tuple(int(layer) for layer in np.argsort(self.cka, kind="stable") if not np.isnan(self.cka[layer]))


def layer_change(base: np.ndarray, tuned: np.ndarray) -> LayerChange:
    """Vectors of the same tokens (or sentences) in both models, [layer, token, dim] each.

    Raises InputError for too few tokens to compare layers by CKA, ValueError for arrays of different shapes.
    """
    if base.shape != tuned.shape:
        raise ValueError(f"arrays of shapes {base.shape} and {tuned.shape}: equal shapes were expected")
    compared = layer_cka(base, tuned)
    return LayerChange(
        read_only(np.diagonal(compared.matrix).copy()),
        read_only(np.diagonal(compared.chance).copy()),
        read_only(np.array([cosine(before, after).mean() for before, after in zip(base, tuned, strict=True)])),
        compared.tokens,
        compared.judgement,
    )


@dataclass(frozen=True, eq=False)
class HeadChange:
    """The share of its attention that each head moved to other tokens, float64 [block, head], 0..1."""

    share: Float64

    def top(self, k: int) -> tuple[tuple[int, int, float], ...]:
        """(block, head, share) of the k heads that changed most, the largest change first."""
        order = np.argsort(-self.share, axis=None, kind="stable")[:k]
        blocks, heads = np.unravel_index(order, self.share.shape)
        return tuple((int(b), int(h), float(self.share[b, h])) for b, h in zip(blocks, heads, strict=True))


def head_change(base: np.ndarray, tuned: np.ndarray, tokens: NDArray[np.bool_]) -> HeadChange:
    """Attentions [block, sentence, head, query, key] of both models on the same tokens.

    `tokens` [sentence, token] is true for tokens and false for padding. Each query's change is the total variation distance
    of its two rows, half the sum of absolute differences: 0 if nothing moved, 1 if all attention went to other tokens. A
    head's change is the mean over all queries. Raises ValueError for shapes that do not fit, or without a token.
    """
    if base.shape != tuned.shape or (base.shape[1], base.shape[3]) != tokens.shape or not tokens.any():
        raise ValueError(f"attentions {base.shape} and {tuned.shape} and tokens {tokens.shape} do not fit together")
    return HeadChange(read_only(attention_moved(base, tuned, tokens)))


def attention_moved(base: np.ndarray, tuned: np.ndarray, tokens: NDArray[np.bool_]) -> Float64:
    """The share of its attention that each head moved to other tokens, [block, head]; arguments as in `head_change`."""
    share = np.empty((base.shape[0], base.shape[2]))
    for block, (before, after) in enumerate(zip(base, tuned, strict=True)):  # one at a time: they are large
        moved = np.abs(after.astype(np.float64) - before).sum(axis=-1) / 2  # [sentence, head, query]
        share[block] = moved.transpose(0, 2, 1)[tokens].mean(axis=0)
    return share
