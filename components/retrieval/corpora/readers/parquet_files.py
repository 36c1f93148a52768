"""Parquet files to a table, a batch of rows at a time, from a process of their own where there are limits."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components import operator_settings
from components.errors import InputError
from components.retrieval.corpora.readers import parquet_child
from components.retrieval.corpora.readers.limits import LONG_ROW, MOST_ROW_CHARACTERS, Count, Limits, unreadable
from components.retrieval.corpora.readers.table import MOST_COLUMNS, SAMPLES_KEPT, BadRows, Samples, Table
from components.sizes import in_words

WORKING_MEMORY = 128 << 20  # bytes that the process takes beside the file's values
WATCH_SECONDS = 0.1  # how often the process is stopped if somebody asks for it
JUDGED_VALUES, JUDGED_BYTES = 10, 256 << 10  # the first values of a column show whether they are texts
# Windows has neither signal.
_KILLED, _TIME = getattr(signal, "SIGKILL", 9), getattr(signal, "SIGXCPU", 24)
log = logging.getLogger(__name__)


def read_parquet(source: Path | bytes, name: str, limits: Limits | None, max_rows: int | None, count: Count) -> Table:
    """The table of a parquet file, or its first `max_rows` rows. Columns of bytes other than text are left out, and so are
    rows of more than MOST_ROW_CHARACTERS, which are counted.

    Raises InputError for a file that is damaged or above a limit, and Stopped.
    """
    import pyarrow as pa

    rows, bad = 0, BadRows()
    skipped: set[int] = set()  # numbers of rows that are too long
    try:
        with closing(
            _rows_here(source, name)
            if limits is None
            else _rows_of_child(source, name, limits, count, is_part=max_rows is not None)
        ) as parts:
            every_column: list[str] = next(parts)
            columns = _ParquetColumns(count)
            for batch in parts:
                count.add_rows(batch.num_rows)
                values = {column: _values(batch.column(column), pa) for column in batch.schema.names}
                sizes = (
                    map(_characters, zip(*values.values(), strict=True)) if batch.nbytes > MOST_ROW_CHARACTERS else ()
                )
                long = {row for row, size in enumerate(sizes) if size > MOST_ROW_CHARACTERS}
                if long:
                    values = {
                        name: [value for row, value in enumerate(column) if row not in long]
                        for name, column in values.items()
                    }
                for row in sorted(long):
                    bad.add(rows + row + 1, LONG_ROW)
                    skipped.add(rows + row + 1)
                columns.add(values)
                rows += batch.num_rows
                if max_rows is not None and rows - len(skipped) >= max_rows:
                    break
    except InputError:
        raise
    # A damaged file can raise any of these; dates and times that Python's cannot hold raise the last.
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError) as problem:
        raise unreadable(name, problem) from problem
    kept = columns.finish()
    left_out = tuple(column for column in every_column if column not in kept)
    table: dict[str, Sequence[Any]] = {key: column[:max_rows] for key, column in kept.items()}
    every_number = range(1, rows + 1)  # which takes no memory
    numbers: Sequence[int] = [number for number in every_number if number not in skipped] if skipped else every_number
    samples = Samples()
    for row, number in enumerate(numbers[:SAMPLES_KEPT]):
        samples.add(
            number, [json.dumps({key: column[row] for key, column in kept.items()}, ensure_ascii=False, default=str)]
        )
    return Table(table, numbers[:max_rows], bad, left_out=left_out, samples=samples.first)


@dataclass
class _Column:
    """The values of a column so far, and the first ones' kinds: most of them decide whether it is one of bytes."""

    values: list[Any] = field(default_factory=list)
    is_judged: bool = False
    present: int = 0  # values that are not missing
    files: int = 0  # of them bytes that are not text
    size: int = 0  # of these bytes

    def judge(self, values: Sequence[Any], is_last: bool) -> bool:
        """Whether the column stays, as far as its next values show it."""
        self.present += sum(value is not None for value in values)
        sizes = [len(value) for value in values if isinstance(value, bytes)]
        self.files += len(sizes)
        self.size += sum(sizes)
        self.is_judged = is_last or self.present >= JUDGED_VALUES or self.size > JUDGED_BYTES
        return not self.is_judged or 2 * self.files <= self.present


class _ParquetColumns:
    """The columns of a table. Those of bytes that are not text are left out: pictures, sounds, hashes."""

    def __init__(self, count: Count) -> None:
        self.columns: dict[str, _Column] | None = None
        self._count = count

    def add(self, batch: Mapping[str, list[Any]]) -> None:
        """Add the rows of a batch. Raises InputError above the limit of memory."""
        if self.columns is None:
            self.columns = {name: _Column() for name in batch}
        counted = []
        for name, column in list(self.columns.items()):
            values = batch[name]
            if column.is_judged:
                counted.append(values)
            elif column.judge(values, is_last=False):
                # Bytes count once it is known that they stay.
                counted.append([None if isinstance(value, bytes) else value for value in values])
                self._count.add_memory(column.size if column.is_judged else 0)
            else:
                del self.columns[name]
                continue
            column.values += values
        self._count.add_values(*counted)

    def finish(self) -> dict[str, list[Any]]:
        """The values by column, those with few values judged by these."""
        columns = self.columns or {}
        return {name: each.values for name, each in columns.items() if each.is_judged or each.judge((), is_last=True)}


def _rows_here(source: Path | bytes, name: str) -> Generator[Any]:
    """The names of all columns, then the batches of rows, read in this process."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    opened: Any = source if isinstance(source, Path) else pa.BufferReader(source)
    with pq.ParquetFile(opened) as file:
        schema = file.schema_arrow
        yield list(dict.fromkeys(schema.names))
        try:
            yield from parquet_child.batches(file, parquet_child.readable_columns(schema, MOST_COLUMNS))
        except OverflowError as problem:
            raise _large_row(name) from problem


def _rows_of_child(source: Path | bytes, name: str, limits: Limits, count: Count, is_part: bool) -> Generator[Any]:
    """The same, read in a process that may take no more memory than the limits allow, and do no more work.

    Unless only a part is wanted, a file that says to have more rows than the limit is refused before any is read.
    """
    import pyarrow as pa

    path = str(source.absolute()) if isinstance(source, Path) else "-"
    memory = limits.memory + WORKING_MEMORY
    most_rows = sys.maxsize if is_part else limits.rows - count.rows
    process = subprocess.Popen(
        [sys.executable, "-P", parquet_child.__file__, path, str(memory), str(MOST_COLUMNS), str(most_rows)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # The other pools reserve 1 GB at once.
        env=operator_settings.environment() | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    # A thread of its own, since this one waits for the process.
    watch = _ProcessWatch(process, count)
    watch.start()
    pool = pa.system_memory_pool()  # gives memory back, while the others keep hundreds of MB
    try:
        with suppress(BrokenPipeError):  # it has ended, and its status says why
            if isinstance(source, bytes):
                process.stdin.write(source)
            process.stdin.close()
        problem: Exception | None = None
        try:
            with pa.ipc.open_stream(process.stdout, memory_pool=pool) as stream:
                yield [row.as_py() for batch in stream for row in batch.column(0)]
            with pa.ipc.open_stream(process.stdout, memory_pool=pool) as stream:
                yield from stream
        except (pa.ArrowException, OSError) as broken:  # the stream breaks off
            problem = broken
        # A stream can also break off between two batches, which looks like its end.
        said = process.stderr.read().decode("utf-8", "replace")
        status = process.wait()
        count.check()  # that it was stopped is why it ended
        if problem is not None or status != 0:
            raise _ended(name, limits, memory, status, said) from problem
    finally:
        watch.end.set()
        process.kill()
        process.wait()
        watch.join()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                stream.close()


class _ProcessWatch(threading.Thread):
    """Ends a process whose work is stopped."""

    def __init__(self, process: subprocess.Popen[bytes], count: Count) -> None:
        super().__init__(name="parquet watch", daemon=True)
        self.end = threading.Event()
        self._process, self._count = process, count

    def run(self) -> None:
        while not self.end.wait(WATCH_SECONDS):
            if self._count.is_stopped():
                self._process.kill()
                return


def _ended(name: str, limits: Limits, memory: int, status: int, said: str) -> InputError:
    """The error for a process that ended with a status (-N for signal N), and what it wrote to the standard error."""
    if status == parquet_child.LARGE_ROW:
        return _large_row(name)
    if status == parquet_child.DAMAGED:
        return unreadable(name, OSError(said))
    if status == parquet_child.MANY_ROWS:
        return limits.exceeded(name, f"more than {limits.rows:,} rows")
    if status in {parquet_child.NO_MEMORY, -signal.SIGABRT, -_KILLED}:
        return limits.exceeded(name, f"values that take more than {in_words(memory, binary=True)} of memory")
    if status in {parquet_child.MUCH_WORK, -_TIME}:
        return InputError(
            f"{name} takes far more work to read than it has values.",
            f"A file may unpack to {parquet_child.MOST_WORK} times the limit of {in_words(memory, binary=True)} in all, and "
            f"take {parquet_child.CPU_SECONDS} seconds of a processor.",
            "Export the sentences as .csv or .txt, or divide the file.",
        )
    # What it wrote can quote cells of the file.
    log.error(
        "The process that read a Parquet file ended with status %d%s",
        status,
        f": {said[-2_000:]}" if operator_settings.DEBUG.value() else "",
    )
    return unreadable(name, OSError(f"the process that read it ended with status {status}"))


def _large_row(name: str) -> InputError:
    most = in_words(parquet_child.ROW_BYTES, binary=True)
    return InputError(
        f"{name} has a row of more than {most} or {parquet_child.ROW_VALUES:,} values.",
        f"A row may have at most {most} and {parquet_child.ROW_VALUES:,} values, those in lists and records included.",
        "Leave out the long values, or export the sentences as .csv or .txt.",
    )


def _values(column: Any, pa: Any) -> list[Any]:
    """The values of a parquet column of any type. Only bytes that are not UTF-8 remain bytes."""
    if pa.types.is_dictionary(column.type):  # each text once, for all its rows
        distinct = _values(column.dictionary, pa)
        return [None if index is None else distinct[index] for index in column.indices.to_pylist()]
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(pa.binary()).to_pylist()
    if not any(isinstance(value, bytes) for value in values):
        return values
    return [_as_text(value) if isinstance(value, bytes) else value for value in values]


def _characters(value: Any) -> int:
    """The characters of all texts in a value. Bytes are not counted: columns of them are left out, or are texts by now."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_characters, value)) + sum(map(_characters, value.values()))
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0


def _as_text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
