"""What is copied from an address, and how much of it: whoever holds it says what there is, and need not tell the truth."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyarrow import fs

from components.errors import InputError
from components.retrieval.corpora.readers.limits import Limits
from components.retrieval.corpora.readers.places import files_at


class Bucket(fs.FileSystemHandler):
    """An address that somebody else holds: files by path, and what it says of their sizes."""

    def __init__(self, files: dict[str, bytes], says: int | None = None) -> None:
        self.files, self.says, self.read = files, says, list[str]()

    def get_type_name(self) -> str:
        return "bucket"

    def _info(self, path: str) -> fs.FileInfo:
        if path in self.files:
            size = len(self.files[path]) if self.says is None else self.says
            return fs.FileInfo(path, fs.FileType.File, size=size)
        is_folder = any(name.startswith(f"{path}/") for name in self.files)
        return fs.FileInfo(path, fs.FileType.Directory if is_folder else fs.FileType.NotFound)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return [self._info(path) for path in self.files if path.startswith(f"{selector.base_dir}/")]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        self.read.append(path)
        return pa.BufferReader(self.files[path])

    open_input_file = open_input_stream

    def normalize_path(self, path: str) -> str:
        return path

    def _unused(self, *_: object) -> None:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = move = copy_file = _unused
    open_output_stream = open_append_stream = _unused


def at_bucket(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, path: str = "bucket/folder") -> str:
    system = fs.PyFileSystem(bucket)
    monkeypatch.setattr("pyarrow.fs.FileSystem", SimpleNamespace(from_uri=lambda address: (system, path)))
    return f"s3://{path}"


def test_of_an_address_only_what_can_be_read_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.txt": b"One.\n", "inner/b.txt": b"Two.\n", "c.bin": bytes(99), ".d.txt": b"x", "../../e.txt": b"x"}
    bucket = Bucket({f"bucket/folder/{name}": content for name, content in files.items()})
    with files_at(at_bucket(monkeypatch, bucket), Limits(10, 10)) as (found, left_out):
        assert [path.read_bytes() for path in found] == [b"One.\n", b"Two.\n"]
        assert left_out == ["c.bin"]
    assert [path.rsplit("/", 1)[1] for path in bucket.read] == ["a.txt", "b.txt"]


@pytest.mark.parametrize("says", [None, 0])
@pytest.mark.parametrize("path", ["bucket/folder", "bucket/folder/a.txt"])
def test_no_more_is_copied_from_an_address_than_the_limit(
    monkeypatch: pytest.MonkeyPatch, says: int | None, path: str
) -> None:
    bucket = Bucket({"bucket/folder/a.txt": b"x" * 5_000, "bucket/folder/b.txt": b"x" * 5_000}, says)
    address = at_bucket(monkeypatch, bucket, path)
    with pytest.raises(InputError, match=r"s3://bucket/folder.* has more than 4"), files_at(address, Limits(10, 4_096)):
        pass
    assert len(bucket.read) == (0 if says is None else 1)
    if path == "bucket/folder":  # each file for itself is small enough
        with pytest.raises(InputError, match="has more than"), files_at(address, Limits(10, 9_999)):
            pass
    with files_at(address, Limits(10, 10_000)) as (found, _):
        assert len(found) == (2 if path == "bucket/folder" else 1)


def test_an_address_has_no_more_files_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket({f"bucket/folder/{number}.txt": b"" for number in range(10_001)})
    with pytest.raises(InputError, match="has 10,001 files"), files_at(at_bucket(monkeypatch, bucket), Limits(10, 10)):
        pass
