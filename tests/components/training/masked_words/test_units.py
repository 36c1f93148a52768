"""What is trained on: readers, the filter of eight words in a row, weights, tokens."""

from __future__ import annotations

import gzip
import json
import struct
import zlib

import numpy as np
import pytest

from components.errors import InputError
from components.folders import ASSETS
from components.training.masked_words import sources, units
from components.training.masked_words.units import Forbidden, SourceUnits
from tests.support.masked_words import write_wordnet
from tests.support.tiny import wordpiece_tokenizer


def test_eight_words_in_a_row_are_forbidden_and_short_sentences_whole():
    forbidden = Forbidden(["One two three, four five six seven eight nine.", "a b c", "Birds have two wings."])
    assert forbidden.is_in("Zero ONE two three four five six seven eight!")
    assert forbidden.is_in("two three four - five six seven eight nine ten")
    assert not forbidden.is_in("one two three four five six seven, and eight nine")
    assert not forbidden.is_in("a b c")  # of three words: any text has such
    assert forbidden.is_in("We know that birds have two wings and a beak.")
    assert not forbidden.is_in("birds have two")


def test_nothing_that_is_measured_or_shown_gets_into_the_text(tmp_path, monkeypatch):
    """Sentences of the classroom, README, lessons and Start in a book leave it; a changed one stays."""
    monkeypatch.setattr(sources, "OWN_TEXTS", tmp_path / "none.gz")
    asked = json.loads(units.CLASSROOM.read_text(encoding="utf-8"))
    classroom = asked[5]["sentence"].replace("[MASK]", asked[5]["answers"][0])
    start = json.loads((ASSETS / "start.json").read_text(encoding="utf-8"))["senses"]["sentences"][0]
    lesson = next(
        line
        for line in (ASSETS / "lessons" / "03-two-banks.md").read_text(encoding="utf-8").splitlines()
        if line.count(" ") > 9
    )
    readme = "Tests compare every number with plain transformers and torch, and fail when a page connects to another machine."
    good = "My aunt keeps three old hens behind the shed because she likes fresh eggs."
    folder = tmp_path / "dict-devil"
    folder.mkdir()
    book = "\n\n".join([classroom, start, lesson, readme, good])
    (folder / "devil.dict.dz").write_bytes(gzip.compress(book.encode()))
    material = units.gather(tmp_path, frozenset(), None, [units.CLASSROOM])
    (part,) = (part for part in material.parts if part.source.package)
    assert part.units == (good,)
    assert part.left_out == 4
    assert [len(rows) for rows in material.measured.values()] == [60, 60, 49]
    assert list(material.measured) == ["class a", "class b", "class c"]


def test_the_projects_own_texts_hold_nothing_that_is_measured():
    """The whole file, once the filter has passed it: few units fall to it."""
    own = list(sources.read_own_texts(sources.OWN_TEXTS))
    asked = [row for rows in units.read_masked(units.CLASSROOM).values() for row in rows]
    forbidden = Forbidden(row["sentence"].replace("[MASK]", answer) for row in asked for answer in row["answers"])
    assert len(own) == len(set(own)) > 10_000
    assert sum(map(forbidden.is_in, own)) < len(own) / 200
    assert own == sorted(own)


def test_what_is_missing_is_named_once_and_left_out(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(sources, "OWN_TEXTS", tmp_path / "none.gz")
    write_wordnet(tmp_path / "wordnet-base" / "usr" / "share" / "wordnet")
    running = tmp_path / "running.txt"
    running.write_text("The old dog and the small cat sat in the sun.\nToo short.\n" * 3)
    material = units.gather(tmp_path, frozenset({"dog", "cat", "pet", "soft"}), running, [])
    assert {part.source.name for part in material.parts} >= {source.name for source in sources.WORDNET_SOURCES}
    assert {row["answers"][0] for row in material.measured["news"]} <= {"dog", "cat"}
    assert len(material.measured["news"]) == 3
    for source in sources.TEXT_SOURCES:
        assert sum(source.package in record.message for record in caplog.records) == 1
    card = material.card()
    assert {"name", "package", "licence", "words", "weight"} == set(card[0])
    assert next(row["words"] for row in card if row["name"] == "WordNet examples") == 11


def test_without_any_text_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "OWN_TEXTS", tmp_path / "none.gz")
    with pytest.raises(InputError, match="dpkg -x"):
        units.gather(tmp_path, frozenset(), None, [])


@pytest.mark.parametrize(
    "text", ["{", '[{"sentence": "no mask", "answers": ["a"]}]', '[{"sentence": "a [MASK]"}]', "[3]"]
)
def test_a_classroom_file_that_is_none_is_refused(tmp_path, text):
    path = tmp_path / "room.json"
    path.write_text(text)
    with pytest.raises(InputError, match="JSON list"):
        units.read_masked(path)


def test_no_source_is_under_the_gpl():
    assert [source.name for source in sources.SOURCES if "GPL" in source.licence or not source.licence] == []
    assert len({source.name for source in sources.SOURCES}) == len(sources.SOURCES)
    assert {source.package for source in sources.SOURCES} == {
        *(
            "wordnet-base",
            "r-cran-janeaustenr",
            "r-cran-tokenizers",
            "golang-github-jdkato-prose-dev",
            "golang-1.19-src",
        ),
        *("golang-github-klauspost-compress-dev", "sword-text-web", "dict-devil", "dict-jargon", "gnome-user-docs"),
        *("libreoffice-help-en-us", ""),
    }


def test_sentences_are_joined_to_units():
    assert sources.sentences('Mr. Bell saw it. "So did I!" she said. He left') == [
        *("Mr. Bell saw it.", '"So did I!" she said.', "He left")
    ]
    long = " ".join(["word"] * 30) + "."
    assert list(sources.units([f"{long} One two three four five. Six seven.", "Only two."])) == [
        *(long, "One two three four five. Six seven.")
    ]


def test_strings_of_an_r_database_are_found(tmp_path):
    def string(text):
        return struct.pack(">Ii", 0x00040009, len(text)) + text

    content = b"X\n\0\0\0" + string(b"first line") + struct.pack(">Ii", 0x00000009, -1) + b"\0\1" + string(b"second")
    blobs = [zlib.compress(content), zlib.compress(string(b"other"))]
    path = tmp_path / "Rdata.rdb"
    path.write_bytes(b"".join(struct.pack(">I", 99) + blob for blob in blobs))
    assert list(sources.r_strings(path)) == [["first line", "second"], ["other"]]


def test_a_sword_text_loses_its_marks(tmp_path):
    verse = zlib.compress(b"<chapter n='1'><title>T</title>A man <note>n</note>sat , and rose.</chapter>")
    (tmp_path / "ot.bzz").write_bytes(b"xx" + verse)
    (tmp_path / "ot.bzs").write_bytes(struct.pack("<III", 0, 0, 0) + struct.pack("<III", 2, len(verse), 9))
    assert sources.sword_text(tmp_path / "ot.bzz").split() == ["A", "man", "sat,", "and", "rose."]


def test_headers_of_gutenberg_are_no_text():
    book = "Licence\n*** START OF THIS BOOK ***\nOnce upon a time.\n*** END OF THIS BOOK ***\nLicence"
    assert sources.without_gutenberg(book).strip() == "Once upon a time."


def test_units_become_pieces_with_their_sources_weights():
    tokenizer = wordpiece_tokenizer().backend_tokenizer
    parts = (
        SourceUnits(sources.OWN, ("the cat sat .", "walking"), 0),
        SourceUnits(sources.WORDNET_SOURCES[0], ("a dog " * 100,), 0),
    )
    found = units.tokenise(parts, tokenizer)
    assert found.lengths().tolist() == [4, 2, 126]
    assert found.weights.tolist() == pytest.approx([9, 9, 0.5])
    assert found.pieces[4:6].tolist() == [tokenizer.token_to_id("walk"), tokenizer.token_to_id("##ing")]
    counts = found.counts(tokenizer.get_vocab_size())
    assert counts[tokenizer.token_to_id("cat")] == 9
    assert counts[tokenizer.token_to_id("dog")] == pytest.approx(63 * 0.5)
    other = units.Units(found.pieces, found.starts, np.ones(3, np.float32))
    assert found.digest() != other.digest()
