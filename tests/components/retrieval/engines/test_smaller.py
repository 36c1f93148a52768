"""Smaller vectors: what they lose by identity, and against plain references."""

from __future__ import annotations

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.engines.smaller import Smaller, SmallerEngine
from tests.support.stored_vectors import clustered, stored_in


def found(stored, smaller: Smaller, queries: np.ndarray, k: int = 10, similarity="cosine") -> np.ndarray:
    return SmallerEngine(stored, smaller).search(queries, k, similarity).indices


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_int8_loses_nothing_of_vectors_that_it_can_hold(similarity, tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.integers(-127, 128, (300, 16)).astype(np.float32)
    vectors[:, 0] = 127  # each has the largest number, so that it is held as it is
    stored = stored_in(tmp_path, vectors * 2.0 ** rng.integers(-3, 4, (300, 1)).astype(np.float32))
    queries = rng.normal(size=(20, 16)).astype(np.float32)
    expected = stored.exact.search(queries, 10, similarity).indices
    assert found(stored, Smaller("int8"), queries, similarity=similarity).tolist() == expected.tolist()


def test_bits_order_vectors_of_plus_and_minus_one_as_the_cosine_does(tmp_path):
    """There the cosine is 1 - 2 h / dim for h differing signs."""
    rng = np.random.default_rng(1)
    vectors = rng.choice([-1.0, 1.0], (300, 40)).astype(np.float32)
    stored, queries = stored_in(tmp_path, vectors), rng.choice([-1.0, 1.0], (20, 40)).astype(np.float32)
    hits = SmallerEngine(stored, Smaller("bits")).search(queries, 10)
    exact = stored.exact.search(queries, 10)
    np.testing.assert_allclose(hits.scores, exact.scores, atol=1e-12)
    assert hits.indices.tolist() == exact.indices.tolist()


def test_bits_are_the_hamming_distance_of_signs(tmp_path):
    vectors = clustered(100, 70) - 1
    stored, query = stored_in(tmp_path, vectors), vectors[3] + 0.5
    distances = np.count_nonzero((vectors > 0) != (query > 0), axis=1)
    expected = np.argsort(distances, kind="stable")[:10]
    assert sorted(found(stored, Smaller("bits"), query[None])[0].tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_all_dimensions_are_the_exact_search(similarity, tmp_path):
    stored, queries = stored_in(tmp_path, clustered(200)), clustered(20, seed=4)
    expected = stored.exact.search(queries, 10, similarity)
    hits = SmallerEngine(stored, Smaller("first", dims=32)).search(queries, 10, similarity)
    assert hits.indices.tolist() == expected.indices.tolist()
    assert hits.scores.tolist() == expected.scores.tolist()


def test_the_first_dimensions_alone_choose_the_candidates(tmp_path):
    stored, queries = stored_in(tmp_path, clustered(200)), clustered(20, seed=4)
    short = stored_in(tmp_path, stored.exact.vectors[:, :8]).exact.search(queries[:, :8], 10).indices
    hits = found(stored, Smaller("first", dims=8), queries)
    assert [sorted(row) for row in hits.tolist()] == [sorted(row) for row in short.tolist()]


def test_with_every_sentence_rescored_nothing_is_lost(tmp_path):
    stored, queries = stored_in(tmp_path, clustered(100)), clustered(20, seed=4)
    expected = stored.exact.search(queries, 10).indices.tolist()
    for smaller in (Smaller("bits", rescored=10), Smaller("int8", rescored=10), Smaller("first", 2, 10)):
        assert found(stored, smaller, queries).tolist() == expected


def test_bytes_are_those_of_the_smaller_vectors(tmp_path):
    stored = stored_in(tmp_path, clustered(100, 40))
    sizes = {way: SmallerEngine(stored, Smaller(way)).facts.per_vector(100) for way in ("float16", "int8", "bits")}
    assert sizes == {"float16": 80, "int8": 44, "bits": 5}
    assert SmallerEngine(stored, Smaller("first", 10)).facts.per_vector(100) == 40


def test_zero_vectors_and_more_hits_than_sentences(tmp_path):
    vectors = np.abs(clustered(6)).copy()
    vectors[2] = 0
    stored = stored_in(tmp_path, vectors)
    for smaller in (Smaller("float16"), Smaller("int8"), Smaller("bits"), Smaller("first", 4)):
        hits = SmallerEngine(stored, smaller).search(vectors[:1], 50)
        assert sorted(hits.indices[0].tolist()) == list(range(6))
        assert (int(hits.indices[0, -1]), float(hits.scores[0, -1])) == (2, 0.0)


def test_what_cannot_be_made_smaller_is_refused(tmp_path):
    stored = stored_in(tmp_path, clustered(10))
    for settings in ({"way": "pq"}, {"way": "first"}, {"way": "bits", "dims": 3}, {"way": "int8", "rescored": 0}):
        with pytest.raises(InputError, match="cannot be made smaller"):
            Smaller(**settings)
    with pytest.raises(InputError, match="The vectors have 32"):
        SmallerEngine(stored, Smaller("first", 33))
    with pytest.raises(InputError, match="too large for float16"):
        SmallerEngine(stored_in(tmp_path, clustered(10) * 1e6), Smaller("float16"))
