"""A corpus: the sentences that are embedded and searched, with the other columns of their file.

Nothing is dropped silently. A row that cannot be used (empty, no text, broken) is counted, with its number and the
reason. A repeated sentence is kept and counted, since the rows may differ in their other columns. Text with control
characters or invalid characters is cleaned and counted.

A text column of lists, such as `set` in embedding-data/sentence-compression, holds sentences that belong together:
the first is the text, the second goes to the column "compressed".

What it does not do: split text into sentences, or recognise the language. Each line is one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from components.arrays import Int64, read_only
from components.errors import InputError
from components.jobs import IsStopped
from components.numbers import counted
from components.retrieval.corpora.columns import (
    SAMPLE_ROWS,
    ColumnPreview,
    TextColumn,
    as_text,
    called,
    flattened,
    preview_columns,
)
from components.retrieval.corpora.columns import text_column as find_text_column
from components.retrieval.corpora.readers.encoding import CleanedText, clean, has_broken_bytes
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import BROWSER_LIMITS, Count, Limits, browser_limits, never
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.retrieval.corpora.readers.table import BadRow, BadRows, Table, rows_left_out
from components.retrieval.corpora.rows.passages import with_written_lists
from components.retrieval.corpora.rows.reading import RowCounts, may_be_none
from components.retrieval.corpora.texts import Texts, first_rows

PAIR_COLUMN = "compressed"  # the name of the column with the second text of a pair
EXAMPLES = 5
BROKEN_BYTES = "bytes that are not utf-8"
NAMED_COLUMNS = 12
SET_SIZE = 10  # sentences kept of a list


def _named(columns: Sequence[str]) -> str:
    return ", ".join(columns[:NAMED_COLUMNS]) + (
        f" and {len(columns) - NAMED_COLUMNS} more" if len(columns) > NAMED_COLUMNS else ""
    )


@dataclass(frozen=True)
class SampleRow:
    """One of the first rows, as it stands in the file and as it was read."""

    row: int
    written: str
    text: str  # "" where the row was refused
    columns: Mapping[str, str]
    refused: str = ""  # the reason


@dataclass(frozen=True)
class ReadReport:
    """How the rows of a file were used."""

    rows: int  # kept and bad ones
    kept: int
    bad_rows: tuple[BadRow, ...] = ()  # the first 100
    bad_count: int = 0
    duplicates: int = 0  # kept rows that repeat the text of an earlier row
    duplicate_examples: tuple[str, ...] = ()
    cleaned: int = 0  # kept rows from which control or invalid characters were removed
    encoding: str = "utf-8"
    encoding_guessed: bool = False  # if True, a person may know a better encoding
    text_column: str = "text"
    left_out: tuple[str, ...] = ()  # columns that were not kept: pictures, sounds, or more than the limit
    reasons: tuple[tuple[str, int], ...] = ()  # why rows were refused, and how many, the most frequent first
    joined: int = 0  # rows that were written over several lines
    text_reason: str = ""  # why this column is the text
    text_is_guess: bool = False
    dialect: str = ""  # of separated text
    other_dialect: str = ""  # that fits nearly as well: then the dialect is a guess
    is_named: bool = True  # False where the first row does not name the columns
    samples: tuple[SampleRow, ...] = ()
    chosen: DialectChoice = AS_FOUND  # what a person chose of the dialect
    otherwise: tuple[DialectChoice, ...] = ()  # choices that give what the file could be too
    notes: tuple[str, ...] = ()  # what else is to be said of how it was read, a sentence each

    @property
    def refused(self) -> str:
        """Why rows are left out, with the numbers of the first, as the commands say it; "" where none is."""
        return rows_left_out(self.bad_count, self.rows, dict(self.reasons), self.bad_rows)

    def sentences(self, other_columns: Sequence[str], how_to_choose: str) -> list[str]:
        """How the file was read, in sentences: its rows, its columns, and whatever is a guess, with how another is chosen."""
        others = f"; kept beside it: {_named(other_columns)}" if other_columns else ""
        another = f" Another: {how_to_choose}." if other_columns and how_to_choose else ""
        said = [
            self.counted,
            f"The sentences are the {called(self.text_column)} ({self.text_reason}){others}.{another}",
        ]
        if self.refused:
            said.insert(1, self.refused)
        if self.left_out:
            said.append(f"Columns left out: {_named(self.left_out)}.")
        if self.dialect:
            guess = f" This is a guess: the file could also be {self.other_dialect}." if self.other_dialect else ""
            said.append(f"The fields are {self.dialect}.{guess}")
        said += self.notes
        if self.chosen.header is not None:
            said.append(f"As chosen, {DialectChoice(header=self.is_named).in_words}.")
        elif not self.is_named:
            said.append(
                "The first line is read as a row, since it does not look like names of columns: a line above names them."
            )
        if self.encoding_guessed:
            said.append(f"The encoding {self.encoding} is a guess.")
        return said

    @property
    def counted(self) -> str:
        """How many rows were read, used, left out, joined and changed, in a sentence."""
        return (
            f"{RowCounts(self.kept, lost=self.bad_count).said()}; {self.joined:,} joined from several lines, "
            f"{self.cleaned:,} changed (control or invalid characters removed)."
        )


@dataclass(frozen=True, eq=False)
class Corpus(Texts):
    """The sentences of a file, their other columns, and how the file was read."""

    report: ReadReport = field(default_factory=lambda: ReadReport(0, 0))

    @cached_property
    def first_rows(self) -> Int64:
        """The first row with the text of each row, [row]."""
        return first_rows(self.texts) if self.report.duplicates else read_only(np.arange(len(self)))

    @cached_property
    def different(self) -> Int64:
        """The first row of each different text: equal texts are one, so that they are no tie of a ranking."""
        return read_only(np.flatnonzero(self.first_rows == np.arange(len(self))))


def read_corpus(
    source: Path | bytes | Sequence[Path],
    name: str,
    text_column: str | None = None,
    encoding: str | None = None,
    limits: Limits | None = BROWSER_LIMITS,
    is_stopped: IsStopped = never,
    dialect: DialectChoice = AS_FOUND,
) -> Corpus:
    """The corpus in a file, or in the several files of one large data set.

    `name` is the name of the corpus; for bytes its ending gives the format. `dialect` is what a person chose of how separated
    text is written. With BROWSER_LIMITS the operator's limits
    apply (`browser_limits`); with None there is no limit. Raises InputError for a file in another format, one that
    cannot be decoded, is too large or has no sentence, and for one with several columns that could be the text. Raises
    Stopped.
    """
    if limits is BROWSER_LIMITS:
        limits = browser_limits()
    sources = [source] if isinstance(source, Path | bytes) else source
    count = Count(name, limits, is_stopped)
    table = read_parts(sources, name, encoding, limits, count, dialect)
    if not table.numbers or not table.columns:
        raise _nothing(name, table.bad)
    table.columns = flattened(table.columns)
    return _corpus(name, table, find_text_column(table.columns, name, text_column), limits, count)


def columns_of(
    source: Path | bytes,
    name: str,
    encoding: str | None = None,
    is_stopped: IsStopped = never,
    dialect: DialectChoice = AS_FOUND,
) -> tuple[ColumnPreview, ...]:
    """The columns of a file, judged by its first rows, so that a person can choose the text column.

    One column has `is_guess` unless two are similar; a .txt file has only "text". Raises InputError for a file without
    rows, and Stopped.
    """
    table = read_table(
        source, name, encoding, browser_limits(), max_rows=SAMPLE_ROWS, is_stopped=is_stopped, dialect=dialect
    )
    if not any(len(values) for values in table.columns.values()):
        raise _nothing(name, table.bad)
    return preview_columns(flattened(table.columns))


def read_parts(
    sources: Sequence[Path | bytes],
    name: str,
    encoding: str | None,
    limits: Limits | None,
    count: Count,
    dialect: DialectChoice = AS_FOUND,
) -> Table:
    """The table of all parts of a data set, which together may have as many rows as one large file.

    Raises InputError and Stopped, as `read_table` does.
    """
    tables: list[Table] = []
    for source in sources:
        tables.append(read_table(source, name, encoding, limits, count=count, dialect=dialect))
        rows = sum(len(table.numbers) for table in tables)
        if limits is not None and len(sources) > 1 and rows > limits.sentences:
            raise limits.exceeded(name, f"more than {limits.sentences:,} rows")
    return _joined(tables)


def _joined(tables: Sequence[Table]) -> Table:
    """The tables of a data set's parts as one: rows are numbered consecutively, and only columns of all parts are kept."""
    if len(tables) == 1:
        return tables[0]
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    left_out = {name for table in tables for name in (*table.columns, *table.left_out)} - set(shared)
    numbers: list[int] = []
    bad = BadRows()
    offset = 0
    for table in tables:
        numbers += [number + offset for number in table.numbers]
        bad = bad.joined(table.bad, offset)
        offset = max([offset, *numbers[-1:], bad.last])
    return Table(
        {name: [value for table in tables for value in table.columns[name]] for name in shared},
        numbers,
        bad,
        tables[0].encoding,
        any(table.encoding_guessed for table in tables),
        any(table.has_broken_bytes for table in tables),
        tuple(sorted(left_out)),
        sum(table.joined for table in tables),
        tables[0].dialect,
        next((table.other_dialect for table in tables if table.other_dialect), ""),
        all(table.is_named for table in tables),
        samples=tables[0].samples,
        chosen=tables[0].chosen,
        otherwise=tuple(dict.fromkeys(choice for table in tables for choice in table.otherwise)),
        titles=tuple(title for table in tables for title in table.titles),
        header_row=tables[0].header_row,
        notes=tuple(dict.fromkeys(note for table in tables for note in table.notes)),
    )


def _corpus(name: str, table: Table, chosen: TextColumn, limits: Limits | None, count: Count) -> Corpus:
    """The usable rows of a table, with `column` as the text. Its lists are unpacked where at least half of it are lists.

    Raises InputError where there is none, or where there are more than the limit.
    """
    column = chosen.name
    values, said = _with_sets(column, table.columns[column])
    others = {key: others for key, others in table.columns.items() if key != column}
    sizes = [len(value) for value in values if isinstance(value, list) and value]
    has_lists = bool(sizes) and 2 * len(sizes) >= sum(value is not None for value in values)
    width = min(max(sizes), SET_SIZE) if has_lists else 1
    bad = BadRows()
    titles = None if chosen.title is None else table.columns[chosen.title]
    kept: list[int] = []
    texts: list[str] = []
    further: list[tuple[str, ...]] = []  # the other sentences of each list
    cleaned = 0
    for index, value in enumerate(values):
        if index % 1_000 == 0:
            count.check()
        parts = value if has_lists and isinstance(value, list) else [value]
        usable = _cleaned(parts, width, table.has_broken_bytes)
        if titles is not None and not has_lists:
            usable = _behind(as_text(titles[index]), usable)
        if isinstance(usable, str):
            bad.add(table.numbers[index], usable)
            continue
        if limits is not None and len(texts) == limits.sentences:
            raise limits.exceeded(name, f"more than {limits.sentences:,} sentences")
        kept.append(index)
        texts.append(usable[0].text)
        further.append(tuple(text.text for text in usable[1:]))
        cleaned += any(text.changed for text in usable)
    bad = table.bad.joined(bad)
    if not texts:
        raise _nothing(name, bad)
    columns = {key: tuple(as_text(others[key][index]) for index in kept) for key in others}
    for extra in range(width - 1):
        title = _free(PAIR_COLUMN if extra == 0 else f"{column} {extra + 2}", columns)
        columns[title] = tuple(parts[extra] if extra < len(parts) else "" for parts in further)
    repeated = _repeated(texts)
    report = ReadReport(
        rows=len(texts) + len(bad),
        kept=len(texts),
        bad_rows=tuple(bad.first),
        bad_count=len(bad),
        duplicates=len(repeated),
        duplicate_examples=tuple(dict.fromkeys(repeated))[:EXAMPLES],
        cleaned=cleaned,
        encoding=table.encoding,
        encoding_guessed=table.encoding_guessed,
        reasons=tuple(bad.reasons.most_common()),
        joined=table.joined,
        text_reason=chosen.reason,
        text_is_guess=chosen.is_guess,
        dialect=table.dialect,
        other_dialect=table.other_dialect,
        is_named=table.is_named,
        chosen=table.chosen,
        otherwise=table.otherwise,
        notes=(*filter(None, [table.title_sentence]), *table.notes, *said, *may_be_none(texts)),
        samples=_samples(table, kept, texts, columns, bad),
        text_column=column,
        left_out=(
            *table.left_out,
            *([f"{column} {width + 1} and on"] if has_lists and max(sizes) > width else []),
        ),
    )
    return Corpus(name, tuple(texts), MappingProxyType(columns), report)


def _with_sets(column: str, values: Sequence[Any]) -> tuple[Sequence[Any], list[str]]:
    """The values, with lists that are written as text read where all can be sets: as many texts in each; and what is said."""
    read, said = with_written_lists(column, values)
    lists = [value for value in read if isinstance(value, list) and value]
    are_sets = len(set(map(len, lists))) == 1 and all(isinstance(item, str) for value in lists for item in value)
    if read is values or are_sets:
        return read, said
    return values, [
        f"The {called(column)} holds lists that are written as text, not as many texts in each: they are read as they stand."
    ]


def _cleaned(parts: Sequence[Any], width: int, check_bytes: bool) -> list[CleanedText] | str:
    """The first `width` texts of a row, cleaned; or the reason why the row cannot be used. A width above 1 needs two texts."""
    for part in parts:
        if part is None:
            return "no text"
        if isinstance(part, bytes) or (check_bytes and isinstance(part, str) and has_broken_bytes(part)):
            return BROKEN_BYTES
        if not isinstance(part, str):
            return f"{_kind(part)} instead of text"
    if len(parts) < min(width, 2):
        return "one text instead of two"
    texts = [clean(part) for part in parts[:width]]
    return texts if all(text.text for text in texts) else "empty"


def _behind(title: str, texts: list[CleanedText] | str) -> list[CleanedText] | str:
    """A document's text behind its title; the title alone where there is no text, as BEIR's readers have it."""
    if not title:
        return texts
    if texts == "empty":
        return [clean(title)]
    return texts if isinstance(texts, str) else [texts[0]._replace(text=f"{title} {texts[0].text}"), *texts[1:]]


def _kind(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return "yes or no" if isinstance(value, bool) else "a number" if isinstance(value, int | float) else "another value"


def _samples(
    table: Table, kept: Sequence[int], texts: Sequence[str], columns: Mapping[str, Sequence[str]], bad: BadRows
) -> tuple[SampleRow, ...]:
    """The first rows of a table as they stand in the file and as they were read."""
    places = {table.numbers[index]: place for place, index in enumerate(kept[:SAMPLE_ROWS])}
    refused = {row.row: row.reason for row in bad.first}
    return tuple(
        SampleRow(number, written, "", {}, refused.get(number, "refused"))
        if place is None
        else SampleRow(number, written, texts[place], {key: values[place] for key, values in columns.items()})
        for number, written in table.samples
        for place in [places.get(number)]
    )


def _repeated(texts: Sequence[str]) -> list[str]:
    """Each text that repeats an earlier one, once for each repetition."""
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


def _nothing(name: str, bad: BadRows) -> InputError:
    why = (
        "; ".join(f"{counted(count, 'row')}: {reason}" for reason, count in bad.reasons.most_common(3))
        or "the file is empty: it has no rows with text"
    )
    return InputError(
        f"{name} has no sentence that can be read ({why}).",
        "At least one row with text is needed.",
        "Mend these rows, or name another column as the text."
        if bad.reasons
        else "Add rows with text; in separated text they stand below the names of the columns.",
    )
