"""Retrieval on pairs, by indexes on disk and by word rankings: the ranks that are compared.

Documents and queries are two float32 indexes of one model (components.retrieval.index.folder), so that every layer and
pooling comes from one embedding pass, a stopped pass continues, and nothing is embedded twice. Of a run only the ranks of
each query's correct answers are kept, from which every measure follows.

The time per query is measured one query at a time, as a person waits for it: embedding or counting, scoring all
documents, and selecting the first ten. It depends on the machine; the order of the methods does so far less.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64, read_only
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.numbers import counted
from components.retrieval.corpora.columns import called
from components.retrieval.corpora.rows.reading import RowCounts
from components.retrieval.corpora.rows.same import normalised
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation.graded.ranks import ranker_relevant_ranks, vector_relevant_ranks
from components.retrieval.evaluation.layer_grid import LayerGrid
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import NOT_FOUND, TIED, ScoresDocuments, gold_ranks, tolerance
from components.retrieval.fusion.ranks import ScoresOf, fused_ranks
from components.retrieval.search.exact import top

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.fusion.scores import Fusion
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.lexical import Ranker

QUERY_COLUMN = "compressed"
CATEGORY_ROWS = 4  # correct answers of a query, on average: so many has a question seldom
TIMED_QUERIES = 12
TIMED_SECOND = 5  # queries whose second stage is timed: each may take a second
TIMED_CANDIDATES = 100  # of such a query; the time of more follows from theirs, since each is scored by itself
OPERATIONS_PER_SECOND = 1.2e11  # of float32 products and their comparisons, measured on two cores


@dataclass(frozen=True, eq=False)
class Pairs:
    """Queries and the documents that they search, with the correct answers among these.

    By default document i is the only correct answer of query i.
    """

    name: str
    documents: Texts
    queries: Texts
    left_out: int  # rows without a query
    repeated: int = 0  # rows with the text of an earlier row, which is searched once
    answers: tuple[tuple[int, ...], ...] | None = (
        None  # [query], the numbers of its correct answers; None for the default
    )
    column: str = ""  # that holds the queries
    unsearched: int = 0  # different texts that stand only on rows without a query, where these are not searched
    rows: RowCounts = field(
        default_factory=partial(RowCounts, 0)
    )  # of the whole file, apart from those that could not be read
    asking: int = 0  # rows of the whole file that have a query; 0 for a part of its queries

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def content_hash(self) -> str:
        own = "" if self.answers is None else f" {self.answers}"
        return hashlib.sha256(f"{self.documents.content_hash} {self.queries.content_hash}{own}".encode()).hexdigest()

    @cached_property
    def right_texts(self) -> int:
        """The number of correct answers of all queries."""
        return len(self) if self.answers is None else sum(map(len, self.answers))

    @cached_property
    def others(self) -> int:
        """The number of documents that are no correct answer of a query: they stand on rows without one."""
        return 0 if self.answers is None else len(self.documents) - len(set().union(*self.answers))

    @property
    def shared(self) -> int:
        """The number of rows with the text of an earlier row, and with another query or none."""
        return self.repeated - self.rows.repeated

    @property
    def asked(self) -> str:
        """How many queries there are, in words: "4 queries", or "10 rows, 4 different queries" where rows repeat one."""
        is_repeated = self.asking > len(self)
        queries = counted(len(self), *(f"{'different ' * is_repeated}{word}" for word in ("query", "queries")))
        return f"{counted(self.asking, 'row')}, {queries}" if is_repeated else queries

    @property
    def has_several(self) -> bool:
        """Whether a query has several correct answers."""
        return self.right_texts > len(self)

    def answers_of(self, query: int) -> tuple[int, ...]:
        """The numbers of the documents that are correct answers of a query."""
        return (query,) if self.answers is None else self.answers[query]

    @cached_property
    def gold(self) -> Int64 | None:
        """The number of each query's first correct answer, int64 [query]; None where it has the query's own number."""
        return None if self.answers is None else np.array([own[0] for own in self.answers], np.int64)

    @cached_property
    def grades(self) -> tuple[Mapping[int, int], ...]:
        """The correct answers as judgements of grade 1, [query]."""
        return tuple(dict.fromkeys(self.answers_of(query), 1) for query in range(len(self)))

    def ranks_by_vectors(
        self,
        queries: NDArray[np.floating],
        documents: NDArray[np.floating],
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
        cosine: bool = True,
    ) -> Ranks:
        """The ranks of the correct answers by vectors [query, dim] and [document, dim], as `gold_ranks` does."""
        if self.has_several:
            return vector_relevant_ranks(queries, documents, self.grades, progress, is_stopped, cosine)
        return gold_ranks(queries, documents, self.gold, progress, is_stopped, cosine)

    def ranks_by_words(
        self,
        ranker: ScoresDocuments,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Ranks:
        """The ranks of the correct answers by a word ranking over the documents."""
        if self.has_several:
            return ranker_relevant_ranks(
                ranker.scores, self.queries.texts, self.grades, progress, is_stopped, TIED, ranker.floor
            )
        return ranker_ranks(ranker, self.queries.texts, self.gold, progress, is_stopped)

    def ranks_by_fusions(
        self,
        runs: Sequence[ScoresOf],
        fusions: Sequence[Fusion],
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> list[Ranks]:
        """The ranks of the correct answers by each fusion of runs."""
        answers = self.grades if self.has_several else self.gold
        return fused_ranks(runs, fusions, (len(self), len(self.documents)), answers, progress, is_stopped)

    @cached_property
    def why_not_measured(self) -> str:
        """What the rows have where nothing can be measured, as in "one answer in all"; "" where there is something to find.

        Nothing is where every document is a correct answer of every query: a ranking finds one first whatever the model does.
        Documents that are the same after `normalised` count as one: "Yes." and "yes".
        """
        forms = list(map(normalised, self.documents.texts))
        different = len(set(forms))
        if any(len({forms[number] for number in self.answers_of(query)}) < different for query in range(len(self))):
            return ""
        return "one answer in all" if different == 1 else "no answer that is wrong for one of the queries"

    @property
    def can_be_measured(self) -> bool:
        """Whether retrieval can be measured at all: see `why_not_measured`."""
        return not self.why_not_measured

    def check_measurable(self) -> None:
        """Raise InputError where nothing can be measured: see `why_not_measured`."""
        if self.can_be_measured:
            return
        if self.why_not_measured == "one answer in all":
            raise InputError(
                f"{self.name} has one sentence with a query, so that retrieval cannot be measured.",
                "At least two different ones are needed, capitals and punctuation aside: every query would find the only "
                "sentence.",
                "Choose another column or file; on a page at its top, under “Corpus”.",
            )
        raise InputError(
            f"In {self.name} every sentence is a correct answer of every query, so that retrieval cannot be measured.",
            "At least one sentence must be wrong for a query: each query would find a correct answer whatever the model does.",
            "Choose another column or file; on a page at its top, under “Corpus”.",
        )

    @property
    def warning(self) -> str:
        """That the queries look like a category, in one sentence; "" where they do not."""
        if self.right_texts < CATEGORY_ROWS * len(self):
            return ""
        values = "value" if len(self) == 1 else "values"
        return (
            f"The {called(self.column or QUERY_COLUMN)} has {len(self):,} different {values} for {self.right_texts:,} texts, "
            "so that it looks like a category: if it is one, these measures say how often a text of the category comes first, "
            "and not how well a query finds its answer."
        )


def pairs_of_corpus(corpus: Corpus, column: str = QUERY_COLUMN, every_text: bool = False) -> Pairs:
    """A corpus's sentences as documents and a column's texts as queries, for the rows that have both.

    Rows with one query (spaces around it aside) all hold correct answers of it, and equal sentences are one document. With
    `every_text` the sentences of rows without a query are searched too.
    Raises InputError without such a column, or without such a row.
    """
    if column not in corpus.columns:
        raise InputError(
            f"{corpus.name} has the columns {', '.join([corpus.report.text_column, *corpus.columns])}.",
            f"The columns sentence and {column} (a query for each sentence) are needed.",
            "Rename its columns, or choose another column or file.",
        )
    pairs = pairs_of_rows(corpus.name, corpus.texts, corpus.columns[column], column, every_text)
    if not len(pairs):
        raise InputError(
            f"{corpus.name} has no row with both a sentence and a query.",
            "At least one such row is needed.",
            "Choose another column or corpus.",
        )
    return pairs


def pairs_of_rows(
    name: str, texts: Sequence[str], queries: Sequence[str], column: str = "", every_text: bool = False
) -> Pairs:
    """Rows of a text and a query as documents and queries, grouped as `pairs_of_corpus` says; no query where no row has one."""
    asking = [row for row, query in enumerate(queries) if query.strip()]
    documents: dict[str, int] = {}
    for text in texts if every_text else ():
        documents.setdefault(text, len(documents))
    answers: dict[str, dict[int, None]] = {}  # of each query, in the order of the rows
    for row in asking:
        number = documents.setdefault(texts[row], len(documents))
        answers.setdefault(queries[row].strip(), {})[number] = None
    used, without = sum(map(len, answers.values())), len(queries) - len(asking)
    return _pairs(
        name,
        tuple(documents),
        tuple(queries[row] for row in rows_of_queries(queries)),
        tuple(tuple(own) for own in answers.values()),
        without,
        (len(texts) if every_text else len(asking)) - len(documents),
        column,
        0 if every_text else len(set(texts) - documents.keys()),
        RowCounts(used, len(asking) - used, *((without, 0) if every_text else (0, without))),
        len(asking),
    )


def rows_of_queries(queries: Sequence[str]) -> list[int]:
    """The first row of each different query (spaces around it aside), in their order; rows without a query have none."""
    first: dict[str, int] = {}
    for row, query in enumerate(queries):
        if query.strip():
            first.setdefault(query.strip(), row)
    return list(first.values())


def _pairs(
    name: str,
    documents: tuple[str, ...],
    queries: tuple[str, ...],
    answers: tuple[tuple[int, ...], ...],
    left_out: int,
    repeated: int,
    column: str,
    unsearched: int,
    rows: RowCounts,
    asking: int = 0,
) -> Pairs:
    is_default = len(documents) == len(queries) and all(own == (query,) for query, own in enumerate(answers))
    return Pairs(
        name,
        Texts(name, documents),
        Texts(f"queries of {name}", queries),
        left_out,
        repeated,
        None if is_default else answers,
        column,
        unsearched,
        rows,
        asking,
    )


def first_pairs(pairs: Pairs, most: int) -> Pairs:
    """At most the first `most` queries: only their correct answers are searched."""
    return pairs if len(pairs) <= most else some_pairs(pairs, range(most))


def some_pairs(pairs: Pairs, chosen: Sequence[int]) -> Pairs:
    """The queries of some numbers: only their correct answers are searched, in the order of the documents."""
    kept = sorted({number for query in chosen for number in pairs.answers_of(query)})
    numbers = {number: place for place, number in enumerate(kept)}
    return _pairs(
        pairs.name,
        tuple(pairs.documents.texts[number] for number in kept),
        tuple(pairs.queries.texts[query] for query in chosen),
        tuple(tuple(numbers[number] for number in pairs.answers_of(query)) for query in chosen),
        pairs.left_out,
        pairs.repeated,
        pairs.column,
        pairs.unsearched,
        pairs.rows,
    )


def asked_of(pairs: Pairs, chosen: Sequence[int]) -> Pairs:
    """The queries of some numbers; all documents are searched."""
    queries = Texts(pairs.queries.name, tuple(pairs.queries.texts[query] for query in chosen))
    return replace(pairs, queries=queries, answers=tuple(map(pairs.answers_of, chosen)), asking=0)


def grid_ranks(
    documents: VectorIndex,
    queries: VectorIndex,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    pairs: Pairs | None = None,
) -> LayerGrid:
    """Ranks by cosine, from 1, int32 [layer, pooling, query], for each layer and pooling of both indexes, read-only.

    Document i is the correct answer of query i, or `pairs` say which documents are; where queries have several, the grid
    holds the RelevantRanks of each cell. `progress(done, total)` counts queries over all layers and poolings. Raises
    Stopped.
    """
    options = queries.info.options
    layers = tuple(layer for layer in options.layers if layer in documents.info.options.layers)
    poolings = tuple(name for name in options.poolings if name in documents.info.options.poolings)
    count, cells = queries.info.sentences, list(product(layers, poolings))
    has_several = pairs is not None and pairs.has_several
    ranks: Any = np.empty(len(cells), object) if has_several else np.empty((len(cells), count), np.int32)
    rank = gold_ranks if pairs is None else pairs.ranks_by_vectors
    for number, (layer, pooling) in enumerate(cells):
        ranks[number] = rank(
            queries.engine(layer, pooling).vectors,
            documents.engine(layer, pooling).vectors,
            progress=part_of(progress, number * count, len(cells) * count),
            is_stopped=is_stopped,
        )
    return LayerGrid(layers, poolings, read_only(ranks.reshape(len(layers), len(poolings), *ranks.shape[1:])))


def ranking_seconds(pairs: int, dim: int, cells: int) -> float:
    """About how many seconds `grid_ranks` takes on a small machine: every query against every document, for each cell."""
    return 2.0 * pairs * pairs * dim * cells / OPERATIONS_PER_SECOND


def ranker_ranks(
    ranker: ScoresDocuments,
    queries: Sequence[str],
    gold: Int64 | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Int64:
    """Ranks from 1, int64 [query], by a word ranking; documents with the same score come before the correct answer.

    A correct answer that has nothing in common with its query is not found: NOT_FOUND is its rank.
    """
    documents = np.arange(len(queries)) if gold is None else gold
    ranks = np.empty(len(queries), np.int64)
    for number, (query, document) in enumerate(zip(queries, documents, strict=True)):
        if is_stopped():
            raise Stopped
        scores = ranker.scores(query)
        own = float(scores[document])
        # The correct answer counts itself; NaN counts against the query.
        ranks[number] = np.count_nonzero(~(scores < own - tolerance(own)))
        if own <= ranker.floor(query) + tolerance(own):
            ranks[number] = NOT_FOUND
        if number % 64 == 0:
            progress(number, len(queries))
    progress(len(queries), len(queries))
    return ranks


def vector_milliseconds(
    backend: Backend, documents: VectorIndex, queries: Sequence[str], is_stopped: IsStopped = lambda: False
) -> float:
    """Median milliseconds per query: embedding it, scoring every document, and selecting the first ten.

    Measured at one layer and pooling of the index, since all take the same time: the whole model runs, and the vectors
    have the same length. Raises Stopped.
    """
    # The last layer that is there, and its last pooling: where the model's own vector is stored, it is that one, and as long
    # as what is stored (LoadedModel.vector_size).
    layer, pooling = list(documents.engines)[-1]
    options = backend.embed_options([layer], [pooling], documents.info.options.max_length, "float32", role="query")
    engine = documents.engine(layer, pooling)

    def search(query: str) -> None:
        engine.search(backend.embed([query], options=options)[0, 0], 10)

    return _median_milliseconds(search, queries, is_stopped)


def ranker_milliseconds(ranker: Ranker, queries: Sequence[str], is_stopped: IsStopped = lambda: False) -> float:
    """Median milliseconds per query: scoring every document, and selecting the first ten. Raises Stopped."""
    return _median_milliseconds(lambda query: top(ranker.scores(query), 10), queries, is_stopped)


def _median_milliseconds(search: Callable[[str], object], queries: Sequence[str], is_stopped: IsStopped) -> float:
    return _median_of(lambda number: search(queries[number]), len(queries), TIMED_QUERIES, is_stopped)


def second_milliseconds(
    score: Callable[[int, Int64], object], rows: Int64, is_stopped: IsStopped = lambda: False
) -> float:
    """Median milliseconds per query to score its candidates, `rows` [query, candidate].

    `score` does it for the query of a number and some of its candidates [candidate]: at most the first 100 are timed, and
    their time is scaled to all. Raises Stopped, also where `score` does.
    """
    queries, count = rows.shape
    timed = min(count, TIMED_CANDIDATES)
    median = _median_of(lambda number: score(number, rows[number, :timed]), queries, TIMED_SECOND, is_stopped)
    return median * count / timed


def _median_of(work: Callable[[int], object], queries: int, most: int, is_stopped: IsStopped) -> float:
    seconds = []
    for number in (0, *np.linspace(0, queries - 1, min(most, queries)).astype(int)):
        if is_stopped():
            raise Stopped
        started = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - started)
    del seconds[0]  # it warms up
    return 1000 * float(np.median(seconds))
