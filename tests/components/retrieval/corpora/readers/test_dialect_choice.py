"""What a person chose of how a separated file is written stands above what the reader finds; a guess names the choice."""

from __future__ import annotations

from itertools import product

import pytest

from components.errors import InputError
from components.retrieval.corpora.corpus import columns_of, read_corpus
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, SEPARATORS, DialectChoice

QUOTED = b'text,n\n"One, two",1\nThree,2\n'
FAQ = b"How do I pay?;By card or cash.\nWhere is my parcel?;On its way to you.\n"


@pytest.mark.parametrize(
    ("choice", "columns"),
    [
        (AS_FOUND, {"text": ["One, two", "Three"], "n": ["1", "2"]}),
        (DialectChoice(quotes=False), {"text": ["Three"], "n": ["2"]}),
        (DialectChoice(header=False), {"column 1": ["text", "One, two", "Three"], "column 2": ["n", "1", "2"]}),
        (DialectChoice(separator="tab"), {"text,n": ['"One, two",1', "Three,2"]}),
        (DialectChoice(separator="tab", header=False), {"column 1": ["text,n", '"One, two",1', "Three,2"]}),
    ],
)
def test_a_choice_is_followed(choice: DialectChoice, columns: dict[str, list[str]]) -> None:
    table = read_table(QUOTED, "a.csv", dialect=choice)
    assert table.columns == columns
    assert table.chosen == choice
    assert [preview.name for preview in columns_of(QUOTED, "a.csv", dialect=choice)] == list(columns)


def test_a_choice_stands_above_the_ending_and_a_line_of_the_separator() -> None:
    semicolons = DialectChoice(separator="semicolon")
    assert list(read_table(b"a;b\n1;2\n", "a.tsv", dialect=semicolons).columns) == ["a", "b"]
    assert list(read_table(b"sep=,\na;b\n1;2\n", "a.csv", dialect=semicolons).columns) == ["a", "b"]


def test_each_guess_names_the_choice_that_gives_the_other_reading() -> None:
    table = read_table(FAQ, "faq.csv")
    assert table.otherwise == (DialectChoice(header=True),)
    assert not table.is_named
    chosen = read_table(FAQ, "faq.csv", dialect=table.otherwise[0])
    assert chosen.columns == {"How do I pay?": ["Where is my parcel?"], "By card or cash.": ["On its way to you."]}
    assert not chosen.otherwise
    doubt = b"text;n\nOne\\\\two words;1\nThree;2\n"
    report = read_corpus(doubt, "a.csv").report
    assert report.otherwise == (DialectChoice(quotes=True, escapes=True),)
    other = read_corpus(doubt, "a.csv", dialect=report.otherwise[0])
    assert other.texts == ("One\\two words", "Three")
    assert not other.report.other_dialect
    assert not read_table(QUOTED, "a.csv").otherwise


def test_names_of_several_words_may_be_a_row() -> None:
    content = b"a long name of many words,other\none thing,another thing\n"
    assert read_table(content, "a.csv").otherwise == (DialectChoice(header=False),)
    said = read_corpus(content, "a.csv", "column 2", dialect=DialectChoice(header=False)).report.sentences((), "")
    assert "As chosen, the first row is a row as the others." in said


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_of_another_format_nothing_can_be_chosen(name: str) -> None:
    with pytest.raises(InputError, match=r"this was chosen of it: the first row names the columns\."):
        read_table(b'{"text": "One."}', name, dialect=DialectChoice(header=True))


def test_a_choice_is_written_and_read_back() -> None:
    for parts in product((None, *SEPARATORS), (None, True, False), (None, True, False), (None, True, False)):
        choice = DialectChoice(*parts)
        assert DialectChoice.of_text(choice.as_text) == choice
        assert bool(choice) == any(part is not None for part in parts)
    assert DialectChoice("tab", False, header=True).as_options == "--separator tab --no-quotes --header"
    for text in ("separator=x", "quotes", "quotes=tab", "given=yes"):
        with pytest.raises(ValueError, match="no choice of a dialect"):
            DialectChoice.of_text(text)
