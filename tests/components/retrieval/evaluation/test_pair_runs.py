"""Ranks of pairs from indexes equal plain float64 ones, ties count against the query, and nothing is left out silently."""

from __future__ import annotations

import copy
import types

import numpy as np
import pytest
import torch

from components.errors import InputError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.trace import POOLINGS
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation import metrics, pair_runs
from components.retrieval.evaluation import ranks as ranks_module
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.graded.ranks import ranker_relevant_ranks
from components.retrieval.evaluation.pair_runs import (
    first_pairs,
    grid_ranks,
    pairs_of_corpus,
    pairs_of_rows,
    ranker_milliseconds,
    ranker_ranks,
    second_milliseconds,
    some_pairs,
    vector_milliseconds,
)
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.index.build import build_index
from components.retrieval.search.lexical import make_ranker
from tests.support.tiny import WORDS, save_tiny

COUNT = 40
PLAIN = [word for word in WORDS if word.isalpha() and word.isascii()]

# Pairs


def corpus(rows: str, header: str = "sentence,compressed"):
    return read_corpus(f"{header}\n{rows}\n".encode(), "x.csv", "sentence")


def test_a_query_stands_beside_its_own_document_and_rows_without_one_are_counted():
    pairs = pairs_of_corpus(corpus('a b,q1\nc d,\n"a b",q3\ne f,   \ng h,q5'))
    assert pairs.documents.texts == ("a b", "g h")  # equal texts are one
    assert pairs.queries.texts == ("q1", "q3", "q5")
    assert [pairs.answers_of(query) for query in range(3)] == [(0,), (0,), (1,)]
    assert (pairs.name, len(pairs), pairs.left_out, pairs.repeated) == ("x.csv", 3, 2, 1)
    assert pairs.unsearched == 2  # "c d" and "e f", and not the equal row


def test_texts_without_a_query_are_counted_once_unless_a_row_with_one_has_them():
    rows = ["a", "b", "b", "a", "c"], ["one", "", "", "", "two"]
    assert (pairs_of_rows("rows", *rows).unsearched, pairs_of_rows("rows", *rows, every_text=True).unsearched) == (1, 0)


def test_another_column_may_hold_the_queries():
    wide = corpus("a b,q1,other one\nc d,q2,", "sentence,compressed,title")
    assert pairs_of_corpus(wide, "title").queries.texts == ("other one",)
    assert pairs_of_corpus(wide).queries.texts == ("q1", "q2")


def test_columns_that_are_missing_or_empty_are_refused():
    with pytest.raises(InputError, match=r"columns sentence, other\. The columns sentence and compressed"):
        pairs_of_corpus(corpus("a b,c", "sentence,other"))
    with pytest.raises(InputError, match="has the columns text"):
        pairs_of_corpus(read_corpus(b"a b\nc d\n", "x.txt"))
    with pytest.raises(InputError, match="no row with both"):
        pairs_of_corpus(corpus("a b,\nc d, "))


def test_rows_with_one_query_all_hold_correct_answers_of_it():
    pairs = pairs_of_corpus(corpus("a b,q1\nc d,q2\ne f, q1 \ng h,\ni j,q3\na b,q1"))
    assert pairs.documents.texts == ("a b", "c d", "e f", "i j")
    assert pairs.queries.texts == ("q1", "q2", "q3")
    assert pairs.answers == ((0, 2), (1,), (3,))
    assert (len(pairs), pairs.right_texts, pairs.left_out, pairs.repeated) == (3, 4, 1, 1)
    assert pairs.rows.said() == "6 rows read, 4 used, 1 equal to an earlier one, 1 left out"
    assert pairs.shared == 0  # the equal row is no other row with an earlier text
    assert pairs.has_several
    assert not pairs_of_corpus(corpus("a b,q1\nc d,q2")).has_several


def test_a_category_is_measured_and_one_sentence_says_what_was_seen():
    rows = "\n".join(f"text {number},{('billing', 'returns', 'login')[number % 3]}" for number in range(30))
    assert "The column compressed has 3 different values for 30 texts, so that it looks like a category" in (
        pairs_of_corpus(corpus(rows)).warning
    )
    half = "\n".join(f"text {number},query {number // 2}" for number in range(30))
    assert not pairs_of_corpus(corpus(half)).warning  # two answers each
    four, fewer = (
        pairs_of_rows("rows", list("abcdefgh")[:rows], ["one", "two"] * (rows // 2) + ["one"] * (rows % 2))
        for rows in (8, 7)
    )
    assert "2 different values for 8 texts" in four.warning
    assert not fewer.warning
    few_answers = "\n".join(f"answer {number % 3},query {number}" for number in range(60))
    pairs = pairs_of_corpus(corpus(few_answers))  # a log of questions: three answers, which are searched
    assert (len(pairs), len(pairs.documents), pairs.right_texts, pairs.warning) == (60, 3, 60, "")


def test_one_distinct_answer_cannot_be_measured():
    with pytest.raises(InputError, match="one sentence with a query, so that retrieval cannot be measured"):
        pairs_of_corpus(corpus("answer,q1\nanswer,q2\nanswer,q3")).check_measurable()
    with pytest.raises(InputError, match="one sentence with a query, so that retrieval cannot be measured"):
        pairs_of_corpus(corpus("Yes.,q1\nyes,q2")).check_measurable()  # as few_answers counts them
    pairs_of_corpus(corpus("answer,q1\nanother,q2")).check_measurable()


@pytest.mark.parametrize(
    "rows", ["answer,q1\nanother,q1", "a b,q1\nc d,q1\na b,q2\nc d,q2", "a b,q1\nc d,q1\nA B!,q2\nc d,q2"]
)
def test_answers_that_are_all_right_for_every_query_cannot_be_measured(rows):
    """Every rank is 1, whatever the model does."""
    pairs = pairs_of_corpus(corpus(rows))
    assert not pairs.can_be_measured
    with pytest.raises(InputError, match="every sentence is a correct answer of every query"):
        pairs.check_measurable()
    assert pairs_of_corpus(corpus(f"{rows}\nwrong for some,q9")).can_be_measured


def test_the_first_pairs_are_searched_among_themselves():
    pairs = pairs_of_corpus(corpus("a b,q1\nc d,q2\nc d,q3\na b,q4\ne f,q2\na b,q5"))
    few = first_pairs(pairs, 3)
    assert few.documents.texts == ("a b", "c d", "e f")
    assert few.queries.texts == ("q1", "q2", "q3")
    assert few.answers == ((0,), (1, 2), (1,))
    assert first_pairs(pairs, 5) is pairs
    last = some_pairs(pairs, [3, 1])
    assert last.queries.texts == ("q4", "q2")
    assert (last.documents.texts, last.answers) == (("a b", "c d", "e f"), ((0,), (1, 2)))


def test_the_hash_is_that_of_both_sides_in_order():
    rows = ("a b,q1\nc d,q2", "c d,q2\na b,q1", "a b,q2\nc d,q1", "a b,q1\nc d,q2")
    several = [
        pairs_of_corpus(corpus(each)).content_hash for each in ("a b,q1\nc d,q1\ne f,q2", "a b,q1\nc d,q2\ne f,q2")
    ]
    assert several[0] != several[1]  # the same texts, another correct answer
    hashes = [pairs_of_corpus(corpus(each)).content_hash for each in rows]
    assert hashes[0] == hashes[3]
    assert len(set(hashes)) == 3
    swapped = pairs_of_corpus(corpus("q1,a b\nq2,c d"))
    assert swapped.content_hash not in hashes
    # As a corpus's: an index of the one is found for the other.
    whole = corpus("a b,q1\nc d,q2")
    assert pairs_of_corpus(whole).documents.content_hash == whole.content_hash


# Vectors


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    return Backend.load(str(save_tiny(tmp_path_factory.mktemp("pairs") / "bert")))


@pytest.fixture(scope="module")
def sides():
    """Documents, the third one twice, and queries that are parts of them."""
    numbers = np.random.default_rng(3)
    documents = [list(numbers.choice(PLAIN, 9, replace=False)) for _ in range(COUNT)]
    documents[7] = documents[3]
    queries = [document[: numbers.integers(3, 7)] for document in documents]
    return tuple(Texts(name, tuple(map(" ".join, rows))) for name, rows in (("d", documents), ("q", queries)))


@pytest.fixture(scope="module")
def indexes(backend, sides, tmp_path_factory):
    folder, options = tmp_path_factory.mktemp("indexes"), backend.embed_options(range(4), POOLINGS, precision="float32")
    return tuple(build_index(backend, texts, folder / texts.name, options, "float32") for texts in sides)


def plain_vectors(backend, texts) -> np.ndarray:
    """Sentence by sentence through the stock model in float64, without padding: [layer, pooling, sentence, dim]."""
    model = copy.deepcopy(backend.encoder).double()
    rows = []
    for text in texts:
        ids, _ = backend.tokenization.encode_many([text])
        with torch.inference_mode():
            states = model(torch.tensor(ids), output_hidden_states=True).hidden_states
        rows.append([[s[0].mean(0).numpy(), s[0, 0].numpy(), s[0].amax(0).numpy()] for s in states])
    return np.array(rows).transpose(1, 2, 0, 3)


def test_every_layer_and_pooling_equals_plain_float64(backend, sides, indexes):
    found = grid_ranks(*indexes)
    assert (found.layers, found.poolings) == ((0, 1, 2, 3), POOLINGS)
    documents, queries = (plain_vectors(backend, texts.texts) for texts in sides)
    documents, queries = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (documents, queries))
    seen = set()
    for layer in range(4):
        for at, pooling in enumerate(POOLINGS):
            scores = queries[layer, at] @ documents[layer, at].T
            expected = np.count_nonzero(scores >= np.diag(scores)[:, None] - 1e-12, axis=1)
            np.testing.assert_array_equal(found.of(layer, pooling), expected, err_msg=f"{layer} {pooling}")
            seen.add(tuple(expected))
    assert len(seen) == 12  # each place has ranks of its own: a mixed-up axis would show
    # The document that is there twice stands before itself, whatever the layer.
    assert (found.values[:, :, [3, 7]] >= 2).all()


def test_cls_before_any_block_retrieves_nothing(indexes):
    assert (grid_ranks(*indexes).of(0, "cls") == COUNT).all()


def test_what_only_one_side_has_is_left_out(backend, sides, indexes, tmp_path):
    options = backend.embed_options((1, 3), ("mean", "max"), precision="float32")
    few = build_index(backend, sides[1], tmp_path / "few", options, "float32")
    whole = grid_ranks(*indexes)
    for found in (grid_ranks(indexes[0], few), grid_ranks(few, indexes[0])):
        assert (found.layers, found.poolings) == ((1, 3), ("mean", "max"))
        assert found.values.shape == (2, 2, COUNT)
    np.testing.assert_array_equal(grid_ranks(indexes[0], few).of(3, "max"), whole.of(3, "max"))


def test_ranks_cannot_be_written_and_say_how_large_they_are(indexes):
    assert grid_ranks(*indexes).nbytes == 4 * 12 * COUNT
    with pytest.raises(ValueError, match="read-only"):
        grid_ranks(*indexes).values[0, 0, 0] = 1


def test_progress_counts_queries_over_the_whole_grid(indexes, monkeypatch):
    monkeypatch.setattr(ranks_module, "QUERIES_PER_BLOCK", 16)
    told: list[tuple[int, int]] = []
    grid_ranks(*indexes, progress=lambda done, total: told.append((done, total)))
    expected = [cell * COUNT + done for cell in range(12) for done in (16, 32, 40)]
    assert told == [(done, 12 * COUNT) for done in expected]


def test_a_stop_ends_within_the_grid(indexes):
    told: list[int] = []
    with pytest.raises(Stopped):
        grid_ranks(*indexes, progress=lambda done, _: told.append(done), is_stopped=lambda: len(told) == 5)
    assert told == [COUNT * cell for cell in range(1, 6)]


# Words


class Fixed:
    """A ranker that gives these scores, query by query: {query: scores}."""

    title, nbytes = "fixed", 0

    def __init__(self, **scores: list[float]) -> None:
        self._scores = scores

    def scores(self, query: str) -> np.ndarray:
        return np.array(self._scores[query], np.float32)

    def floor(self, query: str) -> float:
        return -np.inf


def test_equal_scores_stand_before_the_right_document():
    ranker = Fixed(a=[3, 5, 3, 1], b=[0, 0, 0, 0], c=[1, 2, 3, 4], d=[-4, -2, -9, -4])
    assert ranker_ranks(ranker, list("abcd")).tolist() == [3, 4, 2, 3]
    assert ranker_ranks(ranker, ["c", "c"], np.array([0, 3])).tolist() == [4, 1]
    with pytest.raises(ValueError, match="zip"):
        ranker_ranks(ranker, ["c", "c"], np.array([0]))


def test_a_score_that_is_no_number_counts_against_the_query():
    ranker = Fixed(a=[np.nan, 1, 2], b=[1, np.nan, 0])
    assert ranker_ranks(ranker, ["a", "b"], np.array([0, 0])).tolist() == [3, 2]


@pytest.mark.parametrize(("size", "gap", "rank"), [(1, 5e-7, 2), (1, 5e-6, 1), (1000, 5e-4, 2), (1000, 5e-3, 1)])
def test_scores_are_equal_relative_to_their_size(size, gap, rank):
    for sign in (1, -1):
        ranker = types.SimpleNamespace(
            scores=lambda _, sign=sign: np.array([sign * size, sign * size - gap]), floor=lambda _: -np.inf
        )
        assert ranker_ranks(ranker, [""]).tolist() == [rank]


def test_bag_of_words_by_hand_and_what_shares_no_word_is_not_found():
    texts = ["the cat sat", "the dog sat", "the dog sat on the dog", "nothing else"]
    # cosines of "dog sat": 1 / sqrt 6 (0.41), 2 / sqrt 6 (0.82), 3 / sqrt 20 (0.67), 0
    queries = ["dog sat", "cat", "dog sat", "unknown"]
    assert ranker_ranks(make_ranker("bow", texts), queries).tolist() == [3, NOT_FOUND, 2, NOT_FOUND]
    for kind in ("bow", "tfidf", "bm25", "jm", "lsa"):
        ranker = make_ranker(kind, texts)
        assert ranker_ranks(ranker, ["unknown", "cat"], np.array([2, 0])).tolist() == [NOT_FOUND, 1], kind
        if kind != "lsa":  # its dimensions find texts without a word of the query
            assert ranker_ranks(ranker, ["cat"], np.array([3])).tolist() == [NOT_FOUND], kind
        graded = ranker_relevant_ranks(ranker.scores, ["cat", "unknown"], [{0: 1, 3: 2}, {1: 1}], floor=ranker.floor)
        assert graded.ranks.tolist() == [1, NOT_FOUND, NOT_FOUND], kind
        assert graded_metrics.reciprocal_rank(graded).tolist() == [1, 0]
        assert graded_metrics.average_precision(graded).tolist() == [0.5, 0]
        assert graded_metrics.recall(graded, 100).tolist() == [0.5, 0]  # of four texts
    not_found = ranker_ranks(make_ranker("bm25", texts), ["unknown", "cat"], np.array([2, 0]))
    measured = metrics.summary(not_found)
    assert measured["recall"] == {"1": 50.0, "5": 50.0, "10": 50.0, "20": 50.0, "50": 50.0}
    assert (measured["mrr"], measured["ndcg@10"]) == (50.0, 50.0)


# Several correct answers


def several_pairs():
    """Twelve texts of five queries with one to four correct answers; two queries share one."""
    numbers = np.random.default_rng(7)
    texts = [" ".join(numbers.choice(PLAIN, 8, replace=False)) for _ in range(12)]
    own = [(0, 3, 5), (1,), (2, 4), (6, 7, 8, 9), (10, 11, 0)]
    asked = [" ".join(texts[numbers.choice(answers)].split()[:4]) for answers in own]
    rows = sorted((answer, query) for query, answers in enumerate(own) for answer in answers)
    lines = "\n".join(f"{texts[answer]},{asked[query]}" for answer, query in rows)
    return pairs_of_corpus(corpus(lines))


def plain_measures(scores: np.ndarray, answers) -> dict[str, np.ndarray]:
    """By plain numpy in float64, from scores [query, document] without ties: {measure: [query]}."""
    order = np.argsort(-scores, axis=1)
    found: dict[str, list[float]] = {"Recall@1": [], "Recall@5": [], "MRR": [], "nDCG@10": []}
    for row, own in zip(order, answers, strict=True):
        hit = np.isin(row, own)
        first = int(np.flatnonzero(hit)[0]) + 1
        discounts = 1 / np.log2(np.arange(2, 12))
        found["Recall@1"].append(float(first <= 1))
        found["Recall@5"].append(float(first <= 5))
        found["MRR"].append(1 / first)
        found["nDCG@10"].append((hit[:10] * discounts).sum() / discounts[: len(own)].sum())
    return {name: np.array(values) for name, values in found.items()}


def test_several_correct_answers_equal_plain_numpy_and_sentence_transformers(backend, tmp_path):
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    pairs = several_pairs()
    assert pairs.has_several
    options = backend.embed_options((0, 2, 3), POOLINGS, precision="float32")
    built = [
        build_index(backend, texts, tmp_path / name, options, "float32")
        for texts, name in ((pairs.documents, "d"), (pairs.queries, "q"))
    ]
    grid = grid_ranks(*built, pairs=pairs)
    assert grid.values.shape == (3, 3)
    assert grid.nbytes == sum(grid.of(*cell).nbytes for cell in grid.cells) > 0
    documents, queries = (plain_vectors(backend, texts.texts) for texts in (pairs.documents, pairs.queries))
    documents, queries = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (documents, queries))
    checked = 0
    for layer, pooling in grid.cells:
        if (layer, pooling) == (0, "cls"):  # all vectors are the same: nothing is first
            assert metrics.recall(grid.of(layer, pooling), 1).sum() == 0
            continue
        at = POOLINGS.index(pooling)
        scores = queries[layer, at] @ documents[layer, at].T
        for name, expected in plain_measures(scores, pairs.answers).items():
            np.testing.assert_allclose(metrics.MEASURES[name](grid.of(layer, pooling)), expected, atol=1e-12)
        checked += 1
        if checked > 1:
            continue
        theirs = InformationRetrievalEvaluator(
            {str(number): text for number, text in enumerate(pairs.queries.texts)},
            {str(number): text for number, text in enumerate(pairs.documents.texts)},
            {str(query): {str(number) for number in own} for query, own in enumerate(pairs.answers)},
            show_progress_bar=False,
        ).compute_metrics(
            [[{"corpus_id": str(number), "score": row[number]} for number in np.argsort(-row)] for row in scores]
        )
        ours = grid.of(layer, pooling)
        assert theirs["accuracy@k"][1] == pytest.approx(metrics.recall(ours, 1).mean(), abs=1e-12)
        assert theirs["accuracy@k"][5] == pytest.approx(metrics.recall(ours, 5).mean(), abs=1e-12)
        ranked = metrics.first_ranks(ours)
        assert theirs["mrr@k"][10] == pytest.approx((metrics.reciprocal_rank(ours) * (ranked <= 10)).mean(), abs=1e-12)
        assert theirs["ndcg@k"][10] == pytest.approx(metrics.ndcg(ours).mean(), abs=1e-12)
        np.testing.assert_allclose(metrics.precision_curve(ours, 3)[2], theirs["precision@k"][3], atol=1e-12)
    assert checked == 8


def test_by_dot_product_and_by_words_several_answers_equal_plain_numpy():
    pairs, numbers = several_pairs(), np.random.default_rng(5)
    queries, documents = numbers.normal(size=(5, 6)), numbers.normal(size=(12, 6)) * numbers.uniform(1, 9, (12, 1))
    ours = pairs.ranks_by_vectors(queries, documents, cosine=False)
    for name, expected in plain_measures(queries @ documents.T, pairs.answers).items():
        np.testing.assert_allclose(metrics.MEASURES[name](ours), expected, atol=1e-12)
    ranker = make_ranker("bm25", pairs.documents.texts)
    found = pairs.ranks_by_words(ranker)
    for query, text in enumerate(pairs.queries.texts):
        scores = ranker.scores(text).astype(np.float64)
        best = max(scores[number] for number in pairs.answers[query])
        others = [score for number, score in enumerate(scores) if number not in pairs.answers[query]]
        expected = 1 + sum(score >= best - 1e-6 for score in others) if best > 0 else NOT_FOUND
        assert metrics.first_ranks(found)[query] == expected


def test_a_ranking_by_words_tells_where_it_is_and_can_be_stopped():
    ranker, told = Fixed(a=[1.0]), []
    zeros = np.zeros(130, np.int64)
    ranker_ranks(ranker, ["a"] * 130, zeros, progress=lambda *given: told.append(given))
    assert told == [(0, 130), (64, 130), (128, 130), (130, 130)]
    with pytest.raises(Stopped):
        ranker_ranks(ranker, ["a"] * 130, zeros, is_stopped=lambda: True)


# Time


def test_the_median_of_some_queries_after_one_that_warms_up(monkeypatch):
    clock, asked = [0.0], []
    monkeypatch.setattr(pair_runs, "time", types.SimpleNamespace(perf_counter=lambda: clock[0]))

    def scores(query: str) -> np.ndarray:
        # Whoever comes first takes long; query n takes n milliseconds.
        clock[0] += 9.0 if not asked else int(query) / 1000
        asked.append(int(query))
        return np.zeros(3, np.float32)

    ranker = types.SimpleNamespace(scores=scores)
    queries = [str(at) for at in range(111)]
    assert ranker_milliseconds(ranker, queries) == pytest.approx(55)
    assert asked == [0, *range(0, 111, 10)]  # spread over all, from the first to the last
    assert ranker_milliseconds(ranker, ["7"]) == pytest.approx(7)


def test_time_passes(backend, sides, indexes, monkeypatch):
    asked, whole, options_of, roles = [], backend.embed, backend.embed_options, []

    def embed(texts, options):
        asked.append((tuple(texts), options))
        return whole(texts, options=options)

    def embed_options(*given, role=None):
        roles.append(role)
        return options_of(*given, role=role)

    monkeypatch.setattr(backend, "embed", embed)
    monkeypatch.setattr(backend, "embed_options", embed_options)
    assert vector_milliseconds(backend, indexes[0], sides[1].texts[:3]) > 0
    assert [texts for texts, _ in asked] == [(sides[1].texts[at],) for at in (0, 0, 1, 2)]
    options = asked[0][1]
    assert (options.layers, options.poolings, options.precision) == ((3,), ("max",), "float32")
    assert options.max_length == indexes[0].info.options.max_length
    assert roles == ["query"]
    assert ranker_milliseconds(make_ranker("bm25", sides[0].texts), sides[1].texts) > 0


def test_the_time_of_many_candidates_follows_from_the_first_hundred(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(pair_runs, "time", types.SimpleNamespace(perf_counter=lambda: clock[0]))
    timed = []

    def score(number, rows):
        timed.append(len(rows))
        clock[0] += 0.002 * len(rows)

    assert second_milliseconds(score, np.zeros((8, 400), np.int64)) == pytest.approx(800)
    assert set(timed) == {100}
    assert second_milliseconds(score, np.zeros((3, 7), np.int64)) == pytest.approx(14)
    with pytest.raises(Stopped):
        second_milliseconds(score, np.zeros((8, 400), np.int64), lambda: True)


def test_some_queries_are_asked_of_all_documents() -> None:
    pairs = pair_runs.pairs_of_rows("rows", ["a", "b", "c", "a"], ["one", "two", "", "two"], every_text=True)
    some = pair_runs.asked_of(pairs, [1])
    assert (some.queries.texts, some.documents.texts, some.answers_of(0)) == (("two",), ("a", "b", "c"), (1, 0))
    assert (pairs.asked, some.asked) == ("3 rows, 2 different queries", "1 query")
    assert pairs_of_rows("rows", ["a", "b"], ["one", "two"]).asked == "2 queries"  # no row repeats one
    vectors = np.eye(3)
    asked = np.array([[1.0, 0, 0], [0, 0.1, 1]])
    every, alone = pairs.ranks_by_vectors(asked, vectors), some.ranks_by_vectors(asked[1:], vectors)
    assert list(metrics.first_ranks(alone)) == list(metrics.first_ranks(every)[1:]) == [2]
