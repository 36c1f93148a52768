"""A ranking learnt by logistic regression, against scikit-learn and ir_measures used directly, on made-up vectors."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, classification_report, precision_recall_curve
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.graded.collection import GradedReport, GradedSet
from components.retrieval.learnt import learnt_ranking
from components.retrieval.learnt.learnt_ranking import judged_pairs, learn, split_queries

QUERIES, DOCUMENTS, DIM = 40, 60, 5


@pytest.fixture(scope="module")
def vectors():
    numbers = np.random.default_rng(3)
    return tuple(numbers.normal(size=(count, DIM)).astype(np.float32) for count in (QUERIES, DOCUMENTS))


@pytest.fixture(scope="module")
def graded(vectors):
    """Relevant is what has a large product in the first two numbers; the largest has grade 2."""
    scores = vectors[0][:, :2] @ vectors[1][:, :2].T
    grades = []
    for row in scores:
        best = np.argsort(-row)[:6]
        grades.append(MappingProxyType({int(document): 2 if document == best[0] else 1 for document in best}))
    names = [tuple(f"{kind} {number}" for number in range(count)) for kind, count in (("q", QUERIES), ("d", DOCUMENTS))]
    return GradedSet("made up", names[1], names[0], tuple(grades), GradedReport(0, 0))


@pytest.fixture(scope="module")
def pairs(graded, vectors):
    return judged_pairs(graded, np.arange(QUERIES), [lambda query: vectors[1] @ vectors[0][query]], 8, others=6)


@pytest.fixture(scope="module")
def split():
    return split_queries(np.arange(QUERIES) % 4 / 10)


def test_candidates_are_the_first_documents_the_relevant_ones_and_some_at_random(graded, vectors, pairs):
    texts = pairs.texts()
    for query in range(QUERIES):
        rows = np.flatnonzero(pairs.query_rows == query)
        first = set(np.argsort(-(vectors[1] @ vectors[0][query]))[:8].tolist())
        numbers = pairs.document_numbers[pairs.document_rows[rows]].tolist()
        assert numbers == sorted(set(numbers))
        assert first | set(graded.grades[query]) <= set(numbers)
        assert {number for number, found in zip(numbers, pairs.is_found[rows], strict=True) if found} == first
        assert [graded.grades[query].get(number, 0) for number in numbers] == pairs.grades[rows].tolist()
        assert [texts[0][row] for row in rows] == [graded.queries[query]] * len(rows)
        assert [texts[1][row] for row in rows] == [graded.documents[number] for number in numbers]
    assert len(pairs.documents) == DOCUMENTS  # all are ranked
    with pytest.raises(Stopped):
        judged_pairs(graded, np.arange(3), [lambda query: np.zeros(DOCUMENTS)], 1, is_stopped=lambda: True)


def test_a_query_that_is_a_document_is_no_candidate_of_its_own(graded, vectors):
    own = np.arange(QUERIES)
    found = judged_pairs(replace(graded, own=own), own, [lambda query: vectors[1] @ vectors[0][query]], 8, others=6)
    assert not (found.document_numbers[found.document_rows] == found.query_rows).any()


def test_the_seed_draws_the_queries():
    first, second = (learnt_ranking.sampled_queries(100, 10, seed).tolist() for seed in (1, 2))
    assert first != second
    assert first == sorted(set(first))
    assert learnt_ranking.sampled_queries(10, 10, 1).tolist() == list(range(10))


def test_a_solver_that_used_all_its_steps_has_not_converged(pairs, split, vectors, monkeypatch):
    features = vectors[0][pairs.query_rows] * vectors[1][pairs.document_numbers[pairs.document_rows]]
    assert learn(features, pairs, split).has_converged
    monkeypatch.setattr(learnt_ranking, "_STEPS", 1)
    assert not learn(features, pairs, split).has_converged


def test_of_a_large_collection_the_candidates_and_a_sample_are_ranked(graded, vectors, monkeypatch):
    monkeypatch.setattr(learnt_ranking, "MOST_DOCUMENTS", 30)
    few = judged_pairs(graded, np.arange(2), [lambda query: vectors[1] @ vectors[0][query]], 8)
    candidates = set(few.document_numbers[few.document_rows].tolist())
    assert len(few.documents) == 30
    assert candidates < set(few.document_numbers.tolist())
    assert few.documents == tuple(graded.documents[number] for number in few.document_numbers)


def test_the_split_is_scikit_learns_with_no_query_in_both_and_stratified():
    measure = np.repeat([0.0, 0.1, 0.2, 0.3], [40, 24, 16, 2])
    split = split_queries(measure, seed=5)
    assert not set(split.train) & set(split.test)
    assert sorted([*split.train, *split.test]) == list(range(82))
    assert split.strata.tolist() == [0] * 40 + [1] * 24 + [2] * 18  # the two of 0.3 are too few for a stratum
    train, _ = train_test_split(np.arange(82), test_size=0.25, random_state=5, stratify=split.strata)
    assert split.train.tolist() == sorted(train)
    shares = [np.mean(split.strata[part] == 0) for part in (split.train, split.test)]
    assert shares[0] == pytest.approx(shares[1], abs=0.03)
    assert split_queries(measure, seed=6).test.tolist() != split.test.tolist()
    with pytest.raises(InputError, match="At least 8 of them"):
        split_queries(measure[:7])


def test_queries_with_the_same_text_are_in_one_part():
    measure = np.arange(40) % 4 / 10
    texts = [f"query {number}" for number in range(40)]
    assert split_queries(measure, texts=texts).test.tolist() == split_queries(measure).test.tolist()
    texts[3] = texts[38] = "bank"
    for seed in range(20):
        split = split_queries(measure, seed, texts=texts)
        assert sorted([*split.train, *split.test]) == list(range(40))
        assert (3 in split.test) == (38 in split.test)
        assert split.strata[3] == split.strata[38]
    with pytest.raises(InputError, match="There are 7 different queries"):
        split_queries(measure[:8], texts=["bank", "bank", *texts[4:10]])


@pytest.mark.parametrize("c", [0.01, 1.0])
def test_everything_equals_scikit_learn_used_directly(pairs, split, vectors, c):
    features = vectors[0][pairs.query_rows] * vectors[1][pairs.document_rows]
    learnt = learn(features, pairs, split, c)
    wide, labels = features.astype(np.float64), pairs.grades > 0
    train, test = (np.isin(pairs.query_rows, part) for part in (split.train, split.test))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=2_000))
    pipeline.fit(wide[train], labels[train])
    np.testing.assert_allclose(learnt.scores, pipeline.decision_function(wide), atol=1e-9)
    np.testing.assert_allclose(learnt.score(features), learnt.scores, atol=1e-9)
    assert learnt.has_converged
    for name, rows in (("train", train), ("test", test)):
        table = classification_report(labels[rows], pipeline.predict(wide[rows]), output_dict=True, zero_division=0.0)
        report = learnt.reports[name]
        for key, row in (("False", report.not_relevant), ("True", report.relevant)):
            assert (row.precision, row.recall, row.f1, row.support) == tuple(table[key].values())
        assert report.accuracy == table["accuracy"]
        assert report.majority == pytest.approx(max(labels[rows].mean(), 1 - labels[rows].mean()))
        precision, recall, _ = precision_recall_curve(labels[rows], learnt.scores[rows])
        curve = learnt.curves[name]
        np.testing.assert_array_equal(curve.precision, precision)
        np.testing.assert_array_equal(curve.recall, recall)
        assert curve.average_precision == average_precision_score(labels[rows], learnt.scores[rows])
        for level, value in enumerate(curve.interpolated):
            assert value == max(p for p, r in zip(precision, recall, strict=True) if r >= level / 10 - 1e-9)


def test_what_matters_is_learnt_and_ranks_documents_of_new_queries(pairs, split, vectors, graded):
    """Relevance is the product of the first two numbers: the product's coefficients find them, the plain cosine cannot."""
    learnt = learn(vectors[0][pairs.query_rows] * vectors[1][pairs.document_rows], pairs, split)
    assert learnt.coefficients[:2].min() > 1.5 * np.abs(learnt.coefficients[2:]).max()
    scores = np.stack([learnt.score(vectors[0][query] * vectors[1]) for query in split.test])
    ranks = learnt_ranking.relevant_ranks(pairs, scores, split.test)
    plain = learnt_ranking.relevant_ranks(pairs, (vectors[0] @ vectors[1].T)[split.test], split.test)
    average = graded_metrics.average_precision
    assert average(ranks).mean() > average(plain).mean() + 0.1
    for number, query in enumerate(split.test):  # the rank by hand, of documents without ties
        order = np.argsort(-scores[number]).tolist()
        expected = sorted(order.index(document) + 1 for document in graded.grades[query])
        assert ranks.ranks[ranks.starts[number] : ranks.starts[number + 1]].tolist() == expected


def test_re_ranking_sorts_only_what_was_found(pairs, vectors):
    first_stage, queries = vectors[0] @ vectors[1].T, np.array([4, 7])
    scores = np.random.default_rng(0).normal(size=len(pairs))
    levels = learnt_ranking.reranked(pairs, scores, first_stage, queries)
    for number, query in enumerate(queries):
        rows = np.flatnonzero((pairs.query_rows == query) & pairs.is_found)
        found = pairs.document_rows[rows][np.argsort(-scores[rows])].tolist()
        others = [document for document in np.argsort(-first_stage[query]).tolist() if document not in found]
        assert np.argsort(-levels[number]).tolist() == found + others


def test_equal_scores_count_against_the_ranking_and_small_differences_do_not_vanish(pairs, split):
    shape = (len(split.test), len(pairs.documents))
    worst = learnt_ranking.relevant_ranks(pairs, np.zeros(shape), split.test)
    assert worst.ranks.min() == DOCUMENTS - 6 + 1
    # [CLS] vectors of low layers differ by 1e-7 in their cosines: in float64 that is an order.
    is_relevant = np.zeros(shape)
    for number, query in enumerate(split.test):
        rows = (pairs.query_rows == query) & pairs.is_relevant
        is_relevant[number, pairs.document_rows[rows]] = 1
    best = learnt_ranking.relevant_ranks(pairs, 1 + 1e-9 * is_relevant, split.test)
    assert best.ranks.max() == 6


def test_random_orders_have_the_measure_of_chance(pairs, split):
    measures = {"P@10": graded_metrics.precision, "MAP": graded_metrics.average_precision}
    means = learnt_ranking.random_means(pairs, split.test, measures, orders=200)
    assert means["P@10"].mean() == pytest.approx(6 / DOCUMENTS, abs=0.01)
    for name, measure in measures.items():  # of the same orders, whatever else is measured
        alone = learnt_ranking.random_means(pairs, split.test, {name: measure}, orders=200)
        np.testing.assert_array_equal(means[name], alone[name])
    with pytest.raises(Stopped):
        learnt_ranking.random_means(pairs, split.test, measures, is_stopped=lambda: True)


def test_documents_with_the_same_text_tie(pairs):
    """However little their scores differ, or wherever one of them was found: ties count against the ranking."""
    query = 4
    rows = np.flatnonzero((pairs.query_rows == query) & pairs.is_found)
    found = pairs.document_rows[rows]
    relevant = int(pairs.document_rows[np.flatnonzero((pairs.query_rows == query) & pairs.is_relevant)[0]])
    other = next(number for number in range(DOCUMENTS) if number not in found and number != relevant)
    documents = list(pairs.documents)
    documents[other] = documents[relevant]
    same = replace(pairs, documents=tuple(documents))
    scores = np.zeros((1, DOCUMENTS))
    scores[0, relevant] = 1.0
    for which, rank in ((pairs, 1), (same, 2)):
        given = scores.copy()
        given[0, which.first_of_text[relevant]] = 1.0
        assert learnt_ranking.relevant_ranks(which, given, np.array([query])).ranks.min() == rank
    documents = list(pairs.documents)
    documents[other] = documents[found[0]]
    same = replace(pairs, documents=tuple(documents))
    levels = learnt_ranking.reranked(
        same, np.arange(len(pairs), dtype=float), np.zeros((QUERIES, DOCUMENTS)), np.array([query])
    )
    assert levels[0, other] == levels[0, found[0]] > DOCUMENTS - 1


def test_stop_is_heard(pairs, split, vectors):
    with pytest.raises(Stopped):
        learn(vectors[1][pairs.document_rows], pairs, split, is_stopped=lambda: True)
    with pytest.raises(Stopped):
        learnt_ranking.relevant_ranks(
            pairs, np.zeros((len(split.test), DOCUMENTS)), split.test, is_stopped=lambda: True
        )


def test_one_class_alone_is_refused(pairs, split, vectors):
    features = vectors[1][pairs.document_rows]
    with pytest.raises(InputError, match="all relevant"):
        learn(features, replace(pairs, grades=np.ones(len(pairs), np.int64)), split)


def test_learning_takes_no_more_than_the_expected_memory(pairs, split):
    width = 2_000
    tracemalloc.start()
    features = np.random.default_rng(0).normal(size=(len(pairs), width)).astype(np.float32)
    tracemalloc.reset_peak()
    learn(features, pairs, split)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = learnt_ranking.learning_bytes(len(pairs), width, len(split.test), DOCUMENTS)
    assert 0.5 * expected < peak < 1.1 * expected
