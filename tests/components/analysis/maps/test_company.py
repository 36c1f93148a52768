"""Among which tokens a word stands: counted by hand, with ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.analysis.maps import company as module
from components.analysis.maps.company import EXAMINED, company, shares_alike

RIGHT, UP = (1.0, 0.0), (0.0, 1.0)


def test_occurrences_on_one_place_stand_together_and_on_different_ones_apart() -> None:
    together = np.array([RIGHT, RIGHT, UP, (0.1, 1.0)])
    found = company(together, (0, 1))
    assert (found.own, found.asked, found.share) == (2.0, 2, 1.0)
    apart = np.array([RIGHT, UP, (1.0, 0.1), (0.1, 1.0)])
    assert company(apart, (0, 1)).own == 0.0


def test_what_is_as_near_as_the_last_counts_for_its_part() -> None:
    # The one other occurrence and a token of another word have the same vector as the first.
    vectors = np.array([RIGHT, RIGHT, RIGHT, UP])
    assert company(vectors, (0, 1)).own == pytest.approx(1.0)  # half of one place, twice
    assert company(vectors, (0,)).asked == 0
    assert np.isnan(company(vectors, (0,)).share)


def test_the_nearest_are_those_of_a_plain_sort() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8)).astype(np.float32)
    labels = rng.integers(0, 4, 40)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -2)
    order = np.argsort(-cosines, axis=1)[:, :3]
    assert shares_alike(vectors, labels.tolist()) == pytest.approx((labels[order] == labels[:, None]).mean())
    rows = np.flatnonzero(labels == 1)
    assert company(vectors, rows.tolist()).own == pytest.approx((labels[order[rows]] == 1).sum())


def test_a_single_token_has_no_company() -> None:
    assert np.isnan(shares_alike(np.ones((1, 3)), ["a"]))


def test_many_tokens_are_asked_by_a_sample_that_is_the_same_each_time() -> None:
    vectors = np.random.default_rng(1).normal(size=(1_500, 4))
    labels = [number % 2 for number in range(1_500)]
    assert shares_alike(vectors, labels) == shares_alike(vectors, labels)
    assert 0.4 < shares_alike(vectors, labels) < 0.6


def test_of_very_many_occurrences_a_sample_is_asked_about_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, counted = [], module._counted

    def noted(vectors: Any, rows: Any, alike: Any, nearest: int) -> Any:
        asked.append((len(rows), np.asarray(vectors).shape[0]))
        return counted(vectors, rows, alike, nearest)

    monkeypatch.setattr(module, "_counted", noted)
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(3_000, 8)).astype(np.float16)
    vectors[:1_000, 0] += 2
    found = company(vectors, range(1_000))
    assert asked == [(EXAMINED, 3_000)]
    assert (found.sampled, found.asked) == (EXAMINED, 3 * EXAMINED)
    assert company(vectors, range(1_000)) == found
    monkeypatch.setattr(module, "EXAMINED", 1_000)
    whole = company(vectors, range(1_000))
    assert (whole.sampled, whole.asked) == (None, 3_000)
    assert found.share == pytest.approx(whole.share, abs=0.05)
