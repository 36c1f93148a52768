from dataclasses import replace

import numpy as np
import pytest

from components.analysis.matched_words import MatchedWord, matched_words, word_vectors
from components.analysis.similarity.cka import layer_cka
from components.model.tokenization import Tokenization
from components.model.trace import Dropped
from tests.components.analysis.handmade import sentence, trace, words
from tests.support.closeness import assert_close
from tests.support.tiny import byte_level_tokenizer

TEXTS = (
    "I put money in the bank.",
    "don't  you?",
    "Zażółć é ñ",
    "I ❤\ufe0f naïve cafés 😀",
    "你好,世界",
    "a\r\n\tb\u200bc\x07d",
    "fill the [MASK] with <mask>",
    "\x01",
)


@pytest.fixture(scope="module")
def byte_level():
    return Tokenization(byte_level_tokenizer(), 512, False)


def texts_of(found: tuple[MatchedWord, ...]) -> list[str]:
    return [word.text for word in found]


def test_a_word_cut_in_pieces_by_both_is_one_word():
    first = sentence("my embankment", [("my", 0, 0, 2), ("em", 1, 3, 5), ("##bankment", 1, 5, 13)])
    second = sentence("my embankment", [("my", 0, 0, 2), ("em", 1, 3, 5), ("##bank", 1, 5, 9), ("##ment", 1, 9, 13)])
    assert matched_words([first], [second]) == (
        MatchedWord(0, "my", (1,), (1,)),
        MatchedWord(0, "embankment", (2, 3), (2, 3, 4)),
    )


def test_what_is_one_word_for_either_side_is_one_word():
    three = sentence("i don't", [("i", 0, 0, 1), ("don", 1, 2, 5), ("'", 2, 5, 6), ("t", 3, 6, 7)])
    two = sentence("i don't", [("i", 0, 0, 1), ("don", 1, 2, 5), ("'t", 2, 5, 7)])
    one = sentence("i don't", [("i", 0, 0, 1), ("don't", 1, 2, 7)])
    assert texts_of(matched_words([three], [two])) == ["i", "don", "'t"]
    assert texts_of(matched_words([three], [one])) == texts_of(matched_words([one], [two])) == ["i", "don't"]
    assert matched_words([three], [one])[1] == MatchedWord(0, "don't", (2, 3, 4), (2,))


def test_words_that_chain_across_both_sides():
    first = sentence("abcdef", [("ab", 0, 0, 2), ("cd", 1, 2, 4), ("ef", 1, 4, 6)])
    second = sentence("abcdef", [("a", 0, 0, 1), ("bc", 1, 1, 3), ("d", 2, 3, 4), ("ef", 3, 4, 6)])
    assert texts_of(matched_words([first], [second])) == ["abcdef"]


def test_a_word_around_a_character_the_other_side_drops():
    whole = sentence("a\x07b c", [("a", 0, 0, 1), ("\x07", 0, 1, 2), ("b", 0, 2, 3), ("c", 1, 4, 5)])
    without = sentence("a\x07b c", [("a", 0, 0, 1), ("b", 1, 2, 3), ("c", 2, 4, 5)])
    assert matched_words([whole], [without]) == (
        MatchedWord(0, "a\x07b", (1, 2, 3), (1, 2)),
        MatchedWord(0, "c", (4,), (3,)),
    )


def test_words_only_one_side_has_are_left_out():
    kept = sentence("a\x07b", [("a", 0, 0, 1), ("\x07", 1, 1, 2), ("b", 2, 2, 3)])
    dropped = sentence("a\x07b", [("a", 0, 0, 1), ("b", 1, 2, 3)])
    assert texts_of(matched_words([kept], [dropped])) == texts_of(matched_words([dropped], [kept])) == ["a", "b"]


def test_both_texts_of_a_pair_with_their_own_places():
    pair = sentence("cat", [("cat", 0, 0, 3)], pair="dog", pair_pieces=[("dog", 0, 0, 3)])
    cut = sentence("cat", [("c", 0, 0, 1), ("##at", 0, 1, 3)], pair="dog", pair_pieces=[("dog", 0, 0, 3)])
    assert matched_words([pair], [cut]) == (
        MatchedWord(0, "cat", (1,), (1, 2)),
        MatchedWord(0, "dog", (3,), (4,)),
    )


def test_a_word_that_truncation_cut_is_left_out():
    whole = words("my embankment dog")
    cut = sentence(
        "my embankment dog",
        [("my", 0, 0, 2), ("em", 1, 3, 5), ("##bank", 1, 5, 9)],
        dropped=(Dropped("ment dog", 9, 2, False),),
    )
    between = replace(words("my embankment"), text="my embankment dog", dropped=(Dropped("dog", 14, 1, False),))
    assert texts_of(matched_words([whole], [cut])) == texts_of(matched_words([cut], [whole])) == ["my"]
    assert texts_of(matched_words([cut], [cut])) == ["my"]  # also where both sides were cut at the same place
    assert texts_of(matched_words([whole], [between])) == ["my", "embankment"]


def test_a_cut_in_one_text_of_a_pair_leaves_the_other_alone():
    whole = sentence(
        "my cat", [("my", 0, 0, 2), ("cat", 1, 3, 6)], pair="a dog", pair_pieces=[("a", 0, 0, 1), ("dog", 1, 2, 5)]
    )
    cut = sentence(
        "my cat",
        [("my", 0, 0, 2), ("cat", 1, 3, 6)],
        pair="a dog",
        pair_pieces=[("a", 0, 0, 1)],
        dropped=(Dropped("dog", 2, 1, True),),
    )
    assert texts_of(matched_words([whole], [cut])) == texts_of(matched_words([cut], [whole])) == ["my", "cat", "a"]


def test_real_truncation(embedded, byte_level):
    text = "the otorhinolaryngologist left"
    pieces = embedded.tokenize([text])[0]
    for limit in range(3, len(pieces)):
        first = embedded.tokenize([text], max_length=limit)
        found = texts_of(matched_words(first, [byte_level.tokenize(text)]))
        left = len(pieces) - limit
        assert found == (["the", "otorhinolaryngologist"] if left == 1 else ["the"])


@pytest.mark.parametrize("text", TEXTS)
def test_wordpiece_beside_byte_level_pieces(embedded, byte_level, text):
    first, second = embedded.tokenize([text]), (byte_level.tokenize(text),)
    found = matched_words(first, second)
    for one, side in ((first[0], "first"), (second[0], "second")):
        positions = [place for word in found for place in getattr(word, side)]
        assert positions == sorted(set(positions))  # in order, none twice
        for word in found:
            places = getattr(word, side)
            assert set(places) == {other for place in places for other in one.word_positions(place)}  # whole words
            assert all(one.surface(place) in word.text for place in places)
    mirrored = matched_words(second, first)
    assert [(word.text, word.second, word.first) for word in mirrored] == [
        (word.text, word.first, word.second) for word in found
    ]


def test_the_words_of_a_sentence(embedded, byte_level):
    texts = ("I don't know the café.", "a bank")
    found = matched_words(embedded.tokenize(texts), [byte_level.tokenize(text) for text in texts])
    assert [(word.sentence, word.text) for word in found] == [
        *((0, text) for text in ("I", "don", "'t", "know", "the", "café", ".")),
        *((1, text) for text in ("a", "bank")),
    ]


def test_no_text_gives_no_words():
    assert matched_words([], []) == matched_words([sentence("\x01", [])], [sentence("\x01", [])]) == ()


def test_other_texts_are_refused():
    with pytest.raises(ValueError, match="1 and 2 sentences"):
        matched_words([words("a")], [words("a"), words("b")])
    with pytest.raises(ValueError, match="sentence 1 is of different texts"):
        matched_words([words("a"), words("b")], [words("a"), words("c")])
    with pytest.raises(ValueError, match="different texts"):
        matched_words([words("a")], [sentence("a", [("a", 0, 0, 1)], pair="b")])


# Vectors


def test_a_words_vector_is_the_mean_of_its_pieces():
    hidden = np.zeros((2, 2, 4, 2))
    hidden[0, 0] = [[9, 9], [1, 2], [3, 6], [9, 9]]
    hidden[0, 1] = [[9, 9], [5, 5], [9, 9], [9, 9]]
    hidden[1] = hidden[0] * 10
    run = trace([sentence("jumping", [("jump", 0, 0, 4), ("##ing", 0, 4, 7)]), words("cat")], hidden)
    vectors = word_vectors(run, [(0, (1, 2)), (1, (1,)), (0, (2,))])
    assert vectors.tolist() == [[[2, 4], [5, 5], [3, 6]], [[20, 40], [50, 50], [30, 60]]]
    assert vectors.dtype == np.float32
    assert word_vectors(run, []).shape == (2, 0, 2)
    with pytest.raises(IndexError):
        word_vectors(run, [(1, (3,))])  # padding


def test_two_models_compared_by_their_words(tiny_backends):
    texts = ["the cat sat on the bank by the river .", "a dog ran , we will walk !", "walking red hat in money"]
    bert, roberta = (tiny_backends[name].run(texts) for name in ("bert", "roberta"))
    found = matched_words(bert.sentences, roberta.sentences)
    assert [word.text for word in found] == [word for text in texts for word in text.split()]
    a = word_vectors(bert, [(word.sentence, word.first) for word in found])
    b = word_vectors(roberta, [(word.sentence, word.second) for word in found])
    assert a.shape == b.shape == (4, len(found), 32)
    for index, word in enumerate(found):
        for vectors, run, places in ((a, bert, word.first), (b, roberta, word.second)):
            assert run.sentences[word.sentence].word_positions(places[0]) == places
            theirs = np.mean([run.hidden_states[:, word.sentence, place] for place in places], axis=0)
            assert_close(vectors[:, index], theirs)
    compared = layer_cka(a, b)
    assert compared.matrix.shape == (4, 4)
    assert compared.tokens == len(found) == 23
