"""The limits of reading: how large a file may be, and how much of it a reader keeps in memory.

A small file can take gigabytes: gzip packs a thousand equal bytes into one, and an empty list of JSON, two characters long,
takes 56 bytes in memory. So every reader counts while it reads, and stops at a limit before the memory is taken:

- bytes, compressed and decompressed, and how many times more the second are (`Limits.bytes`, MOST_EXPANSION)
- rows, those that cannot be used included (`Limits.rows`), and the characters and fields of a row (MOST_ROW_CHARACTERS,
  MOST_FIELDS), which have limits without `Limits` too
- the memory of the values that are kept (`Limits.memory`), by `memory_of`

What is kept of a file and what is read from together stay below three times `Limits.bytes`, besides a few blocks of a few
MB. A Parquet file is read in a second process, which takes up to three times `Limits.bytes` and 128 MB besides, for as long
as it reads. Of a test collection this holds for each of its three files; while a packed one is read, all that was unpacked
takes up to `Limits.bytes` besides, and so do the bytes of the .zip where the caller holds them, as the server does.

Whoever started the reading can stop it: `is_stopped` is asked for each block of rows or bytes, and Stopped raised.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import getsizeof
from typing import Any

from components import operator_settings
from components.errors import InputError, first_line
from components.jobs import IsStopped, Stopped
from components.sizes import in_words

ROWS_PER_SENTENCE = 3  # rows that are read for each sentence of the limit: many can be blank or without text
MOST_ROW_CHARACTERS = 1 << 20
MOST_FIELDS = 10_000
MOST_EXPANSION = 200  # times that gzip may expand a file, from EXPANDED_BYTES on; text expands 3 to 20 times
EXPANDED_BYTES = 16 << 20
RAISED = "--most-sentences 10000000 --most-bytes 2G"  # options of every command that reads a file
LONG_ROW = f"a row of more than {MOST_ROW_CHARACTERS:,} characters"
_GZIP = b"\x1f\x8b"
_BLOCK_BYTES = 1 << 20
_CHECKED_ROWS = 1_000
_SLOT, _ROW, _NUMBER = 8, 48, 96  # bytes of a reference, a row's number, and a number together with its text


def never() -> bool:
    """Nobody stops the work."""
    return False


@dataclass(frozen=True)
class Limits:
    """The largest corpus that is read."""

    sentences: int
    bytes: int  # of the file, compressed and decompressed
    command: str = "index {name} --out DIR"  # takes options that raise the limits

    @property
    def rows(self) -> int:
        """The most rows that are read, those without a sentence included."""
        return ROWS_PER_SENTENCE * self.sentences

    @property
    def memory(self) -> int:
        """The most bytes of memory that the values of a file take."""
        return 2 * self.bytes

    def exceeded(self, name: str, size: str) -> InputError:
        """The error for a corpus `name` of `size` ("2,000,000 sentences")."""
        return InputError(
            f"{name} has {size}.",
            f"The limit is {self.sentences:,} sentences or {in_words(self.bytes, binary=True)}.",
            self.remedy(name),
        )

    def remedy(self, name: str) -> str:
        """What a person can do about a corpus above a limit."""
        return (
            "If you trust it, use the command line, where the limits can be raised: python -m components "
            f"{self.command.format(name=name)} {RAISED}"
        )


@dataclass(frozen=True)
class CommandLimits(Limits):
    """The limits of a command, which has options that raise them."""

    def remedy(self, name: str) -> str:
        return f"If you trust it, raise the limits, for example with {RAISED}"


BROWSER_LIMITS = Limits(
    operator_settings.CORPUS_SENTENCES.default or 0, operator_settings.CORPUS_BYTES.default or 0
)  # by default; it also stands for the operator's


def browser_limits() -> Limits:
    """The operator's limits, 1,000,000 sentences and 200 MB by default. Raises InputError for invalid ones."""
    return Limits(operator_settings.CORPUS_SENTENCES.value(), operator_settings.CORPUS_BYTES.value())


class Count:
    """What a reader has read and kept so far, of the file `name`. Without limits nothing is refused.

    `is_stopped` is asked for each block of rows or bytes.
    """

    def __init__(self, name: str, limits: Limits | None, is_stopped: IsStopped = never) -> None:
        self._name, self._limits = name, limits
        self.is_stopped = is_stopped
        self.rows = self.memory = 0
        self._next_check = 0  # a number of rows

    def check(self) -> None:
        """Raise Stopped if somebody stopped the work."""
        if self.is_stopped():
            raise Stopped

    def go_back(self, rows: int, memory: int) -> None:
        """Count from an earlier state again."""
        self.rows, self.memory, self._next_check = rows, memory, rows

    def add_rows(self, rows: int) -> None:
        """Count rows that were read. Raises InputError above the limit, and Stopped."""
        self.rows += rows
        if self.rows >= self._next_check:
            self._next_check = self.rows + _CHECKED_ROWS
            self.check()
        if self._limits is not None and self.rows > self._limits.rows:
            raise self._limits.exceeded(self._name, f"more than {self._limits.rows:,} rows")

    def add_values(self, *columns: Sequence[Any]) -> None:
        """Count the values of rows that are kept. Raises InputError where they take more memory than the limit."""
        if self._limits is not None and columns:
            self.add_memory(_ROW * len(columns[0]) + sum(map(memory_of_all, columns)))

    def add_memory(self, memory: int) -> None:
        """Count bytes of memory. Raises InputError above the limit."""
        self.memory += memory
        if self._limits is not None and self.memory > self._limits.memory:
            raise self._limits.exceeded(
                self._name, f"values that take more than {in_words(self._limits.memory, binary=True)} of memory"
            )


def memory_of_all(values: Sequence[Any]) -> int:
    """Bytes that a list of values takes, with the texts that are made of numbers."""
    kinds = set(map(type, values))
    if kinds <= {str}:  # as in nearly all columns
        return _SLOT * len(values) + sum(map(str.__sizeof__, values))
    if kinds <= {int, float, bool}:
        return (_SLOT + _NUMBER) * len(values)
    return _SLOT * len(values) + sum(map(memory_of, values))


def memory_of(value: Any) -> int:
    """Bytes that a value of a file takes, without its reference; of a list or an object with all that it holds."""
    if isinstance(value, str | bytes):
        return getsizeof(value)
    if value is None:
        return 0
    if isinstance(value, list):
        return getsizeof(value) + sum(map(memory_of, value))
    if isinstance(value, dict):
        return getsizeof(value) + sum(map(memory_of, value)) + sum(map(memory_of, value.values()))
    return _NUMBER


def read_bytes(source: Path | bytes, name: str, limits: Limits | None, is_stopped: IsStopped = never) -> bytes:
    """The bytes of a file, decompressed up to the limits.

    Raises InputError for a file that is larger or cannot be read, and Stopped.
    """
    try:
        content = source if isinstance(source, bytes) else _read_file(source, limits)
    except OSError as problem:
        raise unreadable(name, problem) from problem
    if limits is not None and len(content) > limits.bytes:
        raise limits.exceeded(name, f"more than {in_words(limits.bytes, binary=True)}")
    return decompressed(content, name, limits, is_stopped) if content.startswith(_GZIP) else content


def _read_file(path: Path, limits: Limits | None) -> bytes:
    """All bytes of a file, or one more than the limit: what it says of its size need not be true."""
    with path.open("rb") as file:
        return file.read(-1 if limits is None else limits.bytes + 1)


def decompressed(content: bytes, name: str, limits: Limits | None, is_stopped: IsStopped = never) -> bytes:
    """The content of gzip's bytes, which is read no further than the limits. Raises InputError and Stopped."""

    def check_size(size: int) -> None:
        if limits is not None and size > limits.bytes:
            raise limits.exceeded(name, f"more than {in_words(limits.bytes, binary=True)} when decompressed")

    unpacked = io.BytesIO()  # its value is no copy, unlike that of joined blocks
    for block in content_blocks(content, name, None if limits is None else check_size, is_stopped):
        unpacked.write(block)
    return unpacked.getvalue()


def content_blocks(
    source: Path | bytes, name: str, check_size: Callable[[int], None] | None, is_stopped: IsStopped = never
) -> Iterator[bytes]:
    """The content of a file a block at a time, decompressed if gzip packed it.

    `check_size` gets the number of bytes so far, and raises an error where there are too many; without it, neither their
    number nor how far they expand has a limit. Raises InputError for a file that cannot be read or expands far more than
    text does, and Stopped.
    """
    size = 0
    try:
        compressed = len(source) if isinstance(source, bytes) else source.stat().st_size
        with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as raw:
            is_packed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if is_packed else raw
            while block := file.read(_BLOCK_BYTES):
                if is_stopped():
                    raise Stopped
                size += len(block)
                if check_size is not None:
                    check_size(size)
                    _check_expansion(size, compressed, name)
                yield block
    except (OSError, EOFError, zlib.error) as problem:
        raise unreadable(name, problem) from problem


def _check_expansion(decompressed_bytes: int, compressed_bytes: int, name: str) -> None:
    """Raise InputError where a file expands far more than text does."""
    if decompressed_bytes > max(EXPANDED_BYTES, MOST_EXPANSION * compressed_bytes):
        raise InputError(
            f"{name} expands to more than {MOST_EXPANSION} times its {compressed_bytes:,} bytes.",
            "Compressed texts usually expand 3 to 20 times.",
            "Decompress it, and check that it contains what you expect.",
        )


def unreadable(name: str, problem: Exception) -> InputError:
    """The error for a file that the system or a library cannot read."""
    return InputError(
        f"{name} could not be read: {first_line(problem)}.",
        "Only a complete and undamaged file can be read.",
        "Check that it is complete and that this program may read it, or download or export it again.",
    )
