"""A second look by MaxSim over all queries: the ranks are those of plain arrays, and nothing is claimed that did not happen."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from components.model.backend import Backend
from components.retrieval.reranking import quality
from components.retrieval.reranking.quality import SecondLook, rankings_of, second_look

TEXTS = (
    "A volcano erupted at sea.",
    "The bank raised its rates.",
    "A ship sank in the storm.",
    "Actors won awards.",
    "It rained.",
)
QUERIES = ("eruption in the ocean", "interest rates go up", "a vessel was lost", "film prize", "wet weather")


def look(first: list[int], after: dict[int, list[int]]) -> SecondLook:
    rankings = rankings_of({depth: np.array(of, np.int64) for depth, of in {0: first, **after}.items()})
    return SecondLook(rankings, dict.fromkeys(after, 0.1), 5.0, 1536.0, 3072.0)


def test_ranks_are_those_of_plain_arrays(embedded: Backend) -> None:
    gold = np.arange(len(TEXTS))
    found = second_look(embedded, QUERIES, TEXTS, gold, 6, "mean", depths=(2, 3))

    def unit(values: np.ndarray) -> np.ndarray:
        return values / np.linalg.norm(values, axis=-1, keepdims=True)

    def states(text: str) -> np.ndarray:
        trace = embedded.run([text])
        return trace.hidden_states[6, 0, : len(trace.sentences[0])].astype(np.float64)

    queries, texts = [states(text) for text in QUERIES], [states(text) for text in TEXTS]
    cosines = np.array([[unit(one.mean(0)) @ unit(other.mean(0)) for other in texts] for one in queries])
    late = np.array([[(unit(one[1:-1]) @ unit(other[1:-1]).T).max(1).sum() for other in texts] for one in queries])
    for depth in (2, 3):
        scores = cosines.copy()
        for query, row in enumerate(cosines):
            near = np.argsort(-row)[:depth]
            scores[query, near] = 100 + late[query, near]
        expected = [int((of >= of[query] - 1e-6).sum()) for query, of in enumerate(scores)]
        assert found.ranks(depth).tolist() == expected
    assert found.ranks().tolist() == [int((row >= row[query] - 1e-6).sum()) for query, row in enumerate(cosines)]
    assert found.vector_bytes == 384 * 4
    assert found.token_bytes == pytest.approx(np.mean([len(text) - 2 for text in texts]) * 384 * 4)


def test_queries_and_texts_are_read_as_what_they_are() -> None:
    read = []

    class Stub:
        def embed_options(self, *_: object, role: str) -> str:
            return role

        def embed(self, texts: tuple[str, ...], options: str, **_: object) -> np.ndarray:
            read.append((texts, options))
            return np.eye(5, dtype=np.float32)[None, None]

        def score_pairs(self, queries: list[str], texts: list[str], **_: object) -> np.ndarray:
            return np.zeros(len(queries), np.float32)

    quality.by_cross_encoder(Stub(), Stub(), QUERIES, TEXTS, np.arange(5), 6, "mean", (2,))  # type: ignore[arg-type]
    assert sorted(read) == sorted([(QUERIES, "query"), (TEXTS, "document")])


def test_the_first_time_of_a_work_warms_up(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0, 100, 100, 101, 101, 104))
    monkeypatch.setattr(quality, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert quality._median(lambda query: None, range(2)) == 2_000


def test_what_is_repaired_and_harmed_and_how_many_candidates_are_enough() -> None:
    found = look([1, 1, 2, 3], {5: [1, 2, 1, 1], 50: [1, 2, 1, 1]})
    assert (found.first_place(), found.first_place(50)) == (50.0, 75.0)
    assert (found.repaired(50), found.harmed(50), found.enough()) == (2, 1, 5)
    low, high = found.interval(50)
    assert 0 < low < 75 < high < 100
    assert look([1, 1], {5: [2, 2], 50: [1, 2]}).enough() == 50
