"""Masking a token in the text, and reading the head's predictions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tokenizers import AddedToken
from transformers import AutoTokenizer, BertForMaskedLM, BertModel

from components.analysis.mask_predictions import (
    Prediction,
    kept_similarity,
    mask_token,
    mean_turns,
    top_predictions,
)
from components.errors import InputError
from components.model.backend import Backend
from components.model.tokenization import Tokenization
from components.model.trace import MaskLogits
from tests.components.analysis import handmade
from tests.support import tiny
from tests.support.closeness import assert_close

TEXTS = ["The cat sat on the bank.", "Walking, we will put money on the bank! é 你 🏦", "banking by the river , walked"]


# One of each kind of tokenizer: pieces in lower case with segments and as they are written without, bytes, letters with their
# spaces, pieces between RoBERTa's marks; a mask that swallows the space before it; the embedded model's.
KINDS = ("bert", "multilingual", "roberta", "xlm-roberta", "mpnet", "swallowing", "embedded")


@pytest.fixture(scope="module")
def tokenizations(embedded):
    found = {name: Tokenization(tiny.tiny_tokenizer(name), 64, name == "bert") for name in KINDS[:5]}
    # The published RoBERTa tokenizers' mask token swallows the space before it; the tiny one's does not.
    swallowing = tiny.byte_level_tokenizer()
    swallowing.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True, special=True, normalized=False)})
    return {**found, "swallowing": Tokenization(swallowing, 64, False), "embedded": embedded.tokenization}


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory):
    """A tiny BERT with its head, and the folder it lies in."""
    folder = tiny.save_tiny_masked_lm(tmp_path_factory.mktemp("masked-lm"))
    return Backend.load(str(folder), device_name="cpu"), folder


def pieces(sentence):
    return [token.piece for token in sentence.tokens]


def trace_with(logits, places):
    """A trace by hand that has only mask logits [mask, vocabulary] to it."""
    sentences = [handmade.words("a b"), handmade.words("c d")]
    trace = handmade.trace(sentences, np.zeros((1, 2, 4, 1)))
    return dataclasses.replace(trace, mask_logits=MaskLogits(tuple(places), np.array(logits, dtype=np.float32)))


def test_large_logits_do_not_overflow():
    """exp(3e38) overflows; only the difference of two scores counts."""
    (found,) = top_predictions(trace_with([[3.0e38, -3.0e38]], [(0, 1)]), ["a", "b"])
    assert [prediction.probability for prediction in found.top] == [1, 0]


def test_the_most_probable_first_and_of_equal_ones_the_lower_id():
    trace = trace_with(np.log([[1, 4, 1, 2], [2, 2, 2, 2]]), [(0, 1), (1, 2)])
    first, second = top_predictions(trace, ("a", "b", "c", "d"), k=3)
    assert (first.sentence, first.position) == (0, 1)
    assert [(one.piece, one.id) for one in first.top] == [("b", 1), ("d", 3), ("a", 0)]
    np.testing.assert_allclose([one.probability for one in first.top], [4 / 8, 2 / 8, 1 / 8], rtol=1e-6)
    assert (second.sentence, second.position) == (1, 2)
    assert second.top == (Prediction("a", 0, 0.25), Prediction("b", 1, 0.25), Prediction("c", 2, 0.25))


def test_more_than_the_vocabulary_has_and_ids_the_tokenizer_does_not_know():
    (found,) = top_predictions(trace_with([[0.0, 3.0, 2.0]], [(0, 1)]), ("a",), k=10)
    assert [(one.piece, one.id) for one in found.top] == [("", 1), ("", 2), ("a", 0)]
    assert sum(one.probability for one in found.top) == pytest.approx(1, abs=1e-12)


def test_no_mask_no_predictions():
    assert top_predictions(trace_with(np.zeros((0, 4)), []), ("a", "b", "c", "d")) == ()


def test_what_cannot_be_asked():
    trace = trace_with([[0.0, 1.0]], [(0, 1)])
    with pytest.raises(ValueError, match="k is 0"):
        top_predictions(trace, ("a", "b"), k=0)
    with pytest.raises(ValueError, match="mask_logits=True"):
        top_predictions(dataclasses.replace(trace, mask_logits=None), ("a", "b"))


@pytest.mark.parametrize("pairs", [None, ["[MASK] cat", "the river", "a"]], ids=["singles", "pairs"])
def test_predictions_equal_torch(masked_lm, pairs):
    backend, folder = masked_lm
    texts = ["the [MASK] sat on the [MASK] .", "a dog", "[MASK] x"]
    found = top_predictions(backend.trace(texts, pairs, mask_logits=True), backend.tokenization.vocabulary, k=5)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoding = tokenizer(texts, pairs, padding=True, return_token_type_ids=True, return_tensors="pt")
    with torch.inference_mode():
        logits = BertForMaskedLM.from_pretrained(folder).eval()(**encoding).logits
    places = (encoding["input_ids"] == tokenizer.mask_token_id).nonzero().tolist()
    assert [[one.sentence, one.position] for one in found] == places
    assert len(places) == (3 if pairs is None else 4)
    for one, (row, column) in zip(found, places, strict=True):
        expected = logits[row, column].double().softmax(-1).topk(5)
        assert [prediction.id for prediction in one.top] == expected.indices.tolist()
        assert [prediction.piece for prediction in one.top] == tokenizer.convert_ids_to_tokens(expected.indices)
        np.testing.assert_allclose([prediction.probability for prediction in one.top], expected.values, rtol=1e-4)


def test_attentions_and_predictions_come_from_one_pass(masked_lm):
    """The way of the page: click a token, mask it, see what would stand there and how attention changes."""
    backend, _ = masked_lm
    passes = backend.forward_passes
    before = backend.trace(["the cat sat on the bank ."], attentions=True, mask_logits=True)
    masked = mask_token(backend.tokenization, before.sentences[0], 2)
    after = backend.trace([masked.text], [masked.pair], attentions=True, mask_logits=True)
    assert backend.forward_passes == passes + 2
    assert after.sentences == (masked.sentence,)
    assert before.mask_logits.positions == ()
    assert after.attentions.shape == before.attentions.shape == (3, 1, 4, 9, 9)
    assert np.abs(after.attentions - before.attentions).max() > 0.01
    np.testing.assert_allclose(after.attentions.sum(-1), 1, atol=1e-5)
    alone = backend.trace([masked.text], attentions=True)
    assert_close(after.attentions, alone.attentions)
    (found,) = top_predictions(after, backend.tokenization.vocabulary, k=len(backend.tokenization.vocabulary))
    assert (found.sentence, found.position) == (0, masked.positions[0]) == (0, 2)
    assert sum(one.probability for one in found.top) == pytest.approx(1, abs=1e-12)
    assert before.sentences[0].tokens[2].id in {one.id for one in found.top}


def test_kept_similarity_equals_two_passes_of_the_library(masked_lm):
    backend, folder = masked_lm
    before = backend.trace(["the cat sat on the bank ."])
    masked = mask_token(backend.tokenization, before.sentences[0], 2)
    kept = kept_similarity(before, backend.trace([masked.text]))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    ids = tokenizer("the cat sat on the bank .", return_tensors="pt")["input_ids"]
    hidden = ids.clone()
    hidden[0, 2] = tokenizer.mask_token_id
    with torch.inference_mode():
        old, new = (
            torch.stack(model(row, output_hidden_states=True).hidden_states)[:, 0].double() for row in (ids, hidden)
        )
    expected = torch.nn.functional.cosine_similarity(old, new, dim=-1)
    assert_close(kept.tokens, expected)
    assert_close(kept.mean, torch.nn.functional.cosine_similarity(old.mean(1), new.mean(1), dim=-1))
    assert_close(np.delete(kept.tokens[0], 2), 1)  # before any block only the masked one differs
    assert kept.tokens[0, 2] < 0.9
    assert kept.tokens[-1].max() < 1


def test_kept_similarity_refuses_other_sentences(masked_lm):
    backend, _ = masked_lm
    with pytest.raises(ValueError, match="not those of one sentence"):
        kept_similarity(backend.trace(["the cat"]), backend.trace(["the cat sat"]))
    both = backend.trace(["the cat", "the bank"])
    with pytest.raises(ValueError, match="not those of one sentence"):
        kept_similarity(both, both)


def assert_masked(tokenization, before, masked):
    """The model reads the same tokens at the same positions, but for the masks; checked on a new tokenization."""
    after = tokenization.tokenize(masked.text, masked.pair, len(before) if before.dropped else None)
    assert after == masked.sentence
    ids = [token.id for token in before.tokens]
    for position in masked.positions:
        ids[position] = tokenization.mask_id
    assert [token.id for token in after.tokens] == ids
    for name in ("segment", "in_pair", "special"):
        assert [getattr(token, name) for token in after.tokens] == [getattr(token, name) for token in before.tokens]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("pair", [None, "the red hat walked."])
@pytest.mark.parametrize("text", TEXTS)
def test_every_whole_word_can_be_masked(tokenizations, name, pair, text):
    tokenization = tokenizations[name]
    sentence = tokenization.tokenize(text, pair)
    words = [token for token in sentence.tokens if token.word is not None]
    assert len(words) > 5
    for token in words:
        masked = mask_token(tokenization, sentence, token.position, whole_word=True)
        assert masked.positions == sentence.word_positions(token.position)
        assert_masked(tokenization, sentence, masked)
        assert (masked.text == sentence.text) == token.in_pair
        assert (masked.pair == sentence.pair) == (not token.in_pair)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_token_alone_is_masked_or_refused_but_never_changes_its_neighbours(tokenizations, name, text):
    tokenization = tokenizations[name]
    sentence = tokenization.tokenize(text, "the red hat walked.")
    done, refused = 0, []
    for token in sentence.tokens:
        if token.word is None:
            continue
        try:
            masked = mask_token(tokenization, sentence, token.position)
        except InputError as problem:
            refused.append((token.position, problem.fix))
        else:
            assert masked.positions == (token.position,)
            assert_masked(tokenization, sentence, masked)
            done += 1
    assert done > 5
    assert all(len(sentence.word_positions(position)) > 1 for position, _ in refused)
    assert all("whole word" in mend for _, mend in refused)


@pytest.mark.parametrize(
    ("name", "text", "position", "expected"),
    [
        ("embedded", "I put money in the bank.", 6, "I put money in the [MASK]."),
        ("embedded", "The Bank, the bank", 2, "The [MASK], the bank"),
        ("embedded", "x  bank", 2, "x  [MASK]"),  # the spaces as typed
        ("embedded", "the [MASK] of", 2, "the [MASK] of"),
        ("bert", "walking red", 2, "walk[MASK] red"),
        ("roberta", "a bank by", 2, "a<mask> by"),  # the piece is "Ġbank": it holds the space
        ("roberta", "a  bank", 3, "a <mask>"),  # "a", "Ġ", "Ġbank"
        ("swallowing", "a bank by", 2, "a <mask> by"),
        ("xlm-roberta", "the bank sat", 2, "the<mask> sat"),
    ],
)
def test_the_text_as_it_is_written(tokenizations, name, text, position, expected):
    tokenization = tokenizations[name]
    masked = mask_token(tokenization, tokenization.tokenize(text), position)
    assert masked.text == expected
    assert masked.sentence.tokens[position].id == tokenization.mask_id


@pytest.mark.parametrize(
    ("name", "text", "position", "expected"),
    [
        ("embedded", "an unaffable man", 3, "an [MASK][MASK][MASK] man"),
        ("bert", "we walked.", 2, "we [MASK][MASK]."),
        ("bert", "the red hat", 2, "the [MASK] hat"),
        ("roberta", "a bank", 2, "a<mask>"),
    ],
)
def test_a_whole_word_gets_a_mask_for_each_piece(tokenizations, name, text, position, expected):
    tokenization = tokenizations[name]
    sentence = tokenization.tokenize(text)
    masked = mask_token(tokenization, sentence, position, whole_word=True)
    assert masked.text == expected
    assert len(masked.sentence) == len(sentence)


@pytest.mark.parametrize("pair", [None, "the river by the bank and the money in it"])
def test_a_text_that_was_cut_is_cut_at_the_same_place(tokenizations, pair):
    for name in ("bert", "roberta", "embedded"):
        tokenization = tokenizations[name]
        sentence = tokenization.tokenize("we will put money on the bank by the river", pair, 10)
        assert sentence.dropped
        for token in sentence.tokens:
            if token.word is not None and len(sentence.word_positions(token.position)) == 1:
                assert_masked(tokenization, sentence, mask_token(tokenization, sentence, token.position))


def test_of_a_word_that_was_cut_the_pieces_that_stayed_are_masked(tokenizations):
    tokenization = tokenizations["bert"]
    sentence = tokenization.tokenize("we walked by", None, 4)
    assert pieces(sentence) == ["[CLS]", "we", "walk", "[SEP]"]
    masked = mask_token(tokenization, sentence, 2, whole_word=True)
    assert masked.positions == (2,)
    assert pieces(masked.sentence) == ["[CLS]", "we", "[MASK]", "[SEP]"]
    assert_masked(tokenization, sentence, masked)


def test_a_first_piece_alone_cannot_be_said_in_text(tokenizations):
    tokenization = tokenizations["bert"]
    sentence = tokenization.tokenize("walking")
    with pytest.raises(InputError) as caught:
        mask_token(tokenization, sentence, 1)
    assert "'walk' at position 1" in caught.value.problem
    assert "whole word" in caught.value.fix
    assert mask_token(tokenization, sentence, 1, whole_word=True).text == "[MASK][MASK]"


@pytest.mark.parametrize("position", [0, 3])
def test_a_special_token_is_not_masked(tokenizations, position):
    tokenization = tokenizations["bert"]
    with pytest.raises(InputError) as caught:
        mask_token(tokenization, tokenization.tokenize("the cat"), position)
    assert "is a special token" in caught.value.problem


@pytest.mark.parametrize("position", [-1, 4])
def test_a_position_that_is_not_there(tokenizations, position):
    tokenization = tokenizations["bert"]
    with pytest.raises(IndexError, match=r"0\.\.3"):
        mask_token(tokenization, tokenization.tokenize("the cat"), position)


def test_a_tokenizer_without_a_mask_token():
    tokenizer = tiny.wordpiece_tokenizer()
    tokenizer.mask_token = None
    tokenization = Tokenization(tokenizer, 64, True)
    with pytest.raises(InputError) as caught:
        mask_token(tokenization, tokenization.tokenize("the cat"), 1)
    assert "no mask token" in caught.value.problem


def test_how_far_the_tokens_that_stay_turn_worked_out_on_paper():
    """In degrees, of the text's own tokens without what is hidden, at the last layer."""
    text = handmade.words("the bank")
    old = np.zeros((2, 1, 4, 2))
    old[..., 0] = 1  # all along the first axis
    new = np.repeat(old, 2, axis=1)
    new[1, 0] = [
        [0, 1],
        [-1, 0],
        [0.5, np.sqrt(0.75)],
        [0, 1],
    ]  # only "bank", by 60 degrees, counts where "the" is hidden
    before, after = handmade.trace([text], old), handmade.trace([text, text], new)
    np.testing.assert_allclose(mean_turns(before, after, [(1,), (1, 2)]), [60, 0], atol=1e-4)
    with pytest.raises(ValueError, match="do not fit"):
        mean_turns(before, after, [(1,)])
