"""Exact search and the most similar pairs, against brute force in float64."""

from __future__ import annotations

import numpy as np
import pytest

from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.search.exact import EVERY_SIMILARITY, ExactSearch, pair_similarity, tie_note, ties_note, top
from components.retrieval.search.paraphrases import most_similar_pairs, nearest_cosines


def corpus(count: int = 300, dim: int = 16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def brute(vectors: np.ndarray, query: np.ndarray, similarity: str) -> np.ndarray:
    wide, asked = vectors.astype(np.float64), query.astype(np.float64)
    if similarity in ("euclidean", "manhattan"):
        differences = np.abs(wide - asked)
        return -(differences.sum(axis=1) if similarity == "manhattan" else np.sqrt((differences**2).sum(axis=1)))
    scores = wide @ asked
    if similarity == "cosine":
        scores /= np.linalg.norm(wide, axis=1) * np.linalg.norm(asked)
    return scores


@pytest.mark.parametrize("similarity", EVERY_SIMILARITY)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_one_query_equals_brute_force(similarity, dtype, k):
    vectors = corpus().astype(dtype)
    query = corpus(1, seed=7)[0]
    hits = ExactSearch(vectors).search(query, k, similarity)
    expected = brute(vectors, query, similarity)
    order = np.argsort(-expected, kind="stable")[:k]
    np.testing.assert_array_equal(hits.indices[0], order)
    np.testing.assert_allclose(hits.scores[0], expected[order], rtol=1e-4, atol=1e-5)
    assert hits.indices.shape == (1, min(k, 300))


@pytest.mark.parametrize("similarity", EVERY_SIMILARITY)
@pytest.mark.parametrize("k", [1, 7, 400])
def test_many_queries_in_blocks_equal_one_by_one(similarity, k, monkeypatch):
    monkeypatch.setattr("components.retrieval.search.exact._CELLS", 1_500)  # two queries at a time
    vectors, queries = corpus(700), corpus(9, seed=3)
    engine = ExactSearch(vectors)
    many = engine.search(queries, k, similarity)
    for row, query in enumerate(queries):
        one = engine.search(query, k, similarity)
        np.testing.assert_array_equal(many.indices[row], one.indices[0])
        np.testing.assert_allclose(many.scores[row], one.scores[0], rtol=1e-4, atol=1e-5)


def test_ties_go_to_the_lower_number():
    vectors = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)  # 0..3 alike, 4..7 alike, 8..11 alike
    hits = ExactSearch(vectors).search(np.array([0, 1, 0], np.float32), 6)
    np.testing.assert_array_equal(hits.indices[0], [4, 5, 6, 7, 0, 1])
    many = ExactSearch(vectors).search(np.array([[0, 1, 0], [1, 0, 0]], np.float32), 6)
    np.testing.assert_array_equal(many.indices, [[4, 5, 6, 7, 0, 1], [0, 1, 2, 3, 4, 5]])
    np.testing.assert_array_equal(top(np.zeros(5, np.float32), 3), [0, 1, 2])


def test_of_some_rows_alone_the_hits_and_ties_are_theirs():
    vectors = np.array([[0.9], [0.5], [0.5], [0.4999995]], np.float32)
    query, rows = np.ones(1, np.float32), np.array([0, 1, 3])
    search = ExactSearch(vectors).search
    every, some = search(query, 2, "dot"), search(query, 2, "dot", rows)
    assert (int(every.tied[0]), int(every.tied_shown[0])) == (2, 1)
    assert (some.indices.tolist(), int(some.tied[0]), int(some.tied_shown[0])) == ([[0, 1]], 1, 1)
    assert search(query, 9, "dot", rows).indices.tolist() == [[0, 1, 3]]
    for similarity in EVERY_SIMILARITY:
        many = search(np.stack([query, query]), 3, similarity, rows)
        np.testing.assert_array_equal(many.indices, np.repeat(search(query, 3, similarity, rows).indices, 2, axis=0))
        assert set(many.indices[0]) == {0, 1, 3}


def test_zero_vectors_have_cosine_zero():
    vectors = np.array([[0, 0], [1, 0], [-1, 0]], np.float32)
    np.testing.assert_array_equal(ExactSearch(vectors).scores(np.array([2, 0], np.float32)), [0, 1, -1])
    np.testing.assert_array_equal(ExactSearch(vectors).scores(np.zeros(2, np.float32)), [0, 0, 0])
    many = ExactSearch(vectors).search(np.array([[2, 0], [0, 0]], np.float32), 3)
    np.testing.assert_array_equal(many.scores, [[1, 0, -1], [0, 0, 0]])


def test_what_makes_no_sense_is_refused():
    engine = ExactSearch(corpus())
    with pytest.raises(InputError, match="k is 0"):
        engine.search(corpus(1)[0], 0)
    for queries in (corpus(1)[0], corpus(2)):
        with pytest.raises(InputError, match=r"'hamming' is not available\. .*cosine, dot, euclidean, manhattan"):
            engine.search(queries, 1, "hamming")
    with pytest.raises(ValueError, match="16 numbers"):
        engine.scores(np.ones(3, np.float32))


def test_an_empty_corpus_has_no_hits():
    engine = ExactSearch(np.empty((0, 4), np.float32))
    assert engine.search(np.ones(4, np.float32), 3).indices.shape == (1, 0)
    assert engine.search(np.ones((2, 4), np.float32), 3).indices.shape == (2, 0)


def all_pairs(vectors: np.ndarray) -> list[tuple[int, int, float]]:
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ unit.T
    pairs = [(i, j, cosines[i, j]) for i in range(len(unit)) for j in range(i + 1, len(unit))]
    return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))


@pytest.mark.parametrize("k", [1, 25, 10**6])
def test_pairs_equal_brute_force_over_blocks(k, monkeypatch):
    monkeypatch.setattr("components.retrieval.search.paraphrases._ROWS", 16)
    vectors = corpus(70)
    steps: list[tuple[int, int]] = []
    found = most_similar_pairs(vectors, k, progress=lambda done, total: steps.append((done, total)))
    expected = all_pairs(vectors)[:k]
    assert [(pair.first, pair.second) for pair in found] == [pair[:2] for pair in expected]
    np.testing.assert_allclose([pair.cosine for pair in found], [pair[2] for pair in expected], atol=1e-5)
    assert steps[-1] == (15, 15)


def test_the_same_text_is_no_pair_even_when_there_are_many(monkeypatch):
    monkeypatch.setattr("components.retrieval.search.paraphrases._ROWS", 8)
    vectors = np.vstack([np.repeat(corpus(1), 30, axis=0), corpus(10, seed=5)])
    texts = ["same"] * 30 + [f"other {at}" for at in range(10)]
    found = most_similar_pairs(vectors, 12, texts)
    expected = [pair for pair in all_pairs(vectors) if texts[pair[0]] != texts[pair[1]]][:12]
    np.testing.assert_allclose([pair.cosine for pair in found], [pair[2] for pair in expected], atol=1e-5)
    assert all(texts[pair.first] != texts[pair.second] for pair in found)


def test_mining_can_be_stopped():
    vectors = corpus(10)
    with pytest.raises(Stopped):
        most_similar_pairs(vectors, is_stopped=lambda: True)


def test_fewer_pairs_are_the_first_of_more_ties_included():
    vectors = np.random.default_rng(0).integers(-1, 2, (3_000, 3)).astype(np.float32)  # few directions, many ties
    more = most_similar_pairs(vectors, 200)
    assert len({pair.cosine for pair in more}) < len(more)
    for k in (1, 12, 150):
        assert most_similar_pairs(vectors, k) == more[:k]


def nearly_equal(count: int, seed: int) -> np.ndarray:
    """Vectors whose cosines differ by some 1e-6, as those of [CLS] at low layers do, [count, 32]."""
    base = np.random.default_rng(2).normal(size=32)
    return (base + 1e-3 * np.random.default_rng(seed).normal(size=(count, 32))).astype(np.float32)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_what_float32_cannot_tell_apart_is_settled_in_float64(similarity, monkeypatch):
    monkeypatch.setattr("components.retrieval.search.exact._EXACT_ROWS", 64)
    vectors, queries = nearly_equal(500, 0), nearly_equal(12, 1)
    engine = ExactSearch(vectors)
    many = engine.search(queries, 10, similarity)
    for row, query in enumerate(queries):
        expected = brute(vectors, query, similarity)
        order = np.argsort(-expected, kind="stable")[:10]
        np.testing.assert_array_equal(many.indices[row], order)
        np.testing.assert_allclose(many.scores[row], expected[order], rtol=1e-14)
        one = engine.search(query, 10, similarity)
        np.testing.assert_array_equal(one.indices[0], order)
        np.testing.assert_array_equal(one.scores[0], many.scores[row])


def test_dot_products_of_long_vectors_are_settled_too():
    vectors, queries = 1e4 * nearly_equal(500, 0), 1e4 * nearly_equal(3, 1)
    for query in queries:
        order = np.argsort(-brute(vectors, query, "dot"), kind="stable")[:10]
        np.testing.assert_array_equal(ExactSearch(vectors).search(query, 10, "dot").indices[0], order)


def test_equal_scores_are_counted_and_nearly_equal_ones_are_not():
    vectors = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)  # 0..3 alike, 4..7 alike, 8..11 alike
    vectors[3, 2] = 1e-3  # its cosine with the first axis is lower by 5e-7
    hits = ExactSearch(vectors).search(np.eye(3, dtype=np.float32)[:2], 2)
    np.testing.assert_array_equal(hits.indices, [[0, 1], [4, 5]])
    np.testing.assert_array_equal(hits.tied, [3, 4])
    np.testing.assert_array_equal(hits.tied_shown, [2, 2])
    assert "3 sentences have the same score as the last hit, and 2 of them" in tie_note(3, 2)
    assert tie_note(2, 2) == ""


def test_ties_among_the_hits_are_said_where_the_last_hit_has_none():
    assert ties_note(np.array([1.0, 1.0, 1.0, 0.5, 0.4, 0.4])) == (
        "3 hits have the same score (ranks 1 to 3); 2 hits have the same score (ranks 5 to 6). Equal hits are in the order of "
        "the corpus, which means nothing."
    )
    assert "and 1 further ties" in ties_note(np.repeat([4.0, 3.0, 2.0, 1.0], 2))
    assert "further" not in ties_note(np.repeat([4.0, 3.0, 2.0], 2))
    assert ties_note(np.array([-0.5, -0.6])) == ties_note(np.array([])) == ""


@pytest.mark.parametrize("similarity", EVERY_SIMILARITY)
def test_the_similarity_of_each_pair_is_that_of_a_search(similarity):
    first, second = corpus(5, seed=1), corpus(5, seed=2)
    found = pair_similarity(first.astype(np.float64), second.astype(np.float64), similarity)
    expected = [brute(other[None], one, similarity)[0] for one, other in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_long_vectors_whose_products_differ_by_less_than_float32_holds_keep_their_order():
    """Of products of some 1e8, float32 tells apart no more than 8: their rounding grows with the vectors' lengths."""
    vectors = np.array([[1e4, 0], [np.nextafter(np.float32(1e4), np.float32(2e4)), 0]], np.float32)
    rounded = np.array([1e8 + 8, 1e8], np.float32)
    assert ExactSearch(vectors).hits_of(vectors[0], rounded, 1, "dot").indices.tolist() == [[1]]


def test_the_nearest_other_sentence_is_no_copy_of_it():
    vectors = np.array([[1, 0], [1, 0], [0.6, 0.8], [0, 1]], np.float32)
    found = nearest_cosines(vectors, ["one", "one", "two", "three"], rows=3)
    np.testing.assert_allclose(found, [0.6, 0.6, 0.8, 0.8], atol=1e-6)
    assert np.isnan(nearest_cosines(vectors[:2], ["one", "one"])).all()


def test_values_that_are_not_finite_are_refused():
    vectors = corpus(20)
    vectors[7, 3] = np.nan
    with pytest.raises(InputError, match="not finite"):
        ExactSearch(vectors).search(corpus(1, seed=1), 5)
