"""Texts in two flat files: all characters, and the offset of each text. Texts are read one at a time.

A million sentences as Python strings take some 150 MB in every process that opens them; mapped into memory, only the
texts that are read take any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np

from components.arrays import Int64, mapped_array, read_only
from components.errors import InputError
from components.folders import plain_file
from components.model.tokenization import clean_text

_BLOCK = 1 << 20  # offsets that are compared together


class StoredTexts(Sequence[str]):
    """A read-only sequence of texts."""

    def __init__(self, characters: np.ndarray, offsets: np.ndarray) -> None:
        self._characters = characters  # uint8
        self._offsets = offsets  # int64 [text + 1]

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        start, end = self._offsets[index], self._offsets[index + 1]
        try:
            return self._characters[start:end].tobytes().decode("utf-8")
        except UnicodeDecodeError as problem:
            raise InputError(
                f"Text {index:,} of the index is damaged.",
                "The texts of an index must be valid UTF-8.",
                "Check the folder with `python -m components check DIR`, or build the index again.",
            ) from problem

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts that can be embedded into an index, with other columns if they have any: columns[name][i] belongs to texts[i]."""

    name: str
    texts: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as text; "" where a row has no value

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the texts with their number, order and boundaries, but not of the other columns."""
        return hash_of(self.texts)

    @cached_property
    def columns_hash(self) -> str:
        """SHA-256 of the names and contents of the other columns; empty if there are none."""
        if not self.columns:
            return ""
        digest = hashlib.sha256()
        for name, values in sorted(self.columns.items()):
            for part in (name, *values):
                digest.update(len(part).to_bytes(8, "little") + part.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @cached_property
    def nbytes(self) -> int:
        """Bytes of memory of the texts and the other columns, about."""
        return sum(map(memory_of_texts, (self.texts, *self.columns.values())))

    def __len__(self) -> int:
        return len(self.texts)


def memory_of_texts(texts: Sequence[str]) -> int:
    """Bytes of memory that texts take, those of repeated ones each time."""
    return 8 * len(texts) + sum(map(str.__sizeof__, texts))


def hash_of(texts: Sequence[str]) -> str:
    """SHA-256 of texts with their number, order and boundaries."""
    lengths = np.fromiter(map(len, texts), dtype="<i8", count=len(texts))
    digest = hashlib.sha256(lengths.tobytes())
    digest.update("".join(texts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def text_files(stem: Path) -> tuple[Path, Path]:
    """The files that `write_texts` writes: the characters of all texts, and the offset of each."""
    return Path(f"{stem}.utf8"), Path(f"{stem}.offsets.npy")


def write_texts(stem: Path, texts: Iterable[str]) -> None:
    """Write `stem`.utf8 and `stem`.offsets.npy. Invalid characters become U+FFFD."""
    path, offsets_path = text_files(stem)
    offsets = [0]
    with plain_file(path, "wb") as file:
        for text in texts:
            offsets.append(offsets[-1] + file.write(clean_text(text).encode("utf-8")))
    with plain_file(offsets_path, "wb") as file:
        np.save(file, np.array(offsets, np.int64))


def bytes_of_texts(texts: Sequence[str]) -> int:
    """Bytes of the files that `write_texts` writes for these, but for some hundred of their headers."""
    return 8 * (len(texts) + 1) + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _is_ascending(offsets: np.ndarray) -> bool:
    """Whether no offset is below the one before. They are read a block at a time: a comparison of all takes memory."""
    blocks = (offsets[start : start + _BLOCK + 1] for start in range(0, len(offsets) - 1, _BLOCK))
    return all((block[1:] >= block[:-1]).all() for block in blocks)


def open_texts(stem: Path) -> StoredTexts:
    """The texts that `write_texts` wrote. Raises ValueError (or OSError) for files that do not belong together."""
    path, offsets_path = text_files(stem)
    offsets = mapped_array(offsets_path)
    characters = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)
    is_list = offsets.ndim == 1 and offsets.dtype == np.int64 and len(offsets) > 0
    is_whole = is_list and offsets[0] == 0 and offsets[-1] == len(characters)
    if not is_whole or not _is_ascending(offsets):
        raise ValueError(f"{path.name} and its offsets do not belong together")
    return StoredTexts(characters, offsets)


def first_rows(texts: Sequence[str], among: Iterable[int] | None = None) -> Int64:
    """[text]: the first row that has the same text, of the rows `among`, by default all; -1 where none of these has it."""
    first: dict[str, int] = {}
    for row in range(len(texts)) if among is None else among:
        first.setdefault(texts[row], row)
    return read_only(np.array([first.get(text, -1) for text in texts], np.int64))
