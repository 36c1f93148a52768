"""Text separated by commas, semicolons, tabs or vertical bars to a table; the first row names the columns if it has names.

A row that breaks the format is reported with its number and the reason, and reading continues after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import eq

from components.errors import InputError
from components.numbers import counted, enumerated
from components.retrieval.corpora.column_names import plain
from components.retrieval.corpora.readers.dialects import (
    HEADER_WORDS,
    KNOWN_NAMES,
    SNIFFED_LINES,
    dialect_of,
    has_names,
    is_above_numbers,
    is_named_table,
    words_in,
)
from components.retrieval.corpora.readers.encoding import Decoded, clean
from components.retrieval.corpora.readers.limits import MOST_FIELDS, Count
from components.retrieval.corpora.readers.separated_rows import (
    AS_FOUND,
    SEPARATORS,
    Dialect,
    DialectChoice,
    Record,
    Runaway,
    records,
)
from components.retrieval.corpora.readers.table import (
    MOST_COLUMNS,
    NAMES_AGAIN,
    TITLE_CHARACTERS,
    TITLE_ROW,
    BadRows,
    Samples,
    Table,
)
from components.retrieval.corpora.readers.titles import READ_LINES, Titles, titles_of

HEADER_ROWS = 20  # by which it is judged whether the first row names the columns
NAMES_SHOWN = 3
_BLOCK_ROWS, _BLOCK_FIELDS = 1_000, 100_000  # rows that are put into columns together


def read_separated(
    text: Decoded,
    name: str,
    delimiter: str | None,
    max_rows: int | None,
    count: Count,
    choice: DialectChoice = AS_FOUND,
) -> Table:
    """The table of a CSV file, or its first `max_rows` rows. Without a delimiter, it is detected.

    A given one counts, unless it stands nowhere in the first lines and another one makes a table with known names of them.
    What a person chose of the dialect stands above whatever the file seems to be.

    Raises InputError where the quotes of the header, or of nearly all rows, do not match, and above the limits.
    """
    if delimiter is not None:
        judged = list(islice(text.lines(), SNIFFED_LINES))
        if delimiter not in "".join(judged) and is_named_table(judged):
            delimiter = None
    lines, start = text.lines(), 0
    first = next(lines, None)
    while first is not None and not first.strip():
        count.add_rows(1)
        first, start = next(lines, None), start + 1
    if first is None:
        return Table({}, ())
    named = re.fullmatch(r"sep=([,;\t|])", first, re.IGNORECASE)
    if named is not None:  # a line that spreadsheets write
        delimiter, start = named[1], start + 1
    titles = Titles()
    if choice.header is None:  # who says what the first row is means the first one
        mark = delimiter if choice.separator is None else SEPARATORS[choice.separator]
        titles = titles_of(list(islice(text.lines(), start, start + READ_LINES)), mark)
    above = tuple((start + line + 1, title) for line, title in titles.rows)
    start += titles.lines
    count.add_rows(titles.lines)
    dialect, others = dialect_of(islice(text.lines(), start, None), delimiter, choice)
    rows = records(islice(text.lines(), start, None), dialect)
    try:
        table = _table_of(rows, dialect, start, name, max_rows, count, choice, above)
    except Runaway as problem:
        raise _no_table(name, str(problem)) from problem
    is_plain = not dialect.is_quoted
    table.other_dialect = ", or ".join(
        f"{other.in_words}{', quotes enclose fields' if is_plain and other.is_quoted else ''}" for other in others
    )
    names = {mark: known for known, mark in SEPARATORS.items()}
    table.otherwise = (
        *(
            choice._replace(
                separator=choice.separator if other.delimiter == dialect.delimiter else names[other.delimiter],
                quotes=other.is_quoted,
                escapes=other.is_escaped,
            )
            for other in others
        ),
        *table.otherwise,
    )
    return table


def _table_of(
    rows: Iterator[Record],
    dialect: Dialect,
    start: int,
    name: str,
    max_rows: int | None,
    count: Count,
    choice: DialectChoice,
    titles: Sequence[tuple[int, str]] = (),
) -> Table:
    """The table of rows that begin behind `start` lines, below `titles`, which are refused as rows."""
    header = next(rows, None)
    if header is None:
        return Table({}, ())
    if header.problem is not None:
        raise _no_table(name, header.problem)
    width = len(header.fields)
    if width > MOST_FIELDS:
        raise _no_table(name, f"its first row has {width:,} fields, which is more than {MOST_FIELDS:,}")
    columns = _CsvColumns(min(width, MOST_COLUMNS), count)
    bad, joined, samples = BadRows(), 0, Samples()
    for line, _ in titles:
        bad.add(line, TITLE_ROW)
    following = list(islice(rows, HEADER_ROWS))
    is_named = choice.header
    if titles:
        is_named = True
    elif is_named is None:
        is_named = has_names(header.fields, [row.fields for row in following if len(row.fields) == width])
    is_doubtful = choice.header is None and not titles and is_named and _may_be_row(header.fields, following)
    is_guess = choice.header is None and (not is_named or is_doubtful)
    otherwise = (DialectChoice(header=not is_named),) if is_guess else ()
    if titles:
        otherwise = (DialectChoice(header=True),)
    rows = chain(following, rows) if is_named else chain([header], following, rows)
    names_here = [name or None for name in header.fields] if is_named else []
    again: list[int] = []  # lines that repeat most names
    named = max(
        (place for place, name in enumerate(header.fields, start=1) if name.strip() or not is_named), default=width
    )
    for record in rows:
        count.add_rows(1)
        over = record.fields[width:]
        if named <= len(record.fields) < width or (
            over and not any(map(str.strip, over))
        ):  # separators at the end of a row
            record.fields[width:] = [""] * (width - len(record.fields))
        # In tab separated text a quote is often an ordinary character.
        if record.problem is not None and (dialect.delimiter != "\t" or len(record.fields) != width):
            bad.add(record.line + start, record.problem)
        elif is_named and record.fields == header.fields and (width > 1 or plain(header.fields[0]) in KNOWN_NAMES):
            bad.add(record.line + start, NAMES_AGAIN)
        elif len(record.fields) == width:
            columns.add(record.line + start, record.fields)
            samples.add(record.line + start, record.lines)
            joined += len(record.lines) > 1
            same = sum(map(eq, record.fields, names_here))
            if same > 1 and 2 * same > width - names_here.count(None):
                again.append(record.line + start)
        elif not any(map(str.strip, record.fields)):
            bad.add(record.line + start, "empty")
        else:
            bad.add(record.line + start, f"{counted(len(record.fields), 'field')} instead of {width:,}")
        if max_rows is not None and len(columns) >= max_rows:
            break
    columns.flush()
    notes = []
    if is_doubtful:
        shown = ", ".join(f"“{clean(name).text[:TITLE_CHARACTERS]}”" for name in header.fields[:NAMES_SHOWN])
        notes.append(f"That the first row names the columns is a guess: {shown} could be a row.")
    if again:
        lines = enumerated([f"{line:,}" for line in again[:NAMES_SHOWN]])
        more = f" and {len(again) - NAMES_SHOWN:,} more" if len(again) > NAMES_SHOWN else ""
        notes.append(f"Most names of the columns stand again in line {lines}{more}, which is read as a row.")
    names = column_names(header.fields if is_named else [""] * width)
    kept: dict[str, Sequence[str]] = dict(zip(names[:MOST_COLUMNS], columns.values, strict=True))
    return Table(
        kept,
        columns.numbers,
        bad,
        left_out=tuple(names[MOST_COLUMNS:]),
        joined=joined,
        dialect=dialect.in_words,
        is_named=is_named,
        samples=samples.first,
        chosen=choice,
        otherwise=otherwise,
        titles=tuple((line, clean(title).text) for line, title in titles),
        header_row=header.line + start,
        notes=tuple(notes),
    )


def _may_be_row(header: Sequence[str], rows: Sequence[Record]) -> bool:
    """Whether a first row that is taken for names could be one of texts: only its length says that it is none."""
    if any(words_in(name) >= HEADER_WORDS for name in header):
        return True
    if not rows or all(words_in(name) == 1 for name in header) or any(plain(name) in KNOWN_NAMES for name in header):
        return False
    columns = zip(*(row.fields for row in rows if len(row.fields) == len(header)), strict=True)
    filled = ([value for value in column if value.strip()] for column in columns)
    return not any(map(is_above_numbers, header, filled))


class _CsvColumns:
    """The values of each kept column, and the row numbers. Rows are added in blocks: their lists are not kept."""

    def __init__(self, width: int, count: Count) -> None:
        self.values: list[list[str]] = [[] for _ in range(width)]
        self.numbers: list[int] = []
        self._rows: list[list[str]] = []
        self._most = max(1, min(_BLOCK_ROWS, _BLOCK_FIELDS // max(width, 1)))
        self._count = count

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, number: int, row: list[str]) -> None:
        self.numbers.append(number)
        self._rows.append(row)
        if len(self._rows) >= self._most:
            self.flush()

    def flush(self) -> None:
        """Put the rows of this block into the columns. Raises InputError above the limit of memory."""
        block = list(zip(self.values, zip(*self._rows, strict=True), strict=False))  # at most 200 columns
        self._rows.clear()
        self._count.add_values(*(fields for _, fields in block))
        for column, fields in block:
            column.extend(fields)


def _no_table(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} could not be read as a table: {reason}.",
        "A table has fields separated by commas, semicolons, tabs or vertical bars, with their names in the first row.",
        "Export it as CSV with quotes around texts, or as .txt with one sentence per line.",
    )


def column_names(header: Sequence[str]) -> list[str]:
    """The names of the columns, printable and in one line; none is empty, none occurs twice."""
    names: dict[str, None] = {}
    for number, given in enumerate(header, start=1):
        name = clean(given).text or f"column {number}"
        while name in names:
            name += f" ({number})"
        names[name] = None
    return list(names)
