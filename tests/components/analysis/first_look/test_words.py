"""The words of sentences, and which of them comes first."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.first_look.words import first_choice, twins_of, words_of
from components.analysis.matched_words import word_vectors
from components.model.backend import Backend
from tests.components.analysis.handmade import sentence, words

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
    found = words_of([words("bank one"), words("bank two"), words("bank three")])
    vectors = np.eye(6)
    vectors[0], vectors[2], vectors[4] = np.eye(6)[0], [0.8, 0.6, 0, 0, 0, 0], [0.9, 0.1, 0, 0, 0, 0]
    number = first_choice(found, vectors)
    assert number is not None
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
    number = first_choice(found, vectors)
    assert number is not None
    assert found[number].text == expected
    if expected == "bank":  # the river's, and not the first one
        assert found[number].sentence == 1
    if expected == "Thunder":  # the highest id
        assert found[number].rarity == max(word.rarity for word in found if word.is_content)


def test_without_a_word_there_is_no_choice() -> None:
    assert first_choice((), np.zeros((0, 4))) is None
    assert words_of([words("! ?")]) == ()
