"""What all three engines promise, with real usearch and real Milvus Lite."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.errors import InputError
from components.folders import machine_key
from components.jobs import Stopped
from components.retrieval.engines import contract, graph, milvus
from components.retrieval.engines.contract import ENGINES, Engine, StoredVectors
from components.retrieval.engines.opening import open_engine
from components.retrieval.search.exact import ExactSearch, Similarity
from tests.support.stored_vectors import clustered, stored_in

Opened = Callable[..., Engine]


# Milvus takes seconds for each collection: test_milvus_in_short has one, and the whole contract is held by rare tests.
EACH = [pytest.param(name, marks=pytest.mark.rare if name == "milvus" else ()) for name in ENGINES]


@pytest.fixture(params=EACH)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens the engine over vectors that lie in this test's folder."""

    def of(stored: StoredVectors, similarity: Similarity = "cosine", **options: object) -> Engine:
        address = str(tmp_path / "vectors.db") if request.param == "milvus" else None
        engine = open_engine(request.param, stored, similarity, address, **options)
        if isinstance(engine, milvus.MilvusEngine):
            request.addfinalizer(engine.close)
        return engine

    of.name = request.param
    return of


def queries_of(vectors: np.ndarray, count: int = 20, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    near = vectors[rng.integers(len(vectors), size=count)].astype(np.float32)
    return (near + 0.1 * rng.normal(size=near.shape)).astype(np.float32)


def recall_of(engine: Engine, stored: StoredVectors, queries: np.ndarray, k: int, similarity: Similarity) -> float:
    found, exact = engine.search(queries, k, similarity), stored.exact.search(queries, k, similarity)
    return float(np.mean([len({*a} & {*b}) / k for a, b in zip(found.indices, exact.indices, strict=True)]))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("kind", ["random", "clustered"])
def test_nearly_all_neighbours_are_found_with_their_true_scores(opened, kind, similarity, numbers, tmp_path):
    vectors = numbers * np.linspace(0.5, 2, len(numbers))[:, None].astype(np.float32)
    stored = stored_in(tmp_path / "index", vectors if kind == "random" else clustered(800))
    queries = queries_of(stored.exact.vectors)
    engine = opened(stored, similarity)
    assert recall_of(engine, stored, queries, 10, similarity) >= (1 if engine.facts.exact else 0.97)
    hits = engine.search(queries, 10, similarity)
    assert hits.indices.shape == hits.scores.shape == (20, 10)
    wide, asked = stored.exact.vectors.astype(float), queries.astype(float)
    true = np.einsum("qhd,qd->qh", wide[hits.indices], asked)
    if similarity == "cosine":
        true /= np.linalg.norm(wide[hits.indices], axis=2) * np.linalg.norm(asked, axis=1)[:, None]
    np.testing.assert_allclose(hits.scores, true, rtol=1e-9)
    assert (np.diff(hits.scores, axis=1) <= 1e-12).all()


def test_more_hits_than_sentences_are_all_sentences(opened, numbers, tmp_path):
    stored = stored_in(tmp_path / "index", numbers[:7])
    hits = opened(stored).search(numbers[:2], 50)
    assert [sorted(row) for row in hits.indices.tolist()] == [list(range(7))] * 2


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_zero_vectors_score_zero_and_are_found(opened, similarity, numbers, tmp_path):
    vectors = np.abs(numbers[:40])
    vectors[[3, 20]] = 0
    stored = stored_in(tmp_path / "index", vectors)
    engine = opened(stored, similarity)
    hits = engine.search(vectors[:1], 40, similarity)
    assert sorted(hits.indices[0, -2:].tolist()) == [3, 20]
    assert hits.scores[0, -2:].tolist() == [0, 0]
    nothing = engine.search(np.zeros((1, 24), np.float32), 3, similarity)
    assert (nothing.indices[0].tolist(), nothing.scores[0].tolist(), int(nothing.tied[0])) == ([0, 1, 2], [0, 0, 0], 40)


def test_ties_are_told(opened, numbers, tmp_path):
    vectors = numbers[:200].copy()
    vectors[[4, 9, 30, 77]] = vectors[4]
    stored = stored_in(tmp_path / "index", vectors)
    hits = opened(stored).search(vectors[4:5], 2)
    assert hits.indices.tolist() == [[4, 9]]
    assert (int(hits.tied[0]), int(hits.tied_shown[0])) == (4, 2)


@pytest.mark.parametrize("places", ["first", "between", "last"])
def test_what_stands_beside_thousands_of_copies_is_found(opened, places, tmp_path):
    """A graph of copies links them with each other alone: from there no walk would reach the rest."""
    others, copy = clustered(300), np.ones((1, 32), np.float32)
    copies = np.repeat(copy, 1_500, axis=0)
    vectors = {"first": [copies, others], "last": [others, copies], "between": [others[:150], copies, others[150:]]}[
        places
    ]
    stored = stored_in(tmp_path / "index", np.concatenate(vectors))
    engine = opened(stored)
    rows = np.flatnonzero((stored.exact.vectors != 1).any(axis=1))
    for searched in (engine, opened(stored)):  # as built, and as opened again
        hits = searched.search(stored.exact.vectors[rows[::10]], 10)
        assert hits.indices[:, 0].tolist() == rows[::10].tolist()
        np.testing.assert_allclose(hits.scores[:, 0], 1, atol=1e-12)
    exact = stored.exact.search(stored.exact.vectors[rows[::10]], 10)
    assert np.mean([len({*a} & {*b}) / 10 for a, b in zip(hits.indices, exact.indices, strict=True)]) >= 0.97
    first = int(np.setdiff1d(np.arange(1_800), rows)[0])
    of_copy = engine.search(copy, 10)
    assert of_copy.indices[0].tolist() == list(range(first, first + 10))
    assert (int(of_copy.tied[0]), int(of_copy.tied_shown[0])) == (1_500, 10)
    many = engine.search(copy, 1_700)
    assert many.indices[0, :1_500].tolist() == list(range(first, first + 1_500))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_each_different_vector_stands_once(dtype):
    vectors = np.random.default_rng(3).integers(0, 2, (500, 5)).astype(dtype)  # 32 different ones
    found = contract.DifferentVectors.of(vectors, few=1)
    unique, firsts = np.unique(vectors, axis=0, return_index=True)
    assert found.firsts.tolist() == sorted(firsts.tolist())
    assert len(found) == len(unique)
    some = found.firsts[[3, 0]]
    assert found.with_copies(some).tolist() == [
        row for first in some for row in np.flatnonzero((vectors == vectors[first]).all(axis=1)).tolist()
    ]
    few = contract.DifferentVectors.of(vectors, few=12)
    counts = [int((vectors == own).all(axis=1).sum()) for own in unique]
    assert len(few) == sum(1 if count > 12 else count for count in counts)
    alone = contract.DifferentVectors.of(np.eye(4, dtype=dtype))
    assert alone.with_copies(np.array([2, 0])).tolist() == [2, 0]
    assert len(contract.DifferentVectors.of(vectors[:0])) == 0


def test_vectors_with_equal_sums_are_not_taken_for_equal(monkeypatch):
    monkeypatch.setattr(contract, "_factors", lambda count: np.ones(count, np.uint64))
    assert len(contract.DifferentVectors.of(np.array([[1, 2], [2, 1], [1, 2]], np.float32), few=1)) == 2


def test_float16_vectors(opened, tmp_path):
    stored = stored_in(tmp_path / "index", clustered(300).astype(np.float16))
    assert recall_of(opened(stored), stored, queries_of(stored.exact.vectors), 10, "cosine") >= 0.97


def test_a_search_does_not_depend_on_how_many_are_searched_together(opened, tmp_path):
    stored = stored_in(tmp_path / "index", clustered(300))
    queries, engine = queries_of(stored.exact.vectors, 4), opened(stored)
    together = engine.search(queries, 5)
    for row, query in enumerate(queries):
        alone = engine.search(query[None], 5)
        assert alone.indices[0].tolist() == together.indices[row].tolist()
        assert alone.scores[0].tolist() == together.scores[row].tolist()
    assert engine.search(np.empty((0, 32), np.float32), 5).indices.shape == (0, 5)


def test_what_cannot_be_searched_is_refused(opened, numbers, tmp_path):
    stored = stored_in(tmp_path / "index", numbers[:50])
    engine = opened(stored)
    with pytest.raises(InputError, match="at least 1 hit"):
        engine.search(numbers[:1], 0)
    with pytest.raises(InputError, match="not finite"):
        engine.search(np.full((1, 24), np.nan, np.float32), 3)
    if not engine.facts.exact:
        with pytest.raises(InputError, match="was built for cosine, not for dot"):
            engine.search(numbers[:1], 3, "dot")
        broken = numbers[:50].copy()
        broken[7, 0] = np.inf
        with pytest.raises(InputError, match="not finite"):
            opened(stored_in(tmp_path / "other", broken))


def test_it_is_built_once_and_opened_again(opened, tmp_path):
    stored = stored_in(tmp_path / "index", clustered(300))
    reports: list[tuple[int, int]] = []
    first = opened(stored, progress=lambda done, total: reports.append((done, total)))
    assert reports == ([] if first.facts.exact else [(0, 300), (300, 300)])
    queries, count = queries_of(stored.exact.vectors), len(reports)
    again = opened(stored, progress=lambda done, total: reports.append((done, total)))
    assert len(reports) == count
    assert again.search(queries, 10).indices.tolist() == first.search(queries, 10).indices.tolist()
    assert again.facts == first.facts
    assert first.facts.name == opened.name
    assert first.facts.per_vector(300) >= 32


def test_other_vectors_never_answer(opened, tmp_path):
    """An index that was written again into its folder."""
    opened(stored_in(tmp_path / "index", clustered(300)))
    stored = stored_in(tmp_path / "index", clustered(300, seed=8))
    assert recall_of(opened(stored), stored, queries_of(stored.exact.vectors), 10, "cosine") >= 0.97


def test_stop_leaves_nothing_behind(opened, tmp_path):
    stored = stored_in(tmp_path / "index", clustered(300))
    if opened.name == "exact":
        assert opened(stored, is_stopped=lambda: True).facts.exact  # nothing to stop
        return
    with pytest.raises(Stopped):
        opened(stored, is_stopped=lambda: True)
    assert list((tmp_path / "index").iterdir()) == []
    reports: list[int] = []
    opened(stored, progress=lambda done, total: reports.append(done))
    assert reports[0] == 0  # it began anew
    if opened.name == "milvus":
        from pymilvus import MilvusClient

        client = MilvusClient(str(tmp_path / "vectors.db"))
        assert client.list_collections() == [milvus.collection_name(stored, "cosine")]
        client.close()


@pytest.mark.parametrize(("engine", "package"), [("usearch", "usearch.index"), ("milvus", "pymilvus")])
def test_a_missing_package_is_named(engine, package, numbers, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"pip install -r requirements-scale\.txt"):
        open_engine(
            engine, stored_in(tmp_path, numbers), address=str(tmp_path / "a.db") if engine == "milvus" else None
        )


def test_other_names_and_addresses_are_refused(numbers, tmp_path):
    stored = stored_in(tmp_path, numbers)
    with pytest.raises(InputError, match="exact, usearch, milvus"):
        open_engine("faiss", stored)
    with pytest.raises(InputError, match="needs an address"):
        open_engine("milvus", stored)
    with pytest.raises(InputError, match="has no address"):
        open_engine("exact", stored, address="a.db")


@pytest.mark.parametrize("precision", graph.PRECISIONS)
def test_a_graph_of_shorter_numbers_finds_most(precision, tmp_path):
    stored = stored_in(tmp_path, clustered(600, 64))
    settings = graph.GraphSettings(precision, expansion_search=200)
    engine = graph.build_file(stored, "dot", settings)
    least = {"float32": 0.99, "float16": 0.99, "int8": 0.97, "bits": 0.6}[precision]
    assert recall_of(engine, stored, queries_of(stored.exact.vectors), 10, "dot") >= least
    assert engine.facts.settings["precision"] == precision


def test_with_one_thread_a_graph_is_the_same_every_time(tmp_path):
    stored = stored_in(tmp_path, clustered(500))
    settings, queries = graph.GraphSettings(connectivity=3, expansion_add=4, expansion_search=4), clustered(50, seed=9)
    first, second = (graph.build(stored, settings=settings, threads=1).search(queries, 4).indices for _ in range(2))
    assert first.tolist() == second.tolist()


def test_a_graph_of_other_vectors_or_a_damaged_one_is_refused(tmp_path):
    stored, other = stored_in(tmp_path, clustered(300)), stored_in(tmp_path, clustered(300, seed=8))
    with pytest.raises(FileNotFoundError):
        graph.open_file(stored)
    graph.build_file(stored)
    with pytest.raises(InputError, match="was built from other vectors"):
        graph.open_file(other)
    with pytest.raises(FileNotFoundError):
        graph.open_file(stored, "dot")
    path = graph.graph_file(stored, "cosine", graph.GraphSettings())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged: it has other content"):
        graph.open_file(stored)


def test_milvus_in_short(numbers, tmp_path):
    """One collection: built once and opened again, true scores for dot products, zero vectors and ties, what is refused."""
    vectors = numbers[:300] * np.linspace(0.5, 2, 300)[:, None].astype(np.float32)
    vectors[[3, 20]] = 0
    vectors[[4, 9, 30, 77]] = 3 * numbers[4]
    stored, address = stored_in(tmp_path / "index", vectors), str(tmp_path / "vectors.db")
    reports: list[tuple[int, int]] = []

    def opened() -> Engine:
        return open_engine("milvus", stored, "dot", address, progress=lambda *report: reports.append(report))

    first = opened()
    assert reports == [(0, 300), (300, 300)]
    queries = queries_of(vectors[100:])
    assert recall_of(first, stored, queries, 10, "dot") >= 0.97
    hits = first.search(queries, 10, "dot")
    true = np.einsum("qhd,qd->qh", vectors.astype(float)[hits.indices], queries.astype(float))
    np.testing.assert_allclose(hits.scores, true, rtol=1e-9)
    assert (np.diff(hits.scores, axis=1) <= 1e-12).all()
    equal = first.search(vectors[4:5], 2, "dot")
    assert (equal.indices.tolist(), int(equal.tied[0]), int(equal.tied_shown[0])) == ([[4, 9]], 4, 2)
    everything = first.search(vectors[4:5], 500, "dot")
    assert sorted(everything.indices[0].tolist()) == list(range(300))
    assert dict(zip(everything.indices[0].tolist(), everything.scores[0].tolist(), strict=True))[20] == 0
    alone = first.search(queries[5:6], 10, "dot")
    assert (alone.indices[0].tolist(), alone.scores[0].tolist()) == (hits.indices[5].tolist(), hits.scores[5].tolist())
    with pytest.raises(InputError, match="was built for dot, not for cosine"):
        first.search(queries, 3)
    first.close()
    again = opened()
    assert len(reports) == 2
    assert again.search(queries, 10, "dot").indices.tolist() == hits.indices.tolist()
    assert again.facts == first.facts
    assert (again.facts.name, again.facts.exact, again.facts.per_vector(300)) == ("milvus", False, 96)
    again.close()
    fewer = StoredVectors(ExactSearch(vectors[:200]), stored.identity, tmp_path, stored.stem)
    with pytest.raises(InputError, match="has 300 vectors, and the index has 200"):
        milvus.opened(fewer, address, "dot")


def test_a_file_that_is_not_milvus_is_refused(numbers, tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("not a database")
    with pytest.raises(InputError, match="Milvus Lite cannot use"):
        milvus.opened(stored_in(tmp_path, numbers), str(path))
    assert path.read_text() == "not a database"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("vectors.sqlite", r"ends in \.db"),
        ("", r"ends in \.db"),
        ("ftp://host", "begins with http"),
        ("http://", "begins with http"),
        ("https://user:secret@host:19530", "none may hold a secret"),
        ("https://host:19530?token=secret", "none may hold a secret"),
        ("http://host:99999", "Port"),
    ],
)
def test_addresses_that_are_none(text, says):
    with pytest.raises(InputError, match=says) as refused:
        milvus.Address.parse(text)
    assert "secret@" not in str(refused.value)
    assert "=secret" not in str(refused.value)


def test_the_settings_of_a_graph_are_checked():
    with pytest.raises(InputError, match="are not available"):
        graph.GraphSettings(connectivity=0)
    assert contract.EngineFacts("exact", True, 800, {}).per_vector(100) == 8


def test_a_large_graph_that_was_damaged_anywhere_is_built_anew(tmp_path: Path) -> None:
    stored = stored_in(tmp_path / "index", np.random.default_rng(0).normal(size=(900, 384)).astype(np.float32))
    built = graph.build_file(stored)
    path = graph.graph_file(stored, "cosine", graph.GraphSettings())
    assert path.stat().st_size > 1 << 20
    content = bytearray(path.read_bytes())
    for start in range(40_000, len(content), 200_000):  # between the places that a sample would read
        content[start : start + 64] = bytes(64)
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        graph.open_file(stored)
    query = stored.exact.vectors[:3]
    again = open_engine("usearch", stored)
    assert again.search(query, 5).indices[:, 0].tolist() == built.search(query, 5).indices[:, 0].tolist() == [0, 1, 2]


def rewritten(stored: StoredVectors, change: Callable[[bytearray], None], mac: bool = False) -> None:
    """A graph that somebody changed, together with its checksum; with the machine's own MAC where `mac`."""
    path = graph.graph_file(stored, "cosine", graph.GraphSettings())
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)
    description = path.with_name(f"{path.name}.json")
    described = json.loads(description.read_text())
    described |= {"checksum": hashlib.sha256(content).hexdigest(), "size": len(content)}
    if mac:
        key = machine_key()
        assert key is not None
        described["mac"] = graph._mac(key, described)
    description.write_text(json.dumps(described))


def every_link(content: bytearray) -> None:
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)


def test_a_graph_with_a_rewritten_checksum_is_never_given_to_usearch(tmp_path: Path, monkeypatch) -> None:
    stored = stored_in(tmp_path / "index", clustered(300))
    graph.build_file(stored)
    rewritten(stored, every_link)
    given: list[str] = []
    library = graph._library()
    restore = library.restore
    monkeypatch.setattr(library, "restore", lambda path, view: given.append(path) or restore(path, view=view))
    with pytest.raises(InputError, match="was not made on this machine"):
        graph.open_file(stored)
    assert given == []
    engine = open_engine("usearch", stored)
    assert re.fullmatch(
        r"The graph \S+ was not made on this machine.* It was built anew in \d+\.\d s\.", engine.facts.note
    )
    assert engine.search(stored.exact.vectors[:3], 1).indices[:, 0].tolist() == [0, 1, 2]
    assert open_engine("usearch", stored).facts.note == ""  # it is this machine's own now


def test_a_graph_of_another_machine_is_built_anew(tmp_path: Path, monkeypatch) -> None:
    stored = stored_in(tmp_path / "index", clustered(300))
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path / "other"))
    graph.build_file(stored)
    graph.open_file(stored)
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path / "own"))
    for without in (None, "mac", "format", "kind", "checksum"):
        path = graph.graph_file(stored, "cosine", graph.GraphSettings())
        description = path.with_name(f"{path.name}.json")
        described = json.loads(description.read_text())
        description.write_text(json.dumps({name: value for name, value in described.items() if name != without}))
        with pytest.raises(InputError, match="was not made on this machine" if without in (None, "mac") else "."):
            graph.open_file(stored)
        description.write_text(json.dumps(described))
    assert "built anew" in open_engine("usearch", stored).facts.note


@pytest.mark.parametrize("problem", [RuntimeError("no magic"), ValueError("a header"), MemoryError(), SystemError("x")])
def test_whatever_usearch_says_of_a_graph_it_is_built_anew(tmp_path: Path, monkeypatch, problem: Exception) -> None:
    stored = stored_in(tmp_path / "index", clustered(300))
    graph.build_file(stored)
    library = graph._library()
    restore, calls = library.restore, []

    def fails_once(path: str, view: bool) -> Any:
        calls.append(path)
        if len(calls) == 1:
            raise problem
        return restore(path, view=view)

    monkeypatch.setattr(library, "restore", fails_once)
    engine = open_engine("usearch", stored)
    assert "is damaged" in engine.facts.note
    assert engine.search(stored.exact.vectors[:2], 1).indices[:, 0].tolist() == [0, 1]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 60_000, b"\xff", b" " * (1 << 20) + b"{}", b"null"])
def test_other_descriptions_are_refused(tmp_path: Path, content: bytes) -> None:
    stored = stored_in(tmp_path / "index", clustered(300))
    graph.build_file(stored)
    path = graph.graph_file(stored, "cosine", graph.GraphSettings())
    path.with_name(f"{path.name}.json").write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        graph.open_file(stored)


def test_without_a_key_the_graph_stays_in_memory_and_says_so(tmp_path: Path, monkeypatch) -> None:
    stored = stored_in(tmp_path / "index", clustered(300))
    graph.build_file(stored)
    (tmp_path / "file").write_text("no folder")  # as in a cache that may only be read; root may write everywhere
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path / "file"))
    before = sorted((path.name, path.read_bytes()) for path in stored.folder.iterdir())
    engine = open_engine("usearch", stored)
    assert isinstance(engine, graph.GraphEngine)
    assert engine.nbytes > 0
    assert "built anew" in engine.facts.note
    assert "The graph stays in memory: the cache folder cannot keep the key" in engine.facts.note
    assert sorted((path.name, path.read_bytes()) for path in stored.folder.iterdir()) == before


def test_a_graph_is_built_by_several_at_once(tmp_path: Path) -> None:
    stored = stored_in(tmp_path / "index", np.random.default_rng(1).normal(size=(300, 16)).astype(np.float32))
    with ThreadPoolExecutor(3) as threads:
        engines = list(threads.map(lambda _: graph.build_file(stored), range(12)))
    assert {tuple(engine.search(stored.exact.vectors[:1], 1).indices[0]) for engine in engines} == {(0,)}
    assert len(list((tmp_path / "index").glob("*.usearch*"))) == 2  # the graph and its description


def test_a_graph_of_a_folder_that_may_only_be_read_stays_in_memory(numbers, tmp_path, monkeypatch):
    stored = stored_in(tmp_path / "index", numbers)
    monkeypatch.setattr("os.access", lambda path, mode: path != stored.folder)  # root may write everywhere
    engine = open_engine("usearch", stored)
    assert list(stored.folder.iterdir()) == []
    assert isinstance(engine, graph.GraphEngine)
    assert engine.facts.note == "The graph stays in memory: the folder of the index may only be read."
    assert engine.nbytes == engine.with_expansion(16).nbytes == engine.facts.nbytes > 0  # counted among what is kept
    assert recall_of(engine, stored, queries_of(numbers), 10, "cosine") >= 0.97
    monkeypatch.undo()
    assert open_engine("usearch", stored).nbytes == 0  # mapped from its file
