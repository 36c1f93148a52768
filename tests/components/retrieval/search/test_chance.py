"""The level of chance: what queries of random words find among the texts that have none of their words."""

from __future__ import annotations

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.search.chance import FEWEST_WORDS, MOST_WORDS, chance_level, random_queries
from components.retrieval.search.words import content_words

TEXTS = (
    "The volcano erupted at dawn.",
    "An election was won.",
    "Rain fell all day.",
    "A harbour slept.",
    "Volcano and election.",
)


def test_queries_are_of_the_corpus_s_own_words_and_the_same_each_time() -> None:
    queries = random_queries(TEXTS, 60)
    assert queries == random_queries(TEXTS, 60)
    assert queries != random_queries(TEXTS, 60, seed=1)
    known = frozenset().union(*map(content_words, TEXTS))
    assert {len(query) for query in queries} == set(range(FEWEST_WORDS, MOST_WORDS + 1))
    for query in queries:
        assert known.issuperset(query)
        assert len(set(query)) == len(query)
    assert not {"the", "an", "at"} & {word for query in queries for word in query}


def test_a_corpus_of_few_words_has_no_level() -> None:
    assert random_queries(["the cat", "a dog"]) == random_queries(["cat dog", "the cow"]) == ()
    assert len(random_queries(["cat dog", "cow hen"], 5)) == 5  # as many words as the longest query
    level = chance_level((), ["the cat"], lambda query: np.zeros(1))
    assert not level.is_known
    assert np.isnan([level.level, level.median, level.unrelated]).all()


def test_a_text_with_a_word_of_the_query_does_not_count() -> None:
    scores = np.array([[0.9, 0.3, 0.2, 0.1, 0.8], [0.4, 0.7, 0.5, 0.6, 0.9]], np.float32)
    level = chance_level([("volcano", "day"), ("election", "harbour")], TEXTS, lambda query: scores[query])
    np.testing.assert_allclose(level.best, [0.3, 0.5], rtol=1e-6)  # 0.9 and 0.8 have "volcano"; 0.9 and 0.7 "election"
    assert level.median == pytest.approx(0.4)


def test_where_every_text_has_the_words_nothing_is_known() -> None:
    level = chance_level([("same", "words")], ["same words"] * 3, lambda query: np.ones(3))
    assert not level.is_known


def test_the_level_is_what_95_of_100_stay_under() -> None:
    draw = np.random.default_rng(0)
    texts = [f"text{number}" for number in range(400)]  # more than are looked at first
    scores = draw.random((200, 400)).astype(np.float32)
    queries = [("another", "word")] * 100 + [tuple(texts)] * 100  # the last have a word of every text
    level = chance_level(queries, texts, lambda query: scores[query])
    best = np.sort(scores[:100].max(axis=1))
    np.testing.assert_array_equal(level.best, best.astype(np.float64))
    assert np.mean(level.best <= level.level) == pytest.approx(0.95, abs=0.011)
    assert level.unrelated == pytest.approx(0.95, abs=0.01)


def test_the_search_goes_on_behind_the_first_texts() -> None:
    texts = ["word"] * 300 + ["other"]
    scores = np.linspace(1, 0, 301)
    assert chance_level([("word",)], texts, lambda query: scores).best.tolist() == [0.0]


def test_it_can_be_stopped() -> None:
    with pytest.raises(Stopped):
        chance_level([("a",)], TEXTS, lambda query: np.zeros(5), is_stopped=lambda: True)
