"""Maps that turn as little as possible: distances stay those of the principal axes."""

from __future__ import annotations

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

from components.analysis.first_look.turning import turned_maps


def test_each_map_is_that_of_scikit_learn_turned_towards_the_next() -> None:
    vectors = np.random.default_rng(1).normal(size=(3, 12, 6))
    maps = turned_maps(vectors)
    assert maps.shape == (3, 12, 2)
    np.testing.assert_allclose(np.abs(maps).max(axis=(1, 2)), 1)
    directions = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    for layer in range(3):
        reference = PCA(2).fit_transform(directions[layer])
        ratio = pdist(maps[layer]) / pdist(reference)  # one scale for all: nothing but turned, mirrored and scaled
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    for layer in range(2):
        turn, _ = orthogonal_procrustes(maps[layer], maps[layer + 1])
        np.testing.assert_allclose(turn, np.eye(2), atol=1e-6)  # no further turn would bring it closer


def test_equal_points_have_a_map() -> None:
    assert np.isfinite(turned_maps(np.ones((2, 4, 3)))).all()
