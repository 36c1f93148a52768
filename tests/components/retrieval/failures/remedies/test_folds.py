"""Choosing on one half and measuring on the other: nobody measures what it has chosen with, and ties help nobody."""

from __future__ import annotations

import numpy as np
import pytest

from components.retrieval.evaluation.chance import paired
from components.retrieval.failures.remedies import folds
from components.retrieval.failures.remedies.folds import LEAVE
from tests.support.closeness import assert_close


def random_ranks(seed: int, count: int = 80) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 5, count)


def test_each_half_is_measured_by_what_the_other_chose() -> None:
    now, first = random_ranks(0), folds.halves([f"query {n}" for n in range(80)])
    assert first.sum() == 40
    good_on_first = np.where(first, 1, now)
    good_on_second = np.where(first, now, 1)
    result = folds.measured(now, {"a": good_on_first, "b": good_on_second}, first)
    assert result.chosen == ("a", "b")
    assert np.array_equal(result.ranks, now)  # what each chose does nothing for the other
    assert (result.repaired, result.harmed) == (0, 0)
    result = folds.measured(now, {"a": np.ones(80, np.int64)}, first)
    assert result.chosen == ("a", "a")
    assert (result.repaired, result.harmed, result.recall) == ((now > 1).sum(), 0, 1.0)


def test_leaving_it_is_a_choice_and_wins_ties() -> None:
    now, first = random_ranks(1), np.arange(80) < 40
    assert folds.choice(now, {}, first) == LEAVE
    assert folds.choice(now, {"same": now.copy(), "worse": now + 1}, first) == LEAVE
    better_mrr = np.where(now > 2, now - 1, now)
    assert folds.choice(now, {"same": now.copy(), "mrr": better_mrr}, first) == "mrr"
    assert folds.choice(now, {"a": better_mrr, "b": better_mrr.copy()}, first) == "a"


def test_the_numbers_are_those_of_plain_counting() -> None:
    now, ranks = random_ranks(2), random_ranks(3)
    result = folds.RemedyRanking("a", ranks=ranks, now=now, chosen=("a", "a"), seed=7)
    up, down = int(((now > 1) & (ranks == 1)).sum()), int(((now == 1) & (ranks > 1)).sum())
    assert (result.repaired, result.harmed) == (up, down)
    assert_close(result.change.value, (ranks == 1).mean() - (now == 1).mean())
    assert result.change == paired.difference(up, down, 80)
    assert result.p_value == paired.mcnemar(up, down)
    assert_close(result.mrr, (1 / ranks).mean())
    differences = 1 / ranks - 1 / now
    drawn = np.random.default_rng(0).integers(0, 80, (20_000, 80))
    low, high = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975])
    assert_close(result.mrr_change.value, differences.mean())
    assert abs(result.mrr_change.low - low) < 0.005
    assert abs(result.mrr_change.high - high) < 0.005
    assert result.mrr_change == folds.RemedyRanking("a", ranks=ranks, now=now, chosen=("a", "a"), seed=7).mrr_change


def test_queries_with_the_same_words_are_in_one_half() -> None:
    queries = [text for number in range(30) for text in (f"Return voucher {number}?", f"return VOUCHER {number}")]
    first = folds.halves(queries, seed=3)
    assert np.array_equal(first[::2], first[1::2])
    assert first[::2].sum() == 15
    assert not np.array_equal(first, folds.halves(queries, seed=4))


@pytest.mark.parametrize("seed", range(3))
def test_a_control_takes_another_query_of_the_same_half(seed: int) -> None:
    first = folds.halves([str(number) for number in range(21)], seed)
    taken = folds.others(21, first, seed)
    assert sorted(taken.tolist()) == list(range(21))
    assert (taken != np.arange(21)).all()
    assert np.array_equal(first[taken], first)
    among = np.arange(21) % 3 == 0
    taken = folds.others(21, first, seed, among)
    assert np.array_equal(taken[~among], np.flatnonzero(~among))
    assert among[taken[among]].all()
