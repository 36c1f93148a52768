"""The texts of one cell: a text, a passage with a title, or a list of them; and cells that hold columns of their own."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.retrieval.corpora.readers.encoding import clean

SAMPLE_ROWS = 1_000
MOST_KEYS = 20  # of an object that become columns
SET_ITEMS = 10  # of a list of texts that become columns
_LONGEST_LIST = 1_000_000  # characters of a list that is written as text
_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_PYTHON_LIST = re.compile(
    rf"\[\s*(?:{_QUOTED}\s*(?:,\s*{_QUOTED}\s*)*,?)?\s*\]", re.DOTALL
)  # flat: it cannot nest deeply


def texts_of(value: Any) -> list[Any]:
    """What a cell holds: its texts, with whatever is no text left as it is. A passage's title stands before its text."""
    if isinstance(value, list):
        return [text for item in value for text in (texts_of(item) if isinstance(item, dict) else [item])]
    if isinstance(value, dict):
        text = next((value[key] for key in ("text", "passage", "contents", "content") if key in value), None)
        if isinstance(text, list):
            return list(text)
        title = value.get("title")
        if isinstance(text, str) and isinstance(title, str) and title.strip():
            return [f"{title.strip()} {text}"]
        return [value if text is None else text]
    return [] if value is None or value != value else [value]


def has_lists(values: Sequence[Any]) -> bool:
    """Whether a column holds lists."""
    return _share(values, list) > 0.5


def first_texts(values: Sequence[Any]) -> list[Any]:
    """The first text of each of a column's cells, by which it is judged."""
    return [next(iter(texts_of(value)), None) for value in values]


def opened(columns: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Sequence[Any]], list[str]]:
    """The columns, where objects have become a column for each of their keys and lists that are written as text are lists.

    Returns also a sentence on each column that was changed.
    """
    result: dict[str, Sequence[Any]] = {}
    said: list[str] = []
    for name, values in columns.items():
        lists = _written_lists(values)
        if lists is not None:
            said.append(f"The column {name} holds lists that are written as text; they are read as lists.")
            values = lists
        keys = _keys(values) if _share(values, dict) > 0.5 else []
        if not keys:
            result[name] = values
            continue
        said.append(f"The column {name} holds objects, which are read as the columns {', '.join(keys)}.")
        for key in keys:
            inner = [value.get(key) if isinstance(value, dict) else None for value in values]
            result[f"{name}.{key}" if f"{name}.{key}" not in columns else f"{name}.{key} (2)"] = inner
    return result, said


def items(columns: Mapping[str, Sequence[Any]], name: str) -> dict[str, Sequence[Any]]:
    """A column of lists as one column for each place in the lists, named "set 1", "set 2" and so on."""
    values = columns[name]
    width = min(SET_ITEMS, max((len(value) for value in values if isinstance(value, list)), default=0))
    padded = [list(value) if isinstance(value, list) else [value] for value in values]
    return {
        f"{name} {place + 1}": [row[place] if place < len(row) else None for row in padded] for place in range(width)
    }


def _keys(values: Sequence[Any]) -> list[str]:
    """The keys of the objects of a column that are columns themselves; none for passages, which are texts."""
    objects = [value for value in values[:SAMPLE_ROWS] if isinstance(value, dict)]
    if any(isinstance(value.get("text"), str) for value in objects):
        return []
    keys = dict.fromkeys(clean(str(key)).text for value in objects for key in value)
    return [key for key in keys if key][:MOST_KEYS]


def _share(values: Sequence[Any], kind: type) -> float:
    given = [value for value in values[:SAMPLE_ROWS] if value is not None and value != ""]
    return sum(isinstance(value, kind) for value in given) / len(given) if given else 0.0


def _written_lists(values: Sequence[Any]) -> list[Any] | None:
    """The lists of a column of texts that all look like lists of JSON or Python; None where one does not."""
    lists: list[Any] = []
    if not any(isinstance(value, str) and value.strip() for value in values[:SAMPLE_ROWS]):
        return None
    for value in values:
        if not isinstance(value, str) or not value.strip():
            lists.append(None if isinstance(value, str) else value)
            continue
        text = value.strip()
        if not (text.startswith("[") and text.endswith("]")) or len(text) > _LONGEST_LIST:
            return None
        parsed = _parsed(text)
        if not isinstance(parsed, list) or not all(isinstance(item, str | dict) for item in parsed):
            return None
        lists.append(parsed)
    return lists if any(isinstance(value, list) for value in lists) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return ast.literal_eval(text) if _PYTHON_LIST.fullmatch(text) else None
