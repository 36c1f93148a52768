"""Which question of a list asks what a person asks: cosines and shared words, against the definition written out."""

from __future__ import annotations

import numpy as np

from components.retrieval.search import questions
from tests.support.closeness import assert_close

QUESTIONS = ("Which heads attend to [CLS]?", "What does re-ranking cost?", "How do the layers differ?")


def test_a_score_is_the_cosine_and_a_share_of_the_content_words() -> None:
    draw = np.random.default_rng(4)
    asked_vector, vectors = draw.normal(size=8), draw.normal(size=(3, 8))
    found = questions.scores("what do the costs of a layer cost", QUESTIONS, asked_vector, vectors)
    cosines = [vector @ asked_vector / np.linalg.norm(vector) / np.linalg.norm(asked_vector) for vector in vectors]
    # Content words: costs, layer, cost. The second question has a form of two of them, the third of one.
    assert_close(found, np.array(cosines) + 0.3 * np.array([0, 2 / 3, 1 / 3]))


def test_without_content_words_the_cosine_alone_counts() -> None:
    vectors = np.eye(3)
    assert_close(questions.scores("what is the?", QUESTIONS, vectors[1], vectors), np.array([0.0, 1.0, 0.0]))
    assert questions.content_words("How do [CLS] and the head's weights differ?") == [
        "cls",
        "head's",
        "weights",
        "differ",
    ]


def test_only_what_fits_is_found_and_the_best_comes_first() -> None:
    assert questions.best(np.array([0.6, 0.9, 0.3, 0.6]), 3) == [1, 0, 3]
    assert questions.best(np.array([0.6, 0.9, 0.48, 0.6]), 1) == [1]
    assert questions.best(np.array([0.39, 0.1]), 3) == []
    assert questions.best(np.array([0.7, 0.42, 0.39]), 3) == [0, 1]
    assert questions.best(np.array([0.9, 0.49, 0.5]), 3) == [0, 2]  # far behind the best
