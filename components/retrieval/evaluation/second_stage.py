"""Retrieval in two stages: the first hits of each query by vectors, put into another order by a slower score.

The second stage is a cross-encoder (Nogueira and Cho 2019) or late interaction (MaxSim; Khattab and Zaharia 2020). It sees
only the first k hits, its candidates. A correct answer that is not among them keeps the rank of the first stage, so that
Recall@k cannot change. Ties count against the query in both stages: a correct answer that shares the score of the last
candidate with others is no candidate.

Equal texts are scored once, so that they tie exactly: in batches of other widths their scores would differ by some 1e-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Int64
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.retrieval.evaluation.graded.ranks import NONE, RelevantRanks
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import tolerance
from components.retrieval.search.exact import ExactSearch, Similarity
from components.retrieval.search.rerank import late_interaction_vectors, trained_scores

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.files.sentence_config import Role

_QUERIES, _TEXTS = 512, 512  # handled together: queries of a search, and texts whose token vectors are in memory


class CandidateScores(Protocol):
    """The second stage: one score for each query with the document of the same number, float32 [pair]."""

    def __call__(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        *,
        progress: ReportProgress,
        is_stopped: IsStopped,
    ) -> Float32: ...


def candidates(
    queries: NDArray[np.floating],
    documents: NDArray[np.floating],
    k: int,
    is_stopped: IsStopped = lambda: False,
    own: Int64 | None = None,
    similarity: Similarity = "cosine",
) -> Int64:
    """The k nearest documents of each query by a similarity, best first, int64 [query, candidate]. Raises Stopped.

    Vectors are [query, dim] and [document, dim]; there are fewer candidates than k if there are fewer documents. `own` [query]
    are the numbers of documents that are left out of one query's ranking, or NONE; where there are any, the candidates are at
    most one fewer than the documents.
    """
    engine, has_own = ExactSearch(documents), own is not None and bool((own != NONE).any())
    k = min(k, len(documents) - has_own)
    rows = np.empty((len(queries), k), np.int64)
    for start in range(0, len(queries) if k else 0, _QUERIES):
        if is_stopped():
            raise Stopped
        block = slice(start, start + _QUERIES)
        found = engine.search(queries[block], k + has_own, similarity).indices
        if own is not None and has_own:
            is_own = found == own[block, None]
            is_own[~is_own.any(axis=1), -1] = True  # one too many was searched for
            found = found[~is_own].reshape(len(found), k)
        rows[block] = found
    return rows


def candidate_scores(
    score: CandidateScores,
    queries: Sequence[str],
    documents: Sequence[str],
    rows: Int64,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The second stage's score of each candidate, float32 with the shape of `rows`.

    `rows` are numbers of documents, int64 [.., query, candidate]: of several runs, every pair is scored once.
    `progress(done, total)` counts different pairs of texts. Raises what `score` raises.
    """
    query_numbers, document_numbers = _text_numbers(queries), _text_numbers(documents)
    asked = np.broadcast_to(query_numbers[:, None], rows.shape)
    keys = asked * len(documents) + document_numbers[rows]
    pairs, inverse = np.unique(keys, return_inverse=True)
    pair_queries, pair_documents = np.divmod(pairs, max(1, len(documents)))
    scores = score(
        [queries[row] for row in pair_queries],
        [documents[row] for row in pair_documents],
        progress=progress,
        is_stopped=is_stopped,
    )
    return np.asarray(scores, np.float32)[inverse].reshape(rows.shape)


def max_sim_candidate_scores(
    backend: Backend,
    layer: int,
    queries: Sequence[str],
    documents: Sequence[str],
    rows: Int64,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The MaxSim of each query with each of its candidates, float32 [query, candidate], from the token vectors of a layer.

    A model that was trained for late interaction gives its own token vectors, whatever the layer.
    Each text goes through the model once per 512 queries, behind its role's prompt if the model has one.
    `progress(done, total)` counts texts. Raises InputError for a layer or length that the model does not have, Stopped.
    """
    scores = np.empty(rows.shape, np.float32)
    numbers = _text_numbers(documents)[rows]  # [query, candidate]
    blocks = [slice(start, start + _QUERIES) for start in range(0, len(queries), _QUERIES)]
    needed = [np.unique(numbers[block]) for block in blocks]
    total, done = len(queries) + sum(map(len, needed)), 0

    def vectors_of(texts: Sequence[str], role: Role) -> Sequence[Float32]:
        nonlocal done
        vectors = late_interaction_vectors(
            backend, texts, role, layer, max_length, part_of(progress, done, total), is_stopped
        )
        done += len(texts)
        return vectors

    for block, texts in zip(blocks, needed, strict=True):
        query_vectors = vectors_of(queries[block], "query")
        own, own_scores = numbers[block], scores[block]
        for start in range(0, len(texts), _TEXTS):
            part = texts[start : start + _TEXTS]
            document_vectors = vectors_of([documents[number] for number in part], "document")
            for row, vectors in enumerate(query_vectors):
                columns = np.flatnonzero((own[row] >= part[0]) & (own[row] <= part[-1]))
                places = np.searchsorted(part, own[row, columns])
                own_scores[row, columns] = trained_scores(
                    backend, vectors, [document_vectors[place] for place in places]
                )
    return scores


def second_ranks(first: Int64, rows: Int64, scores: Float32, gold: Int64 | None = None) -> Int64:
    """Ranks from 1, int64 [query], of document `gold[query]` (by default that with the query's number) after both stages.

    `first` are the ranks of the first stage [query]; `rows` and `scores` the candidates [query, candidate].
    """
    gold = np.arange(len(first)) if gold is None else gold
    ranks = np.array(first, np.int64)
    own = rows == gold[:, None]  # [query, candidate]
    kept = own.any(axis=1) & (first <= rows.shape[1])
    own_scores = scores[kept][own[kept]][:, None]
    ranks[kept] = np.count_nonzero(~(scores[kept] < own_scores - tolerance(own_scores)), axis=1)
    return ranks


def either_ranks(first: Ranks, rows: Int64, scores: Float32, gold: Int64 | None = None) -> Ranks:
    """`second_relevant_ranks` where queries have several correct answers, else `second_ranks`."""
    if isinstance(first, RelevantRanks):
        return second_relevant_ranks(first, rows, scores)
    return second_ranks(first, rows, scores, gold)


def second_relevant_ranks(first: RelevantRanks, rows: Int64, scores: Float32) -> RelevantRanks:
    """The ranks of all relevant documents after both stages; among equal scores, lower grades come first.

    `first` are those of the first stage, which name their documents; `rows` and `scores` the candidates
    [query, candidate].
    """
    ranks, grades, documents = first.ranks.copy(), first.grades.copy(), first.documents.copy()
    if len(documents) != len(ranks):
        raise ValueError("the ranks of the first stage do not name their documents")
    k = rows.shape[1]
    for query in range(len(first)):
        part = slice(first.starts[query], first.starts[query + 1])
        score_of = dict(zip(rows[query].tolist(), scores[query].tolist(), strict=True))
        own = list(zip(ranks[part].tolist(), grades[part].tolist(), documents[part].tolist(), strict=True))
        inside = [item for item in own if item[0] <= k and item[2] in score_of]
        outside = [item for item in own if not (item[0] <= k and item[2] in score_of)]
        relevant = {item[2] for item in inside}
        others = np.sort([score for row, score in score_of.items() if row not in relevant])
        inside.sort(key=lambda item: (-score_of[item[2]], item[1]))
        reached = [score_of[item[2]] for item in inside]
        for place in range(len(reached) - 1, 0, -1):  # all of a tie get its lowest score
            if reached[place - 1] - reached[place] <= tolerance(reached[place - 1]):
                reached[place - 1] = reached[place]
        inside = [
            item for _, item in sorted(zip(reached, inside, strict=True), key=lambda each: (-each[0], each[1][1]))
        ]
        new = [
            place + len(others) - int(np.searchsorted(others, score - tolerance(score)))
            for place, score in enumerate(reached, start=1)
        ]
        # Equal vectors around the last candidate could leave a rank within the first k.
        new += [max(item[0], k + place) for place, item in enumerate(outside, start=1)]
        ranks[part], grades[part] = new, [item[1] for item in inside + outside]
        documents[part] = [item[2] for item in inside + outside]
    return RelevantRanks(ranks, grades, first.starts, documents)


def _text_numbers(texts: Sequence[str]) -> Int64:
    """For each text the number of the first equal one, int64 [text]."""
    first: dict[str, int] = {}
    return np.fromiter((first.setdefault(text, number) for number, text in enumerate(texts)), np.int64, len(texts))
