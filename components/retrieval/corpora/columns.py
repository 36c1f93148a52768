"""Which column of a table holds the sentences.

The column that a person named; else one with a telling name (text, sentence, ...); else the one whose texts are by far
the longest. Where two columns are similar there is no guess: nobody would notice that the wrong one was taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.errors import InputError
from components.retrieval.corpora.readers.encoding import clean
from components.retrieval.corpora.readers.table import MOST_COLUMNS, SET_COLUMN

EXAMPLES = 5
SAMPLE_ROWS = 1_000  # a column is judged by its first rows
CLEARLY_LONGER = 2.0
TITLE_COLUMN, TEXT_COLUMN = "title", "text"  # of the documents of BEIR and mteb
MOST_DEPTH = 4  # of objects in objects, whose keys become columns
# Names of a column that is the text, best first. Names that come in pairs (sentence1, sentence2) are not among them.
TEXT_NAMES = ("text", "sentence", "sentences", SET_COLUMN, "content", "passage", "document", "article", "headline")


@dataclass(frozen=True)
class ColumnPreview:
    name: str
    examples: tuple[str, ...]  # the first few values that are not empty
    mean_characters: float
    is_text: bool  # could hold the sentences
    is_guess: bool  # is taken if nobody chooses; no column is where two are too similar


@dataclass(frozen=True)
class TextColumn:
    """The column that is the text, and why."""

    name: str
    reason: str
    is_guess: bool = False
    title: str | None = None  # the column whose texts stand before it


def preview_columns(columns: Mapping[str, Sequence[Any]]) -> tuple[ColumnPreview, ...]:
    """Each column, judged by the first 1,000 rows."""
    guess = guess_text(columns)
    return tuple(_preview(name, values, name == guess) for name, values in columns.items())


def text_column(columns: Mapping[str, Sequence[Any]], name: str, chosen: str | None = None) -> TextColumn:
    """The text column: `chosen`, or the guess. Raises InputError, which lists the columns, without either."""
    if chosen is not None:
        if chosen not in columns:
            raise InputError(
                f"{name} has no column {chosen[:80]!r}.",
                f"Its columns are: {', '.join(columns)[:500]}.",
                f"Name the column {chosen[:80]!r} in the file, or choose one of its columns.",
            )
        return TextColumn(chosen, "as asked")
    guess = guess_text(columns)
    if guess is not None:
        if len(columns) == 1:
            return TextColumn(guess, "the only column")
        if guess == TEXT_COLUMN and _is_collection(columns):
            return TextColumn(guess, f"each behind its {TITLE_COLUMN}, as in BEIR's measures", title=TITLE_COLUMN)
        if guess.casefold() in TEXT_NAMES:
            return TextColumn(guess, "by its name")
        return TextColumn(guess, "a guess: its texts are by far the longest", is_guess=True)
    raise InputError(
        f"{name} has {len(columns)} columns, and it is not clear which column holds the text: {_with_examples(columns)}.",
        "The text column is recognised by the name text or sentence, or by much longer texts than in the other columns.",
        "Choose the text column (--text-column on the command line), or rename it to text.",
    )


def _is_collection(columns: Mapping[str, Sequence[Any]]) -> bool:
    """Whether these are the documents of a retrieval collection: ids, titles and texts, and at most metadata beside them."""
    names = {name.partition(".")[0] for name in columns}
    return {"_id", TITLE_COLUMN, TEXT_COLUMN} <= names <= {"_id", TITLE_COLUMN, TEXT_COLUMN, "metadata"}


def _with_examples(columns: Mapping[str, Sequence[Any]]) -> str:
    """The columns, and of the first few what one row holds."""
    shown = [
        f"{name} (“{preview.examples[0][:40]}”)" if preview.examples else name
        for name, preview in ((name, _preview(name, values, False)) for name, values in list(columns.items())[:6])
    ]
    named = f"{', '.join(columns)[:500]}"
    return f"{named}; for example {', '.join(shown)}" if shown else named


def guess_text(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """The column that is most likely the text; None where two are similar or none holds text."""
    if len(columns) == 1:
        return next(iter(columns))
    previews = [_preview(name, values, False) for name, values in columns.items()]
    texts = {preview.name: preview.mean_characters for preview in previews if preview.is_text}
    for text_name in TEXT_NAMES:
        named = [name for name in texts if name.casefold() == text_name]
        if named:
            return named[0] if len(named) == 1 else None
    for text_name in TEXT_NAMES:  # the name decides although most of the first rows hold no text: those are bad rows
        named = [name for name in columns if name.casefold() == text_name]
        if len(named) == 1:
            return named[0]
    longest = sorted(texts, key=lambda name: -texts[name])
    if len(longest) > 1 and texts[longest[0]] < CLEARLY_LONGER * texts[longest[1]]:
        return None
    return longest[0] if longest else None


def flattened(columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The columns with those of objects divided into one for each key ("translation.en"), also of objects in objects.

    Columns beyond MOST_COLUMNS, and those where some value is no object, stay as they are.
    """
    flat: dict[str, Sequence[Any]] = {}
    left = list(columns.items())[::-1]
    while left:
        name, values = left.pop()
        present = [value for value in values if value is not None]
        is_divided = (
            bool(present) and name.count(".") < MOST_DEPTH and all(isinstance(value, dict) for value in present)
        )
        keys = list(dict.fromkeys(key for value in present for key in value)) if is_divided else []
        parts = [f"{name}.{key}" for key in keys]
        if not keys or len(flat) + len(left) + len(keys) > MOST_COLUMNS or any(part in columns for part in parts):
            flat[name] = values
            continue
        left += [
            (part, [None if value is None else value.get(key) for value in values])
            for part, key in reversed(list(zip(parts, keys, strict=True)))
        ]
    return flat


def as_text(value: Any) -> str:
    """A value of another column as text: cleaned text, "" for a missing value, JSON for lists and objects."""
    if value is None or value != value:  # NaN is not equal to itself
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = str(value)
    return text if text.isprintable() else clean(text).text


def _preview(name: str, values: Sequence[Any], is_guess: bool) -> ColumnPreview:
    rows = values[:SAMPLE_ROWS]
    sample = [value for value in rows if value is not None and value != ""]
    firsts = [value[0] if isinstance(value, list) and len(value) > 1 else value for value in sample]
    texts = [value for value in firsts if isinstance(value, str) and _is_language(value)]
    mean = float(np.mean([len(text) for text in texts])) if texts else 0.0
    examples = tuple(as_text(value)[:200] for value in sample[:EXAMPLES])
    return ColumnPreview(name, examples, mean, bool(texts) and 2 * len(texts) >= len(rows), is_guess)


def _is_language(value: str) -> bool:
    """Whether a value could be a sentence: it has letters and is not a web address."""
    return re.search(r"[^\W\d_]", value) is not None and re.match(r"\s*\w+://\S*\s*$", value) is None
