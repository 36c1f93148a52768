"""The demo pairs with scores: their size and form, that they are our own, and that they are neither trivial nor hopeless."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer

from components.arrays import cosine
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation.sts import scored_pairs, similarity_grid
from tests.support.places import ASSETS, DATA

FILE = ASSETS / "sts_pairs.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
PAIRS = scored_pairs(read_corpus(FILE, FILE.name, "sentence1"))


def bare(text: str) -> str:
    """Letters and digits alone: another dot or capital makes no other sentence."""
    return "".join(character for character in text.casefold() if character.isalnum())


def test_size_and_form():
    assert len(ROWS) >= 100
    assert len({frozenset((bare(row["sentence1"]), bare(row["sentence2"]))) for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert set(row) == {"sentence1", "sentence2", "score"}
        assert 0 <= row["score"] <= 5
        assert row["score"] * 5 == pytest.approx(round(row["score"] * 5))  # a mean of five judges' whole numbers
        assert bare(row["sentence1"]) != bare(row["sentence2"])
        for text in (row["sentence1"], row["sentence2"]):
            assert text == text.strip()
            assert 5 <= len(text.split()) <= 30
    lengths = [len(row[name].split()) for row in ROWS for name in ("sentence1", "sentence2")]
    assert max(lengths) >= 25
    assert sum(length > 15 for length in lengths) >= 15


def test_every_band_of_scores_has_its_share():
    bands = Counter(int(row["score"] + 0.5) for row in ROWS)
    assert set(bands) == set(range(6))
    assert min(bands.values()) >= 15


def test_the_page_and_the_command_line_can_read_every_row():
    assert (len(PAIRS.first), PAIRS.bad_rows) == (len(ROWS), 0)
    assert [*PAIRS.scores] == [row["score"] for row in ROWS]


@pytest.mark.skipif(not DATA.exists(), reason="the benchmark's pairs are not here")
def test_no_sentence_is_taken_from_the_sts_benchmark():
    theirs: set[str] = set()
    for name in ("stsb-train.csv", "stsb-dev.csv"):
        pairs = scored_pairs(read_corpus(DATA / name, name, "sentence1", limits=None))
        theirs |= {bare(text) for text in (*pairs.first, *pairs.second)}
    assert len(theirs) > 5_000
    assert [text for text in (*PAIRS.first, *PAIRS.second) if bare(text) in theirs] == []


def test_the_model_agrees_with_the_scores_mostly_and_words_alone_do_less(embedded):
    options = embedded.embed_options((0, 6), ("mean", "cls"), precision="float32")
    spearman = similarity_grid(embedded, PAIRS, options).spearman
    mean = spearman.of(6, "mean")
    assert 0.7 < mean < 0.92
    assert spearman.of(6, "cls") < mean
    assert spearman.of(0, "mean") < mean - 0.1
    counts = CountVectorizer().fit_transform([*PAIRS.first, *PAIRS.second]).toarray().astype(np.float32)
    words = cosine(counts[: len(ROWS)], counts[len(ROWS) :])
    assert 0.2 < stats.spearmanr(words, PAIRS.scores).statistic < mean - 0.2
