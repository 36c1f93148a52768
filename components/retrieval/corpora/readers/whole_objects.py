"""The rows of a file that is one JSON object for a whole table.

Such as pandas and the hub write them: lists by column, objects by row label, columns and data; a list of objects under a
name of its own; or a list for each part (train, dev, test), which become one table with the part in a column. Keys that
hold no rows are named, so that nothing is lost in silence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from components.retrieval.corpora.readers.table import LINE_COLUMN, SET_COLUMN

PART_COLUMNS = ("split", "part", "partition")  # the first that no row has holds the name of its part
_PART = re.compile(
    r"(?:train|training|trn|dev|devel|develop|development|valid|validation|val|eval|test|testing|tst)(?:[\W_].*)?",
    re.IGNORECASE,
)
_RECORDS = frozenset({"data", "rows", "records", "examples", "instances", "items", "documents", "samples"})
# Beside lists of its own such a text makes the object a single row: a query with its right and wrong answers.
_TEXTS_OF_A_ROW = frozenset({"query", "question", "anchor", "sentence", "text", "premise", "passage", "document"})
_OF_PANDAS = frozenset({"columns", "data", "index", "schema", "index_names", "column_names"})
_OF_A_ROW_OF_THE_HUB = frozenset({"row_idx", "row", "truncated_cells"})


class WholeTable(NamedTuple):
    """The rows of an object, and its keys that hold none."""

    rows: Sequence[Any]
    left_out: tuple[str, ...] = ()


NO_TABLE = WholeTable(())


def table_in(text: str) -> WholeTable:
    """The table that a JSON text holds in one object; NO_TABLE where it is something else, such as one row."""
    try:
        content = json.loads(text)  # which refuses lines of several values
    except (ValueError, RecursionError):
        return NO_TABLE
    return _table_of(content) if isinstance(content, dict) else NO_TABLE


def _table_of(content: Mapping[str, Any]) -> WholeTable:
    names, data = content.get("columns"), content.get("data")
    if isinstance(names, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        return _beside([dict(zip(map(str, names), row, strict=False)) for row in data], content, _OF_PANDAS)
    if isinstance(data, list) and "schema" in content:
        return _beside(_rows(data), content, _OF_PANDAS)
    parts = _parts(content)
    if parts:
        return _of_parts(parts, content)
    lists = {key: value for key, value in content.items() if isinstance(value, list)}
    objects = [key for key, value in lists.items() if value and all(isinstance(row, dict) for row in value)]
    if len(objects) > 1:  # as in an answer of the hub: features, which describe columns, and rows
        objects = [key for key in objects if key.casefold() in _RECORDS] or objects
    is_by_column = len(lists) > 1 and len(objects) < len(lists) and len(set(map(len, lists.values()))) == 1
    if len(objects) == 1 and (not is_by_column or objects[0].casefold() in _RECORDS):
        return _beside(_rows(lists[objects[0]]), content, {objects[0]})
    if is_by_column:
        is_one_row = any(isinstance(value, str) and key.casefold() in _TEXTS_OF_A_ROW for key, value in content.items())
        if is_one_row:
            return NO_TABLE
        return _beside(
            [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)], content, lists
        )
    values = list(content.values())
    if values and all(isinstance(value, dict) and value for value in values):
        return WholeTable(_by_label(content))
    return NO_TABLE


def _beside(
    rows: Sequence[Any], content: Mapping[str, Any], used: Mapping[str, Any] | set[str] | frozenset[str]
) -> WholeTable:
    return WholeTable(rows, tuple(key for key in content if key not in used))


def _rows(objects: Sequence[Any]) -> list[Any]:
    """Rows without the envelope in which the hub's viewer gives each."""
    return [
        row["row"]
        if isinstance(row, dict) and isinstance(row.get("row"), dict) and row.keys() <= _OF_A_ROW_OF_THE_HUB
        else row
        for row in objects
    ]


def _by_label(content: Mapping[str, Any]) -> list[Any]:
    """The rows of columns that are objects by row label, or of objects under row labels; none of anything else."""
    values = list(content.values())
    labels = list(values[0])
    if (
        len(labels) > 1
        and all(label.isdecimal() for label in labels)
        and all(list(value) == labels for value in values)
    ):
        return [{name: content[name][label] for name in content} for label in labels]
    return values if len(values) > 1 and all(label.isdecimal() for label in content) else []


def _parts(content: Mapping[str, Any]) -> dict[str, WholeTable]:
    """The rows of each key that names a part; none where these keys are columns."""
    parts: dict[str, WholeTable] = {}
    for key, value in content.items():
        if _PART.fullmatch(key) and isinstance(value, list | dict):
            parts[key] = WholeTable(_rows(value)) if isinstance(value, list) else _table_of(value)
    rows = [row for table in parts.values() for row in table.rows]
    has_objects = bool(rows) and all(isinstance(row, dict) for row in rows)
    # A column can be called "test" too: its values are then as plain as those of the columns beside it.
    others = [key for key, value in content.items() if isinstance(value, list) and key not in parts]
    return parts if has_objects or (rows and not others) else {}


def _of_parts(parts: Mapping[str, WholeTable], content: Mapping[str, Any]) -> WholeTable:
    every = [(key, _as_row(row)) for key, table in parts.items() for row in table.rows]
    column = next((name for name in PART_COLUMNS if not any(name in row for _, row in every)), None)
    rows = [row if column is None else {**row, column: key} for key, row in every]
    unused = [key for key in content if key not in parts or (content[key] and not parts[key].rows)]
    return WholeTable(rows, (*unused, *(f"{key}.{name}" for key, table in parts.items() for name in table.left_out)))


def _as_row(row: Any) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    return {SET_COLUMN if isinstance(row, list) else LINE_COLUMN: row}
