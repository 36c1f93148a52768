"""SPLADE as a ranking, against sentence-transformers' SparseEncoder on a tiny model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.model.backend import Backend
from components.model.embedding.sparse_vectors import sparse_vectors
from components.retrieval.search.splade import SpladeIndex, SpladeRanker
from tests.support.saved_models import save_sparse

SENTENCES = ("the cat sat on the bank", "money in the bank", "a red hat", "we will walk by the river", "a red hat", "")
QUERIES = ("the dog ran", "money", "a hat!", "the dog ran")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return save_sparse(tmp_path_factory.mktemp("splade"), prompts={"query": "the ", "document": "a "})


@pytest.fixture(scope="module")
def ranker(folder: Any) -> SpladeRanker:
    backend = Backend.load(str(folder), device_name="cpu")
    return SpladeRanker(backend, SpladeIndex.of_texts(backend, SENTENCES))


def test_scores_are_the_dot_products_of_sparse_encoder(folder: Any, ranker: SpladeRanker) -> None:
    from sentence_transformers import SparseEncoder

    reference = SparseEncoder(str(folder), device="cpu", local_files_only=True)
    both = reference.encode_query(list(QUERIES)), reference.encode_document(list(SENTENCES))
    expected = reference.similarity(*both).numpy()
    found = np.array([ranker.scores(query) for query in QUERIES])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (found > 0).any()
    together = ranker.for_queries(QUERIES)
    np.testing.assert_allclose([together.scores(query) for query in QUERIES], expected, atol=1e-4)
    pairs = ranker.pair_scores(QUERIES, np.array([3, 1, 2, 0]))
    np.testing.assert_allclose(pairs, expected[range(4), [3, 1, 2, 0]], atol=1e-4)


def test_lengths_of_roles(tmp_path: Path) -> None:
    from sentence_transformers import SparseEncoder

    folder = save_sparse(tmp_path)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8, "query_length": 4, "document_length": 12}')
    texts = [f"{sentence} by the river and the bank of the river" for sentence in SENTENCES]
    reference, backend = SparseEncoder(str(folder), device="cpu", local_files_only=True), Backend.load(str(folder))
    for role, encode in (("query", reference.encode_query), ("document", reference.encode_document)):
        found = sparse_vectors(backend.embedder, texts, role=role)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, encode(texts).to_dense().numpy(), atol=1e-4)


def test_equal_sentences_have_equal_scores_and_are_read_once(ranker: SpladeRanker) -> None:
    seen: list[tuple[int, int]] = []
    SpladeIndex.of_texts(ranker.backend, SENTENCES, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, 5)
    scores = ranker.scores(QUERIES[0])
    assert scores[2] == scores[4]


def test_the_shared_pieces_add_up_to_the_score(ranker: SpladeRanker) -> None:
    for row, sentence in enumerate(SENTENCES):
        shared = ranker.shared_pieces(QUERIES[0], sentence, row)
        assert float(shared.contributions.sum()) == pytest.approx(float(ranker.scores(QUERIES[0])[row]), abs=1e-4)
        assert (np.diff(shared.contributions) <= 0).all()
    shared = ranker.shared_pieces(QUERIES[0], SENTENCES[0], 0)
    own = dict(zip(shared.pieces, zip(shared.in_query, shared.in_sentence, strict=True), strict=True))
    for piece, (in_query, in_sentence) in own.items():
        assert in_query == (piece in {"the", "dog", "ran"})
        assert in_sentence == (piece in {"the", "cat", "sat", "on", "bank"})
    assert "[SEP]" in own  # which nobody wrote


def test_a_known_query_and_a_hit_cost_no_pass(ranker: SpladeRanker) -> None:
    ranker.scores("the river")
    before = ranker.backend.forward_passes
    ranker.scores("the river")
    pieces = ranker.query_pieces("the river")
    of_hit = ranker.sentence_pieces(SENTENCES[3], 3)
    ranker.shared_pieces("the river", SENTENCES[3], 3)
    assert ranker.backend.forward_passes == before
    expected = ranker.backend.expanded_pieces(SENTENCES[3], role="document")
    assert dict(zip(of_hit.pieces, of_hit.weights.tolist(), strict=True)) == pytest.approx(
        dict(zip(expected.pieces, expected.weights.tolist(), strict=True)), abs=1e-5
    )
    assert (np.diff(pieces.weights) <= 0).all()


def test_its_size_is_that_of_the_weights_above_zero(ranker: SpladeRanker) -> None:
    count = ranker.postings.nnz
    rows = {text: row for row, text in enumerate(SENTENCES)}
    assert len(rows) < len(SENTENCES)
    assert count == sum(len(ranker.sentence_pieces(text, row).ids) for text, row in rows.items())
    assert ranker.nbytes == 8 * count + 4 * (ranker.postings.shape[0] + 1) + 8 * len(SENTENCES)


def test_a_sentence_that_is_repeated_often_is_kept_once(ranker: SpladeRanker) -> None:
    often = SpladeIndex.of_texts(ranker.backend, SENTENCES[:2] + SENTENCES[2:3] * 500)
    once = SpladeIndex.of_texts(ranker.backend, SENTENCES[:3])
    assert often.postings.nnz == once.postings.nnz
    assert often.nbytes == once.nbytes + 8 * 502
    scores, expected = (SpladeRanker(ranker.backend, index).scores(QUERIES[2]) for index in (often, once))
    np.testing.assert_array_equal(scores, expected[[0, 1] + [2] * 500])


def test_a_published_cosine_is_the_score(tmp_path: Path) -> None:
    from sentence_transformers import SparseEncoder

    folder = save_sparse(tmp_path, similarity_fn_name="cosine", max_active_dims=12)
    reference = SparseEncoder(str(folder), device="cpu", local_files_only=True)
    both = reference.encode_query(list(QUERIES)), reference.encode_document(list(SENTENCES))
    expected = reference.similarity(*both).numpy()
    assert 0 < expected.max() <= 1.001
    backend = Backend.load(str(folder), device_name="cpu")
    ranker = SpladeRanker(backend, SpladeIndex.of_texts(backend, SENTENCES))
    np.testing.assert_allclose([ranker.scores(query) for query in QUERIES], expected, atol=1e-5)
    together = ranker.for_queries(QUERIES)
    np.testing.assert_allclose([together.scores(query) for query in QUERIES], expected, atol=1e-5)
    pairs = ranker.pair_scores(QUERIES, np.array([3, 1, 4, 0]))
    np.testing.assert_allclose(pairs, expected[range(4), [3, 1, 4, 0]], atol=1e-5)
    shared = ranker.shared_pieces(QUERIES[0], SENTENCES[4], 4)
    assert float(shared.contributions.sum()) == pytest.approx(float(expected[0, 4]), abs=1e-5)
