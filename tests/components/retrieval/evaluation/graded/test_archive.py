"""A collection packed as one .zip is read as its folder is; archives that will not do say why."""

from __future__ import annotations

import gzip
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.corpora.readers.limits import Limits
from components.retrieval.evaluation.graded import archive, collection
from components.retrieval.evaluation.graded.files import GradedJudgements
from tests.support.judged_collections import BEIR, check, packed

BOMB = {"corpus.jsonl": b" " * (20 << 20)}
SMALLER_BOMB = {"corpus.jsonl": b" " * (1 << 20)}


@pytest.mark.parametrize("folder", ["", "cranfield/", "my-documents/"])
def test_a_packed_folder_is_read_as_the_folder(folder: str) -> None:
    others = {"README.txt": b"about", "__MACOSX/._corpus.jsonl": b"x", ".hidden/queries.jsonl": b"x"}
    found = collection.read_graded({"cranfield.zip": packed(BEIR | others, folder)})
    check(found)
    assert found.name == "cranfield"
    assert set(found.report.files.values()) == set(BEIR)


def test_of_several_splits_the_test_split_is_read_also_compressed() -> None:
    train = b"query-id\tcorpus-id\tscore\nq1\td2\t2\n"
    files = {name: gzip.compress(data) if name.endswith("jsonl") else data for name, data in BEIR.items()}
    files = {name + (".gz" if name.endswith("jsonl") else ""): data for name, data in files.items()}
    found = collection.read_graded({"a.zip": packed(files | {"qrels/train.tsv": train})})
    check(found)
    assert found.report.files["judgements"] == "qrels/test.tsv"


def test_what_is_no_part_of_a_collection_is_not_unpacked() -> None:
    content = packed({"corpus.jsonl": b"{}", "pictures/cat.png": b"p", "notes.txt": b"n"})
    assert set(archive.unpacked(content, "a.zip", lambda path: "corpus" if path.endswith("jsonl") else None)) == {
        "corpus.jsonl"
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK no archive", "could not be read"),
        (packed(BEIR)[:-40], "could not be read"),
        (packed({"corpus.jsonl": BEIR["corpus.jsonl"]}), "the judgements (qrels) cannot be found"),
        (packed(BOMB), "expands to more than 200 times"),
        (packed(SMALLER_BOMB, method=zipfile.ZIP_BZIP2), "is compressed by bzip2"),
        (packed(SMALLER_BOMB, method=zipfile.ZIP_LZMA), "is compressed by LZMA"),
    ],
    ids=["no archive", "cut off", "one part", "bomb", "bomb in bzip2", "bomb in LZMA"],
)
def test_archives_that_will_not_do_say_why(content: bytes, words: str) -> None:
    with pytest.raises(InputError) as refused:
        collection.read_graded({"a.zip": content})
    assert words in str(refused.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_cannot_be_unpacked_in_blocks_is_not_opened(method: int, monkeypatch: pytest.MonkeyPatch) -> None:
    content, opened = packed({"corpus.jsonl": b"{}"}, method=method), []
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *arguments: opened.append(arguments))
    with pytest.raises(InputError, match="is compressed by"):
        archive.unpacked(content, "a.zip", lambda _: True)
    assert not opened


def test_files_that_are_not_compressed_are_read() -> None:
    check(collection.read_graded({"a.zip": packed(BEIR, method=zipfile.ZIP_STORED)}))


@pytest.mark.parametrize("others", [{"b.zip": packed(BEIR)}, {"corpus.jsonl": BEIR["corpus.jsonl"]}])
def test_an_archive_with_another_file_is_refused_unread(others: dict[str, bytes]) -> None:
    for files in ({"a.zip": packed(BEIR)} | others, others | {"a.zip": b"damaged"}):
        with pytest.raises(InputError, match=r"Choose one \.zip, or the three files"):
            collection.read_graded(files)


def test_an_archives_own_bytes_are_freed_before_its_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the archive is a file, nothing holds its bytes while the files are read."""

    (tmp_path / "a.zip").write_bytes(packed(BEIR))
    freed: list[bool] = []

    class Content(bytes):
        def __del__(self) -> None:
            freed.append(True)

    monkeypatch.setattr(collection, "read_bytes", lambda path, *_: Content(path.read_bytes()))
    read, seen = collection.read_judgements, []

    def read_judgements(*arguments: Any) -> GradedJudgements:
        seen.append(bool(freed))
        return read(*arguments)

    monkeypatch.setattr(collection, "read_judgements", read_judgements)
    check(collection.read_graded({"a.zip": tmp_path / "a.zip"}))
    assert seen == [True]


def test_damaged_archives_are_refused_in_words_of_their_own() -> None:
    """Whatever byte is damaged, the archive is read or refused."""
    whole = packed(BEIR | {"queries/café.tsv": b"x"})
    draw = random.Random(0)
    refused: list[str] = []
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            archive.unpacked(bytes(damaged), "a.zip", lambda _: True, Limits(10, 1 << 20))
        except InputError as problem:
            refused.append(str(problem))
    assert len(refused) > 100
    assert all("a.zip" in words for words in refused)


def test_paths_that_are_megabytes_long_together_are_refused_before_they_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3,100 paths of 32,500 folders each took 22 seconds and 787 MB."""
    content = packed(BEIR | {f"{'a/' * 30_000}{number}.tsv": b"" for number in range(80)})
    opened: list[object] = []
    monkeypatch.setattr(zipfile, "ZipFile", lambda *arguments: opened.append(arguments))
    with pytest.raises(InputError, match=r"paths and descriptions of the files in a\.zip take"):
        archive.unpacked(content, "a.zip", lambda _: True)
    assert not opened


def test_a_path_that_no_folder_has_is_left_aside() -> None:
    files = archive.unpacked(packed({"a.tsv": b"x", f"{'a/' * 600}b.tsv": b"x"}), "a.zip", lambda path: path)
    assert list(files) == ["a.tsv"]


def test_the_work_can_be_stopped_while_paths_are_looked_at() -> None:
    asked: list[str] = []
    with pytest.raises(Stopped):
        archive.unpacked(packed(BEIR), "a.zip", asked.append, is_stopped=lambda: True)
    assert not asked


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/.", "docs/"])
def test_names_that_name_nothing_are_left_aside(name: str) -> None:
    check(collection.read_graded({"a.zip": packed(BEIR | {name: b"x"})}))


def test_a_name_in_broken_utf_8_is_refused() -> None:
    content = packed({"queries-é.jsonl": b"{}"}).replace("é".encode(), b"\xff\xff")
    with pytest.raises(InputError, match="could not be read"):
        archive.unpacked(content, "a.zip", lambda _: True)


def test_too_many_files_are_refused_before_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    content = packed({f"{number}.txt": b"" for number in range(30)})
    assert len(archive.unpacked(content, "a.zip", str)) == 30
    monkeypatch.setattr(archive, "_MOST_FILES", 29)
    monkeypatch.setattr(zipfile, "ZipFile", None)  # nothing is made of the entries
    with pytest.raises(InputError, match="holds 30 files"):
        archive.unpacked(content, "a.zip", str)


@pytest.mark.parametrize("folder", ["", "trec-8/"])
def test_topics_and_judgements_are_read_whatever_their_ending(folder: str) -> None:
    topics = b"<top>\n<num> Number: 301\n<title> crime\n</top>\n"
    files = {"documents.tsv": b"d1\tcrime\nd2\tpeace\n", "topics.301-350": topics, "qrels.trec8": b"301 0 d1 1\n"}
    loose = collection.read_graded(files)
    found = collection.read_graded({"a.zip": packed(files | {"LICENSE": b"x", "documents.pdf": b"x"}, folder)})
    assert found.content_hash == loose.content_hash
    assert found.queries == ("crime",)


def test_unclear_archives_are_explained_for_the_page() -> None:
    train = {"qrels/train.tsv": BEIR["qrels/test.tsv"], "qrels/dev.tsv": BEIR["qrels/test.tsv"]}
    files = {name: data for name, data in BEIR.items() if "qrels" not in name} | train
    with pytest.raises(InputError) as refused:
        collection.read_graded({"a.zip": packed(files)})
    words = str(refused.value)
    assert "Among the files of a.zip: the judgements (qrels) could be qrels/train.tsv or qrels/dev.tsv." in words
    assert "Pack one file of each" in words
    assert "--split" not in words
    assert "folder" not in words


def test_all_files_of_an_archive_keep_within_one_files_limit_and_can_be_stopped() -> None:
    content = packed({"corpus.jsonl": b"a" * 600, "queries.jsonl": b"b" * 600})
    with pytest.raises(InputError, match="when unpacked"):
        archive.unpacked(content, "a.zip", lambda _: True, Limits(10, 1_000))
    with pytest.raises(Stopped):
        archive.unpacked(content, "a.zip", lambda _: True, is_stopped=lambda: True)


def test_the_command_line_reads_the_folder_and_the_page_its_zip_alike(tmp_path: Path) -> None:
    for name, data in BEIR.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    folder = collection.read_graded_folder(tmp_path)
    assert collection.read_graded({"a.zip": packed(BEIR)}).content_hash == folder.content_hash
