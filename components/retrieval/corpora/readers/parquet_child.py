"""Parquet files in a process of their own, which may take no more than some bytes of memory.

A Parquet file of a few KB can hold a cell of 1 GB: its values are compressed, stored once for many rows, or only counted,
and what its metadata say about sizes need not be true. Memory that pyarrow cannot get ends its process, as a damaged file
can. So the file is read here, and batches of rows go to the standard output as an Arrow stream, none larger than a few MB.

This file is run by itself, without the rest of the program: it imports pyarrow alone. The limit of memory needs a Unix
system; macOS does not hold it, and there and on Windows only the server's process is safe.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

BATCH_ROWS = 4_096
BATCH_BYTES, BATCH_VALUES = 8 << 20, 100_000  # a batch that takes more is divided
ROW_BYTES, ROW_VALUES = 16 << 20, 200_000  # a row that takes more is refused
# Of all that is unpacked one after the other, as times of the limit of memory: each group of rows can have a dictionary of its
# own, which few rows use. A file of 200 MB takes some ten seconds of a processor, on whatever else the machine does.
MOST_WORK, CPU_SECONDS = 50, 120
LARGE_ROW, NO_MEMORY, DAMAGED, MANY_ROWS, MUCH_WORK = 3, 4, 5, 6, 7  # the status with which the process ends


def batches(file: Any, columns: list[str]) -> Iterator[Any]:
    """The rows of an open Parquet file in batches of at most 4,096 rows, 8 MB and 100,000 values, or one row. Raises
    OverflowError for a row that takes more than 16 MB or has more than 200,000 values.

    Values are counted besides bytes because a null, which takes none in a file, takes some as an object of Python.
    """
    for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
        parts = [batch]
        while parts:
            part = _without_dictionaries_of_others(parts.pop())
            values = sum(map(_value_count, part.columns))
            if part.num_rows <= 1 or (part.nbytes <= BATCH_BYTES and values <= BATCH_VALUES):
                if part.nbytes > ROW_BYTES or values > ROW_VALUES:
                    raise OverflowError
                yield part
            else:
                half = part.num_rows // 2
                parts += [part.slice(half), part.slice(0, half)]


def _without_dictionaries_of_others(batch: Any) -> Any:
    """The batch with only those texts of its categorical columns that its own rows have.

    Each batch comes with the dictionary of the whole file, which would be sent and read again for every few rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            used = pc.unique(column.indices).drop_null()
            texts = column.dictionary.take(used)
            column = pa.DictionaryArray.from_arrays(pc.index_in(column.indices, used), texts)
        elif _has_dictionary(column.type):
            column = column.cast(_decoded(column.type))
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _has_dictionary(kind: Any) -> bool:
    return "dictionary<" in str(kind) and kind.num_fields > 0


def _decoded(kind: Any) -> Any:
    """The type with texts in the place of dictionaries, which can be inside lists and records."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_decoded(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_decoded(kind.key_type), _decoded(kind.item_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_decoded(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_decoded(kind.value_type), kind.list_size)
    return pa.list_(_decoded(kind.value_type)) if pa.types.is_list(kind) else kind


def _value_count(values: Any) -> int:
    """How many values an array holds, those inside its lists and records included."""
    import pyarrow as pa

    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(values, pa.StructArray):
        return len(values) + sum(map(_value_count, values.flatten()))
    if isinstance(values, pa.MapArray):
        edges = values.offsets
        start, end = edges[0].as_py(), edges[-1].as_py()
        return len(values) + sum(_value_count(part.slice(start, end - start)) for part in (values.keys, values.items))
    if values.type.num_fields > 0 and hasattr(values, "flatten"):  # lists of any kind
        return len(values) + _value_count(values.flatten())
    return len(values)


def readable_columns(schema: Any, most: int) -> list[str]:
    """The names of the first columns. Records that contain bytes, as pictures and sounds are stored, are left out."""
    names = dict.fromkeys(schema.names)
    return [name for name in names if not _holds_files(schema.field(name).type)][:most]


def _holds_files(kind: Any) -> bool:
    return "binary" in str(kind) and kind.num_fields > 0


def _limit_memory(more: int) -> None:
    """Let this process take `more` bytes beside what it has now."""
    try:
        import resource
    except ImportError:  # Windows
        return
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            used = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))
    except OSError:  # macOS
        used = 1 << 30
    resource.setrlimit(resource.RLIMIT_DATA, (used + more, used + more))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))  # the first says why it ends
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def declared_bytes(facts: Any, columns: list[str]) -> int:
    """How many bytes the footer of a file says that the pages of these columns unpack to, those of bytes left aside.

    It need not be true: a page is unpacked only as far as this process may take memory.
    """
    wanted = [
        number
        for number in range(facts.num_columns)
        if facts.schema.column(number).path.partition(".")[0] in columns
        and (
            facts.schema.column(number).physical_type != "BYTE_ARRAY"
            or facts.schema.column(number).logical_type.type != "NONE"
        )
    ]
    groups = (facts.row_group(number) for number in range(facts.num_row_groups))
    return sum(group.column(number).total_uncompressed_size for group in groups for number in wanted)


def main(path: str, memory: int, most_columns: int, most_rows: int) -> int:
    """Write the rows of a file, or of the standard input for "-", to the standard output; returns the exit status.

    A file whose footer names more rows, or more bytes than the memory, is refused before a page of it is read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    source: Any = pa.BufferReader(sys.stdin.buffer.read()) if path == "-" else path
    _limit_memory(memory)
    try:
        with pq.ParquetFile(source) as file:
            schema = file.schema_arrow
            columns = readable_columns(schema, most_columns)
            if file.metadata.num_rows > most_rows:
                return MANY_ROWS
            if declared_bytes(file.metadata, columns) > memory:
                return NO_MEMORY
            # The names of all columns go first, for those that are left out.
            names = pa.array(list(dict.fromkeys(schema.names)), pa.string())
            first = pa.record_batch([names], names=["name"])
            with pa.ipc.new_stream(sys.stdout.buffer, first.schema) as stream:
                stream.write_batch(first)
            sys.stdout.buffer.flush()
            writer = None
            for batch in batches(file, columns):
                if pa.default_memory_pool().total_bytes_allocated() > MOST_WORK * memory:
                    return MUCH_WORK
                if writer is None:
                    writer = pa.ipc.new_stream(sys.stdout.buffer, batch.schema)
                writer.write_batch(batch)
            # Without rows an empty stream follows, so that a stream that is missing is always an error.
            (writer or pa.ipc.new_stream(sys.stdout.buffer, pa.schema([]))).close()
            sys.stdout.buffer.flush()
    except OverflowError:
        return LARGE_ROW
    except (MemoryError, pa.ArrowMemoryError):
        return NO_MEMORY
    except BrokenPipeError:  # the reader has enough
        return 0
    except (pa.ArrowException, OSError, ValueError, LookupError) as problem:  # a damaged file can raise any of these
        sys.stderr.write(str(problem)[:1_000])
        return DAMAGED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
