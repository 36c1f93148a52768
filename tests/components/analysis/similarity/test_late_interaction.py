"""MaxSim to its formula (Khattab and Zaharia 2020, equation 3)."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.similarity.late_interaction import max_sim, of_trace
from tests.components.analysis.handmade import trace, words
from tests.support.closeness import assert_close


def test_by_hand():
    """Query tokens along x and along the diagonal; document tokens along x, y and -x."""
    query = np.array([[2, 0], [1, 1]], np.float32)
    document = np.array([[3, 0], [0, 1], [-1, 0]], np.float32)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(max_sim(query, document), [[1, 0, -1], [half, half, -half]], atol=1e-6)
    np.testing.assert_array_equal(max_sim(np.zeros((1, 2), np.float32), document), [[0, 0, 0]])


def test_sums_bests_and_weights():
    sentences = [words("one two"), words("three four five")]
    hidden = np.random.default_rng(0).normal(size=(2, 2, 5, 8))
    found = of_trace(trace(sentences, hidden), 1)
    unit = hidden[1] / np.linalg.norm(hidden[1], axis=-1, keepdims=True)
    cosines = unit[0, 1:3] @ unit[1, 1:4].T
    assert_close(found.matrix, cosines)
    assert (found.query_positions, found.document_positions) == ((1, 2), (1, 2, 3))
    assert_close(found.total, cosines.max(axis=1).sum())
    assert_close(found.mean, cosines.max(axis=1).mean())
    np.testing.assert_array_equal(found.best, cosines.argmax(axis=1))
    expected = np.zeros(3)
    for row, column in enumerate(cosines.argmax(axis=1)):
        expected[column] = max(expected[column], cosines[row, column])
    assert_close(found.weights, np.clip(expected, 0, 1))
    whole = of_trace(trace(sentences, hidden), 1, include_special=True)
    assert whole.matrix.shape == (4, 5)


def test_it_is_not_symmetric():
    hidden = np.random.default_rng(1).normal(size=(1, 2, 5, 8))
    record = trace([words("one two"), words("three four five")], hidden)
    assert of_trace(record, 0, 0, 1).total != pytest.approx(of_trace(record, 0, 1, 0).total, abs=1e-3)


def test_a_text_without_tokens_of_its_own_is_refused(embedded):
    with pytest.raises(ValueError, match="nothing to match"):
        of_trace(embedded.trace(["\u200b", "a cat"]), 6)
