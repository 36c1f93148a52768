"""The files of a test collection and their content: documents, queries, and judgements ("qrels").

Two formats are read, recognised by the names of the files. BEIR (Thakur et al. 2021): corpus.jsonl and queries.jsonl of
objects with _id, text and perhaps title, and a .tsv with the header query-id, corpus-id, score. TREC (Voorhees and Harman
2005): judgements of four fields `query 0 document grade`; topics (components.retrieval.evaluation.graded.topics); and texts
in .tsv or .txt with lines of `id<TAB>text`, where the rest of the line is the text, with quotes and further tabs. The
formats can be mixed; .gz is decompressed.

A text can have several fields: a document a title and a text, a query also a description and a narrative, as columns or
in BEIR's metadata, where TREC-COVID calls a topic's title "query". Which of them are searched is chosen later.

What it does not read: TREC's documents in SGML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from components.errors import InputError
from components.jobs import IsStopped
from components.numbers import counted
from components.retrieval.corpora.columns import as_text
from components.retrieval.corpora.readers.encoding import Decoded, clean, has_broken_bytes
from components.retrieval.corpora.readers.files import read_table, read_text
from components.retrieval.corpora.readers.limits import LONG_ROW, MOST_ROW_CHARACTERS, Count, Limits, memory_of, never
from components.retrieval.corpora.readers.table import BadRows, Table
from components.retrieval.evaluation.graded.topics import has_topics, read_topics

Part = Literal["corpus", "queries", "judgements"]
PARTS: tuple[Part, ...] = get_args(Part)
Source = Path | bytes
DOCUMENT_FIELDS = ("title", "text")
QUERY_FIELDS = ("text", "title", "description", "narrative")  # the first that a file has is searched by default

# The first pattern that matches a name decides: "corpus-queries.jsonl" contains queries.
_NAMES: dict[Part, re.Pattern[str]] = {
    "judgements": re.compile(r"qrel|^(train|dev|test)\.tsv"),
    "queries": re.compile("quer(y|ies)|topics?"),
    "corpus": re.compile("corpus|document|collection|docs"),
}
_LINES = (".tsv", ".txt")  # an id, a tab, a text
_JUDGEMENT_BYTES = 200  # of an entry of a mapping, with its pair
_JUDGEMENT_NAMES = (
    ("queryid", "qid", "topicid", "query", "topic"),
    ("corpusid", "docid", "documentid", "passageid", "pid", "docno"),
    ("score", "relevance", "rel", "grade", "label"),
)
_ID_NAMES = frozenset({"id", *_JUDGEMENT_NAMES[0], *_JUDGEMENT_NAMES[1]})
_RUN_FIELDS = 6  # of a line of TREC's runs
_GRADE = re.compile(r"([+-]?\d{1,6})(\.0+)?", re.ASCII)


@dataclass(frozen=True)
class Entries:
    """Texts by field, each aligned with the ids in the order of the file; "" where an entry lacks a field."""

    ids: Mapping[str, int]  # to their numbers, from 0
    fields: Mapping[str, tuple[str, ...]]  # those that at least one entry has
    bad: BadRows


@dataclass(frozen=True)
class GradedJudgements:
    """Grades by (query id, document id); of two judgements of the same pair the later counts."""

    grades: Mapping[tuple[str, str], int]
    lines: int  # that are neither empty nor the header
    duplicates: int
    bad: BadRows


def find_parts(sources: Mapping[str, Source], split: str | None = None, packed: str = "") -> dict[Part, str]:
    """The name of each part's file.

    The file's name decides, else the name of its nearest folder ("qrels/dev.tsv"; BEIR's qrels are recognised without
    their folder too, as a browser uploads them). Of several files of a part the one with `split` in its name is taken.
    Raises InputError that names the missing and the ambiguous parts, and the files unless they are in a folder on the
    server: that is read with a `split` and is not listed. `packed` names the .zip that the files are from.
    """
    names_of: dict[Part, list[str]] = {part: [name for name in sources if part_of(name) == part] for part in PARTS}
    for part, names in names_of.items():
        chosen = [name for name in names if split and re.search(rf"(?<![a-z]){re.escape(split.lower())}", name.lower())]
        names_of[part] = chosen if len(names) > 1 and len(chosen) == 1 else names
    if any(len(names) != 1 for names in names_of.values()):
        raise _unclear(list(sources), names_of, split, packed)
    return {part: names[0] for part, names in names_of.items()}


def read_entries(
    source: Source, name: str, fields: Sequence[str], limits: Limits | None = None, is_stopped: IsStopped = never
) -> Entries:
    """The texts of a corpus or of queries, in those of the `fields` that they have. An entry has at least one of them.

    Raises InputError for a file without ids or texts, or with too many, and Stopped.
    """
    table = _read_table(source, name, limits, is_stopped)
    bad = BadRows()
    ids: dict[str, int] = {}
    texts: dict[str, list[str]] = {field: [] for field in fields}
    readers = [_values_of(table, field) for field in fields]
    for row, number in enumerate(table.numbers):
        values = [read(row) for read in readers]
        cleaned = [clean(value).text if isinstance(value, str) else "" for value in values]
        key = as_text(table.columns["_id"][row]).strip()
        if not key or not any(cleaned):
            bad.add(number, "no text" if key else "no id")
        elif table.has_broken_bytes and has_broken_bytes("".join((key, *cleaned))):
            bad.add(number, "bytes that are not utf-8")
        elif key in ids:
            bad.add(number, "repeated id")
        elif limits is not None and len(ids) == limits.sentences:
            raise limits.exceeded(name, f"more than {limits.sentences:,} texts")
        else:
            ids[key] = len(ids)
            for column, text in zip(texts.values(), cleaned, strict=True):
                column.append(text)
    bad = table.bad.joined(bad)
    if not ids:
        raise InputError(
            f"{name} has no text with an id" + (f" (line {bad.first[0].row}: {bad.first[0].reason})." if bad else "."),
            "Texts are objects with _id and text, lines of an id, a tab and a text, or TREC's topics; at least one is "
            "needed.",
            "Check the file and its format.",
        )
    return Entries(ids, {field: tuple(column) for field, column in texts.items() if any(column)}, bad)


def _values_of(table: Table, field: str) -> Callable[[int], Any]:
    """What a row has in a field: in the column of that name, else in BEIR's metadata."""
    column, metadata = table.columns.get(field), table.columns.get("metadata")
    names = (field, "query") if field == "title" else (field,)

    def value(row: int) -> Any:
        own = None if column is None else column[row]
        if own or metadata is None or field == "text" or not isinstance(metadata[row], dict):
            return own
        return next((text for name in names if (text := metadata[row].get(name))), own)

    return value


def read_judgements(
    source: Source, name: str, limits: Limits | None = None, is_stopped: IsStopped = never
) -> GradedJudgements:
    """The judgements of a file, with or without a header. Raises InputError where no line is one, and Stopped."""
    decoded = read_text(source, name, None, limits, is_stopped)
    grades: dict[tuple[str, str], int] = {}
    lines = duplicates = 0
    bad = BadRows()
    count = Count(name, limits, is_stopped)
    for number, line in enumerate(decoded.lines(), start=1):
        count.add_rows(1)
        if len(line) > MOST_ROW_CHARACTERS:
            bad.add(number, LONG_ROW)
            continue
        fields = _fields_of(line)
        if not line.strip() or (lines == 0 and _is_header(fields[0])):
            continue
        lines += 1
        if len(fields) not in {3, 4}:
            is_run = ", as in a run," if len(fields) == _RUN_FIELDS else ""
            bad.add(number, f"{counted(len(fields), 'field')}{is_run} instead of 3 or 4")
            continue
        query, *_, document, grade_text = fields  # the second of TREC's four fields, 0, has no meaning
        if not (query and document and grade_text):
            bad.add(number, "without query-id, corpus-id or score")
            continue
        grade = _GRADE.fullmatch(grade_text)
        if grade is None:
            bad.add(number, f"{grade_text[:20]!r} is not a whole number")
            continue
        is_known = (query, document) in grades
        duplicates += is_known
        if not is_known:
            count.add_memory(_JUDGEMENT_BYTES + memory_of(query) + memory_of(document))
        grades[query, document] = int(grade[1])
    if not grades:
        raise InputError(
            f"{name} has no judgement" + (f" (line {bad.first[0].row}: {bad.first[0].reason})." if bad else "."),
            "Judgements are lines of query, document and grade (header query-id, corpus-id, score), objects with these "
            "keys, or TREC's four fields: query 0 document grade.",
            "Check the file, or export it in one of these formats.",
        )
    return GradedJudgements(grades, lines, duplicates, bad)


def _fields_of(line: str) -> list[str]:
    """The fields of a line of judgements: between tabs or spaces, or in an object, as data sets of the hub have them."""
    if line.startswith("{"):
        with suppress(ValueError, RecursionError):
            given = {_plain(name): str(value).strip() for name, value in json.loads(line).items() if value is not None}
            return [next((given[name] for name in names if name in given), "") for names in _JUDGEMENT_NAMES]
    return [field.strip() for field in (line.split("\t") if "\t" in line else line.split())]


def _is_header(first: str) -> bool:
    """Whether the first field of a file is the name of a column of ids."""
    return _plain(first) in _ID_NAMES


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _read_table(source: Source, name: str, limits: Limits | None, is_stopped: IsStopped) -> Table:
    """The table of a file with texts. Raises InputError for a file in no format that is read."""
    if _ending(name) == ".jsonl":
        return _read_objects(source, name, limits, is_stopped)
    decoded = read_text(source, name, None, limits, is_stopped)
    if has_topics(decoded):  # their files have endings of many kinds, such as .301-350 or none
        return read_topics(decoded, name, limits, is_stopped)
    if _ending(name) in _LINES:
        return _read_lines(decoded, name, limits, is_stopped)
    raise InputError(
        f"{name} is neither a .jsonl file nor one of {', '.join(_LINES)}.",
        "Documents and queries are read as in BEIR (.jsonl of objects with _id and text), or as lines of an id, a tab and "
        "a text (.tsv); queries also as TREC's topics.",
        "Export it in one of these formats.",
    )


def _read_objects(source: Source, name: str, limits: Limits | None, is_stopped: IsStopped) -> Table:
    """The table of a .jsonl file with _id and text."""
    table = read_table(source, name, limits=limits, is_stopped=is_stopped)
    if table.columns and not {"_id", "text"} <= set(table.columns):
        raise InputError(
            f"{name} has the columns {', '.join(table.columns)[:300]}.",
            "The columns _id and text are needed; a column title is optional.",
            "Rename them, or write lines of an id, a tab and a text into a .tsv file.",
        )
    return table


def _read_lines(decoded: Decoded, name: str, limits: Limits | None, is_stopped: IsStopped) -> Table:
    """The table of lines of an id, a tab and a text."""
    count, bad = Count(name, limits, is_stopped), BadRows()
    keys: list[str] = []
    texts: list[str] = []
    numbers: list[int] = []
    first = 1
    for lines in decoded.line_blocks():
        count.add_rows(len(lines))
        kept = len(keys)
        for number, line in enumerate(lines, start=first):
            key, tab, text = line.partition("\t")
            if len(line) > MOST_ROW_CHARACTERS:
                bad.add(number, LONG_ROW)
            elif number == 1 and tab and _is_header(key):
                continue
            elif tab:
                keys.append(key)
                texts.append(text)
                numbers.append(number)
            elif line.strip():
                bad.add(number, "no tab between an id and a text")
        first += len(lines)
        count.add_values(keys[kept:], texts[kept:])
    columns: dict[str, Sequence[Any]] = {"_id": keys, "text": texts}
    return Table(columns, numbers, bad, decoded.encoding, decoded.guessed, decoded.has_broken_bytes)


def part_of(name: str) -> Part | None:
    """The part of a collection that a file is: named by the file, else by its nearest folder."""
    for piece in reversed(PurePosixPath(name.lower().replace("\\", "/")).parts):
        for part, pattern in _NAMES.items():
            if pattern.search(piece):
                return part
    return None


def _ending(name: str) -> str:
    return PurePosixPath(name.lower().removesuffix(".gz")).suffix


def _unclear(
    names: Sequence[str], names_of: Mapping[Part, Sequence[str]], split: str | None, packed: str
) -> InputError:
    """The error for missing parts, and for parts that could be several files. Those of a folder are not named."""
    titles = {"corpus": "the corpus", "queries": "the queries", "judgements": "the judgements (qrels)"}
    ambiguous = {part: files for part, files in names_of.items() if len(files) > 1}
    is_folder = split is not None and not packed
    listed = "the files of the folder" if is_folder else ", ".join(names)[:500]
    wrong = []
    for part, files in ambiguous.items():
        wrong.append(f"{titles[part]} could be {f'{len(files)} files' if is_folder else ' or '.join(files)[:300]}")
    wrong += [f"{titles[part]} cannot be found" for part, files in names_of.items() if not files]
    if packed:
        names_needed = (
            f"Pack one file of each, named after its content: corpus.jsonl, queries.jsonl and qrels/{split}.tsv."
        )
        listed = f"the files of {packed[:100]}"
    else:
        names_needed = "Name one file of each after its content, such as corpus.jsonl, queries.jsonl and qrels.tsv" + (
            f"; or choose another split than {split} (--split on the command line)." if split and ambiguous else "."
        )
    return InputError(
        f"Among {listed if names or packed else 'no files'}: {'; '.join(wrong)}.",
        "Three files are needed: documents, queries, and judgements.",
        names_needed,
    )
