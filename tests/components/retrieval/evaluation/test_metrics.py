"""Measures by hand and against ir_measures; intervals and tests that behave as they should."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import RR, R, nDCG

from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.metrics import (
    MEASURES,
    holm,
    interval,
    ndcg,
    randomisation_test,
    recall,
    recall_band,
    recall_curve,
    reciprocal_rank,
    shown_p,
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
    with pytest.raises(ValueError, match="equal numbers"):
        randomisation_test(first, first[:5])


def test_the_randomisation_test_of_few_queries_is_the_exact_count():
    # Three queries differ, all in one direction: of 8 sign patterns 2 are as large, so p is near 1/4.
    assert randomisation_test(np.array([1.0, 1, 1, 0]), np.zeros(4)) == pytest.approx(0.25, abs=0.02)


def test_the_interval_is_that_of_queries_drawn_with_replacement():
    """By counts of equal values it has to be what drawing queries one by one gives."""
    random = np.random.default_rng(6)
    values = random.choice([0, 1 / 3, 0.5, 1], 300, p=[0.4, 0.1, 0.2, 0.3])
    drawn = values[random.integers(0, 300, (20_000, 300))].mean(axis=1)
    found = interval(values, resamples=20_000)
    np.testing.assert_allclose([found.low, found.high], np.quantile(drawn, [0.025, 0.975]), atol=2e-3)


def test_the_band_is_that_of_queries_drawn_with_replacement():
    random = np.random.default_rng(5)
    ranks, most = np.minimum(random.geometric(0.08, 400), 60), 20
    drawn = ranks[random.integers(0, 400, (10_000, 400))]
    curves = np.stack([(drawn <= k).mean(axis=1) for k in range(1, most + 1)], axis=1)
    expected = np.quantile(curves, [0.025, 0.975], axis=0)
    # 0.005 is two queries; a 90 % interval would be narrower by 0.008 in the middle of the curve.
    np.testing.assert_allclose(recall_band(ranks, most, resamples=10_000), expected, atol=5e-3)


def test_the_band_holds_the_curve_and_agrees_with_the_interval_of_one_cutoff():
    ranks = np.random.default_rng(1).geometric(0.05, 500)
    low, high = recall_band(ranks, 100)
    curve = recall_curve(ranks, 100)
    assert low.shape == high.shape == (100,)
    assert (low < curve).all()
    assert (curve < high).all()
    assert (np.diff(low) >= 0).all()  # each resample's curve rises
    for k in (1, 10, 50):
        one = interval(recall(ranks, k))
        assert (low[k - 1], high[k - 1]) == pytest.approx((one.low, one.high), abs=0.01)
    np.testing.assert_array_equal(recall_band(ranks, 9, seed=2), recall_band(ranks, 9, seed=2))
    # Where every query has the same rank there is nothing to be unsure of.
    np.testing.assert_array_equal(recall_band(np.array([2, 2, 2]), 3), [[0, 1, 1], [0, 1, 1]])
    np.testing.assert_array_equal(recall_band(np.array([9, 9]), 3), np.zeros((2, 3)))


def test_holms_adjustment_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04, and none is below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.4, 0.9]) == pytest.approx([1, 1, 1])  # never above 1
    assert holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])
    assert holm([0.3]) == [0.3]
    assert holm([]) == []


def test_holms_adjustment_among_more_comparisons_than_are_shown():
    # Of six comparisons the three here are the smallest at best: times 6, 5, 4.
    assert holm([0.03, 0.01, 0.02], among=6) == pytest.approx([0.12, 0.06, 0.1])
    assert holm([0.03, 0.01, 0.02], among=3) == holm([0.03, 0.01, 0.02])
    with pytest.raises(ValueError, match="3 comparisons of 2"):
        holm([0.03, 0.01, 0.02], among=2)


def test_p_values_as_they_are_read():
    least = randomisation_test(np.ones(50), np.zeros(50))
    assert least == pytest.approx(1 / 10_001)
    assert shown_p(least, least) == "< 0.0001"
    assert shown_p(3 * least, least) == "< 0.0003"  # adjusted, it is a bound as well
    assert shown_p(1.0, least) == "1.000"  # there is nothing beyond
    assert shown_p(2 * least, 2 * least) == "0.0002"
    assert shown_p(0.02, 1 / 100, resamples=99) == "< 0.020"
    numbers = (0.00099, 0.001, 0.04999, 0.5, 1.0)
    assert [shown_p(value, value) for value in numbers] == ["0.0010", "0.001", "0.050", "0.500", "1.000"]


def test_the_measures_to_choose_from_are_those_of_the_summary():
    ranks = np.random.default_rng(2).integers(1, 90, 70)
    found = {name: round(100 * float(each(ranks).mean()), 2) for name, each in MEASURES.items()}
    told = summary(ranks)
    expected = {f"Recall@{k}": value for k, value in told["recall"].items()}
    assert found == {**expected, "MRR": told["mrr"], "nDCG@10": told["ndcg@10"]}
    assert list(expected) == [f"Recall@{k}" for k in metrics.CUTOFFS]
    assert len(set(found.values())) == len(found)  # none stands for another
