"""Trust in a map: equal to scikit-learn's measure, and to neighbours counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from components.analysis.maps import map_trust as analysis
from components.analysis.maps.map_trust import MapTrust, equally_near, map_trust, true_neighbours


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(150, 12)).astype(np.float32)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [3, 10])
def test_trustworthiness_equals_scikit_learns(vectors, metric, k):
    points = vectors[:, :2] + 0.1 * vectors[:, 2:4]
    found = map_trust(vectors, points, metric, k)
    assert found.trustworthiness == pytest.approx(
        trustworthiness(vectors, points, n_neighbors=k, metric=metric), abs=1e-6
    )
    assert found.neighbours == k
    assert found.chance == pytest.approx(k / 149)


def test_overlap_equals_a_plain_count(vectors):
    points = vectors[:, :2]
    found = map_trust(vectors, points, "euclidean", 10)
    shared = []
    for row in range(150):
        near = []
        for space in (vectors, points):
            distances = np.linalg.norm(space - space[row], axis=1)
            distances[row] = np.inf
            near.append(set(np.argsort(distances)[:10]))
        shared.append(len(near[0] & near[1]) / 10)
    assert found.overlap == pytest.approx(np.mean(shared), abs=1e-9)


def test_a_true_picture_is_fully_trusted_and_a_shuffled_one_is_not(vectors):
    plane = vectors[:, :2]
    whole = map_trust(np.hstack([plane, plane]), plane, "euclidean")
    assert (whole.trustworthiness, whole.overlap) == (1, 1)
    assert whole.words.startswith("very good")
    shuffled = map_trust(vectors, np.random.default_rng(0).permutation(plane), "euclidean")
    assert shuffled.trustworthiness < 0.6
    assert shuffled.words.startswith("poor")


def test_words_do_not_promise_neighbours_that_the_overlap_denies():
    """Trustworthiness is no share: 0.97 may stand beside an overlap of 41 %."""
    words = MapTrust(0.97, 0.41, 0.02, 10).words
    assert words == (
        "very good: tokens side by side in the map are hardly ever far apart in the model, but most of the nearest "
        "neighbours differ"
    )
    assert "differ" not in MapTrust(0.97, 0.6, 0.02, 10).words
    assert "differ" not in MapTrust(0.6, 0.1, 0.02, 10).words  # poor says enough
    for trust in (0.97, 0.9, 0.8):
        assert "neighbours in the map" not in MapTrust(trust, 0.9, 0.02, 10).words


def test_a_map_may_be_trustworthy_with_hardly_a_true_neighbour():
    """Tokens in tight groups, mixed within each: every neighbour is near, and few are the nearest."""
    random = np.random.default_rng(3)
    groups = np.repeat(10 * random.normal(size=(5, 12)), 60, axis=0)
    vectors = (groups + random.normal(size=(300, 12))).astype(np.float32)
    points = (groups[:, :2] + random.normal(size=(300, 2))).astype(np.float32)
    found = map_trust(vectors, points, "euclidean")
    assert found.trustworthiness > 0.88
    assert found.overlap < 0.5
    assert found.words.endswith("but most of the nearest neighbours differ")


def test_of_many_tokens_a_sample_says_nearly_the_same(vectors, monkeypatch):
    points = vectors[:, :2]
    exact = map_trust(vectors, points)
    monkeypatch.setattr(analysis, "EXAMINED", 100)
    assert map_trust(vectors, points).trustworthiness == pytest.approx(exact.trustworthiness, abs=0.03)


def test_few_tokens_have_fewer_neighbours():
    points = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    found = map_trust(points, points, "euclidean")
    assert found.neighbours == 1
    assert found.trustworthiness == 1


def test_true_neighbours_are_those_by_cosine():
    vectors = np.array([[1, 0], [0, 3], [5, 1], [-1, 0], [1, 1]], np.float32)
    rows, cosines = true_neighbours(vectors, 0, k=3)
    assert rows.tolist() == [2, 4, 1]
    np.testing.assert_allclose(cosines, [5 / np.sqrt(26), 1 / np.sqrt(2), 0], atol=1e-6)
    assert len(true_neighbours(vectors, 0, k=50)[0]) == 4
    np.testing.assert_array_equal(vectors[0], [1, 0])  # nothing was changed


def copies(count: int = 24, total: int = 1_080, dim: int = 32) -> np.ndarray:
    """The vectors of a static model: as many copies of each of some words as Zipf's law gives, float32 [token, dim]."""
    random = np.random.default_rng(0)
    shares = 1 / np.arange(1, count + 1)
    words = random.normal(size=(count, dim)).astype(np.float32)
    return words[random.choice(count, total, p=shares / shares.sum())]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_equal_vectors_are_as_near_as_each_other(metric):
    """Each word's copies are its nearest in the space and in a map that keeps them together: nothing is wrong there."""
    from sklearn.decomposition import PCA

    vectors = copies()
    wide = vectors.astype(np.float64)
    if metric == "cosine":
        wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    points = PCA(2, svd_solver="full").fit_transform(wide)
    # The reference, in float64: the first ten in the map that are as near as the tenth in the space.
    distances = [((side[:, None] - side[None]) ** 2).sum(axis=2) for side in (wide, points)]
    for side in distances:
        np.fill_diagonal(side, np.inf)
    near = np.argsort(distances[1].round(12), axis=1, kind="stable")[:, :10]
    limit = np.sort(distances[0], axis=1)[:, [9]]
    expected = (np.take_along_axis(distances[0], near, axis=1) <= limit + 1e-9).mean()
    analysis_examines_all = map_trust(vectors, points.astype(np.float32), metric)
    assert expected > 0.98
    assert analysis_examines_all.overlap == pytest.approx(expected, abs=3e-3)  # of 1,080 tokens 1,000 are examined
    assert analysis_examines_all.trustworthiness > 0.99
    assert "differ" not in analysis_examines_all.words


def test_copies_in_a_shuffled_map_are_not_called_near():
    vectors = copies()
    points = np.random.default_rng(1).normal(size=(len(vectors), 2)).astype(np.float32)
    found = map_trust(vectors, points)
    assert found.overlap < 0.3  # by chance some copies stand side by side
    assert found.trustworthiness < 0.7


def test_true_neighbours_among_copies_are_the_first_and_how_many_there_are_is_known():
    vectors = np.repeat(np.eye(3, dtype=np.float32), [15, 2, 1], axis=0)
    assert true_neighbours(vectors, 3, 4)[0].tolist() == [0, 1, 2, 4]
    assert (equally_near(vectors, 3, 4), equally_near(vectors, 3, 14), equally_near(vectors, 15, 1)) == (14, 14, 1)
    assert equally_near(vectors[:1], 0) == 0
