"""Which column of a table holds the sentences.

The column that a person named; else one with a telling name (text, sentence, ...); else the one whose texts are by far
the longest. Where two columns are similar there is no guess: nobody would notice that the wrong one was taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.errors import InputError
from components.retrieval.corpora.column_names import ANSWERS, BODIES, TEXTS, plain
from components.retrieval.corpora.readers.dialects import words_in
from components.retrieval.corpora.readers.encoding import clean
from components.retrieval.corpora.readers.table import MOST_COLUMNS, SET_COLUMN

EXAMPLES = 5
SAMPLE_ROWS = 1_000  # a column is judged by its first rows
CLEARLY_LONGER = 2.0
KEYS_SHOWN = 20  # of objects that become columns
ID_COLUMN, TITLE_COLUMN, TEXT_COLUMN = "_id", "title", "text"  # of the documents of BEIR and mteb
MOST_DEPTH = 4  # of objects in objects, whose keys become columns
# Names of a column that is the text, best first. Names that come in pairs (sentence1, sentence2) are not among them.
TEXT_NAMES: tuple[str, ...] = (
    "text",
    "sentence",
    "sentences",
    SET_COLUMN,
    "content",
    "passage",
    "document",
    "article",
    "headline",
)
TEXT_NAMES += (*map(plain, (*TEXTS, *BODIES, *ANSWERS)),)  # beside a question or a title they are what is searched


LEAST_ROLES, ROLE_REPEATS = 6, 3  # rows of a column of roles, and how often each of its values stands there on average
# Keys of a turn in a conversation: who speaks, and what is said, as chat models and exports of chats have them.
SPEAKERS, SAID = frozenset({"role", "from", "speaker", "author"}), frozenset({"content", "value", "text", "message"})


@dataclass(frozen=True)
class ColumnPreview:
    name: str
    examples: tuple[str, ...]  # the first few values that are not empty
    mean_characters: float
    is_text: bool  # could hold the sentences
    is_guess: bool  # is taken if nobody chooses; no column is where two are too similar
    has_turns: bool = False  # holds lists of a conversation's turns
    has_roles: bool = False  # holds few different values of one word each, or one value alone


AS_ASKED = (
    "as asked"  # the reason for a column that was named; texts of one that was found may stand behind their titles
)


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
        if are_turns(columns.get(chosen, ())):
            raise list_of_turns(name, chosen)
        if chosen not in columns:
            raise InputError(
                f"{name} has no column {chosen[:80]!r}.",
                f"Its columns are: {', '.join(columns)[:500]}.",
                f"Name the column {chosen[:80]!r} in the file, or choose one of its columns.",
            )
        return TextColumn(chosen, AS_ASKED)
    turns = next((column for column, values in columns.items() if are_turns(values)), None)
    guess = guess_text(columns)
    if guess is not None and (turns is None or (guess != turns and plain(guess) in TEXT_NAMES)):
        if len(columns) == 1:
            return TextColumn(guess, "the only column")
        if guess == TEXT_COLUMN and is_collection(columns):
            return TextColumn(guess, f"each behind its {TITLE_COLUMN}, as in BEIR's measures", title=TITLE_COLUMN)
        if plain(guess) in TEXT_NAMES:
            return TextColumn(guess, "by its name")
        return TextColumn(guess, "a guess: its texts are by far the longest", is_guess=True)
    if turns is not None:
        raise list_of_turns(name, turns)
    raise InputError(
        f"{name} has {len(columns)} columns, and it is not clear which column holds the text: {_with_examples(columns)}.",
        "The text column is recognised by the name text or sentence, or by much longer texts than in the other columns.",
        "Choose the text column (--text-column on the command line), or rename it to text.",
    )


def are_turns(values: Sequence[Any]) -> bool:
    """Whether most cells of a column are lists of a conversation's turns: objects with a speaker and what is said."""
    given = [value for value in values[:SAMPLE_ROWS] if not (value is None or value == "")]
    return 2 * sum(map(_is_list_of_turns, given)) > len(given)


def are_roles(values: Sequence[Any]) -> bool:
    """Whether a column has few different values of one word each, such as user and assistant: it holds no sentences."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    return (
        len(texts) >= LEAST_ROLES
        and len(set(texts)) * ROLE_REPEATS <= len(texts)
        and all(words_in(text) == 1 for text in texts)
    )


def _is_list_of_turns(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(turn, dict) and not SPEAKERS.isdisjoint(turn) and not SAID.isdisjoint(turn) for turn in value
        )
    )


def list_of_turns(name: str, column: str) -> InputError:
    """What is to be done with a file of conversations whose turns are lists."""
    return InputError(
        f"In {name}, {column[:80]} is a list of turns.",
        "A row must hold one text, or the texts of one pair.",
        "Write one row per message (conversation, role, text).",
    )


def is_collection(columns: Iterable[str]) -> bool:
    """Whether columns of these names are those of a collection's documents: ids, titles, texts, and at most metadata."""
    names = {name.partition(".")[0] for name in columns}
    return {ID_COLUMN, TITLE_COLUMN, TEXT_COLUMN} <= names <= {ID_COLUMN, TITLE_COLUMN, TEXT_COLUMN, "metadata"}


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
        named = [name for name in texts if plain(name) == text_name]
        if named:
            return named[0] if len(named) == 1 else None
    for text_name in TEXT_NAMES:  # the name decides although most of the first rows hold no text: those are bad rows
        named = [name for name in columns if plain(name) == text_name]
        if len(named) == 1:
            return named[0]
    longest = sorted(texts, key=lambda name: -texts[name])
    if len(longest) > 1 and texts[longest[0]] < CLEARLY_LONGER * texts[longest[1]]:
        return None
    return longest[0] if longest else None


def flattened(columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The columns with those of objects divided into one for each key; see `divided`."""
    return divided(columns)[0]


def divided(
    columns: Mapping[str, Sequence[Any]], stays: Callable[[Sequence[Any]], bool] = lambda values: False
) -> tuple[dict[str, Sequence[Any]], list[str]]:
    """The columns with those of objects divided into one for each key ("translation.en"), also of objects in objects.

    A column is divided where most of its values are objects, unless it `stays`; its other values stay in a column of its name,
    and so do the keys beyond MOST_COLUMNS (first those without texts). Returns also a sentence on each divided column.
    """
    flat: dict[str, Sequence[Any]] = {}
    said: list[str] = []
    left = [(name, values, 0) for name, values in columns.items()][::-1]
    while left:
        name, values, depth = left.pop()
        objects = [value for value in values if isinstance(value, dict)] if depth < MOST_DEPTH else []
        keys = list(dict.fromkeys(key for value in objects for key in value))
        room = max(0, MOST_COLUMNS - len(flat) - len(left) - 1)
        if not keys or 2 * len(objects) <= _given(values) or stays(values):
            flat[name] = values
            continue
        kept, rest = keys, list[Any]()
        if len(keys) > room:
            keys = [*sorted(keys, key=lambda key: not any(_may_be_text(value.get(key)) for value in objects))]
            kept, rest = keys[:room], keys[room:]
        taken = {*columns, *flat, *(other for other, _, _ in left)}
        parts = []
        for key in kept:
            part = plain = f"{name}.{clean(str(key)).text}"
            number = 2
            while part in taken:
                part, number = f"{plain} ({number})", number + 1
            taken.add(part)
            parts.append((part, [value.get(key) if isinstance(value, dict) else None for value in values], depth + 1))
        if rest or len(objects) < _given(values):
            beyond = set(rest)
            flat[name] = [
                ({key: one for key, one in value.items() if key in beyond} or None)
                if isinstance(value, dict)
                else value
                for value in values
            ]
        said.append(_on_objects(name, kept, rest))
        left += parts[::-1]
    return flat, said


def _on_objects(name: str, kept: Sequence[Any], rest: Sequence[Any]) -> str:
    """That a column was divided, and what is beyond the limit."""

    def listed(keys: Sequence[Any]) -> str:
        shown = ", ".join(clean(str(key)).text[:80] for key in keys[:KEYS_SHOWN])
        return shown + (f" and {len(keys) - KEYS_SHOWN:,} others" if len(keys) > KEYS_SHOWN else "")

    said = f"The {called(name)} holds objects, which are read as the columns {listed(kept)}."
    if not kept:
        said = f"The {called(name)} holds objects, which are not divided."
    beyond = f" Beyond {MOST_COLUMNS} columns, these stay in the {called(name)}: {listed(rest)}."
    return said + (beyond if rest else "")


def _may_be_text(value: Any) -> bool:
    return isinstance(value, str | list | dict)


def _given(values: Sequence[Any]) -> int:
    """Values that are not empty."""
    return sum(not (value is None or (isinstance(value, str) and not value)) for value in values)


def called(name: str) -> str:
    """A column in a sentence: "column score", and "column 4" for one that is only numbered."""
    return name if re.fullmatch(r"column \d+", name) else f"column {name}"


def as_text(value: Any) -> str:
    """A value of another column as text: cleaned text, "" for a missing value, JSON for lists and objects."""
    if is_missing(value):
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = str(value)
    return text if text.isprintable() else clean(text).text


def is_missing(value: Any) -> bool:
    """Whether a value is none: None, and any kind of "not a number", which is not equal to itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except ArithmeticError:  # Decimal("sNaN") cannot even be compared
        return True


def _preview(name: str, values: Sequence[Any], is_guess: bool) -> ColumnPreview:
    rows = values[:SAMPLE_ROWS]
    sample = [value for value in rows if value is not None and value != ""]
    firsts = [value[0] if isinstance(value, list) and len(value) > 1 else value for value in sample]
    texts = [value for value in firsts if isinstance(value, str) and _is_language(value)]
    mean = float(np.mean([len(text) for text in texts])) if texts else 0.0
    examples = tuple(as_text(value)[:200] for value in sample[:EXAMPLES])
    is_text = bool(texts) and 2 * len(texts) >= len(rows)
    has_roles = are_roles(rows) or len({*texts}) == 1
    return ColumnPreview(name, examples, mean, is_text, is_guess, are_turns(values), has_roles)


def _is_language(value: str) -> bool:
    """Whether a value could be a sentence: it has letters and is not a web address."""
    return re.search(r"[^\W\d_]", value) is not None and re.match(r"\s*\w+://\S*\s*$", value) is None
