"""The jobs of re-ranking end with the people who wait for them, and a session keeps few keys of stopped ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.retrieval.evaluation.graded.collection import GradedReport, GradedSet
from components.retrieval.learnt import comparison, learnt_ranking
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import requests, reranking
from dashboard.views.pairs import learnt_rankers, scores


class Jobs:
    """Jobs under way, of which everybody has left those in `left`."""

    def __init__(self) -> None:
        self.left: set[Any] = set()
        self.stopped: list[Any] = []

    def find(self, key: Any) -> Any:
        return SimpleNamespace(key=key, finished=threading.Event(), is_stopped_for=lambda person: False)

    def end_if_left(self, job: Any) -> bool:
        return job.key in self.left

    def stop(self, job: Any, person: Any = None) -> None:
        self.stopped.append(job.key)

    def forget(self, job: Any, person: Any = None) -> None:
        pass


class Scorer:
    """A cross-encoder that notes what it is asked for."""

    spec = SimpleNamespace(key="scorer", title="Scorer")
    revision = "r1"
    tokenization = SimpleNamespace(max_length=512)
    own_max_length = 512

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def pair_labels(self) -> tuple[str, ...]:
        return ("score",)

    def pair_logits(self, queries: Any, documents: Any, **options: Any) -> np.ndarray:
        self.options = options
        return np.zeros((len(documents), 1), np.float32)

    def score_pairs(self, queries: Any, documents: Any, **options: Any) -> np.ndarray:
        return self.pair_logits(queries, documents, **options)[:, 0]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    result = Jobs()
    monkeypatch.setattr(caching, "preparations", lambda: result)
    monkeypatch.setattr(caching, "person", lambda: "me")
    monkeypatch.setattr(requests.st, "session_state", {})
    return result


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys of the jobs, which are done at once."""
    found: list[Any] = []

    def prepared(key: Any, title: str, work: Callable[..., Any], *arguments: Any) -> Any:
        found.append(key)
        return work(lambda done, total: None, lambda: False)

    monkeypatch.setattr(requests, "prepared", prepared)
    return found


def test_scores_of_many_documents_end_with_those_who_wait(jobs: Jobs, keys: list[Any]) -> None:
    scorer: Any = Scorer()
    stage = reranking.SecondStage("rerank", scorer, 99)
    assert scores._logits(stage, current.demo(), "a query", np.arange(3)) is not None
    assert scorer.options["max_length"] == 99
    assert not scorer.options["is_stopped"]()
    jobs.left.add(keys[0])
    assert scorer.options["is_stopped"]()


def test_the_cross_encoder_beside_a_learnt_ranking_reads_the_chosen_length_and_ends_with_those_who_wait(
    jobs: Jobs, keys: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = Scorer()
    graded = GradedSet("few", ("a", "b"), ("x", "y"), ({0: 1}, {1: 1}), GradedReport(0, 0))
    pairs = learnt_ranking.judged_pairs(graded, np.arange(2), [lambda query: np.zeros(2, np.float32)], 2)
    split = learnt_ranking.QuerySplit(np.arange(1), np.arange(1, 2), np.zeros(2, np.int64))
    candidates = comparison.LearningSet(pairs, split, {"bi": np.zeros((2, 2), np.float32)}, {})
    monkeypatch.setattr(learnt_rankers.model_gate, "cross_encoder", lambda: scorer)
    for length in (7, 8):
        monkeypatch.setattr(state, "get", lambda name, length=length: length)
        (ranker,) = learnt_rankers.cross_encoder(candidates, ("pairs",))
        assert ranker.name == "Cross-encoder"
        assert scorer.options["max_length"] == length
    assert len(set(keys)) == 2
    assert not scorer.options["is_stopped"]()
    jobs.left.add(keys[1])
    assert scorer.options["is_stopped"]()


def test_a_session_keeps_few_keys_of_stopped_jobs(jobs: Jobs) -> None:
    for number in range(40):
        requests.stop_previous("place", number)
    assert jobs.stopped == list(range(39))
    assert list(requests.st.session_state[requests._STOPPED]) == list(range(39))[-16:]
    requests.stop_previous("place", 30)  # may start again
    assert 30 not in requests.st.session_state[requests._STOPPED]


def test_more_candidates_are_scored_at_once_than_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [reranking.scored_together(k) for k in (1, 20, 21, 50, 51, 100)] == [20, 20, 50, 50, 100, 100]
    asked: list[tuple[int, str]] = []

    def scored(stage: Any, corpus: Any, query: str, rows: np.ndarray, where: str, title: str) -> Any:
        asked.append((len(rows), title))
        return reranking.TimedScores(np.arange(len(rows), dtype=np.float32), 4.0, True)

    monkeypatch.setattr(reranking, "scored", scored)
    stage: Any = None
    found = reranking.first_scored(stage, stage, "q", np.arange(40), 5, "x")
    assert (found.scores.tolist(), found.seconds) == ([0, 1, 2, 3, 4], 1.0)  # a quarter of the 20
    few = reranking.first_scored(stage, stage, "q", np.arange(3), 5, "x")
    assert (few.scores.tolist(), few.seconds) == ([0, 1, 2], 4.0)  # the corpus has no more
    said = "Re-ranking 5 candidates: 20 are scored at once, so that k can be moved up to 20"
    assert asked == [(20, said), (3, "")]


def test_the_label_that_ranks_is_known_by_its_name() -> None:
    assert reranking.likely_label(("contradiction", "Entailment", "neutral")) == "Entailment"
    assert reranking.likely_label(("no", "yes")) == "no"
