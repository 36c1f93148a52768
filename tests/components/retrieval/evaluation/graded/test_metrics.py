"""Graded measures by hand, with ties in the worst order, and against ir_measures on random rankings without ties."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, IPrec, P, R, nDCG

from components.retrieval.evaluation.graded.metrics import (
    MEASURES,
    average_precision,
    graded_summary,
    interpolated_precision,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
)
from components.retrieval.evaluation.graded.ranks import RelevantRanks, ranker_relevant_ranks, vector_relevant_ranks

# Query 0: grades 1 and 3 at ranks 1 and 4; query 1: grade 2 at rank 20; query 2: nothing is relevant.
SMALL = RelevantRanks(np.array([1, 4, 20]), np.array([1, 3, 2]), np.array([0, 2, 3, 3]))
THEIRS = {"nDCG@10": nDCG @ 10, "MRR": RR, "P@10": P @ 10, "Recall@10": R @ 10, "Recall@100": R @ 100, "MAP": AP}


def test_measures_worked_out_on_paper():
    np.testing.assert_allclose(average_precision(SMALL), [(1 + 2 / 4) / 2, 1 / 20, 0])
    np.testing.assert_allclose(reciprocal_rank(SMALL), [1, 1 / 20, 0])
    gain, ideal = 1 + 3 / np.log2(5), 3 + 1 / np.log2(3)
    np.testing.assert_allclose(ndcg(SMALL), [gain / ideal, 0, 0])
    np.testing.assert_allclose(ndcg(SMALL, 3), [1 / ideal, 0, 0])
    np.testing.assert_allclose(ndcg(SMALL, 1), [1 / 3, 0, 0])  # the best has grade 3
    np.testing.assert_allclose(ndcg(SMALL, 20)[1], 1 / np.log2(21))
    np.testing.assert_allclose(precision(SMALL), [0.2, 0, 0])
    np.testing.assert_allclose(precision(SMALL, 1), [1, 0, 0])
    np.testing.assert_allclose(recall(SMALL, 3), [0.5, 0, 0])
    np.testing.assert_allclose(recall(SMALL), [1, 1, 0])
    np.testing.assert_allclose(interpolated_precision(SMALL), [[1] * 6 + [0.5] * 5, [0.05] * 11, [0] * 11])
    for measure in (ndcg, precision, recall):
        with pytest.raises(ValueError, match="at least 1"):
            measure(SMALL, 0)


def test_interpolation_takes_the_best_precision_further_on():
    found = RelevantRanks(np.array([2, 3, 4, 10]), np.ones(4, int), np.array([0, 4]))
    # Precisions 1/2, 2/3, 3/4, 4/10 at recall 1/4, 2/4, 3/4, 4/4.
    np.testing.assert_allclose(interpolated_precision(found)[0], [0.75] * 8 + [0.4] * 3)


def test_the_summary_is_in_per_cent():
    assert graded_summary(SMALL) == {
        "map": 26.67,
        "mrr": 35.0,
        "ndcg@10": 21.04,
        "p@10": 6.67,
        "recall": {"10": 33.33, "100": 66.67},
        "precision_at_recall": [35.0] * 6 + [18.33] * 5,
        "n": 3,
    }
    assert list(MEASURES) == list(THEIRS)
    with pytest.raises(ValueError, match="no query"):
        graded_summary(RelevantRanks(*(np.array(values, int) for values in ([], [], [0]))))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [3, 150])
def test_measures_equal_ir_measures_on_random_rankings(seed, most):
    random = np.random.default_rng(seed)
    documents, queries = 300, 40
    scores = random.permuted(np.tile(np.arange(documents), (queries, 1)), axis=1)  # no ties
    judged = [
        {
            int(at): int(random.integers(0, 4))
            for at in random.choice(documents, random.integers(1, most), replace=False)
        }
        for _ in range(queries)
    ]
    for own in judged:
        own[int(random.integers(documents))] = int(random.integers(1, 4))
    qrels = {str(q): {str(d): grade for d, grade in own.items()} for q, own in enumerate(judged)}
    run = {str(q): {str(d): float(scores[q, d]) for d in range(documents)} for q in range(queries)}
    relevant = [{at: grade for at, grade in own.items() if grade > 0} for own in judged]
    found = ranker_relevant_ranks(
        lambda query: scores[int(query)].astype(np.float32), [str(q) for q in range(queries)], relevant
    )
    theirs = {measure: np.empty(queries) for measure in THEIRS.values()}
    for value in ir_measures.iter_calc(list(theirs), qrels, run):
        theirs[value.measure][int(value.query_id)] = value.value
    for name, measure in MEASURES.items():
        np.testing.assert_allclose(measure(found), theirs[THEIRS[name]], atol=1e-9, err_msg=name)
    levels = [IPrec @ (level / 10) for level in range(11)]
    curves = np.empty((queries, 11))
    for value in ir_measures.iter_calc(levels, qrels, run):
        curves[int(value.query_id), levels.index(value.measure)] = value.value
    # trec_eval rounds level * relevant + 0.9 down, which for 0.7 * 3 gives 2 of 3 documents, less than that recall.
    sizes = np.diff(found.starts)[:, None]
    same = (np.arange(11) / 10 * sizes + 0.9).astype(int) == -(-np.arange(11) * sizes // 10)
    assert same.mean() > 0.9
    np.testing.assert_allclose(interpolated_precision(found)[same], curves[same], atol=1e-9)


def test_identical_vectors_give_the_worst_values_there_are():
    """20 documents alike, one of grade 2 and one of grade 1 a query: ranks 19 and 20, the better one last."""
    same = np.ones((20, 4), np.float32)
    found = vector_relevant_ranks(same[:5], same, [{query: 2, query + 1: 1} for query in range(5)])
    np.testing.assert_allclose(average_precision(found), [(1 / 19 + 2 / 20) / 2] * 5)
    np.testing.assert_allclose(reciprocal_rank(found), [1 / 19] * 5)
    ideal = 2 + 1 / np.log2(3)
    np.testing.assert_allclose(ndcg(found, 20), [(1 / np.log2(20) + 2 / np.log2(21)) / ideal] * 5)
    assert (ndcg(found) == 0).all()
    assert (precision(found) == 0).all()
    assert (recall(found, 19) == 0.5).all()


def test_a_tie_at_the_cut_off_counts_against_the_ranking():
    """Scores 5, 4, 4, 4 and 1: of the three alike two are relevant, and they come behind the third."""
    scores = np.array([5, 4, 4, 4, 1], np.float32)
    found = ranker_relevant_ranks(lambda _: scores, ["x"], [{1: 2, 3: 1}])
    assert found.ranks.tolist() == [3, 4]
    assert found.grades.tolist() == [1, 2]
    assert precision(found, 2).tolist() == [0]
    np.testing.assert_allclose(average_precision(found), [(1 / 3 + 2 / 4) / 2])
