"""Labelled sentences: read from any kind of file, and the occurrence that is meant."""

from __future__ import annotations

import json

import pytest

from components.errors import InputError
from components.retrieval.corpora.senses import SenseRow, meant_occurrences, read_senses


def test_rows_of_a_csv_and_of_jsonl_are_the_same():
    csv = b"word,sense,sentence,index\nbank,money,The bank paid.,1\nBank,river,A bank of mud.,\n"
    lines = [
        {"word": "bank", "sense": "money", "sentence": "The bank paid.", "index": 1},
        {"word": "Bank", "sense": "river", "sentence": "A bank of mud."},
    ]
    jsonl = "\n".join(map(json.dumps, lines)).encode()
    expected = (SenseRow("bank", "money", "The bank paid.", 1), SenseRow("Bank", "river", "A bank of mud."))
    for source, name in ((csv, "a.csv"), (jsonl, "a.jsonl")):
        found = read_senses(source, name)
        assert found.rows == expected
        assert found.words == ("bank",)
        assert found.of("BANK") == expected
        assert found.bad_rows == 0


def test_an_index_of_thousands_of_digits_is_a_bad_row():
    content = "word,sense,sentence,index\nbank,a,A bank.,1\n" + "".join(
        f"bank,b,B bank.,{'9' * digits}\n" for digits in (9, 10, 5_000)
    )
    file = read_senses(content.encode(), "a.csv")
    assert [row.index for row in file.rows] == [1, 999_999_999]
    assert file.bad_rows == 2


def test_rows_without_a_sense_or_with_a_bad_index_are_counted():
    found = read_senses(
        b"word,sense,sentence,index\nbank,,x bank,\nbank,a,y bank,two\nbank,a,z bank,0\n,a,w,\n", "a.csv"
    )
    assert [row.sentence for row in found.rows] == ["z bank"]
    assert found.bad_rows == 3


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (b"word,sentence\nbank,The bank.\n", "no column sense"),
        (b"sense,sentence\nbank,The bank.\n", "no column word"),
        (b"word,sense,text\nbank,a,The bank.\n", "sentence"),
        (b"word,sense,sentence\n,,The bank.\n", "no row"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(source, word):
    with pytest.raises(InputError, match=word):
        read_senses(source, "a.csv")


def test_the_index_or_else_the_first_occurrence_is_meant():
    sentence = "Bank on it: a bank by the bank."
    rows = [
        SenseRow("bank", "a", sentence),
        SenseRow("bank", "b", sentence, 4),
        SenseRow("bank", "b", sentence, 99),
        SenseRow("bank", "c", "none"),
    ]
    spans = [(0, 4), (14, 18), (26, 30)]
    found = [(row, start, end) for row in (2, 1, 0) for start, end in reversed(spans)]
    chosen, missing = meant_occurrences(rows, found)
    assert [found[at] for at in chosen] == [(0, 0, 4), (1, 14, 18)]
    assert missing == [2, 3]


def test_an_index_just_behind_the_last_word_means_none():
    rows = [SenseRow("bank", "river", "The bank", index) for index in (1, 2, 3)]
    assert meant_occurrences(rows, [(number, 4, 8) for number in range(3)]) == ([0], [1, 2])
