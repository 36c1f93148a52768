"""What approximation loses: recall by hand, ties, and the same figures every time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.engines import graph
from components.retrieval.engines.approximation import (
    Approximation,
    approximations,
    losses,
    recalls,
    times,
)
from components.retrieval.engines.contract import StoredVectors
from components.retrieval.engines.smaller import Smaller
from components.retrieval.search.exact import Hits
from tests.support.stored_vectors import clustered, stored_in


def hits_of(rows: list[list[int]], scores: list[list[float]]) -> Hits:
    nothing = np.zeros(len(rows), np.int64)
    return Hits(np.array(rows), np.array(scores, float), nothing, nothing)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The stored vectors, queries, and all losses."""
    stored = stored_in(tmp_path_factory.mktemp("index"), clustered(400, 64))
    queries = clustered(30, 64, seed=3)
    return stored, queries, losses(stored, queries)


def test_recall_by_hand():
    """Of the 4 best, the first query finds 3; the second finds others with the score of the last."""
    exact = hits_of([[5, 2, 7, 1], [0, 1, 2, 3]], [[0.9, 0.8, 0.7, 0.6], [0.9, 0.5, 0.5, 0.5]])
    found = hits_of([[5, 7, 1, 9], [0, 8, 9, 1]], [[0.9, 0.7, 0.6, 0.2], [0.9, 0.5, 0.5, 0.5]])
    assert recalls(exact, found).tolist() == [0.75, 1]


def test_the_lost_hits_are_named_with_their_ranks(tmp_path):
    vectors = np.array([[1, 0.1 * row, 1 if row in (0, 3) else -1] for row in range(6)], np.float32)
    rows = np.tile(vectors, (4, 1)) + np.arange(24, dtype=np.float32)[:, None] * 0.01
    stored = stored_in(tmp_path, rows)
    query = rows[7:8]
    (way,) = (result := losses(stored, query, ways=[Approximation("f", "first", "first 1", Smaller("first", 1))])).ways
    exact = stored.exact.search(query, 10).indices[0].tolist()
    expected = [(rank, row) for rank, row in enumerate(exact, start=1) if row not in way.found[0]]
    assert expected
    assert [(lost.rank, lost.row) for lost in result.lost(way, 0)] == expected
    assert way.mean == pytest.approx(1 - len(expected) / 10)


def test_each_way_holds_what_its_name_says(compared):
    _, queries, result = compared
    sizes = {way.approximation.code: way.bytes_per_vector for way in result.ways}
    assert result.exact_bytes == 256
    assert [sizes[code] for code in ("float16", "int8", "bits-4", "first-2", "first-8")] == [128, 68, 8, 128, 32]
    assert {code for code in sizes if code.startswith("hnsw")} == {"hnsw-16", "hnsw-64", "hnsw-256"}
    assert sizes["hnsw-16"] == sizes["hnsw-256"] > 256
    found = {way.approximation.code: way.mean for way in result.ways}
    assert found["float16"] > 0.99
    assert found["bits-1"] <= found["bits-4"] <= found["bits-10"]
    assert found["first-8"] < found["first-4"] < found["first-2"] < 1
    assert found["hnsw-16"] <= found["hnsw-256"] == 1
    for way in result.ways:
        for query in range(len(queries)):
            assert len(result.lost(way, query)) == round(10 * (1 - way.recall[query]))
    assert result.of("int8").approximation.code == "int8"
    assert result.of("pq") is None


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_the_figures_are_the_same_every_time(compared, similarity):
    stored, queries, _ = compared
    first, second = (losses(stored, queries, similarity) for _ in range(2))
    for one, other in zip(first.ways, second.ways, strict=True):
        assert one.recall.tolist() == other.recall.tolist()
        assert one.found.tolist() == other.found.tolist()
        assert not one.recall.flags.writeable


def test_without_usearch_there_is_no_graph(monkeypatch):
    assert not any(way.graph for way in approximations(64, with_graph=False))
    assert [way.smaller.dims for way in approximations(5, False) if way.family == "first"] == [2, 1]
    monkeypatch.setattr(graph.importlib.util, "find_spec", lambda name: None)
    assert not graph.is_installed()


def test_identical_sentences_are_not_counted_as_lost(tmp_path):
    stored = stored_in(tmp_path, np.tile(clustered(2), (30, 1)))
    result = losses(stored, clustered(5), ways=approximations(32, False)[:2])
    assert [way.mean for way in result.ways] == [1, 1]


@pytest.mark.parametrize("work", [losses, times])
def test_progress_ends_at_its_total_and_never_goes_back(compared, work):
    stored, queries, _ = compared
    reports: list[tuple[int, int]] = []
    work(stored, queries, progress=lambda done, total: reports.append((done, total)))
    done = [report[0] for report in reports]
    assert done == sorted(done)
    assert reports[-1][0] == reports[-1][1]
    with pytest.raises(Stopped):
        work(stored, queries, is_stopped=lambda: True)


def test_a_time_is_the_median_of_the_queries(compared):
    stored, queries, _ = compared
    ticks = itertools.cycle([0.0, 0.002, 1.0, 1.004, 2.0, 2.009])
    ways = [Approximation("int8", "int8", "int8", Smaller("int8"))]
    assert times(stored, queries[:3], ways=ways, clock=lambda: next(ticks)) == {
        "exact": pytest.approx(4),
        "int8": pytest.approx(4),
    }


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_sentence_that_asks_is_no_hit_of_itself(similarity):
    vectors = clustered(300)
    vectors[7] = vectors[3]  # a second sentence with the same vector is one
    result = losses(StoredVectors.of_vectors(vectors), vectors[:60], similarity, approximations(32, False), own=True)
    assert result.exact.indices.shape == (60, 10)
    assert not (result.exact.indices == np.arange(60)[:, None]).any()
    if similarity == "cosine":
        assert result.exact.indices[3, 0] == 7
        assert result.exact.indices[7, 0] == 3

    def nearest(rows: np.ndarray, asked: np.ndarray) -> np.ndarray:
        scores = asked.astype(np.float64) @ rows.astype(np.float64).T
        scores[np.arange(60), np.arange(60)] = -np.inf
        return scores

    lengths = 1 if similarity == "dot" else np.linalg.norm(vectors, axis=1, keepdims=True)
    true = nearest(vectors / lengths, vectors[:60])
    for dims in (16, 8, 4):
        kept = vectors[:, :dims]
        kept = kept / (1 if similarity == "dot" else np.linalg.norm(kept, axis=1, keepdims=True))
        # The query is left out at the end: where the first dimensions do not find it, the last of eleven hits goes.
        short = kept[:60].astype(np.float64) @ kept.astype(np.float64).T
        least = np.sort(true, axis=1)[:, -10] - 1e-9
        expected = []
        for query in range(60):
            eleven = np.argsort(-short[query], kind="stable")[:11].tolist()
            eleven.sort(key=lambda row: -true[query, row] if row != query else -np.inf)
            ten = [row for row in eleven if row != query][:10]
            expected.append(np.mean([true[query, row] >= least[query] for row in ten]))
        way = next(way for way in result.ways if way.approximation.smaller.dims == dims)
        np.testing.assert_allclose(way.recall, expected)
