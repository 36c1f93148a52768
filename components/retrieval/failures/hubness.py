"""Hubs: texts that stand among the first hits of many queries, whatever the queries ask.

The k-occurrence of a text is the number of queries in whose first k hits it stands (Radovanović, Nanopoulos and Ivanović
2010, "Hubs in space: popular nearest neighbors in high-dimensional data"). Its mean is k times queries over texts, whatever
the vectors are; its skewness says how unequally the places are shared. In many dimensions a few vectors near the mean of all
others are among the nearest neighbours of very many. A text counts as a hub here if its k-occurrence lies more than two
standard deviations above the mean.

What it does not show: that a hub is wrong where it is found. A text on a subject of many queries is found often with good
reason, and the counts belong to this corpus and these queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float32, Int64, read_only
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.search.exact import ExactSearch

HUB_DEVIATIONS = 2.0
FIRST_HITS = 10  # k
_BLOCK = 256  # queries searched together


@dataclass(frozen=True, eq=False)
class Hubness:
    """In how many queries' first k hits each text stands."""

    counts: Int64  # [text]: the k-occurrence
    queries: int
    k: int

    @property
    def mean(self) -> float:
        return float(self.counts.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation over all texts."""
        return float(self.counts.std())

    @property
    def skewness(self) -> float:
        """The third standardised moment: 0 for a symmetric distribution, above 0 if a few texts are found very often."""
        if self.deviation == 0:
            return 0.0
        return float((((self.counts - self.mean) / self.deviation) ** 3).mean())

    @property
    def hub_from(self) -> float:
        """A text with a higher k-occurrence is a hub."""
        return self.mean + HUB_DEVIATIONS * self.deviation

    def is_hub(self, row: int) -> bool:
        return bool(self.counts[row] > self.hub_from)


def k_occurrence(
    queries: Float32,
    engine: ExactSearch,
    k: int = FIRST_HITS,
    own_rows: Int64 | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Hubness:
    """The k-occurrence of every text among the queries [query, dim], by cosine; with fewer texts, k is their number.

    `own_rows` [query] is for queries that are texts of the corpus: the row of each, which is not counted as its hit.
    Of texts with equal scores those with lower numbers count. `progress(done, total)` counts queries. Raises InputError for
    vectors that are not finite, and Stopped.
    """
    texts = len(engine.vectors)
    k = min(k, texts if own_rows is None else texts - 1)
    counts = np.zeros(texts, np.int64)
    for start in range(0, len(queries) if k else 0, _BLOCK):
        if is_stopped():
            raise Stopped
        block = np.asarray(queries[start : start + _BLOCK], np.float32)
        if own_rows is None:
            found = engine.search(block, k).indices  # [query, hit]
        else:
            found = engine.search(block, k + 1).indices
            is_own = found == own_rows[start : start + _BLOCK, None]
            is_own[~is_own.any(axis=1), -1] = True  # many equal texts stand before it: the last hit makes room instead
            found = found[~is_own].reshape(len(block), k)
        counts += np.bincount(found.ravel(), minlength=texts)
        progress(min(start + _BLOCK, len(queries)), len(queries))
    return Hubness(read_only(counts), len(queries), k)
