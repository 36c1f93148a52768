"""The tokens of a map: where they stand, what they are coloured by, and their vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from components.analysis.maps import token_set
from components.analysis.maps.token_set import PAIR_LABEL, of_corpus, of_pair, of_trace, word_around

TEXTS = ["The bank by the river.", "Unputdownable banks!"]


@pytest.fixture(scope="module")
def trace(embedded):
    return embedded.trace(TEXTS)


def test_every_token_of_a_trace_has_its_own_vector(trace):
    found = of_trace(trace)
    assert len(found) == sum(len(sentence) for sentence in trace.sentences)
    for row, token in enumerate(found.tokens):
        np.testing.assert_array_equal(found.vectors[:, row], trace.hidden_states[:, token.sentence, token.position])
        assert TEXTS[token.sentence][token.start : token.end] == ("" if token.special else token.text)
    assert [token.text for token in found.tokens[:3]] == ["[CLS]", "The", "bank"]
    assert not found.vectors.flags.writeable
    np.testing.assert_array_equal(found.at(3), found.vectors[3])


def test_special_tokens_can_be_left_out_and_the_key_tells(trace):
    found = of_trace(trace, special=False)
    assert not any(token.special for token in found.tokens)
    assert len(found) == len(of_trace(trace)) - 4
    assert found.key != of_trace(trace).key
    assert found.key == of_trace(trace, special=False).key


def test_keys_differ_by_text_that_the_tokenizer_takes_for_the_same(embedded):
    assert of_trace(embedded.trace(["Bank"])).key != of_trace(embedded.trace(["bank"])).key


def test_colours_by_category_and_number(trace):
    found = of_trace(trace)
    assert found.category("sentence")[0] == "1"
    assert found.category("sentence")[-1] == "2"
    assert found.category("special")[:2] == ["special token", "text"]
    assert found.category("token")[1] == "the"
    pieces = [row for row, token in enumerate(found.tokens) if token.word == "Unputdownable"]
    assert len(pieces) > 1
    assert {found.category("word")[row] for row in pieces} == {"unputdownable"}
    assert found.number("position")[:3].tolist() == [0, 1, 2]
    assert found.number("frequency")[1] == 2  # The, the


def test_a_token_in_its_sentence(trace):
    found = of_trace(trace)
    context = found.in_context(2)
    assert (context.before, context.text, context.after) == ("The ", "bank", " by the river.")
    assert found.in_context(2, width=2).before == "…e "
    assert found.in_context(2, width=2).after == " b…"
    special = found.in_context(0)
    assert (special.before, special.text, special.after) == ("", "[CLS]", TEXTS[0])


def test_a_word_is_found_by_its_text_or_as_a_whole(trace):
    found = of_trace(trace)
    assert [found.tokens[row].text for row in found.matching(" BANK ")] == ["bank"]
    assert {found.tokens[row].word for row in found.matching("unputdownable")} == {"Unputdownable"}
    assert found.matching("zzz") == ()


def test_tokens_of_a_corpus_carry_their_sentences_labels(embedded):
    vectors = embedded.token_vectors(TEXTS, max_tokens=6, seed=1)
    found = of_corpus(("a", "key"), vectors, TEXTS, {"topic": ("water", "books")})
    assert len(found) == 6
    for token, topic in zip(found.tokens, found.category("topic"), strict=True):
        assert topic == ("water", "books")[token.sentence]
        assert TEXTS[token.sentence][token.start : token.end] == token.text
    chosen = token_set.choose(found, [0, 2], {"sense": ["x", "y"]})
    assert chosen.tokens == (found.tokens[0], found.tokens[2])
    assert chosen.category("sense") == ["x", "y"]
    assert chosen.key[:2] == ("a", "key")
    assert chosen.key != token_set.choose(found, [0, 3], {}).key
    np.testing.assert_array_equal(chosen.vectors, found.vectors[:, [0, 2]])


@pytest.mark.parametrize(("start", "end", "word"), [(2, 4, "naïve"), (0, 1, "("), (1, 6, "naïve"), (6, 7, ")")])
def test_the_word_around(start, end, word):
    assert word_around("(naïve)", start, end) == word


def test_the_word_around_is_that_of_the_text_and_bounded():
    text = "Ünï_1 don't ²x 3.5 東京タワー a-b C++  हिन्दी"
    words = [(text.index(word), text.index(word) + len(word)) for word in ("Ünï_1", "don't", "3.5", "C++", "हिन्दी")]
    for start in range(len(text) + 1):
        for end in range(start, len(text) + 1):
            first = (
                min((begin for begin, stop in words if begin < start < stop), default=start) if start < end else start
            )
            last = max((stop for begin, stop in words if begin < end < stop), default=end) if start < end else end
            assert word_around(text, start, end) == text[first:last]
    row = "x" * 1_000_000  # looked through for each of its pieces it would take hours
    for start in range(500_000, 503_000):
        assert len(word_around(row, start, start + 1)) == 2 * token_set.MOST_AROUND + 1


PAIR = ("The bank by the river.", "A bank lends money.")


@pytest.fixture(scope="module")
def pair_trace(embedded):
    return embedded.trace([PAIR[1]], [PAIR[0]])


def test_the_tokens_of_a_pair_have_the_vectors_of_plain_transformers(pair_trace, embedded_folder):
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder)
    model = AutoModel.from_pretrained(embedded_folder, attn_implementation="sdpa").eval()
    inputs = tokenizer(PAIR[1], PAIR[0], return_tensors="pt")
    with torch.inference_mode():
        states = torch.stack(model(**inputs, output_hidden_states=True).hidden_states)[
            :, 0
        ].numpy()  # [layer, token, dim]
    found = of_pair(pair_trace, ("first", *PAIR), (2, 1))
    np.testing.assert_allclose(found.vectors, states, atol=1e-5)
    assert [token.position for token in found.tokens] == list(range(states.shape[1]))


def test_the_tokens_of_a_pair_belong_to_the_sentence_of_their_text(pair_trace):
    texts = ("first", *PAIR)
    found = of_pair(pair_trace, texts, (2, 1))
    for token, label in zip(found.tokens, found.labels[PAIR_LABEL], strict=True):
        if token.special:
            assert label == "special tokens"
            continue
        assert texts[token.sentence][token.start : token.end] == token.text
        assert label == ("A" if token.sentence == 2 else "B")
    assert [token.sentence for token in found.tokens if token.special] == [2, 2, 1]  # [CLS], [SEP], [SEP]
    banks = found.matching("bank")
    assert [found.in_context(row).before for row in banks] == ["A ", "The "]


def test_a_pairs_key_tells_what_it_was_made_of(pair_trace, embedded):
    key = of_pair(pair_trace, PAIR, (1, 0)).key
    assert of_pair(pair_trace, PAIR, (1, 0)).key == key
    assert of_pair(pair_trace, PAIR, (1, 0), special=False).key != key
    assert of_pair(pair_trace, (PAIR[0], PAIR[0], PAIR[1]), (2, 0)).key != key
    assert of_pair(embedded.trace([PAIR[0]], [PAIR[1]]), PAIR, (0, 1)).key != key
    without = of_pair(pair_trace, PAIR, (1, 0), special=False)
    assert {*without.labels[PAIR_LABEL]} == {"A", "B"}
    assert not any(token.special for token in without.tokens)
