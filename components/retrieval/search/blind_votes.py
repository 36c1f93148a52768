"""Votes on two rankings whose names nobody sees: people say which list of hits is better, query by query.

A query's value is the mean over its votes, where a vote for the first ranking counts 1, for both alike 1/2, for the second
0. The estimate is the mean over queries with its 95 % interval (`metrics.interval`): queries are the sample, since votes on
one query are not independent of each other. At 1/2 neither is preferred.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from cachetools import TTLCache

from components.retrieval.evaluation import metrics

FIRST, ALIKE, SECOND = 1.0, 0.5, 0.0  # the value of a vote
HOURS_KEPT = 12  # after the last vote on a comparison
MOST_COMPARISONS, MOST_QUERIES, MOST_PEOPLE = 500, 200, 1_000  # of each; votes beyond are not counted


@dataclass(frozen=True)
class QueryVotes:
    """The votes on one query."""

    query: str
    first: int
    alike: int
    second: int

    @property
    def count(self) -> int:
        return self.first + self.alike + self.second

    @property
    def value(self) -> float:
        """The mean of its votes, 0..1."""
        return (FIRST * self.first + ALIKE * self.alike) / self.count


def preference(votes: Sequence[QueryVotes]) -> metrics.Interval:
    """How far the first ranking is preferred, 0..1, with its 95 % interval over queries. Raises ValueError without a vote."""
    return metrics.interval(np.array([each.value for each in votes if each.count]))


def is_first_left(comparison: str, query: str) -> bool:
    """Whether the first ranking of a comparison stands on the left: the same for everybody, and by chance for each query."""
    return hashlib.sha256(f"{comparison}\n{query}".encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0


class BlindVotes:
    """The votes of all people, by comparison and query; safe for threads. Nothing is written to a file.

    A person is any mark that tells sessions apart; it is kept to count each session once, and never given out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._votes: TTLCache[Hashable, dict[str, dict[Hashable, float]]] = TTLCache(
            MOST_COMPARISONS, HOURS_KEPT * 3600, clock
        )
        self._lock = threading.Lock()

    def give(self, comparison: Hashable, query: str, person: Hashable, value: float) -> None:
        """Count a person's vote on a query, in place of the one before. Raises ValueError for another value."""
        if value not in (FIRST, ALIKE, SECOND):
            raise ValueError(f"{value} is no vote")
        with self._lock:
            queries = self._votes.get(comparison, {})
            of_query = queries.get(query, {})
            if (query in queries or len(queries) < MOST_QUERIES) and (
                person in of_query or len(of_query) < MOST_PEOPLE
            ):
                of_query[person] = value
                queries[query] = of_query
            self._votes[comparison] = queries  # set again: its time begins anew

    def of_person(self, comparison: Hashable, query: str, person: Hashable) -> float | None:
        """A person's own vote on a query."""
        with self._lock:
            return self._votes.get(comparison, {}).get(query, {}).get(person)

    def votes(self, comparison: Hashable) -> tuple[QueryVotes, ...]:
        """The votes on each query, in the order in which the queries were first voted on."""
        with self._lock:
            given = {query: list(people.values()) for query, people in self._votes.get(comparison, {}).items()}
        return tuple(
            QueryVotes(query, *(values.count(value) for value in (FIRST, ALIKE, SECOND)))
            for query, values in given.items()
        )
