"""What is kept of scores: by hand, and against plain sorting."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.model.guesses.vocabulary import kept
from tests.support.closeness import assert_close

NOTHING = np.empty((1, 0), np.int64)


def test_the_best_come_first_and_of_equal_scores_the_lower_id():
    found = kept(torch.tensor([[1.0, 3.0, 3.0, 0.0, 3.0]]), 2, np.array([[4, 1, 0, -1]]))
    assert found.ids.tolist() == [[1, 2]]
    # A tie counts against it: three share the first place, so that each is third.
    assert found.asked_ranks.tolist() == [[3, 3, 4, 0]]
    probabilities = np.exp([1.0, 3, 3, 0, 3]) / np.exp([1.0, 3, 3, 0, 3]).sum()
    assert_close(found.probabilities[0], probabilities[[1, 2]])
    assert_close(found.asked_probabilities[0], [*probabilities[[4, 1, 0]], np.nan])
    assert_close(found.asked_bits[0], [*-np.log2(probabilities[[4, 1, 0]]), np.nan])


def test_all_equal():
    found = kept(torch.zeros((2, 50)), 4, np.array([[7], [49]]))
    assert found.ids.tolist() == [[0, 1, 2, 3]] * 2
    assert found.asked_ranks.tolist() == [[50], [50]]


@pytest.mark.parametrize("k", [1, 7, 200])
def test_many_rows_equal_plain_sorting(k):
    numbers = np.random.default_rng(5)
    logits = numbers.integers(-40, 40, (30, 200)).astype(np.float32) / 4  # many ties
    asked = numbers.integers(0, 200, (30, 3))
    found = kept(torch.from_numpy(logits), k, asked)
    np.testing.assert_array_equal(found.ids, np.argsort(-logits, axis=1, kind="stable")[:, :k])
    shares = np.exp(logits.astype(np.float64))
    shares /= shares.sum(axis=1, keepdims=True)
    assert_close(found.probabilities, np.take_along_axis(shares, found.ids, axis=1))
    of_asked = np.take_along_axis(logits, asked, axis=1)
    np.testing.assert_array_equal(found.asked_ranks, (logits[:, None] >= of_asked[..., None]).sum(-1))


def test_bits_are_finite_where_the_probability_is_too_small_for_a_number():
    found = kept(torch.tensor([[0.0, -4_000.0]]), 2, np.array([[1, 0]]))
    assert found.probabilities.tolist() == [[1, 0]]
    assert_close(found.asked_bits[0], [4_000 / np.log(2), 0])
    assert not np.signbit(found.asked_bits).any()


def test_no_guess_at_all_is_refused():
    with pytest.raises(ValueError, match="k is 0"):
        kept(torch.zeros((1, 3)), 0, NOTHING)
    assert kept(torch.zeros((1, 3)), 9, NOTHING).ids.tolist() == [[0, 1, 2]]
