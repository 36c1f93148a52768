"""The split of a hit's score: what the words of either text add is the score that ranked it, for every ranking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from components.analysis.pooling import pool
from components.analysis.why.ledger import LedgerPart
from components.arrays import cosine
from components.model.trace import POOLINGS, Pooling
from components.retrieval.search import score_split
from components.retrieval.search.lexical import KINDS, WordRanker, make_ranker
from components.retrieval.search.score_split import STORED, PartKind, ScorePart, ScoreSplit, split_of_vectors
from components.retrieval.search.static_vectors import StaticRanker, StaticVectors
from tests.support.shared_models import shared_backend

TEXTS = (
    "The volcano erupted, and the volcano slept again.",
    "An election was won by the smaller party.",
    "Ash from the volcano fell on the election posters.",
    "Rain fell all day on the harbour.",
    "The harbour slept.",
)
QUERIES = ("volcano erupted", "the volcano, the VOLCANO and the rain", "unheard word", "slept")


def test_words_that_add_at_least_two_fifths_of_the_largest_are_shaded() -> None:
    def part(value: float, start: int, kind: PartKind = "word") -> ScorePart:
        return ScorePart("x", kind, ((start, start + 1),), value)

    parts = [part(0.5, 0), part(0.2, 2), part(0.19, 4), part(-0.5, 6), part(0.5, 8, "prompt")]
    assert score_split.shades(parts) == ((0, 1, 1.0), (2, 3, 0.4))
    assert score_split.shades([part(0.04, 0)]) == ((0, 1, pytest.approx(0.5)),)
    assert score_split.shades([part(0.02, 0)]) == ()


def test_a_word_that_begins_behind_the_prompt_is_none_of_it() -> None:
    parts = [LedgerPart("query:", "word", (0,), 0, 6), LedgerPart("bank", "word", (1,), 7, 11)]
    scored = [ScorePart("query:", "word", (), 0.1), ScorePart("bank", "word", ((0, 4),), 0.2)]
    assert [part.text for part in score_split._with_prompt(scored, parts, 7)] == [score_split.PROMPT, "bank"]


def assert_sums(split: ScoreSplit, score: float, closeness: float = 2e-6) -> None:
    assert split.score == pytest.approx(score, abs=closeness)
    assert np.abs(split.left_over).max() < closeness


@pytest.fixture(params=[*KINDS, "static"])
def ranker(request: pytest.FixtureRequest) -> WordRanker:
    if request.param != "static":
        return make_ranker(request.param, TEXTS)
    names = sorted({word for text in TEXTS for word in text.lower().strip(".").split()} - {"ash"})
    matrix = np.random.default_rng(3).standard_normal((len(names), 8)).astype(np.float32)
    vectors = StaticVectors("made up", {name: row for row, name in enumerate(names)}, matrix)
    return StaticRanker.of_words(vectors, TEXTS)


@pytest.mark.parametrize("query", QUERIES)
def test_what_words_add_is_the_score_of_every_word_ranking(ranker: WordRanker, query: str) -> None:
    scores = ranker.scores(query)
    low, high = ranker.bounds(query)
    for row, text in enumerate(TEXTS):
        split = ranker.split(query, text, row)
        assert_sums(split, float(scores[row]), 5e-6)
        assert scores[row] <= high + 1e-5
        for parts, whole in ((split.query, query), (split.hit, text)):
            for part in parts:
                assert {whole[start:end].lower() for start, end in part.spans} == {part.text}
    if ranker.title in ("BM25", "Jelinek-Mercer"):
        assert scores.min() >= low - 1e-5  # a sentence without a word of the query


def test_a_repeated_word_counts_each_time_and_one_that_the_hit_lacks_adds_nothing() -> None:
    ranker = make_ranker("bm25", TEXTS)
    once = ranker.split("volcano unheard", TEXTS[0], 0)
    twice = ranker.split("volcano volcano", TEXTS[0], 0)
    assert [part.text for part in once.query] == ["volcano", "unheard"]
    assert [part.value for part in once.query] == [once.score, 0.0]
    assert [part.text for part in once.hit] == ["volcano"]
    assert len(once.hit[0].spans) == 2  # it stands there twice
    assert twice.query[0].value == pytest.approx(2 * once.query[0].value)


def test_the_bound_of_a_word_ranking_is_reached_by_no_more_than_the_words_can_give() -> None:
    ranker = make_ranker("bm25", TEXTS)
    _, most = ranker.bounds("volcano harbour")
    assert most == pytest.approx(ranker.scores("volcano").max() + ranker.scores("harbour").max(), rel=1e-5)
    assert most > ranker.scores("volcano harbour").max()  # no sentence has both


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("layer", [0, 2])
def test_what_words_add_is_the_score_of_the_vectors(
    tiny_folder: Callable[[str], Path], pooling: str, similarity: str, layer: int
) -> None:
    trace = shared_backend(tiny_folder("bert")).trace(["the river bank", "money in the bank of the river"])
    vectors = pool(trace, pooling)[layer, :2].astype(np.float64)
    exact = float(cosine(*vectors)) if similarity == "cosine" else float(vectors[0] @ vectors[1])
    stored = exact - 0.003  # as the ranking has it, from vectors in fewer bits
    split = split_of_vectors(trace, layer, pooling, similarity, stored)
    assert_sums(split, stored, 1e-7 * max(1.0, abs(exact)))
    assert next(term.value for term in split.terms if term.name == STORED) == pytest.approx(-0.003, abs=1e-6)
    assert split.one_token == (pooling == "cls")
    special = [part for part in split.query if part.kind == "special"]
    assert len(special) == 1  # always there: what [CLS] and [SEP] add cannot be left out of a claim
    assert special[0].spans == ()
    if pooling == "cls":
        assert special[0].value == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_of_a_euclidean_distance_the_negative_square_is_split(
    tiny_folder: Callable[[str], Path], pooling: Pooling
) -> None:
    trace = shared_backend(tiny_folder("bert")).trace(["the river bank", "money in the bank of the river"])
    first, second = pool(trace, pooling)[2, :2].astype(np.float64)
    stored = -float(np.linalg.norm(first - second)) - 0.001  # from vectors in fewer bits
    split = split_of_vectors(trace, 2, pooling, "euclidean", stored)
    assert split.of == score_split.SQUARE
    assert_sums(split, -(stored**2), 1e-4)
    terms = {term.name: term.value for term in split.terms}
    assert terms["the query's squared length"] == pytest.approx(-float(first @ first), rel=1e-6)
    assert terms["the hit's squared length"] == pytest.approx(-float(second @ second), rel=1e-6)
    assert terms[STORED] == pytest.approx(-((0.001 - stored) ** 2) + (stored + 0.001) ** 2, abs=1e-1)
    assert abs(terms[STORED]) < 0.1
    words = sum(part.value for part in split.query)
    bias = sum(value for name, value in terms.items() if name not in (STORED, *list(terms)[-3:-1]))
    assert words + bias == pytest.approx(2 * float(first @ second), rel=1e-5)


def test_of_a_manhattan_distance_the_cosine_is_split_and_named(tiny_folder: Callable[[str], Path]) -> None:
    trace = shared_backend(tiny_folder("bert")).trace(["the river bank", "money in the bank of the river"])
    split = split_of_vectors(trace, 2, "mean", "manhattan", -7.5)
    assert split.of == score_split.COSINE
    assert_sums(split, float(cosine(*pool(trace, "mean")[2, :2].astype(np.float64))), 1e-6)
    assert next(term.value for term in split.terms if term.name == STORED) == pytest.approx(0, abs=1e-9)


def test_a_prompt_is_one_part_and_spans_count_from_behind_it(tiny_folder: Callable[[str], Path]) -> None:
    trace = shared_backend(tiny_folder("bert")).trace(["the river bank", "the money"])
    split = split_of_vectors(trace, 2, "mean", "cosine", 0.5, prompts=(4, 0))
    assert split.query[0].text == score_split.PROMPT
    assert split.texts[0] == "river bank"
    for part in split.query[1:]:
        assert [split.texts[0][start:end] for start, end in part.spans] == ([part.text] if part.spans else [])
    assert_sums(split, 0.5, 1e-7)
