"""Reading corpora: every format, and nothing lost without a word."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from components.errors import InputError
from components.retrieval import corpus_hub
from components.retrieval.corpus import Limits, browser_limits, columns_of, read_corpus


def test_lines_of_text_with_empty_ones_and_repeats():
    found = read_corpus(b"one\n\n  two  \none\nthree\x07bell\n", "a.txt")
    assert found.texts == ("one", "two", "one", "three bell")
    assert (found.report.rows, found.report.bad, found.report.duplicates) == (5, 1, 1)
    assert (found.report.bad_rows[0].number, found.report.bad_rows[0].reason) == (2, "no text")
    assert found.report.duplicate_rows == (4,)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_with_any_delimiter_quotes_and_bad_rows(delimiter):
    raw = f'topic{delimiter}text\nx{delimiter}"a {delimiter} b\nc"\ny\nz{delimiter}last\n'
    found = read_corpus(raw.encode(), "a.csv")
    assert found.texts == (f"a {delimiter} b c".replace("\t", " "), "last")
    assert found.columns == {"topic": ("x", "z")}
    assert [(row.number, row.reason) for row in found.report.bad_rows] == [(3, "1 fields instead of 2")]


def test_jsonl_of_objects_texts_and_rubbish():
    lines = ['{"text": "one", "n": 1}', "broken", '"two"', "7", '{"text": null}', '{"text": 5}', '{"other": "x"}']
    found = read_corpus("\n".join(lines).encode(), "a.jsonl", "text")
    assert found.texts == ("one", "two")
    assert {row.number: row.reason for row in found.report.bad_rows} == {
        2: "broken JSON",
        4: "int, not an object",
        5: "no text",
        6: "int, not a text",
        7: "no text",
    }
    assert found.report.rows == 7


def test_a_json_list_and_a_gzipped_file():
    raw = json.dumps([{"sentence": "one"}, {"sentence": "two"}]).encode()
    assert read_corpus(raw, "a.json").texts == ("one", "two")
    assert read_corpus(gzip.compress(b"one\ntwo"), "a.txt.gz").texts == ("one", "two")
    with pytest.raises(InputError, match="gzip"):
        read_corpus(b"one", "a.txt.gz")
    with pytest.raises(InputError, match="not a list"):
        read_corpus(b"{}", "a.json")


def test_parquet_with_the_schema_of_sentence_compression(tmp_path):
    """embedding-data/sentence-compression: one column, `set`, of [sentence, compressed]."""
    path = tmp_path / "train.parquet"
    parquet.write_table(pa.table({"set": [["A long sentence.", "short"], ["Another one.", "brief"]]}), path)
    found = read_corpus(path, path.name)
    assert found.texts == ("A long sentence.", "Another one.")
    assert found.columns == {"compressed": ("short", "brief")}
    lines = b'{"set": ["A long sentence.", "short"]}\n{"set": ["lonely"]}\n["Another one.", "brief"]\n'
    same = read_corpus(gzip.compress(lines), "sentence-compression_compressed.jsonl.gz")
    assert same.texts == found.texts
    assert same.report.bad_rows[0].reason == "set is not a list of two texts"
    with pytest.raises(InputError, match="Parquet"):
        read_corpus(b"no parquet", "a.parquet")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "shift_jis", "koi8-r"])
def test_encodings_are_found_out(encoding):
    text = {
        "shift_jis": "これは日本語の文章です。天気がいいので散歩に行きましょう。\n" * 20,
        "koi8-r": "Это русское предложение о погоде и о людях, которые гуляют.\n" * 20,
    }.get(encoding, "Die Brücke über den Fluß wurde für Fußgänger geöffnet – endlich.\n" * 20)
    found = read_corpus(text.encode(encoding), "a.txt")
    assert found.texts[0] == text.split("\n")[0]
    assert found.report.encoding
    again = read_corpus(text.encode(encoding), "a.txt", encoding=encoding)
    assert again.texts == found.texts


def test_an_encoding_that_does_not_fit_is_said():
    with pytest.raises(InputError, match="could not be read as ascii"):
        read_corpus("ü".encode(), "a.txt", encoding="ascii")
    with pytest.raises(InputError, match="no-such"):
        read_corpus(b"a", "a.txt", encoding="no-such")


def test_the_text_column_is_named_found_or_asked_for():
    raw = b"id,note,sentence\n1,x,A sentence.\n"
    assert read_corpus(raw, "a.csv").report.text_column == "sentence"
    assert read_corpus(raw, "a.csv", "note").texts == ("x",)
    with pytest.raises(InputError, match="no column 'nope'"):
        read_corpus(raw, "a.csv", "nope")
    long = b"id,comment\n1,This is a sentence of some length.\n2,And this is another long one.\n"
    assert read_corpus(long, "a.csv").report.text_column == "comment"
    unclear = b"left,right\nThis is a sentence of some length.,And this is another long one.\n"
    with pytest.raises(InputError, match="left, right"):
        read_corpus(unclear, "a.csv")
    assert [column.name for column in columns_of(unclear, "a.csv")] == ["left", "right"]


@pytest.mark.parametrize(
    ("raw", "name", "word"),
    [
        (b"", "a.txt", "no usable sentence"),
        (b"\n\n", "a.txt", "no usable sentence"),
        (b"", "a.csv", "empty"),
        (b"text\n", "a.csv", "no usable sentence"),
        (b"x", "a.docx", "kind that is not known"),
        (b"1\n2\n", "a.jsonl", "no row is JSON with texts"),
    ],
)
def test_nothing_usable_is_said(raw, name, word):
    with pytest.raises(InputError, match=word):
        read_corpus(raw, name)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="could not be read"):
        read_corpus(tmp_path / "none.txt", "none.txt")


def test_the_browsers_limits_name_the_command_line(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="python -m components index"):
        read_corpus(b"a\nb\nc", "a.txt", limits=Limits(2, 1000))
    path = tmp_path / "a.txt"
    path.write_bytes(b"aaaa")
    for source in (b"aaaa", path):
        with pytest.raises(InputError, match="python -m components index"):
            read_corpus(source, "a.txt", limits=Limits(10, 3))
    assert browser_limits() == Limits(1_000_000, 200_000_000)
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_SENTENCES", "5")
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_BYTES", "1K")
    assert browser_limits() == Limits(5, 1024)


def test_the_hash_is_of_texts_and_their_order():
    first = read_corpus(b"one\ntwo", "a.txt").content_hash
    assert first == read_corpus(b"text\none\ntwo", "b.csv").content_hash
    assert first != read_corpus(b"two\none", "a.txt").content_hash
    assert first != read_corpus(b"onet\nwo", "a.txt").content_hash


def test_duplicate_names_of_columns_stay_apart():
    found = read_corpus(b"text,text\na b c,d e f\n", "a.csv", "text (1)")
    assert found.texts == ("a b c",)
    assert found.columns == {"text (2)": ("d e f",)}


def test_dataset_names_and_files():
    assert corpus_hub.is_dataset_name("embedding-data/sentence-compression")
    for bad in ("", "../x", "a/b/c", "a b", "/etc/passwd", "a--b"):
        assert not corpus_hub.is_dataset_name(bad)
        with pytest.raises(InputError, match="not a dataset's name"):
            corpus_hub.fetch_dataset(bad)
    names = ("data/test.parquet", "data/train.parquet")
    assert corpus_hub._likeliest(names) == "data/train.parquet"
    assert corpus_hub._likeliest(("b.jsonl.gz",)) == "b.jsonl.gz"
    assert corpus_hub._likeliest(()) is None
    assert corpus_hub._is_data("sentence-compression_compressed.jsonl.gz")
    assert not corpus_hub._is_data("README.txt")
    assert not corpus_hub._is_data("model.bin")


def test_without_a_network_a_dataset_is_refused_at_once(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="out of reach"):
        corpus_hub.fetch_dataset("embedding-data/sentence-compression")


def test_a_large_file_of_lines_is_read(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"sentence number {at}" for at in range(50_000)), encoding="utf-8")
    assert len(read_corpus(path, "a.txt")) == 50_000
