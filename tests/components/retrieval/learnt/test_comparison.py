"""The candidates of a comparison: which queries they are of, how these are split, and what a word ranking does not find."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from components.retrieval.evaluation.graded.collection import GradedReport, GradedSet
from components.retrieval.learnt.comparison import RANKING_MEASURES, choose_candidates

TEXTS = 12
WITHOUT = 5  # the query whose relevant document the corpus lacks


@pytest.fixture(scope="module")
def graded():
    """Every query stands twice, and shares no word with the document that is relevant for it."""
    queries = tuple(f"alpha{number % TEXTS} beta" for number in range(2 * TEXTS))
    documents = (*(f"gamma{number}" for number in range(TEXTS)), *(f"alpha{number} beta" for number in range(TEXTS)))
    grades = tuple(MappingProxyType({} if number == WITHOUT else {number % TEXTS: 1}) for number in range(len(queries)))
    missing = tuple((1,) if number == WITHOUT else () for number in range(len(queries)))
    return GradedSet("made up", documents, queries, grades, GradedReport(0, 0), missing=missing)


@pytest.fixture(scope="module")
def learning(graded):
    vectors = np.random.default_rng(1).normal(size=(len(graded.queries), len(graded.documents))).astype(np.float32)
    return choose_candidates(graded, lambda query: vectors[query], 100, first=3, others=4)


def test_nothing_is_learnt_from_a_query_without_a_relevant_document(graded, learning):
    assert learning.pairs.query_numbers.tolist() == [row for row in range(len(graded.queries)) if row != WITHOUT]


def test_queries_with_the_same_text_are_learnt_from_or_tested_on(learning):
    parts = [{learning.pairs.queries[row] for row in part} for part in (learning.split.train, learning.split.test)]
    assert all(parts)
    assert not parts[0] & parts[1]


def test_a_relevant_document_without_a_word_of_the_query_is_not_found_by_words(learning):
    of = {ranking.name: RANKING_MEASURES["MAP"](ranking.ranks) for ranking in learning.references()}
    assert not of["BM25"].any()
    assert not of["Jelinek-Mercer"].any()
    assert (of["Bi-encoder"] > 0).all()


def test_what_was_only_added_is_not_re_ranked(learning):
    of_test = learning.pairs.rows_of(learning.split.test)
    assert set(learning.test_rows) < set(of_test)
    assert learning.pairs.is_found[learning.test_rows].all()
