"""What a search costs, now and with a remedy: milliseconds per query, measured, and bytes per text, computed.

A query is timed as a person waits for it: by itself, from its text to the first ten hits. Some queries, the same ones for every
remedy, are searched a few times each; the fastest search of each counts, since other work on the machine only lengthens a time,
and their mean is told. The bytes are those of the arrays by which a text is found, with vectors in float32; a remedy's own are
added to those of the vectors that it needs.

What it does not show: the text itself, which every search keeps, the model's weights, and the time to make an index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.arrays import Float32, Int64
from components.jobs import IsStopped, Stopped
from components.retrieval.failures.remedies.present import FLOAT_BYTES, Present
from components.retrieval.search.exact import ExactSearch

HITS = 10
TIMED, TIMED_SECOND = 5, 2  # queries that are timed; of a cross-encoder
REPEATS = 3  # searches of each
COSTS = (
    "Ms per query: measured on this machine, the mean over some queries of the fastest search of each, from its text to the "
    "first ten hits; other work may have lengthened it. Bytes per text: computed from the arrays by which a text is found, "
    "with vectors in float32."
)

Embed = Callable[[str], Any]  # a query's text -> its vector [dim]


@dataclass(frozen=True)
class SearchCost:
    """What a search costs."""

    milliseconds: float  # per query, measured
    bytes_per_text: float  # computed


def first_hits(embed: Embed, documents: Any, count: int = HITS) -> Callable[[str], Int64]:
    """A search by vectors of one query: from its text to the numbers of its first hits, best first."""
    engine = ExactSearch(np.asarray(documents, np.float32))

    def search(query: str) -> Int64:
        return engine.search(np.asarray(embed(query), np.float32)[None], count).indices[0]

    return search


def cost(
    search: Callable[[str], object],
    queries: Sequence[str],
    bytes_per_text: float,
    is_stopped: IsStopped = lambda: False,
    timed: int = TIMED,
) -> SearchCost:
    """The cost of searches, for at most `timed` of the queries: the mean of the fastest search of each.

    Raises Stopped, also where `search` does.
    """
    numbers = np.linspace(0, len(queries) - 1, min(timed, len(queries))).astype(int).tolist()
    seconds = np.full((REPEATS, len(numbers)), np.inf)
    for repeat in range(REPEATS):
        for place, number in enumerate(numbers):
            if is_stopped():
                raise Stopped
            started = time.perf_counter()
            search(queries[number])
            seconds[repeat, place] = time.perf_counter() - started
    return SearchCost(1000 * float(seconds.min(axis=0).mean()), bytes_per_text)


def cost_now(now: Present, is_stopped: IsStopped = lambda: False) -> SearchCost:
    """What a search by the present vectors costs. Raises Stopped."""
    search = first_hits(now.asked_alone, now.document_vectors)
    return cost(search, now.queries, now.bytes_per_text, is_stopped)


def bytes_of(vectors: Sequence[Float32]) -> float:
    """The bytes of several vectors for each text, on average."""
    return FLOAT_BYTES * float(np.mean([own.size for own in vectors])) if len(vectors) else 0.0
