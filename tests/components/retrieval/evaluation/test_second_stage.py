"""Retrieval in two stages: candidates, scores of different pairs once, and ranks with ties against the query."""

from __future__ import annotations

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.evaluation import second_stage
from components.retrieval.evaluation.graded.ranks import (
    RelevantRanks,
    ranker_relevant_ranks,
    vector_relevant_ranks,
)
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.rerank import late_interaction_scores

NUMBERS = np.random.default_rng(5)
VECTORS = NUMBERS.normal(size=(60, 8)).astype(np.float32)
QUERIES = VECTORS[:40] + NUMBERS.normal(scale=1.2, size=(40, 8)).astype(np.float32)


def test_ranks_are_those_of_the_second_order_within_the_candidates_and_of_the_first_beyond():
    first = gold_ranks(QUERIES, VECTORS)
    rows = second_stage.candidates(QUERIES, VECTORS, 7)
    scores = NUMBERS.normal(size=rows.shape).astype(np.float32)
    ranks = second_stage.second_ranks(first, rows, scores)
    assert (first <= 7).sum() > 5
    assert (first > 7).sum() > 5
    for query in range(len(QUERIES)):
        order = Ranking.of_candidates("", "", scores[query], rows[query], rows.max() + 1).best.tolist()
        expected = order.index(query) + 1 if query in order else first[query]
        assert ranks[query] == expected
    # The first stage's own scores change no rank.
    own = np.argsort(np.argsort(rows * 0 - np.arange(7), axis=1), axis=1).astype(np.float32)
    np.testing.assert_array_equal(second_stage.second_ranks(first, rows, own), first)


@pytest.mark.parametrize("k", [1, 7, 59, 60, 80])
def test_a_querys_own_document_is_no_candidate(k):
    own = np.where(np.arange(40) % 3 == 0, -1, np.arange(40))
    rows = second_stage.candidates(QUERIES, VECTORS, k, own=own)
    whole = second_stage.candidates(QUERIES, VECTORS, 60)
    assert rows.shape == (40, min(k, 59))
    for query, found in enumerate(rows.tolist()):
        assert found == [row for row in whole[query].tolist() if row != own[query]][:k][:59]
    assert second_stage.candidates(QUERIES, VECTORS, k, own=np.full(40, -1)).shape == (40, min(k, 60))


def test_ties_count_against_the_query_in_both_stages():
    rows = np.array([[0, 1, 2], [3, 1, 0]])
    scores = np.array([[1.0, 1.0, 0.0], [2.0, 5.0, 5.0]], np.float32)
    ranks = second_stage.second_ranks(np.array([2, 3]), rows, scores, np.array([0, 1]))
    assert ranks.tolist() == [2, 2]
    # Rank 4 in the first stage: it shares its score with a document that is no candidate, so that it is none either.
    assert second_stage.second_ranks(np.array([4]), rows[:1], scores[:1], np.array([0])).tolist() == [4]


def test_graded_ranks_are_those_of_a_ranker_with_the_whole_order():
    grades = [
        {int(document): int(NUMBERS.integers(1, 4)) for document in NUMBERS.choice(60, 6, False)} for _ in QUERIES
    ]
    first = vector_relevant_ranks(QUERIES, VECTORS, grades)
    rows = second_stage.candidates(QUERIES, VECTORS, 12)
    scores = NUMBERS.integers(0, 4, size=rows.shape).astype(np.float32)  # many ties
    found = second_stage.second_relevant_ranks(first, rows, scores)

    def whole(query: str) -> np.ndarray:
        number = int(query)
        cosines = VECTORS @ QUERIES[number] / np.linalg.norm(VECTORS, axis=1) / np.linalg.norm(QUERIES[number])
        cosines[rows[number]] = 10 + scores[number]
        return cosines

    expected = ranker_relevant_ranks(whole, [str(number) for number in range(40)], grades)
    for name in ("ranks", "grades", "starts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert all(
        [grades[query][document] for document in found.documents[found.starts[query] : found.starts[query + 1]]]
        == found.grades[found.starts[query] : found.starts[query + 1]].tolist()
        for query in range(40)
    )
    with pytest.raises(ValueError, match="name their documents"):
        second_stage.second_relevant_ranks(RelevantRanks(first.ranks, first.grades, first.starts), rows, scores)


def test_a_right_text_that_is_no_candidate_stands_behind_all_candidates():
    """Equal vectors around the last candidate: its rank of the first stage may be within the first k."""
    first = RelevantRanks(np.array([2, 3]), np.array([1, 1]), np.array([0, 2]), np.array([5, 6]))
    found = second_stage.second_relevant_ranks(first, np.array([[0, 1, 2]]), np.array([[3.0, 1.0, 2.0]], np.float32))
    assert (found.ranks.tolist(), found.documents.tolist()) == ([4, 5], [5, 6])


def test_every_different_pair_of_texts_is_scored_once():
    asked = []

    def score(queries, documents, *, progress, is_stopped):
        asked.extend(zip(queries, documents, strict=True))
        return np.array([len(query) * 100 + len(document) for query, document in asked], np.float32)

    queries, documents = ["a", "bb", "a"], ["x", "yyy", "x", "zz"]
    rows = np.array([[[0, 1], [3, 2], [2, 1]], [[0, 3], [3, 0], [0, 1]]])  # [run, query, candidate]
    scores = second_stage.candidate_scores(score, queries, documents, rows)
    lengths = np.array([[len(query) * 100 + len(document) for document in documents] for query in queries])
    np.testing.assert_array_equal(scores, np.stack([np.take_along_axis(lengths, run, axis=1) for run in rows]))
    assert len(asked) == len(set(asked)) == 5


def test_max_sim_of_candidates_is_late_interaction(embedded, monkeypatch):
    monkeypatch.setattr(second_stage, "_QUERIES", 2)
    monkeypatch.setattr(second_stage, "_TEXTS", 2)
    queries = ["a volcano erupted", "interest rates", "pets"]
    documents = ["A volcano erupted.", "The bank raised its rates.", "Lava.", "A cat slept.", "Lava.", ""]
    rows = np.array([[0, 2, 4], [1, 5, 3], [3, 4, 0]])
    reports = []
    scores = second_stage.max_sim_candidate_scores(
        embedded, 6, queries, documents, rows, progress=lambda *report: reports.append(report)
    )
    for query, own, own_scores in zip(queries, rows, scores, strict=True):
        expected = late_interaction_scores(embedded, query, [documents[row] for row in own], 6)
        np.testing.assert_allclose(own_scores, expected, atol=1e-4)
    assert scores[0, 1] == scores[0, 2]
    assert reports[-1] == (11, 11)  # 2 queries with 5 different texts, then 1 with 3
    with pytest.raises(Stopped):
        second_stage.max_sim_candidate_scores(embedded, 6, queries, documents, rows, is_stopped=lambda: True)
