"""Corpora: sentences to search, with whatever else is known of each, read from a file without losing anything silently.

A row that cannot be used (no text, broken JSON, another number of fields) is counted with its number and the reason;
texts that occur twice are kept and reported. Line breaks and control characters inside a text become spaces, half
characters U+FFFD: nothing else is changed.

Formats, by the name's ending, also with .gz behind it: .txt (a sentence a line), .csv and .tsv (with a header),
.jsonl and .json (objects, or plain texts, or lists of texts), .parquet. The text column is named, or found by its name
or because it is the only one with long texts.

Pairs: a column that holds lists of two texts (embedding-data/sentence-compression calls it "set") becomes two columns,
"sentence" and "compressed".
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from components.errors import InputError
from components.model.store import parse_bytes
from components.retrieval.corpus_files import Row, Table, read_table

SENTENCES_VARIABLE = "BERT_INTERNALS_CORPUS_SENTENCES"
BYTES_VARIABLE = "BERT_INTERNALS_CORPUS_BYTES"
TEXT_NAMES = (
    "text",
    "sentence",
    "sentences",
    "passage",
    "document",
    "content",
    "body",
    "title",
    "sentence1",
    "question",
)
PAIR_NAMES = ("sentence", "compressed")
LISTED = 100  # bad rows and duplicates named one by one
_UNSEEN = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


@dataclass(frozen=True)
class Limits:
    """The most a corpus may be."""

    sentences: int
    bytes: int


def browser_limits() -> Limits:
    """1,000,000 sentences or 200 MB, unless the operator's environment says otherwise."""
    sentences, size = os.environ.get(SENTENCES_VARIABLE, ""), os.environ.get(BYTES_VARIABLE, "")
    return Limits(int(sentences) if sentences.isdigit() else 1_000_000, parse_bytes(size) if size else 200_000_000)


@dataclass(frozen=True)
class BadRow:
    number: int  # from 1, as an editor counts
    reason: str


@dataclass(frozen=True)
class ReadReport:
    """What reading found. Lists name the first 100, counts count all."""

    rows: int = 0
    bad: int = 0
    bad_rows: tuple[BadRow, ...] = ()
    duplicates: int = 0  # rows whose text was there before
    duplicate_rows: tuple[int, ...] = ()
    encoding: str = "utf-8"
    text_column: str = "text"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences, and columns of the same length."""

    name: str
    texts: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    report: ReadReport = ReadReport()

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the texts, in order."""
        digest = hashlib.sha256()
        for text in self.texts:
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
        return digest.hexdigest()


@dataclass(frozen=True)
class ColumnPreview:
    """A column to choose from."""

    name: str
    examples: tuple[str, ...]


def columns_of(source: Path | bytes, name: str, encoding: str | None = None) -> tuple[ColumnPreview, ...]:
    """The columns of a file that hold text, with examples of each. Raises InputError for what cannot be read."""
    table = _unpacked(read_table(source, name, encoding, most_rows=200))
    previews = []
    for column in table.columns:
        values = [row.values[column] for row in table.rows if isinstance(row.values.get(column), str)]
        if values:
            previews.append(ColumnPreview(column, tuple(values[:3])))
    return tuple(previews)


def read_corpus(
    source: Path | bytes,
    name: str,
    text_column: str | None = None,
    encoding: str | None = None,
    limits: Limits | None = None,
) -> Corpus:
    """A corpus out of a file or its bytes; `name` tells the format.

    Raises InputError: a format or an encoding that cannot be read, a column that is not there, a choice that only a
    person can make, nothing usable at all, or more than `limits`.
    """
    size = (
        source.stat().st_size
        if isinstance(source, Path) and source.is_file()
        else len(source)
        if isinstance(source, bytes)
        else 0
    )
    if limits is not None and size > limits.bytes:
        raise _too_large(f"{name} has {size / 1e6:,.0f} MB.", limits)
    table = _unpacked(read_table(source, name, encoding))
    if limits is not None and len(table.rows) > limits.sentences:
        raise _too_large(f"{name} has {len(table.rows):,} rows.", limits)
    column = _text_column(table, text_column, name)
    return _collected(table, column, name)


def _collected(table: Table, column: str, name: str) -> Corpus:
    others = [other for other in table.columns if other != column]
    texts: list[str] = []
    kept: dict[str, list[str]] = {other: [] for other in others}
    bad, duplicates = list(table.bad), []
    first_seen: set[str] = set()
    for row in table.rows:
        value = row.values.get(column)
        text = _UNSEEN.sub(" ", value).strip() if isinstance(value, str) else ""
        if not text:
            reason = "no text" if value is None or isinstance(value, str) else f"{type(value).__name__}, not a text"
            bad.append((row.number, reason))
            continue
        if text in first_seen:
            duplicates.append(row.number)
        first_seen.add(text)
        texts.append(text)
        for other in others:
            found = row.values.get(other)
            kept[other].append("" if found is None else _UNSEEN.sub(" ", str(found)).strip())
    if not texts:
        raise InputError(
            f"{name} has no usable sentence in {len(table.rows) + len(table.bad):,} rows.",
            f"Texts were expected{'' if column == 'text' else f' in the column {column!r}'}.",
            f"Look at the file{f': {bad[0][1]} in row {bad[0][0]}' if bad else ''}.",
        )
    bad.sort()
    report = ReadReport(
        rows=len(table.rows) + len(table.bad),
        bad=len(bad),
        bad_rows=tuple(BadRow(number, reason) for number, reason in bad[:LISTED]),
        duplicates=len(duplicates),
        duplicate_rows=tuple(duplicates[:LISTED]),
        encoding=table.encoding,
        text_column=column,
    )
    columns = {other: tuple(values) for other, values in kept.items() if any(values)}
    return Corpus(name, tuple(texts), MappingProxyType(columns), report)


def _text_column(table: Table, wanted: str | None, name: str) -> str:
    listed = ", ".join(table.columns[:20])
    if wanted is not None:
        if wanted in table.columns:
            return wanted
        raise InputError(
            f"{name} has no column {wanted!r}.",
            f"Its columns are: {listed}.",
            "Name one of these as the text column.",
        )
    if len(table.columns) == 1:
        return table.columns[0]
    by_name = {column.strip().lower(): column for column in table.columns}
    for usual in TEXT_NAMES:
        if usual in by_name:
            return by_name[usual]
    long = [column for column in table.columns if _mean_length(table.rows[:200], column) >= 20]
    if len(long) == 1:
        return long[0]
    raise InputError(
        f"{name} has {len(table.columns)} columns: {listed}.",
        "It is not clear which one holds the sentences.",
        "Choose the text column (on the command line: --text-column).",
    )


def _mean_length(rows: Sequence[Row], column: str) -> float:
    lengths = [len(value) for row in rows if isinstance(value := row.values.get(column), str)]
    return sum(lengths) / len(lengths) if lengths else 0.0


def _unpacked(table: Table) -> Table:
    """Columns of lists of two texts as two columns; the names are the usual ones where they are free."""
    for column in table.columns:
        values = [row.values.get(column) for row in table.rows[:50]]
        lists = [value for value in values if isinstance(value, list)]
        if not lists or len(lists) < len(values) // 2:
            continue
        taken = set(table.columns) - {column}
        names = PAIR_NAMES if not taken & set(PAIR_NAMES) else (f"{column} 1", f"{column} 2")
        rows, bad = [], list(table.bad)
        for row in table.rows:
            pair = row.values.get(column)
            if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                bad.append((row.number, f"{column} is not a list of two texts"))
                continue
            rest = {key: value for key, value in row.values.items() if key != column}
            rows.append(Row(row.number, {names[0]: pair[0], names[1]: pair[1], **rest}))
        columns = (*names, *(other for other in table.columns if other != column))
        return Table(columns, rows, bad, table.encoding)
    return table


def _too_large(given: str, limits: Limits) -> InputError:
    return InputError(
        given,
        f"In the browser a corpus has at most {limits.sentences:,} sentences and {limits.bytes / 1e6:,.0f} MB.",
        "Build its index on the command line: python -m components index CORPUS --out DIR",
    )
