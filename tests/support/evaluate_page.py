"""Evaluation under AppTest: corpora of the demo's first pairs, and when everything is measured."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from streamlit.testing.v1 import AppTest

from components.retrieval.corpora.corpus import Corpus, read_corpus
from dashboard import caching
from dashboard.corpora import current
from tests.support.pages import texts


def corpus_of(count: int) -> str:
    """The key of a kept corpus of the demo's first pairs."""
    demo = current.demo()
    return kept_corpus(f"first_{count}.jsonl", demo.texts[:count], demo.columns["compressed"][:count])


def small_corpus(count: int) -> Corpus:
    """The demo's first pairs as a person's own file, which is kept."""
    demo = current.demo()
    return _kept("small.jsonl", demo.texts[:count], demo.columns["compressed"][:count])


def kept_corpus(name: str, sentences: Sequence[str], queries: Sequence[str]) -> str:
    """The key of a kept corpus of these pairs."""
    return current.key_of(_kept(name, sentences, queries))


def _kept(name: str, sentences: Sequence[str], queries: Sequence[str]) -> Corpus:
    rows = [{"sentence": text, "compressed": query} for text, query in zip(sentences, queries, strict=True)]
    lines = "\n".join(map(json.dumps, rows)).encode()
    found: Corpus = read_corpus(lines, name, "sentence")
    caching.corpora().put(current.key_of(found), found)
    return found


def ready(app: AppTest) -> AppTest:
    """The page once nothing is on its way any more."""
    deadline = time.monotonic() + 100
    while app.get("progress"):
        assert time.monotonic() < deadline, texts(app)
        _until_a_job_ends()
        app.run()
    assert not app.exception
    return app


def _until_a_job_ends() -> None:
    """Wait for what the page may be drawn with anew; no longer than 2 s, for a test may hold the jobs."""
    jobs, end = caching.queue().under_way(), time.monotonic() + 2
    time.sleep(0.01)
    while jobs and not any(job.finished.is_set() for job in jobs) and time.monotonic() < end:
        time.sleep(0.02)


def timed(app: AppTest) -> AppTest:
    """The comparison once the times per query are measured too, for which it shows no progress."""
    deadline = time.monotonic() + 100
    while "as soon as no other job runs" in texts(ready(app)):
        assert time.monotonic() < deadline
        for job in caching.queue().under_way():
            assert job.finished.wait(60)
        app.run()
    return app
