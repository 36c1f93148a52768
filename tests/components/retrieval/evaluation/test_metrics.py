"""Measures by hand and against ir_measures; intervals and tests that behave as they should."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import RR, R, nDCG
from scipy import stats

from components.arrays import wilson
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
    ranked = 1 / random.integers(1, 9, 50)
    assert interval(ranked, seed=3) == interval(ranked, seed=3)
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


def test_the_interval_of_a_share_is_wilsons():
    for queries in (1, 2, 4, 10, 40, 41, 630):
        for right in sorted({0, 1, queries // 3, queries - 1, queries}):
            values = np.arange(queries) < right
            theirs = stats.binomtest(right, queries).proportion_ci(method="wilson")
            ours = interval(values.astype(float))
            assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
            assert 0 <= ours.low <= ours.value <= ours.high <= 1


def test_few_queries_or_equal_values_are_not_certain():
    assert interval(np.ones(4)).high == 1
    assert interval(np.ones(4)).low == pytest.approx(0.5101, abs=1e-4)  # 4 / (4 + 1.96 ** 2)
    assert interval(np.zeros(4)).high == pytest.approx(0.4899, abs=1e-4)
    for queries in (4, 40, 500):  # equal values of a measure that is no share
        ours = interval(np.full(queries, 0.5))
        theirs = stats.binomtest(queries // 2, queries).proportion_ci(method="wilson")
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_up_to_forty_queries_have_wilsons_interval_and_more_a_bootstraps():
    for queries in (40, 41):
        ours = interval(1 / np.arange(1, queries + 1))
        low, high = (float(end[0]) for end in wilson(np.array([ours.value]), queries))
        assert ((ours.low, ours.high) == (low, high)) is (queries == 40)


def test_few_queries_have_an_interval_that_holds_as_often_as_it_says():
    """Reciprocal ranks of 8 queries, drawn many times: a bootstrap's 95 % interval contains the true mean too rarely."""
    random = np.random.default_rng(8)
    ranks = random.choice([1, 2, 5, 20], (2_000, 8), p=[0.7, 0.15, 0.1, 0.05])
    true = 0.7 + 0.15 / 2 + 0.1 / 5 + 0.05 / 20
    intervals = [interval(1 / row) for row in ranks]
    assert np.mean([found.low <= true <= found.high for found in intervals]) >= 0.95


def test_the_band_holds_the_curve_and_agrees_with_the_interval_of_one_cutoff():
    ranks = np.random.default_rng(1).geometric(0.05, 500)
    low, high = recall_band(ranks, 100)
    curve = recall_curve(ranks, 100)
    assert low.shape == high.shape == (100,)
    assert (low < curve).all()
    assert (curve < high).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    for k in (1, 10, 50):
        one = interval(recall(ranks, k))
        assert (low[k - 1], high[k - 1]) == pytest.approx((one.low, one.high))
    # Three queries of one rank leave much open: Wilson's ends of 0 and of 3 out of 3.
    end = 3 / (3 + 1.959964**2)
    np.testing.assert_allclose(recall_band(np.array([2, 2, 2]), 3), [[0, end, end], [1 - end, 1, 1]], atol=1e-6)
    with pytest.raises(ValueError, match="no case"):
        recall_band(np.empty(0, np.int64), 3)


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


def test_nothing_is_found_where_no_query_has_a_correct_answer_with_a_rank():
    none = metrics.NOT_FOUND
    assert metrics.finds_nothing(np.array([none, none]))
    assert not metrics.finds_nothing(np.array([none, 4]))
    assert not metrics.finds_nothing(np.array([], int))
    several = metrics.RelevantRanks(np.array([none, none, 9]), np.ones(3, int), np.array([0, 2, 3]))
    assert not metrics.finds_nothing(several)
