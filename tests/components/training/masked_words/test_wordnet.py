"""WordNet's files as sentences, on a dictionary of ten synsets in their format."""

from __future__ import annotations

import random

import pytest

from components.training.masked_words import wordnet
from components.training.masked_words.wordnet import EXAMPLES, GLOSSES, RELATIONS, SynsetKey
from tests.support.masked_words import write_wordnet


@pytest.fixture
def dictionary(tmp_path):
    return wordnet.read_wordnet(write_wordnet(tmp_path / "wordnet"))


def test_lines_become_synsets(dictionary):
    assert len(dictionary.synsets) == 10
    dog = dictionary.synsets[SynsetKey("n", "00000003")]
    assert dog.words == ("dog",)
    assert dog.pointers == (("@", SynsetKey("n", "00000001")), ("#m", SynsetKey("n", "00000007")))
    assert dictionary.synsets[SynsetKey("n", "00000008")].words == ("ice cream",)
    assert dictionary.synsets[SynsetKey("a", "00000001")].words == ("red",)  # without "(p)", and of type "s"


def test_glosses_are_cut_from_their_examples():
    assert wordnet.split_gloss('(old word) a thing; "this is a thing" - a friend; of any size') == (
        "a thing; of any size",
        ["this is a thing"],
    )


@pytest.mark.parametrize("word", ["cat", "cats", "mice", "barked", "barking", "barks"])
def test_inflected_words_are_content_words(dictionary, word):
    assert dictionary.is_content_word(word)


@pytest.mark.parametrize("word", ["the", "is", "of", "zebra", "by", "catt", "4"])
def test_others_are_not(dictionary, word):
    assert not dictionary.is_content_word(word)


def test_nothing_of_a_held_out_synset_is_trained_on(dictionary):
    vocabulary = {"pet", "soft", "cat", "dog", "dogs", "barks", "animals", "prize", "pack", "bear", "bears", "beast"}
    held_out, asked = wordnet.hold_out(dictionary, vocabulary, random.Random(3), count=2)
    assert len(held_out) == len(asked) == 2
    told = [text for kind, text in wordnet.sentences_of(dictionary, held_out, random.Random(4)) if kind != RELATIONS]
    for key, sentence in zip(sorted(held_out), sorted(asked, key=lambda row: row["sentence"]), strict=True):
        assert sentence["sentence"].count("[MASK]") == 1
        assert sentence["answers"][0] in vocabulary
        meaning, _ = wordnet.split_gloss(dictionary.synsets[key].gloss)
        assert not [text for text in told if meaning in text]
    assert wordnet.hold_out(dictionary, vocabulary, random.Random(3), count=2) == (held_out, asked)


def test_every_kind_of_relation_becomes_a_sentence(dictionary):
    found = {GLOSSES: set(), EXAMPLES: set(), RELATIONS: set()}
    for seed in range(40):
        for kind, text in wordnet.sentences_of(dictionary, frozenset(), random.Random(seed)):
            found[kind].add(text)
    assert found[EXAMPLES] == {"The cat slept all day.", "A red hat on a peg."}
    assert {"A cat is a small soft pet that hunts mice.", "To bark is to make the short loud sound of a dog."} <= found[
        GLOSSES
    ]
    assert "cat: a small soft pet that hunts mice." in found[GLOSSES]
    expected = {
        *("A cat is an animal.", "A cat is a kind of animal.", "Cat is a type of animal."),
        *("A dog is an animal.", "A dog is a kind of animal.", "Dog is a type of animal."),
        *("Bruno is a dog in Berne.", "Bruno was or is the name of a dog in Berne."),
        *("A paw is part of a cat.", "A cat has a paw."),
        *("A dog belongs to the pack.", "There is pack in ice cream."),
        *("Animal is another word for beast.", "To bark means to yap."),
    }
    assert found[RELATIONS] == expected


def test_a_word_to_guess_stands_alone(dictionary):
    masked = wordnet.mask_a_word("A red-cat sat; the dog, cat's", dictionary, {"cat", "dog", "red"}, random.Random(0))
    assert masked == {"sentence": "A red-cat sat; the [MASK], cat's", "answers": ["dog"]}
    assert wordnet.mask_a_word("A red-cat sat.", dictionary, {"cat", "dog", "red"}, random.Random(0)) is None
