"""Measures by hand and against ir_measures; intervals and tests that behave as they should."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import RR, R, nDCG

from components.retrieval import metrics
from components.retrieval.metrics import (
    interval,
    ndcg,
    randomisation_test,
    recall,
    recall_curve,
    reciprocal_rank,
    summary,
)

RANKS = np.array([1, 2, 3, 11, 60])


def test_measures_worked_out_on_paper():
    assert recall(RANKS, 1).mean() == pytest.approx(0.2)
    assert recall(RANKS, 10).mean() == pytest.approx(0.6)
    assert reciprocal_rank(RANKS).mean() == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 11 + 1 / 60) / 5)
    assert ndcg(RANKS).mean() == pytest.approx((1 + 1 / np.log2(3) + 1 / 2) / 5)
    assert summary(RANKS) == {
        "recall": {"1": 20.0, "5": 60.0, "10": 60.0, "20": 80.0, "50": 80.0},
        "mrr": 38.82,
        "ndcg@10": 42.62,
        "n": 5,
    }
    with pytest.raises(ValueError, match="at least 1"):
        recall(RANKS, 0)


def test_the_curve_is_recall_at_every_cutoff():
    np.testing.assert_allclose(recall_curve(RANKS, 12), [recall(RANKS, k).mean() for k in range(1, 13)])


def test_measures_equal_ir_measures_on_random_rankings():
    random = np.random.default_rng(4)
    documents, queries = 80, 50
    scores = random.normal(size=(queries, documents))
    run = {str(q): {str(d): float(scores[q, d]) for d in range(documents)} for q in range(queries)}
    qrels = {str(q): {str(q): 1} for q in range(queries)}
    ranks = 1 + (scores > scores[np.arange(queries), np.arange(queries)][:, None]).sum(axis=1)
    theirs = ir_measures.calc_aggregate([R @ 1, R @ 5, R @ 20, RR, nDCG @ 10], qrels, run)
    for k in (1, 5, 20):
        assert recall(ranks, k).mean() == pytest.approx(theirs[R @ k])
    assert reciprocal_rank(ranks).mean() == pytest.approx(theirs[RR])
    assert ndcg(ranks).mean() == pytest.approx(theirs[nDCG @ 10])


def test_an_interval_holds_the_mean_and_shrinks_with_queries():
    random = np.random.default_rng(0)
    few, many = ((random.random(count) < 0.7).astype(float) for count in (50, 5_000))
    found = [interval(values) for values in (few, many)]
    for values, one in zip((few, many), found, strict=True):
        assert one.low < one.value < one.high
        assert one.value == values.mean()
    assert found[1].high - found[1].low < 0.3 * (found[0].high - found[0].low)
    # Near the normal interval of a share: 1.96 standard errors on each side.
    expected = 1.96 * np.sqrt(many.mean() * (1 - many.mean()) / 5_000)
    assert found[1].high - found[1].low == pytest.approx(2 * expected, rel=0.1)
    assert interval(few, seed=3) == interval(few, seed=3)
    assert interval(np.ones(5)) == metrics.Interval(1, 1, 1)
    with pytest.raises(ValueError, match="no query"):
        interval(np.empty(0))


def test_the_randomisation_test_knows_chance_from_difference():
    random = np.random.default_rng(0)
    first = (random.random(400) < 0.6).astype(float)
    assert randomisation_test(first, first) == 1
    other = np.where(random.random(400) < 0.3, (random.random(400) < 0.6).astype(float), first)
    assert randomisation_test(first, other) > 0.05  # drawn alike
    better = np.maximum(first, random.random(400) < 0.3)
    assert randomisation_test(better, first) < 0.001
    assert randomisation_test(first, better) == randomisation_test(better, first)
    with pytest.raises(ValueError, match="as many"):
        randomisation_test(first, first[:5])


def test_the_randomisation_test_of_few_queries_is_the_exact_count():
    # Three queries differ, all in one direction: of 8 sign patterns 2 are as large, so p is near 1/4.
    assert randomisation_test(np.array([1.0, 1, 1, 0]), np.zeros(4)) == pytest.approx(0.25, abs=0.02)
