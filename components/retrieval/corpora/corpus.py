"""A corpus: the sentences that are embedded and searched, with what else a file says about each.

Nothing is dropped silently. A row that cannot be used (empty, no text, broken) is counted with its number and the
reason; a sentence that came before is kept and counted, since two rows with one text may differ in the other
columns; text with control characters or half characters in it is cleaned and counted.

A text column of lists, such as `set` in embedding-data/sentence-compression, holds sentences that belong together:
the first is the text, the second goes to the column "compressed".

What it does not do: split text into sentences, or tell what language it is in. A line is a sentence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from components.errors import InputError
from components.retrieval.corpora.columns import SAMPLE_ROWS, ColumnPreview, as_text, no_column, preview_columns
from components.retrieval.corpora.columns import text_column as find_text_column
from components.retrieval.corpora.readers.encoding import CleanedText, clean, has_broken_bytes
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.table import BROWSER_LIMITS, SET_COLUMN, BadRow, Limits, Table, browser_limits
from components.retrieval.corpora.texts import hash_of

__all__ = [
    "BROWSER_LIMITS",
    "BadRow",
    "ColumnPreview",
    "Corpus",
    "Limits",
    "ReadReport",
    "browser_limits",
    "columns_of",
    "pairs_of",
    "read_corpus",
]

PAIR_COLUMN = "compressed"  # what the second of a pair is called
BAD_ROWS_KEPT, EXAMPLES = 100, 5
BROKEN_BYTES = "bytes that are not utf-8"
SET_SIZE = 10  # of a longer list of sentences the first ones are kept


@dataclass(frozen=True)
class ReadReport:
    """What became of a file's rows."""

    rows: int  # kept and bad ones
    kept: int
    bad_rows: tuple[BadRow, ...] = ()  # the first 100
    bad_count: int = 0
    bad_reasons: Mapping[str, int] = field(default_factory=dict)  # reason to number of rows, the most frequent first
    duplicates: int = 0  # kept rows whose text came before
    duplicate_examples: tuple[str, ...] = ()
    cleaned: int = 0  # kept rows that lost control characters or half characters
    encoding: str = "utf-8"
    encoding_guessed: bool = False  # True where a person may know better
    text_column: str = "text"
    left_out: tuple[str, ...] = ()  # columns that were not kept: pictures, sounds, or one too many


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences and their other columns, aligned: columns[name][i] belongs to texts[i]."""

    name: str
    texts: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]  # as text; "" where a row has nothing
    report: ReadReport

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the texts, their number, order and borders included; other columns do not count."""
        return hash_of(self.texts)


def read_corpus(
    source: Path | bytes | Sequence[Path],
    name: str,
    text_column: str | None = None,
    encoding: str | None = None,
    limits: Limits | None = BROWSER_LIMITS,
) -> Corpus:
    """The corpus of a file, or of the files that a large one was split into.

    `name` is what the corpus is called, and for bytes says the format by its ending. BROWSER_LIMITS stands for what
    the operator set (`browser_limits`); None reads any size. Raises InputError for a file that is none of the
    formats, cannot be decoded, is too large, has no sentence, or more than one column that could be the text.
    """
    if limits is BROWSER_LIMITS:
        limits = browser_limits()
    table = _joined(_tables([source] if isinstance(source, Path | bytes) else source, name, encoding, limits))
    if not table.numbers or not table.columns:
        raise _nothing(name, table.bad)
    column = find_text_column(table.columns, name, text_column)
    corpus = _corpus(name, table, column)
    if limits is not None and len(corpus.texts) > limits.sentences:
        raise limits.exceeded(name, f"{len(corpus.texts):,} sentences")
    return corpus


def columns_of(source: Path | bytes, name: str, encoding: str | None = None) -> tuple[ColumnPreview, ...]:
    """The columns of a file, judged by its first rows, for a person to choose the text among them.

    One of them has `is_guess` unless two are alike; for .txt there is only "text".
    """
    table = read_table(source, name, encoding, browser_limits(), max_rows=SAMPLE_ROWS)
    return preview_columns(table.columns)


def pairs_of(corpus: Corpus, column: str = SET_COLUMN) -> Corpus:
    """The corpus with a column of lists unpacked: the first of each list is the text, the second "compressed".

    For lists that a file holds as text (`["a", "b"]` in a .csv) or beside another text column; `read_corpus`
    unpacks a text column of lists by itself. Rows without a pair are counted as bad, by their place among the
    corpus's texts, from 1. Raises InputError where no row has one.
    """
    if column != corpus.report.text_column and column not in corpus.columns:
        raise no_column(corpus.name, column, [corpus.report.text_column, *corpus.columns])
    own = column == corpus.report.text_column
    others = {name: values for name, values in corpus.columns.items() if name != column}
    if not own:
        others[corpus.report.text_column] = corpus.texts
    values = [_parsed(text) for text in (corpus.texts if own else corpus.columns[column])]
    table = Table({column: values, **others}, range(1, len(values) + 1))
    unpacked = _corpus(corpus.name, table, column, are_sets=True)
    before, after = corpus.report, unpacked.report
    reasons = Counter(before.bad_reasons) + Counter(after.bad_reasons)
    report = replace(
        after,
        rows=before.rows,
        bad_rows=(*before.bad_rows, *after.bad_rows)[:BAD_ROWS_KEPT],
        bad_count=before.bad_count + after.bad_count,
        bad_reasons=MappingProxyType(dict(reasons.most_common())),
        cleaned=before.cleaned + after.cleaned,
        encoding=before.encoding,
        encoding_guessed=before.encoding_guessed,
        left_out=before.left_out + after.left_out,
    )
    return replace(unpacked, report=report)


def _tables(sources: Sequence[Path | bytes], name: str, encoding: str | None, limits: Limits | None) -> list[Table]:
    """The table of each part; of many small parts no more are read than one large file may have."""
    tables: list[Table] = []
    for source in sources:
        tables.append(read_table(source, name, encoding, limits))
        rows = sum(len(table.numbers) for table in tables)
        if limits is not None and len(sources) > 1 and rows > limits.sentences:
            raise limits.exceeded(name, f"more than {limits.sentences:,} rows")
    return tables


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _joined(tables: Sequence[Table]) -> Table:
    """Tables of one file's parts, one behind the other; rows are numbered on, columns are those of all parts."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        raise ValueError("no files to read")
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    left_out = {name for table in tables for name in (*table.columns, *table.left_out)} - set(shared)
    numbers: list[int] = []
    bad: list[BadRow] = []
    offset = 0
    for table in tables:
        numbers += [number + offset for number in table.numbers]
        bad += [BadRow(row.row + offset, row.reason) for row in table.bad]
        offset = max([offset, *numbers[-1:], *(row.row for row in bad[-1:])])
    return Table(
        {name: [value for table in tables for value in table.columns[name]] for name in shared},
        numbers,
        bad,
        tables[0].encoding,
        any(table.encoding_guessed for table in tables),
        any(table.has_broken_bytes for table in tables),
        tuple(sorted(left_out)),
    )


def _corpus(name: str, table: Table, column: str, are_sets: bool = False) -> Corpus:
    """The usable rows of a table, with `column` as the text; lists are taken for sets where at least half are some."""
    values = table.columns[column]
    others = {key: others for key, others in table.columns.items() if key != column}
    sizes = [len(value) for value in values if isinstance(value, list) and len(value) > 1]
    has_lists = are_sets or (bool(sizes) and 2 * len(sizes) >= sum(value is not None for value in values))
    width = min(max(sizes, default=2), SET_SIZE) if has_lists else 1
    bad = list(table.bad)
    kept: list[int] = []
    texts: list[str] = []
    seconds: list[tuple[str, ...]] = []
    cleaned = 0
    for index, value in enumerate(values):
        parts = value if has_lists and isinstance(value, list) else [value]
        done = _cleaned(parts, width, table.has_broken_bytes)
        if isinstance(done, str):
            bad.append(BadRow(table.numbers[index], done))
            continue
        kept.append(index)
        texts.append(done[0].text)
        cleaned += any(text.changed for text in done)
        if has_lists:
            seconds.append(tuple(text.text for text in done[1:]))
    if not texts:
        raise _nothing(name, bad)
    columns = {key: tuple(as_text(others[key][index]) for index in kept) for key in others}
    for extra in range(width - 1):
        title = _free(PAIR_COLUMN if extra == 0 else f"{column} {extra + 2}", columns)
        columns[title] = tuple(parts[extra] if extra < len(parts) else "" for parts in seconds)
    repeated = _repeated(texts)
    bad.sort(key=lambda row: row.row)
    report = ReadReport(
        rows=len(texts) + len(bad),
        kept=len(texts),
        bad_rows=tuple(bad[:BAD_ROWS_KEPT]),
        bad_count=len(bad),
        bad_reasons=MappingProxyType(dict(Counter(row.reason for row in bad).most_common())),
        duplicates=len(repeated),
        duplicate_examples=tuple(dict.fromkeys(repeated))[:EXAMPLES],
        cleaned=cleaned,
        encoding=table.encoding,
        encoding_guessed=table.encoding_guessed,
        text_column=column,
        left_out=(
            *table.left_out,
            *([f"{column} {width + 1} and on"] if has_lists and max(sizes, default=0) > width else []),
        ),
    )
    return Corpus(name, tuple(texts), MappingProxyType(columns), report)


def _cleaned(parts: Sequence[Any], width: int, check_bytes: bool) -> list[CleanedText] | str:
    """The first `width` texts of a row, ready to be used, or why they cannot be. A width above 1 asks for two."""
    for part in parts:
        if part is None:
            return "no text"
        if isinstance(part, bytes) or (check_bytes and isinstance(part, str) and has_broken_bytes(part)):
            return BROKEN_BYTES
        if not isinstance(part, str):
            return "not a text"
    if len(parts) < min(width, 2):
        return "one text instead of two"
    done = [clean(part) for part in parts[:width]]
    return done if all(text.text for text in done) else "empty"


def _repeated(texts: Sequence[str]) -> list[str]:
    """Each text that came before, once for each time it comes again."""
    seen: set[str] = set()
    repeated = []
    for text in texts:
        if text in seen:
            repeated.append(text)
        seen.add(text)
    return repeated


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name += "_"
    return name


def _nothing(name: str, bad: Sequence[BadRow]) -> InputError:
    reasons = Counter(row.reason for row in bad).most_common(3)
    why = "; ".join(f"{count:,} rows: {reason}" for reason, count in reasons) or "it has no rows of text"
    return InputError(
        f"{name} has no sentence that can be read ({why}).",
        "At least one row with text was expected.",
        "Check the file, its format and the column chosen.",
    )
