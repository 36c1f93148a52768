"""Fusion against plain code on 200 random rankings with ties, against sentence-transformers, and by hand."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion.scores import METHODS, Fusion, RunScores, reciprocal_ranks
from components.retrieval.fusion.settings import FusionSettings


def run_of(rows, ranked=None) -> RunScores:
    scores = np.array(rows, np.float64)
    return RunScores(scores, np.ones(scores.shape, np.bool_) if ranked is None else np.array(ranked))


def random_runs(seed: int, runs: int = 2) -> list[RunScores]:
    """Runs over 12 texts with few different scores; the second ranks only texts with a score above 0, as words do."""
    random = np.random.default_rng(seed)
    texts = 12
    rows = [random.integers(-3, 4, (1, texts)) / 4.0 for _ in range(runs)]
    for number in range(1, runs):
        rows[number] = np.maximum(rows[number], 0)
    return [run_of(row, row > 0 if number else None) for number, row in enumerate(rows)]


def plain_rank(scores: list[float], text: int) -> int:
    return sum(score >= scores[text] for score in scores)


def plain_sums(
    runs: list[RunScores], method: str, weights: list[float], k: int, depth: int | None
) -> list[float | None]:
    """The fused score of each text, None for one that no run ranks, with loops and the standard library."""
    texts = range(runs[0].scores.shape[1])
    sums: list[float | None] = []
    columns = []
    for run in runs:
        scores = run.scores[0].tolist()
        inside = [
            bool(run.is_ranked[0, text]) and (depth is None or plain_rank(scores, text) <= depth) for text in texts
        ]
        if method == "rrf":
            columns.append([1 / (k + plain_rank(scores, text)) if inside[text] else 0.0 for text in texts])
        else:
            filled = [scores[text] if inside[text] else min(scores) for text in texts]
            if max(filled) == min(filled):
                columns.append([0.0] * len(filled))
            elif method == "minmax":
                columns.append([(score - min(filled)) / (max(filled) - min(filled)) for score in filled])
            else:
                mean = math.fsum(filled) / len(filled)
                width = math.sqrt(math.fsum((score - mean) ** 2 for score in filled) / len(filled))
                columns.append([(score - mean) / width for score in filled])
        columns[-1] = [(value, is_in) for value, is_in in zip(columns[-1], inside, strict=True)]
    for text in texts:
        used = [(column[text], weight) for column, weight in zip(columns, weights, strict=True) if weight]
        known = any(is_in for (_, is_in), _ in used)
        sums.append(sum(weight * value for (value, _), weight in used) if known else None)
    return sums


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("depth", [None, 5])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.75, 0.25), (0.5, 0.3, 0.2)])
def test_200_random_rankings_with_ties_equal_plain_code(method, depth, weights):
    fusion = Fusion(method, weights, rank_constant=7, depth=depth)
    for seed in range(200):
        runs = random_runs(seed, len(weights))
        plain = plain_sums(runs, method, list(weights), 7, depth)
        fused = fusion.of(runs)
        for text, expected in enumerate(plain):
            if expected is None:
                assert fused.ranks[0, text] == NOT_FOUND
                continue
            assert fused.scores[0, text] == pytest.approx(expected, abs=1e-12)
            ahead = sum(value is not None and value >= expected - 1e-12 for value in plain)
            assert fused.ranks[0, text] == ahead


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("depth", [None, 4])
def test_weights_0_and_1_are_the_single_runs(method, depth):
    for seed in range(50):
        runs = random_runs(seed)
        for weights, single in (((1.0, 0.0), runs[0]), ((0.0, 1.0), runs[1])):
            fused = Fusion(method, weights, depth=depth).of(runs)
            assert fused.scores is single.scores
            np.testing.assert_array_equal(fused.ranks, single.first(depth).ranks)


def test_the_terms_of_a_hit_are_what_the_paper_says():
    assert reciprocal_ranks(np.array([3, 41, NOT_FOUND])).tolist() == [1 / 63, 1 / 101, 0.0]
    vectors = run_of([[0.9, 0.8, 0.7, 0.6]])
    words = run_of([[0.0, 2.0, 5.0, 0.0]], [[False, True, True, False]])
    fusion = Fusion()
    assert fusion.terms([vectors, words])[:, 0].tolist() == [
        [1 / 61, 1 / 62, 1 / 63, 1 / 64],
        [0.0, 1 / 62, 1 / 61, 0.0],
    ]
    # 1/63 + 1/61 is a little more than 1/62 + 1/62.
    assert fusion.of([vectors, words]).ranks.tolist() == [[3, 2, 1, 4]]


def test_a_tie_has_its_last_rank_and_what_is_not_ranked_has_none():
    run = run_of([[1.0, 3.0, 3.0, 0.0]], [[True, True, True, False]])
    assert run.ranks.tolist() == [[3, 2, 2, NOT_FOUND]]
    assert run.first(1).ranks.tolist() == [[NOT_FOUND] * 4]  # the tie at the top does not fit


def test_scores_within_the_tolerance_stay_equal_in_a_sum():
    noisy = RunScores(np.array([[10.0, 10.0 + 1e-6, 2.0]]), np.ones((1, 3), np.bool_), tied=1e-6)
    fused = Fusion("minmax", (0.5, 0.5)).of([noisy, run_of([[1.0, 1.0, 0.0]])])
    assert fused.ranks.tolist() == [[2, 2, 3]]


@pytest.mark.parametrize("method", ["minmax", "z"])
def test_a_run_whose_scores_are_all_equal_adds_0(method):
    same = run_of([[0.1 + 0.2] * 5])
    other = run_of([[1.0, 2.0, 3.0, 4.0, 5.0]])
    fusion = Fusion(method, (0.5, 0.5))
    assert not fusion.terms([same, other])[0].any()
    np.testing.assert_array_equal(fusion.of([same, other]).ranks, other.ranks)
    assert fusion.of([same, same]).ranks.tolist() == [[5] * 5]


def test_a_text_that_no_run_ranks_is_not_found():
    nothing = run_of([[0.0, 0.0, 0.0]], [[False] * 3])
    assert Fusion().of([nothing, nothing]).ranks.tolist() == [[NOT_FOUND] * 3]
    # Even where its sum would be the highest of z-scores, all of them 0.
    assert Fusion("z").of([nothing, nothing]).ranks.tolist() == [[NOT_FOUND] * 3]


def test_weights_that_say_nothing_are_refused():
    for weights in ((0.0, 0.0), (-1.0, 1.0), (math.nan, 1.0)):
        with pytest.raises(ValueError, match="weights"):
            Fusion(weights=weights)
    with pytest.raises(ValueError, match="zip"):
        Fusion().of([run_of([[1.0]])])


@pytest.mark.parametrize("rank_constant", [60, 10])
def test_scores_and_order_are_those_of_sentence_transformers(tmp_path, rank_constant):
    from sentence_transformers.sparse_encoder.evaluation import ReciprocalRankFusionEvaluator

    scores_of_queries = []

    class Evaluator(ReciprocalRankFusionEvaluator):
        def compute_metrics(self, *lists):
            """Called once the scores of a query are added up; they stand nowhere but in the caller."""
            scores = sys._getframe(1).f_locals.get("rrf_scores")
            if scores is not None and (not scores_of_queries or scores_of_queries[-1] is not scores):
                scores_of_queries.append(scores)
            return super().compute_metrics(*lists)

    random = np.random.default_rng(3)
    pairs, samples = [], ([], [])
    for number in range(40):
        ranked = random.random(30) < 0.6
        words = np.where(ranked, random.permutation(30) + 1.0, 0.0)
        pairs.append([run_of([random.permutation(30)]), run_of([words], [ranked])])
        for run, own in zip(pairs[-1], samples, strict=True):
            found = [str(text) for text in np.argsort(run.ranks[0]) if run.is_ranked[0, text]]
            own.append({"query_id": str(number), "query": "a query", "positive": ["0"], "documents": found})
    evaluator = Evaluator(*samples, rrf_k=rank_constant, write_csv=False, write_predictions=True)
    evaluator(output_path=str(tmp_path))
    # Of a query, the scores of the last one are still there while its first list is measured.
    by_query = [scores for place, scores in enumerate(scores_of_queries) if scores not in scores_of_queries[:place]]
    (written,) = tmp_path.glob("*.jsonl")
    lines = written.read_text().splitlines()
    assert len(lines) == len(pairs) == len(by_query)
    for line, theirs, pair in zip(lines, by_query, pairs, strict=True):
        fused = Fusion(rank_constant=rank_constant).of(pair)
        places = [int(text) for text in json.loads(line)["documents"]]
        assert sorted(places) == np.flatnonzero(fused.is_ranked[0]).tolist()
        np.testing.assert_allclose(fused.scores[0, places], [theirs[str(text)] for text in places], rtol=0, atol=1e-15)
        assert (np.diff(fused.scores[0, places]) <= 1e-12).all()


def test_a_weight_is_that_of_the_runs_behind_the_first():
    assert FusionSettings(30).of(3) == Fusion("minmax", (0.7, 0.15, 0.15))
    assert FusionSettings().of(3).weights == (1.0, 1.0, 1.0)
