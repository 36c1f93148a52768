"""The vectors from which a ranking is learnt: against single passes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from components.model.embedding.options import EmbedOptions
from components.retrieval.corpora.texts import Texts
from components.retrieval.index.build import build_index
from components.retrieval.learnt import learnt_vectors
from components.retrieval.learnt.learnt_ranking import JudgedPairs
from components.retrieval.learnt.learnt_vectors import vectors_of

PAIRS = JudgedPairs(
    ("river bank", "a loan"),
    ("They sat by the water.", "The bank raised its rates.", "A dog barked."),
    np.array([0, 0, 1, 1]),
    np.array([0, 2, 1, 2]),
    np.array([2, 0, 1, 0]),
    np.array([True, True, True, False]),
    np.arange(2),
    np.arange(3),
)


@pytest.fixture(scope="module")
def apart(embedded):
    return vectors_of(embedded, PAIRS, "apart")


@pytest.fixture(scope="module")
def together(embedded):
    return vectors_of(embedded, PAIRS, "together", [0, 6])


def test_vectors_are_those_of_single_passes(embedded, apart, together):
    queries, documents = PAIRS.texts()
    assert apart.layers == tuple(range(7))
    for row, (query, document) in enumerate(zip(queries, documents, strict=True)):
        own = [embedded.trace([text]).hidden_states[:, 0] for text in (query, document)]  # [layer, token, dim]
        for layer in (0, 3, 6):
            for pooling, pooled in (("cls", lambda h: h[0]), ("mean", lambda h: h.mean(axis=0))):
                q, d = (pooled(states[layer]) for states in own)
                np.testing.assert_allclose(apart.features(PAIRS, layer, pooling)[row], q * d, atol=2e-5)
        joint = embedded.trace([query], [document]).hidden_states[:, 0]
        np.testing.assert_allclose(together.features(PAIRS, 6, "cls")[row], joint[6, 0], atol=1e-5)
        np.testing.assert_allclose(together.features(PAIRS, 0, "mean")[row], joint[0].mean(axis=0), atol=1e-5)
    assert np.ptp(apart.features(PAIRS, 0, "cls"), axis=0).max() == 0  # [CLS] knows nothing of its text there


def test_vectors_out_of_indexes_are_the_same_and_cost_no_pass(embedded, apart, tmp_path):
    def index(name, texts, role, layers=range(7), poolings=("mean", "cls", "max")):
        options = embedded.embed_options(layers, poolings, precision="float32", role=role)
        return build_index(embedded, Texts(name, texts), tmp_path / name, options, "float32")

    # Of a collection with other texts, in another order.
    documents = index("documents", ("Something else.", *PAIRS.documents[::-1]), "document")
    queries = index("queries", ("another query", *PAIRS.queries), "query")
    pairs = replace(PAIRS, query_numbers=np.array([1, 2]), document_numbers=np.array([3, 2, 1]))
    before = embedded.forward_passes
    known = learnt_vectors.from_indexes(documents, queries, pairs)
    assert embedded.forward_passes == before
    for name, value in vars(apart).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(getattr(known, name), value, atol=2e-5)
        else:
            assert getattr(known, name) == value, name
    rounded = embedded.embed_options(range(7), ("mean", "cls"), precision="float32")
    smaller = build_index(embedded, Texts("smaller", PAIRS.documents), tmp_path / "smaller", rounded, "float16")
    assert learnt_vectors.from_indexes(smaller, queries, PAIRS) is None
    without = index("maximum", PAIRS.documents, "document", poolings=("max",))
    assert learnt_vectors.from_indexes(without, queries, PAIRS) is None


def test_queries_and_documents_are_read_as_what_they_are():
    read = []

    class Stub:
        facts, own_max_length = SimpleNamespace(layers=1), 8

        def embed_options(self, layers, poolings, length, precision, role=""):
            return EmbedOptions((*layers,), poolings, length, precision, role)

        def embed(self, texts, options, **_):
            read.append((tuple(texts), options.prompt))
            return np.zeros((2, 2, len(texts), 3), np.float32)

    vectors_of(Stub(), PAIRS, "apart")
    assert read == [(PAIRS.queries, "query"), (PAIRS.documents, "document")]


def test_cosines_are_of_all_documents(embedded, apart):
    options = embedded.embed_options([6], ["cls"], precision="float32")
    q, d = (embedded.embed(texts, options=options)[0, 0] for texts in (PAIRS.queries, PAIRS.documents))
    expected = (q @ d.T) / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(d, axis=1)
    np.testing.assert_allclose(apart.cosines(6, "cls", np.array([0, 1])), expected, atol=1e-5)
    np.testing.assert_allclose(
        q[PAIRS.query_rows] * d[PAIRS.document_rows],
        apart.features(PAIRS, 6, "cls"),
        atol=1e-4,
    )


def test_the_expected_memory_is_the_memory(embedded, apart):
    assert learnt_vectors.needed_bytes(embedded, PAIRS, "apart") == apart.nbytes
    assert learnt_vectors.needed_bytes(embedded, PAIRS, "together") == vectors_of(embedded, PAIRS, "together").nbytes
