"""The two collections of questions and paraphrases: their form, that no text occurs twice, and how hard they are."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.search.lexical import make_ranker
from components.words.function import FUNCTION_WORDS
from tests.support.places import ASSETS

COLUMNS = {"questions": ("question", "passage"), "paraphrases": ("sentence", "paraphrase")}


def rows_of(kind: str) -> list[dict[str, str]]:
    lines = (ASSETS / "collections" / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def normalised(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def content_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower())) - FUNCTION_WORDS


def texts_of_file(name: str) -> list[str]:
    lines = (ASSETS / name).read_text(encoding="utf-8").splitlines()
    return [text for line in lines for text in json.loads(line).values() if isinstance(text, str)]


@pytest.mark.parametrize("kind", COLUMNS)
def test_size_and_form(kind: str) -> None:
    rows, (query, document) = rows_of(kind), COLUMNS[kind]
    assert len(rows) == 100
    for row in rows:
        assert tuple(row) == (query, document)
        for text in row.values():
            assert text == " ".join(text.split())
            assert text[0].isupper() or text[0].isdigit()
            assert text[-1] in ".?"


def test_questions_ask_and_passages_have_two_or_three_sentences() -> None:
    for row in rows_of("questions"):
        assert row["question"].endswith("?")
        assert 3 <= len(row["question"].split()) <= 14
        sentences = re.split(r"(?<=[.])\s+(?=[A-Z])", row["passage"])
        assert 2 <= len(sentences) <= 3, row["passage"]
        assert 20 <= len(row["passage"].split()) <= 60


def test_paraphrases_are_single_sentences_with_few_shared_words() -> None:
    shares = []
    for row in rows_of("paraphrases"):
        for text in row.values():
            assert 3 <= len(text.split()) <= 20
            assert text.count(".") == 1
        one, other = (content_words(text) for text in row.values())
        shares.append(len(one & other) / len(one | other))
    assert max(shares) <= 0.25
    assert np.mean(shares) < 0.05


def test_no_text_occurs_twice_or_in_another_collection() -> None:
    ours = [normalised(text) for kind in COLUMNS for row in rows_of(kind) for text in row.values()]
    assert len(set(ours)) == 400
    others = [*texts_of_file("demo_corpus.jsonl"), *texts_of_file("sts_pairs.jsonl"), *texts_of_file("senses.jsonl")]
    assert set(ours).isdisjoint(map(normalised, others))
    # Nor nearly: six words of ours in a row occur in no text of the demo corpus.
    runs = {
        tuple(words[at : at + 6]) for text in ours if len(words := text.split()) >= 6 for at in range(len(words) - 5)
    }
    for text in texts_of_file("demo_corpus.jsonl"):
        words = normalised(text).split()
        assert runs.isdisjoint(tuple(words[at : at + 6]) for at in range(len(words) - 5))


@pytest.mark.parametrize(("kind", "least", "most"), [("questions", 0.8, 0.95), ("paraphrases", 0.7, 0.9)])
def test_the_included_model_finds_most_but_not_all(embedded, kind: str, least: float, most: float) -> None:
    query, document = COLUMNS[kind]
    rows = rows_of(kind)
    options = embedded.embed_options(precision="float32")
    queries, documents = (
        embedded.embed([row[name] for row in rows], options=options)[0, 0] for name in (query, document)
    )
    ranks = gold_ranks(queries, documents)
    assert least <= np.mean(ranks == 1) <= most
    assert np.mean(ranks <= 10) >= 0.97


def test_words_find_passages_far_more_often_than_paraphrases() -> None:
    found = {}
    for kind, (query, document) in COLUMNS.items():
        rows = rows_of(kind)
        ranker = make_ranker("bm25", [row[document] for row in rows])
        found[kind] = np.mean([ranker.scores(row[query]).argmax() == number for number, row in enumerate(rows)])
    assert 0.2 < found["questions"] < 0.6
    assert found["paraphrases"] < 0.15
