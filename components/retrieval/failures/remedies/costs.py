"""What a search costs, now and with a remedy: milliseconds per query, measured, and bytes per text, computed.

A query is timed as a person waits for it: by itself, from its text to the first ten hits. Some queries, the same ones for
every remedy, are searched a few times each, after a first time that is not counted; of all these searches the median is told,
which a few that other work on the machine lengthens do not move. A remedy takes turns with a search as it is now, so that
other work lengthens both: the median of their differences is its own part, or 0 where the turns do not agree which is faster
(sign test at 5 %), so that noise is not told as a gain. The bytes are those of the arrays by which a text
is found, with vectors in float32; a remedy's own are added to those of the vectors that it needs. What is kept once, however
many texts there are (the words of a corpus, by which a query is repaired), is no part of them, and told by itself.

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
from components.retrieval.evaluation.chance.paired import mcnemar
from components.retrieval.evaluation.metrics import ALPHA
from components.retrieval.failures.remedies.present import FLOAT_BYTES, Present
from components.retrieval.search.exact import ExactSearch
from components.sizes import in_words

HITS = 10
TIMED, TIMED_SECOND = 5, 2  # queries that are timed; of a cross-encoder
REPEATS = 3  # searches of each
TIMES = (
    "Ms per query: the median time of several searches on this machine, from a query’s text to its first ten hits. What a "
    "remedy takes longer is measured by turns with a search as it is now, and added to the time of that search; a "
    "difference that may be chance is not."
)
BYTES = "Bytes per text: computed from the arrays by which a text is found, with vectors in float32."
COSTS = f"{TIMES} {BYTES}"

Embed = Callable[[str], Any]  # a query's text -> its vector [dim]


@dataclass(frozen=True)
class SearchCost:
    """What a search costs."""

    milliseconds: float  # per query, measured
    bytes_per_text: float  # computed
    bytes_once: float = 0.0  # computed: what is kept beside, whatever the number of texts
    more: float = (
        0.0  # milliseconds per query more than a search as it is now, measured in turn with it; 0 if by chance
    )

    @property
    def once(self) -> str:
        """What is kept beside, in words; "" for nothing."""
        return f" ({in_words(self.bytes_once)}, once)" if self.bytes_once else ""


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
    bytes_once: float = 0.0,
    now: Callable[[str], object] | None = None,
) -> SearchCost:
    """The cost of searches, for at most `timed` of the queries: the median of all but the first search of each.

    That one warms up: the first text of a length costs more than the next, by as much as the whole search. A search as it is
    `now` takes turns with each.

    Raises Stopped, also where `search` does.
    """
    numbers = np.linspace(0, len(queries) - 1, min(timed, len(queries))).astype(int).tolist()
    searches = (search,) if now is None else (now, search)
    times = np.zeros((len(numbers) * (1 + REPEATS), len(searches)))
    for row, number in enumerate(numbers * (1 + REPEATS)):
        if is_stopped():
            raise Stopped
        for column in range(len(searches))[:: (1, -1)[row % 2]]:  # the second of the two has an advantage
            started = time.perf_counter()
            searches[column](queries[number])
            times[row, column] = 1000 * (time.perf_counter() - started)
    own, more = times[len(numbers) :, -1], times[len(numbers) :, -1] - times[len(numbers) :, 0]
    is_sure = mcnemar(int((more > 0).sum()), int((more < 0).sum())) < ALPHA
    return SearchCost(float(np.median(own)), bytes_per_text, bytes_once, float(np.median(more)) * is_sure)


def cost_now(now: Present, is_stopped: IsStopped = lambda: False) -> SearchCost:
    """What a search by the present vectors costs. Raises Stopped."""
    search = first_hits(now.asked_alone, now.document_vectors)
    return cost(search, now.queries, now.bytes_per_text, is_stopped)


def bytes_of(vectors: Sequence[Float32]) -> float:
    """The bytes of several vectors for each text, on average."""
    return FLOAT_BYTES * float(np.mean([own.size for own in vectors])) if len(vectors) else 0.0
