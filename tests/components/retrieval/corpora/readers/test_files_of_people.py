"""Small files as programs and people write them: each is read as one would by hand, or a sentence says what not."""

from __future__ import annotations

import pytest

from components.retrieval.corpora.corpus import read_corpus

TWO = ("The river rises.", "The bank opens.")


@pytest.mark.parametrize(
    "content",
    [
        "id,text,\n1,The river rises.,\n2,The bank opens.,\n",
        "id,text\n1,The river rises.,\n2,The bank opens.,\n",
        "id,text,,\n1,The river rises.\n2,The bank opens.,\n",
        'id,text\n1,The river rises.\n2,"The bank opens.",,,,\n',
    ],
)
def test_separators_at_the_end_of_a_row_are_no_fields(content: str) -> None:
    corpus = read_corpus(content.encode(), "a.csv")
    assert corpus.texts == TWO
    assert corpus.columns["id"] == ("1", "2")
    assert not any(map("".join, list(corpus.columns.values())[1:]))


def test_a_field_that_is_missing_in_the_middle_is_still_refused() -> None:
    report = read_corpus(b"id,text,note,\n1,The river rises.,x\n2,The bank opens.\n3,Money.,y,z\n", "a.csv").report
    assert [(row.row, row.reason) for row in report.bad_rows] == [(3, "2 fields instead of 4")]


def test_names_that_stand_in_the_middle_again_are_no_row() -> None:
    report = read_corpus(b"id,text\n1,The river rises.\nid,text\n2,The bank opens.\n", "a.csv").report
    assert "row 3 (the names of the columns once more)" in report.refused
    assert read_corpus(b"text\nThe river\ntext\n", "a.csv").texts == ("The river",)
    assert read_corpus(b"Hello\nThe river\nHello\n", "a.csv").texts == ("The river", "Hello")


def test_a_quote_can_stand_behind_a_space() -> None:
    corpus = read_corpus(b'id, text\n1, "The river, it rises."\n2, "He said ""no"" to it."\n', "a.csv")
    assert corpus.texts == ("The river, it rises.", 'He said "no" to it.')
    assert corpus.report.dialect == "separated by commas and spaces"
    assert read_corpus(b'id,text\n1, "Well" he said\n', "a.csv").texts == ('"Well" he said',)


def test_between_quotes_a_backslash_before_a_separator_stays() -> None:
    corpus = read_corpus(b'id,text\n1,"The $x\\,y$ river"\n2,"The $a\\,b$ bank"\n', "a.csv")
    assert corpus.texts == ("The $x\\,y$ river", "The $a\\,b$ bank")
