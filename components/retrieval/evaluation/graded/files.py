"""Which file of a test collection holds what, and what stands in it: documents, queries, and judgements ("qrels").

Two habits are known. BEIR (Thakur et al. 2021): corpus.jsonl and queries.jsonl of objects with _id, title and text, and
a table with the header query-id, corpus-id, score. TREC (Voorhees and Harman 2005): judgements of four fields
`query 0 document grade` without a header, with texts as lines of `id<TAB>text`, of which the rest of the line is the
text, quotes and further tabs included. Either may stand beside the other's; .gz is unpacked.

What it does not read: TREC's documents and topics in SGML.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from components.errors import InputError
from components.retrieval.corpora.columns import as_text
from components.retrieval.corpora.readers.csv_files import column_names
from components.retrieval.corpora.readers.encoding import clean, has_broken_bytes
from components.retrieval.corpora.readers.files import FORMATS, read_table, read_text
from components.retrieval.corpora.readers.table import BadRow, Limits, Table, lines_of, unreadable

Part = Literal["corpus", "queries", "judgements"]
PARTS: tuple[Part, ...] = get_args(Part)
Source = Path | bytes

# The first that is found in a name decides: "corpus-queries.jsonl" holds queries.
_NAMES: dict[Part, re.Pattern[str]] = {
    "judgements": re.compile("qrel"),
    "queries": re.compile("quer(y|ies)|topics?"),
    "corpus": re.compile("corpus|document|collection|docs"),
}
_ID_NAMES = ("_id", "id", "docid", "doc-id", "doc_id", "pid", "qid", "query-id", "query_id", "corpus-id", "corpus_id")
_TEXT_NAMES = ("text", "contents", "content", "passage", "body", "query", "question", "title")
_QUERY_NAMES = ("query-id", "query_id", "queryid", "qid", "query", "topic")
_DOCUMENT_NAMES = ("corpus-id", "corpus_id", "corpusid", "doc-id", "doc_id", "docid", "document", "pid", "docno")
_GRADE_NAMES = ("score", "rel", "relevance", "grade", "label")
_TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")  # those that have columns with names
_GRADE = re.compile(r"([+-]?\d{1,6})(\.0+)?", re.ASCII)
_HEAD = 1 << 16  # bytes that a file without a telling name is judged by


@dataclass(frozen=True)
class Entries:
    """Texts by their ids, in the order of the file."""

    texts: Mapping[str, str]
    bad: Sequence[BadRow]
    encoding_guessed: bool


@dataclass(frozen=True)
class Judgements:
    """Grades by (query id, document id); of two for one pair the later counts."""

    grades: Mapping[tuple[str, str], int]
    lines: int  # all that hold anything, but for the header
    duplicates: int
    bad: Sequence[BadRow]
    encoding_guessed: bool


def find_parts(sources: Mapping[str, Source], split: str | None = None) -> tuple[dict[Part, str], tuple[str, ...]]:
    """The name of each part's file, and the names of files that are none.

    Names decide, folders in them included ("qrels/test.tsv"); then what looks like judgements is taken for them, and
    the one file that is left for the one part that is missing. Of several files of a part the one with `split` in its
    name is taken. Raises InputError that names what is missing or there twice.
    """
    found: dict[Part, list[str]] = {part: [] for part in PARTS}
    unknown: list[str] = []
    for name, source in sources.items():
        part = _part_of(name)
        if part is None and _ending(name) in {".tsv", ".txt", ".test", ".dev", ".train", ""}:
            part = "judgements" if _looks_like_judgements(_head(source, name)) else None
        (unknown if part is None else found[part]).append(name)
    for part, names in found.items():
        chosen = [name for name in names if split and re.search(rf"(?<![a-z]){re.escape(split.lower())}", name.lower())]
        found[part] = chosen if len(names) > 1 and len(chosen) == 1 else names
    missing = [part for part in PARTS if not found[part]]
    texts = [name for name in unknown if _ending(name) in FORMATS]
    if len(missing) == len(texts) == 1 and missing != ["judgements"]:
        found[missing[0]], missing = texts, []
    twice = [part for part in PARTS if len(found[part]) > 1]
    if missing or twice:
        raise _unclear(list(sources), missing, {part: found[part] for part in twice}, split)
    parts = {part: names[0] for part, names in found.items()}
    return parts, tuple(name for name in sources if name not in parts.values())


def read_entries(source: Source, name: str, limits: Limits | None = None) -> Entries:
    """The texts of a corpus or of queries. Raises InputError where there are no ids, no texts, or too many."""
    table = (read_table if _ending(name) in _TABLES else _read_lines)(source, name, limits=limits)
    bad = list(table.bad)
    ids, title, body = _columns(list(table.columns), name) if table.columns else ("", None, "")
    texts: dict[str, str] = {}
    for place, number in enumerate(table.numbers):
        parts = [table.columns[column][place] for column in (title, body) if column is not None]
        text = " ".join(cleaned for part in parts if isinstance(part, str) and (cleaned := clean(part).text))
        key = as_text(table.columns[ids][place]).strip()
        if not key or not text:
            bad.append(BadRow(number, "no text" if key else "no id"))
        elif table.has_broken_bytes and has_broken_bytes(key + text):
            bad.append(BadRow(number, "bytes that are not utf-8"))
        elif key in texts:
            bad.append(BadRow(number, "an id that came before"))
        else:
            texts[key] = text
    if not texts:
        raise InputError(
            f"{name} has no text with an id" + (f" (line {bad[0].row}: {bad[0].reason})." if bad else "."),
            "At least one was expected: objects with _id and text, or lines of an id, a tab and a text.",
            "Check the file and its format.",
        )
    if limits is not None and len(texts) > limits.sentences:
        raise limits.exceeded(name, f"{len(texts):,} texts")
    return Entries(texts, sorted(bad, key=lambda row: row.row), table.encoding_guessed)


def read_judgements(source: Source, name: str, limits: Limits | None = None) -> Judgements:
    """The judgements of a file, with a header or without. Raises InputError where not one line is a judgement."""
    decoded = read_text(source, name, None, limits)
    grades: dict[tuple[str, str], int] = {}
    lines = duplicates = 0
    bad: list[BadRow] = []
    header: tuple[int, int, int, int] | None = None
    for number, line in enumerate(lines_of(decoded.text), start=1):
        if not line or line.isspace():
            continue
        fields = _fields(line)
        if lines == 0 and header is None:
            header = _header(fields)
            if header is not None:
                continue
        lines += 1
        places = header or {3: (0, 1, 2, 3), 4: (0, 2, 3, 4)}.get(len(fields))
        if places is None or len(fields) != places[3]:
            expected = "3 or 4" if header is None else header[3]
            bad.append(BadRow(number, f"{len(fields)} fields instead of {expected}"))
            continue
        grade = _GRADE.fullmatch(fields[places[2]])
        if grade is None:
            bad.append(BadRow(number, f"{fields[places[2]][:20]!r} is no whole number"))
            continue
        pair = fields[places[0]], fields[places[1]]
        duplicates += pair in grades
        grades[pair] = int(grade[1])
    if not grades:
        raise InputError(
            f"{name} has no judgement" + (f" (line {bad[0].row}: {bad[0].reason})." if bad else "."),
            "Lines of query, document and grade (header query-id, corpus-id, score), or of TREC's four fields, query 0 "
            "document grade, were expected.",
            "Check the file, or export it in one of these forms.",
        )
    return Judgements(grades, lines, duplicates, bad, decoded.guessed)


def _read_lines(source: Source, name: str, limits: Limits | None) -> Table:
    """The table of a file of lines: the columns its first line names, else an id and, behind a tab, the text."""
    decoded = read_text(source, name, None, limits)
    lines = [(number, line) for number, line in enumerate(lines_of(decoded.text), start=1) if line.strip()]
    names = ["_id", "text"]
    first = [field.strip() for field in lines[0][1].split("\t")] if lines else []
    if len(first) > 1 and first[0].lower() in _ID_NAMES:
        names, lines = column_names(first), lines[1:]
    rows: list[list[str]] = []
    numbers: list[int] = []
    bad: list[BadRow] = []
    for number, line in lines:
        fields = line.split("\t", len(names) - 1)  # what is more than the columns belongs to the last
        if len(fields) < len(names):
            bad.append(BadRow(number, f"{len(fields)} fields instead of {len(names)}"))
            continue
        rows.append(fields)
        numbers.append(number)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    read: dict[str, Sequence[Any]] = dict(zip(names, columns, strict=True))
    return Table(read, numbers, bad, decoded.encoding, decoded.guessed, decoded.has_broken_bytes)


def _columns(names: Sequence[str], file: str) -> tuple[str, str | None, str]:
    """The columns of id, title (if any) and text. Raises InputError where there are none."""
    lowered = {name.strip().lower(): name for name in reversed(names)}
    id_ = next((lowered[name] for name in _ID_NAMES if name in lowered), None)
    text = next((lowered[name] for name in _TEXT_NAMES if name in lowered and lowered[name] != id_), None)
    if id_ is None or text is None:
        raise InputError(
            f"{file} has the columns {', '.join(names)[:300] or '(none)'}.",
            "Columns _id and text, and perhaps title, were expected.",
            "Rename them, or write lines of an id, a tab and a text into a .tsv file.",
        )
    title = lowered.get("title")
    return id_, None if title == text else title, text


def _fields(line: str) -> list[str]:
    """The fields of a judgement: between tabs, or between any white space."""
    fields = [field.strip() for field in line.split("\t")]
    return fields if len(fields) in {3, 4} else line.split()


def _header(fields: Sequence[str]) -> tuple[int, int, int, int] | None:
    """Where query, document and grade stand by a header's names, and how many fields it has; None where it is none."""
    names = [field.lower() for field in fields]
    places = [
        next((names.index(name) for name in known if name in names), None)
        for known in (_QUERY_NAMES, _DOCUMENT_NAMES, _GRADE_NAMES)
    ]
    query, document, grade = places
    return None if query is None or document is None or grade is None else (query, document, grade, len(fields))


def _part_of(name: str) -> Part | None:
    """The part that the file's name, else the nearest folder's, speaks of."""
    for piece in reversed(PurePosixPath(name.lower().replace("\\", "/")).parts):
        for part, pattern in _NAMES.items():
            if pattern.search(piece):
                return part
    return None


def _ending(name: str) -> str:
    return PurePosixPath(name.lower().removesuffix(".gz")).suffix


def _head(source: Source, name: str) -> str:
    """The first lines of a file, read roughly; only to see what kind of file it is."""
    if isinstance(source, Path):
        try:
            with source.open("rb") as file:
                content = file.read(_HEAD)
        except OSError as problem:
            raise unreadable(name, problem) from problem
    else:
        content = source[:_HEAD]
    if content.startswith(b"\x1f\x8b"):
        try:
            content = zlib.decompressobj(wbits=31).decompress(content, _HEAD)
        except zlib.error as problem:
            raise unreadable(name, problem) from problem
    text = content.replace(b"\0", b"").decode("utf-8-sig", "replace")  # of UTF-16 the letters of ASCII
    return text.rpartition("\n")[0] if len(content) == _HEAD else text  # the last line is cut


def _looks_like_judgements(text: str) -> bool:
    """Whether most of the first lines are judgements; the first may be a header."""
    lines = [_fields(line) for line in text.split("\n")[:200] if line.strip()]
    lines = lines[1:] or lines
    fitting = sum(len(fields) in {3, 4} and _GRADE.fullmatch(fields[-1]) is not None for fields in lines)
    return 2 * fitting > len(lines)


def _unclear(
    names: Sequence[str], missing: Sequence[Part], twice: Mapping[Part, Sequence[str]], split: str | None
) -> InputError:
    """The error for files of which it is not clear which is which."""
    said = {"corpus": "the corpus", "queries": "the queries", "judgements": "the judgements (qrels)"}
    wrong = [f"{said[part]} could be {' or '.join(found)}" for part, found in twice.items()]
    wrong += [f"{said[part]} cannot be found" for part in missing]
    return InputError(
        f"Among {', '.join(names)[:500] or 'no files'}: {'; '.join(wrong)}.",
        "Three files were expected: documents, queries, and judgements.",
        "Name them after what they hold, such as corpus.jsonl, queries.jsonl and qrels.tsv, one of each"
        + (f"; or choose another split than {split} (--split on the command line)." if split and twice else "."),
    )
