"""Ranks of many relevant documents: by hand, against brute force in float64, with ties, and equal to gold_ranks."""

from __future__ import annotations

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.evaluation.graded import ranks as module
from components.retrieval.evaluation.graded.ranks import RelevantRanks, ranker_relevant_ranks, vector_relevant_ranks
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.search.exact import exact_directions
from components.retrieval.search.lexical import make_ranker

BLOCKS = [(512, 8192), (7, 11)]


@pytest.fixture(params=BLOCKS, ids=str)
def blocks(request, monkeypatch):
    monkeypatch.setattr(module, "_QUERIES", request.param[0])
    monkeypatch.setattr(module, "_DOCUMENTS", request.param[1])
    if request.param != BLOCKS[0]:
        monkeypatch.setattr(module, "_PAIRS", 5)


def brute_force(scores: np.ndarray, grades: list[dict[int, int]], tolerance: float) -> list[list[tuple[int, int]]]:
    """(rank, grade) of each query's relevant documents, by going through them one after the other."""
    found = []
    for row, own in zip(scores, grades, strict=True):
        others = [row[at] for at in range(len(row)) if at not in own]
        ties: list[list[int]] = []
        for at in sorted(own, key=lambda at: -row[at]):
            if ties and row[ties[-1][-1]] - row[at] <= tolerance:
                ties[-1].append(at)
            else:
                ties.append([at])
        ranking: list[tuple[int, int]] = []
        for tie in ties:
            ahead = sum(score >= row[tie[-1]] - tolerance for score in others)
            for grade in sorted(own[at] for at in tie):
                ranking.append((ahead + len(ranking) + 1, grade))
        found.append(ranking)
    return found


def pairs_of(found: RelevantRanks) -> list[list[tuple[int, int]]]:
    return [
        list(zip(found.ranks[start:end].tolist(), found.grades[start:end].tolist(), strict=True))
        for start, end in zip(found.starts[:-1], found.starts[1:], strict=True)
    ]


def some_grades(random: np.random.Generator, queries: int, documents: int, most: int) -> list[dict[int, int]]:
    return [
        {
            int(at): int(random.integers(1, 4))
            for at in random.choice(documents, random.integers(1, most), replace=False)
        }
        for _ in range(queries)
    ]


def test_ranks_worked_out_on_paper():
    documents = np.array([[1, 0], [0, 1], [1, 1], [-1, 0], [2, 2]], np.float32)
    queries = np.array([[3, 0], [0, 1]], np.float32)
    # Query 0: document 0 first, then 2 and 4 alike, 1, 3. Query 1: 1, then 2 and 4 alike, then 0 and 3 alike.
    found = vector_relevant_ranks(queries, documents, [{0: 1, 2: 2, 3: 1}, {4: 2, 2: 1, 0: 3}])
    assert pairs_of(found) == [[(1, 1), (3, 2), (5, 1)], [(2, 1), (3, 2), (5, 3)]]
    assert len(found) == 2
    assert found.ranks.dtype == found.grades.dtype == found.starts.dtype == np.int64


@pytest.mark.parametrize("most", [2, 30])
def test_ranks_equal_brute_force(blocks, most):
    random = np.random.default_rng(1)
    documents = (random.normal(size=(200, 16)) * random.uniform(0.1, 9, (200, 1))).astype(np.float32)
    queries = random.normal(size=(60, 16)).astype(np.float32)
    grades = some_grades(random, 60, 200, most)
    scores = exact_directions(queries) @ exact_directions(documents).T
    assert pairs_of(vector_relevant_ranks(queries, documents, grades)) == brute_force(scores, grades, 1e-12)


def test_copies_of_vectors_are_ties_in_the_worst_order(blocks):
    random = np.random.default_rng(3)
    documents = random.normal(size=(20, 16)).astype(np.float32)[random.integers(0, 20, 150)]
    queries = random.normal(size=(40, 16)).astype(np.float32)
    grades = some_grades(random, 40, 150, 30)
    scores = exact_directions(queries) @ exact_directions(documents).T
    assert pairs_of(vector_relevant_ranks(queries, documents, grades)) == brute_force(scores, grades, 1e-12)


def test_identical_vectors_give_the_worst_ranks(blocks):
    same = np.tile(np.random.default_rng(0).normal(size=16).astype(np.float32), (30, 1))
    found = vector_relevant_ranks(same, same, [{at: 2, (at + 1) % 30: 1, (at + 2) % 30: 3} for at in range(30)])
    assert pairs_of(found) == [[(28, 1), (29, 2), (30, 3)]] * 30


def test_what_float32_cannot_tell_apart_is_settled_in_float64(blocks):
    random = np.random.default_rng(2)
    base = random.normal(size=32)
    documents = (base + 1e-4 * random.normal(size=(300, 32))).astype(np.float32)
    queries = (documents + 3e-5 * random.normal(size=(300, 32))).astype(np.float32)
    grades = some_grades(random, 300, 300, 6)
    scores = exact_directions(queries) @ exact_directions(documents).T
    assert pairs_of(vector_relevant_ranks(queries, documents, grades)) == brute_force(scores, grades, 1e-12)


def test_a_few_near_pairs_are_settled_one_by_one(blocks):
    """Each document has a near copy: float32 alone would order many of them by chance."""
    random = np.random.default_rng(5)
    documents = random.normal(size=(300, 32)).astype(np.float32)
    documents[150:] = documents[:150] * (1 + 2e-7 * random.normal(size=(150, 32)))
    queries = random.normal(size=(50, 32)).astype(np.float32)
    grades = [{int(at): 1 for at in random.choice(150, 3, replace=False)} for _ in range(50)]
    scores = exact_directions(queries) @ exact_directions(documents).T
    assert pairs_of(vector_relevant_ranks(queries, documents, grades)) == brute_force(scores, grades, 1e-12)


def test_one_relevant_document_has_the_rank_of_gold_ranks(blocks):
    random = np.random.default_rng(4)
    documents = random.normal(size=(120, 8)).astype(np.float32)
    documents[30:60] = documents[:30]
    documents[7] = 0
    queries = (documents + random.normal(size=(120, 8))).astype(np.float32)
    gold = random.permutation(120)
    found = vector_relevant_ranks(queries, documents, [{int(at): 1} for at in gold])
    np.testing.assert_array_equal(found.ranks, gold_ranks(queries, documents, gold))


def test_a_rankers_ties_count_against_it():
    scores = {
        "a": [3.0, 1.0, 1.0 + 1e-7, 2.0, 1.0],
        "b": [0.0, 0.0, 0.0, 0.0, 0.0],
        "c": [-9.0, -3.0, -3.1, -5.0, -3.0],
    }
    found = ranker_relevant_ranks(
        lambda query: np.array(scores[query], np.float32), list(scores), [{2: 1, 3: 2}, {0: 3, 4: 1}, {1: 1, 0: 2}]
    )
    assert pairs_of(found) == [[(2, 2), (5, 1)], [(4, 1), (5, 3)], [(2, 1), (5, 2)]]


@pytest.mark.parametrize("kind", ["bow", "tfidf", "lsa", "bm25", "jm"])
def test_lexical_rankers_equal_brute_force(kind):
    random = np.random.default_rng(6)
    vocabulary = [f"w{number}" for number in range(40)]
    texts = [" ".join(random.choice(vocabulary, 6)) for _ in range(80)] * 2  # each sentence twice
    queries = [" ".join(random.choice(vocabulary, 3)) for _ in range(20)]
    ranker = make_ranker(kind, texts)
    grades = some_grades(random, 20, 160, 12)
    scores = [np.asarray(ranker.scores(query), np.float64) for query in queries]
    expected = [
        brute_force(row[None], [own], 1e-6 * np.abs(row).max())[0] for row, own in zip(scores, grades, strict=True)
    ]
    assert pairs_of(ranker_relevant_ranks(ranker.scores, queries, grades)) == expected


def test_zero_vectors_and_queries_without_any_relevant_document():
    documents = np.array([[0, 0], [1, 0], [-1, 0]], np.float32)
    found = vector_relevant_ranks(np.array([[1, 0], [0, 0], [1, 0]], np.float32), documents, [{0: 1}, {1: 1}, {}])
    assert pairs_of(found) == [[(2, 1)], [(3, 1)], []]
    nothing = vector_relevant_ranks(np.empty((0, 2), np.float32), documents, [])
    assert (len(nothing), len(nothing.ranks)) == (0, 0)


def test_progress_stop_and_wrong_places():
    vectors = np.eye(5, dtype=np.float32)
    grades = [{at: 1} for at in range(5)]
    told = []
    vector_relevant_ranks(vectors, vectors, grades, lambda done, total: told.append((done, total)))
    assert told == [(5, 5)]
    with pytest.raises(Stopped):
        vector_relevant_ranks(vectors, vectors, grades, is_stopped=lambda: True)
    told.clear()
    ranker_relevant_ranks(lambda _: vectors[0], ["a", "b"], grades[:2], lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
    with pytest.raises(Stopped):
        ranker_relevant_ranks(lambda _: vectors[0], ["a"], grades[:1], is_stopped=lambda: True)
    for wrong in ([{0: 1}], [*grades[:4], {5: 1}], [*grades[:4], {-1: 1}], [*grades[:4], {0: 0}]):
        with pytest.raises(ValueError, match="grades"):
            vector_relevant_ranks(vectors, vectors, wrong)
        with pytest.raises(ValueError, match="grades"):
            ranker_relevant_ranks(lambda _: vectors[0], list("abcde"), wrong)
