"""Cosine and dot product over the same vectors: ranks, first hits and their lengths, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.evaluation.similarities import by_each_similarity
from components.retrieval.search.exact import SIMILARITIES, ExactSearch
from tests.support.closeness import assert_close


def vectors(queries: int = 300, dim: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Queries near their documents, whose lengths vary by a factor of ten."""
    numbers = np.random.default_rng(0)
    documents = numbers.normal(size=(queries, dim))
    asked = documents + 0.3 * numbers.normal(size=documents.shape)
    return asked.astype(np.float32), (documents * numbers.uniform(1, 10, (queries, 1))).astype(np.float32)


def test_ranks_hits_and_means_are_numpys() -> None:
    queries, documents = vectors()
    tokens = np.arange(len(documents)) % 17
    engine = ExactSearch(documents)
    retrieved = by_each_similarity(queries, engine)
    assert tuple(retrieved) == SIMILARITIES
    products = queries.astype(np.float64) @ documents.astype(np.float64).T
    norms = np.linalg.norm(documents.astype(np.float64), axis=1)
    for similarity, scores in (("cosine", products / norms), ("dot", products)):
        outcome = retrieved[similarity]
        first = scores.argmax(axis=1)
        assert outcome.first_hits.tolist() == first.tolist()
        assert outcome.ranks.tolist() == (scores >= np.diag(scores)[:, None]).sum(axis=1).tolist()
        assert outcome.is_single.all()
        assert_close(outcome.mean_of_first_hits(engine.norms), norms[first].mean())
        assert outcome.mean_of_first_hits(tokens) == pytest.approx(tokens[first].mean(), rel=1e-12)
    # The dot product favours long vectors, and finds fewer correct answers for that.
    cosine, dot = (retrieved[name] for name in SIMILARITIES)
    assert dot.mean_of_first_hits(engine.norms) > 1.3 * cosine.mean_of_first_hits(engine.norms)
    assert (dot.ranks == 1).mean() < (cosine.ranks == 1).mean()


def test_vectors_of_length_1_have_one_ranking() -> None:
    queries, documents = vectors()
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    cosine, dot = by_each_similarity(queries, ExactSearch(documents)).values()
    assert cosine.ranks.tolist() == dot.ranks.tolist()
    assert cosine.first_hits.tolist() == dot.first_hits.tolist()


def test_a_first_hit_among_equals_counts_in_no_mean() -> None:
    documents = np.array([[2, 0], [4, 0], [0, 1]], np.float32)
    queries = np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)
    cosine, dot = by_each_similarity(queries, ExactSearch(documents)).values()
    assert cosine.is_single.tolist() == [False, False, True]  # the first two documents have one direction
    assert cosine.mean_of_first_hits(np.array([5.0, 7.0, 9.0], np.float32)) == 9
    assert cosine.ranks.tolist() == [2, 2, 1]
    assert dot.is_single.all()
    assert dot.first_hits.tolist() == [1, 1, 2]
    same = by_each_similarity(queries, ExactSearch(np.ones((3, 2), np.float32)))["cosine"]
    assert np.isnan(same.mean_of_first_hits(np.arange(3)))


def test_progress_stopping_and_vectors_that_are_not_finite() -> None:
    queries, documents = vectors()
    seen: list[tuple[int, int]] = []
    by_each_similarity(queries, ExactSearch(documents), lambda done, total: seen.append((done, total)))
    assert seen == [(256, 600), (300, 600), (556, 600), (600, 600)]
    with pytest.raises(Stopped):
        by_each_similarity(queries, ExactSearch(documents), is_stopped=lambda: True)
    documents[3, 2] = np.nan
    with pytest.raises(InputError):
        by_each_similarity(queries, ExactSearch(documents))
