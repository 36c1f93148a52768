"""What training changed: a model against itself changes nothing, and values computed by hand or by the libraries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from components.analysis.similarity.cka import layer_cka
from components.arrays import cosine
from components.errors import InputError
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.ranks import gold_ranks
from components.training.before_after import (
    GroupMeans,
    QueryChange,
    head_change,
    layer_change,
    query_changes,
    repeated_words,
    retrieval_changes,
    same_topic_share,
    similarity_change,
    spearman_change,
    word_curves,
)
from components.training.run_folder import WatchToken

RANKS = np.array([1, 2, 1, 7, 30, 3])


@pytest.fixture
def random():
    return np.random.default_rng(5)


def attentions(random, shape=(2, 3, 4, 5, 5)):
    values = random.random(shape).astype(np.float32)
    return values / values.sum(axis=-1, keepdims=True)


def test_group_means_by_hand():
    base = np.array([[1, 0], [1, 0], [0, 1], [0, -1], [1, 1]], np.float32)
    change = similarity_change(base, -2 * base, ["a", "a", "b", "b", None])
    # Within a: 1, within b: -1; between a and b: four right angles. The last sentence belongs to no group.
    assert change.base_means == GroupMeans(0.0, 0.0)
    change = similarity_change(base[[0, 1, 2]], np.array([[3, 4], [3, 4], [4, 3]], np.float32), ["a", "a", "b"])
    assert (change.base_means.within, change.base_means.between) == (1, 0)
    assert change.tuned_means.within == pytest.approx(1)
    assert change.tuned_means.between == pytest.approx(24 / 25)
    assert change.tuned_means.gap() == pytest.approx(1 / 25)
    assert GroupMeans(0.4574, 0.1806).gap() == pytest.approx(0.457 - 0.181)  # as shown, not 0.277
    assert change.base.shape == change.tuned.shape == (3, 3)


def test_the_share_of_tokens_whose_nearest_in_another_sentence_is_of_the_same_topic():
    angles = np.deg2rad([0, 1, 10, 80, 90, 50])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # Tokens 0 and 1 are of one sentence: their nearest elsewhere is token 2 (right). 2 finds 1 (right), 3 finds 4 (right),
    # 4 finds 3 (right), and 5, of topic a, finds 3 of topic b (wrong).
    assert same_topic_share(vectors, [0, 0, 1, 2, 3, 4], ["a", "a", "b", "b", "a"]) == pytest.approx(5 / 6)


def test_curves_of_a_word_compare_its_first_occurrence_in_each_sentence(random):
    vectors = random.normal(size=(3, 6, 4))  # [layer, token, dim]
    pieces = [(0, "bank"), (0, "bank"), (1, "the"), (1, "bank"), (2, "bank"), (2, "##s")]
    tokens = [WatchToken(sentence, number, piece) for number, (sentence, piece) in enumerate(pieces)]
    assert repeated_words(tokens) == ["bank"]
    plain = word_curves(vectors, tokens, "bank", None)
    assert plain.names == ("bank: 1 – 2", "bank: 1 – 3", "bank: 2 – 3")
    np.testing.assert_allclose(plain.values[2], cosine(vectors[:, 3], vectors[:, 4]))
    grouped = word_curves(vectors, tokens, "bank", ["money", "river", "money"])
    assert grouped.names == ("bank: money – river", "bank: money – money")
    np.testing.assert_allclose(grouped.values[0], (plain.values[0] + plain.values[2]) / 2)
    np.testing.assert_allclose(grouped.values[1], plain.values[1])


def test_groups_without_a_pair_have_no_mean():
    vectors = np.eye(3, dtype=np.float32)
    means = similarity_change(vectors, vectors, ["a", None, "b"]).base_means
    assert np.isnan(means.within)
    assert means.between == 0
    vectors[2] = np.nan  # a sentence without a vector
    assert np.isnan(similarity_change(vectors, vectors, ["a", None, "b"]).tuned_means.between)


def test_the_two_models_may_have_vectors_of_different_sizes(random):
    change = similarity_change(random.normal(size=(4, 6)), random.normal(size=(4, 3)), ["a", "b", "a", "b"])
    assert change.base_means != change.tuned_means
    with pytest.raises(ValueError, match="equal numbers"):
        similarity_change(np.eye(2), np.eye(3), ["a", "b"])


def test_spearman_of_a_model_with_itself_does_not_differ(random):
    predicted, scores = random.normal(size=40), random.integers(0, 6, 40).astype(float).tolist()
    change = spearman_change(predicted, predicted, scores)
    assert (change.difference.value, change.difference.low, change.difference.high) == (0, 0, 0)
    assert change.base == change.tuned
    assert not change.is_clear
    assert change.base.value == pytest.approx(stats.spearmanr(predicted, scores).statistic)


def test_the_bootstrap_is_paired_seeded_and_equal_to_scipys_correlations(random):
    scores = random.integers(0, 6, 60).astype(float)
    base, tuned = scores + 3 * random.normal(size=60), scores + 0.5 * random.normal(size=60)
    change = spearman_change(base, tuned, scores.tolist(), seed=3, resamples=200)
    draws = np.random.default_rng(3).integers(0, 60, size=(200, 60))
    differences = [
        stats.spearmanr(tuned[rows], scores[rows]).statistic - stats.spearmanr(base[rows], scores[rows]).statistic
        for rows in draws
    ]
    low, high = np.quantile(differences, [0.025, 0.975])
    assert (change.difference.low, change.difference.high) == pytest.approx((low, high))
    assert change.difference.value == pytest.approx(change.tuned.value - change.base.value)
    assert change.is_clear
    assert change == spearman_change(base, tuned, scores.tolist(), seed=3, resamples=200)


def test_a_collapsed_model_has_no_correlation(random):
    scores = random.random(20).tolist()
    change = spearman_change(random.random(20), np.full(20, 0.99), scores)
    assert np.isnan([change.tuned.value, change.difference.value, change.difference.low]).all()
    assert not np.isnan(change.base.value)
    assert not change.is_clear
    with pytest.raises(ValueError, match="two or more"):
        spearman_change(np.ones(1), np.ones(1), [1.0])


def test_ranks_of_a_model_with_itself_change_no_measure():
    for change in retrieval_changes(RANKS, RANKS):
        assert (change.difference.value, change.difference.low, change.difference.high) == (0, 0, 0)
        assert change.base == change.tuned
        assert change.p_value == 1
        assert not change.is_significant
    changes = query_changes(RANKS, RANKS)
    assert (changes.gained, changes.lost, changes.unchanged) == ((), (), 6)


def test_measures_by_hand():
    tuned = np.array([1, 1, 2, 1, 30, 3])
    recall, _, mrr = retrieval_changes(RANKS, tuned)
    assert (recall.name, recall.base.value, recall.tuned.value) == ("Recall@1", 2 / 6, 3 / 6)
    assert recall.difference.value == pytest.approx(1 / 6)
    assert mrr.difference.value == pytest.approx((1 / 2 - 1 / 2 + 6 / 7) / 6)
    assert recall.difference.low <= recall.difference.value <= recall.difference.high


def test_a_large_gain_is_significant_and_p_values_are_adjusted(random):
    base, tuned = random.integers(2, 20, 200), np.ones(200, np.int64)
    raw = metrics.randomisation_test(metrics.recall(tuned, 1), metrics.recall(base, 1))
    (alone,) = retrieval_changes(base, tuned, ["Recall@1"])
    three = retrieval_changes(base, tuned)
    assert alone.p_value == raw
    assert three[0].p_value == pytest.approx(3 * raw)
    assert three[0].is_significant
    with pytest.raises(ValueError, match="queries"):
        retrieval_changes(base, tuned[:3])


def test_queries_that_gained_and_lost_most():
    base, tuned = np.array([2, 100, 1, 5, 1, 4]), np.array([1, 50, 3, 5, 9, 2])
    changes = query_changes(base, tuned)
    assert changes.gained == (QueryChange(0, 2, 1), QueryChange(5, 4, 2), QueryChange(1, 100, 50))
    assert changes.lost == (QueryChange(4, 1, 9), QueryChange(2, 1, 3))
    assert (changes.better, changes.worse, changes.unchanged) == (3, 2, 1)
    few = query_changes(base, tuned, most=1)
    assert (len(few.gained), len(few.lost), few.better) == (1, 1, 3)


def test_layers_of_a_model_with_itself_have_a_cka_and_a_cosine_of_1(random):
    vectors = random.normal(size=(3, 60, 4)).astype(np.float32)
    change = layer_change(vectors, vectors)
    assert change.cka == pytest.approx([1, 1, 1])
    assert change.cosine == pytest.approx([1, 1, 1])
    assert change.tokens == 60


def test_a_rotated_layer_keeps_its_cka_and_a_new_one_does_not(random):
    base = random.normal(size=(3, 80, 4))
    rotation, _ = np.linalg.qr(random.normal(size=(4, 4)))
    tuned = np.stack([base[0], base[1] @ rotation, random.normal(size=(80, 4))])
    change = layer_change(base, tuned)
    assert change.cka[:2] == pytest.approx([1, 1])
    assert change.cosine[1] == pytest.approx(cosine(base[1], tuned[1]).mean())
    assert change.cosine[1] < 0.9
    assert change.cka[2] == pytest.approx(layer_cka(base, tuned).matrix[2, 2])
    assert change.most_moved[0] == 2
    with pytest.raises(ValueError, match="shapes"):
        layer_change(base, tuned[:2])
    with pytest.raises(InputError):
        layer_change(base[:, :2], tuned[:, :2])


def test_layers_of_equal_vectors_are_not_ordered(random):
    base = random.normal(size=(2, 60, 4))
    base[0] = 1.0  # as the [CLS] vectors at layer 0
    change = layer_change(base, base)
    assert np.isnan(change.cka[0])
    assert change.most_moved == (1,)


def test_heads_of_a_model_with_itself_move_nothing(random):
    values = attentions(random)
    assert not head_change(values, values, np.ones((3, 5), bool)).share.any()


def test_a_heads_moved_share_by_hand():
    base = np.zeros((1, 2, 2, 3, 3))
    base[..., 0] = 1  # every query attends to the first token
    tuned = base.copy()
    tuned[0, 0, 1, 0] = [0.25, 0.75, 0]  # head 1 moves 0.75 of one query's attention
    tuned[0, 1, 1, 2] = [0, 0, 1]  # and all of a query that is padding
    tokens = np.array([[True, True, True], [True, True, False]])
    change = head_change(base, tuned, tokens)
    assert change.share.tolist() == [[0, 0.75 / 5]]
    assert change.top(1) == ((0, 1, 0.15),)
    with pytest.raises(ValueError, match="fit"):
        head_change(base, tuned, tokens[:1])


def test_all_attention_to_other_tokens_is_1(random):
    base, tuned = np.zeros((2, 1, 2, 4, 4)), np.zeros((2, 1, 2, 4, 4))
    base[..., 0] = tuned[..., 1] = 1
    assert (head_change(base, tuned, np.ones((1, 4), bool)).share == 1).all()


def test_cosines_that_are_not_finite_are_no_agreement():
    """One NaN among them would otherwise have the highest rank."""
    scores = [1.0, 2.0, 3.0, 4.0]
    change = spearman_change(np.array([0.1, 0.2, 0.4, 0.3]), np.array([0.1, 0.2, 0.3, np.nan]), scores)
    assert change.base.value == pytest.approx(0.8)
    assert np.isnan([change.tuned.value, change.difference.value]).all()


def test_vectors_that_are_not_finite_have_no_ranks():
    vectors = np.eye(3, dtype=np.float32)
    broken = np.where(vectors > 0, np.nan, vectors)
    for queries, answers in ((broken, vectors), (vectors, broken)):
        with pytest.raises(InputError, match="not finite"):
            gold_ranks(queries, answers)
