"""What surrounds a word's occurrences: counted by hand, with ties, and equal to a plain sort."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.maps.surroundings import surroundings

RIGHT, UP = (1.0, 0.0), (0.0, 1.0)


def test_the_occurrences_themselves_do_not_count() -> None:
    # Two occurrences on one place, and beside them a token of each sentence.
    vectors = np.array([RIGHT, RIGHT, (1.0, 0.2), UP])
    found = surroundings(vectors, (0, 1), (0, 1, 0, 1), most=1)
    assert found.nearest.tolist() == [[2], [2]]
    assert (found.own, found.asked, found.cosine) == (1, 2, pytest.approx(1.0))


def test_a_tie_counts_against_the_own_sentence() -> None:
    vectors = np.array([RIGHT, UP, UP])
    assert surroundings(vectors, (0,), (0, 0, 1), most=1).nearest.tolist() == [[2]]
    assert surroundings(vectors, (0,), (0, 0, 1), most=1).own == 0
    assert surroundings(vectors, (0,), (0, 0, 0), most=1).own == 1  # a single sentence has nothing else


def test_the_nearest_are_those_of_a_plain_sort() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8))
    sentences = rng.integers(0, 4, 40)
    rows, same = (3, 17, 30), (4, 5)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = directions @ directions.T
    expected = cosines[np.ix_(rows, rows)]
    found = surroundings(vectors.astype(np.float32), rows, sentences.tolist(), same)
    assert found.cosine == pytest.approx((expected.sum() - 3) / 6, abs=1e-6)
    cosines[:, [*rows, *same]] = -2
    order = np.argsort(-cosines[list(rows)], axis=1)[:, :3]
    assert found.nearest.tolist() == order.tolist()
    assert found.own == int((sentences[order] == sentences[list(rows)][:, None]).sum())


def test_fewer_tokens_than_asked_and_none() -> None:
    vectors = np.array([RIGHT, RIGHT, UP])
    assert surroundings(vectors, (0, 1), (0, 0, 0)).nearest.shape == (2, 1)
    alone = surroundings(vectors[:1], (0,), (0,))
    assert (alone.asked, alone.own) == (0, 0)
    assert np.isnan(alone.cosine)
