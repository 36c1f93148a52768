"""Retrieval by cosine and by dot product over the same vectors, and how long what each puts first is.

A dot product is the cosine times both lengths. The query's length is the same for every document, so that the two rankings
differ by the lengths of the documents' vectors alone: by dot product, a long vector comes first for many queries. Which
texts have long vectors depends on the model and the pooling: a maximum over many tokens is long, and a mean over many
tokens rather short. So both are measured here, the lengths of the vectors and the numbers of tokens.

If the first hits were as long as the correct answers, the ratio of the two means would
be 1. Queries whose first hit has the same score as another document have no single first hit, and count in no mean length.

What it does not show: a model that was trained with dot products uses the length to say how relevant a text is. There long
first hits are no mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Int64
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.exact import SIMILARITIES, ExactSearch, Similarity

_QUERIES = 256  # searched together


@dataclass(frozen=True, eq=False)
class Retrieval(Ranking):
    """What one similarity retrieves for each query."""

    first_hits: Int64  # [query], a document
    is_single: NDArray[np.bool_]  # [query], no other document has the first hit's score

    def mean_of_first_hits(self, values: Int64 | Float32) -> float:
        """The mean of documents' values [document] over the first hits; NaN if no query has a single one."""
        chosen = values[self.first_hits[self.is_single]]
        return float(chosen.mean(dtype=np.float64)) if len(chosen) else float("nan")


def by_each_similarity(
    queries: Float32,
    documents: ExactSearch,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    rank: Callable[..., Ranks] = gold_ranks,
) -> Mapping[Similarity, Retrieval]:
    """What cosine and dot product retrieve for queries [query, dim] among documents.

    `rank` finds the ranks of the correct answers, by default the document with the query's number.

    `progress(done, total)` counts queries, once for each similarity. Raises Stopped, and InputError for vectors with
    values that are not finite.
    """
    count = len(queries)
    retrieved: dict[Similarity, Retrieval] = {}
    for number, similarity in enumerate(SIMILARITIES):
        first_hits, is_single = np.empty(count, np.int64), np.empty(count, np.bool_)
        for start in range(0, count, _QUERIES):
            if is_stopped():
                raise Stopped
            rows = slice(start, start + _QUERIES)
            hits = documents.search(queries[rows], 1, similarity)
            first_hits[rows], is_single[rows] = hits.indices[:, 0], hits.tied == 1
            progress(number * count + min(start + _QUERIES, count), len(SIMILARITIES) * count)
        ranks = rank(queries, documents.vectors, is_stopped=is_stopped, cosine=similarity == "cosine")
        retrieved[similarity] = Retrieval(similarity, first_hits, is_single, ranks=ranks)
    return retrieved
