"""Retrieval on pairs, by indexes on disk and by word rankings: the ranks that the Evaluate page compares.

Documents and queries are two float32 indexes of one model (components.retrieval.index.folder), so that every layer and
pooling comes from one embedding pass, a stopped pass continues, and nothing is embedded twice. Of a run only the rank of
each query's correct answer is kept, from which every measure follows.

The time per query is measured one query at a time, as a person waits for it: embedding or counting, scoring all
documents, and selecting the first ten. It depends on the machine; the order of the methods does so far less.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Protocol

import numpy as np

from components.arrays import Float32, Int64, read_only
from components.errors import InputError
from components.jobs import Cancelled, IsCancelled, ReportProgress, part_of
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation.layer_grid import LayerGrid
from components.retrieval.evaluation.ranks import gold_ranks, tolerance
from components.retrieval.search.exact import top

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.lexical import Ranker

QUERY_COLUMN = "compressed"
CATEGORY_ROWS = 4  # to each different query, on average: so many right answers has a question seldom
TIMED_QUERIES = 12
TIMED_SECOND = 5  # queries whose second stage is timed: each may take a second
TIMED_CANDIDATES = 100  # of such a query; the time of more follows from theirs, since each is scored by itself
OPERATIONS_PER_SECOND = 1.2e11  # of float32 products and their comparisons, measured on two cores


@dataclass(frozen=True, eq=False)
class Pairs:
    """Queries and documents: document i is the correct answer of query i."""

    name: str
    documents: Texts
    queries: Texts
    left_out: int  # rows without a query
    repeated: int  # documents with the same text as another: their queries cannot have rank 1
    same_query: int = 0  # rows that are left out because an earlier row has their query

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def content_hash(self) -> str:
        return hashlib.sha256(f"{self.documents.content_hash} {self.queries.content_hash}".encode()).hexdigest()


def pairs_of_corpus(corpus: Corpus, column: str = QUERY_COLUMN) -> Pairs:
    """A corpus's sentences as documents and a column's texts as queries, for the rows of `rows_of_pairs`.

    Raises InputError without such a column, and for one with CATEGORY_ROWS rows or more to a query: a category.
    """
    if column not in corpus.columns:
        raise InputError(
            f"{corpus.name} has the columns {', '.join([corpus.report.text_column, *corpus.columns])}.",
            f"The columns sentence and {column} (a query for each sentence) are needed.",
            "Rename its columns, or choose another column or file.",
        )
    rows = rows_of_pairs(corpus.columns[column])
    if not rows:
        raise InputError(
            f"{corpus.name} has no row with both a sentence and a query.",
            "At least one such row is needed.",
            "Choose another column or corpus.",
        )
    asking = sum(bool(query.strip()) for query in corpus.columns[column])  # rows with a query
    if CATEGORY_ROWS * len(rows) <= asking:
        raise InputError(
            f"The column {column} of {corpus.name} has {len(rows):,} different "
            f"{'query' if len(rows) == 1 else 'queries'} for {asking:,} rows: it looks like a category.",
            "Each query needs one correct answer, the text of its row: another row with the same query would count as wrong.",
            "Choose a column with a query of its own for each text. Queries with several correct answers are measured by "
            "graded relevance.",
        )
    documents = tuple(corpus.texts[row] for row in rows)
    queries = tuple(corpus.columns[column][row] for row in rows)
    return Pairs(
        corpus.name,
        Texts(corpus.name, documents),
        Texts(f"queries of {corpus.name}", queries),
        len(corpus) - asking,
        _repeated(documents),
        asking - len(rows),
    )


def rows_of_pairs(queries: Sequence[str]) -> list[int]:
    """The rows that are pairs: of those with the same query (spaces around it aside) the first; none without a query.

    The others' texts would be right answers that count as wrong, so they are not searched either.
    """
    first: dict[str, int] = {}
    for row, query in enumerate(queries):
        if query.strip():
            first.setdefault(query.strip(), row)
    return list(first.values())


def _repeated(texts: Sequence[str]) -> int:
    return sum(count for count in Counter(texts).values() if count > 1)


def first_pairs(pairs: Pairs, most: int) -> Pairs:
    """At most the first `most` pairs: only their sentences are searched."""
    if len(pairs) <= most:
        return pairs
    documents = Texts(pairs.documents.name, pairs.documents.texts[:most])
    queries = Texts(pairs.queries.name, pairs.queries.texts[:most])
    return replace(pairs, documents=documents, queries=queries, repeated=_repeated(documents.texts))


def grid_ranks(
    documents: VectorIndex,
    queries: VectorIndex,
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> LayerGrid:
    """Ranks by cosine, from 1, int32 [layer, pooling, query], for each layer and pooling of both indexes, read-only.

    Document i is the correct answer of query i. `progress(done, total)` counts queries over all layers and
    poolings. Raises Cancelled.
    """
    options = queries.info.options
    layers = tuple(layer for layer in options.layers if layer in documents.info.options.layers)
    poolings = tuple(name for name in options.poolings if name in documents.info.options.poolings)
    count, cells = queries.info.sentences, list(product(layers, poolings))
    ranks = np.empty((len(cells), count), np.int32)
    for number, (layer, pooling) in enumerate(cells):
        ranks[number] = gold_ranks(
            queries.engine(layer, pooling).vectors,
            documents.engine(layer, pooling).vectors,
            progress=part_of(progress, number * count, len(cells) * count),
            is_cancelled=is_cancelled,
        )
    return LayerGrid(layers, poolings, read_only(ranks.reshape(len(layers), len(poolings), count)))


def ranking_seconds(pairs: int, dim: int, cells: int) -> float:
    """About how many seconds `grid_ranks` takes on a small machine: every query against every document, for each cell."""
    return 2.0 * pairs * pairs * dim * cells / OPERATIONS_PER_SECOND


class ScoresDocuments(Protocol):
    """The part of a `Ranker` that ranks are computed with."""

    def scores(self, query: str) -> Float32:
        """float32 [document], the higher the better."""
        ...


def ranker_ranks(
    ranker: ScoresDocuments,
    queries: Sequence[str],
    gold: Int64 | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> Int64:
    """Ranks from 1, int64 [query], by a word ranking; documents with the same score come before the correct answer."""
    documents = np.arange(len(queries)) if gold is None else gold
    ranks = np.empty(len(queries), np.int64)
    for number, (query, document) in enumerate(zip(queries, documents, strict=True)):
        if is_cancelled():
            raise Cancelled
        scores = ranker.scores(query)
        own = float(scores[document])
        # The correct answer counts itself; NaN counts against the query.
        ranks[number] = np.count_nonzero(~(scores < own - tolerance(own)))
        if number % 64 == 0:
            progress(number, len(queries))
    progress(len(queries), len(queries))
    return ranks


def vector_milliseconds(
    backend: Backend, documents: VectorIndex, queries: Sequence[str], is_cancelled: IsCancelled = lambda: False
) -> float:
    """Median milliseconds per query: embedding it, scoring every document, and selecting the first ten.

    Measured at one layer and pooling of the index, since all take the same time: the whole model runs, and the vectors
    have the same length. Raises Cancelled.
    """
    # The last layer that is there, and its last pooling: where the model's own vector is stored, it is that one, and as long
    # as what is stored (LoadedModel.vector_size).
    layer, pooling = list(documents.engines)[-1]
    options = backend.embed_options([layer], [pooling], documents.info.options.max_length, "float32", role="query")
    engine = documents.engine(layer, pooling)

    def search(query: str) -> None:
        engine.search(backend.embed([query], options=options)[0, 0], 10)

    return _median_milliseconds(search, queries, is_cancelled)


def ranker_milliseconds(ranker: Ranker, queries: Sequence[str], is_cancelled: IsCancelled = lambda: False) -> float:
    """Median milliseconds per query: scoring every document, and selecting the first ten. Raises Cancelled."""
    return _median_milliseconds(lambda query: top(ranker.scores(query), 10), queries, is_cancelled)


def _median_milliseconds(search: Callable[[str], object], queries: Sequence[str], is_cancelled: IsCancelled) -> float:
    return _median_of(lambda number: search(queries[number]), len(queries), TIMED_QUERIES, is_cancelled)


def second_milliseconds(
    score: Callable[[int, Int64], object], rows: Int64, is_cancelled: IsCancelled = lambda: False
) -> float:
    """Median milliseconds per query to score its candidates, `rows` [query, candidate].

    `score` does it for the query of a number and some of its candidates [candidate]: at most the first 100 are timed, and
    their time is scaled to all. Raises Cancelled, also where `score` does.
    """
    queries, count = rows.shape
    timed = min(count, TIMED_CANDIDATES)
    median = _median_of(lambda number: score(number, rows[number, :timed]), queries, TIMED_SECOND, is_cancelled)
    return median * count / timed


def _median_of(work: Callable[[int], object], queries: int, most: int, is_cancelled: IsCancelled) -> float:
    seconds = []
    for number in (0, *np.linspace(0, queries - 1, min(most, queries)).astype(int)):
        if is_cancelled():
            raise Cancelled
        started = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - started)
    del seconds[0]  # it warms up
    return 1000 * float(np.median(seconds))
