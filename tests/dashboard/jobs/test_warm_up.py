"""The demo corpus is embedded before anybody asks, and gives way to everybody who does."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.jobs import Job, Queue
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_KEY, ModelSpec, spec_of
from components.retrieval.evaluation import pair_runs
from components.retrieval.index.cache import IndexCache
from components.retrieval.search.chance import QUERIES
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import warm_up
from dashboard.jobs.embedding import EmbedRequest
from tests.support.pages import APP, Open, at_rest, backend, hits
from tests.support.places import ROOT

# Start in a fresh process, with what the server changes of Streamlit. The first model waits for the browser alone. Prints which
# of the large libraries are there when the page has been sent, and whether torch is once the browser says that it has drawn.
FIRST_PAGE = """
import json, os, sys, time
import dashboard.app
from dashboard.jobs import warm_up
from streamlit.testing.v1 import AppTest
warm_up.DRAWN_SECONDS = 3_600.0
page = AppTest.from_file(sys.argv[1], default_timeout=120).run()
sent = [item.proto.component_name for item in page.get("bidi_component")]
large = sorted({"pandas", "scipy", "sklearn", "torch", "transformers"} & set(sys.modules))
page.session_state["start_path"] = {"drawn": True}
page.run()
until = time.monotonic() + 120
while "torch" not in sys.modules and time.monotonic() < until:
    time.sleep(0.05)
print(json.dumps([sent, large, "torch" in sys.modules, len(page.exception)]), flush=True)
os._exit(0)
"""


@pytest.fixture
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexCache]:
    """An empty cache, on a queue like the dashboard's own, with the warm-up allowed."""
    queue = Queue(caching.LANES)
    own = IndexCache(queue, tmp_path)
    monkeypatch.setattr(caching, "indexes", lambda: own)
    monkeypatch.setenv("BERT_INTERNALS_WARM_UP", "1")
    yield own
    for job in queue.under_way():
        queue.stop(job)
        assert job.finished.wait(60)


def noting(read: list[tuple[str, tuple[str, ...]]], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the backend that notes the texts which it is given."""

    def noted(self: Backend, texts: Sequence[str], *more: Any, **named: Any) -> Any:
        read.append((name, tuple(texts)))
        return method(self, texts, *more, **named)

    return noted


def ended(queue: Queue) -> None:
    for job in queue.under_way():
        assert job.finished.wait(120)


def test_what_pages_ask_for_first_is_there_without_a_request(
    indexes: IndexCache, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, demo = backend(), current.demo()
    warm_up.embed_demo(model)
    assert all(not job.people for job in indexes.jobs.under_way())
    ended(indexes.jobs.queue)
    read: list[tuple[str, tuple[str, ...]]] = []
    for name in ("embed", "run"):  # how the texts go through the model
        monkeypatch.setattr(Backend, name, noting(read, name, getattr(Backend, name)))
    pairs = pair_runs.pairs_of_corpus(demo, pair_runs.QUERY_COLUMN)
    exact = EmbedRequest(model, exact=True)
    for job in (
        indexes.find(model, demo, EmbedRequest(model).document_options()),
        indexes.find(model, pairs.documents, exact.document_options(), "float32"),
        indexes.find(model, pairs.queries, exact.query_options(exact.document_options()), "float32"),
    ):
        assert job is not None
        assert job.result is not None
    query = "a query of the warm-up test alone"  # its vector is in no cache
    search = at_rest(open_page("search", q=query))
    assert len(hits(search)) == 10
    evaluate = open_page("evaluate")
    assert not evaluate.error
    assert not any("Embedding" in bar.proto.text for bar in evaluate.get("progress"))
    words_of_hits = (query, *(demo.texts[row["index"]] for row in hits(search)))
    by_chance = [texts for _, texts in read if len(texts) == QUERIES]  # for the level of chance, once for a corpus
    assert len(by_chance) <= 1
    assert not {*demo.texts, *pairs.queries.texts} & {text for texts in by_chance for text in texts}
    assert [item for item in read if len(item[1]) != QUERIES] == [("embed", (query,)), ("run", words_of_hits)]


@pytest.mark.rare
def test_it_pauses_while_another_lane_works_and_not_for_who_asks(indexes: IndexCache) -> None:
    queue, model = indexes.jobs.queue, backend()
    release, entered = threading.Event(), threading.Event()

    def long(report_progress: object, is_stopped: object) -> None:
        entered.set()
        release.wait(60)

    other = Job("Somebody's evaluation")
    queue.put(other, long, "evaluation")
    assert entered.wait(10)
    warm_up.embed_demo(model)
    passes = model.forward_passes
    time.sleep(0.5)
    assert model.forward_passes == passes
    # The last in the line is asked for: it waits neither for the first, which pauses, nor for the evaluation.
    pairs = pair_runs.pairs_of_corpus(current.demo(), pair_runs.QUERY_COLUMN)
    exact = EmbedRequest(model, exact=True)
    job = indexes.request(model, pairs.queries, exact.query_options(exact.document_options()), "float32", person="Ann")
    assert job.finished.wait(60)
    assert job.result.info.sentences == 630
    assert not other.finished.is_set()
    passes = model.forward_passes
    time.sleep(0.3)
    assert model.forward_passes == passes
    release.set()
    ended(queue)
    assert indexes.find(model, current.demo(), EmbedRequest(model).document_options()).result is not None  # type: ignore[union-attr]


def test_it_can_be_switched_off_and_is_for_the_default_model_only(
    indexes: IndexCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERT_INTERNALS_WARM_UP", "0")
    warm_up.embed_demo(backend())
    assert indexes.jobs.under_way() == ()
    monkeypatch.setenv("BERT_INTERNALS_WARM_UP", "1")
    other = SimpleNamespace(spec=SimpleNamespace(key="somebody/another-model"))
    warm_up.embed_demo(other)  # type: ignore[arg-type]
    assert indexes.jobs.under_way() == ()


def test_the_first_page_is_sent_before_torch_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_PAGE, APP], cwd=ROOT, capture_output=True, text=True, timeout=280, check=True
    )
    sent, large, has_begun, exceptions = json.loads(done.stdout.splitlines()[-1])
    assert {"bert_internals_path", "bert_internals_start_stored"} <= set(sent)
    assert large == []
    assert has_begun
    assert exceptions == 0


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """The models that are requested in a process without torch, each with the person who waits for it."""
    found: list[tuple[str, str | None]] = []

    def request(spec: ModelSpec, person: str | None) -> None:
        found.append((spec.key, person))
        monkeypatch.setattr(warm_up, "is_torch_imported", lambda: True)

    monkeypatch.setattr(caching, "models", lambda: SimpleNamespace(request=request))
    monkeypatch.setattr(warm_up, "is_torch_imported", lambda: False)
    monkeypatch.setattr(warm_up, "DRAWN_SECONDS", 0.2)
    return found


def test_the_first_model_waits_for_the_picture_or_for_so_long(requested: list[tuple[str, str | None]]) -> None:
    warm_up.load_after_picture(spec_of(EMBEDDED_KEY), "Ann", is_drawn=True)
    assert requested == [(EMBEDDED_KEY, None)]
    warm_up.load_after_picture(spec_of(EMBEDDED_KEY), "Ann", is_drawn=False)  # torch is there
    assert requested == [(EMBEDDED_KEY, None), (EMBEDDED_KEY, "Ann")]


def test_without_a_word_from_the_browser_it_is_loaded_once(requested: list[tuple[str, str | None]]) -> None:
    other = "google-bert/bert-base-uncased"
    for _ in range(3):  # runs of the page
        warm_up.load_after_picture(spec_of(other), "Ann", is_drawn=False)
    assert requested == []
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    for timer in timers:
        timer.join(10)
    assert requested == [(other, "Ann")]
