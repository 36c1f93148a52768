"""What libraries write is read exactly, or what is lost of it is counted; an unknowable dialect is named as a guess."""

from __future__ import annotations

import pytest

from components.retrieval.corpora.readers.files import read_table
from tests.support.random_tables import check, draw, outcome


def test_300_random_tables_are_read_as_they_were_written() -> None:
    every = check(range(300))
    assert every["exact"] > 280


def test_few_texts_of_several_lines_in_one_column_may_be_rows_with_lone_quotes() -> None:
    assert outcome(draw(29_489)) == "guessed"
    text = '"A letter\nin two lines"\n'
    for count, is_guess in ((2, True), (3, False)):
        table = read_table(f"text\nA first one\n{text * count}".encode(), "letters.csv")
        assert table.columns["text"][1:] == ["A letter\nin two lines"] * count
        assert ("quotes are ordinary" in table.other_dialect) == is_guess


@pytest.mark.parametrize("seed", [35_063, 41_126, 43_129, 50_725, 63_281])
def test_a_backslash_before_a_separator_that_divides_nothing_stays(seed: int) -> None:
    assert outcome(draw(seed)) == "exact"


def test_in_one_column_escapes_are_known_by_separators_that_stand_behind_backslashes_alone() -> None:
    rows = ["Hello\\, world", "One\\, two", "Three\\, four"]
    table = read_table("\n".join(["text", *rows]).encode(), "a.csv")
    assert table.columns["text"] == ["Hello, world", "One, two", "Three, four"]
    assert not table.other_dialect
    one = f"text\n{rows[0]}\n".encode()
    table = read_table(one, "a.csv")
    assert [choice.as_options for choice in table.otherwise] == ["--separator semicolon --quotes --no-escapes"]
    assert read_table(one, "a.csv", dialect=table.otherwise[0]).columns["text"] == rows[:1]


@pytest.mark.rare
def test_2000_random_tables_are_read_as_they_were_written() -> None:
    check(range(1_000, 3_000))
