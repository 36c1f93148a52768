"""Values and remarks as Python: no text of a person can end its string, and no name of theirs its comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LINE = 100  # characters: a longer list has one item a line


def literal(value: Any) -> str:
    """A value as Python writes it, in double quotes where that needs no escape; a list or table has one item a line if long.

    Everything in a text that is not a printable character is escaped. Takes texts, numbers, None, and tuples, lists and
    mappings of them; raises TypeError for anything else, whose `repr` might not be Python.
    """
    if isinstance(value, str):
        written = repr(str(value))
        return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in value else written
    if isinstance(value, bool | int | float | None):
        return repr(value)
    if isinstance(value, np.integer | np.floating | np.bool_):
        return repr(value.item())
    if isinstance(value, Mapping):
        return _bracketed("{}", [f"{literal(key)}: {literal(item)}" for key, item in value.items()])
    if isinstance(value, tuple):
        items = [literal(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else _bracketed("()", items)
    if isinstance(value, list):
        return _bracketed("[]", [literal(item) for item in value])
    raise TypeError(f"{type(value).__name__} cannot be written as code")


def _bracketed(brackets: str, items: Sequence[str]) -> str:
    one_line = f"{brackets[0]}{', '.join(items)}{brackets[1]}"
    if len(one_line) <= LINE and "\n" not in one_line:
        return one_line
    lines = "".join(f"    {line}\n" for item in items for line in f"{item},".split("\n"))
    return f"{brackets[0]}\n{lines}{brackets[1]}"


def call(function: str, *arguments: str, **options: Any) -> str:
    """A call: `arguments` are code, `options` are values, of which those that are None are left out."""
    named = [f"{name}={literal(value)}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join((*arguments, *named))})"


def remark(text: str) -> str:
    """A comment in one line, whatever the text has in it."""
    return "# " + " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())


def places(positions: Sequence[int]) -> str:
    """Some positions as an index: a slice where they follow each other."""
    if positions and list(positions) == list(range(positions[0], positions[-1] + 1)):
        return f"{positions[0]}:{positions[-1] + 1}"
    return literal([int(position) for position in positions])
