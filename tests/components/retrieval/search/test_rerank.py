"""Re-ranking against sentence-transformers' CrossEncoder, MaxSim against its formula and against traces."""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch

from components.analysis.similarity.late_interaction import of_trace
from components.errors import InputError
from components.jobs import Stopped
from components.model.backend import Backend
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.rerank import late_interaction_scores, max_sim_scores, trained_scores
from tests.support.saved_models import save_cross_encoder

QUERY = "the cat sat on the bank"
DOCUMENTS = ["a cat on a river bank", "put money in the bank!", "the cat ran", "walking " * 40, "the dog", "hat"]


def test_the_order_is_that_of_sentence_transformers(tmp_path):
    from sentence_transformers import CrossEncoder

    folder = save_cross_encoder(tmp_path, "bert")
    theirs = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    expected = theirs.predict([(QUERY, document) for document in DOCUMENTS], activation_fn=torch.nn.Identity())
    order = np.argsort(-expected)
    rows = np.array([40, 3, 17, 5, 28, 0])
    scores = Backend.load(str(folder), device_name="cpu").score_pairs([QUERY] * len(rows), DOCUMENTS)
    reranked = Ranking.of_candidates("cross-encoder", "logit", scores, rows, 41)
    np.testing.assert_array_equal(reranked.best, rows[order])
    np.testing.assert_allclose(reranked.hit_scores, expected[order], atol=1e-5)
    assert list(order) != sorted(order)
    theirs_ranked = theirs.rank(QUERY, DOCUMENTS)
    assert rows[[hit["corpus_id"] for hit in theirs_ranked]].tolist() == reranked.best.tolist()


def test_max_sim_is_its_formula():
    random = np.random.default_rng(0)
    query = random.normal(size=(3, 8)).astype(np.float32)
    documents = [random.normal(size=(tokens, 8)).astype(np.float32) for tokens in (1, 5, 9)]
    expected = [
        torch.nn.functional.cosine_similarity(torch.tensor(query)[:, None], torch.tensor(document)[None], dim=2)
        .max(dim=1)
        .values.sum()
        .item()
        for document in documents
    ]
    np.testing.assert_allclose(max_sim_scores(query, documents), expected, atol=1e-5)
    empty = np.empty((0, 8), np.float32)
    np.testing.assert_array_equal(max_sim_scores(query, [empty]), [0])
    np.testing.assert_array_equal(max_sim_scores(empty, documents), [0, 0, 0])


@pytest.mark.parametrize("is_mean", [True, False])
def test_a_model_may_be_trained_for_the_mean_over_the_querys_vectors(is_mean):
    query, document = np.array([[1, 0], [0, 2]], np.float32), np.array([[3, 0], [0, 1], [1, 1]], np.float32)
    backend = types.SimpleNamespace(late_interaction=types.SimpleNamespace(is_mean=is_mean))
    assert trained_scores(backend, query, [document]).tolist() == [2.5 if is_mean else 5]  # products 3 and 2
    assert trained_scores(types.SimpleNamespace(late_interaction=None), query, [document]).tolist() == [5]


@pytest.mark.parametrize("layer", [0, 3, 6])
def test_scores_of_many_documents_are_those_of_each_trace(embedded, layer):
    documents = ["A cat lies on the mat.", "Stocks fell on Monday after the bank's report.", "cat", "\u200b"]
    scores = late_interaction_scores(embedded, "The cat sleeps", documents, layer)
    expected = [of_trace(embedded.trace(["The cat sleeps", text]), layer).total for text in documents[:3]]
    np.testing.assert_allclose(scores[:3], expected, atol=1e-4)
    assert scores[3] == 0  # no token of its own
    assert scores.dtype == np.float32


def test_it_is_sentence_transformers_max_sim(embedded):
    from sentence_transformers import util

    texts = ["The cat sleeps", "A cat lies on the mat.", "Stocks fell on Monday."]
    query, *documents = (
        torch.nn.functional.normalize(torch.tensor(v), dim=1) for v in embedded.own_token_vectors(texts)
    )
    expected = util.maxsim([query], documents)[0]
    np.testing.assert_allclose(late_interaction_scores(embedded, texts[0], texts[1:], 6), expected, atol=1e-5)


def test_impossible_layers_and_stopping(embedded):
    with pytest.raises(InputError, match="layers 9"):
        late_interaction_scores(embedded, "a", ["b"], 9)
    with pytest.raises(InputError, match="10000"):
        late_interaction_scores(embedded, "a", ["b"], 6, 10_000)
    with pytest.raises(Stopped):
        late_interaction_scores(embedded, "a", ["b"], 6, is_stopped=lambda: True)
