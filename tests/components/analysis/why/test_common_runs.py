"""What two sequences have in common: as difflib finds it, and for long ones in a time that does not explode."""

from __future__ import annotations

import itertools
import random
import time
from difflib import SequenceMatcher

import pytest

from components.analysis.why.common_runs import MOST_COMPARED, steps
from components.analysis.why.contrasts import changed_forms, changed_spans


def turned(first: list[str], second: list[str]) -> list[str]:
    """The second sequence, made from the first by the steps."""
    made = []
    for name, a, b, c, d in steps(first, second):
        assert name == ("replace" if b > a and d > c and first[a:b] != second[c:d] else name)
        made += first[a:b] if name == "equal" else second[c:d]
    return made


@pytest.mark.parametrize("length", [0, 1, 5, 60, MOST_COMPARED + 1, 3 * MOST_COMPARED])
def test_the_steps_turn_one_sequence_into_the_other(length: int) -> None:
    chance = random.Random(length)
    for _ in range(20):
        first = chance.choices("abcdef", k=length)
        second = list(first)
        for _ in range(chance.randint(0, 4)):
            place = chance.randint(0, len(second))
            second[place : place + chance.randint(0, 3)] = chance.choices("abcxyz", k=chance.randint(0, 3))
        found = steps(first, second)
        assert turned(first, second) == second
        assert [found[0][1], found[0][3]] == [0, 0] if found else first == second == []
        assert all(before[2] == after[1] and before[4] == after[3] for before, after in itertools.pairwise(found))
        if length <= MOST_COMPARED - 12:
            assert found == SequenceMatcher(None, first, second, autojunk=False).get_opcodes()


def test_a_changed_word_in_a_long_text_is_found() -> None:
    first = " ".join(f"w{number}" for number in range(5_000))
    second = first.replace("w2500", "other")
    (span,), (other,) = changed_spans(first, second)
    assert (first[slice(*span)], second[slice(*other)]) == ("w2500", "other")
    assert changed_forms(first, second) == ("w2500", "other")


@pytest.mark.parametrize("second", ["b a ", "a b ", "b ", "a a b "])
@pytest.mark.parametrize("words", [MOST_COMPARED, 200_000])
def test_repeated_words_take_no_minutes(second: str, words: int) -> None:
    """Two rows of 500,000 words held up the server for hours: a pair of sentences comes from anybody's file."""
    started = time.process_time()
    changed_spans("a " * words, second * (words // (len(second) // 2)))
    assert time.process_time() - started < 10
