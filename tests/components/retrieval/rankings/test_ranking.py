"""A ranking against plain code: its hits, its ties, a second stage, and the ranks of given texts."""

from __future__ import annotations

import numpy as np
import pytest

from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.exact import SAME, ExactSearch


@pytest.mark.parametrize("equal", [SAME, 1e-6])
def test_200_rankings_with_ties_equal_plain_code(equal: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        count, k = int(random.integers(1, 30)), int(random.integers(1, 15))
        scores = random.integers(-3, 9, count) / 4 + random.choice([0, 1e-9], count)
        ranking = Ranking.of_scores("words", "score", scores, k, equal=equal)
        expected = [row for row in sorted(range(count), key=lambda row: (-scores[row], row)) if scores[row] > 0]
        assert ranking.best.tolist() == expected[:k]
        assert ranking.first_ten.tolist() == expected[:10]
        assert ranking.hit_scores.tolist() == [scores[row] for row in expected[:k]]
        if expected:
            last = scores[expected[:k][-1]]
            tied = [row for row in range(count) if abs(scores[row] - last) <= equal * max(1, abs(last))]
            assert (ranking.tied, ranking.tied_shown) == (len(tied), len(set(tied) & set(expected[:k])))
        for row in range(count):
            is_above = [score >= scores[row] - 1e-6 * max(1, abs(scores[row])) for score in scores]
            assert ranking.rank_of(row) == sum(is_above)
        places = [expected[:k].index(row) + 1 if row in expected[:k] else 0 for row in range(count)]
        assert ranking.places(np.arange(count)).tolist() == places


@pytest.mark.parametrize("k", [2, 5, 9])
def test_texts_that_cannot_be_hits_are_none_however_many_are_asked_for(k: int) -> None:
    scores = np.array([0.5, 0.9, 0.5, 0.2, 0.9])
    ranking = Ranking.of_scores("words", "score", scores, k, rows=np.array([0, 1, 3]))  # the others are equal texts
    assert ranking.best.tolist() == [1, 0, 3][:k]
    assert ranking.first_ten.tolist() == [1, 0, 3]
    assert (ranking.tied, ranking.tied_shown) == (1, 1)


def test_200_second_stages_equal_plain_code() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        rows = random.permutation(20)[: random.integers(0, 12)]
        scores = random.integers(0, 4, len(rows)).astype(np.float32)
        ranking = Ranking.of_candidates("second", "logit", scores, rows, 20)
        order = sorted(range(len(rows)), key=lambda place: (-scores[place], place))  # of a tie the first stage's order
        assert ranking.best.tolist() == [rows[place] for place in order]
        assert ranking.hit_scores.tolist() == [scores[place] for place in order]
        assert [ranking.rank_of(row) is None for row in range(20)] == [row not in rows for row in range(20)]
        assert Ranking.of_scores("", "", ranking.scores, 20).best.tolist() == sorted(
            (int(row) for row, score in zip(rows, scores, strict=True) if score > 0),
            key=lambda row: (-ranking.scores[row], row),
        )
        assert (ranking.best.dtype, ranking.hit_scores.dtype) == (np.int64, np.float32)
        assert (
            Ranking.of_candidates("second", "logit", scores, rows, 20, k=3).best.tolist() == ranking.best[:3].tolist()
        )


def test_wrong_numbers_and_scores_of_candidates_are_refused() -> None:
    with pytest.raises(ValueError, match="equal numbers"):
        Ranking.of_candidates("second", "logit", np.zeros(3, np.float32), np.arange(2), 9)
    with pytest.raises(ValueError, match="finite"):
        Ranking.of_candidates("second", "logit", np.array([0, np.nan], np.float32), np.arange(2), 9)


def test_an_engines_hits_are_a_ranking_of_the_same_texts() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    hits = ExactSearch(vectors).search(np.array([[1, 0]], np.float32), 1)
    ranking = Ranking.of_hits("vectors", "cosine", hits)
    assert (ranking.best.tolist(), ranking.hit_scores.tolist()) == ([0], [1.0])
    assert (ranking.tied, ranking.tied_shown) == (2, 1)
    assert ranking.places(np.array([2, 0])).tolist() == [0, 1]
