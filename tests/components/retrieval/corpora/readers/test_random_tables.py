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


@pytest.mark.rare
def test_2000_random_tables_are_read_as_they_were_written() -> None:
    check(range(1_000, 3_000))
