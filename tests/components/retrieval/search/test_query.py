"""Search with a real model: at [CLS] of low layers, where cosines differ by 1e-7, it agrees with float64 and with Evaluate."""

from __future__ import annotations

import json
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from components.model.backend import Backend
from components.model.embedding.options import EmbedOptions
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation.pair_runs import grid_ranks
from components.retrieval.index.build import build_index
from components.retrieval.index.folder import VectorIndex
from components.retrieval.search.query import query_options, query_vectors
from tests.support.places import ASSETS

DOCUMENTS, QUERIES = 240, 60
POOLINGS = ("mean", "cls")


@dataclass(frozen=True)
class Demo:
    """The first of the demo corpus, embedded as the Search page does it, and the first of its headlines as queries."""

    backend: Backend
    documents: VectorIndex
    queries: tuple[str, ...]
    folder: Path


@pytest.fixture(scope="module")
def demo(embedded: Backend, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("search")
    rows = [json.loads(line) for line in (ASSETS / "demo_corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    documents = Texts("demo", tuple(row["sentence"] for row in rows[:DOCUMENTS]))
    index = build_index(
        embedded, documents, folder / "documents", embedded.embed_options(range(7), POOLINGS, role="document")
    )
    return Demo(embedded, index, tuple(row["compressed"] for row in rows[:QUERIES]), folder)


def in_float64(vectors: np.ndarray) -> np.ndarray:
    wide = np.asarray(vectors, np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


@pytest.mark.parametrize(("of_documents", "of_query"), [(512, 64), (100, 100)])
def test_a_query_is_read_to_its_own_length_where_the_documents_are_read_to_theirs(of_documents, of_query) -> None:
    published = {"document": (512, "passage: "), "query": (64, "query: ")}

    def options(role, precision):
        return EmbedOptions((6,), ("mean",), published[role][0], precision, published[role][1])

    documents = EmbedOptions((2, 4), ("cls",), of_documents, "bfloat16", "passage: ")
    found = query_options(types.SimpleNamespace(embed_options=options), documents)
    assert found == EmbedOptions((2, 4), ("cls",), of_query, "float32", "query: ")


def test_a_query_has_the_same_vectors_alone_and_among_others(demo: Demo) -> None:
    together = query_vectors(demo.backend, demo.queries[:40], demo.documents.info)
    for number in range(0, 40, 7):
        alone = query_vectors(demo.backend, demo.queries[number : number + 1], demo.documents.info)
        for cell, vectors in alone.items():
            np.testing.assert_array_equal(vectors[0], together[cell][number])


@pytest.mark.parametrize("layer", [0, 1, 2, 3, 6])
def test_the_first_ten_are_those_of_float64_alone_and_together(demo: Demo, layer: int) -> None:
    engine = demo.documents.engine(layer, "cls")
    assert engine.vectors.dtype == np.float32
    queries = query_vectors(demo.backend, demo.queries, demo.documents.info)[layer, "cls"]
    together = engine.search(queries, 10)
    documents = in_float64(engine.vectors)
    for number, query in enumerate(queries):
        cosines = (documents @ in_float64(query[None])[0]).round(12)  # equal vectors have equal cosines
        np.testing.assert_array_equal(together.indices[number], np.argsort(-cosines, kind="stable")[:10])
        alone = engine.search(query, 10)
        np.testing.assert_array_equal(alone.indices[0], together.indices[number])
        np.testing.assert_array_equal(alone.scores[0], together.scores[number])
        assert alone.tied[0] == together.tied[number] == (DOCUMENTS if layer == 0 else 1)


def test_low_layers_of_cls_are_embedded_in_float32(demo: Demo) -> None:
    assert demo.documents.info.options.precision == "float32"
    exact = demo.backend.embed_options(range(7), POOLINGS, role="document", precision="float32")
    vectors = demo.backend.embed(list(demo.documents.texts), options=exact)
    for row, layer in enumerate(exact.layers):
        np.testing.assert_array_equal(demo.documents.engine(layer, "cls").vectors, vectors[row, 1])


def test_search_and_evaluate_count_the_same_first_hits(demo: Demo) -> None:
    """Recall@1 by Search, one query at a time, and by Evaluate, which embeds and ranks all queries together."""
    options = demo.backend.embed_options(range(7), POOLINGS, role="query", precision="float32")
    queries = build_index(demo.backend, Texts("queries", demo.queries), demo.folder / "queries", options, "float32")
    ranks = grid_ranks(demo.documents, queries)
    vectors = [query_vectors(demo.backend, [query], demo.documents.info) for query in demo.queries]
    for layer in range(7):
        for pooling in POOLINGS:
            engine = demo.documents.engine(layer, pooling)
            hits = [engine.search(own[layer, pooling], 1) for own in vectors]
            # A correct answer that shares its score counts as not found.
            first = [int(hit.indices[0, 0]) == number and hit.tied[0] == 1 for number, hit in enumerate(hits)]
            assert np.mean(first) == np.mean(ranks.of(layer, pooling) == 1), (layer, pooling)
