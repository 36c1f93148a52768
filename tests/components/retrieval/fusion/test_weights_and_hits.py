"""The weight chosen on one half of the queries; and the hits of one query with their terms."""

from __future__ import annotations

import numpy as np
import pytest

from components.retrieval.evaluation.metrics import interval
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion.hits import fused_ranking, query_scores, term_text
from components.retrieval.fusion.scores import Fusion, RunScores
from components.retrieval.fusion.weights import chosen_weight


def test_a_weight_is_measured_on_queries_that_did_not_choose_it():
    random = np.random.default_rng(0)
    values = random.random((5, 60))
    order = np.random.default_rng(0).permutation(60)
    chosen = chosen_weight(list(values))
    assert chosen is not None
    means = values[:, order[:30]].mean(axis=1)
    assert chosen.place == int(np.argmax(means))
    assert chosen.chosen_on == pytest.approx(means.max())
    assert chosen.measured == interval(values[chosen.place, order[30:]])
    assert chosen.first_alone == interval(values[0, order[30:]])


def test_equal_weights_leave_the_vectors_alone_and_few_queries_choose_none():
    chosen = chosen_weight([np.ones(10), np.ones(10)])
    assert chosen is not None
    assert chosen.place == 0
    assert chosen_weight([np.ones(3), np.zeros(3)]) is None


def test_hits_have_their_terms_and_ranks():
    vectors = RunScores(np.array([[0.9, 0.8, 0.7, 0.6]]), np.ones((1, 4), np.bool_))
    words = RunScores(np.array([[0.0, 0.0, 5.0, 2.0]]), np.array([[False, False, True, True]]))
    fusion = Fusion()
    hits = fused_ranking([vectors, words], fusion, 3)
    assert hits.best.tolist() == [2, 3, 0]
    assert hits.alone.tolist() == [[3, 4, 1], [1, 2, NOT_FOUND]]
    assert hits.terms.tolist() == [[1 / 63, 1 / 64, 1 / 61], [1 / 61, 1 / 62, 0.0]]
    np.testing.assert_allclose(hits.hit_scores, hits.terms.sum(axis=0))
    assert [
        term_text(float(term), int(rank), fusion) for term, rank in zip(hits.terms[:, 2], hits.alone[:, 2], strict=True)
    ] == [
        "1/(60+1)",
        "0",
    ]
    # Only the first of each run count: two texts are left.
    assert fused_ranking([vectors, words], Fusion(depth=1), 9).best.tolist() == [0, 2]


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarities_of_a_query_in_float64(similarity):
    random = np.random.default_rng(1)
    query, texts = random.standard_normal(4).astype(np.float32), random.standard_normal((5, 4)).astype(np.float16)
    exact, many = query.astype(np.float64), texts.astype(np.float64)
    plain = {
        "cosine": many @ exact / np.linalg.norm(many, axis=1) / np.linalg.norm(exact),
        "dot": many @ exact,
        "euclidean": -np.sqrt(((many - exact) ** 2).sum(axis=1)),
        "manhattan": -np.abs(many - exact).sum(axis=1),
    }
    scores = query_scores(query, texts, similarity).scores[0]
    if similarity in ("cosine", "manhattan"):
        np.testing.assert_allclose(scores, plain[similarity], atol=1e-12)
        return
    # Others as an evaluation ranks them: cosines, which go in a line with the dot product or the negative squared distance.
    by = plain["dot"] if similarity == "dot" else -(plain["euclidean"] ** 2)
    slope = (scores.max() - scores.min()) / (by.max() - by.min())
    np.testing.assert_allclose(scores - scores.max(), slope * (by - by.max()), atol=1e-12)
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(plain[similarity]))
