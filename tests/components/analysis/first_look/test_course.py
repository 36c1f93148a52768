"""How a word moves through the layers, by plain transformers."""

from __future__ import annotations

import numpy as np

from components.analysis.first_look.course import MOST_TWINS, courses
from components.analysis.first_look.words import words_of
from components.analysis.matched_words import word_vectors
from components.model.backend import Backend
from tests.components.analysis.handmade import words
from tests.support import plain_encoder as plain

TEXTS = ("We will rob a bank next week!", "They sat on the bank of the river.")


def test_courses_by_plain_transformers(embedded: Backend) -> None:
    trace = embedded.trace(TEXTS)
    found = words_of(trace.sentences)
    all_courses = courses(word_vectors(trace, [(word.sentence, word.positions) for word in found]), found)
    first, second = (plain.run(text) for text in TEXTS)
    (number,) = [place for place, word in enumerate(found) if word.text == "bank" and word.sentence == 0]
    course, own = all_courses[number], first.word("bank")
    np.testing.assert_allclose(course.to_start, plain.cosine(own, own[:1]), atol=1e-5)
    others = np.mean([first.word(piece) for piece in ("we", "will", "rob", "a", "next", "week")], axis=0)
    assert course.to_others is not None
    np.testing.assert_allclose(course.to_others, plain.cosine(own, others), atol=1e-5)
    ((twin, cosines),) = course.to_twins
    assert (found[twin].text, found[twin].sentence) == ("bank", 1)
    np.testing.assert_allclose(cosines, plain.cosine(own, second.word("bank")), atol=1e-5)


def test_a_word_alone_has_no_others_and_few_of_many_twins_are_compared() -> None:
    found = words_of([words("bank"), *[words("bank two")] * 5])
    vectors = np.random.default_rng(0).normal(size=(3, len(found), 4))
    course = courses(vectors, found)[0]
    assert course.to_others is None
    assert len(course.to_twins) == MOST_TWINS
