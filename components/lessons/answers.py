"""The answers of a class, counted while it answers. Nobody's name is known, and nothing is written to a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

from cachetools import TTLCache

HOURS_KEPT = 12  # after the last answer to a question
MOST_QUESTIONS = 2_000  # by lesson, step and class; with more, those longest without an answer go first
MOST_PEOPLE = 1_000  # who answer one question; answers of more are not counted


class Answers:
    """How many people chose what, for each question of each class; safe for threads.

    A person is any mark that tells people apart; it is kept to count each of them once, and never given out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._chosen: TTLCache[Hashable, dict[Hashable, int]] = TTLCache(MOST_QUESTIONS, HOURS_KEPT * 3600, clock)
        self._lock = threading.Lock()

    def give(self, question: Hashable, person: Hashable, choice: int) -> None:
        """Count a person's choice for a question, in place of the one before."""
        with self._lock:
            chosen = self._chosen.get(question, {})
            if person in chosen or len(chosen) < MOST_PEOPLE:
                chosen[person] = choice
            self._chosen[question] = chosen  # set again: its time begins anew

    def take_back(self, question: Hashable, person: Hashable) -> None:
        """Count a person's choice for a question no longer."""
        with self._lock:
            self._chosen.get(question, {}).pop(person, None)

    def of_person(self, question: Hashable, person: Hashable) -> int | None:
        """A person's own choice for a question; None where none is counted."""
        with self._lock:
            return self._chosen.get(question, {}).get(person)

    def move(self, person: Hashable, to: Hashable) -> None:
        """Count all that a person chose for another mark of the same person, in place of what was counted for that one."""
        with self._lock:
            for question in list(self._chosen):
                chosen = self._chosen.get(question, {})
                if person in chosen:
                    chosen[to] = chosen.pop(person)

    def counts(self, question: Hashable, choices: int) -> tuple[int, ...]:
        """How many people chose each of the `choices` of a question."""
        with self._lock:
            chosen = list(self._chosen.get(question, {}).values())
        return tuple(chosen.count(choice) for choice in range(choices))
