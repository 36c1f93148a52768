"""Reading minimal pairs: which rows count, and what the errors say."""

from __future__ import annotations

import json

import pytest

from components.errors import InputError
from components.retrieval.corpora import minimal_pairs
from components.retrieval.corpora.minimal_pairs import ONE_KIND, PARAPHRASE, read_minimal_pairs


def lines(*rows: dict[str, str]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def test_kinds_are_cleaned_and_unusable_rows_are_counted():
    content = (
        "kind,first,second\n Negation ,It is hot.,It is not hot.\nPARAPHRASES,It is hot.,The heat is great.\n"
        "negation,Same.,Same.\nnegation,Alone., \n,A cat sat.,A dog sat.\n"
    )
    pairs = read_minimal_pairs(content.encode(), "a.csv")
    assert pairs.kinds == ("negation", PARAPHRASE, ONE_KIND)
    assert pairs.changed_kinds == ("negation", ONE_KIND)
    assert pairs.second == ("It is not hot.", "The heat is great.", "A dog sat.")
    assert pairs.bad_rows == 2
    assert pairs.rows_of(PARAPHRASE).tolist() == [1]


def test_a_file_without_kinds_has_one_kind():
    pairs = read_minimal_pairs(lines({"first": "a b", "second": "a c"}, {"first": "d", "second": "e"}), "a.jsonl")
    assert pairs.changed_kinds == (ONE_KIND,)
    assert pairs.content_hash != read_minimal_pairs(lines({"first": "a b", "second": "a c"}), "a.jsonl").content_hash


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lines({"first": "a", "other": "b"}), "no column second"),
        (lines({"first": "a", "second": "a"}), "no pair of two different sentences"),
        (lines({"first": "a", "second": "b", "kind": "paraphrase"}), "paraphrases are only the comparison"),
        (lines(*({"first": "a", "second": f"b {n}", "kind": f"k{n}"} for n in range(11))), "11 different values"),
    ],
)
def test_errors_say_how_to_mend_the_file(content: bytes, said: str):
    with pytest.raises(InputError) as problem:
        read_minimal_pairs(content, "a.jsonl")
    assert said in str(problem.value)
    assert problem.value.fix


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(minimal_pairs, "MOST_PAIRS", 3)
    rows = lines(*({"first": "a", "second": f"b {n}"} for n in range(4)))
    with pytest.raises(InputError, match="At most 3 pairs"):
        read_minimal_pairs(rows, "a.jsonl")


def test_too_few_paraphrases_are_replaced_by_others():
    def with_paraphrases(count: int, word: str) -> minimal_pairs.MinimalPairs:
        kinds = ("negation", *[PARAPHRASE] * count)
        return minimal_pairs.MinimalPairs(kinds, tuple(f"{word} {n}" for n in range(count + 1)), ("x",) * (count + 1))

    other = with_paraphrases(12, "other")
    few = with_paraphrases(9, "own").with_paraphrases_of(other)
    assert few.kinds == ("negation", *[PARAPHRASE] * 12)
    assert few.first == ("own 0", *(f"other {n}" for n in range(1, 13)))
    enough = with_paraphrases(10, "own")
    assert enough.with_paraphrases_of(other) is enough


def test_as_many_pairs_as_the_limit_are_measured_and_broken_rows_are_counted(monkeypatch):
    monkeypatch.setattr(minimal_pairs, "MOST_PAIRS", 2)
    rows = [{"first": f"It is {word}.", "second": f"It is not {word}."} for word in ("hot", "cold", "wet")]
    assert read_minimal_pairs(lines(*rows[:2]) + b"\n{broken\n", "a.jsonl").bad_rows == 1
    with pytest.raises(InputError, match="has 3 pairs"):
        read_minimal_pairs(lines(*rows), "a.jsonl")
