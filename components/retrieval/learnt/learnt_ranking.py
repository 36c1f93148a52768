"""A ranking learnt from vectors: logistic regression on pairs of a query and a document, used as a ranking function.

Each pair becomes one row of features, and the label says whether the document is relevant to the query. The features
are q * d, number by number, of the vectors q and d of two texts that were read separately (their sum is the dot product, which
the regression weighs anew), or the vector of the pair read together.

The features are standardised (mean 0, standard deviation 1 on the training pairs); the regression is scikit-learn's, with
inverse strength of regularisation C. Its linear function, coefficients times features, ranks the documents of a query:
learning to rank pointwise (Liu 2009, section 1.3.1). Queries are split, never pairs: no query is in both training and
test. The split is stratified by how well a word ranking does on each query (its P@10), so that both parts have as many easy
and difficult queries.

The pairs are candidates: the first documents of some rankings, all relevant documents, and some drawn at random. Measures
of a ranking are not taken among the candidates alone. There the rankings that chose them would look worse than chance:
their mistakes are all candidates, and so are the relevant documents that they missed. All documents are ranked instead; a
score that needs a pass for each pair sorts only the candidates that were found, and the other documents follow
(`reranked`).

What it does not show: how the function ranks documents that it has never seen, since documents can be in both parts.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64, read_only
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.corpora.texts import hash_of, memory_of_texts
from components.retrieval.evaluation.graded.metrics import LEVELS
from components.retrieval.evaluation.graded.ranks import TIED_SHARE, RelevantRanks, ranker_relevant_ranks
from components.retrieval.search.exact import SAME, top

if TYPE_CHECKING:
    from components.retrieval.evaluation.graded.collection import GradedSet

Part = Literal["train", "test"]
TEST_SHARE = 0.25
FEWEST_QUERIES = 8
MOST_DOCUMENTS = 5_000  # ranked: their vectors at 7 layers of 384 take 108 MB
_STRATUM = 4  # queries of a stratum at least: one of them is for the test
_STEPS = 500  # of the solver at most; nobody can stop it


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """The candidates of some queries: pair p is queries[query_rows[p]] with documents[document_rows[p]].

    The pairs of a query stand together, in the order of the collection. A grade of 1 or more means relevant; all relevant
    documents of a query are candidates, also those that no ranking found.
    """

    queries: tuple[str, ...]
    documents: tuple[str, ...]  # all that are ranked: the candidates of all queries, and others
    query_rows: Int64  # [pair], rising
    document_rows: Int64  # [pair]
    grades: Int64  # [pair], 0 or more
    is_found: NDArray[np.bool_]  # [pair]: by one of the rankings, not only because it is relevant
    query_numbers: Int64  # [query], in the collection
    document_numbers: Int64  # [document], in the collection

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.grades)

    @property
    def is_relevant(self) -> NDArray[np.bool_]:
        """[pair]"""
        return self.grades > 0

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the texts and of which belong together, in their order; not of the grades, which no vector needs."""
        parts = [hash_of(self.queries), hash_of(self.documents)]
        rows = np.stack([self.query_rows, self.document_rows]).astype("<i8").tobytes()
        return hashlib.sha256(" ".join(parts).encode() + rows).hexdigest()

    @cached_property
    def first_of_text(self) -> Int64:
        """The first document with the same text as each, int64 [document]."""
        firsts: dict[str, int] = {}
        return np.array([firsts.setdefault(text, number) for number, text in enumerate(self.documents)], np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        return 5 * self.grades.nbytes + memory_of_texts(self.queries) + memory_of_texts(self.documents)

    def texts(self, rows: Int64 | slice = slice(None)) -> tuple[list[str], list[str]]:
        """The queries and the documents of some pairs, or of all."""
        return (
            [self.queries[row] for row in self.query_rows[rows].tolist()],
            [self.documents[row] for row in self.document_rows[rows].tolist()],
        )

    def rows_of(self, queries: Int64) -> Int64:
        """The pairs of some queries, int64 [pair]."""
        return np.flatnonzero(np.isin(self.query_rows, queries))


def sampled_queries(count: int, most: int, seed: int) -> Int64:
    """At most `most` of `count` queries, drawn with a seed, in rising order, int64 [query]."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False))


def judged_pairs(
    graded: GradedSet,
    queries: Int64,
    scores: Sequence[Callable[[int], Float32]],
    first: int,
    others: int = 0,
    seed: int = 0,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> JudgedPairs:
    """The candidates of some queries of a collection: the `first` documents of each ranking, and all relevant documents.

    With them come `others`, so many documents drawn with the seed: what is learnt from the most similar documents alone
    misjudges all others. Each of `scores` gives the scores [document] of a query by its number. Of a collection with more
    than MOST_DOCUMENTS only the candidates and a seeded sample of the others are ranked. `progress(done, total)` counts
    queries. Raises Stopped.
    """
    candidates: list[Int64] = []
    is_found: list[NDArray[np.bool_]] = []
    chance = np.random.default_rng(seed)
    for done, query in enumerate(queries.tolist(), start=1):
        if is_stopped():
            raise Stopped
        first_documents = np.unique(np.concatenate([top(score(query), first) for score in scores]))
        drawn = chance.integers(len(graded.documents), size=others)
        relevant = np.fromiter(graded.grades[query], np.int64)
        together = np.unique(np.concatenate([first_documents, relevant, drawn]))
        # A query that is a document of the collection does not find itself.
        candidates.append(together if graded.own is None else together[together != graded.own[query]])
        is_found.append(np.isin(candidates[-1], first_documents))
        progress(done, len(queries))
    numbers = np.concatenate(candidates)
    document_numbers = np.unique(numbers)
    rest = np.setdiff1d(np.arange(len(graded.documents)), document_numbers)
    room = max(0, MOST_DOCUMENTS - len(document_numbers))
    if len(rest) > room:
        rest = chance.choice(rest, room, replace=False)
    document_numbers = np.union1d(document_numbers, rest)
    query_rows = np.repeat(np.arange(len(queries)), [len(each) for each in candidates])
    grades = [
        graded.grades[queries[row]].get(number, 0) for row, number in zip(query_rows, numbers.tolist(), strict=True)
    ]
    return JudgedPairs(
        tuple(graded.queries[query] for query in queries),
        tuple(graded.documents[document] for document in document_numbers),
        read_only(query_rows.astype(np.int64)),
        read_only(np.searchsorted(document_numbers, numbers)),
        read_only(np.array(grades, np.int64)),
        read_only(np.concatenate(is_found)),
        read_only(queries.astype(np.int64)),
        read_only(document_numbers),
    )


@dataclass(frozen=True, eq=False)
class QuerySplit:
    """The queries that the regression learns from, and those that it is tested on, rising."""

    train: Int64  # [query]
    test: Int64  # [query]
    strata: Int64  # [query of both]: the stratum of each query, rising with the measure


def split_queries(
    measure: Float64, seed: int = 0, test_share: float = TEST_SHARE, texts: Sequence[str] | None = None
) -> QuerySplit:
    """A seeded split of queries, stratified by a measure [query], such as a word ranking's P@10 for each.

    Queries with the same value form a stratum; one with fewer than 4 is joined with the next. Queries with the same text,
    where `texts` [query] are given, come into the same part: they are split as one, with their mean of the measure.
    Raises InputError for fewer than 8 different queries.
    """
    from sklearn.model_selection import train_test_split

    if texts is not None:
        _, text_of, counts = np.unique(np.array(texts, object), return_inverse=True, return_counts=True)
        if len(counts) < len(texts):
            first = np.unique(text_of, return_index=True)[1]
            order = np.argsort(first)  # in the order of the collection, as without repeated texts
            own = split_queries((np.bincount(text_of, measure) / counts)[order], seed, test_share)
            text_of = np.argsort(order)[text_of]
            train, test = (np.flatnonzero(np.isin(text_of, part)) for part in (own.train, own.test))
            return QuerySplit(train, test, own.strata[text_of])
    if len(measure) < FEWEST_QUERIES:
        raise InputError(
            f"There {'is 1 query' if len(measure) == 1 else f'are {len(measure)} different queries'}.",
            f"At least {FEWEST_QUERIES} of them are needed, since some are set aside for the test.",
            "Choose another collection, or add queries with their judgements to it.",
        )
    values, value_of, counts = np.unique(np.round(measure, 9), return_inverse=True, return_counts=True)
    stratum_of_value = np.zeros(len(values), np.int64)
    stratum = size = 0
    for value, count in enumerate(counts):
        if size >= _STRATUM and counts[value:].sum() >= _STRATUM:
            stratum, size = stratum + 1, 0
        stratum_of_value[value] = stratum
        size += int(count)
    strata = stratum_of_value[value_of]
    train, test = train_test_split(
        np.arange(len(measure)), test_size=test_share, random_state=seed, stratify=strata if stratum else None
    )
    return QuerySplit(np.sort(train), np.sort(test), strata)


def choosing_bytes(queries: int, documents: int, rankings: int = 3) -> int:
    """Memory that the scores of all documents take, about: float32 of each ranking, and a random order of the test queries.

    One ranking's scores are there twice for a moment, while those of all queries are put together.
    """
    return queries * documents * 4 * (rankings + 1) + 8 * round(TEST_SHARE * queries) * documents


def learning_bytes(pairs: int, features: int, queries: int, documents: int) -> int:
    """Memory that learning takes, about: the features in float32 and float64 with copies, and scores of all documents."""
    return 8 * (4 * pairs * features + 3 * queries * documents)


@dataclass(frozen=True)
class ClassFigures:
    """How well a class of pairs is recognised; all but `support` are 0..1."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Classification:
    """The classification of some pairs, beside that of always answering with the larger class."""

    not_relevant: ClassFigures
    relevant: ClassFigures
    accuracy: float
    majority: float  # accuracy of the answer that is right for more of the pairs


def report_of(is_relevant: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> Classification:
    """scikit-learn's classification report of some pairs, both [pair]; 0 where a class is never predicted."""
    from sklearn.metrics import classification_report

    table: Any = classification_report(
        is_relevant, predicted, labels=[False, True], output_dict=True, zero_division=0.0
    )
    rows = [table[name] for name in ("False", "True")]
    not_relevant, relevant = (
        ClassFigures(row["precision"], row["recall"], row["f1-score"], int(row["support"])) for row in rows
    )
    accuracy = float(np.mean(is_relevant == predicted))
    share = float(is_relevant.mean())
    return Classification(not_relevant, relevant, accuracy, max(share, 1 - share))


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall of some pairs together, for every threshold of their scores, 0..1."""

    precision: Float64  # [threshold], rising thresholds; the last point has precision 1 and recall 0
    recall: Float64  # [threshold], falling
    average_precision: float
    chance: float  # the share of relevant pairs: the precision of a random order

    @property
    def interpolated(self) -> Float64:
        """The best precision at a recall of at least 0.0, 0.1, .. 1.0, float64 [level]."""
        levels = np.arange(LEVELS) / (LEVELS - 1)
        return np.array([self.precision[self.recall >= level - 1e-9].max() for level in levels])


def precision_recall(is_relevant: NDArray[np.bool_], scores: Float64) -> PrecisionRecall:
    """scikit-learn's curve of some pairs' scores, both [pair]. Needs a relevant pair."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    precision, recall, _ = precision_recall_curve(is_relevant, scores)
    average = float(average_precision_score(is_relevant, scores))
    return PrecisionRecall(read_only(precision), read_only(recall), average, float(is_relevant.mean()))


@dataclass(frozen=True, eq=False)
class LearntFunction:
    """What was learnt, and how well it classifies the pairs of the queries of both parts."""

    scores: Float64  # [pair]: coefficients times features, plus the intercept; of all pairs
    means: Float64  # [feature], of the training pairs
    deviations: Float64  # [feature], likewise; 1 for a feature that does not vary
    coefficients: Float64  # [feature], of the standardised features
    intercept: float
    steps: int
    has_converged: bool
    reports: Mapping[Part, Classification]
    curves: Mapping[Part, PrecisionRecall]

    def score(self, features: Float32) -> Float64:
        """The learnt function of other pairs, float64 [pair], by which documents are ranked; features [pair, feature]."""
        standardised = (np.asarray(features, np.float64) - self.means) / self.deviations
        return np.asarray(standardised @ self.coefficients + self.intercept, np.float64)


def learn(
    features: Float32,
    pairs: JudgedPairs,
    split: QuerySplit,
    c: float = 1.0,
    is_stopped: IsStopped = lambda: False,
) -> LearntFunction:
    """Logistic regression on the pairs of the training queries; `features` is [pair, feature] of all pairs.

    `c` is the inverse strength of regularisation. Raises InputError where the pairs of a part are all relevant or all not,
    and Stopped; once the solver runs, it comes to its end.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    is_relevant = pairs.is_relevant
    rows: dict[Part, Int64] = {"train": pairs.rows_of(split.train), "test": pairs.rows_of(split.test)}
    if any(not 0 < is_relevant[part].sum() < len(part) for part in rows.values()):
        raise InputError(
            "The documents of the training or test queries are all relevant, or all not.",
            "Both kinds of documents are needed to learn from and to test on.",
            "Choose more queries, or another collection.",
        )
    wide = np.asarray(features, np.float64)
    scaler = StandardScaler().fit(wide[rows["train"]])
    standardised = scaler.transform(wide)
    if is_stopped():
        raise Stopped
    model = LogisticRegression(C=c, max_iter=_STEPS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `has_converged` says so
        model.fit(standardised[rows["train"]], is_relevant[rows["train"]])
    scores = np.asarray(model.decision_function(standardised), np.float64)
    steps = int(model.n_iter_.max())
    return LearntFunction(
        read_only(scores),
        read_only(scaler.mean_),
        read_only(scaler.scale_),
        read_only(model.coef_[0]),
        float(model.intercept_[0]),
        steps,
        steps < _STEPS,
        MappingProxyType({part: report_of(is_relevant[own], scores[own] > 0) for part, own in rows.items()}),
        MappingProxyType({part: precision_recall(is_relevant[own], scores[own]) for part, own in rows.items()}),
    )


def reranked(pairs: JudgedPairs, scores: np.ndarray, first_stage: np.ndarray, queries: Int64) -> Float64:
    """Scores [query, document] that put the found candidates first, by their scores [pair], and the others behind them.

    The others keep the order of the scores `first_stage` [query of all, document]. Equal scores stay equal. Documents with
    the same text all stand where the best of them does: one of them can be found and another not.
    """
    levels = np.empty((len(queries), len(pairs.documents)))
    for number, query in enumerate(queries):
        rows = np.flatnonzero((pairs.query_rows == query) & pairs.is_found)
        levels[number] = np.unique(first_stage[query], return_inverse=True)[1]
        levels[number, pairs.document_rows[rows]] = (
            len(pairs.documents) + np.unique(scores[rows], return_inverse=True)[1]
        )
    best = levels.copy()
    for document in np.flatnonzero(pairs.first_of_text != np.arange(len(pairs.documents))):
        first = pairs.first_of_text[document]
        best[:, first] = np.maximum(best[:, first], levels[:, document])
    return best[:, pairs.first_of_text]


def relevant_ranks(
    pairs: JudgedPairs,
    scores: np.ndarray,
    queries: Int64,
    is_stopped: IsStopped = lambda: False,
    floors: Float64 | None = None,
) -> RelevantRanks:
    """The ranks of the relevant documents of some queries among all documents, by scores [query of these, document].

    Ties count against the ranking: float64 scores are equal within 1e-12 of the query's largest, others within 1e-6.
    Documents with the same text tie: the score of the first counts for all of them. `floors` [query of these] are the scores
    of documents that a word ranking does not find. Raises Stopped.
    """
    grades = []
    for query in queries:
        rows = np.flatnonzero((pairs.query_rows == query) & pairs.is_relevant)
        grades.append(dict(zip(pairs.document_rows[rows].tolist(), pairs.grades[rows].tolist(), strict=True)))
    tied = SAME if scores.dtype == np.float64 else TIED_SHARE

    def of(number: str) -> np.ndarray:
        if is_stopped():
            raise Stopped
        return scores[int(number)][pairs.first_of_text]

    numbers = [str(number) for number in range(len(queries))]
    if floors is None:
        return ranker_relevant_ranks(of, numbers, grades, tied=tied)
    return ranker_relevant_ranks(of, numbers, grades, tied=tied, floor=lambda number: float(floors[int(number)]))


def random_means(
    pairs: JudgedPairs,
    queries: Int64,
    measures: Mapping[str, Callable[[RelevantRanks], Float64]],
    seed: int = 0,
    orders: int = 20,
    is_stopped: IsStopped = lambda: False,
) -> dict[str, Float64]:
    """Measures of all documents in random order, float64 [query] each: their means over some seeded orders.

    All measures are of the same orders. Raises Stopped.
    """
    numbers, shape = np.random.default_rng(seed), (len(queries), len(pairs.documents))
    sums = {name: np.zeros(len(queries)) for name in measures}
    for _ in range(orders):
        ranks = relevant_ranks(pairs, numbers.random(shape), queries, is_stopped)
        for name, measure in measures.items():
            sums[name] += measure(ranks)
    return {name: total / orders for name, total in sums.items()}
