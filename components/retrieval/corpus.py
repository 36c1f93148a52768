"""A corpus: the sentences that are embedded and searched, with what else a file says about each.

Nothing is dropped silently. A row that cannot be used (empty, no text, broken) is counted with its number and the
reason; a sentence that came before is kept and counted, since two rows with one text may differ in the other
columns; text with control characters or half characters in it is cleaned and counted.

The text column is the one asked for; else the one with a name that says so (text, sentence, ...); else the one
whose texts are by far the longest. Where two are alike it is not guessed. A column of lists, such as `set` in
embedding-data/sentence-compression, holds sentences that belong together: the first is the text, the second goes to
the column "compressed".

What it does not do: split text into sentences, or tell what language it is in. A line is a sentence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from components.errors import InputError
from components.retrieval.corpus_encoding import clean, has_broken_bytes
from components.retrieval.corpus_files import read_table
from components.retrieval.corpus_table import (
    BROWSER_LIMITS,
    SET_COLUMN,
    BadRow,
    Limits,
    Table,
    browser_limits,
)

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
SAMPLE_ROWS = 1_000  # what a column is judged by
CLEARLY_LONGER = 2.0
# Names of a column that is the text, best first. Names of which a file has two (sentence1, ...) are not among them.
TEXT_NAMES = ("text", "sentence", "sentences", SET_COLUMN, "content", "passage", "document", "article", "headline")


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

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the texts, their number, order and borders included; other columns do not count."""
        lengths = np.fromiter(map(len, self.texts), dtype="<i8", count=len(self.texts))
        digest = hashlib.sha256(lengths.tobytes())
        digest.update("".join(self.texts).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True)
class ColumnPreview:
    name: str
    examples: tuple[str, ...]  # the first few values that are not empty
    mean_characters: float
    is_text: bool  # could hold the sentences
    is_guess: bool  # would be taken where nobody chooses; none is where columns are too alike


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
    sources = [source] if isinstance(source, Path | bytes) else list(source)
    table = _joined([read_table(part, name, encoding, limits) for part in sources])
    if not table.numbers:
        raise _nothing(name, table.bad)
    column = _text_column(table, name, text_column)
    corpus = _corpus(name, table, column)
    if limits is not None and len(corpus.texts) > limits.sentences:
        raise limits.exceeded(name, f"{len(corpus.texts):,} sentences")
    return corpus


def columns_of(source: Path | bytes, name: str, encoding: str | None = None) -> tuple[ColumnPreview, ...]:
    """The columns of a file, judged by its first rows, for a person to choose the text among them."""
    table = read_table(source, name, encoding, browser_limits(), max_rows=SAMPLE_ROWS)
    guess = _guess(table)
    return tuple(_preview(column, values, column == guess) for column, values in table.columns.items())


def pairs_of(corpus: Corpus, column: str = SET_COLUMN) -> Corpus:
    """The corpus with a column of lists unpacked: the first of each list is the text, the second "compressed".

    For lists that a file holds as text (`["a", "b"]` in a .csv) or beside another text column; `read_corpus`
    unpacks a text column of lists by itself. Rows without a pair are counted as bad. Raises InputError where no row
    has one.
    """
    if column != corpus.report.text_column and column not in corpus.columns:
        raise _no_column(corpus.name, column, [corpus.report.text_column, *corpus.columns])
    own = column == corpus.report.text_column
    others = {name: values for name, values in corpus.columns.items() if name != column}
    if not own:
        others[corpus.report.text_column] = corpus.texts
    values = [_parsed(text) for text in (corpus.texts if own else corpus.columns[column])]
    table = Table({column: values, **others}, range(1, len(values) + 1))
    unpacked = _corpus(corpus.name, table, column)
    before, after = corpus.report, unpacked.report
    reasons = Counter(before.bad_reasons) + Counter(after.bad_reasons)
    report = replace(
        after,
        rows=before.rows,
        bad_rows=(*before.bad_rows, *after.bad_rows)[:BAD_ROWS_KEPT],
        bad_count=before.bad_count + after.bad_count,
        bad_reasons=MappingProxyType(dict(reasons.most_common())),
        encoding=before.encoding,
        encoding_guessed=before.encoding_guessed,
        left_out=before.left_out,
    )
    return replace(unpacked, report=report)


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


def _corpus(name: str, table: Table, column: str) -> Corpus:
    """The usable rows of a table, with `column` as the text."""
    values = table.columns[column]
    others = {key: others for key, others in table.columns.items() if key != column}
    widest = max((len(value) for value in values if isinstance(value, list)), default=0)
    has_lists = widest > 1
    bad = list(table.bad)
    kept: list[int] = []
    texts: list[str] = []
    seconds: list[tuple[str, ...]] = []
    cleaned = 0
    for place, value in enumerate(values):
        parts = value if has_lists else [value]
        reason = _unusable(parts, table.has_broken_bytes) if isinstance(parts, list) else "not a list of texts"
        if reason is None:
            done = [clean(part) for part in parts]
            if has_lists and len(done) < 2:
                reason = "one text instead of two"
            elif not all(text.text for text in done):
                reason = "empty"
        if reason is not None:
            bad.append(BadRow(table.numbers[place], reason))
            continue
        kept.append(place)
        texts.append(done[0].text)
        cleaned += any(text.changed for text in done)
        if has_lists:
            seconds.append(tuple(text.text for text in done[1:]))
    if not texts:
        raise _nothing(name, bad)
    columns = {key: tuple(_as_text(others[key][place]) for place in kept) for key in others}
    for extra in range(widest - 1 if has_lists else 0):
        title = _free(PAIR_COLUMN if extra == 0 else f"{column} {extra + 2}", columns)
        columns[title] = tuple(parts[extra] if extra < len(parts) else "" for parts in seconds)
    seen: set[str] = set()
    repeated = [text for text in texts if text in seen or seen.add(text)]  # type: ignore[func-returns-value]
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
        left_out=table.left_out,
    )
    return Corpus(name, tuple(texts), MappingProxyType(columns), report)


def _unusable(parts: Iterable[Any], check_bytes: bool) -> str | None:
    """Why a row's text cannot be used, None where it can."""
    for part in parts:
        if part is None:
            return "no text"
        if not isinstance(part, str):
            return "not a text"
        if check_bytes and has_broken_bytes(part):
            return "bytes that are not utf-8"
    return None


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name += "_"
    return name


def _as_text(value: Any) -> str:
    """A value of another column: text as it is (half characters mended), nothing as "", lists and objects as JSON."""
    if value is None or value != value:  # NaN is not equal to itself
        return ""
    text = value if isinstance(value, str) else None
    if text is None:
        text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)
    return text if text.isprintable() else clean(text).text


def _text_column(table: Table, name: str, wanted: str | None) -> str:
    columns = list(table.columns)
    if wanted is not None:
        if wanted not in table.columns:
            raise _no_column(name, wanted, columns)
        return wanted
    guess = _guess(table)
    if guess is not None:
        return guess
    raise InputError(
        f"{name} has {len(columns)} columns, and it is not clear which one is the text: {', '.join(columns)[:500]}.",
        "One column named text or sentence was expected, or one whose texts are much longer than the others.",
        "Choose the column (--text-column on the command line).",
    )


def _guess(table: Table) -> str | None:
    """The column that is most likely the text, None where two are alike or none is text."""
    if len(table.columns) == 1:
        return next(iter(table.columns))
    previews = [_preview(name, values, False) for name, values in table.columns.items()]
    texts = {preview.name: preview.mean_characters for preview in previews if preview.is_text}
    for wanted in TEXT_NAMES:
        named = [name for name in texts if name.casefold() == wanted]
        if named:
            return named[0] if len(named) == 1 else None
    longest = sorted(texts, key=lambda name: -texts[name])
    if len(longest) > 1 and texts[longest[0]] < CLEARLY_LONGER * texts[longest[1]]:
        return None
    return longest[0] if longest else None


def _preview(name: str, values: Sequence[Any], is_guess: bool) -> ColumnPreview:
    rows = values[:SAMPLE_ROWS]
    sample = [value for value in rows if value is not None and value != ""]
    firsts = [value[0] if isinstance(value, list) and len(value) > 1 else value for value in sample]
    texts = [value for value in firsts if isinstance(value, str) and _is_language(value)]
    mean = float(np.mean([len(text) for text in texts])) if texts else 0.0
    examples = tuple(_as_text(value)[:200] for value in sample[:EXAMPLES])
    return ColumnPreview(name, examples, mean, bool(texts) and 2 * len(texts) >= len(rows), is_guess)


def _is_language(value: str) -> bool:
    """Whether a value could be a sentence: it has letters and is no address."""
    return re.search(r"[^\W\d_]", value) is not None and re.match(r"\s*\w+://\S*\s*$", value) is None


def _no_column(name: str, wanted: str, columns: Sequence[str]) -> InputError:
    return InputError(
        f"{name} has no column {wanted[:80]!r}.",
        f"One of its columns was expected: {', '.join(columns)[:500]}.",
        "Choose one of them (--text-column on the command line).",
    )


def _nothing(name: str, bad: Sequence[BadRow]) -> InputError:
    reasons = Counter(row.reason for row in bad).most_common(3)
    why = "; ".join(f"{count:,} rows: {reason}" for reason, count in reasons) or "it has no rows"
    return InputError(
        f"{name} has no sentence that can be read ({why}).",
        "At least one row with text was expected.",
        "Check the file, its format and the column chosen.",
    )
