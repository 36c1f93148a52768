"""The words of sentences, and which of them comes first."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.first_look.words import (
    MOST_TWINS,
    chosen_everywhere,
    interest,
    places_of,
    twins_of,
    words_of,
)
from components.analysis.matched_words import word_vectors
from components.model.backend import Backend
from tests.components.analysis.handmade import sentence, words
from tests.support.unseen_sentences import UNSEEN

EMBED = sentence(
    "my embankment, 2", [("my", 0, 0, 2), ("em", 1, 3, 5), ("##bankment", 1, 5, 13), (",", 2, 13, 14), ("2", 3, 15, 16)]
)


def test_a_word_has_its_pieces_and_its_characters_and_punctuation_is_none() -> None:
    found = words_of([words("A bank"), EMBED])
    assert [(word.sentence, word.text, word.positions) for word in found] == [
        (0, "A", (1,)),
        (0, "bank", (2,)),
        (1, "my", (1,)),
        (1, "embankment", (2, 3)),
        (1, "2", (5,)),
    ]
    assert all(EMBED.text[word.start : word.end] == word.text for word in found if word.sentence == 1)
    assert [word.is_content for word in found] == [False, True, False, True, False]
    assert found[3].last == 3


def test_other_occurrences_are_those_of_content_words_in_any_form() -> None:
    found = words_of([words("the bank of the river"), words("Banks burst")])
    twins = twins_of(found)
    assert {
        found[number].text: [found[other].text for other in others] for number, others in enumerate(twins) if others
    } == {
        "bank": ["Banks"],
        "Banks": ["bank"],
    }


def test_of_a_repeated_word_the_occurrence_that_is_least_similar_to_another() -> None:
    sentences = [words("bank one"), words("bank two"), words("bank three")]
    found = words_of(sentences)
    vectors = np.eye(6)
    vectors[0], vectors[2], vectors[4] = np.eye(6)[0], [0.8, 0.6, 0, 0, 0, 0], [0.9, 0.1, 0, 0, 0, 0]
    number = 2 * interest(sentences, vectors=lambda _: vectors).row  # "bank" is the first of two words in each
    cosines = {
        (a, b): vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b])
        for a in (0, 2, 4)
        for b in (0, 2, 4)
        if a != b
    }
    assert any(number in pair for pair, value in cosines.items() if value == min(cosines.values()))
    assert found[number].text == "bank"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["The trophy does not fit in the suitcase because it is too big."], "it"),
        (["It is too big."], "big"),
        (["The food was good.", "The food was not good."], "good"),
        (
            [
                "We will rob a bank next week!",
                "The children skipped stones by the bank of the river.",
                "I put money in the bank.",
            ],
            "bank",
        ),
        (["Thunder rolled over the mountains."], "Thunder"),
    ],
)
def test_the_rule_on_the_included_model(embedded: Backend, texts: list[str], expected: str) -> None:
    trace = embedded.trace(texts)
    found = words_of(trace.sentences)
    vectors = word_vectors(trace, [(word.sentence, word.positions) for word in found])[-1]
    chosen = interest(trace.sentences, vectors=lambda _: vectors)
    place = (chosen.row, chosen.positions[chosen.row])
    number = next(number for number, word in enumerate(found) if (word.sentence, word.positions[0]) == place)
    assert found[number].text == expected
    if expected == "bank":  # the river's, and not the first one
        assert found[number].sentence == 1
    if expected == "Thunder":  # the highest id
        assert found[number].rarity == max(word.rarity for word in found if word.is_content)


def test_without_a_word_there_is_no_choice() -> None:
    assert words_of([words("! ?")]) == ()
    assert interest([words("! ?")]).positions == (1,)


def test_a_word_that_stands_thousands_of_times_takes_no_time_that_grows_with_its_square() -> None:
    text = words(" ".join(["bank"] * 3_000))
    twins = twins_of(words_of([text]))
    assert max(map(len, twins)) <= MOST_TWINS
    assert len(places_of([text], 0, 2_500)) == 3_000  # all of them are found where they are asked for
    assert interest([text]).row == 0


@pytest.mark.parametrize("name", UNSEEN)
def test_the_word_of_sentences_that_nobody_had_in_view(embedded: Backend, name: str) -> None:
    texts, row, expected = UNSEEN[name]
    trace = embedded.trace(texts)
    found = interest(
        trace.sentences,
        vectors=lambda all_words: word_vectors(trace, [(word.sentence, word.positions) for word in all_words])[-1],
    )
    assert [one.word_text(place) for one, place in zip(trace.sentences, found.positions, strict=True)] == expected, name
    assert found.row == row
    assert not any(one.tokens[place].special for one, place in zip(trace.sentences, found.positions, strict=True))


def test_special_tokens_alone_have_the_first_of_them() -> None:
    assert interest([sentence("\x01", [])]).positions == (0,)
    assert interest([]).positions == ()


def test_vectors_are_asked_for_only_where_they_decide() -> None:
    def refused(_: object) -> np.ndarray:
        raise AssertionError

    for texts in (["the bank"], ["a bank", "my bank"], ["one cat", "two dogs"]):
        assert interest([words(text) for text in texts], vectors=refused).row == 0
    asked: list[int] = []

    def given(of: object) -> np.ndarray:
        asked.append(1)
        return np.array([[1, 0], [1, 0], [1, 0.1], [0, 1]])

    found = interest([words("bank money"), words("bank money")], vectors=given)
    assert asked == [1]
    assert found.positions == (2, 2)  # "money": its occurrences differ more
    assert interest([words("bank money"), words("bank money")]).positions in {
        (1, 1),
        (2, 2),
    }  # without vectors: the rarer


def test_a_ready_made_set_names_its_words() -> None:
    pair = [words("The car stopped"), words("The bike fell")]
    assert interest(pair, ["CAR", "bike"]).positions == (2, 2)
    assert interest(pair, ["car", "plane"]).positions == interest(pair).positions  # one that is not there
    masked = [sentence("a [MASK]", [("a", 0, 0, 1), ("[MASK]", 1, 2, 8)])]
    assert interest(masked, ["[mask]"]).positions == (2,)


def test_a_click_chooses_the_word_in_all_sentences() -> None:
    pair = [words("the bank by the bank !"), words("Banks burst !"), words("a cat")]
    assert chosen_everywhere(pair, (1, 2, 2), 0, 5) == (5, 1, 2)
    assert chosen_everywhere(pair, (2, 1, 2), 1, 1) == (2, 1, 2)
    assert chosen_everywhere(pair, (5, 2, 2), 1, 1) == (5, 1, 2)  # the occurrence that was chosen there stays
    assert chosen_everywhere(pair, (2, 1, 2), 0, 6) == (6, 3, 2)  # a mark is chosen where it stands
    assert chosen_everywhere(pair, (2, 1, 2), 0, 0) == (0, 0, 0)  # and so is [CLS]
    assert places_of(pair, 0, 2) == ((0, 2), (0, 5), (1, 1))
    assert places_of(pair, 0, 1) == ((0, 1), (0, 4))  # a function word


def test_function_words_are_those_of_the_sentences_language() -> None:
    german = words_of([words("Die Bank und die Uhr")])
    assert [word.text for word in german if word.is_content] == ["Bank", "Uhr"]
    english = words_of([words("They die in the war")])
    assert [word.text for word in english if word.is_content] == ["die", "war"]
