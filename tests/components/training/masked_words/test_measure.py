"""Ranks, intervals and guesses by counting, against independent formulas."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from components.errors import InputError
from components.training.masked_words import measure
from components.training.masked_words.measure import Hole
from components.training.masked_words.units import Units
from tests.support.masked_words import random_head, tiny_encoder, tiny_units
from tests.support.tiny import wordpiece_tokenizer


@pytest.mark.parametrize(("right", "count"), [(0, 7), (7, 7), (3, 60), (39, 60), (264, 2_000)])
def test_wilsons_interval(right, count):
    low, high = stats.binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert measure.wilson(right, count) == pytest.approx((low, high), abs=1e-9)


def test_the_bootstrap_agrees_with_scipy():
    values = np.random.default_rng(3).geometric(0.02, 400)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=4_000, method="percentile", rng=5).confidence_interval
    low, high = measure.bootstrap(values)
    assert low == pytest.approx(theirs.low, rel=0.03)
    assert high == pytest.approx(theirs.high, rel=0.03)
    assert low < values.mean() < high


def test_the_rank_is_that_of_the_best_answer_among_whole_words():
    may_be_guessed = measure.whole_words(["[PAD]", "the", "##ing", "cat", "dog", "[", "red"])
    assert may_be_guessed.tolist() == [False, True, False, True, True, True, True]
    scores = np.array([9.0, 5.0, 8.0, 4.0, 3.0, 1.0, 4.5])
    assert measure.rank(scores, np.array([3, 4]), may_be_guessed) == 3  # behind "the" and "red"
    assert measure.rank(scores, np.array([1]), may_be_guessed) == 1
    assert measure.rank(np.zeros(7), np.array([4]), may_be_guessed) == 1  # of equals none is better


def test_a_summary_counts():
    found = measure.summary(np.array([1, 1, 2, 5, 6, 30]))
    assert (found["n"], found["top1"], found["top5"], found["mean_rank"]) == (6, 2 / 6, 4 / 6, 7.5)
    assert found["top5_interval"] == measure.wilson(4, 6)


def test_ranks_of_a_model_are_those_of_each_sentence_alone(tmp_path):
    model, names = random_head(tiny_encoder(tmp_path)), tiny_units()[2]
    rng, allowed = np.random.default_rng(1), measure.whole_words(names)
    words = np.flatnonzero(allowed)
    asked = []
    for length in (1, 4, 9, 2):
        pieces = np.concatenate([[2], rng.integers(5, len(names), length), [3]])
        place = int(rng.integers(1, length + 1))
        pieces[place] = 4
        asked.append(Hole(pieces, place, rng.choice(words, 2, replace=False)))
    ranks = measure.model_ranks(model, asked, allowed)
    for hole, found in zip(asked, ranks, strict=True):
        with torch.no_grad():
            scores = model.scores(model.last_layer(torch.tensor(hole.pieces)[None], None))[0, hole.place]
        order = [piece for piece in scores.argsort(descending=True).tolist() if allowed[piece]]
        assert found == min(order.index(answer) + 1 for answer in hole.answers)


def counted_by_hand(units, size, first, last):
    """Counts of what follows `first`, stands before `last`, and stands between both, by a plain loop; 3 is the boundary."""
    single, left, right, both = Counter({3: units.weights.astype(float).sum()}), Counter(), Counter(), Counter()
    for unit, weight in enumerate(units.weights.astype(float)):
        text = [3, *units.pieces[units.starts[unit] : units.starts[unit + 1]].tolist(), 3]
        for before, piece, behind in zip(text, text[1:], text[2:], strict=False):
            single[piece] += weight
            left[piece] += weight * (before == first)
            right[piece] += weight * (behind == last)
            both[piece] += weight * (before == first and behind == last)
    total = sum(single.values()) + size / 2
    share = [(single[piece] + 0.5) / total for piece in range(size)]
    after = [(left[piece] + 20 * share[piece]) / (sum(left.values()) + 20) for piece in range(size)]
    ahead = [(right[piece] + 20 * share[piece]) / (sum(right.values()) + 20) for piece in range(size)]
    product = [after[piece] * ahead[piece] / share[piece] for piece in range(size)]
    whole = sum(product)
    return share, [(both[piece] + 5 * product[piece] / whole) / (sum(both.values()) + 5) for piece in range(size)]


@pytest.mark.parametrize("neighbours", [(3, 9), (7, 8), (12, 3), (3, 3), (6, 6)])
def test_unigram_and_trigram_count_the_weighted_text(neighbours):
    units, _, names = tiny_units(60)
    first, last = neighbours
    hole = Hole(
        np.array([2, 4, last, 3] if first == 3 else [2, first, 4, last, 3]), 1 if first == 3 else 2, np.array([5])
    )
    assert hole.neighbours == neighbours
    other = Hole(np.array([2, 20, 4, 21, 3]), 2, np.array([5]))
    counted = measure.count(units, len(names), 3, [other, hole])
    share, between = counted_by_hand(units, len(names), first, last)
    np.testing.assert_allclose(counted.unigram(hole), share, rtol=1e-9)
    np.testing.assert_allclose(counted.trigram(hole), between, rtol=1e-9)
    assert math.isclose(counted.trigram(hole).sum(), 1.0)


def test_the_trigram_finds_what_it_has_seen():
    pieces = np.array([7, 5, 8, 7, 5, 8, 7, 6, 9], np.int32)
    units = Units(pieces, np.array([0, 3, 6, 9]), np.ones(3, np.float32))
    hole = Hole(np.array([2, 7, 4, 8, 3]), 2, np.array([5]))
    counted = measure.count(units, 32, 3, [hole])
    assert measure.counted_ranks(counted.trigram, [hole], np.ones(32, bool)).tolist() == [1]


def test_a_sentence_needs_a_mask_and_an_answer_of_one_piece():
    tokenizer = wordpiece_tokenizer().backend_tokenizer
    (hole,) = measure.holes([{"sentence": "the [MASK] sat", "answers": ["cat", "walking", "dog"]}], tokenizer)
    assert hole.pieces.tolist() == tokenizer.encode("the [MASK] sat").ids
    assert hole.place == 2
    assert hole.answers.tolist() == sorted(tokenizer.token_to_id(word) for word in ("cat", "dog"))
    with pytest.raises(InputError, match="cannot be measured"):
        measure.holes([{"sentence": "the [MASK] sat", "answers": ["walking"]}], tokenizer)
    with pytest.raises(InputError, match="one \\[MASK\\] within 128 tokens"):
        measure.holes([{"sentence": "the cat sat", "answers": ["cat"]}], tokenizer)
