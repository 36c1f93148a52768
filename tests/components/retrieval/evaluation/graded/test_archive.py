"""A collection packed as one .zip is read as its folder is; archives that will not do say why."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from components.errors import InputError
from components.jobs import Cancelled
from components.retrieval.corpora.readers.limits import Limits
from components.retrieval.evaluation.graded import archive, collection
from tests.components.retrieval.evaluation.graded.test_collection import BEIR, check


def packed(files: Mapping[str, bytes], folder: str = "") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packing:
        for name, data in files.items():
            packing.writestr(f"{folder}{name}", data)
    return content.getvalue()


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
    assert set(archive.unpacked(content, "a.zip", lambda path: path.endswith("jsonl"))) == {"corpus.jsonl"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK no archive", "could not be read"),
        (packed(BEIR)[:-40], "could not be read"),
        (packed({"corpus.jsonl": BEIR["corpus.jsonl"]}), "the judgements (qrels) cannot be found"),
        (packed({"corpus.jsonl": b" " * (20 << 20)}), "expands to more than 200 times"),
    ],
    ids=["no archive", "cut off", "one part", "bomb"],
)
def test_archives_that_will_not_do_say_why(content: bytes, words: str) -> None:
    with pytest.raises(InputError) as refused:
        collection.read_graded({"a.zip": content})
    assert words in str(refused.value)


def test_all_files_of_an_archive_keep_within_one_files_limit_and_can_be_stopped() -> None:
    content = packed({"corpus.jsonl": b"a" * 600, "queries.jsonl": b"b" * 600})
    with pytest.raises(InputError, match="when unpacked"):
        archive.unpacked(content, "a.zip", lambda _: True, Limits(10, 1_000))
    with pytest.raises(Cancelled):
        archive.unpacked(content, "a.zip", lambda _: True, is_cancelled=lambda: True)


def test_the_command_line_reads_the_folder_and_the_page_its_zip_alike(tmp_path: Path) -> None:
    for name, data in BEIR.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    folder = collection.read_graded_folder(tmp_path)
    assert collection.read_graded({"a.zip": packed(BEIR)}).content_hash == folder.content_hash
