"""Deletion curves: a model worked out on paper, in which the right order is known; and the embedded model's own cosines."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.why import deletion
from components.analysis.why.deletion import DeletionCurve, compare_methods, deletion_curves, removals_of, steps_of
from components.analysis.why.word_scores import METHODS, RANDOM, PairSimilarity, WordPair
from components.arrays import cosine
from tests.support.closeness import assert_close

# Each word is a dimension of a made-up linear model; "bank" and "money" are in both texts, and are all that they share.
FIRST, SECOND = "some people rob one bank for money quickly", "put money into any bank"
SHARED = ("bank", "money")


@pytest.fixture(scope="module")
def pair(embedded):
    return WordPair.read(lambda text: embedded.tokenize([text])[0], FIRST, SECOND)


def linear_cosines(firsts, seconds):
    """The cosine of two texts as sums of one unit vector for each word."""
    words = [set(first.split()) & set(second.split()) for first, second in zip(firsts, seconds, strict=True)]
    sizes = [len(first.split()) * len(second.split()) for first, second in zip(firsts, seconds, strict=True)]
    return np.array([len(shared) / size**0.5 for shared, size in zip(words, sizes, strict=True)])


def right_order(pair):
    return sorted(range(len(pair.words)), key=lambda index: pair.words[index].text not in SHARED)


def test_the_right_order_beats_random_in_a_model_where_it_is_known(pair):
    orders = {
        "right": [right_order(pair)],
        "wrong": [right_order(pair)[::-1]],
        RANDOM: deletion.random_orders(len(pair.words)),
    }
    curves = deletion_curves(pair, orders, linear_cosines)
    assert curves["right"].area < curves[RANDOM].area < curves["wrong"].area
    # 8 and 5 words of which 2 are shared; then 7 and 5 sharing 1; then none is shared.
    np.testing.assert_allclose(curves["right"].cosines[:4], [2 / 40**0.5, 1 / 35**0.5, 0, 0])
    assert curves["right"].cosines[-1] == 0
    # The wrong order keeps both shared words for as long as there are others: they are then all that is left.
    assert curves["wrong"].cosines[-3] == 1


def test_every_curve_begins_at_the_cosine_and_ends_with_one_word_in_each_text(pair):
    seen = []

    def cosines(firsts, seconds):
        seen.extend(zip(firsts, seconds, strict=True))
        return linear_cosines(firsts, seconds)

    curves = deletion_curves(pair, {"a": [range(13)], "b": [range(12, -1, -1)]}, cosines)
    for curve in curves.values():
        assert [curve.counts(step) for step in range(12)] == [[count] for count in range(12)]
        assert curve.cosines[0] == linear_cosines([FIRST], [SECOND])[0]
        first, second = pair.left(*curve.removals)
        assert len(first.split()) == len(second.split()) == 1
    assert len(seen) == len(set(seen))  # equal texts are embedded once
    assert pair.left(*curves["a"].removals) == ("quickly", "bank")
    assert pair.left(*curves["b"].removals) == ("some", "put")


def test_the_last_word_of_a_text_is_skipped(pair):
    order = [8, 9, 10, 11, 12, 0, 1]  # the five words of the second text first
    assert removals_of(pair, order) == ((8, 9, 10, 11, 0, 1),)
    assert removals_of(pair, order, from_both=False) == ((0, 1), (8, 9, 10, 11))


def test_words_of_one_text_at_a_time_are_removed_while_the_other_stays_whole(pair):
    seen = []

    def cosines(firsts, seconds):
        seen.extend(zip(firsts, seconds, strict=True))
        return linear_cosines(firsts, seconds)

    curve = deletion_curves(pair, {"right": [right_order(pair)]}, cosines, from_both=False)["right"]
    assert {first for first, second in seen if second != SECOND} == {FIRST}
    of_first = linear_cosines([pair.left(curve.removals[0][:count])[0] for count in range(8)], [SECOND] * 8)
    of_second = linear_cosines([FIRST] * 5, [pair.left(curve.removals[1][:count])[1] for count in range(5)])
    assert [curve.counts(step) for step in (0, 2, 7)] == [[0, 0], [2, 1], [7, 4]]
    assert curve.cosines[2] == pytest.approx((of_first[2] + of_second[1]) / 2)
    assert curve.cosines[-1] == pytest.approx((of_first[7] + of_second[4]) / 2)


def test_from_equal_texts_words_have_to_be_removed_one_text_at_a_time(embedded):
    """Taking the same word from both leaves equal texts: no order could look worse, although every word matters."""
    same = WordPair.read(lambda text: embedded.tokenize([text])[0], FIRST, FIRST)
    words = len(FIRST.split())
    orders = {"same words": [[row + side * words for row in range(words) for side in (0, 1)]]}
    orders[RANDOM] = deletion.random_orders(2 * words)
    both = deletion_curves(same, orders, linear_cosines)
    assert both["same words"].cosines[::2].min() == pytest.approx(1)
    assert both["same words"].area > both[RANDOM].area
    one = deletion_curves(same, orders, linear_cosines, from_both=False)
    assert one["same words"].area == pytest.approx(one[RANDOM].area)  # all words matter equally


def test_a_curve_of_several_orders_is_their_mean(pair):
    orders = deletion.random_orders(13, 3)
    assert orders == deletion.random_orders(13, 5)[:3]
    assert sorted(orders[0]) == list(range(13))
    together = deletion_curves(pair, {RANDOM: orders}, linear_cosines)[RANDOM]
    alone = [deletion_curves(pair, {RANDOM: [order]}, linear_cosines)[RANDOM] for order in orders]
    np.testing.assert_allclose(together.cosines, np.mean([curve.cosines for curve in alone], axis=0))
    assert together.area == pytest.approx(np.mean([curve.area for curve in alone]))


def test_steps_of_long_texts_are_bounded_and_even():
    np.testing.assert_allclose(steps_of(5), [0, 0.2, 0.4, 0.6, 0.8, 1])
    np.testing.assert_allclose(24 * steps_of(24), np.arange(25))
    many = 400 * steps_of(400)
    assert len(many) == 25
    assert (many[0], many[-1]) == (0, 400)
    assert set(np.diff(many).round(6)) <= {16, 17}


def test_the_area_is_the_mean_height():
    line = DeletionCurve(((0, 1),), np.array([0, 0.5, 1]), np.array([1.0, 0.5, 0.0]))
    assert line.area == 0.5
    uneven = DeletionCurve(((0, 1, 2),), np.array([0, 1 / 3, 1]), np.array([1.0, 0.0, 0.0]))
    assert uneven.area == pytest.approx(0.5 / 3)


def test_texts_of_one_word_have_no_curve(embedded):
    one = WordPair.read(lambda text: embedded.tokenize([text])[0], "cat!", "dog")
    assert deletion_curves(one, {"a": [[0, 1]]}, linear_cosines) == {}
    found = compare_methods(PairSimilarity.of(embedded, "cat!", "dog", 6, "mean"))
    assert found.first == found.last == {}
    assert found.by_area == []
    assert all(len(scores) == 2 for scores in found.scores.values())


def test_equal_scores_keep_the_order_of_the_texts():
    assert deletion.by_score(np.array([0.0, 1.0, 0.0, 1.0])) == [1, 3, 0, 2]


def test_the_embedded_models_curves_are_its_own_cosines(embedded):
    texts = "We will rob a bank next week!", "I put money in the bank."
    progress = []
    found = compare_methods(
        PairSimilarity.of(embedded, *texts, 6, "mean"),
        orders_of_random=3,
        progress=lambda done, total: progress.append((done, total)),
    )
    options = embedded.embed_options(None, ["mean"], precision="float32")

    def plain(first, second):
        return float(cosine(*embedded.embed([first, second], options=options)[0, 0]))

    assert set(found.first) == set(found.last) == {*METHODS, RANDOM}
    assert_close(found.cosine, plain(*texts))
    for name in METHODS:
        curve, scores = found.first[name], found.scores[name]
        assert curve.cosines[0] == pytest.approx(found.cosine, abs=1e-5)
        assert curve.cosines[3] == pytest.approx(plain(*found.pair.left(curve.removals[0][:3])), abs=1e-5)
        assert curve.removals[0][0] == int(scores.argmax())
        assert found.last[name].removals[0][0] == int(np.flatnonzero(scores == scores.min())[-1])
    assert found.last[RANDOM] is found.first[RANDOM]
    assert found.by_area == sorted(METHODS, key=lambda name: found.first[name].area)
    assert found.first["left_out"].area < found.first[RANDOM].area
    assert progress[-1][0] == progress[-1][1]
    assert progress[-1][0] <= deletion.most_texts(found.pair.counts, orders_of_random=3)
    done = [done for done, _ in progress]
    assert done == sorted(done)


def test_a_method_that_does_not_apply_is_left_out_with_its_reason(embedded):
    found = compare_methods(PairSimilarity.of(embedded, "a red cat", "a dog", 0, "mean"), both_ways=False)
    assert set(found.not_applicable) == {"rollout"}
    assert set(found.first) == {*METHODS, RANDOM} - {"rollout"}
    assert found.last == {}


def test_it_can_be_stopped(embedded):
    from components.jobs import Stopped

    with pytest.raises(Stopped):
        compare_methods(PairSimilarity.of(embedded, "a red cat", "a dog", 6, "mean"), is_stopped=lambda: True)
