"""Ranks of correct answers by fused runs: single runs at weights 0 and 1, blocks of queries, several answers, own documents."""

from __future__ import annotations

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.evaluation.graded.ranks import NONE, RelevantRanks
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.evaluation.pair_runs import pairs_of_rows
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion import ranks as module
from components.retrieval.fusion.ranks import fused_ranks, ranker_scores, reranked_scores, vector_scores
from components.retrieval.fusion.scores import Fusion
from components.retrieval.search.exact import VectorRanker
from components.retrieval.search.lexical import KINDS, make_ranker

WORDS = [
    "pilot",
    "strike",
    "bank",
    "flood",
    "river",
    "storm",
    "vote",
    "mayor",
    "flight",
    "ash",
    "gold",
    "match",
    "goal",
    "court",
    "judge",
]


def texts_and_queries(seed: int = 0, count: int = 40):
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(WORDS, 5)) for _ in range(count)]
    queries = [" ".join(random.choice([*text.split(), "unseen"], 2)) + f" q{n}" for n, text in enumerate(texts)]
    return texts, queries


def vectors(seed: int, count: int, dim: int = 6):
    random = np.random.default_rng(seed)
    documents = random.standard_normal((count, dim)).astype(np.float32)
    documents[3] = documents[5]  # a tie
    return (documents + random.standard_normal((count, dim))).astype(np.float32), documents


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("several", [False, True])
def test_weights_0_and_1_give_the_ranks_of_the_single_runs(kind, several, monkeypatch):
    monkeypatch.setattr(module, "_CELLS", 200)  # a few queries at a time
    texts, queries = texts_and_queries()
    if several:
        queries[7] = queries[3]
    pairs = pairs_of_rows("pairs", texts, queries)
    assert pairs.has_several is several
    asked, told = vectors(1, len(texts))
    asked, told = asked[: len(pairs)], told[: len(pairs.documents)]
    ranker = make_ranker(kind, pairs.documents.texts)
    by_vectors, by_words = fused_ranks(
        [vector_scores(asked, told), ranker_scores(ranker, pairs.queries.texts)],
        [Fusion("minmax", (1, 0)), Fusion("minmax", (0, 1))],
        (len(pairs), len(pairs.documents)),
        pairs.grades if several else pairs.gold,
    )
    for fused, single in ((by_vectors, pairs.ranks_by_vectors(asked, told)), (by_words, pairs.ranks_by_words(ranker))):
        assert isinstance(fused, RelevantRanks) is isinstance(single, RelevantRanks) is several
        if isinstance(fused, RelevantRanks):
            for name in ("ranks", "grades", "starts", "documents"):
                np.testing.assert_array_equal(getattr(fused, name), getattr(single, name))
        else:
            np.testing.assert_array_equal(fused, single)


@pytest.mark.parametrize("method", ["rrf", "minmax", "z"])
def test_blocks_of_queries_change_nothing(method, monkeypatch):
    texts, queries = texts_and_queries(2)
    asked, told = vectors(3, len(texts))
    runs = [vector_scores(asked, told), ranker_scores(make_ranker("bm25", texts), queries)]
    fusions, shape = [Fusion(method, (0.6, 0.4), depth=20)], (len(queries), len(texts))
    whole = fused_ranks(runs, fusions, shape)[0]
    whole_scores = fusions[0].of([scores(slice(0, len(queries))) for scores in runs])
    np.testing.assert_array_equal(whole, np.diag(whole_scores.ranks))
    grades = [{number: 1} for number in range(len(texts))]
    np.testing.assert_array_equal(whole, first_ranks(fused_ranks(runs, fusions, shape, grades)[0]))
    monkeypatch.setattr(module, "_CELLS", 3 * len(texts))
    seen: list[tuple[int, int | None]] = []
    np.testing.assert_array_equal(whole, fused_ranks(runs, fusions, shape, progress=lambda *own: seen.append(own))[0])
    assert seen[0] == (3, 40)
    assert seen[-1] == (40, 40)


def test_an_answer_that_no_run_ranks_is_not_found():
    asked = np.array([[1.0, 0.0]], np.float32)
    told = np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.1]], np.float32)
    runs = [vector_scores(asked, told), ranker_scores(make_ranker("bm25", ["one", "two", "three"]), ["two"])]
    for method in ("rrf", "minmax", "z"):
        ranks = fused_ranks(runs, [Fusion(method), Fusion(method, depth=2)], (1, 3))
        assert [found.tolist() for found in ranks] == [[3], [NOT_FOUND]]


@pytest.mark.parametrize("method", ["rrf", "minmax", "z"])
def test_a_querys_own_document_is_left_out_of_each_run(method):
    texts, queries = texts_and_queries(4)
    asked, told = vectors(5, len(texts))
    own = np.full(len(queries), NONE)
    own[[0, 7]] = [9, 12]
    grades = [{number: 1} for number in range(len(texts))]
    fusion = Fusion(method, (0.5, 0.5))

    def runs(chosen: list[int]):
        ranker = make_ranker("bow", [texts[number] for number in chosen])
        return [vector_scores(asked, told[chosen]), ranker_scores(ranker, queries)]

    found = fused_ranks(runs(list(range(40))), [fusion], (40, 40), grades, own_documents=own)[0]
    for query, left_out in ((0, 9), (7, 12)):
        chosen = [number for number in range(40) if number != left_out]
        answers = np.array([chosen.index(query)])
        scored = [scores(slice(query, query + 1)) for scores in runs(chosen)]
        assert first_ranks(found)[query] == fusion.of(scored).ranks[0, answers[0]]


def test_it_can_be_stopped():
    asked, told = vectors(6, 8)
    with pytest.raises(Stopped):
        fused_ranks([vector_scores(asked, told)] * 2, [Fusion()], (8, 8), is_stopped=lambda: True)


def test_a_ranking_by_distances_ranks_every_text():
    vectors = np.random.default_rng(5).normal(size=(30, 4))
    names, asked = ["a", "b", "c"], vectors[:3] + 0.01
    ranker = VectorRanker(names, asked, vectors, "manhattan")
    runs = [ranker_scores(ranker, names)]
    (ranks,) = fused_ranks(runs, [Fusion("rrf", (1.0,))], (3, 30), answers=np.array([0, 1, 2]))
    assert ranks.tolist() == [1, 1, 1]


def test_a_second_stage_ranks_its_candidates_alone_and_none_that_ties_with_other_texts():
    first = vector_scores(
        np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0], [0.9, 0.1], [0, 1.0], [0, 1.0], [1.0, 1.0]])
    )
    run = reranked_scores(first, np.array([[1, 0], [2, 4]]), np.array([[0.1, 0.7], [5.0, 5.0]], np.float32))(
        slice(0, 2)
    )
    assert run.ranks[0].tolist() == [1, 2, NOT_FOUND, NOT_FOUND, NOT_FOUND]
    # Texts 2 and 3 tie, and both are among the first two: 4, which is third, is none though it was given.
    assert run.ranks[1].tolist() == [NOT_FOUND, NOT_FOUND, 2, NOT_FOUND, NOT_FOUND]


def test_a_second_stage_ranks_as_many_candidates_where_a_query_leaves_its_own_document_out():
    first = vector_scores(np.array([[1.0, 0.0]] * 2), np.array([[1.0, 0], [0.9, 0.1], [0.5, 0.5], [0, 1.0]]))
    rows, scores = np.array([[1, 2], [0, 1]]), np.array([[0.1, 0.7], [0.2, 0.1]], np.float32)
    run = reranked_scores(first, rows, scores, np.array([0, NONE]))(slice(0, 2))
    assert run.ranks[0].tolist() == [NOT_FOUND, 2, 1, NOT_FOUND]
    assert run.ranks[1].tolist() == [1, 2, NOT_FOUND, NOT_FOUND]
