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

BATCH_ROWS = 1_024
BATCH_BYTES = 8 << 20  # a batch that takes more is divided
ROW_BYTES = 16 << 20  # a row that takes more is refused
CPU_SECONDS = 300
LARGE_ROW, NO_MEMORY, DAMAGED = 3, 4, 5  # the status with which the process ends


def batches(file: Any, columns: list[str]) -> Iterator[Any]:
    """The rows of an open Parquet file in batches of at most 1,024 rows and 8 MB, or one row. Raises OverflowError for a
    row that takes more than 16 MB.
    """
    for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
        parts = [batch]
        while parts:
            part = parts.pop()
            if part.nbytes <= BATCH_BYTES or part.num_rows == 1:
                if part.nbytes > ROW_BYTES:
                    raise OverflowError
                yield part
            else:
                half = part.num_rows // 2
                parts += [part.slice(half), part.slice(0, half)]


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
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(path: str, memory: int, most_columns: int) -> int:
    """Write the rows of a file, or of the standard input for "-", to the standard output; returns the exit status."""
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
            # The names of all columns go first, for those that are left out.
            names = pa.array(list(dict.fromkeys(schema.names)), pa.string())
            first = pa.record_batch([names], names=["name"])
            with pa.ipc.new_stream(sys.stdout.buffer, first.schema) as stream:
                stream.write_batch(first)
            sys.stdout.buffer.flush()
            writer = None
            for batch in batches(file, columns):
                if writer is None:
                    writer = pa.ipc.new_stream(sys.stdout.buffer, batch.schema)
                writer.write_batch(batch)
            if writer is not None:
                writer.close()
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
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
