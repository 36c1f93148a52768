"""The queries of a corpus whose own text does not rank first, each with the text that does: its rival.

A rank counts the texts whose cosine with the query is at least that of the right text, so that ties count against the query
(components.retrieval.evaluation.ranks). Equal texts are one text, as everywhere: a rank counts one that is repeated once,
and a text that is equal to a right one is no rival. Rows with the same query all hold right texts for it: none of them is a
rival, and the query fails only if another text ranks before all of them.

What it does not show: whether the rival is wrong. Only the query's own texts count as right, and the rival may answer the
query as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from components.arrays import Float32, Float64, Int64, cosine, read_only
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.corpora.texts import Texts, first_rows
from components.retrieval.evaluation.pair_runs import Pairs, pairs_of_rows
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.search.exact import NEAR, SAME, ExactSearch

MOST_SUCCESSES = 500
SEED = 0  # of their sample
NEVER = -2.0  # a cosine that no text has, for those that are not searched
_BLOCK = 256  # queries between two looks at `is_stopped`


@dataclass(frozen=True, eq=False)
class SearchedCorpus:
    """The texts of a corpus, and the queries of its query column if it has one."""

    documents: Texts  # without the corpus's other columns
    queries: Texts  # of the rows that have one
    rows: Int64  # [query]: the row of each query's own text
    every_text: bool = True  # whether texts that stand only on rows without a query are searched too

    @cached_property
    def right_rows(self) -> dict[str, tuple[int, ...]]:
        """Each query, without spaces around it, to the rows of its right texts."""
        rows: dict[str, list[int]] = {}
        for query, row in zip(self.queries.texts, self.rows.tolist(), strict=True):
            rows.setdefault(query.strip(), []).append(row)
        return {query: tuple(own) for query, own in rows.items()}

    @cached_property
    def first_of(self) -> Int64:
        """[text]: the row of the first searched text that is equal to it; -1 for a text that is not searched."""
        return first_rows(self.documents.texts, None if self.every_text else self.rows.tolist())

    @cached_property
    def firsts(self) -> Int64:
        """The rows of the different texts that are searched, each where it stands first."""
        return read_only(np.flatnonzero(self.first_of == np.arange(len(self.first_of))))

    @cached_property
    def place_of(self) -> Int64:
        """[text]: the place of a searched text among the different ones, as `firsts` has them."""
        return read_only(np.searchsorted(self.firsts, self.first_of))

    def no_rivals(self, right_rows: Sequence[int]) -> tuple[int, ...]:
        """The rows that are not counted before a query's right texts: these, those equal to them, and all but the first of
        the other equal ones."""
        is_rival = np.zeros(len(self.first_of), bool)
        is_rival[self.firsts] = True
        is_rival[np.isin(self.first_of, self.first_of[list(right_rows)])] = False
        return tuple(np.flatnonzero(~is_rival).tolist())

    @cached_property
    def pairs(self) -> Pairs:
        """The different queries with their right texts, and the different texts that are searched, as `firsts` has them."""
        queries = [""] * len(self.documents)
        for query, row in zip(self.queries.texts, self.rows.tolist(), strict=True):
            queries[row] = query
        return pairs_of_rows(self.documents.name, self.documents.texts, queries, every_text=self.every_text)

    @cached_property
    def first_queries(self) -> Int64:
        """The number of the first of equal queries, for each query of `pairs`."""
        return read_only(np.array([self.number_of[own[0]] for own in self.right_rows.values()], np.int64))

    @cached_property
    def number_of(self) -> dict[int, int]:
        """The row of a text to the number of its query."""
        return {row: number for number, row in enumerate(self.rows.tolist())}


def searched_corpus(corpus: Corpus, column: str | None, every_text: bool = True) -> SearchedCorpus:
    """A corpus as texts and queries; without a column of queries, or with an empty one, it has no queries.

    Without `every_text` the texts of rows without a query are not searched, unless no row has one.
    """
    values = () if column is None else corpus.columns[column]
    rows = [row for row, query in enumerate(values) if query.strip()]
    return SearchedCorpus(
        Texts(corpus.name, corpus.texts),
        Texts(f"queries of {corpus.name}", tuple(values[row] for row in rows)),
        read_only(np.array(rows, np.int64)),
        every_text or not rows,
    )


@dataclass(frozen=True)
class Placing:
    """Where a query's right text ranks, and which text is its strongest rival."""

    row: int  # of the right text
    rank: int  # from 1
    rival: int  # the row of the best text that is not right
    right_cosine: float
    rival_cosine: float

    @property
    def lead(self) -> float:
        """How much nearer the rival is to the query than the right text; negative if the right text ranks first."""
        return self.rival_cosine - self.right_cosine

    @property
    def is_failed(self) -> bool:
        return self.rank > 1


def placing(query: Float32, row: int, no_rivals: Sequence[int], engine: ExactSearch) -> Placing:
    """Where the text of `row` ranks for a query [dim] among the others, without the rows `no_rivals` (see SearchedCorpus).

    Raises InputError for a corpus without another text.
    """
    others = np.ones(len(engine.vectors), bool)
    others[[row, *no_rivals]] = False
    if not others.any():
        raise InputError(
            "The corpus has no text that is not right for this query.",
            "A search fails if another text ranks before the right one.",
            "Choose another query or corpus.",
        )
    scores = engine.scores(query)
    own = float(cosine(query, engine.vectors[row]))
    before = scores > own + NEAR
    near = np.flatnonzero(np.abs(scores - own) <= NEAR)
    before[near] = cosine(query[None], engine.vectors[near]) >= own - SAME
    best = engine.hits_of(query, np.where(others, scores, np.float32(NEVER)), 1)
    rank = int(np.count_nonzero(before & others)) + 1
    return Placing(row, rank, int(best.indices[0, 0]), own, float(best.scores[0, 0]))


@dataclass(frozen=True, eq=False)
class FailedQueries:
    """The failed queries of a corpus at one layer and pooling, in the order of the corpus."""

    placings: tuple[Placing, ...]
    queries: int  # how many different queries were ranked
    successes: tuple[Placing, ...] = ()  # queries that do not fail, to compare with; of many a seeded sample

    def __len__(self) -> int:
        return len(self.placings)

    @property
    def leads(self) -> Float64:
        """float64 [failure]: how much nearer the rival is to the query than the right text."""
        return np.array([item.lead for item in self.placings])

    def in_order(self, order: str) -> tuple[Placing, ...]:
        """The failures with the lowest rank of the right text first ("worst"), or with the smallest lead ("nearest")."""
        if order == "nearest":
            return tuple(sorted(self.placings, key=lambda item: (item.lead, item.row)))
        return tuple(sorted(self.placings, key=lambda item: (-item.rank, -item.lead, item.row)))


def find_failures(
    corpus: SearchedCorpus,
    queries: Float32,
    engine: ExactSearch,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> FailedQueries:
    """The failed ones of a corpus's queries, with their vectors [query, dim]. `progress(done, total)` counts queries.

    Of several rows with one query only the row whose text ranks best is given. A query that only a text equal to its own comes
    before does not fail. Raises Stopped, and InputError for vectors
    that are not finite.
    """
    ranks = gold_ranks(queries, engine.vectors, corpus.rows, progress, is_stopped)
    best: dict[str, int] = {}  # each query to the number of the row that ranks best
    for number, text in enumerate(corpus.queries.texts):
        earlier = best.setdefault(text.strip(), number)
        if ranks[number] < ranks[earlier]:
            best[text.strip()] = number
    suspects = [number for number in best.values() if ranks[number] > 1]
    first = np.array([number for number in best.values() if ranks[number] == 1], np.int64)
    chosen = np.sort(np.random.default_rng(SEED).permutation(first)[:MOST_SUCCESSES])
    placings = []
    for done, number in enumerate([*suspects, *chosen.tolist()]):
        if done % _BLOCK == 0 and is_stopped():
            raise Stopped
        no_rivals = corpus.no_rivals(corpus.right_rows[corpus.queries.texts[number].strip()])
        if len(no_rivals) < len(engine.vectors):
            vector = np.asarray(queries[number], np.float32)
            placings.append(placing(vector, int(corpus.rows[number]), no_rivals, engine))
    placings.sort(key=lambda item: item.row)
    failed, others = ([item for item in placings if item.is_failed is wanted] for wanted in (True, False))
    return FailedQueries(tuple(failed), len(best), tuple(others))
