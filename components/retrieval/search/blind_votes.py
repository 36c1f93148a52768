"""Votes on two rankings whose names nobody sees: people say which list of hits is better, query by query, and mark good hits.

A query's value is the mean over its votes, where a vote for the first ranking counts 1, for both alike 1/2, for the second
0. The estimate is the mean over queries with its 95 % interval (`metrics.interval`): queries are the sample, since votes on
one query are not independent of each other. At 1/2 neither is preferred.

A hit that stands in both lists is marked once and counts for both. What a person marked becomes the share of each list's hits
(precision at k). Who marks nothing is not counted: they may not have looked.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from cachetools import TTLCache

from components.retrieval.evaluation import metrics

FIRST, ALIKE, SECOND = 1.0, 0.5, 0.0  # the value of a vote
HOURS_KEPT = 12  # after the last vote on a comparison
MOST_COMPARISONS, MOST_QUERIES, MOST_PEOPLE = 200, 100, 500  # of each; votes beyond are not counted


@dataclass(frozen=True)
class Alone:
    """A part of a comparison on which one person alone votes."""

    person: Hashable


@dataclass(frozen=True)
class QueryVotes:
    """The votes on one query, and what people marked in its lists."""

    query: str
    first: int = 0
    alike: int = 0
    second: int = 0
    markers: int = 0  # people who marked at least one hit
    good_first: float = 0.0  # the share of the first list's hits that they marked, 0..1, on average
    good_second: float = 0.0

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


def marked_difference(votes: Sequence[QueryVotes]) -> metrics.Interval:
    """The share of marked hits in the first list minus that in the second, -1..1, with its 95 % interval over queries.

    Raises ValueError where nobody marked a hit.
    """
    return metrics.difference_interval(np.array([each.good_first - each.good_second for each in votes if each.markers]))


def is_first_left(comparison: str, query: str) -> bool:
    """Whether the first ranking of a comparison stands on the left: the same for everybody, and by chance for each query."""
    return hashlib.sha256(f"{comparison}\n{query}".encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0


class BlindVotes:
    """The votes of all people, by comparison and query; safe for threads. Nothing is written to a file.

    A person is any mark that tells people apart; it is kept to count each of them once, and never given out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._comparisons: TTLCache[Hashable, dict[str, _QueryVotes]] = TTLCache(
            MOST_COMPARISONS, HOURS_KEPT * 3600, clock
        )
        self._lock = threading.Lock()

    def give(self, comparison: Hashable, query: str, person: Hashable, value: float) -> None:
        """Count a person's vote on a query, in place of the one before. Raises ValueError for another value."""
        if value not in (FIRST, ALIKE, SECOND):
            raise ValueError(f"{value} is no vote")
        with self._lock:
            given = self._of_query(comparison, query)
            if given is not None and _has_room(given.votes, person):
                given.votes[person] = value

    def take_back(self, comparison: Hashable, query: str, person: Hashable) -> None:
        """Count a person's vote on a query no longer."""
        with self._lock:
            self._find(comparison, query).votes.pop(person, None)

    def mark(
        self,
        comparison: Hashable,
        query: str,
        person: Hashable,
        rows: Collection[int],
        lists: tuple[Collection[int], Collection[int]],
    ) -> None:
        """Keep which sentences a person marked as good hits, in place of those before.

        `lists` are the sentences in the first and the second list that the person sees; others are not counted.
        """
        shown = frozenset().union(*lists)
        marked = frozenset(rows) & shown
        with self._lock:
            given = self._of_query(comparison, query)
            if given is None:
                return
            if not marked:
                given.marks.pop(person, None)
            elif _has_room(given.marks, person):
                first, second = (len(marked.intersection(rows)) / len(rows) for rows in lists)
                given.marks[person] = _Marks(marked, first, second)

    def reveal(self, comparison: Hashable, query: str, person: Hashable) -> None:
        """Remember that a person who has voted on a query has seen which of its lists is which."""
        with self._lock:
            given = self._find(comparison, query)
            if person in given.votes:
                given.revealed.add(person)

    def is_revealed(self, comparison: Hashable, query: str, person: Hashable) -> bool:
        """Whether a person has seen which of a query's lists is which."""
        with self._lock:
            return person in self._find(comparison, query).revealed

    def move(self, person: Hashable, to: Hashable) -> None:
        """Count all that a person gave for another mark of the same person, in place of what was counted for that one.

        What the other mark has seen, it has seen: its vote on such a query stays.
        """
        with self._lock:
            for comparison in list(self._comparisons):
                for query, given in list(self._comparisons.get(comparison, {}).items()):
                    given.move(person, to)
                    if isinstance(comparison, tuple) and Alone(person) in comparison:
                        renamed = tuple(Alone(to) if part == Alone(person) else part for part in comparison)
                        if (target := self._of_query(renamed, query)) is not None:
                            target.add(given)
                if isinstance(comparison, tuple) and Alone(person) in comparison:
                    self._comparisons.pop(comparison, None)

    def of_person(self, comparison: Hashable, query: str, person: Hashable) -> float | None:
        """A person's own vote on a query."""
        with self._lock:
            return self._find(comparison, query).votes.get(person)

    def marked_by(self, comparison: Hashable, query: str, person: Hashable) -> frozenset[int]:
        """The sentences that a person marked as good hits of a query."""
        with self._lock:
            marks = self._find(comparison, query).marks.get(person)
        return frozenset() if marks is None else marks.rows

    def votes(self, comparison: Hashable) -> tuple[QueryVotes, ...]:
        """The votes on each query, in the order in which the queries were first voted on."""
        with self._lock:
            given = {
                query: (list(given.votes.values()), list(given.marks.values()))
                for query, given in self._comparisons.get(comparison, {}).items()
                if given.votes or given.marks
            }
        return tuple(
            QueryVotes(
                query,
                values.count(FIRST),
                values.count(ALIKE),
                values.count(SECOND),
                len(marks),
                float(np.mean([each.first for each in marks])) if marks else 0.0,
                float(np.mean([each.second for each in marks])) if marks else 0.0,
            )
            for query, (values, marks) in given.items()
        )

    def _find(self, comparison: Hashable, query: str) -> _QueryVotes:
        """What was given on a query; empty if nothing was."""
        return self._comparisons.get(comparison, {}).get(query) or _QueryVotes()

    def _of_query(self, comparison: Hashable, query: str) -> _QueryVotes | None:
        """The same to add to; None where there is no room for another query."""
        queries = self._comparisons.get(comparison, {})
        self._comparisons[comparison] = queries  # set again: its time begins anew
        if query not in queries and len(queries) >= MOST_QUERIES:
            return None
        return queries.setdefault(query, _QueryVotes())


@dataclass(frozen=True)
class _Marks:
    """What one person marked in the lists of a query."""

    rows: frozenset[int]
    first: float  # the share of the first list's hits, 0..1
    second: float


@dataclass
class _QueryVotes:
    """What people gave on one query, by person."""

    votes: dict[Hashable, float] = field(default_factory=dict)
    marks: dict[Hashable, _Marks] = field(default_factory=dict)
    revealed: set[Hashable] = field(default_factory=set)  # who has voted, and seen which list is which

    def move(self, person: Hashable, to: Hashable) -> None:
        """Give to one mark what another gave; a vote that was given before the lists were seen stays."""
        vote, marks = self.votes.pop(person, None), self.marks.pop(person, None)
        if vote is not None and to not in self.revealed:
            self.votes[to] = vote
        if marks is not None:
            self.marks[to] = marks
        if person in self.revealed:
            self.revealed.remove(person)
            self.revealed.add(to)

    def add(self, other: _QueryVotes) -> None:
        """Take what was given elsewhere on the same query; a vote that was given before the lists were seen stays."""
        self.votes.update({person: vote for person, vote in other.votes.items() if person not in self.revealed})
        self.marks.update(other.marks)
        self.revealed |= other.revealed


def _has_room(given: Collection[Hashable], person: Hashable) -> bool:
    return person in given or len(given) < MOST_PEOPLE
