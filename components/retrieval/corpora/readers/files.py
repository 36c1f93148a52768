"""A file's bytes to a table: one list per column, the row number of each value, and the rows that could not be read.

Formats: .txt (one sentence per line), .csv and .tsv (with a header), .jsonl and .json (objects, plain strings, or
lists, which are sets of sentences that belong together), .parquet; each also compressed by gzip. A row that breaks the
format is reported with its number and the reason, and reading continues after it. Pickles are refused, since reading
one can run code.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

from components.errors import InputError, first_line
from components.jobs import IsStopped
from components.numbers import counted
from components.retrieval.corpora.readers.csv_files import column_names, read_separated
from components.retrieval.corpora.readers.encoding import Decoded, decode
from components.retrieval.corpora.readers.limits import (
    LONG_ROW,
    MOST_ROW_CHARACTERS,
    Count,
    Limits,
    never,
    read_bytes,
    unreadable,
)
from components.retrieval.corpora.readers.parquet_files import read_parquet
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.retrieval.corpora.readers.table import (
    LINE_COLUMN,
    MOST_COLUMNS,
    SAMPLES_KEPT,
    SET_COLUMN,
    BadRows,
    Samples,
    Table,
)
from components.retrieval.corpora.readers.whole_objects import table_in
from components.sizes import in_words

FORMATS = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
SEPARATED = (".csv", ".tsv")
PACKED = (".zip", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".zst")
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
BLOCK_ROWS, BLOCK_CHARACTERS = 1_000, 1 << 20  # of JSON, whose objects are put into columns together
JUDGED_LINES = 200  # of a .txt file
MOST_NAMED = 100  # keys beyond MOST_COLUMNS that are named as left out
WHOLE_CHARACTERS = 16 << 20  # of one JSON object that holds a whole table, such as pandas writes

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
    (b"version https://git-lfs", "a pointer to a file that Git LFS keeps (git lfs pull fetches it)"),
)
_WEB_PAGE = re.compile(rb"\s*<(?:!doctype html|html|table)\b[^<>]{0,2000}>\s*<", re.IGNORECASE)  # and a second tag
_ARRAY_OF_OBJECTS = re.compile(r"\s*\[\s*\{")
# Other formats, by what each line of a .txt file has.
_OTHER_FORMATS: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    (".tsv", "has a tab", lambda line: "\t" in line.strip()),
    (".jsonl", "is in braces", lambda line: line.strip()[:1] + line.strip()[-1:] == "{}"),
)
_SPACE = re.compile(r"[ \t\n\r]*")
_LONG_VALUE = f"A value of more than {MOST_ROW_CHARACTERS:,} characters"


def read_table(
    source: Path | bytes,
    name: str,
    encoding: str | None = None,
    limits: Limits | None = None,
    max_rows: int | None = None,
    count: Count | None = None,
    is_stopped: IsStopped = never,
    dialect: DialectChoice = AS_FOUND,
) -> Table:
    """The table of a file, or its first `max_rows` rows. `count` goes on from the other files of the same data set.

    `dialect` is what a person chose of how a separated text is written; of another file nothing can be chosen.

    Raises InputError for another kind of file, and for one above a limit (see components.retrieval.corpora.readers.limits)
    except that of sentences: their number is known once bad rows are removed. Raises Stopped.
    """
    ending = format_of(source, name)
    count = count or Count(name, limits, is_stopped)
    count.check()
    if dialect and ending not in SEPARATED:
        raise InputError(
            f"{name} is a {ending} file, and this was chosen of it: {dialect.in_words}.",
            f"Only separated text ({', '.join(SEPARATED)}) has separators, quotes and a first row with names.",
            "Leave this choice out, or give the file the ending .csv.",
        )
    if ending == ".parquet":
        if isinstance(source, Path):
            _check_file(source, name, limits)
        packed = not isinstance(source, Path) or source.name.lower().endswith(".gz")
        content = read_bytes(source, name, limits, count.is_stopped) if packed else source
        return _named(read_parquet(content, name, limits, max_rows, count))
    decoded = read_text(source, name, encoding, limits, count.is_stopped)
    if ending == ".txt":
        table = _read_lines(decoded, max_rows, count)
    elif ending in SEPARATED:
        table = read_separated(decoded, name, "\t" if ending == ".tsv" else None, max_rows, count, dialect)
    else:
        is_array = ending == ".json" or _ARRAY_OF_OBJECTS.match(next(decoded.blocks(), "")) is not None
        table = _named(_read_json(decoded, name, is_array, max_rows, count))
    table.encoding, table.encoding_guessed = decoded.encoding, decoded.guessed
    table.has_broken_bytes = decoded.has_broken_bytes
    return table


def read_text(
    source: Path | bytes,
    name: str,
    encoding: str | None = None,
    limits: Limits | None = None,
    is_stopped: IsStopped = never,
) -> Decoded:
    """The text of a file, decompressed. Raises InputError where it is not text, or too large, and Stopped."""
    if isinstance(source, Path):
        _check_file(source, name, limits)
    content = read_bytes(source, name, limits, is_stopped)
    foreign = next((kind for start, kind in _FOREIGN if content.startswith(start)), None)
    foreign = "a web page (HTML)" if _WEB_PAGE.match(content.removeprefix(BOM_UTF8)) else foreign
    if foreign is not None:
        raise InputError(
            f"{name} is {foreign} in spite of its name.",
            f"These formats can be read: {', '.join(FORMATS)}.",
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
    if Path(name.lower().removesuffix(".gz")).suffix in PACKED:
        raise InputError(
            f"{name} is packed in a way that is not read here.",
            f"These formats can be read: {', '.join(FORMATS)}, each optionally followed by .gz.",
            "Unpack it, and choose one of its files, or their folder.",
        )
    if Path(name.lower()).suffix in SPREADSHEETS:
        raise InputError(
            f"{name} is a spreadsheet of Excel or LibreOffice.",
            f"These formats can be read: {', '.join(FORMATS)}.",
            "Open it there and save the sheet as “CSV UTF-8”.",
        )
    raise InputError(
        f"The format of {name} is not known.",
        f"The name must have one of these endings: {', '.join(FORMATS)}, each optionally followed by .gz.",
        "Give the file the ending of its format, or export the sentences in one of these formats.",
    )


def _check_file(path: Path, name: str, limits: Limits | None) -> None:
    """Raise InputError unless this is a plain file within the limit."""
    try:
        size = path.stat().st_size if path.is_file() else None
    except (OSError, ValueError) as problem:  # not permitted, or not a valid path
        raise unreadable(name, problem) from problem
    if size is None:
        raise InputError(f"There is no file {str(path)!r}.", "The path must name an existing file.", "Check the path.")
    if limits is not None and size > limits.bytes:
        raise limits.exceeded(name, in_words(size, binary=True))


def _read_lines(text: Decoded, max_rows: int | None, count: Count) -> Table:
    """A table of one column with the lines."""
    lines: list[str] = []
    numbers: list[int] = []
    bad, samples = BadRows(), Samples()
    first = 1
    for block in text.line_blocks(every_return=True):  # no quotes could keep one in a line
        count.add_rows(len(block))
        block_numbers: Sequence[int] = range(first, first + len(block))
        first += len(block)
        if max(map(len, block), default=0) > MOST_ROW_CHARACTERS:
            fits = [len(line) <= MOST_ROW_CHARACTERS for line in block]
            for number in compress(block_numbers, map(not_, fits)):
                bad.add(number, LONG_ROW)
            block_numbers, block = list(compress(block_numbers, fits)), list(compress(block, fits))
        count.add_values(block)
        lines += block
        numbers += block_numbers
        for number, line in zip(block_numbers[:SAMPLES_KEPT], block, strict=False):
            samples.add(number, [line])
        if max_rows is not None and len(lines) >= max_rows:
            break
    first_lines = [line for line in lines[:JUDGED_LINES] if line.strip()]
    notes = tuple(
        f"Each line {kind}. If they are rows of a table, give the file the ending {ending}."
        for ending, kind, fits in _OTHER_FORMATS
        if first_lines and all(map(fits, first_lines))
    )
    return Table({LINE_COLUMN: lines[:max_rows]}, numbers[:max_rows], bad, samples=samples.first, notes=notes)


class _JsonColumns:
    """The columns of JSON values: objects have columns, a string is a text, a list is a set of sentences."""

    def __init__(self, count: Count) -> None:
        self.numbers: list[int] = []
        self.bad = BadRows()
        self._columns: dict[str, list[Any]] = {}  # every key of a row so far, up to MOST_COLUMNS
        self._left_out: dict[str, None] = {}
        self._samples = Samples()
        self._objects: list[dict[str, Any]] = []  # that are not in the columns yet
        self._characters = 0  # of their JSON
        self._count = count
        self._repeating = 0  # objects with a key that stands twice

    def add(
        self, number: int, value: Any, characters: int, text: str | None = None, has_repeated_key: bool = False
    ) -> None:
        """Add a row, whose JSON has this many characters; `text` if at hand. Raises InputError above a limit."""
        self._repeating += has_repeated_key
        if isinstance(value, str):
            value = {LINE_COLUMN: value}
        elif isinstance(value, list):
            value = {SET_COLUMN: value}
        if not isinstance(value, dict) or not value:
            self.bad.add(number, "not an object, text or list")
            return
        if len(self.numbers) < SAMPLES_KEPT:
            self._samples.add(number, [text if text is not None else json.dumps(value, ensure_ascii=False)])
        self._objects.append(value)
        self.numbers.append(number)
        self._characters += characters
        if len(self._objects) >= BLOCK_ROWS or self._characters > BLOCK_CHARACTERS:
            self._flush()

    def leave_out(self, keys: Iterable[str]) -> None:
        """Name keys that are no columns, up to MOST_NAMED."""
        for key in keys:
            if len(self._left_out) < MOST_NAMED:
                self._left_out[key] = None

    def _flush(self) -> None:
        rows_before = len(self.numbers) - len(self._objects)
        for key in dict.fromkeys(key for row in self._objects for key in row):
            if key in self._columns:
                continue
            if len(self._columns) < MOST_COLUMNS:  # rows before the first with this key have no value
                self._count.add_memory(8 * rows_before)
                self._columns[key] = [None] * rows_before
            else:
                self.leave_out([key])
        block = [[row.get(key) for row in self._objects] for key in self._columns]
        self._objects.clear()
        self._characters = 0
        self._count.add_values(*block)
        for column, values in zip(self._columns.values(), block, strict=True):
            column.extend(values)

    def table(self) -> Table:
        """The table of all rows that were added."""
        self._flush()
        has = "has" if self._repeating == 1 else "have"
        said = f"{counted(self._repeating, 'row')} {has} a key twice: its last value counts."
        return Table(
            dict(self._columns),
            self.numbers,
            self.bad,
            left_out=tuple(self._left_out),
            samples=self._samples.first,
            notes=(said,) if self._repeating else (),
        )


def _read_json(text: Decoded, name: str, is_array: bool, max_rows: int | None, count: Count) -> Table:
    """The table of an array, where `is_array` allows one, or of one value per line."""
    columns = _JsonColumns(count)
    if is_array:
        before = count.rows, count.memory
        array = _JsonArray(text.blocks())
        try:
            for number, (value, characters) in enumerate(array.values(), start=1):
                count.add_rows(1)
                columns.add(number, value, characters, has_repeated_key=array.has_repeated_key)
                if number == max_rows:
                    break
            return columns.table()
        except _LinesOfJson:  # many .json files hold one value per line, others one object for the whole table
            count.go_back(*before)
            columns = _JsonColumns(count)
            whole = table_in(_whole(text))
            columns.leave_out(whole.left_out if whole.rows else ())
            for number, row in enumerate(whole.rows, start=1):
                count.add_rows(1)
                columns.add(number, row, 0)
                if number == max_rows:
                    break
            if columns.numbers:
                return columns.table()
        except _BrokenJson as problem:
            raise _no_json(name, f": {problem} (line {array.line:,}, column {array.column:,})") from problem
    for number, line in enumerate(text.lines(), start=1):
        count.add_rows(1)
        if not line or line.isspace():
            columns.bad.add(number, "empty")
        elif len(line) > MOST_ROW_CHARACTERS:
            columns.bad.add(number, LONG_ROW)
        else:
            try:
                value = json.loads(line.rstrip().removesuffix(","))  # as in an array
            except (ValueError, RecursionError):
                columns.bad.add(number, "broken JSON")
                continue
            columns.add(number, value, len(line), line, _has_repeated_key(value, line))
            if max_rows is not None and number - len(columns.bad) >= max_rows:
                break
    if is_array and not columns.numbers:
        raise _no_json(name)
    return columns.table()


def _has_repeated_key(value: Any, text: str, start: int = 0, end: int | None = None) -> bool:
    """Whether a key stands twice in an object, which has this JSON; only one with more colons than keys is read again."""
    if not isinstance(value, dict) or text.count(":", start, end) <= len(value):
        return False
    pairs: list[Any] = json.loads(text[start:end].rstrip().removesuffix(","), object_pairs_hook=list)
    return len(pairs) > len(value)


def _whole(text: Decoded) -> str:
    """The text of a file that begins with an object; "" for another one, or one that is too long."""
    whole = ""
    for block in text.blocks():
        whole += block
        if len(whole) > WHOLE_CHARACTERS or not whole.lstrip().startswith("{"):
            return ""
    return whole


def _no_json(name: str, reason: str = "") -> InputError:
    return InputError(
        f"{name} could not be read as JSON{reason}.",
        f"It must be an array of objects, or one object per line, each of at most {MOST_ROW_CHARACTERS:,} characters.",
        "Check it with a JSON validator, or export the sentences as .csv or .txt.",
    )


class _LinesOfJson(Exception):
    """The text does not begin with an array, or goes on after an array that takes no more than its first line."""


class _BrokenJson(Exception):
    """The text begins as an array and has an error: its message says which, and the position where."""


class _JsonArray:
    """The values of a JSON array, read one after the other. `line` and `column` count from 1: how far it has been read."""

    def __init__(self, blocks: Iterator[str]) -> None:
        self._blocks = blocks
        self._decoder = json.JSONDecoder()
        self.has_repeated_key = False  # in the last value
        self._text, self._position = next(blocks, ""), 0  # the text at hand, and how much of it has been read
        self._lines_before, self._column_before = (
            0,
            0,
        )  # line breaks before the text at hand, and characters after the last

    @property
    def line(self) -> int:
        return 1 + self._lines_before + self._text.count("\n", 0, self._position)

    @property
    def column(self) -> int:
        start = self._text.rfind("\n", 0, self._position)
        return self._column_before + self._position + 1 if start < 0 else self._position - start

    def values(self) -> Iterator[tuple[Any, int]]:
        """Each value with the number of its characters.

        Raises _LinesOfJson, or _BrokenJson for a value of more than MOST_ROW_CHARACTERS too.
        """
        if self._skip_space() != "[":
            raise _LinesOfJson
        first_line = self.line
        self._position += 1
        mark = self._skip_space()
        if mark == "]":
            self._position += 1
        while mark != "]":
            self._skip_space()
            yield self._take_value()
            mark = self._skip_space()
            if mark not in {"]", ","}:
                raise _BrokenJson("Expecting ',' delimiter")
            self._position += 1
        last_line = self.line
        if self._skip_space():
            if first_line == last_line:
                raise _LinesOfJson
            raise _BrokenJson("Text after the array")

    def _go_on(self) -> bool:
        """Read a further block behind the text that has not been read; False at the end."""
        more = next(self._blocks, None)
        if more is None:
            return False
        self._column_before = self.column - 1
        self._lines_before = self.line - 1
        self._text, self._position = self._text[self._position :] + more, 0
        return True

    def _skip_space(self) -> str:
        """Move to the next character that is no space, and return it; "" at the end."""
        while True:
            self._position = _SPACE.match(self._text, self._position).end()  # type: ignore[union-attr]
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._go_on():
                return ""

    def _take_value(self) -> tuple[Any, int]:
        """The value that begins here, and its length. The position moves to its end."""
        while True:
            reason, error = "Expecting ',' delimiter", self._position
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except RecursionError as problem:
                raise _BrokenJson("A value is nested too deeply") from problem
            except json.JSONDecodeError as problem:  # more text may make the value complete
                reason, error = problem.msg, problem.pos
            except ValueError as problem:  # a number with more digits than Python reads
                raise _BrokenJson(first_line(problem)) from problem
            else:
                error = _SPACE.match(self._text, end).end()  # type: ignore[union-attr]
                if self._text[error : error + 1] in {",", "]"}:  # else a number may go on, such as -1.5 with e10
                    break
            is_long = len(self._text) - self._position > MOST_ROW_CHARACTERS
            if is_long and (error >= len(self._text) or reason.startswith("Unterminated")):
                raise _BrokenJson(_LONG_VALUE)
            if is_long or not self._go_on():
                self._position = error
                raise _BrokenJson(reason)
        length, self._position = end - self._position, end
        if length > MOST_ROW_CHARACTERS:
            self._position -= length
            raise _BrokenJson(_LONG_VALUE)
        self.has_repeated_key = _has_repeated_key(value, self._text, end - length, end)
        return value, length
