"""The repairs of a query: what is kept is measured when it is complete, a stop is noticed, and the query is read once."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.texts import Texts
from components.retrieval.failures import edits
from components.retrieval.failures.failed_queries import searched_corpus
from components.retrieval.search.exact import ExactSearch
from dashboard import caching
from dashboard.jobs import failures, requests

QUERY = "phyiscs institue"


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[..., Any]]:
    """The work of each job by its place, done at once."""
    found: dict[str, Callable[..., Any]] = {}

    def done(key: Any, title: str, work: Callable[..., Any], where: str, *arguments: Any, **options: Any) -> Any:
        found[where] = work
        return work(lambda done, total: None, lambda: False)

    monkeypatch.setattr(requests, "prepared", done)
    monkeypatch.setattr(requests, "latest", done)
    monkeypatch.setattr(caching, "evaluations", lambda: None)
    return found


def test_repairs_stop_when_they_are_asked_to(
    works: dict[str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    ranked: list[str] = []

    def tokenize(text: str) -> Any:
        read.append(text)
        return SimpleNamespace(tokens=[SimpleNamespace(id=ord(letter)) for letter in text])

    def rank(texts: list[str], by_itself: bool) -> tuple[np.ndarray, np.ndarray]:
        ranked.extend(texts)
        return np.array([len(ranked)]), np.zeros(1)

    monkeypatch.setattr(edits, "rank_queries", lambda *arguments: rank)
    backend = SimpleNamespace(
        tokenization=SimpleNamespace(vocabulary=(), tokenize=tokenize), spec=SimpleNamespace(key="m"), revision="r"
    )
    documents = Texts("institute", ("The physics institute", "may close."))
    searched: Any = SimpleNamespace(
        backend=backend,
        corpus=SimpleNamespace(documents=documents, pairs=SimpleNamespace(documents=documents)),
        index=SimpleNamespace(info=SimpleNamespace(options=None), folder=SimpleNamespace(name="f")),
        request=SimpleNamespace(query_options=lambda documents: SimpleNamespace(prompt="")),
        engine=None,
        layer=1,
        pooling="mean",
        key=("f",),
    )
    placed: Any = SimpleNamespace(row=0)
    found = failures.repairs_of(searched, QUERY, placed, (), {})
    assert [(each.text, rank) for each, rank in found] == [
        ("physics institue", 1),
        ("phyiscs institute", 2),
        ("physics institute", 3),
    ]
    assert read.count(QUERY) == 1
    kept = works["corpus_words"](lambda done, total: None, lambda: False)
    size = kept.nbytes
    assert kept.neighbour("phyiscs") == "physics"
    assert kept.nbytes == size > 0
    for work in works.values():
        with pytest.raises(Stopped):
            work(lambda done, total: None, lambda: True)
    stops = iter([False, True])
    ranked.clear()
    with pytest.raises(Stopped):
        works["repairs"](lambda done, total: None, lambda: next(stops))
    assert ranked == ["physics institue"]  # one, and no other after the stop


def test_hubs_are_counted_over_different_queries_and_texts(works: dict[str, Callable[..., Any]]) -> None:
    """A row that repeats another one adds no query, and its text has one count, at whatever row it stands."""
    rows = "Tea is hot.,tea\nIce is cold.,ice\nTea is hot.,tea\nTea is hot.,\nSnow falls.,snow"
    corpus = searched_corpus(read_corpus(f"sentence,question\n{rows}\n".encode(), "x.csv", "sentence"), "question")
    same = np.eye(3, dtype=np.float32)
    searched: Any = SimpleNamespace(
        corpus=corpus,
        engine=ExactSearch(same[[0, 1, 0, 0, 2]]),
        queries=SimpleNamespace(engine=lambda layer, pooling: ExactSearch(same[[0, 1, 0, 2]])),
        layer=1,
        pooling="mean",
        key=(),
    )
    found = failures.occurrences(searched)
    assert (found.queries, found.k, found.counts.tolist()) == (3, 3, [3, 3, 3])
    assert corpus.place_of.tolist() == [0, 1, 0, 0, 2]
    searched.queries = None  # the texts are the queries: each different one once, and it is no hit of itself
    found = failures.occurrences(searched)
    assert (found.queries, found.k, found.counts.tolist()) == (3, 2, [2, 2, 2])
