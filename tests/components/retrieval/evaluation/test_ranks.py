"""Ranks: by hand, against brute force in float64, and with ties that must count against the query."""

from __future__ import annotations

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.evaluation import ranks as module
from components.retrieval.evaluation.ranks import gold_ranks


def brute_force(queries: np.ndarray, documents: np.ndarray, gold: np.ndarray, cosine: bool = True) -> np.ndarray:
    """All similarities in float64; equal ones stand before the right document."""

    def directions(vectors: np.ndarray) -> np.ndarray:
        vectors = vectors.astype(np.float64)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if cosine else vectors

    scores = directions(queries) @ directions(documents).T
    own = scores[np.arange(len(gold)), gold]
    ahead = scores >= own[:, None] - 1e-12 * (1 if cosine else np.abs(scores).max(axis=1, keepdims=True))
    ahead[np.arange(len(gold)), gold] = False
    return 1 + ahead.sum(axis=1)


def test_ranks_worked_out_on_paper():
    documents = np.array([[1, 0], [0, 1], [1, 1], [-1, 0]], np.float32)
    queries = np.array([[2, 0], [1, 0.1], [0, 1], [1, 0]], np.float32)
    # cosines of query 1 with the documents: 0.995, 0.0995, 0.774, -0.995
    assert gold_ranks(queries, documents).tolist() == [1, 3, 2, 4]
    assert gold_ranks(queries, documents, np.array([3, 0, 1, 2])).tolist() == [4, 1, 1, 2]


@pytest.mark.parametrize("blocks", [(512, 8192), (7, 11)])
@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_ranks_equal_brute_force(monkeypatch, blocks, noise):
    monkeypatch.setattr(module, "QUERIES_PER_BLOCK", blocks[0])
    monkeypatch.setattr(module, "_DOCUMENTS", blocks[1])
    random = np.random.default_rng(1)
    documents = random.normal(size=(200, 16)).astype(np.float32) * random.uniform(0.1, 9, (200, 1)).astype(np.float32)
    gold = random.permutation(200)[:90]
    queries = (documents[gold] + noise * random.normal(size=(90, 16))).astype(np.float32)
    np.testing.assert_array_equal(gold_ranks(queries, documents, gold), brute_force(queries, documents, gold))


@pytest.mark.parametrize("blocks", [(512, 8192), (4, 8)])
def test_identical_vectors_count_against_the_query(monkeypatch, blocks):
    monkeypatch.setattr(module, "QUERIES_PER_BLOCK", blocks[0])
    monkeypatch.setattr(module, "_DOCUMENTS", blocks[1])
    same = np.tile(np.random.default_rng(0).normal(size=16).astype(np.float32), (30, 1))
    assert (gold_ranks(same, same) == 30).all()  # last, although each is as near as can be
    twins = np.random.default_rng(1).normal(size=(30, 16)).astype(np.float32)
    twins[10] = twins[20]
    found = gold_ranks(twins, twins)
    assert found[10] == found[20] == 2
    assert (np.delete(found, [10, 20]) == 1).all()


def test_what_float32_cannot_tell_apart_is_settled_in_float64():
    """Cosines that differ by some 1e-8, as those of [CLS] vectors at low layers do."""
    random = np.random.default_rng(2)
    base = random.normal(size=32)
    documents = (base + 1e-4 * random.normal(size=(400, 32))).astype(np.float32)
    queries = (documents + 3e-5 * random.normal(size=(400, 32))).astype(np.float32)
    gold = np.arange(400)
    expected = brute_force(queries, documents, gold)
    unit = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    assert (unit @ unit.T).min() > 1 - 1e-6
    assert np.median(expected) < 50
    plain = 1 + (
        (queries / np.linalg.norm(queries, axis=1, keepdims=True)) @ unit.T
        > np.einsum("qd,qd->q", queries, unit)[:, None] / np.linalg.norm(queries, axis=1)[:, None]
    ).sum(axis=1)
    assert (plain != expected).mean() > 0.2  # float32 alone reads something else
    np.testing.assert_array_equal(gold_ranks(queries, documents), expected)


def test_zero_vectors_have_no_direction():
    documents = np.array([[0, 0], [1, 0], [-1, 0]], np.float32)
    assert gold_ranks(np.array([[1, 0]], np.float32), documents, np.array([0])).tolist() == [2]
    assert gold_ranks(np.zeros((1, 2), np.float32), documents, np.array([1])).tolist() == [3]


# Dot products


def test_dot_products_worked_out_on_paper():
    documents = np.array([[1, 0], [0, 1], [3, 3], [-1, 0]], np.float32)
    queries = np.array([[2, 0], [1, 0.1], [0, 1], [1, 0]], np.float32)
    # dot products of query 0 with the documents: 2, 0, 6, -2: the long one wins, though it points elsewhere
    assert gold_ranks(queries, documents, cosine=False).tolist() == [2, 3, 1, 4]
    assert gold_ranks(queries, documents).tolist() == [1, 3, 2, 4]


@pytest.mark.parametrize("blocks", [(512, 8192), (7, 11)])
@pytest.mark.parametrize("noise", [0.3, 3.0])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_dot_product_ranks_equal_brute_force_at_any_size(monkeypatch, blocks, noise, size):
    monkeypatch.setattr(module, "QUERIES_PER_BLOCK", blocks[0])
    monkeypatch.setattr(module, "_DOCUMENTS", blocks[1])
    random = np.random.default_rng(1)
    documents = random.normal(size=(200, 16)).astype(np.float32) * random.uniform(0.1, 9, (200, 1)).astype(np.float32)
    gold = random.permutation(200)[:90]
    queries = (documents[gold] + noise * random.normal(size=(90, 16))).astype(np.float32)
    found = gold_ranks(size * queries, size * documents, gold, cosine=False)
    np.testing.assert_array_equal(found, brute_force(size * queries, size * documents, gold, cosine=False))
    assert (found != gold_ranks(queries, documents, gold)).mean() > 0.1


def test_dot_products_of_unit_vectors_rank_as_cosines_do():
    random = np.random.default_rng(4)
    documents = random.normal(size=(300, 24))
    queries = documents + 2 * random.normal(size=(300, 24))
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    np.testing.assert_array_equal(gold_ranks(queries, documents, cosine=False), gold_ranks(queries, documents))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("blocks", [(512, 8192), (4, 8)])
def test_equal_dot_products_count_against_the_query(monkeypatch, blocks, size):
    monkeypatch.setattr(module, "QUERIES_PER_BLOCK", blocks[0])
    monkeypatch.setattr(module, "_DOCUMENTS", blocks[1])
    same = size * np.tile(np.random.default_rng(0).normal(size=16).astype(np.float32), (30, 1))
    assert (gold_ranks(same, same, cosine=False) == 30).all()
    twins = np.random.default_rng(1).normal(size=(30, 16)).astype(np.float32)
    twins *= size / np.linalg.norm(twins, axis=1, keepdims=True)
    twins[10] = twins[20]
    found = gold_ranks(twins, twins, cosine=False)
    assert found[10] == found[20] == 2
    assert (np.delete(found, [10, 20]) == 1).all()


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5])
def test_near_dot_products_are_settled_in_float64(size):
    random = np.random.default_rng(2)
    base = random.normal(size=32)
    documents = (size * (base + 1e-7 * random.normal(size=(400, 32)))).astype(np.float32)
    queries = (documents + 0.3 * size * random.normal(size=(400, 32))).astype(np.float32)
    gold = np.arange(400)
    expected = brute_force(queries, documents, gold, cosine=False)
    scores = queries @ documents.T
    plain = 1 + (scores > np.diag(scores)[:, None]).sum(axis=1)
    assert (plain != expected).mean() > 0.2  # float32 alone reads something else
    np.testing.assert_array_equal(gold_ranks(queries, documents, cosine=False), expected)


def test_zeros_tie_with_all_that_score_nothing():
    documents = np.array([[0, 0], [1, 0], [-1, 0]], np.float32)
    assert gold_ranks(np.array([[1, 0]], np.float32), documents, np.array([0]), cosine=False).tolist() == [2]
    assert gold_ranks(np.zeros((1, 2), np.float32), documents, np.array([1]), cosine=False).tolist() == [3]
    nothing = np.zeros((4, 2), np.float32)
    assert gold_ranks(nothing, nothing, cosine=False).tolist() == [4] * 4
    assert gold_ranks(nothing[:0], nothing, cosine=False).tolist() == []


def test_progress_stop_and_wrong_places():
    vectors = np.eye(5, dtype=np.float32)
    told = []
    gold_ranks(vectors, vectors, progress=lambda done, total: told.append((done, total)))
    assert told == [(5, 5)]
    with pytest.raises(Stopped):
        gold_ranks(vectors, vectors, is_stopped=lambda: True)
    with pytest.raises(ValueError, match="5 numbers"):
        gold_ranks(vectors, vectors, np.array([0]))
    with pytest.raises(ValueError, match="of 5 documents"):
        gold_ranks(vectors, vectors, np.array([0, 1, 2, 3, 5]))
