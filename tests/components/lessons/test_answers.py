"""Answers are counted once for each person, and forgotten."""

from __future__ import annotations

import pytest

from components.lessons import answers
from components.lessons.answers import Answers


def test_a_person_counts_once_and_may_change_their_mind() -> None:
    counted = Answers()
    counted.give("q", "ann", 0)
    counted.give("q", "bob", 2)
    counted.give("q", "ann", 2)
    counted.give("other", "ann", 1)
    assert counted.counts("q", 3) == (0, 0, 2)
    assert counted.counts("other", 2) == (0, 1)
    assert counted.counts("nobody", 2) == (0, 0)


def test_an_answer_is_ones_own_and_can_be_taken_back() -> None:
    counted = Answers()
    counted.give("q", "ann", 0)
    counted.give("q", "bob", 2)
    assert counted.of_person("q", "ann") == 0
    assert counted.of_person("q", "eve") is None
    assert counted.of_person("other", "ann") is None
    counted.take_back("q", "ann")
    counted.take_back("q", "eve")
    assert counted.of_person("q", "ann") is None
    assert counted.counts("q", 3) == (0, 0, 1)


def test_what_a_session_answered_is_moved_to_its_mark_and_counts_once() -> None:
    counted = Answers()
    counted.give("q", "mark", 0)  # before a reload
    counted.give("q", "session", 1)  # after it, before the mark was known
    counted.give("q2", "session", 2)
    counted.give("q2", "bob", 2)
    counted.move("session", "mark")
    assert counted.counts("q", 3) == (0, 1, 0)
    assert counted.counts("q2", 3) == (0, 0, 2)
    assert counted.of_person("q2", "mark") == 2
    assert counted.of_person("q2", "session") is None


def test_counts_expire_after_the_last_answer() -> None:
    now = [0.0]
    counted = Answers(clock=lambda: now[0])
    counted.give("q", "ann", 0)
    now[0] = answers.HOURS_KEPT * 3600 - 1
    counted.give("q", "bob", 0)
    now[0] += answers.HOURS_KEPT * 3600 - 1
    assert counted.counts("q", 1) == (2,)
    now[0] += 2
    assert counted.counts("q", 1) == (0,)


def test_people_and_questions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_PEOPLE", 3)
    counted = Answers()
    for person in range(5):
        counted.give("q", person, 0)
    counted.give("q", 0, 1)  # a person who is counted may still change
    assert counted.counts("q", 2) == (2, 1)
    for question in range(answers.MOST_QUESTIONS + 1):
        counted.give(question, "ann", 0)
    assert counted.counts("q", 2) == (0, 0)
