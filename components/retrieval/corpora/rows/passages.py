"""The texts of one cell: a text, a passage with a title, or a list of them; and cells that hold columns of their own."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.numbers import counted
from components.retrieval.corpora.columns import called, divided, is_missing

SAMPLE_ROWS = 1_000
SET_ITEMS = 10  # of a list of texts that become columns
_LONGEST_LIST = 1_000_000  # characters of a list that is written as text
_ITEM = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|None)"""
_PYTHON_LIST = (
    re.compile(  # flat: it cannot nest deeply; each part is taken as a whole, so that the time grows with the length
        rf"\[\s*+(?:{_ITEM}(?:\s*+,\s*+{_ITEM}|\s++{_ITEM})*+\s*+,?\s*+)?+\]", re.DOTALL
    )
)


def texts_of(value: Any) -> list[Any]:
    """What a cell holds: its texts, with whatever is no text left as it is. A passage's title stands before its text."""
    if isinstance(value, list):
        return [text for item in value for text in (texts_of(item) if isinstance(item, dict) else [item])]
    if isinstance(value, dict):
        key = next((key for key in ("text", "passage", "contents", "content") if key in value), None)
        text = value if key is None else value[key]
        if isinstance(text, list):
            return list(text)
        title = value.get("title")
        if isinstance(text, str) and isinstance(title, str) and title.strip():
            return [f"{title.strip()} {text}"]
        return [text]
    return [] if is_missing(value) else [value]


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
    flat, said = divided(columns, _are_passages)
    for name, values in flat.items():
        flat[name], sentence = with_written_lists(name, values)
        said += sentence
    return flat, said


def items(columns: Mapping[str, Sequence[Any]], name: str) -> dict[str, Sequence[Any]]:
    """A column of lists as one column for each place in the lists, named "set 1", "set 2" and so on."""
    values = columns[name]
    width = min(SET_ITEMS, max((len(value) for value in values if isinstance(value, list)), default=0))
    padded = [list(value) if isinstance(value, list) else [value] for value in values]
    return {
        f"{name} {place + 1}": [row[place] if place < len(row) else None for row in padded] for place in range(width)
    }


def _are_passages(values: Sequence[Any]) -> bool:
    """Whether the objects of a column are passages, which are texts and no columns."""
    return any(isinstance(value, dict) and isinstance(value.get("text"), str) for value in values[:SAMPLE_ROWS])


def _share(values: Sequence[Any], kind: type) -> float:
    given = [value for value in values[:SAMPLE_ROWS] if value is not None and value != ""]
    return sum(isinstance(value, kind) for value in given) / len(given) if given else 0.0


def with_written_lists(name: str, values: Sequence[Any]) -> tuple[Sequence[Any], list[str]]:
    """A column in which most cells are lists of JSON or Python written as text, with these read; and what is to be said.

    Cells that are no such lists stay as they are, and are counted. Where they are the most, all stay so.
    """
    if not any(isinstance(value, str) and _may_be_list(value) for value in values):
        return values, []
    read = [_parsed(value) if isinstance(value, str) else None for value in values]
    lists = sum(one is not None for one in read)
    given = sum(not (is_missing(value) or (isinstance(value, str) and not value.strip())) for value in values)
    if not lists:
        return values, []
    if 2 * lists <= given:
        looks = (
            f"{counted(lists, 'cell')} of the {called(name)} {'looks like a list' if lists == 1 else 'look like lists'}"
        )
        return values, [f"{looks}; since most others do not, all are read as they stand."]
    result = [
        value if one is None and not (isinstance(value, str) and not value.strip()) else one
        for value, one in zip(values, read, strict=True)
    ]
    said = f"The {called(name)} holds lists that are written as text; they are read as lists."
    if lists < given:
        others = given - lists
        stay = "is read as it stands" if others == 1 else "are read as they stand"
        said += f" {counted(others, 'other cell')} of it {stay}."
    return result, [said]


def _may_be_list(text: str) -> bool:
    return len(text) <= _LONGEST_LIST and text.lstrip().startswith("[") and text.rstrip().endswith("]")


def _parsed(text: str) -> list[Any] | None:
    """The list of texts and objects that a text is in JSON or Python; None where it is none."""
    if not _may_be_list(text):
        return None
    text = text.strip()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        if _PYTHON_LIST.fullmatch(text) is None:
            return None
        try:
            found = [ast.literal_eval(item) for item in re.findall(_ITEM, text, re.DOTALL)]  # numpy writes no commas
        except (ValueError, SyntaxError):  # a line break in quotes, or an escape that is none
            return None
    return found if isinstance(found, list) and all(isinstance(item, str | dict | None) for item in found) else None
