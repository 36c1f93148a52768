"""Titles above the names of the columns, and what is none."""

from __future__ import annotations

import pytest

from components.errors import InputError
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import Count
from components.retrieval.corpora.readers.separated_rows import DialectChoice
from components.retrieval.corpora.readers.table import TITLE_ROW
from components.retrieval.corpora.rows.read import Rows, rows_of, table_of

PAIRS = [
    "id;category;sentence1;sentence2;score",
    "007;fr;Le chien court.;Un chien galope.;4,5",
    "008;fr;Il pleut à Paris.;Paris est sous la pluie.;4,25",
    "009;fr;Le train part à huit heures.;Le garçon mange.;0",
    "010;fr;Où est la gare ?;Où se trouve la gare ?;5",
    "011;fr;Elle joue du piano.;Le prix monte.;n/a",
    "012;fr;Nous partons.;Le bœuf est cuit.;0,1",
]
UNKNOWN_NAMES = [
    "Nummer,Frage,Antwort",
    "1,Wann kommt mein Paket heute an?,Es kommt in zwei Tagen.",
    "2,Wo ist es?,Im Lager.",
]


def scored(lines: list[str], **choices: object) -> Rows:
    table = table_of(["\n".join(lines).encode()], "a.csv", None, Count("a.csv", None), **choices)  # type: ignore[arg-type]
    return rows_of(table, "a.csv", wanted="scored")


TITLES = {
    "as many separators": ["Similarité de phrases;;;;"],
    "no separator": ["Similarité de phrases"],
    "in another field": [";;Similarité;;"],
    "several, with an empty row": ["Similarité;;;;", "2025-01-05;;;;", ";;;;"],
    "with another separator in it": ["Phrases, notes et autres;;;;"],
    "below a line sep=": ["sep=;", "Similarité;;;;"],
}


@pytest.mark.parametrize("kind", TITLES)
def test_a_title_is_left_out_counted_and_said(kind: str) -> None:
    plain, found = scored(PAIRS), scored([*TITLES[kind], *PAIRS])
    assert [(row.texts, row.label) for row in found.rows] == [(row.texts, row.label) for row in plain.rows]
    titles = [line for line in TITLES[kind] if line.strip(";") and not line.startswith("sep=")]
    reading = found.reading(found.rows, type(found.bad)())
    assert reading.reasons[TITLE_ROW] == len(titles)
    assert reading.rows == len(titles) + 6
    names_row = len(TITLES[kind]) + 1
    first = titles[0].strip(";")
    sentence = next(note for note in found.notes if "title" in note)
    assert f"(“{first}”)" in sentence
    assert sentence.endswith(f"left out; row {names_row} names the columns.")
    assert reading.preview[0].row == names_row + 1  # numbers are those of an editor


def test_a_corpus_says_it_too_and_keeps_leading_zeros() -> None:
    corpus = read_corpus("\n".join(["Similarité;;;;", *PAIRS]).encode(), "a.csv", "sentence1")
    assert corpus.columns["id"][0] == "007"
    assert corpus.report.reasons == ((TITLE_ROW, 1),)
    said = " ".join(corpus.report.sentences((), ""))
    assert "Row 1 (“Similarité”) looks like a title and is left out; row 2 names the columns." in said


def test_five_rows_may_be_titles_and_six_are_none() -> None:
    rows = [f"Ein Titel mit der Nummer {number};;;;" for number in "abcdef"]
    for count, expected in ((5, [1, 2, 3, 4, 5]), (6, [])):
        table = read_table("\n".join([*rows[:count], *PAIRS]).encode(), "a.csv")
        assert [number for number, _ in table.titles] == expected


def test_names_that_are_not_known_need_a_column_of_another_kind() -> None:
    table = read_table("\n".join(["Kundenfragen,,", *UNKNOWN_NAMES]).encode(), "a.csv")
    assert list(table.columns) == ["Nummer", "Frage", "Antwort"]
    assert [number for number, _ in table.titles] == [1]


@pytest.mark.parametrize(
    "lines",
    [
        ["text;", "Salz;Pfeffer", "Brot;Butter"],  # a known name
        [",Frage", "0,Wann kommt mein Paket heute an?", "1,Wo ist es?"],  # an index without a name
        ["Satz", "Kommt, bald", "Das ist, so weit ich es weiß, ganz gut."],  # texts without quotes
        ["Wort;", "Salz;Pfeffer", "Brot;Butter"],
        ["Meine Sätze", "Hallo Welt"],
    ],
)
def test_what_is_no_title(lines: list[str]) -> None:
    assert not read_table("\n".join(lines).encode(), "a.csv").titles


def test_who_says_what_the_first_row_is_is_followed() -> None:
    content = "\n".join(["Similarité;;;;", *PAIRS]).encode()
    table = read_table(content, "a.csv")
    assert table.otherwise == (DialectChoice(header=True),)
    assert next(iter(read_table(content, "a.csv", dialect=table.otherwise[0]).columns)) == "Similarité"
    assert len(read_table(content, "a.csv", dialect=DialectChoice(header=False)).numbers) == 8


def test_ids_are_never_taken_for_scores() -> None:
    """The header is lost on purpose: the columns have no names that are known."""
    names = ["a;b;c;d;e", *PAIRS[1:]]
    assert scored(names).recognised.label == "e"
    without = [line.rpartition(";")[0] for line in names]
    with pytest.raises(InputError, match="no column sentence1 and no column sentence2 and no column score"):
        scored(without)
    running = [f"{number};Ein Satz mit der Zahl {number}.;Noch ein Satz mit {number}." for number in range(1, 8)]
    with pytest.raises(InputError, match="no column"):
        scored(["a;b;c", *running])


def test_roles_are_no_sentences() -> None:
    turns = ["conversation\trole\tmessage"] + [
        f"{number // 2:03d}\t{'assistant' if number % 2 else 'user'}\tThis is the message with number {number}."
        for number in range(8)
    ]
    table = table_of(["\n".join(turns).encode()], "a.tsv", None, Count("a.tsv", None))
    with pytest.raises(InputError, match="no column sentence1"):
        rows_of(table, "a.tsv", wanted="scored")
    assert rows_of(table, "a.tsv").recognised.columns == {"sentence": "message"}


def test_a_lone_carriage_return_in_a_title_is_no_failure() -> None:
    text = "Title one\nSecond\rtitle\nid;text\n1;hello there big world\n2;another sentence of words\n"
    assert read_corpus(text.encode(), "x.csv").texts
