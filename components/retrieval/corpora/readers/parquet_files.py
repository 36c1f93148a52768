"""Parquet files to a table, a batch of rows at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.errors import InputError
from components.retrieval.corpora.readers.table import MOST_COLUMNS, Limits, Table, unreadable

BATCH_ROWS = 1_024


def read_parquet(source: Path | bytes, name: str, limits: Limits | None, max_rows: int | None) -> Table:
    """The table of a parquet file, or its first `max_rows` rows. Columns of bytes other than text are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    opened: Any = source if isinstance(source, Path) else pa.BufferReader(source)
    columns: dict[str, list[Any]] = {}
    rows = size = 0
    try:
        with pq.ParquetFile(opened) as file:
            every_column = list(dict.fromkeys(file.schema_arrow.names))
            names = [column for column in every_column if not _holds_files(file.schema_arrow.field(column).type)][
                :MOST_COLUMNS
            ]
            columns = {column: [] for column in names}
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                for column in list(columns):
                    values = _values(batch.column(column), pa)
                    columns[column].extend(values)
                    # Bytes that are not text: pictures, sounds, hashes.
                    if rows == 0 and 2 * sum(isinstance(value, bytes) for value in values) > len(values):
                        del columns[column]
                rows += batch.num_rows
                size += batch.nbytes
                if limits is not None and size > limits.bytes:
                    raise limits.exceeded(name, f"more than {limits.bytes / (1 << 20):,.0f} MB when decompressed")
                if max_rows is not None and rows >= max_rows:
                    break
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError) as problem:  # a damaged file can raise any of these
        raise unreadable(name, problem) from problem
    left_out = tuple(column for column in every_column if column not in columns)
    rows = min(rows, max_rows or rows)
    return Table({key: values[:rows] for key, values in columns.items()}, range(1, rows + 1), left_out=left_out)


def _holds_files(kind: Any) -> bool:
    """Whether the values are records that contain bytes, as pictures and sounds are stored. They are not read."""
    return "binary" in str(kind) and kind.num_fields > 0


def _values(column: Any, pa: Any) -> list[Any]:
    """The values of a parquet column of any type. Only bytes that are not UTF-8 remain bytes."""
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
