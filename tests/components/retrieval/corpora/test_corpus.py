"""Corpora of every format: which rows are kept, which are bad and why, and which column is the text."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.errors import InputError
from components.retrieval.corpora.corpus import (
    BROWSER_LIMITS,
    BadRow,
    Corpus,
    Limits,
    ReadReport,
    browser_limits,
    columns_of,
    read_corpus,
    read_parts,
)
from components.retrieval.corpora.readers.limits import Count
from components.retrieval.corpora.readers.table import BadRows, rows_left_out
from tests.support.places import DATA, REAL_SENTENCES

ROWS = [
    {
        "id": 1,
        "sentence": "A volcano erupted on Java, and thousands fled.",
        "compressed": "Volcano erupts",
        "topic": "disaster",
    },
    {"id": 2, "sentence": 'He said "never again" and left\nthe room.', "compressed": "He left", "topic": "politics"},
    {"id": 3, "sentence": "Zürich's café — öffnet später; 今日は。", "compressed": "Café öffnet", "topic": "économie"},
]
SENTENCES = tuple(row["sentence"].replace("\n", " ") for row in ROWS)
COLUMNS = {
    "id": ("1", "2", "3"),
    "compressed": tuple(row["compressed"] for row in ROWS),
    "topic": tuple(row["topic"] for row in ROWS),
}


def as_csv(delimiter=",", newline="\n"):
    def quoted(value):
        return '"' + str(value).replace('"', '""') + '"'

    lines = [delimiter.join(ROWS[0])] + [delimiter.join(quoted(value) for value in row.values()) for row in ROWS]
    return newline.join([*lines, ""]).encode()


def as_parquet(table, path):
    pq.write_table(table, path)
    return path


def given_of(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    return caught.value.problem


FILES = {
    "rows.csv": as_csv(),
    "semicolons.csv": as_csv(";"),
    "tabs.csv": as_csv("\t"),
    "windows.csv": as_csv(newline="\r\n"),
    "spreadsheet.csv": b"sep=;\n" + as_csv(";"),
    "rows.tsv": as_csv("\t"),
    "rows.jsonl": "\n".join(json.dumps(row) for row in ROWS).encode(),
    "plain.ndjson": "\r\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode(),
    "rows.json": json.dumps(ROWS, indent=1).encode(),
    "lines.json": "\n".join(json.dumps(row) for row in ROWS).encode(),
    "rows.jsonl.gz": gzip.compress("\n".join(json.dumps(row) for row in ROWS).encode(), mtime=0),
    "rows.csv.gz": gzip.compress(as_csv(), mtime=0),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_corpus(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    for corpus in (read_corpus(FILES[name], name), read_corpus(path, "some name")):
        assert corpus.texts == SENTENCES
        assert dict(corpus.columns) == COLUMNS
        assert (corpus.report.rows, corpus.report.kept, corpus.report.bad_count) == (3, 3, 0)
        assert corpus.report.text_column == "sentence"
    assert corpus.name == "some name"


@pytest.mark.parametrize("packed", [False, True])
def test_parquet_gives_the_same_corpus(tmp_path, packed):
    path = as_parquet(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    if packed:
        path = tmp_path / "rows.parquet.gz"
        path.write_bytes(gzip.compress((tmp_path / "rows.parquet").read_bytes()))
    # With limits, as the browser reads, a process of its own reads it.
    for source, limits in (
        (path, None if packed else BROWSER_LIMITS),
        (path.read_bytes(), BROWSER_LIMITS if packed else None),
    ):
        corpus = read_corpus(source, path.name, limits=limits)
        assert corpus.texts == SENTENCES
        assert dict(corpus.columns) == COLUMNS


def test_lines_are_sentences_and_blank_ones_are_counted():
    corpus = read_corpus(b"One.\n\n  Two,\twith a tab.  \r\n   \nThree.", "a.txt")
    assert corpus.texts == ("One.", "Two, with a tab.", "Three.")
    assert corpus.report.bad_rows == (BadRow(2, "empty"), BadRow(4, "empty"))
    assert corpus.report.rows == 5
    assert corpus.columns == {}


def test_a_line_breaks_at_line_feeds_only():
    """U+2028 and U+0085 stand inside sentences of web corpora; str.splitlines would cut there."""
    corpus = read_corpus("One\u2028half.\nTwo\x85halves.\rThree.".encode(), "a.txt")
    assert corpus.texts == ("One half.", "Two halves.", "Three.")


def test_control_characters_and_half_characters_are_taken_out_and_counted():
    texts = ["A\\u0000B\\u0007 C", "half \\ud83d here", "whole \\ud83d\\ude00 here", "\\u0000"]
    content = "\n".join(f'{{"text": "{text}"}}' for text in texts).encode()
    corpus = read_corpus(content, "a.jsonl")
    assert corpus.texts == ("AB C", "half \ufffd here", "whole \U0001f600 here")
    assert corpus.report.cleaned == 2
    assert corpus.report.bad_rows == (BadRow(4, "empty"),)


def test_bad_rows_of_json_are_counted_with_their_reason():
    lines = [
        '{"text": "good"}',
        '{"text": 5}',
        '{"text": null}',
        '{"other": "x"}',
        '{"text": "cut',
        "7",
        "",
        '"plain"',
        "[" * 100_000,
    ]
    report = read_corpus("\n".join(lines).encode(), "a.jsonl", text_column="text").report
    assert report.bad_rows == (
        BadRow(2, "a number instead of text"),
        BadRow(3, "no text"),
        BadRow(4, "no text"),
        BadRow(5, "broken JSON"),
        BadRow(6, "not an object, text or list"),
        BadRow(7, "empty"),
        BadRow(9, "broken JSON"),
    )
    assert (report.rows, report.kept, report.bad_count) == (9, 2, 7)


def test_bad_rows_of_csv_are_counted_with_their_line():
    lines = ["text,label", "one,a", "two", "three,b,c", "", '"four', 'in two lines",d', ",e", '"five" and,f', "six,g"]
    corpus = read_corpus("\n".join(lines).encode(), "a.csv", text_column="text")
    assert corpus.texts == ("one", "four in two lines", "six")
    assert corpus.columns["label"] == ("a", "d", "g")
    assert corpus.report.bad_rows == (
        BadRow(3, "1 field instead of 2"),
        BadRow(4, "3 fields instead of 2"),
        BadRow(5, "empty"),
        BadRow(8, "empty"),
        BadRow(9, "quotes do not match"),
    )


@pytest.mark.parametrize("place", [0, 3, 1999])
def test_a_quote_that_is_never_closed_costs_its_own_line_only(place):
    lines = [f"sentence {i},{i}" for i in range(2_000)]
    lines[place] = f'"sentence {place},{place}'
    corpus = read_corpus("\n".join(["text,n", *lines]).encode(), "a.csv")
    assert corpus.texts == tuple(f"sentence {i}" for i in range(2_000) if i != place)
    assert corpus.report.bad_rows == (BadRow(place + 2, "quotes do not match"),)


def test_a_file_full_of_open_quotes_is_refused_in_time():
    """Each line keeps the quote of the one before open, so that a reader that goes back would read it all each time."""
    started = time.thread_time()  # this thread's own work: other processes do not count
    assert "quotes do not match" in given_of(read_corpus, b"text,n\n" + b'x","y\n' * 200_000, "a.csv")
    assert time.thread_time() - started < 10  # going back would take hours
    corpus = read_corpus(b"text,n\n" + b'x","y\n' * 500 + b"good,1\n", "a.csv", "text")
    assert corpus.texts == ("good",)
    assert corpus.report.bad_count == 500
    assert {row.reason for row in corpus.report.bad_rows} == {"quotes do not match"}


def test_between_tabs_a_quote_may_be_just_a_quote():
    corpus = read_corpus(b'text\tn\n"Never" he said.\t1\n"Open\t2\nLast.\t3\n', "a.tsv")
    assert corpus.texts == ('"Never" he said.', '"Open', "Last.")
    assert corpus.report.bad_count == 0


def test_a_field_longer_than_the_readers_limit_is_a_bad_row():
    report = read_corpus(b"text,n\n" + b"a" * 140_000 + b",1\nshort one,2\n", "a.csv", "text").report
    assert report.bad_rows == (BadRow(2, "a field of more than 131,072 characters"),)


def test_only_the_first_hundred_bad_rows_are_kept_and_all_are_counted():
    report = read_corpus(b"a\n" + b"\n" * 250, "a.txt").report
    assert len(report.bad_rows) == 100
    assert report.bad_rows[-1] == BadRow(101, "empty")
    assert report.bad_count == 250


def test_duplicates_are_kept_and_reported():
    corpus = read_corpus(b"b\na\nb\n b\na\nc\n", "a.txt")
    assert corpus.texts == ("b", "a", "b", "b", "a", "c")
    assert corpus.report.duplicates == 3
    assert corpus.report.duplicate_examples == ("b", "a")


# -- which column is the text


def test_the_column_asked_for_is_the_text():
    corpus = read_corpus(FILES["rows.csv"], "a.csv", text_column="compressed")
    assert corpus.texts == COLUMNS["compressed"]
    assert corpus.columns["sentence"] == SENTENCES


def test_a_wrong_column_is_answered_with_the_columns():
    with pytest.raises(InputError) as caught:
        read_corpus(FILES["rows.csv"], "a.csv", text_column="Sentence")
    assert "id, sentence, compressed, topic" in caught.value.expected


def test_columns_that_are_alike_are_not_guessed():
    content = b"sentence1,sentence2,score\nA man eats.,A man is eating.,5.0\nA girl sings.,A boy sings loud.,2.5\n"
    given = given_of(read_corpus, content, "sts.csv")
    assert "sentence1, sentence2, score" in given
    assert [(column.name, column.is_text, column.is_guess) for column in columns_of(content, "sts.csv")] == [
        ("sentence1", True, False),
        ("sentence2", True, False),
        ("score", False, False),
    ]
    assert read_corpus(content, "sts.csv", "sentence2").texts == ("A man is eating.", "A boy sings loud.")


@pytest.mark.parametrize(
    ("content", "column"),
    [
        (b"title,Text\nA much longer title than the text,short\n", "Text"),  # by name, whatever the case
        (b"body,author\nA long report on the weather of the week,Ann Smith\n", "body"),  # by length
        (b"url,note\nhttps://example.org/a/very/long/address/of/a/page,short note\n", "note"),  # an address is no text
        (b"n,m,word\n1,2,yes\n", "word"),  # the only one with letters
        (b"only\n42\n", "only"),
    ],
)
def test_the_text_is_guessed_by_name_then_by_length(content, column):
    assert read_corpus(content, "a.csv").report.text_column == column
    assert [preview.name for preview in columns_of(content, "a.csv") if preview.is_guess] == [column]


def test_previews_show_the_first_values():
    previews = {preview.name: preview for preview in columns_of(FILES["rows.jsonl"], "rows.jsonl")}
    assert previews["topic"].examples == COLUMNS["topic"]
    assert previews["id"].examples == ("1", "2", "3")
    assert previews["compressed"].mean_characters == pytest.approx((14 + 7 + 11) / 3)
    assert [name for name, preview in previews.items() if preview.is_guess] == ["sentence"]
    assert [preview.name for preview in columns_of(b"a\nb", "a.txt")] == ["text"]


def test_names_of_columns_are_made_fit():
    corpus = read_corpus(b'text,,a,a,"b\nc"\nHello you,1,2,3,4\n', "a.csv")
    assert dict(corpus.columns) == {"column 2": ("1",), "a": ("2",), "a (4)": ("3",), "b c": ("4",)}
    assert list(read_corpus(b'{"text": "x y", "\\ud800": 1}', "a.jsonl").columns) == ["\ufffd"]


def test_other_values_are_kept_as_text():
    row = {
        "text": "A text.",
        "none": None,
        "list": [1, "é"],
        "object": {"a": 1},
        "number": 0.5,
        "yes": True,
        "nan": float("nan"),
    }
    corpus = read_corpus(json.dumps(row).encode(), "a.jsonl")
    assert dict(corpus.columns) == {
        "none": ("",),
        "list": ('[1, "é"]',),
        "object.a": ("1",),
        "number": ("0.5",),
        "yes": ("True",),
        "nan": ("",),
    }


# -- pairs


def test_a_set_column_is_unpacked_into_sentence_and_compressed():
    """The schema of embedding-data/sentence-compression."""
    lines = [{"set": ["A long sentence here.", "Short."]}, {"set": ["alone"]}, {"set": ["x", ""]}, {"set": ["y", 3]}]
    lines += [{"set": ["Another long one.", "Brief."]}, {"set": "no list"}]
    corpus = read_corpus("\n".join(map(json.dumps, lines)).encode(), "pairs.jsonl")
    assert corpus.texts == ("A long sentence here.", "Another long one.")
    assert dict(corpus.columns) == {"compressed": ("Short.", "Brief.")}
    assert corpus.report.bad_rows == (
        BadRow(2, "one text instead of two"),
        BadRow(3, "empty"),
        BadRow(4, "a number instead of text"),
        BadRow(6, "one text instead of two"),
    )


def test_bare_lists_are_sets_and_longer_sets_keep_every_text():
    corpus = read_corpus(b'["a b", "c"]\n["d e", "f", "g"]', "pairs.jsonl")
    assert corpus.texts == ("a b", "d e")
    assert dict(corpus.columns) == {"compressed": ("c", "f"), "set 3": ("", "g")}


def test_of_a_very_long_set_the_rest_is_named_as_left_out():
    corpus = read_corpus(json.dumps([f"text {i}" for i in range(5_000)]).encode(), "a.jsonl")
    assert len(corpus.columns) == 9
    assert corpus.report.left_out == ("set 11 and on",)


def test_a_set_column_of_parquet_is_unpacked(tmp_path):
    table = pa.table({"set": [["A long one.", "Short."], ["Next.", "N."]], "label": [1, 2]})
    corpus = read_corpus(as_parquet(table, tmp_path / "a.parquet"), "a.parquet", limits=None)
    assert corpus.texts == ("A long one.", "Next.")
    assert dict(corpus.columns) == {"label": ("1", "2"), "compressed": ("Short.", "N.")}


# -- parquet


def test_parquet_text_kept_as_bytes_is_text_and_other_bytes_are_left_out(tmp_path):
    table = pa.table(
        {
            "text": pa.array(["Olé!".encode(), b"Zwei."], pa.binary()),
            "picture": pa.array([b"\x89PNG\xff", b"\xff\xd8"], pa.binary()),
            "sound": [{"bytes": b"RIFF", "rate": 1}, {"bytes": b"RIFF", "rate": 2}],
            "kind": pa.array(["a", "a"]).dictionary_encode(),
        }
    )
    corpus = read_corpus(as_parquet(table, tmp_path / "a.parquet"), "a.parquet", limits=None)
    assert corpus.texts == ("Olé!", "Zwei.")
    assert dict(corpus.columns) == {"kind": ("a", "a")}
    assert corpus.report.left_out == ("picture", "sound")


def test_parquet_strings_that_are_not_utf8_are_bad_rows(tmp_path):
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\3\0\0\0\6\0\0\0"), pa.py_buffer(b"abc\xff\xfe\xfd")]
    )
    path = as_parquet(pa.table({"text": broken, "n": ["a", "b"]}), tmp_path / "a.parquet")
    corpus = read_corpus(path, "a.parquet", "text")
    assert corpus.texts == ("abc",)
    assert corpus.report.bad_rows == (BadRow(2, "bytes that are not utf-8"),)
    assert read_corpus(path, "a.parquet", "n", limits=None).columns["text"] == ("abc", "\ufffd" * 3)


def test_parquet_over_many_batches_keeps_its_order(tmp_path):
    texts = [f"sentence {i}" for i in range(5_000)]
    path = as_parquet(pa.table({"text": texts, "n": range(5_000)}), tmp_path / "a.parquet")
    corpus = read_corpus(path, "a.parquet")
    assert corpus.texts == tuple(texts)
    assert corpus.columns["n"] == tuple(map(str, range(5_000)))


def test_the_parts_of_a_corpus_are_read_one_behind_the_other(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one", "x": 1, "y": 2}\n\n', "utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "two", "x": 3}\noops\n', "utf-8")
    corpus = read_corpus([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], "both")
    assert corpus.texts == ("one", "two")
    assert dict(corpus.columns) == {"x": ("1", "3")}
    assert corpus.report.left_out == ("y",)
    assert corpus.report.bad_rows == (BadRow(2, "empty"), BadRow(4, "broken JSON"))  # numbered on


# -- what is refused


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "a.txt", "no sentence"),
        (b"\n\n \n", "a.txt", "3 rows: empty"),
        (b"text,label\n", "a.csv", "no rows"),
        (b"", "a.csv", "no rows"),
        (b"{}\n{}", "a.jsonl", "2 rows: not an object"),
        (b"oops", "a.jsonl", "(1 row: broken JSON)"),
        (b"oops", "a.json", "JSON"),
        (b"[]", "a.json", "no rows"),
        (b"no parquet", "a.parquet", "could not be read"),
        (b"", "a.parquet", "could not be read"),
        (b"\x1f\x8b broken", "a.txt.gz", "could not be read"),
        (gzip.compress(b"many words " * 1000, mtime=0)[:-20], "a.txt.gz", "could not be read"),
        (b"PK\x03\x04 a spreadsheet", "a.csv", "Office document"),
        (b"\x80\x04\x95\x10\x00\x00", "a.txt", "pickle"),
        (b"%PDF-1.7", "a.txt", "PDF"),
        (b"text", "a.docx", "format of a.docx is not known"),
        (b"text", "noending", "not known"),
        (b'"text,label\none,two\n', "a.csv", "quotes do not match"),
    ],
)
def test_a_file_with_nothing_to_read_is_refused_with_the_reason(content, name, words):
    assert words in given_of(read_corpus, content, name)


def test_a_path_that_is_no_file_is_refused(tmp_path):
    assert "There is no file" in given_of(read_corpus, tmp_path / "none.txt", "none.txt")
    (tmp_path / "folder.txt").mkdir()
    assert "There is no file" in given_of(read_corpus, tmp_path / "folder.txt", "folder.txt")
    assert given_of(read_corpus, Path("nul\0.txt"), "nul.txt")


def test_a_parquet_cut_short_is_refused(tmp_path):
    path = as_parquet(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    content = path.read_bytes()
    assert "could not be read" in given_of(read_corpus, content[: len(content) // 2], "a.parquet", limits=None)
    spoilt = content[:10] + bytes(len(content) - 1000 - 10) + content[-1000:]
    if spoilt != content:
        assert given_of(read_corpus, spoilt, "a.parquet")


# -- limits


def test_more_sentences_than_the_limit_names_the_command_line():
    with pytest.raises(InputError) as caught:
        read_corpus(b"a\nb\n\nc\n", "big.txt", limits=Limits(2, 1_000))
    assert "more than 2 sentences" in caught.value.problem
    assert "python -m components index big.txt" in caught.value.fix
    assert len(read_corpus(b"a\n\nb\n", "a.txt", limits=Limits(2, 1_000)).texts) == 2  # a blank line is no sentence
    assert len(read_corpus(b"a\nb\nc\n", "a.txt", limits=None).texts) == 3


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_more_bytes_than_the_limit_are_not_read(name, tmp_path):
    content = b"word " * 100_000 if name == "a.txt" else gzip.compress(b"word " * 100_000)
    limits = Limits(10, 400_000)
    (tmp_path / name).write_bytes(content)
    for source in (content, tmp_path / name):
        with pytest.raises(InputError, match="python -m components index"):
            read_corpus(source, name, limits=limits)


def test_a_parquet_that_unpacks_to_more_than_the_limit_is_refused(tmp_path):
    path = as_parquet(pa.table({"text": ["the same long text " * 1_000] * 2_000}), tmp_path / "a.parquet")
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="python -m components index"):
        read_corpus(path, "a.parquet", limits=Limits(10_000, 8 << 20))


def test_different_texts_stand_in_the_order_of_the_corpus():
    corpus = read_corpus(b"Dogs bark.\nA cat sat.\nDogs bark.\nCats purr.", "a.txt")
    assert corpus.different.tolist() == [0, 1, 3]


def test_lists_are_unpacked_where_half_of_the_values_are_lists():
    def texts(*values):
        return read_corpus("\n".join(json.dumps({"text": value}) for value in values).encode(), "a.jsonl").texts

    assert texts(["Dogs bark.", "A dog barks."], "A cat sat.") == ("Dogs bark.",)
    assert texts(["Dogs bark.", "A dog barks."], "A cat sat.", "Cats purr.") == ("A cat sat.", "Cats purr.")


def test_rows_of_further_parts_are_numbered_behind_the_first():
    parts = [b"text\nDogs bark.\nCats purr.\n", b"text\nCows moo.\nBirds sing.\n"]
    table = read_parts(parts, "a.csv", None, None, Count("a.csv", None))
    assert list(table.numbers) == [2, 3, 5, 6]


def test_many_parts_count_together(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("a\nb\n", "utf-8")
    parts = [tmp_path / f"{number}.txt" for number in range(3)]
    assert "5" in given_of(read_corpus, parts, "parts", limits=Limits(5, 1_000))
    assert len(read_corpus(parts, "parts", limits=Limits(6, 1_000)).texts) == 6


def test_the_operator_sets_the_limits(monkeypatch):
    assert browser_limits() == BROWSER_LIMITS == Limits(1_000_000, 200 << 20)
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_SENTENCES", "2")
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_BYTES", "3K")
    assert browser_limits() == Limits(2, 3 << 10)
    assert "more than 2 sentences" in given_of(read_corpus, b"a\nb\nc", "a.txt")
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_SENTENCES", "many")
    with pytest.raises(InputError, match="BERT_INTERNALS_CORPUS_SENTENCES"):
        browser_limits()
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_SENTENCES", "2")
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_BYTES", "much")
    with pytest.raises(InputError, match="BERT_INTERNALS_CORPUS_BYTES"):
        browser_limits()


# -- the hash


def corpus_of(*texts, **columns):
    return Corpus("name", texts, columns, ReadReport(len(texts), len(texts)))


def test_the_hash_is_of_the_texts_and_their_borders():
    first = corpus_of("ab", "c").content_hash
    others = [("a", "bc"), ("abc",), ("c", "ab"), ("ab", "c", ""), ("ab", "C"), ("ab", "c "), ()]
    hashes = {corpus_of(*texts).content_hash for texts in others}
    assert len(hashes) == len(others)
    assert first not in hashes
    assert corpus_of("ab", "c", topic=("x", "y")).content_hash == first
    assert len(first) == 64


def test_the_hash_does_not_depend_on_the_format():
    assert len({read_corpus(content, name).content_hash for name, content in FILES.items()}) == 1


@pytest.mark.skipif(not DATA.is_dir(), reason="the data for measuring is not here")
def test_the_files_for_measuring_are_read_whole():
    sentences = read_corpus(REAL_SENTENCES, "36k")
    assert (len(sentences.texts), sentences.report.bad_count, sentences.report.duplicates) == (36_000, 0, 0)
    pairs = read_corpus(DATA / "compression-pairs.jsonl", "pairs")
    assert (len(pairs.texts), pairs.report.bad_count, pairs.report.text_column) == (2_810, 0, "sentence")
    assert set(pairs.columns) == {"compressed", "source"}


def test_a_column_named_sentence_is_the_text_though_some_rows_hold_none():
    lines = b'{"sentence": "ok one"}\nnot json\n{"other": 1}\n{"sentence": null}\n[1, 2]\n{"sentence": "ok two"}\n'
    found = read_corpus(lines, "odd.jsonl")
    assert found.texts == ("ok one", "ok two")
    assert found.report.bad_count == 4


def test_few_bad_rows_are_named_each_and_of_many_the_reasons_are_counted():
    bad = BadRows([BadRow(7, "1 field instead of 3"), BadRow(12, "empty")])
    few = rows_left_out(2, 44, bad.reasons, bad.first)
    assert few == "2 of 44 rows cannot be used and are left out: row 7 (1 field instead of 3), row 12 (empty)."
    bad = BadRows(BadRow(row, "empty") for row in range(2, 8))
    many = rows_left_out(6, 44, bad.reasons, bad.first)
    assert many.startswith("6 of 44 rows cannot be used and are left out: empty: 6 rows. The first: row 2 (empty), ")
