"""The minimal pairs that come with the dashboard: their number, form, and what the order of a pair means."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from components.analysis.why.contrasts import changed_forms, changed_spans
from components.training.data import normalised
from components.words.function import FUNCTION_WORDS
from tests.support.places import ASSETS

ROWS = [json.loads(line) for line in (ASSETS / "minimal_pairs.jsonl").read_text(encoding="utf-8").splitlines()]
KINDS = ("negation", "numbers", "swapped roles", "antonyms", "names", "time", "quantity")
NEGATIVE = re.compile(r"\b(not|no|never|nobody|nothing|neither|without)\b|n't\b")
NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "ninety": 90,
}


def of_kind(kind: str) -> list[tuple[str, str]]:
    return [(row["first"], row["second"]) for row in ROWS if row["kind"] == kind]


def words(text: str) -> list[str]:
    return normalised(text).split()


def test_there_are_forty_of_each_kind_and_no_sentence_twice():
    assert all(set(row) == {"kind", "first", "second"} for row in ROWS)
    counts = Counter(row["kind"] for row in ROWS)
    assert set(counts) == {*KINDS, "paraphrase"}
    assert min(counts.values()) >= 40
    texts = [normalised(row[side]) for row in ROWS for side in ("first", "second")]
    assert [text for text, count in Counter(texts).items() if count > 1] == []
    assert all(
        row[side] == row[side].strip() and row[side][-1] in ".?!" for row in ROWS for side in ("first", "second")
    )


@pytest.mark.parametrize("kind", [*KINDS, "paraphrase"])
def test_sentences_have_five_to_eighteen_words(kind):
    lengths = [len(text.split()) for pair in of_kind(kind) for text in pair]
    assert min(lengths) >= 5
    assert max(lengths) <= 18
    assert len(set(lengths)) >= 5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "swapped roles"])
def test_a_changed_pair_differs_in_at_most_three_words(kind):
    for pair in of_kind(kind):
        assert max(map(len, changed_spans(*pair))) <= 3, pair
        assert min(len(words(text)) for text in pair) > max(map(len, changed_spans(*pair))), pair


def test_swapped_roles_keep_all_words_and_change_their_order():
    for first, second in of_kind("swapped roles"):
        assert sorted(words(first)) == sorted(words(second))
        assert words(first) != words(second)
        own, other = (
            [text[a:b].lower() for a, b in found]
            for text, found in zip((first, second), changed_spans(first, second), strict=True)
        )
        assert len(own) == 2, (first, second)  # the two that changed places, in the reverse order
        assert own == other[::-1], (first, second)
        assert not {*own} & FUNCTION_WORDS, (first, second)


def test_changes_stand_at_the_start_in_the_middle_and_at_the_end():
    thirds: Counter[int] = Counter()
    for kind in KINDS:
        for first, second in of_kind(kind):
            spans = changed_spans(first, second)
            start = (spans[0] or spans[1])[0][0]
            thirds[min(2, 3 * start // len(first))] += 1
    assert min(thirds.values()) >= 30


def test_the_second_sentence_is_negated_and_the_first_is_not():
    for first, second in of_kind("negation"):
        assert NEGATIVE.search(second.lower()), second
        assert not NEGATIVE.search(first.lower()), first


def test_the_second_sentence_has_the_larger_number():
    def value(form: str) -> float:
        plain = form.replace(",", "")
        return float(plain) if plain[0].isdigit() else NUMBERS[plain]

    for pair in of_kind("numbers"):
        first, second = map(value, changed_forms(*pair))
        assert second > first, pair


def test_paraphrases_share_few_words_and_are_about_as_long():
    shared = []
    for first, second in of_kind("paraphrase"):
        one, other = set(words(first)), set(words(second))
        shared.append(len(one & other) / len(one | other))
        assert 0.4 < len(first) / len(second) < 2.1, first
    assert max(shared) < 0.5
    assert sum(shared) / len(shared) < 0.2
