"""Parquet files to a table, a batch of rows at a time, from a process of their own where there are limits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.retrieval.corpora.readers import parquet_child
from components.retrieval.corpora.readers.limits import Count, Limits, megabytes, unreadable
from components.retrieval.corpora.readers.table import MOST_COLUMNS, Table

WORKING_MEMORY = 128 << 20  # bytes that the process takes beside the file's values


def read_parquet(source: Path | bytes, name: str, limits: Limits | None, max_rows: int | None, count: Count) -> Table:
    """The table of a parquet file, or its first `max_rows` rows. Columns of bytes other than text are left out.

    Raises InputError for a file that is damaged or above a limit.
    """
    import pyarrow as pa

    rows = 0
    try:
        with closing(_rows_here(source, name) if limits is None else _rows_of_child(source, name, limits)) as parts:
            every_column: list[str] = next(parts)
            columns: dict[str, list[Any]] = {}
            for batch in parts:
                if rows == 0:
                    columns = {column: [] for column in batch.schema.names}
                count.add_rows(batch.num_rows)
                values_of = {column: _values(batch.column(column), pa) for column in columns}
                for column, values in values_of.items():
                    # Bytes that are not text: pictures, sounds, hashes.
                    if rows == 0 and 2 * sum(isinstance(value, bytes) for value in values) > len(values):
                        del columns[column]
                    else:
                        columns[column] += values
                count.add_values(*(values_of[column] for column in columns))
                rows += batch.num_rows
                if max_rows is not None and rows >= max_rows:
                    break
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError) as problem:  # a damaged file can raise any of these
        raise unreadable(name, problem) from problem
    left_out = tuple(column for column in every_column if column not in columns)
    rows = min(rows, max_rows or rows)
    return Table({key: values[:rows] for key, values in columns.items()}, range(1, rows + 1), left_out=left_out)


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


def _rows_of_child(source: Path | bytes, name: str, limits: Limits) -> Generator[Any]:
    """The same, read in a process that may take no more memory than the limits allow."""
    import pyarrow as pa

    path = str(source.absolute()) if isinstance(source, Path) else "-"
    memory = limits.memory + WORKING_MEMORY
    process = subprocess.Popen(
        [sys.executable, "-P", parquet_child.__file__, path, str(memory), str(MOST_COLUMNS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # the others reserve 1 GB at once
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        with suppress(BrokenPipeError):  # it has ended, and its status says why
            if isinstance(source, bytes):
                process.stdin.write(source)
            process.stdin.close()
        try:
            yield [row.as_py() for batch in pa.ipc.open_stream(process.stdout) for row in batch.column(0)]
            yield from pa.ipc.open_stream(process.stdout)
        except (pa.ArrowException, OSError) as problem:  # the stream breaks off
            status, said = process.wait(), process.stderr.read().decode("utf-8", "replace")
            if status == parquet_child.LARGE_ROW:
                raise _large_row(name) from problem
            if status == parquet_child.DAMAGED:
                raise unreadable(name, OSError(said)) from problem
            if status:
                raise limits.exceeded(name, f"values that take more than {megabytes(memory)} of memory") from problem
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                stream.close()


def _large_row(name: str) -> InputError:
    most = megabytes(parquet_child.ROW_BYTES)
    return InputError(
        f"{name} has a row of more than {most}.",
        f"Rows of at most {most} were expected.",
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
    return [_as_text(value) if isinstance(value, bytes) else value for value in values]


def _as_text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
