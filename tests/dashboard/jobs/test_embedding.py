"""The estimate of what embedding costs: measured alone, and stopped between batches."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from components.jobs import Job, Stopped
from components.retrieval.corpora.texts import Texts
from dashboard import caching
from dashboard.jobs import embedding
from dashboard.jobs.requests import NotReady


class Model:
    """A model that embeds at once, or until it is stopped."""

    def __init__(self, title: str, is_endless: bool = False) -> None:
        self.spec, self.revision, self.device = SimpleNamespace(key=title, title=title), "1", "cpu"
        self.runs, self.is_endless, self.begun = 0, is_endless, threading.Event()

    def embed_options(self, precision: str) -> None:
        return None

    def embed(self, texts: Any, *, options: Any, progress: Any, is_stopped: Any) -> None:
        self.runs += 1
        progress(len(texts), len(texts))
        self.begun.set()
        while self.is_endless:
            if is_stopped():
                raise Stopped


@pytest.fixture(autouse=True)
def _session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.session_state", {"_jobs_listed": True})
    for job in caching.queue().under_way():
        assert job.finished.wait(60)


def test_a_speed_beside_other_work_is_measured_again_without_it() -> None:
    model, gate, other = Model("beside"), threading.Event(), Job("other")
    caching.queue().put(other, lambda report_progress, is_stopped: gate.wait(60), "tokens")
    while other.started is None:
        pass
    try:
        for _ in range(2):  # nothing is measured again while the other work goes on
            measured = embedding.speed(model, "float32", "test")  # type: ignore[arg-type]
            assert not measured[1]
            assert model.runs == 1 + embedding.MOST_TURNS
    finally:
        gate.set()
    assert other.finished.wait(10)
    for _ in range(2):  # and once it was alone, it is kept
        measured = embedding.speed(model, "float32", "test")  # type: ignore[arg-type]
        assert measured[1]
        assert model.runs == 2 * (1 + embedding.MOST_TURNS)


def test_the_speed_is_that_of_the_best_turn_after_one_that_warms_up(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([9.0, 0.5, 0.25, 4.0])  # seconds of each turn; no other after the second of `ENOUGH_SECONDS` is over
    now = [0.0]
    model = Model("turns")

    def embed(texts: Any, **_: Any) -> None:
        model.runs += 1
        now[0] += next(taken)

    monkeypatch.setattr(model, "embed", embed)
    monkeypatch.setattr(embedding, "ENOUGH_SECONDS", 9.6)
    monkeypatch.setattr(embedding, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    measured = None
    while measured is None:
        with suppress(NotReady):
            measured = embedding.speed(model, "float32", "turns")  # type: ignore[arg-type]
    assert measured[0] == 96 / 0.25
    assert model.runs == 3


def test_tokens_are_counted_with_the_prompt() -> None:
    model = Model("counted")
    model.tokenization = SimpleNamespace(lengths=lambda texts, is_stopped: list(map(len, texts)))  # type: ignore[attr-defined]
    for prompt in ("", "query: "):
        counts = None
        while counts is None:
            try:
                counts = embedding.token_counts(model, Texts("two", ("a", "four")), "test", prompt)  # type: ignore[arg-type]
            except NotReady as waiting:
                if not waiting.is_under_way:
                    raise
        assert counts.tolist() == [1 + len(prompt), 4 + len(prompt)]


def test_stop_ends_the_trial() -> None:
    model = Model("endless", is_endless=True)
    with pytest.raises(NotReady):
        embedding.speed(model, "float32", "test")  # type: ignore[arg-type]
    assert model.begun.wait(10)
    (job,) = caching.preparations().under_way()
    caching.preparations().stop(job)
    assert job.finished.wait(10)
    assert job.is_stopped
