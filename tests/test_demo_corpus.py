"""The demo corpus: its size and form, and that retrieval on it is neither trivial nor hopeless."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from tests.support.places import ASSETS

ROWS = [json.loads(line) for line in (ASSETS / "demo_corpus.jsonl").read_text(encoding="utf-8").splitlines()]
TOPICS = {
    "volcano erupted": "volcano",
    "election results announced": "national election",
    "new tech company launched": "start-up",
    "bridge collapses after storm": "bridge collapse",
    "local sports team wins championship": "local sports team",
    "actor wins award": "film awards",
}


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_size_and_form():
    topics = Counter(row["topic"] for row in ROWS)
    assert len(ROWS) >= 600
    assert len(topics) >= 60
    assert set(topics.values()) == {10}
    for row in ROWS:
        assert set(row) == {"topic", "sentence", "compressed"}
        assert 6 <= len(row["sentence"].split()) <= 40
        assert 2 <= len(row["compressed"].split()) < len(row["sentence"].split())
        assert row["sentence"] == row["sentence"].strip()
        assert "\n" not in row["sentence"]
    assert len({row["sentence"] for row in ROWS}) == len(ROWS)
    assert len({row["compressed"] for row in ROWS}) == len(ROWS)


@pytest.fixture(scope="module")
def vectors(embedded):
    options = embedded.embed_options(poolings=("mean", "cls"), precision="float32")
    sentences = unit(embedded.embed([row["sentence"] for row in ROWS], options=options)[0])
    headlines = unit(embedded.embed([row["compressed"] for row in ROWS], options=options)[0])
    queries = unit(embedded.embed(list(TOPICS), options=options)[0])
    return sentences, headlines, queries  # each [pooling, text, dim]


def test_headlines_find_their_sentences_mostly_but_not_always(vectors):
    sentences, headlines, _ = vectors
    mean, cls = (np.mean((headlines[at] @ sentences[at].T).argmax(axis=1) == np.arange(len(ROWS))) for at in range(2))
    assert 0.85 < mean < 0.97
    assert cls < mean


def test_the_ready_made_queries_have_an_answer(vectors):
    sentences, _, queries = vectors
    best = (queries[0] @ sentences[0].T).argmax(axis=1)
    assert [ROWS[at]["topic"] for at in best] == list(TOPICS.values())
