from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from components.analysis.attention.weights import (
    TextsFilter,
    combine,
    merge_words,
    of_sentence,
    received_from,
    renormalised,
    second_text,
    select_pair,
    without_special,
)
from components.errors import InputError
from components.model.trace import TraceOptions
from tests.components.analysis.handmade import sentence, trace, words
from tests.support.closeness import assert_close


def random_attention(*shape: int, seed: int = 3) -> np.ndarray:
    """Rows that sum to 1, float64 [..., query, key]."""
    weights = np.random.default_rng(seed).random(shape)
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture
def jumping():
    """[CLS] jump ##ing cats [SEP]"""
    return sentence("jumping cats", [("jump", 0, 0, 4), ("##ing", 0, 4, 7), ("cats", 1, 8, 12)])


@pytest.fixture
def question():
    """[CLS] who ran [SEP] the cat ##s [SEP], both texts with words 0 and 1."""
    return sentence(
        "who ran",
        [("who", 0, 0, 3), ("ran", 1, 4, 7)],
        pair="the cats",
        pair_pieces=[("the", 0, 0, 3), ("cat", 1, 4, 7), ("##s", 1, 7, 8)],
    )


# One sentence of a trace


def test_a_sentences_attentions_come_without_padding(tiny_backends):
    run = tiny_backends["bert"].run(["the cat", "the cat sat on the bank ."], options=TraceOptions(attentions=True))
    short = of_sentence(run, 0)
    assert short.shape == (3, 4, 4, 4)  # [CLS] the cat [SEP]
    np.testing.assert_array_equal(short, run.attentions[:, 0, :, :4, :4])
    for row in (0, 1):
        assert_close(of_sentence(run, row).sum(axis=-1), 1)
    assert np.shares_memory(short, run.attentions)  # 151 MB are not copied


def test_a_trace_without_attentions_says_so(tiny_backends):
    with pytest.raises(ValueError, match="attentions=True"):
        of_sentence(tiny_backends["bert"].run(["the cat"]), 0)


# Words


def test_words_worked_out_on_paper(jumping):
    attention = np.array(
        [
            [0.5, 0.1, 0.2, 0.1, 0.1],
            [0.0, 0.4, 0.2, 0.4, 0.0],
            [0.2, 0.0, 0.0, 0.6, 0.2],
            [0.1, 0.3, 0.3, 0.2, 0.1],
            [0.0, 0.0, 0.0, 0.0, 1.0],
        ]
    )
    merged = merge_words(attention, jumping)
    assert merged.labels == ("[CLS]", "jumping", "cats", "[SEP]")
    assert merged.special.tolist() == [True, False, False, True]
    np.testing.assert_allclose(
        merged.matrix,
        [
            [0.5, 0.3, 0.1, 0.1],
            [0.1, 0.3, 0.5, 0.1],  # the mean of the rows of jump and ##ing
            [0.1, 0.6, 0.2, 0.1],
            [0.0, 0.0, 0.0, 1.0],
        ],
        atol=1e-12,
    )


def test_rows_over_words_still_sum_to_one(jumping, question):
    for one in (jumping, question):
        attention = random_attention(2, 3, len(one), len(one))
        merged = merge_words(attention, one)
        assert merged.matrix.shape == (2, 3, len(merged.labels), len(merged.labels))
        np.testing.assert_allclose(merged.matrix.sum(axis=-1), 1, atol=1e-12)
        for block in range(2):
            for head in range(3):
                np.testing.assert_array_equal(
                    merged.matrix[block, head], merge_words(attention[block, head], one).matrix
                )


def test_words_of_one_piece_change_nothing():
    one = words("the cat sat")
    attention = random_attention(5, 5)
    merged = merge_words(attention, one)
    np.testing.assert_array_equal(merged.matrix, attention)


def test_equal_word_numbers_of_two_texts_stay_apart():
    """Even without a mark between them, word 0 of one text and word 0 of the other are two words."""
    marked = sentence("who", [("who", 0, 0, 3)], pair="cat", pair_pieces=[("cat", 0, 0, 3)])
    text = [token for token in marked.tokens if not token.special]
    unmarked = replace(marked, tokens=tuple(replace(token, position=at) for at, token in enumerate(text)))
    assert merge_words(random_attention(2, 2), unmarked).labels == ("who", "cat")


def test_merging_a_real_tokenization(tiny_backends):
    run = tiny_backends["bert"].run(["walking cats ran", "x"], options=TraceOptions(attentions=True))
    first = run.sentences[0]
    merged = merge_words(of_sentence(run, 0), first)
    assert merged.matrix.dtype == np.float32
    assert merged.labels[:2] == ("[CLS]", "walking")
    assert first.word_positions(1) == (1, 2)
    assert_close(merged.matrix.sum(axis=-1), 1)


def test_the_separators_of_a_byte_level_pair_are_words_of_their_own(tiny_backends):
    pair = tiny_backends["roberta"].tokenize(["a bank"], ["an x"])[0]
    merged = merge_words(random_attention(len(pair), len(pair)), pair)
    assert merged.labels == ("<s>", "a", "bank", "</s>", "</s>", "an", "x", "</s>")
    assert merged.second.tolist() == [False] * 5 + [True] * 3
    assert merged.special.tolist() == [label.endswith("s>") for label in merged.labels]


@pytest.mark.parametrize("shape", [(4, 4), (5, 6), (6, 5), (5,)])
def test_attention_over_other_tokens_is_refused(jumping, shape):
    with pytest.raises(ValueError, match=r"5 x 5 tokens"):
        merge_words(np.zeros(shape), jumping)


# Without special tokens


SPECIAL = np.array([True, False, False, True])
ROWS = np.array(
    [
        [1.0, 0.0, 0.0, 0.0],
        [0.5, 0.1, 0.3, 0.1],
        [0.7, 0.0, 0.0, 0.3],
        [0.0, 0.0, 0.0, 1.0],
    ]
)


def test_rows_keep_the_share_that_is_left():
    np.testing.assert_array_equal(without_special(ROWS, SPECIAL), [[0.1, 0.3], [0, 0]])


def test_nothing_but_special_tokens_leaves_an_empty_matrix():
    assert without_special(ROWS, np.ones(4, bool)).shape == (0, 0)
    with pytest.raises(ValueError, match=r"3 x 3 tokens"):
        without_special(ROWS, np.ones(3, bool))


def test_without_special_tokens_nothing_changes():
    np.testing.assert_array_equal(without_special(ROWS, np.zeros(4, bool)), ROWS)


def test_renormalised_rows_are_the_softmax_over_the_keys_that_are_left():
    scores = torch.from_numpy(np.random.default_rng(5).normal(scale=3, size=(2, 3, 4, 4)))
    left = renormalised(without_special(torch.softmax(scores, -1).numpy(), SPECIAL))
    kept = torch.from_numpy(~SPECIAL)
    np.testing.assert_allclose(left, torch.softmax(scores[..., kept, :][..., kept], -1), atol=1e-12)
    np.testing.assert_allclose(left.sum(axis=-1), 1, atol=1e-12)


def test_a_row_that_gives_nothing_to_the_keys_that_are_left_has_no_shares():
    np.testing.assert_array_equal(renormalised(np.array([[1, 3], [0, 0]])), [[0.25, 0.75], [np.nan, np.nan]])
    assert renormalised(np.zeros((0, 0))).shape == (0, 0)


# Heads combined


@pytest.fixture
def heads():
    return random_attention(3, 4, 5, 5)


def test_the_mean_and_the_maximum_of_chosen_heads(heads):
    chosen = np.array([heads[block, head] for block in (0, 2) for head in (1, 3)])
    np.testing.assert_allclose(combine(heads, [0, 2], [3, 1]), chosen.mean(axis=0), atol=1e-12)
    np.testing.assert_array_equal(combine(heads, [2, 0], [1, 3], "max"), chosen.max(axis=0))


def test_the_means_rows_sum_to_one_and_the_maximums_to_at_least_one(heads):
    everything = range(3), range(4)
    np.testing.assert_allclose(combine(heads, *everything).sum(axis=-1), 1, atol=1e-12)
    assert (combine(heads, *everything, "max").sum(axis=-1) >= 1).all()
    assert (combine(heads, *everything, "max") >= combine(heads, *everything)).all()


@pytest.mark.parametrize("how", ["mean", "max"])
def test_one_head_is_itself_however_often_it_is_named(heads, how):
    np.testing.assert_allclose(combine(heads, [1], [2], how), heads[1, 2], atol=1e-12)
    np.testing.assert_allclose(combine(heads, [1, 1], [2, 2], how), heads[1, 2], atol=1e-12)


@pytest.mark.parametrize(
    ("blocks", "chosen", "how", "message"),
    [
        ([3], [0], "mean", r"blocks \[3\] are not all within 0..2"),
        ([0], [-1], "mean", r"heads \[-1\] are not all within 0..3"),
        ([], [0], "mean", "at least one"),
        ([0], [], "max", "at least one"),
        ([0], [0], "sum", "'sum'.*mean, max"),
    ],
)
def test_what_cannot_be_combined_is_refused(heads, blocks, chosen, how, message):
    with pytest.raises(ValueError, match=message):
        combine(heads, blocks, chosen, how)


# Chosen queries


def test_chosen_queries_summed():
    np.testing.assert_allclose(received_from(ROWS, [1, 2]), [1.2, 0.1, 0.3, 0.4])
    np.testing.assert_allclose(received_from(ROWS, [2, 1, 2]), received_from(ROWS, [1, 2]))
    assert received_from(ROWS, []).tolist() == [0, 0, 0, 0]


def test_what_is_received_sums_to_the_number_of_queries(heads):
    for queries in ([], [4], [0, 2, 3], range(5)):
        received = received_from(heads, queries)
        assert received.shape == (3, 4, 5)
        np.testing.assert_allclose(received.sum(axis=-1), len(queries), atol=1e-12)


@pytest.mark.parametrize("queries", [[4], [-1], [0, 9]])
def test_queries_that_are_not_there_are_refused(queries):
    with pytest.raises(ValueError, match=r"within 0..3"):
        received_from(ROWS, queries)


# TextsFilter of a pair


def test_the_mark_between_the_texts_belongs_to_the_first(question):
    assert second_text(question).tolist() == [False] * 4 + [True] * 4
    assert not second_text(words("the cat")).any()


@pytest.mark.parametrize("name", ["bert", "electra", "distilbert", "roberta"])
def test_real_pairs_begin_their_second_text_at_its_first_piece(tiny_backends, name):
    pair = tiny_backends[name].tokenize(["the bank"], ["a cat"])[0]
    second = second_text(pair)
    start = int(second.argmax())
    assert pair.tokens[start].in_pair
    assert pair.tokens[start - 1].special
    assert second.tolist() == [False] * start + [True] * (len(pair) - start)
    if name in {"bert", "electra"}:  # those with segments
        assert second.tolist() == [token.segment == 1 for token in pair.tokens]


def test_a_second_text_of_which_nothing_is_left_keeps_its_mark(embedded):
    pair = embedded.tokenize(["a bank"], ["\x01"])[0]  # the tokenizer drops control characters
    assert [token.piece for token in pair.tokens] == ["[CLS]", "a", "bank", "[SEP]", "[SEP]"]
    assert second_text(pair).tolist() == [False] * 4 + [True]


def test_the_four_parts_make_up_the_whole(question):
    attention = random_attention(2, 8, 8)
    parts = {which: select_pair(attention, question, which) for which in get_args(TextsFilter)}
    first, second = (0, 1, 2, 3), (4, 5, 6, 7)
    assert (parts["ab"].queries, parts["ab"].keys) == (first, second)
    assert (parts["ba"].queries, parts["ba"].keys) == (second, first)
    np.testing.assert_array_equal(parts["ab"].matrix, attention[:, :4, 4:])
    rows = [
        np.concatenate([parts[left].matrix, parts[right].matrix], -1) for left, right in (("aa", "ab"), ("ba", "bb"))
    ]
    np.testing.assert_array_equal(np.concatenate(rows, -2), attention)
    np.testing.assert_array_equal(parts["all"].matrix, attention)
    assert parts["all"].queries == parts["all"].keys == first + second


def test_one_text_has_itself_and_no_second():
    attention, one = random_attention(4, 4), words("the cat")
    for which in ("all", "aa"):
        np.testing.assert_array_equal(select_pair(attention, one, which).matrix, attention)
    for which in ("ab", "ba", "bb"):
        with pytest.raises(InputError) as caught:
            select_pair(attention, one, which)
        assert "only one text" in caught.value.problem
        assert "sentence B" in caught.value.fix


def test_other_selections_and_other_tokens_are_refused(question):
    with pytest.raises(ValueError, match=r"'ac'.*all, aa, ab, ba, bb"):
        select_pair(random_attention(8, 8), question, "ac")
    with pytest.raises(ValueError, match="8 x 8 tokens"):
        select_pair(random_attention(4, 4), question, "ab")


def test_the_steps_in_their_order(question):
    """Words, then without special tokens, then from A to B: what is left is who, ran by the, cats."""
    attention = random_attention(8, 8)
    merged = merge_words(attention, question)
    plain = without_special(merged.matrix, merged.special)
    part = select_pair(plain, merged.second[~merged.special], "ab")
    assert (part.queries, part.keys) == ((0, 1), (2, 3))
    expected = [[attention[query, 4], attention[query, 5] + attention[query, 6]] for query in (1, 2)]
    np.testing.assert_allclose(part.matrix, expected, atol=1e-12)


def test_attention_of_the_trace_is_not_changed(tiny_backends):
    run = tiny_backends["bert"].run(["the cat sat"], options=TraceOptions(attentions=True))
    before = run.attentions.copy()
    attention = of_sentence(run, 0)
    for result in (
        merge_words(attention, run.sentences[0]).matrix,
        without_special(attention, run.special_mask[0]),
        combine(attention, [0], [0]),
        received_from(attention, [1]),
        renormalised(attention),
        select_pair(attention, run.sentences[0]).matrix,
    ):
        result[:] = 7
    np.testing.assert_array_equal(run.attentions, before)


def test_a_handmade_trace_has_no_attentions():
    with pytest.raises(ValueError, match="no attentions"):
        of_sentence(trace([words("cat")], np.zeros((2, 1, 3, 2))), 0)
