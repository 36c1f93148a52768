"""Pseudo-perplexity: the numbers of a plain loop over transformers, token by token."""

from __future__ import annotations

import math

import numpy as np
import pytest

from components.jobs import Stopped
from components.model.guesses import passes
from tests.support.closeness import assert_close

TEXT = "the walking cat sat on the river bank"


def plain_bits(plain, text, pair=None):
    """-log2 of the probability of each token but the special ones, each hidden alone; NaN for special ones."""
    ids = plain.inputs(text, pair=pair)["input_ids"][0].tolist()
    special = plain.tokenizer(text, pair, return_special_tokens_mask=True)["special_tokens_mask"]
    bits = []
    for position, number in enumerate(ids):
        if special[position] or number == plain.tokenizer.mask_token_id:
            bits.append(math.nan)
            continue
        scores = plain.scores(text, (position,), pair)
        bits.append(-float(scores[position].log_softmax(-1)[number]) / math.log(2))
    return np.array(bits)


def test_every_architecture_equals_a_plain_loop(each):
    backend, plain = each
    surprises = backend.surprises(TEXT)
    expected = plain_bits(plain, TEXT)
    assert_close(surprises.bits, expected, 1e-5)
    assert_close(surprises.pseudo_perplexity, 2 ** np.nanmean(expected), 1e-4)
    assert_close(surprises.pseudo_perplexity, np.exp(np.nanmean(expected * np.log(2))), 1e-4)
    assert_close(surprises.probabilities, 2**-expected, 1e-5)
    assert (surprises.ranks > 0).tolist() == (~np.isnan(expected)).tolist()


def test_a_word_of_several_pieces_is_the_sum_of_its_pieces(bert):
    backend, _ = bert
    surprises = backend.surprises(TEXT)
    words = surprises.words
    assert [word.text for word in words] == TEXT.split()
    assert words[1].positions == (2, 3)
    for word in words:
        assert word.bits == pytest.approx(surprises.bits[list(word.positions)].sum())
    assert sum(word.bits for word in words) == pytest.approx(np.nansum(surprises.bits))


def test_pairs_and_masks_of_which_nothing_is_known(bert):
    backend, plain = bert
    text, pair = "the [MASK] sat", "a red hat"
    surprises = backend.surprises(text, pair)
    assert_close(surprises.bits, plain_bits(plain, text, pair), 1e-5)
    assert np.isnan(surprises.bits[2])
    assert surprises.ranks[2] == 0
    assert [word.text for word in surprises.words] == ["the", "sat", "a", "red", "hat"]
    assert surprises.first_ids[2] >= 0
    assert surprises.first_ids[0] == -1
    only_masks = backend.surprises("[MASK]")
    assert math.isnan(only_masks.pseudo_perplexity)
    assert only_masks.words == ()


def test_looking_left_the_first_words_do_not_know_what_follows(bert):
    backend, _ = bert
    first, second = (backend.surprises(f"the cat sat {end}", only_left=True) for end in ("on a hat", "by the bank"))
    assert_close(first.bits[1:4], second.bits[1:4], 1e-5)
    assert first.only_left


def test_a_long_text_can_be_stopped_and_says_how_far_it_is(bert):
    backend, _ = bert
    long = "the cat sat on a bank " * 10
    seen = []
    backend.surprises(long, max_length=60, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (58, 58)
    assert seen == sorted(seen)
    assert len(seen) == math.ceil(58 / (passes.PASS_TOKENS // 60))
    with pytest.raises(Stopped):
        backend.surprises(long, max_length=59, is_stopped=lambda: True)
    assert not backend.surprises_take_long(60)
    assert backend.surprises_take_long(500)


def test_other_guesses_are_no_surprise(bert):
    backend, _ = bert
    with pytest.raises(ValueError, match="in turn"):
        passes.surprises_of(backend.guesses(TEXT, layers=(3,)))
    with pytest.raises(ValueError, match="one layer"):
        passes.surprises_of(backend.guesses_in_turn(TEXT))
