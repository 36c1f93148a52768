"""Random tables, written by the libraries that people write tables with, and what their own readers read back of them.

Cells have quotes, separators, backslashes, line ends, letters beyond ASCII, leading zeros, or nothing. A table is compared cell
by cell; line breaks and tabs inside a cell count as one space, and spaces around it as none, as in every text of a corpus.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd

from components.errors import InputError
from components.retrieval.corpora.columns import as_text, flattened
from components.retrieval.corpora.readers.dialects import DELIMITERS
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.table import Table

WORDS = "the river bank café Straße naïve ship 東京 дом कला money said leaves a of house 007 1.5 C++"
SPECIAL = ['"', ",", ";", "\t", "|", "\\", "\n", "\r\n", "\r", "'", '""', '\\"', "\\n", "“", '55"', '"Well', "#", "NA"]
LATIN = "the river bank café Straße naïve ship money said leaves a of house 007 1.5"
NAMES = ["text", "id", "note", "Sprecher", "the title", "label 2", "größe", "source", "n", "2nd"]
LATIN_ENCODINGS = {"cp1252"}
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")


@dataclass(frozen=True)
class Written:
    """A table as a file, and as its writer's own reader reads it back: None where that fails."""

    kind: str
    name: str
    content: bytes
    columns: dict[str, list[str]]  # what was written
    back: dict[str, list[str]] | None
    encoding: str | None  # what must be said of the file, which a reader cannot know


def plain(cell: str) -> str:
    """A cell in one line."""
    return _BREAKS.sub(" ", cell).strip()


def _cell(rng: random.Random, words: str, specials: list[str]) -> str:
    kind = rng.random()
    if kind < 0.06:
        return ""
    if kind < 0.2:
        return rng.choice(["007", "0042", "12", "4.8", "yes", "-3"])
    parts = [rng.choice(words.split()) for _ in range(rng.randint(2, 9))]
    while specials and rng.random() < 0.35:
        place = rng.randint(0, len(parts) - 1)
        mark = rng.choice(specials)
        parts[place] = mark + parts[place] if rng.random() < 0.5 else parts[place] + mark
    return " ".join(parts)


def _cells(rng: random.Random, words: str, specials: list[str]) -> dict[str, list[str]]:
    names = rng.sample(NAMES, rng.randint(1, 4))
    rows = rng.randint(2, 14)
    columns = {name: [_cell(rng, words, specials) for _ in range(rows)] for name in names}
    columns[names[0]] = [cell if plain(cell) else "word" for cell in columns[names[0]]]  # else whole rows are blank
    return columns


def _rows(columns: dict[str, list[str]]) -> list[list[str]]:
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def _columns(rows: list[list[str]]) -> dict[str, list[str]]:
    header, *others = rows
    if any(len(row) != len(header) for row in others):
        raise ValueError("rows of several lengths")
    return {name: [row[place] for row in others] for place, name in enumerate(header)}


def _encoding(rng: random.Random) -> tuple[str, bool]:
    """An encoding, and whether a reader has to be told."""
    return rng.choice(
        [("utf-8", False)] * 5 + [("utf-8-sig", False), ("utf-16", False), ("utf-16-le", False), ("cp1252", True)]
    )


def with_csv(rng: random.Random) -> Written:
    """Python's csv module: separators, quoting, escapes, line ends and encodings."""
    encoding, is_told = _encoding(rng)
    delimiter = rng.choice([",", ",", ";", "\t", "\t", "|"])
    ending = rng.choice(["\n", "\r\n", "\r\n", "\r"])
    way = rng.choice(["minimal", "minimal", "all", "nonnumeric", "escaped", "none", "none escaped"])
    options: dict[str, Any] = {"delimiter": delimiter}
    specials = SPECIAL
    if way == "none":  # nothing marks a separator in a cell, so that no cell has one
        options |= {"quoting": csv.QUOTE_NONE, "quotechar": None}
        # Where each quote or line end follows a backslash, nobody can know whether the backslash is text.
        specials = [mark for mark in SPECIAL if not set(mark) & {delimiter, "\n", "\r"} and mark not in {'\\"', "\\"}]
        if delimiter not in "\t|":  # two quotes in such a file mean one to every reader
            specials = [mark for mark in specials if '""' not in mark]
    elif way == "none escaped":
        options |= {"quoting": csv.QUOTE_NONE, "escapechar": "\\"}
    elif way == "escaped":
        options |= {"doublequote": False, "escapechar": "\\"}
    else:
        options["quoting"] = {"minimal": csv.QUOTE_MINIMAL, "all": csv.QUOTE_ALL, "nonnumeric": csv.QUOTE_NONNUMERIC}[
            way
        ]
    if way not in {"all", "nonnumeric"}:  # the module quotes only line ends that are those of its rows
        specials = [mark for mark in specials if not set(mark) & ({"\n", "\r"} - set(ending))]
    columns = _cells(rng, LATIN if encoding in LATIN_ENCODINGS else WORDS, specials)
    if way == "none" and delimiter not in "\t|":  # as does a cell that is in quotes as a whole
        columns = {
            name: [cell[:-1] if re.fullmatch('".*"', cell) else cell for cell in cells]
            for name, cells in columns.items()
        }
    target = io.StringIO(newline="")
    csv.writer(target, lineterminator=ending, **options).writerows(_rows(columns))
    text = target.getvalue()
    back = None
    read = options if way != "nonnumeric" else {**options, "quoting": csv.QUOTE_MINIMAL}
    with suppress(csv.Error, ValueError):
        back = _columns([row for row in csv.reader(io.StringIO(text, newline=""), strict=True, **read) if row])
    name = f"a.{'tsv' if delimiter == chr(9) and rng.random() < 0.5 else 'csv'}"
    return Written(f"csv {way}", name, text.encode(encoding, "replace"), columns, back, encoding if is_told else None)


def with_lone_quotes(rng: random.Random) -> Written:
    """A program's own lines without quoting, as `print(number, text, sep=",")` writes them: a quote begins one text, and
    another ends a later one. Read with quotes, the lines between them would be one row."""
    delimiter = rng.choice(DELIMITERS)
    count = rng.randint(4, 14)
    texts = [" ".join(rng.choices(WORDS.split(), k=rng.randint(3, 9))) for _ in range(count)]
    first, last = sorted(rng.sample(range(count), 2))
    texts[first], texts[last] = f'"{texts[first]}', f'{texts[last]} 55"'
    columns = {"id": [str(number) for number in range(count)], "text": texts}
    if rng.random() < 0.5:
        columns = dict(reversed(columns.items()))
    ending = rng.choice(["\n", "\r\n"])
    text = "".join(delimiter.join(row) + ending for row in _rows(columns))
    read = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return Written("lone quotes", "a.csv", text.encode(), columns, _columns(list(read)), None)


def with_pandas(rng: random.Random) -> Written:
    """pandas.to_csv, read by pandas.read_csv with the same separator and encoding."""
    encoding, is_told = _encoding(rng)
    columns = _cells(rng, LATIN if encoding in LATIN_ENCODINGS else WORDS, SPECIAL)
    delimiter = rng.choice([",", ",", ";", "\t", "|"])
    target = io.StringIO()
    options = {"index": False, "lineterminator": rng.choice(["\n", "\r\n"])}
    pd.DataFrame(columns).to_csv(target, sep=delimiter, quoting=rng.choice([0, 0, 1, 2]), **options)
    text = target.getvalue()
    back = None
    with suppress(ValueError):
        frame = pd.read_csv(io.StringIO(text, newline=""), sep=delimiter, dtype=str, keep_default_na=False)
        back = {str(name): list(values) for name, values in frame.items()}
    return Written(
        "pandas csv", "a.csv", text.encode(encoding, "replace"), columns, back, encoding if is_told else None
    )


def _nested(rng: random.Random, columns: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The rows as objects; some columns are lists, numbers, or stand in an object, and a key of no value can be left out."""
    names = list(columns)
    kinds = {name: rng.choice(["text", "text", "object", "list"]) if name != names[0] else "text" for name in names}
    rows: list[dict[str, Any]] = []
    for place in range(len(columns[names[0]])):
        row: dict[str, Any] = {}
        for name, values in columns.items():
            value = values[place]
            if kinds[name] == "object":
                row.setdefault("inside", {})[name] = value
            elif kinds[name] == "list":
                row[name] = [value, place]
            elif value or rng.random() < 0.5:
                row[name] = value
        rows.append(row)
    return rows


def _of_objects(rows: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """The columns of objects as a table has them."""
    rows = list(rows)
    flat = [
        {
            f"{key}.{inner}" if isinstance(value, dict) else key: part
            for key, value in row.items()
            for inner, part in (value.items() if isinstance(value, dict) else [("", value)])
        }
        for row in rows
    ]
    names = dict.fromkeys(key for row in flat for key in row)
    return {name: [_as_cell(row.get(name)) for row in flat] for name in names}


def _as_cell(value: Any) -> str:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None or value != value else str(value)


def with_json(rng: random.Random) -> Written:
    """Python's json module: lines of objects, in .jsonl and in .json, or an array of them."""
    rows = _nested(rng, _cells(rng, WORDS, SPECIAL))
    way = rng.choice(["lines", "lines in .json", "array", "array on lines"])
    ascii_only, encoding = rng.random() < 0.5, rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])
    if way.startswith("lines"):
        ending = rng.choice(["\n", "\r\n"])
        text = "".join(json.dumps(row, ensure_ascii=ascii_only) + ending for row in rows)
        back = [json.loads(line) for line in text.split(ending) if line]
    else:
        text = json.dumps(rows, ensure_ascii=ascii_only, indent=2 if way == "array on lines" else None)
        back = json.loads(text)
    name = "a.jsonl" if way == "lines" else "a.json"
    return Written(f"json {way}", name, text.encode(encoding), _of_objects(rows), _of_objects(back), None)


def with_pandas_json(rng: random.Random) -> Written:
    """pandas.to_json in each of its shapes that keeps rows and names."""
    columns = _cells(rng, WORDS, SPECIAL)
    shape = rng.choice(["records", "columns", "split", "table", "index", "lines"])
    frame = pd.DataFrame(columns)
    options: dict[str, Any] = {"orient": "records", "lines": True} if shape == "lines" else {"orient": shape}
    text = frame.to_json(index=False if shape == "table" else None, **options)
    back = None
    with suppress(ValueError, KeyError):
        read = pd.read_json(io.StringIO(text), dtype=False, convert_dates=False, **options)
        back = {str(name): list(map(str, values)) for name, values in read.items()}
    return Written(f"pandas json {shape}", "a.json", text.encode(), columns, back, None)


def with_arrow_csv(rng: random.Random) -> Written:
    """pyarrow.csv, which quotes every text, or those that need it."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    columns = _cells(rng, WORDS, SPECIAL)
    delimiter = rng.choice([",", ";", "\t", "|"])
    target = pa.BufferOutputStream()
    options = arrow_csv.WriteOptions(delimiter=delimiter, quoting_style=rng.choice(["needed", "all_valid"]))
    arrow_csv.write_csv(pa.table(columns), target, options)
    content = target.getvalue().to_pybytes()
    back = None
    with suppress(pa.ArrowException):
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False
            ),
        )
        back = {name: table.column(name).to_pylist() for name in table.column_names}
    return Written("pyarrow csv", "a.csv", content, columns, back, None)


def with_parquet(rng: random.Random) -> Written:
    """Parquet by pyarrow, with lists and records."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = _nested(rng, _cells(rng, WORDS, SPECIAL))
    for row in rows:
        for key, value in row.items():
            if isinstance(value, list):
                row[key] = [str(part) for part in value]
    target = pa.BufferOutputStream()
    names = list(dict.fromkeys(key for row in rows for key in row))
    whole = [{name: row.get(name) for name in names} for row in rows]
    pq.write_table(pa.Table.from_pylist(whole), target, compression=rng.choice(["snappy", "none", "zstd"]))
    content = target.getvalue().to_pybytes()
    back = pq.read_table(pa.BufferReader(content)).to_pylist()
    return Written("parquet", "a.parquet", content, _of_objects(whole), _of_objects(back), None)


def with_polars(rng: random.Random) -> Written:
    """polars' CSV, read by polars."""
    import polars as pl

    columns = _cells(rng, WORDS, SPECIAL)
    delimiter = rng.choice([",", ";", "\t", "|"])
    content = pl.DataFrame(columns).write_csv(separator=delimiter).encode()
    back = None
    with suppress(pl.exceptions.PolarsError):
        frame = pl.read_csv(content, separator=delimiter, infer_schema=False, missing_utf8_is_empty_string=True)
        back = {name: frame[name].to_list() for name in frame.columns}
    return Written("polars csv", "a.csv", content, columns, back, None)


WRITERS: list[Callable[[random.Random], Written]] = [
    with_csv,
    with_csv,
    with_csv,
    with_lone_quotes,
    with_pandas,
    with_json,
    with_pandas_json,
]
WRITERS += [with_arrow_csv, with_parquet]
WRITERS += [with_polars] if importlib.util.find_spec("polars") else []


def draw(seed: int) -> Written:
    """The table of a seed."""
    rng = random.Random(seed)
    return rng.choice(WRITERS)(rng)


def outcome(written: Written) -> str:
    """What became of a table here: "exact", "refused" (in part or as a whole, with counts), "guessed" (wrong, and said to
    be a guess, with a choice that gives the right one), or "wrong"."""
    try:
        table = read_table(written.content, written.name, written.encoding)
    except InputError:
        return "refused"
    found = _found(table)
    wanted = {plain(name): list(map(plain, values)) for name, values in written.columns.items()}
    if found == wanted:
        return "exact"
    rows = list(zip(*wanted.values(), strict=True))
    kept = list(zip(*found.values(), strict=True)) if list(found) == list(wanted) else [("",)]
    left = iter(rows)
    if len(table.bad) and all(row in left for row in kept):
        return "refused"
    others = (
        _found(read_table(written.content, written.name, written.encoding, dialect=one)) for one in table.otherwise
    )
    return "guessed" if table.other_dialect and any(other == wanted for other in others) else "wrong"


def _found(table: Table) -> dict[str, list[str]]:
    """The columns that were read, as they are compared."""
    return {name: [plain(as_text(value)) for value in values] for name, values in flattened(table.columns).items()}


def reads_back(written: Written) -> bool:
    """Whether the writer's own reader reads the table exactly."""
    if written.back is None:
        return False
    same = {plain(name): list(map(plain, values)) for name, values in written.columns.items()}
    return {plain(name): list(map(plain, values)) for name, values in written.back.items()} == same


def tried(seeds: Iterable[int]) -> tuple[Counter[str], Counter[str], list[int]]:
    """How often each outcome was seen, how often among tables that read back, and the seeds that were read wrongly."""
    every: Counter[str] = Counter()
    of_own: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        written = draw(seed)
        found = outcome(written)
        every[found] += 1
        of_own[found] += reads_back(written)
        if found == "wrong":
            wrong.append(seed)
    return every, of_own, wrong


def check(seeds: range) -> Counter[str]:
    """Fail where a table is read wrongly in silence, or fewer than 95 % of those that read back are read exactly."""
    every, of_own, wrong = tried(seeds)
    assert not wrong, f"seeds read wrongly: {wrong[:10]} of {every}"
    assert of_own["exact"] >= 0.95 * of_own.total(), of_own
    assert of_own.total() > 0.9 * len(seeds)  # the tables are such as readers can read
    return every
