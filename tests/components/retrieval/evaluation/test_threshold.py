"""The threshold analysis against scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import metrics

from components.retrieval.evaluation import threshold
from components.retrieval.evaluation.threshold import Confusion

CASES = ("distinct", "ties", "all relevant", "none relevant", "one", "equal scores")


@pytest.fixture(params=CASES)
def case(request):
    randomness = np.random.default_rng(3)
    relevant = randomness.random(50) < 0.2
    scores = randomness.normal(size=50) + relevant
    if request.param == "ties":
        scores = scores.round(1)
    elif request.param == "all relevant":
        relevant[:] = True
    elif request.param == "none relevant":
        relevant[:] = False
    elif request.param == "one":
        scores, relevant = scores[:1], np.array([True])
    elif request.param == "equal scores":
        scores[:] = 0.3
    return scores, relevant


@pytest.mark.filterwarnings("ignore:No positive class")
def test_the_curve_and_its_area_are_scikit_learns(case):
    scores, relevant = case
    ours = threshold.analyse(scores, relevant)
    precision, recall, thresholds = metrics.precision_recall_curve(relevant, scores)
    np.testing.assert_allclose(ours.thresholds, thresholds)
    np.testing.assert_allclose(ours.precision, precision)
    np.testing.assert_allclose(ours.recall, recall)
    assert ours.average_precision == pytest.approx(metrics.average_precision_score(relevant, scores))


def test_every_confusion_matrix_is_scikit_learns(case):
    scores, relevant = case
    ours = threshold.analyse(scores, relevant)
    between = (ours.thresholds[1:] + ours.thresholds[:-1]) / 2
    for value in (-9.0, *ours.thresholds, *between, 9.0):
        accepted = scores >= value
        found = ours.at(float(value))
        expected = metrics.confusion_matrix(relevant, accepted, labels=[True, False])
        assert [[found.true_positives, found.false_negatives], [found.false_positives, found.true_negatives]] == (
            expected.tolist()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            precision, recall, f1, _ = metrics.precision_recall_fscore_support(
                relevant, accepted, average="binary", zero_division=0
            )
        assert (found.precision, found.recall, found.f1) == pytest.approx((precision, recall, f1))
        assert found.accuracy == pytest.approx(metrics.accuracy_score(relevant, accepted))


def test_no_other_threshold_has_a_higher_f1(case):
    scores, relevant = case
    ours = threshold.analyse(scores, relevant)
    best = ours.best_f1()
    f1 = [ours.at(value).f1 for value in ours.thresholds]
    assert ours.at(best).f1 == pytest.approx(max(f1))
    assert best == max(value for value, own in zip(ours.thresholds, f1, strict=True) if own >= max(f1) - 1e-12)


def test_the_larger_class_is_that_of_the_marks_and_not_of_what_is_accepted():
    many = Confusion(true_positives=3, false_positives=1, false_negatives=4, true_negatives=2)
    assert (many.majority_is_relevant, many.majority) == (True, 0.7)
    few = Confusion(true_positives=3, false_positives=4, false_negatives=0, true_negatives=1)
    assert (few.majority_is_relevant, few.majority) == (False, 0.625)


def test_shares_of_nothing_are_zero():
    nothing = Confusion(0, 0, 0, 0)
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.accuracy) == (0, 0, 0, 0)


def test_results_are_read_only_and_wrong_input_is_refused():
    ours = threshold.analyse(np.array([0.1, 0.7]), np.array([False, True]))
    assert not any(array.flags.writeable for array in (ours.thresholds, ours.precision, ours.recall))
    for scores, relevant in (([], []), ([1.0], [True, False]), ([np.nan], [True])):
        with pytest.raises(ValueError, match=r"document|finite"):
            threshold.analyse(np.array(scores), np.array(relevant))
