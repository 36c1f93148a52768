"""Bytes to text: encodings told, found out and refused; and texts made fit."""

from __future__ import annotations

import codecs
from contextlib import suppress

import pytest

from components.errors import InputError
from components.retrieval.corpora.corpus import BadRow, read_corpus
from components.retrieval.corpora.readers import encoding as encoding_module
from components.retrieval.corpora.readers.encoding import clean, decode

GERMAN = "Die Größe der Häuser überrascht.\nGrüße aus München und Österreich.\nEr weiß, dass es später wird.\n"
FRENCH = "Le garçon a mangé une pêche à l'été.\nÇa va très bien, où êtes-vous né ?\nLa forêt brûle déjà.\n"
TYPOGRAPHIC = "It’s a “quoted” word – and a café for €5.\nThe naïve plan didn’t work.\n"
POLISH = "Zażółć gęślą jaźń, proszę bardzo.\nMężczyzna wszedł do pokoju i usiadł.\nŻółty samochód jedzie szybko.\n"
RUSSIAN = "Сегодня хорошая погода.\nВыборы прошли в воскресенье, результаты объявлены.\nНовая компания открылась.\n"
JAPANESE = "今日はとても良い天気です。\n東京で新しい会社が発表されました。\n選挙の結果が発表された。\n"
ENGLISH = "A man walks his dog in the park every morning before work.\n" * 50


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "latin-1"),
        (FRENCH, "latin-1"),
        (FRENCH, "cp1252"),
        (TYPOGRAPHIC, "cp1252"),
        (ENGLISH + FRENCH + ENGLISH, "cp1252"),  # few lines tell
        (POLISH, "cp1250"),
        (RUSSIAN, "cp1251"),
        (JAPANESE, "shift-jis"),
        (JAPANESE, "euc-jp"),
        (JAPANESE, "utf-8"),
        (JAPANESE, "utf-8-sig"),
        (JAPANESE, "utf-16"),
        (JAPANESE, "utf-32"),
        (TYPOGRAPHIC, "utf-16-le"),
        (TYPOGRAPHIC, "utf-16-be"),
    ],
)
def test_the_encoding_is_found_out_and_named(text, encoding):
    content = text.encode(encoding)
    corpus = read_corpus(content, "a.txt")
    assert corpus.texts == tuple(text.splitlines())
    report = corpus.report
    # The name can be given back, and then says the same; it is a guess unless the bytes leave no choice.
    assert read_corpus(content, "a.txt", encoding=report.encoding).texts == corpus.texts
    assert report.encoding_guessed == (encoding not in {"utf-8", "utf-8-sig", "utf-16", "utf-32"})
    if not report.encoding_guessed:
        assert report.encoding == encoding


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_western_text_is_windows_1252(encoding):
    """Latin-1's printable characters stand at the same places there, so both are right."""
    assert decode(GERMAN.encode(encoding), "a.txt").encoding == "cp1252"


@pytest.mark.parametrize("name", ["utf_16_le", "utf_16_be"])
def test_a_mark_beats_everything_and_is_no_part_of_the_text(name):
    mark = codecs.BOM_UTF16_LE if name.endswith("le") else codecs.BOM_UTF16_BE
    decoded = decode(mark + GERMAN.encode(name), "a.txt")
    assert "".join(decoded.blocks()) == GERMAN
    assert (decoded.encoding, decoded.guessed) == ("utf-16", False)


def test_a_named_encoding_overrides_what_would_be_found():
    content = "naïve café".encode()
    assert read_corpus(content, "a.txt", encoding="latin-1").texts == ("naÃ¯ve cafÃ©",)
    assert read_corpus(content, "a.txt", encoding="latin-1").report.encoding == "latin-1"
    assert read_corpus("\ufeffmarked".encode(), "a.txt", encoding="utf-8").texts == ("marked",)


def test_a_named_encoding_that_does_not_fit_says_where():
    with pytest.raises(InputError) as caught:
        read_corpus("one\ntwo\ncafé".encode("latin-1"), "a.txt", encoding="utf-8")
    assert "byte 12, about line 3" in caught.value.problem


@pytest.mark.parametrize(
    "encoding", ["klingon", "hex", "rot13", "zlib", "idna", "punycode", "unicode_escape", "a\0b", ""]
)
def test_a_name_of_no_text_encoding_is_refused(encoding):
    with pytest.raises(InputError, match="There is no text encoding"):
        read_corpus(b"text", "a.txt", encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-7", "UTF7", "U7", "unicode-1-1-utf-7"])
def test_an_encoding_whose_time_grows_with_the_square_is_refused(encoding):
    with pytest.raises(InputError, match="is not available"):
        read_corpus(b"text", "a.txt", encoding=encoding)


@pytest.mark.parametrize("encoding", ["hz", "iso2022_jp", "iso2022_kr"])
def test_encodings_that_switch_in_mid_text_are_read_across_blocks(encoding, monkeypatch):
    monkeypatch.setattr(encoding_module, "BLOCK_BYTES", 3)
    text = "\u4e2d\u6587 and \u4e2d"
    assert read_corpus(text.encode(encoding), "a.txt", encoding=encoding).texts == (text,)


def test_bytes_that_are_no_text_are_refused():
    noise = bytes((i * 7919 + i // 256 * 31) % 256 for i in range(20_000))
    with pytest.raises(InputError, match="could not be read as text"):
        read_corpus(noise, "a.txt")


def test_utf_16_whose_mark_is_not_at_its_beginning_is_no_error_of_the_program():
    with suppress(InputError):
        decode(b"\x00\n\xff\xfes\x00", "a.tsv")
    with pytest.raises(InputError, match="is not utf-16: byte 1"):
        decode("a river".encode("utf-16-le"), "a.txt", "utf-16")


def test_a_few_broken_bytes_cost_their_rows_and_not_the_encoding():
    """A file joined from several: nearly all UTF-8, one line in Latin-1."""
    content = (JAPANESE + GERMAN).encode() + "ein Café\n".encode("latin-1") + "schön\n".encode()
    corpus = read_corpus(content, "a.txt")
    assert corpus.texts == (*JAPANESE.splitlines(), *GERMAN.splitlines(), "schön")
    assert corpus.report.bad_rows == (BadRow(7, "bytes that are not utf-8"),)
    assert (corpus.report.encoding, corpus.report.encoding_guessed) == ("utf-8", True)


def test_as_many_broken_bytes_as_whole_characters_are_another_encoding():
    assert decode("é".encode() + b" caf\xe9", "a.txt").encoding != "utf-8"
    assert decode("éé".encode() + b" caf\xe9", "a.txt").encoding == "utf-8"


def test_broken_bytes_in_another_column_are_marked_and_the_row_kept():
    content = "text,note\nein schönes Haus am See,gut\nein altes Haus,".encode() + b"caf\xe9\n"
    corpus = read_corpus(content + "größer und früher,ä\n".encode(), "a.csv", "text")
    assert corpus.texts == ("ein schönes Haus am See", "ein altes Haus", "größer und früher")
    assert corpus.columns["note"] == ("gut", "caf\ufffd", "ä")


def test_a_long_file_is_judged_by_the_lines_that_tell_and_read_to_its_end():
    content = b"Only plain words here.\n" * 100_000 + FRENCH.encode("cp1252")
    corpus = read_corpus(content, "a.txt")
    assert corpus.texts[-3:] == tuple(FRENCH.splitlines())


@pytest.mark.parametrize(
    ("given", "text", "changed"),
    [
        ("plain", "plain", False),
        ("  spaces  inside  ", "spaces  inside", False),
        ("two\nlines\r\nand\ttab", "two lines and tab", False),
        ("a\u00a0b\u200dc\ufe0f", "a\u00a0b\u200dc\ufe0f", False),  # joiners and selectors make one sign of two
        ("a\0b\x1b[0m", "ab[0m", True),
        ("half \ud83d", "half \ufffd", True),
        ("halves that meet \ud83d\ude00", "halves that meet \U0001f600", True),
        ("\0", "", True),
    ],
)
def test_clean(given, text, changed):
    cleaned = clean(given)
    assert (cleaned.text, cleaned.changed) == (text, changed)
    cleaned.text.encode()  # every part can carry it
