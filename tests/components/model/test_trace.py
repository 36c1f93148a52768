"""The record of a forward pass."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from components.model.tokenization import Tokenization
from components.model.trace import EmbeddingParts, MaskLogits, Trace
from tests.support import tiny


@pytest.fixture(scope="module")
def trace():
    """Two sentences, the second a pair: 2 blocks, 4 dimensions, values that tell their place."""
    tokenization = Tokenization(tiny.wordpiece_tokenizer(), 64, True)
    sentences = (tokenization.tokenize("The walking cat"), tokenization.tokenize("a dog sat", "on it"))
    ids, mask, segments = tokenization.arrays(sentences)
    shape = (*ids.shape, 4)
    hidden = np.arange(3 * np.prod(shape), dtype=np.float32).reshape(3, *shape)
    parts = EmbeddingParts(*(np.full(shape, value, dtype=np.float32) for value in (1, 2, 4)))
    return Trace(
        "m",
        "r",
        sentences,
        ids,
        mask,
        segments,
        hidden,
        attentions=np.zeros((2, 2, 2, ids.shape[1], ids.shape[1]), dtype=np.float32),
        embedding_parts=parts,
        pooler_output=np.zeros((2, 4), dtype=np.float32),
        mask_logits=MaskLogits(((0, 1),), np.zeros((1, 30), dtype=np.float32)),
    )


def arrays_of(trace):
    """Every array in the record, found by its type and not by name."""
    found = []
    for holder in (trace, trace.embedding_parts, trace.mask_logits):
        for field in dataclasses.fields(holder):
            value = getattr(holder, field.name)
            if isinstance(value, np.ndarray):
                found.append(value)
    return found


def test_no_array_can_be_written(trace):
    arrays = arrays_of(trace)
    assert len(arrays) == 11
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_the_record_itself_is_frozen(trace):
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.model = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.sentences[0].tokens[0].id = 7


def test_bytes_are_those_of_all_arrays(trace):
    assert trace.nbytes == sum(array.nbytes for array in arrays_of(trace))


def test_special_covers_special_tokens_and_padding(trace):
    assert trace.input_ids.shape == (2, 8)
    pieces = [token.piece for token in trace.sentences[0].tokens]
    assert pieces == ["[CLS]", "the", "walk", "##ing", "cat", "[SEP]"]
    np.testing.assert_array_equal(trace.special_mask.astype(int), [[1, 0, 0, 0, 0, 1, 1, 1], [1, 0, 0, 0, 1, 0, 0, 1]])


def test_a_word_is_all_its_pieces(trace):
    sentence = trace.sentences[0]
    assert sentence.word_positions(2) == sentence.word_positions(3) == (2, 3)
    assert sentence.word_text(3) == "walking"
    assert [sentence.surface(i) for i in range(6)] == ["", "The", "walk", "ing", "cat", ""]
    assert sentence.word_positions(0) == (0,)
    assert sentence.word_text(0) == "[CLS]"


def test_words_of_a_pair_are_counted_and_read_in_their_own_text(trace):
    sentence = trace.sentences[1]
    pieces = [token.piece for token in sentence.tokens]
    assert pieces == ["[CLS]", "a", "dog", "sat", "[SEP]", "on", "[UNK]", "[SEP]"]
    assert sentence.word_positions(5) == (5,)  # "on" has the same word index as "a"
    assert (sentence.word_text(1), sentence.word_text(5), sentence.surface(6)) == ("a", "on", "it")


def test_vectors_of_chosen_tokens(trace):
    vectors = trace.token_vectors(1, [3, 0])
    assert vectors.shape == (3, 2, 4)
    for layer in range(3):
        np.testing.assert_array_equal(vectors[layer], trace.hidden_states[layer, 1][[3, 0]])


@pytest.mark.parametrize("positions", [[], [6], [-1], [0, 99]])
def test_padding_and_places_outside_are_not_tokens(trace, positions):
    assert len(trace.sentences[0]) == 6
    with pytest.raises(IndexError, match=r"0\.\.5"):
        trace.token_vectors(0, positions)


def test_layers_are_counted_without_the_embedding_output(trace):
    assert trace.n_layers == 2


def test_the_parts_are_summed(trace):
    np.testing.assert_array_equal(trace.embedding_parts.total, np.full((2, 8, 4), 7))
    without_segments = EmbeddingParts(trace.embedding_parts.word, trace.embedding_parts.position, None)
    np.testing.assert_array_equal(without_segments.total, np.full((2, 8, 4), 3))
