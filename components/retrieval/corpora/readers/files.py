"""A file's bytes to a table: one list per column, the row number of each value, and the rows that could not be read.

Formats: .txt (one sentence per line), .csv and .tsv (with a header), .jsonl and .json (objects, plain strings, or
lists, which are sets of sentences that belong together), .parquet; each also compressed by gzip. A row that breaks the
format is reported with its number and the reason, and reading continues after it. Pickles are refused, since reading
one can run code.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.retrieval.corpora.readers.csv_files import column_names, read_separated
from components.retrieval.corpora.readers.encoding import Decoded, decode
from components.retrieval.corpora.readers.parquet_files import read_parquet
from components.retrieval.corpora.readers.table import (
    LINE_COLUMN,
    MOST_COLUMNS,
    SET_COLUMN,
    BadRow,
    Limits,
    Table,
    lines_of,
    unreadable,
)

FORMATS = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
SHAPE_ROWS = 1_000  # the first JSON objects decide which columns there are

# The first bytes of other kinds of files, which may have a wrong ending.
_FOREIGN = (
    (b"PAR1", "a parquet file"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an Office document"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x7fELF", "a program"),
    (b"BZh91AY", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x80\x04\x95", "a pickle (which can run code when it is read)"),
)
_GZIP = b"\x1f\x8b"


def read_table(
    source: Path | bytes,
    name: str,
    encoding: str | None = None,
    limits: Limits | None = None,
    max_rows: int | None = None,
) -> Table:
    """The table of a file, or its first `max_rows` rows. Raises InputError for another kind of file, or one too large.

    Only the limit of bytes is checked here: the number of sentences is known once bad rows are removed.
    """
    ending = format_of(source, name)
    if ending == ".parquet":
        if isinstance(source, Path):
            _check_file(source, name, limits)
        packed = not isinstance(source, Path) or source.name.lower().endswith(".gz")
        return _named(read_parquet(_content(source, name, limits) if packed else source, name, limits, max_rows))
    decoded = read_text(source, name, encoding, limits)
    if ending == ".txt":
        lines = lines_of(decoded.text)[:max_rows]
        table = Table({LINE_COLUMN: lines}, range(1, len(lines) + 1))
    elif ending in {".csv", ".tsv"}:
        table = read_separated(decoded.text, name, "\t" if ending == ".tsv" else None, max_rows)
    else:
        table = _named(_read_json(decoded, name, ending == ".json", max_rows))
    table.encoding, table.encoding_guessed = decoded.encoding, decoded.guessed
    table.has_broken_bytes = decoded.has_broken_bytes
    return table


def read_text(source: Path | bytes, name: str, encoding: str | None = None, limits: Limits | None = None) -> Decoded:
    """The text of a file, decompressed. Raises InputError where it is not text, or too large."""
    if isinstance(source, Path):
        _check_file(source, name, limits)
    content = _content(source, name, limits)
    foreign = next((kind for start, kind in _FOREIGN if content.startswith(start)), None)
    if foreign is not None:
        raise InputError(
            f"{name} is {foreign} in spite of its name.",
            f"A file in one of these formats was expected: {', '.join(FORMATS)}.",
            "Export the sentences in one of these formats, with the ending that belongs to it.",
        )
    return decode(content, name, encoding)


def _named(table: Table) -> Table:
    """The table with cleaned column names."""
    table.columns = dict(zip(column_names(list(table.columns)), table.columns.values(), strict=True))
    return table


def format_of(source: Path | bytes, name: str) -> str:
    """The ending that gives the format: of the path, else of the name; ".gz" is ignored."""
    names = [source.name, name] if isinstance(source, Path) else [name]
    for candidate in names:
        ending = Path(candidate.lower().removesuffix(".gz")).suffix
        if ending in FORMATS:
            return ending
    raise InputError(
        f"The format of {name} is not known.",
        f"A name with one of these endings was expected: {', '.join(FORMATS)}, each optionally followed by .gz.",
        "Give the file the ending of its format, or export the sentences in one of these formats.",
    )


def _content(source: Path | bytes, name: str, limits: Limits | None) -> bytes:
    """The bytes of a file, decompressed up to the limit: a small file can expand to very many."""
    if isinstance(source, Path):
        try:
            content = source.read_bytes()
        except OSError as problem:
            raise unreadable(name, problem) from problem
    else:
        content = source
    if content.startswith(_GZIP):
        try:
            with gzip.open(io.BytesIO(content)) as packed:
                content = packed.read(-1 if limits is None else limits.bytes + 1)
        except (OSError, EOFError, zlib.error) as problem:
            raise unreadable(name, problem) from problem
    if limits is not None and len(content) > limits.bytes:
        raise limits.exceeded(name, f"more than {limits.bytes / (1 << 20):,.0f} MB")
    return content


def _check_file(path: Path, name: str, limits: Limits | None) -> None:
    """Raise InputError unless this is a plain file within the limit."""
    try:
        size = path.stat().st_size if path.is_file() else None
    except (OSError, ValueError) as problem:  # not permitted, or not a valid path
        raise unreadable(name, problem) from problem
    if size is None:
        raise InputError(
            f"There is no file {str(path)!r}.", "The path of an existing file was expected.", "Check the path."
        )
    if limits is not None and size > limits.bytes:
        raise limits.exceeded(name, f"{size / (1 << 20):,.0f} MB")


def _read_json(decoded: Decoded, name: str, is_array: bool, max_rows: int | None) -> Table:
    if is_array:
        try:
            values = json.loads(decoded.text)
        except (ValueError, RecursionError):
            values = None  # many .json files hold one object per line
        if isinstance(values, list):
            return _of_values(list(enumerate(values[:max_rows], start=1)), [])
    rows: list[tuple[int, Any]] = []
    bad: list[BadRow] = []
    for number, line in enumerate(lines_of(decoded.text), start=1):
        if not line or line.isspace():
            bad.append(BadRow(number, "empty"))
            continue
        try:
            rows.append((number, json.loads(line)))
        except (ValueError, RecursionError):
            bad.append(BadRow(number, "broken JSON"))
        if max_rows is not None and len(rows) >= max_rows:
            break
    if is_array and not rows:
        raise InputError(
            f"{name} could not be read as JSON.",
            "An array of objects was expected, or one object per line.",
            "Check it with a JSON validator, or export the sentences as .csv or .txt.",
        )
    return _of_values(rows, bad)


def _of_values(rows: Sequence[tuple[int, Any]], bad: list[BadRow]) -> Table:
    """A table of JSON values: objects have columns, a string is a text, a list is a set of sentences."""
    objects: list[dict[str, Any]] = []
    numbers: list[int] = []
    for number, value in rows:
        if isinstance(value, str):
            value = {LINE_COLUMN: value}
        elif isinstance(value, list):
            value = {SET_COLUMN: value}
        if isinstance(value, dict) and value:
            objects.append(value)
            numbers.append(number)
        else:
            bad.append(BadRow(number, "not an object, text or list"))
    bad.sort(key=lambda row: row.row)
    keys = dict.fromkeys(key for row in objects[:SHAPE_ROWS] for key in row)
    names = list(keys)[:MOST_COLUMNS]
    columns: dict[str, Sequence[Any]] = {name: [row.get(name) for row in objects] for name in names}
    return Table(columns, numbers, bad, left_out=tuple(list(keys)[MOST_COLUMNS:]))
