"""The share of unrelated pairs that are less similar, and its interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import percentileofscore

from components.analysis.similarity import calibration
from components.analysis.similarity.calibration import of_pairs, of_vectors
from components.arrays import wilson
from tests.support.closeness import assert_close


def disjoint(cosines: np.ndarray) -> calibration.Calibration:
    """A calibration whose pairs have no sentence in common."""
    return of_pairs(cosines, 2 * np.arange(len(cosines)), 2 * np.arange(len(cosines)) + 1)


def interval(share: float, count: float) -> tuple[float, float]:
    low, high = wilson(np.array([share]), count)
    return float(low[0]), float(high[0])


def test_shares_are_scipys_percentiles():
    random = np.random.default_rng(1)
    cosines = random.integers(0, 20, 300) / 20  # with many equal values
    values = np.array([[-1.0, 0.2, 0.25], [0.5, 2.0, np.nan]])
    shares = disjoint(cosines).shares(values)
    expected = [
        [percentileofscore(cosines.astype(np.float32), np.float32(value), kind="mean") / 100 for value in row]
        for row in values[:, :2]
    ]
    np.testing.assert_allclose(shares[:, :2], expected, atol=2e-2)
    assert shares[0, 0] == 0
    assert shares[1, 1] == 1
    assert np.isnan(shares[1, 2])
    exact = disjoint(np.array([0.25, 0.5, 0.5, 0.75]))  # numbers that float32 holds exactly
    np.testing.assert_array_equal(exact.shares([0.25, 0.5, 0.6]), [0.125, 0.5, 0.75])


def test_pairs_without_a_cosine_do_not_count():
    known = of_pairs(np.array([0.1, np.nan, 0.3]), np.array([0, 1, 2]), np.array([3, 4, 5]))
    assert len(known.cosines) == 2
    assert known.first.tolist() == [0, 2]
    assert known.standing(0.2).sentences == 4
    nothing = of_pairs(np.array([np.nan]), np.array([0]), np.array([1]))
    assert not nothing.is_known
    assert np.isnan(nothing.shares([0.5])).all()
    with pytest.raises(ValueError, match="nothing to compare"):
        nothing.standing(0.5)


def test_a_cosine_above_most_pairs_and_below_the_highest_is_not_called_lower_than_most() -> None:
    level = "mean 0.03, 95 % below 0.20"
    for cosine in (-0.5, 0.195, 0.2):
        assert (
            calibration.beside(cosine, "unrelated tokens", 0.03, 0.2) == f"not above 95 % of unrelated tokens ({level})"
        )
    assert calibration.beside(0.21, "unrelated tokens", 0.03, 0.2) == f"unrelated tokens: {level}"


def test_quantiles_of_unrelated_pairs():
    cosines = np.arange(101)[::-1] / 100 - 0.5
    np.testing.assert_allclose(disjoint(cosines).quantiles(), [-0.45, 0, 0.45], atol=1e-7)
    assert disjoint(cosines).quantiles([100]) == pytest.approx([0.5])
    assert np.isnan(disjoint(np.array([np.nan])).quantiles()).all()


def test_independent_pairs_have_wilsons_interval():
    cosines = np.random.default_rng(2).uniform(-1, 1, 400)
    standing = disjoint(cosines).standing(0.6)
    np.testing.assert_allclose((standing.low, standing.high), interval(standing.share, 400), atol=1e-3)
    assert standing.pairs == 400
    assert standing.sentences == 800


def test_the_variance_counts_pairs_with_a_common_sentence():
    """The sum over all pairs of pairs that share a sentence, written out."""
    random = np.random.default_rng(3)
    sentences = random.normal(size=12)  # each sentence makes all its pairs higher or lower
    first, second = np.triu_indices(12, k=1)
    cosines = (sentences[first] + sentences[second]).astype(np.float32)
    given = of_pairs(cosines, first, second)
    standing = given.standing(0.3)
    deviation = (cosines < 0.3) - standing.share
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    variance = (
        sum(
            deviation[a] * deviation[b]
            for a, one in enumerate(pairs)
            for b, other in enumerate(pairs)
            if set(one) & set(other)
        )
        / len(pairs) ** 2
    )
    independent = standing.share * (1 - standing.share) / variance
    assert 6 < independent < len(pairs)  # the bounds do not decide
    np.testing.assert_allclose((standing.low, standing.high), interval(standing.share, independent), rtol=1e-9)
    assert standing.high - standing.low > np.ptp(interval(standing.share, len(pairs)))


def test_the_interval_holds_the_true_share_in_most_samples():
    """Vectors with a common direction: the share of a cosine in new samples of 60 vectors, against that of 3,000."""
    random = np.random.default_rng(4)
    draw = lambda count: random.normal(size=(count, 8)) + 0.8  # noqa: E731
    truth = float(of_vectors(draw(3_000), range(3_000)).shares(0.6))
    held = 0
    for _ in range(200):
        standing = of_vectors(draw(60), range(60)).standing(0.6)
        held += standing.low <= truth <= standing.high
    assert held >= 180  # 95 % are promised


def test_a_cosine_above_all_pairs_does_not_pretend_certainty():
    standing = of_vectors(np.random.default_rng(5).normal(size=(40, 16)), range(40)).standing(1.0)
    assert standing.share == 1
    assert standing.low == pytest.approx(interval(1.0, 20)[0])


def test_equal_texts_are_no_unrelated_pair():
    vectors = np.random.default_rng(6).normal(size=(4, 3))
    given = of_vectors(vectors, ["a", "b", "a", "c"])
    pairs = list(zip(given.first.tolist(), given.second.tolist(), strict=True))
    assert pairs == [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)]
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert_close(given.cosines, [directions[a] @ directions[b] for a, b in pairs])
