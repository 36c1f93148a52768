"""Rankings by words, against cases worked out by hand and reference formulas."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from components.errors import InputError
from components.jobs import Stoppable, Stopped
from components.retrieval.search.lexical import K1, KINDS, LAMBDA, LSA_DIMENSIONS, B, make_ranker
from components.words.unicode_words import words
from tests.support.closeness import assert_close
from tests.support.places import ASSETS

TEXTS = ["the cat sat", "the dog sat on the dog", "a cat and a dog", "nothing else"]


@pytest.mark.parametrize("kind", KINDS)
def test_counting_words_ends_where_it_is_stopped(kind):
    read = []

    def is_stopped():
        read.append(1)
        return len(read) > 3

    with pytest.raises(Stopped):
        make_ranker(kind, Stoppable(TEXTS * 100, is_stopped))
    assert len(read) == 4
    whole = make_ranker(kind, Stoppable(TEXTS, lambda: False))
    np.testing.assert_array_equal(whole.scores("the cat"), make_ranker(kind, TEXTS).scores("the cat"))


def test_bag_of_words_is_the_cosine_of_counts():
    ranker = make_ranker("bow", TEXTS)
    # query (dog 1, the 1); sentence 1 has the 2, dog 2, sat 1, on 1: 4 / (sqrt 2 * sqrt 10)
    expected = [1 / math.sqrt(2 * 3), 4 / math.sqrt(2 * 10), 1 / math.sqrt(2 * 7), 0]
    np.testing.assert_allclose(ranker.scores("The DOG"), expected, rtol=1e-5)


def test_tfidf_weighs_rare_words_more():
    ranker = make_ranker("tfidf", TEXTS)
    idf = {word: math.log(5 / (1 + df)) + 1 for word, df in {"the": 2, "cat": 2, "sat": 2}.items()}
    length = math.sqrt(sum(value**2 for value in idf.values()))
    assert ranker.scores("cat")[0] == pytest.approx(idf["cat"] / length, rel=1e-5)
    # cat stands in two sentences and nothing in one: for the same count the rarer word weighs more
    both = make_ranker("tfidf", ["cat dog", "dog", "dog x"])
    assert both.scores("cat")[0] > both.scores("dog")[0]


def test_bm25_is_its_formula():
    ranker = make_ranker("bm25", TEXTS)
    tokens = [words(text) for text in TEXTS]
    average = sum(map(len, tokens)) / len(tokens)

    def score(query: list[str], row: int) -> float:
        total = 0.0
        for word in query:
            df = sum(word in text for text in tokens)
            if df:
                idf = math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
                count = tokens[row].count(word)
                total += idf * count / (count + K1 * (1 - B + B * len(tokens[row]) / average))
        return total

    for query in ("dog", "the dog", "cat unknown dog dog"):
        np.testing.assert_allclose(ranker.scores(query), [score(words(query), row) for row in range(4)], rtol=1e-4)


def test_jelinek_mercer_is_its_formula():
    ranker = make_ranker("jm", TEXTS)
    tokens = [words(text) for text in TEXTS]
    everything = [word for text in tokens for word in text]

    def score(query: list[str], row: int) -> float:
        return sum(
            math.log(
                (1 - LAMBDA) * tokens[row].count(word) / len(tokens[row])
                + LAMBDA * everything.count(word) / len(everything)
            )
            for word in query
            if word in everything
        )

    for query in ("dog", "the cat unknown"):
        np.testing.assert_allclose(ranker.scores(query), [score(words(query), row) for row in range(4)], rtol=1e-5)
    np.testing.assert_array_equal(ranker.scores("unknown"), np.zeros(4))


def test_lsa_is_scikit_learns_pipeline_and_finds_words_that_go_together():
    from sklearn.decomposition import TruncatedSVD

    texts = ["car engine road", "car road", "engine motor", "motor road", "flower garden", "garden rose", "rose flower"]
    ranker = make_ranker("lsa", texts)
    vectorizer = TfidfVectorizer(tokenizer=words, lowercase=False, token_pattern=None)
    svd = TruncatedSVD(6, random_state=0)
    vectors = svd.fit_transform(vectorizer.fit_transform(texts))
    query = svd.transform(vectorizer.transform(["motor"]))[0]
    expected = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    np.testing.assert_allclose(ranker.scores("motor"), expected, atol=1e-4)
    np.testing.assert_array_equal(ranker.scores("unknown"), np.zeros(7))


def test_lsa_is_exact_on_a_real_corpus():
    """Against numpy's full SVD: a randomised solver's scores differ by up to 0.2."""
    lines = (ASSETS / "demo_corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    texts = [row["sentence"] for row in rows]
    ranker = make_ranker("lsa", texts)
    vectorizer = TfidfVectorizer(tokenizer=words, lowercase=False, token_pattern=None)
    weights = vectorizer.fit_transform(texts).toarray()
    axes = np.linalg.svd(weights, full_matrices=False)[2][:LSA_DIMENSIONS]  # [dimension, word]
    documents = weights @ axes.T
    for row in rows[:20]:
        query = axes @ vectorizer.transform([row["compressed"]]).toarray()[0]
        lengths = np.linalg.norm(documents, axis=1) * np.linalg.norm(query)
        expected = np.divide(documents @ query, lengths, out=np.zeros(len(texts)), where=lengths > 0)
        np.testing.assert_allclose(ranker.scores(row["compressed"]), expected, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_corpus_of_one_sentence(kind):
    assert np.isfinite(make_ranker(kind, ["two words"]).scores("two")).all()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_pairs_are_those_of_all(kind):
    ranker = make_ranker(kind, TEXTS)
    queries = ["the dog and unknown", "cat cat", "", "The mat sat", "unknown", *TEXTS]
    places = np.array([1, 0, 2, 3, 1, 3, 2, 1, 0])
    expected = [ranker.scores(query)[place] for query, place in zip(queries, places, strict=True)]
    assert_close(ranker.pair_scores(queries, places), expected)
    assert np.ptp(ranker.pair_scores(queries, places)) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_odd_queries_and_corpora(kind):
    ranker = make_ranker(kind, TEXTS)
    for query in ("", "…", "unknown words"):
        np.testing.assert_array_equal(ranker.scores(query), np.zeros(4))
    assert ranker.scores("dog").dtype == np.float32
    assert ranker.scores("dog").argmax() == 1
    with pytest.raises(InputError, match="contains no words"):
        make_ranker(kind, ["…", "!"])
    assert make_ranker(kind, ["one"]).scores("one").shape == (1,)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="splade"):
        make_ranker("splade", TEXTS)


@pytest.mark.parametrize("kind", KINDS)
def test_more_sentences_take_more_bytes(kind):
    few, many = (make_ranker(kind, TEXTS * times) for times in (1, 50))
    assert 0 < few.nbytes < many.nbytes
    assert many.nbytes - few.nbytes > 49 * len(TEXTS)  # at least a byte for each sentence more
    assert make_ranker(kind, ["one"]).nbytes > 0


def test_bytes_of_a_sparse_matrix_by_hand():
    # Three sentences with 1, 2 and 3 different words: 6 numbers, their 6 columns, and 4 borders, of 4 bytes each.
    assert make_ranker("bow", ["a", "a b b", "a b c"]).nbytes == 4 * (6 + 6 + 4)
