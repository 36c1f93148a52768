"""The kinds of files that were read wrongly or lost in silence, each with its right value."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.errors import InputError
from components.retrieval.corpora.corpus import Corpus, columns_of, read_corpus
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.places import files_at
from components.retrieval.corpora.readers.table import BadRow
from tests.support.places import DATA

CASES = DATA.parent / "cases"
QUOTATION, INCHES = '"We will not stop here, the coach added.', 'They bought a television of 55"'
LINES = [
    "A cat sleeps.",
    "The men play cards.",
    QUOTATION,
    "A woman peels an onion.",
    "Oil rose.",
    INCHES,
    "A dog runs.",
]
ESCAPED = r"separated by commas, a backslash escapes"


def of_rows(rows: list[tuple[str, ...]], separator: str) -> bytes:
    return "".join(separator.join(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize("separator", ["\t", "|"])
def test_without_quoting_a_quote_is_a_character(separator: str) -> None:
    """Read with quotes, four rows would be one field with line breaks in it, and the number of fields right."""
    rows = [("text", "id"), *((line, str(number)) for number, line in enumerate(LINES))]
    corpus = read_corpus(of_rows(rows, separator), "lines.csv")
    assert corpus.texts == tuple(LINES)
    assert corpus.columns["id"] == tuple("0123456")
    assert corpus.report.dialect.endswith("quotes are ordinary characters")
    assert (corpus.report.kept, corpus.report.bad_count, corpus.report.joined) == (7, 0, 0)


def test_between_tabs_quotes_can_enclose_too() -> None:
    content = b'text\tid\n"Two\nlines, ""quoted"""\t1\n"A\ttab"\t2\nPlain.\t3\n'
    corpus = read_corpus(content, "a.tsv")
    assert corpus.texts == ('Two lines, "quoted"', "A tab", "Plain.")
    assert (corpus.report.joined, corpus.report.bad_count) == (1, 0)


def test_a_file_without_names_loses_no_row() -> None:
    """As the collection of MS MARCO: a number, a tab, a passage."""
    rows = [(str(number), line) for number, line in enumerate(LINES)]
    corpus = read_corpus(of_rows(rows, "\t"), "collection.tsv")
    assert corpus.texts == tuple(LINES)
    assert corpus.columns == {"column 1": tuple("0123456")}
    assert not corpus.report.is_named
    assert corpus.report.text_is_guess
    said = " ".join(corpus.report.sentences(tuple(corpus.columns), "--text-column NAME"))
    assert "The first line is read as a row" in said
    assert "a guess" in said
    assert "--text-column NAME" in said
    alone = read_corpus(b"The first sentence stands here.\nThe second one stands there.\n", "a.csv")
    assert alone.texts == ("The first sentence stands here.", "The second one stands there.")


@pytest.mark.parametrize("header", ["text,2019,2020", "Satz,1", "What is your name?", "A name of five words"])
def test_names_of_columns_can_be_numbers_or_questions(header: str) -> None:
    row = ",".join(["Some words of a text", "1", "2"][: header.count(",") + 1])
    table = read_table(f"{header}\n{row}\n".encode(), "a.csv")
    assert table.is_named
    assert list(table.columns) == header.split(",")


def test_a_backslash_can_escape() -> None:
    content = 'text,n\n"She said \\"yes\\", twice",1\nHe said \\"no\\",2\nFive\\, or six,3\n'
    corpus = read_corpus(content.encode(), "a.csv")
    assert corpus.texts == ('She said "yes", twice', 'He said "no"', "Five, or six")
    assert corpus.report.dialect == ESCAPED
    windows = read_corpus(b'text,n\n"C:\\new\\texts, and ""more""",1\nD:\\old,2\n', "a.csv")
    assert windows.texts == ('C:\\new\\texts, and "more"', "D:\\old")


def test_a_dialect_that_little_speaks_for_is_named_as_a_guess() -> None:
    report = read_corpus(b"text;n\nOne\\\\two words;1\nThree;2\n", "a.csv").report
    assert report.other_dialect == "separated by semicolons, a backslash escapes"
    assert any("This is a guess" in sentence for sentence in report.sentences((), ""))
    assert not read_corpus(b"text;n\nOne two;1\n", "a.csv").report.other_dialect


def test_a_dialect_that_reads_the_same_rows_is_not_offered() -> None:
    report = read_corpus(b"id|text\n1|One\\|two words\n2|Three words\n", "a.csv").report
    assert report.dialect == "separated by vertical bars, a backslash escapes"
    assert report.other_dialect == ""
    assert not any("guess" in sentence for sentence in report.sentences((), ""))


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("is_first", [True, False])
def test_between_commas_a_column_of_numbers_says_that_lines_are_rows(separator: str, is_first: bool) -> None:
    texts = ["We start here", '"We will not stop he said', "A cat sleeps", 'television of 55"', "The end"]
    rows = [("id", "text"), *((str(number), text) for number, text in enumerate(texts))]
    corpus = read_corpus(of_rows(rows if is_first else [row[::-1] for row in rows], separator), "a.csv")
    assert corpus.texts == tuple(texts)
    assert (corpus.report.joined, corpus.report.bad_count) == (0, 0)


def test_between_commas_quotes_enclose_lines_and_a_doubt_is_said() -> None:
    letters = read_corpus(b'text,id\n"Hello,\nworld",1\n"Dear all,\nwe go",2\nPlain,3\n', "a.csv")
    assert letters.texts == ("Hello, world", "Dear all, we go", "Plain")
    assert letters.report.joined == 2
    doubt = read_corpus(b'text,note\n"He said,loud\nA cat,one\nof 55",two\nPlain,three\n', "a.csv")
    assert doubt.texts == ("He said,loud A cat,one of 55", "Plain")
    assert doubt.report.other_dialect == "separated by commas, quotes are ordinary characters"
    plain = read_corpus(b'id,text\n1,"Yes"\n2,"Well, no"\n3,"Two\nlines"\n', "a.csv")
    assert plain.report.other_dialect == ""


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_ids_are_kept_as_written_and_separators_are_found(separator: str) -> None:
    corpus = read_corpus(
        of_rows([("id", "text"), ("007", "A spy."), ("1e5", "A number?"), ("NA", "None.")], separator), "a.csv"
    )
    assert corpus.columns["id"] == ("007", "1e5", "NA")
    assert corpus.texts == ("A spy.", "A number?", "None.")


def test_decimal_commas_do_not_divide() -> None:
    corpus = read_corpus(b"text;score\nOne text;4,8\nAnother, longer text;0,2\n", "a.csv")
    assert corpus.columns["score"] == ("4,8", "0,2")


def test_a_lone_carriage_return_divides_no_row() -> None:
    corpus = read_corpus(b'text,n\nOne\rtwo,1\n"Three\rfour",2\n', "a.csv")
    assert corpus.texts == ("One two", "Three four")
    old = read_corpus(b'text,n\rOne,1\r"Two\nlines",2\r', "a.csv")  # each row ends with one
    assert old.texts == ("One", "Two lines")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_of_spreadsheets_are_found_for_any_script(encoding: str) -> None:
    text = "text\tid\nकला और संगीत\t1\nЯ читаю книгу\t2\n東京の銀行\t3\n"
    assert read_corpus(text.encode(encoding), "a.tsv").texts == ("कला और संगीत", "Я читаю книгу", "東京の銀行")


def test_a_key_that_first_appears_late_is_a_column() -> None:
    rows = [{"text": f"Sentence {number}."} for number in range(1_500)] + [
        {"content": "Late."},
        {"text": "x", "late": 7},
    ]
    corpus = read_corpus("\n".join(map(json.dumps, rows)).encode(), "late.jsonl")
    assert (corpus.report.kept, corpus.report.bad_rows) == (1_501, (BadRow(1_501, "no text"),))
    assert set(corpus.columns) == {"content", "late"}
    assert corpus.columns["late"] == ("",) * 1_500 + ("7",)


def test_more_keys_than_columns_are_named() -> None:
    rows = [{"text": "A text.", f"key {number}": 1} for number in range(210)]
    report = read_corpus("\n".join(map(json.dumps, rows)).encode(), "a.jsonl").report
    assert report.left_out == tuple(f"key {number}" for number in range(199, 210))


ROWS = [{"id": n, "translation": {"en": f"The boat {n} leaves.", "de": f"Das Boot {n} legt ab."}} for n in range(3)]


@pytest.mark.parametrize("format_name", ["jsonl", "json", "parquet"])
def test_objects_in_rows_are_columns_of_their_own(format_name: str) -> None:
    content = {
        "jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
        "json": json.dumps(ROWS).encode(),
        "parquet": in_parquet(ROWS),
    }[format_name]
    names = [column.name for column in columns_of(content, f"a.{format_name}")]
    assert names == ["id", "translation.en", "translation.de"]
    with pytest.raises(InputError) as caught:  # two columns are alike, and both are shown
        read_corpus(content, f"a.{format_name}")
    assert "translation.en (“The boat 0 leaves.”)" in caught.value.problem
    corpus = read_corpus(content, f"a.{format_name}", "translation.de")
    assert corpus.texts == tuple(row["translation"]["de"] for row in ROWS)  # type: ignore[index]


def in_parquet(rows: list[dict[str, object]]) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), target)
    return bytes(target.getvalue().to_pybytes())


def test_lists_of_one_text_are_texts_and_lists_beside_them_are_kept() -> None:
    rows = [{"sentences": ["Only one."], "tags": [1, 2]}, {"sentences": ["Another."], "tags": []}]
    corpus = read_corpus(in_parquet(rows), "a.parquet", "sentences")
    assert corpus.texts == ("Only one.", "Another.")
    assert corpus.columns["tags"] == ("[1, 2]", "[]")


def test_rows_that_are_no_texts_are_named_by_what_they_are() -> None:
    rows = [{"text": "Good."}, {"text": {"a": 1}}, {"text": True}, {"text": 3.5}, {"text": ["x", "y"]}]
    report = read_corpus("\n".join(map(json.dumps, rows)).encode(), "a.jsonl").report
    assert [row.reason for row in report.bad_rows] == [
        "an object instead of text",
        "yes or no instead of text",
        "a number instead of text",
        "a list instead of text",
    ]
    assert report.refused.startswith(
        "4 of 5 rows cannot be used and are left out: row 2 (an object instead of text), row 3 (yes or no instead of text), "
    )


@pytest.mark.parametrize(
    "content",
    [
        {"text": {"0": "One.", "1": "Two."}, "n": {"0": 1, "1": 2}},
        {"text": ["One.", "Two."], "n": [1, 2]},
        {"columns": ["text", "n"], "index": [0, 1], "data": [["One.", 1], ["Two.", 2]]},
        {"0": {"text": "One.", "n": 1}, "1": {"text": "Two.", "n": 2}},
        {"version": 2, "data": [{"text": "One.", "n": 1}, {"text": "Two.", "n": 2}]},
        {"rows": [{"row_idx": 0, "row": {"text": "One.", "n": 1}}, {"row_idx": 1, "row": {"text": "Two.", "n": 2}}]},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_one_object_can_be_a_whole_table(content: dict[str, object], indent: int | None) -> None:
    corpus = read_corpus(json.dumps(content, indent=indent).encode(), "a.json")
    assert (corpus.texts, corpus.columns) == (("One.", "Two."), {"n": ("1", "2")})


def test_lines_of_objects_in_json_are_rows() -> None:
    corpus = read_corpus(b'{"text": "One."}\n{"text": "Two."}\n', "a.json")
    assert corpus.texts == ("One.", "Two.")
    assert read_corpus(b'{"text": "Alone."}', "a.json").texts == ("Alone.",)


def test_the_first_rows_stand_beside_what_was_read() -> None:
    report = read_corpus(b'text,n\n"Two\nlines",1\n,2\nLast.,3\nMore.,4\n', "a.csv").report
    assert [(row.row, row.written, row.text, row.refused) for row in report.samples] == [
        (2, '"Two\nlines",1', "Two lines", ""),
        (4, ",2", "", "empty"),
        (5, "Last.,3", "Last.", ""),
    ]
    assert report.samples[2].columns == {"n": "3"}
    assert report.counted.startswith("4 rows read, 3 used, 1 left out; 1 joined from several lines, 0 changed")


def test_of_a_folder_with_queries_only_the_documents_are_a_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "mini"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Colds", "text": "Vitamin C prevents colds."}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "Vitamin C prevents colds."}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    with files_at(str(folder)) as (files, left_out):
        corpus = read_corpus(files, "mini")
    assert corpus.texts == ("Colds Vitamin C prevents colds.",)
    assert corpus.columns["title"] == ("Colds",)
    assert left_out == ["qrels/test.tsv: not documents", "queries.jsonl: not documents"]


def test_a_document_of_a_collection_has_its_title_before_its_text() -> None:
    """As `evaluate FOLDER` reads it, and BEIR's measures have it."""
    rows = [
        {"_id": "d1", "title": "Colds", "text": "Vitamin C prevents colds.", "metadata": {"year": 1}},
        {"_id": "d2", "title": "", "text": "No title.", "metadata": {"year": 2}},
        {"_id": "d3", "title": "Alone", "text": "", "metadata": {"year": 3}},
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    corpus = read_corpus(content, "corpus.jsonl")
    assert corpus.texts == ("Colds Vitamin C prevents colds.", "No title.", "Alone")
    assert corpus.columns["title"] == ("Colds", "", "Alone")
    said = " ".join(corpus.report.sentences(tuple(corpus.columns), "--text-column NAME"))
    assert "The sentences are the column text (each behind its title, as in BEIR's measures)" in said
    alone = read_corpus(content, "corpus.jsonl", "text")
    assert alone.texts == ("Vitamin C prevents colds.", "No title.")
    plain = [{"title": "Colds", "text": "Vitamin C prevents colds.", "author": "x"}]
    assert read_corpus("\n".join(map(json.dumps, plain)).encode(), "a.jsonl").texts == ("Vitamin C prevents colds.",)


needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the files of public reports are not here")


@needs_cases
@pytest.mark.parametrize(
    ("name", "column", "rows"),
    [
        ("03-tsv-quotes/lines.tsv", None, 12),
        ("03-tsv-quotes/sts.tsv", "sentence1", 12),
        ("extra/collection.tsv", None, 5),
        ("extra/pairs.tsv", "sentence", 8),
        ("extra/late2.jsonl", None, 1_000),
        ("extra/nested.jsonl", "translation.en", 6),
    ],
)
def test_files_of_public_reports_are_read_whole(name: str, column: str | None, rows: int) -> None:
    corpus: Corpus = read_corpus(CASES / name, name, column)
    assert len(corpus) == rows
    assert corpus.report.bad_count == (20 if "late" in name else 0)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "desk.csv",
            b"query,text\n",
            "Add rows with text; in separated text they stand below the names of the columns.",
        ),
        (
            "desk.xlsx",
            b"PK\x03\x04",
            "desk.xlsx is a spreadsheet of Excel or LibreOffice. .* save the sheet as “CSV UTF-8”",
        ),
        ("desk.txt", b"\x00\n", "Mend these rows, or name another column as the text."),
    ],
)
def test_what_cannot_be_read_says_what_would_mend_it(name: str, content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_corpus(content, name)
