"""The included training data: sizes, balance, no repeated text, and nothing from the data that Evaluate measures with."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from components.training.data import DEMO, load, normalised, split
from components.training.settings import WATCH_SENTENCES
from components.words.function import FUNCTION_WORDS

ASSETS = Path(__file__).resolve().parents[3] / "assets"
MOST_SHARED = 0.5  # of the content words of two texts together


def texts_of(path: Path) -> list[str]:
    if path.suffix == ".txt":
        return path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    names = ("sentence", "compressed", "sentence1", "sentence2", "question", "passage", "paraphrase", "first", "second")
    return [row[name] for row in rows for name in names if name in row]


def content_words(text: str) -> set[str]:
    return set(normalised(text).split()) - FUNCTION_WORDS


@pytest.mark.parametrize(
    ("key", "kind", "least"),
    [("demo:pairs", "pairs", 300), ("demo:scored", "scored", 200), ("demo:not", "triplets", 190)],
)
def test_sizes(key, kind, least):
    data = load(key)
    assert data.kind == kind
    assert len(data) >= least
    assert data.dropped == {}
    assert data.warnings == ()


def test_premises_have_one_hypothesis_of_each_label():
    data = load("demo:nli")
    assert len(data) >= 300
    assert data.dropped == {}
    assert data.label_names == ("entailment", "neutral", "contradiction")
    assert len(set(np.bincount(data.labels))) == 1
    labels = Counter(zip(data.columns["sentence1"], data.labels.tolist(), strict=True))
    assert set(labels.values()) == {1}
    assert set(Counter(premise for premise, _ in labels).values()) == {3}


def test_the_label_is_not_given_away_by_the_length_of_the_hypothesis():
    """Hypotheses of the three labels have about the same number of words on average."""
    data = load("demo:nli")
    lengths = np.array([len(text.split()) for text in data.columns["sentence2"]])
    means = [lengths[data.labels == label].mean() for label in range(3)]
    assert max(means) - min(means) < 3


@pytest.mark.parametrize("key", DEMO)
def test_no_text_occurs_twice(key):
    """But for a first text that is compared with two or three others."""
    data = load(key)
    seconds = [normalised(text) for text in list(data.columns.values())[1]]
    assert len(set(seconds)) == len(seconds)
    firsts = {normalised(text) for text in next(iter(data.columns.values()))}
    assert firsts.isdisjoint(seconds)
    assert len(firsts) == {"demo:pairs": 310, "demo:scored": 70, "demo:nli": 105, "demo:not": 192}[key]


def test_scores_cover_the_scale():
    data = load("demo:scored")
    assert data.score_range == (0, 5)
    shares = np.histogram(data.labels, bins=[0, 0.2, 0.4, 0.6, 0.8, 1.01])[0] / len(data)
    assert shares.min() > 0.05


@pytest.mark.parametrize("key", DEMO)
@pytest.mark.parametrize(
    "measured",
    [
        "demo_corpus.jsonl",
        "sts_pairs.jsonl",
        "senses.jsonl",
        "minimal_pairs.jsonl",
        "demo_sentences.txt",
        "collections/questions.jsonl",
        "collections/paraphrases.jsonl",
    ],
)
def test_nothing_that_is_measured_with_is_trained_on(key, measured):
    evaluation = texts_of(ASSETS / measured)
    ours = [text for column in load(key).columns.values() for text in column]
    known = {normalised(text) for text in evaluation}
    assert [text for text in ours if normalised(text) in known] == []
    theirs = [content_words(text) for text in evaluation]
    with_word: dict[str, set[int]] = {}
    for number, words in enumerate(theirs):
        for word in words:
            with_word.setdefault(word, set()).add(number)
    alike = [
        (text, evaluation[number])
        for text in ours
        if len(words := content_words(text)) > 2
        for number in set().union(*(with_word.get(word, ()) for word in words))  # no others share a word
        if len(theirs[number]) > 2 and len(words & theirs[number]) > MOST_SHARED * len(words | theirs[number])
    ]
    assert alike == []


def test_the_watched_sentences_are_not_trained_on():
    ours = {normalised(text) for key in DEMO for column in load(key).columns.values() for text in column}
    assert ours.isdisjoint(map(normalised, WATCH_SENTENCES))


@pytest.mark.parametrize("key", DEMO)
def test_the_included_data_can_be_split(key):
    data = load(key)
    parts = split(data, 0.2, seed=10)
    assert parts.overlap == 0
    assert len(parts.held_out) == pytest.approx(0.2 * len(data), abs=3)
    assert len(parts.train) + len(parts.held_out) == len(data)


def test_every_text_is_a_plain_line():
    for path in DEMO.values():
        for line in path.read_text(encoding="utf-8").splitlines():
            for value in json.loads(line).values():
                if isinstance(value, str):
                    assert value == value.strip()
                    assert "  " not in value
                    assert value.isprintable()


def test_half_of_the_sentences_are_negated_and_the_negation_is_the_wrong_answer():
    columns = load("demo:not").columns
    negated = [
        [bool({"not", "cannot", "never"} & set(normalised(text).split())) for text in columns[name]]
        for name in ("anchor", "negative")
    ]
    assert all(one != other for one, other in zip(*negated, strict=True))
    assert sum(negated[0]) == len(negated[0]) / 2
    # "not" in both of two sentences must not give their likeness away.
    assert not any({"not", "cannot", "never"} & set(normalised(text).split()) for text in columns["positive"])
