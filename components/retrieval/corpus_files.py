"""Files to rows: encodings, and the formats .txt, .csv, .tsv, .jsonl, .json and .parquet, each also as .gz."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from components.errors import InputError

FORMATS = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_FIELD_LIMIT = 10_000_000  # characters of one CSV field


class Row(NamedTuple):
    number: int  # of the row in its file, from 1
    values: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """The rows of a file as they stand there."""

    columns: tuple[str, ...]
    rows: list[Row]
    bad: list[tuple[int, str]]  # number and reason
    encoding: str = "utf-8"


def read_table(source: Path | bytes, name: str, encoding: str | None = None, most_rows: int | None = None) -> Table:
    """All rows (or the first `most_rows`). Raises InputError for a format, encoding or file that cannot be read."""
    raw = _bytes(source, name)
    ending = name.lower()
    if ending.endswith(".gz"):
        ending = ending.removesuffix(".gz")
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError) as problem:
            raise _unreadable(name, f"it is no gzip file ({problem})") from problem
    kind = next((known for known in FORMATS if ending.endswith(known)), None)
    if kind is None:
        raise InputError(
            f"{name} is of a kind that is not known.",
            f"One of these was expected: {', '.join(FORMATS)}, also with .gz.",
            "Save the corpus in one of these formats.",
        )
    if kind == ".parquet":
        return _parquet(raw, name, most_rows)
    text, used = decode(raw, name, encoding)
    if kind == ".txt":
        lines = text.split("\n")
        if lines and not lines[-1].strip():
            lines.pop()  # the line after the last line break is none
        return Table(
            ("text",), [Row(at, {"text": line}) for at, line in enumerate(lines[:most_rows], start=1)], [], used
        )
    if kind in {".csv", ".tsv"}:
        return _csv(text, name, used, "\t" if kind == ".tsv" else None, most_rows)
    return _json(text, name, used, kind == ".json", most_rows)


def decode(raw: bytes, name: str, encoding: str | None = None) -> tuple[str, str]:
    """Bytes to text, and the encoding used: the one given, UTF-8, one that a mark names, or the likeliest."""
    if encoding is not None:
        try:
            return raw.decode(encoding), encoding
        except (LookupError, UnicodeDecodeError) as problem:
            raise InputError(
                f"{name} could not be read as {encoding}: {problem}.",
                "Another encoding was expected.",
                "Leave the encoding out to have it detected, or name another one, such as utf-8 or cp1252.",
            ) from problem
    marked = next((known for mark, known in _BOMS if raw.startswith(mark)), None)
    for candidate in filter(None, (marked, None if marked else "utf-8")):
        try:
            return raw.decode(candidate), candidate
        except UnicodeDecodeError:
            continue
    from charset_normalizer import from_bytes

    best = from_bytes(raw[:1_000_000]).best()
    if best is not None:
        with suppress(UnicodeDecodeError):  # the likeliest one for the beginning need not fit the rest
            return raw.decode(best.encoding), best.encoding
    raise InputError(
        f"The encoding of {name} could not be found out.",
        "UTF-8 was expected, or another encoding of text.",
        "Name the encoding, or save the file as UTF-8.",
    )


def _bytes(source: Path | bytes, name: str) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as problem:
        raise InputError(
            f"{source} could not be read: {problem.strerror or problem}.",
            f"A file was expected: {', '.join(FORMATS)}.",
            "Check the path.",
        ) from problem


def _csv(text: str, name: str, encoding: str, delimiter: str | None, most_rows: int | None) -> Table:
    csv.field_size_limit(_FIELD_LIMIT)
    if delimiter is None:
        # The header alone decides: in texts, commas and semicolons mean nothing.
        header = text.split("\n", 1)[0]
        delimiter = max(",;\t|", key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[Row] = []
    bad: list[tuple[int, str]] = []
    try:
        header_row = next(reader, None)
        if header_row is None:
            raise _unreadable(name, "it is empty")
        columns = [column.strip() or f"column {at}" for at, column in enumerate(header_row, start=1)]
        if len(set(columns)) < len(columns):
            columns = [f"{column} ({at})" for at, column in enumerate(columns, start=1)]
        for number, fields in enumerate(reader, start=2):
            if most_rows is not None and len(rows) >= most_rows:
                break
            if len(fields) == len(columns):
                rows.append(Row(number, dict(zip(columns, fields, strict=True))))
            else:
                bad.append((number, f"{len(fields)} fields instead of {len(columns)}" if fields else "empty"))
    except csv.Error as problem:
        raise _unreadable(name, f"row {reader.line_num} is no CSV ({problem})") from problem
    return Table(tuple(columns), rows, bad, encoding)


def _json(text: str, name: str, encoding: str, whole: bool, most_rows: int | None) -> Table:
    rows: list[Row] = []
    bad: list[tuple[int, str]] = []
    columns: dict[str, None] = {}
    for number, item in _items(text, name, whole):
        if most_rows is not None and len(rows) >= most_rows:
            break
        if isinstance(item, str):
            item = {"text": item}
        elif isinstance(item, list):
            item = {"set": item}
        if isinstance(item, dict):
            rows.append(Row(number, item))
            columns.update(dict.fromkeys(map(str, item)))
        else:
            bad.append((number, item.reason if isinstance(item, _Broken) else f"{type(item).__name__}, not an object"))
    if not columns:
        raise _unreadable(name, f"no row is JSON with texts{f': {bad[0][1]}' if bad else ''}")
    return Table(tuple(columns), rows, bad, encoding)


class _Broken(NamedTuple):
    reason: str


def _items(text: str, name: str, whole: bool) -> Iterator[tuple[int, Any]]:
    if whole:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise _unreadable(name, f"it is no JSON ({problem})") from problem
        if not isinstance(content, list):
            raise _unreadable(name, "its JSON is not a list")
        yield from enumerate(content, start=1)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            yield number, _Broken("broken JSON")


def _parquet(raw: bytes, name: str, most_rows: int | None) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(pa.BufferReader(raw))
    except (pa.ArrowException, OSError) as problem:
        raise _unreadable(name, f"it is no Parquet file ({str(problem)[:100]})") from problem
    if most_rows is not None:
        table = table.slice(0, most_rows)
    names = tuple(map(str, table.column_names))
    rows = [Row(number, item) for number, item in enumerate(table.to_pylist(), start=1)]
    return Table(names, rows, [])


def _unreadable(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} could not be read: {reason}.",
        "A file with a sentence a row was expected.",
        "Check the file, or save it in another of the formats.",
    )
