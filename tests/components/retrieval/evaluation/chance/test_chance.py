"""What could be chance: by hand, by scipy, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from components.retrieval.evaluation.chance import paired
from components.retrieval.evaluation.chance.best import best_of


def shares(*counts: int, queries: int) -> np.ndarray:
    """Candidates that answer the first so many queries: [candidate, query]."""
    return np.array([[float(query < count) for query in range(queries)] for count in counts])


def test_one_far_ahead_is_the_only_one_that_may_be_the_best() -> None:
    found = best_of(shares(90, 40, 10, queries=100))
    np.testing.assert_allclose(found.means, [0.9, 0.4, 0.1])
    assert found.may_be_best.tolist() == [True, False, False]
    np.testing.assert_allclose(found.first, [1, 0, 0])
    assert abs(found.flatters) < 0.005  # the same one is chosen on every half


def test_candidates_that_draws_cannot_tell_apart_may_both_be_the_best_and_equal_ones_share_each_draw() -> None:
    numbers = np.random.default_rng(1)
    one = (numbers.random(60) < 0.5).astype(float)
    other = (numbers.random(60) < 0.5).astype(float)
    found = best_of(np.array([one, one, other, np.zeros(60)]))
    assert found.may_be_best.tolist() == [True, True, True, False]
    assert found.first[0] == pytest.approx(found.first[1])
    assert found.first.sum() == pytest.approx(1)


def test_choosing_among_many_equally_good_ones_flatters_by_what_their_spread_says() -> None:
    values = (np.random.default_rng(2).random((20, 200)) < 0.5).astype(float)
    found = best_of(values, halves=2_000)
    # The best of 20 means of 100 coins lies about 1.87 standard errors above their mean, and the other half knows nothing
    # of that; the queries are the same ones, so that a lucky half has an unlucky other one.
    assert found.chosen_half > found.other_half
    assert 0.05 < found.flatters < 0.2


def test_one_query_or_one_candidate_is_no_error_but_none_is() -> None:
    alone = best_of(np.array([[1.0], [0.0]]))
    assert (alone.chosen_half, alone.other_half) == (1, 1)
    assert best_of(np.array([[1.0, 0.0]])).first.tolist() == [1]
    for shape in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match="at least one"):
            best_of(np.zeros(shape))


def test_it_is_the_same_with_one_seed() -> None:
    values = (np.random.default_rng(3).random((5, 50)) < 0.5).astype(float)
    np.testing.assert_array_equal(best_of(values, seed=4).first, best_of(values, seed=4).first)


def test_mcnemar_is_the_exact_binomial_test() -> None:
    for gained, lost in ((11, 2), (0, 5), (3, 3), (8, 44), (0, 0), (400, 350)):
        expected = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
        assert paired.mcnemar(gained, lost) == pytest.approx(expected, abs=1e-9)


def test_the_interval_is_tangos() -> None:
    """Its ends are as far from the observed difference as his score says, with the share found by another way."""
    for gained, lost, queries in ((11, 2, 630), (43, 0, 44), (0, 1, 44), (5, 5, 20), (0, 0, 10)):
        found = paired.difference(gained, lost, queries)
        assert found.low <= found.value <= found.high
        assert found.value == pytest.approx((gained - lost) / queries)
        for end in (found.low, found.high):
            if abs(end) > 1 - 1e-6:
                continue
            assert abs(_score(gained, lost, queries, end)) == pytest.approx(1.959964, abs=1e-4)
    mirrored = paired.difference(2, 11, 630)
    found = paired.difference(11, 2, 630)
    assert (-mirrored.high, -mirrored.low) == (pytest.approx(found.low), pytest.approx(found.high))
    none = paired.difference(0, 0, 10)
    assert none.low < 0 < none.high  # of no width only if there were no end of queries
    with pytest.raises(ValueError, match="queries"):
        paired.difference(6, 5, 10)


def _score(gained: int, lost: int, queries: int, of: float) -> float:
    """The score statistic with the share of lost queries found by maximising the likelihood over a fine grid."""
    kept = queries - gained - lost
    share = np.linspace(max(0, -of), min(1, (1 - of) / 2), 2_000_001)[1:-1]
    logs = gained * np.log(share + of + 1e-300) + lost * np.log(share) + kept * np.log(1 - 2 * share - of + 1e-300)
    best = share[int(np.argmax(logs))]
    return float((gained - lost - queries * of) / np.sqrt(queries * (2 * best + of - of * of)))


def test_the_interval_holds_the_true_difference_in_about_95_of_100_samples() -> None:
    numbers, held = np.random.default_rng(5), 0
    for _ in range(600):
        gained, lost, _ = numbers.multinomial(120, (0.12, 0.05, 0.83))
        found = paired.difference(int(gained), int(lost), 120)
        held += found.low <= 0.07 <= found.high
    assert 0.92 <= held / 600 <= 0.98
