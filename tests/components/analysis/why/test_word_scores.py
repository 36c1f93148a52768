"""The scores of words: identities of each method, on the embedded model and a tiny one."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from components.analysis.leave_one_out import without, words_of
from components.analysis.why import word_scores
from components.analysis.why.token_ledger import pooling_weights, token_contributions
from components.analysis.why.word_scores import METHOD_NAMES, METHODS, NotApplicable, PairSimilarity, WordPair
from components.arrays import cosine
from components.model.backend import Backend
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.closeness import assert_close

FIRST, SECOND = "The cat, unputdownable, sat on a bank.", "A red cat sat!"


@pytest.fixture(scope="module")
def tiny_backend(tiny_folder):
    return Backend.load(str(tiny_folder("bert")), store=TraceStore(16 << 20), device_name="cpu")


def scores_of(name, similarity):
    return METHODS[name](similarity, lambda done, total: None, lambda: False)


def token_ledger(similarity):
    parts = (pooling_weights(hidden, similarity.pooling) * hidden for hidden in similarity.hidden())
    contributions = token_contributions(*parts)
    return contributions.sum(axis=1), contributions.sum(axis=0)


def test_every_method_has_a_name():
    assert set(METHOD_NAMES) == {*METHODS, word_scores.RANDOM}


def test_the_words_are_those_of_each_text_alone(embedded):
    pair = PairSimilarity.of(embedded, f"  {FIRST} ", SECOND, 6, "mean").pair
    assert pair.texts == (FIRST, SECOND)
    assert [word.text for word in pair.words] == [
        "The",
        "cat",
        "unputdownable",
        "sat",
        "on",
        "a",
        "bank",
        "A",
        "red",
        "cat",
        "sat",
    ]
    assert pair.counts == (7, 4)
    for word in pair.words:
        assert pair.texts[word.in_pair][word.start : word.end] == word.text


def test_several_words_are_removed_as_one_after_the_other(embedded):
    pair = PairSimilarity.of(embedded, FIRST, SECOND, 6, "mean").pair
    assert pair.left(()) == (FIRST, SECOND)
    for index, word in enumerate(pair.words):
        expected = [FIRST, SECOND]
        expected[word.in_pair] = without(expected[word.in_pair], word)
        assert pair.left({index}) == tuple(expected)
    assert pair.left({0, 2, 4, 7, 9}) == ("cat, , sat a bank.", "red sat!")
    assert pair.left({1, 2, 3, 4, 5, 6, 8, 9, 10}) == ("The , , .", "A !")


def test_only_what_is_read_of_a_long_text_counts(embedded):
    long = "one two three four five six seven eight nine ten"
    similarity = PairSimilarity.of(embedded, long, SECOND, 6, "mean", max_length=7)
    assert similarity.pair.texts == ("one two three four five", SECOND)
    assert not similarity.pair.sentences[0].dropped
    vectors = embedded.embed([long, SECOND], options=embedded.embed_options(None, ["mean"], 7, "float32"))[0, 0]
    assert_close(similarity.cosine, float(cosine(*vectors)))


def test_scores_of_pieces_are_summed_over_the_word(embedded):
    pair = PairSimilarity.of(embedded, FIRST, SECOND, 6, "mean").pair
    numbers = [np.arange(len(sentence), dtype=float) + 100 * row for row, sentence in enumerate(pair.sentences)]
    expected = []
    for row, sentence in enumerate(pair.sentences):
        for word in words_of(sentence):
            first = next(token.position for token in sentence.tokens if not token.special and token.start == word.start)
            expected.append(sum(numbers[row][position] for position in sentence.word_positions(first)))
    np.testing.assert_array_equal(pair.by_word(numbers), expected)
    assert len(pair.sentences[0].word_positions(4)) > 2  # the long word is in several pieces


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("layer", [0, 4, 6])
def test_the_ledgers_parts_sum_to_the_cosine(embedded, pooling, layer):
    similarity = PairSimilarity.of(embedded, FIRST, SECOND, layer, pooling)
    vectors = embedded.embed([FIRST, SECOND], options=embedded.embed_options([layer], [pooling], precision="float32"))[
        0, 0
    ]
    plain = float(cosine(*vectors))
    for tokens in token_ledger(similarity):
        assert_close(tokens.sum(), plain)
    assert_close(similarity.cosine, plain)


def test_the_ledger_of_the_mean_is_the_formula_of_its_definition(embedded):
    similarity = PairSimilarity.of(embedded, FIRST, SECOND, 6, "mean")
    trace = embedded.trace([FIRST, SECOND])
    x, y = (trace.hidden_states[6, row, : len(trace.sentences[row])].astype(float) for row in (0, 1))
    lengths = np.linalg.norm(x.mean(0)) * np.linalg.norm(y.mean(0))
    contributions = x @ y.T / (len(x) * len(y) * lengths)  # [token of A, token of B]
    expected = similarity.pair.by_word((contributions.sum(1), contributions.sum(0)))
    assert_close(scores_of("ledger", similarity), expected)
    # What is left of each text's sum belongs to its special tokens and its punctuation.
    rest = contributions.sum() - expected[:7].sum()
    others = [
        t.position
        for t in trace.sentences[0].tokens
        if t.special or not trace.sentences[0].surface(t.position).isalnum()
    ]
    assert_close(rest, contributions.sum(1)[others].sum())


def test_leaving_one_out_equals_two_plain_embeddings(embedded):
    similarity = PairSimilarity.of(embedded, FIRST, SECOND, 5, "max")
    options = embedded.embed_options([5], ["max"], precision="float32")

    def plain(first, second):
        return float(cosine(*embedded.embed([first, second], options=options)[0, 0]))

    drops = scores_of("left_out", similarity)
    assert_close(drops[1], plain(FIRST, SECOND) - plain("The , unputdownable, sat on a bank.", SECOND))
    assert_close(drops[8], plain(FIRST, SECOND) - plain(FIRST, "A cat sat!"))


def test_the_only_word_of_a_text_is_left_out_against_an_empty_text(embedded):
    similarity = PairSimilarity.of(embedded, "cat", "A red cat", 6, "mean")
    (tokens,) = embedded.tokenize(["cat"])
    assert similarity.pair.left({0})[0] == ""
    empty = embedded.embed(["", "A red cat"], options=embedded.embed_options(None, ["mean"], precision="float32"))[0, 0]
    assert_close(scores_of("left_out", similarity)[0], similarity.cosine - float(cosine(*empty)))
    assert len(tokens) == 3


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_shares_of_a_text_sum_to_one_in_rollout(tiny_backend, pooling):
    similarity = PairSimilarity.of(tiny_backend, "the red cat", "a dog ran", 3, pooling)
    scores = scores_of("rollout", similarity)
    assert (scores > 0).all()
    trace = tiny_backend.trace(["the red cat"], attentions=True)
    mix = np.eye(5)
    for heads in trace.attentions[:, 0]:
        mix = (0.5 * heads.mean(0) + 0.5 * np.eye(5)) @ mix
    hidden = trace.hidden_states[3, 0]
    weights = {
        "mean": np.full(5, 0.2),
        "cls": np.eye(5)[0],
        "max": np.bincount(hidden.argmax(0), minlength=5) / 32,
    }[pooling]
    assert_close(scores[:3], (weights @ mix)[1:4])
    assert_close((weights @ mix).sum(), 1)


def test_the_gradient_is_the_slope_of_the_cosine(tiny_backend, monkeypatch):
    """Scaling a word's vector by 1 + e changes the cosine by e times its score."""
    texts = ("the red cat walking", "a dog ran")
    similarity = PairSimilarity.of(tiny_backend, *texts, 3, "mean")
    scores = scores_of("gradient", similarity)
    exact = tiny_backend.embed_options([3], ["mean"], precision="float32")
    table = tiny_backend.encoder.get_input_embeddings().weight
    for index, word in enumerate(similarity.pair.words):
        sentence = similarity.pair.sentences[word.in_pair]
        ids = [t.id for t in sentence.tokens if not t.special and word.start <= t.start and t.end <= word.end]
        cosines, kept = [], table.data[ids].clone()
        for factor in (0.98, 1.02):
            table.data[ids] = kept * factor
            vectors = tiny_backend.embed(texts, options=exact)[0, 0]
            cosines.append(float(cosine(*vectors)))
        table.data[ids] = kept
        assert scores[index] == pytest.approx((cosines[1] - cosines[0]) / 0.04, abs=2e-4), word


@pytest.mark.parametrize(
    ("name", "layer", "pooling", "reason"),
    [
        ("ledger", 6, "cls", "one token, which is no word"),
        ("rollout", 0, "mean", "no block has run"),
        ("gradient", 0, "cls", "does not depend on any word"),
    ],
)
def test_a_method_says_where_it_does_not_apply(embedded, name, layer, pooling, reason):
    with pytest.raises(NotApplicable, match=reason):
        scores_of(name, PairSimilarity.of(embedded, FIRST, SECOND, layer, pooling))


def test_the_models_own_vector_has_every_method_but_the_ledger(tiny_folder, tmp_path):
    shutil.copytree(tiny_folder("bert"), tmp_path / "model")
    folder = tiny.publish(tmp_path / "model", tiny.pooling_module("cls_token"), tiny.dense_module(32, 5))
    backend = Backend.load(str(folder), device_name="cpu")
    similarity = PairSimilarity.of(backend, "the red cat", "a dog ran", 3, "own")
    with pytest.raises(NotApplicable, match="more than a sum over tokens: what follows the pooling has a part of it"):
        scores_of("ledger", similarity)
    of_cls = PairSimilarity.of(backend, "the red cat", "a dog ran", 3, "cls")
    np.testing.assert_array_equal(scores_of("rollout", similarity), scores_of("rollout", of_cls))
    exact = backend.embed_options([3], ["own"], precision="float32")
    own = backend.embed(["the red cat", "a dog ran", "the cat"], options=exact)[0, 0]
    drop = float(cosine(own[0], own[1]) - cosine(own[2], own[1]))
    assert scores_of("left_out", similarity)[1] == pytest.approx(drop, abs=1e-5)
    assert np.abs(scores_of("gradient", similarity)).max() > 0


def test_texts_without_a_word_have_no_scores(embedded):
    pair = WordPair.read(lambda text: embedded.tokenize([text])[0], "?!", "...")
    assert pair.counts == (0, 0)
    assert scores_of("left_out", PairSimilarity.of(embedded, "?!", "...", 6, "mean")).shape == (0,)
