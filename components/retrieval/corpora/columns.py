"""Which column of a table holds the sentences.

The one a person asked for; else the one with a name that says so (text, sentence, ...); else the one whose texts are
by far the longest. Where two are alike it is not guessed: taking the wrong one of two would go unseen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.errors import InputError
from components.retrieval.corpora.readers.encoding import clean
from components.retrieval.corpora.readers.table import SET_COLUMN

EXAMPLES = 5
SAMPLE_ROWS = 1_000  # what a column is judged by
CLEARLY_LONGER = 2.0
# Names of a column that is the text, best first. Names of which a file has two (sentence1, ...) are not among them.
TEXT_NAMES = ("text", "sentence", "sentences", SET_COLUMN, "content", "passage", "document", "article", "headline")


@dataclass(frozen=True)
class ColumnPreview:
    name: str
    examples: tuple[str, ...]  # the first few values that are not empty
    mean_characters: float
    is_text: bool  # could hold the sentences
    is_guess: bool  # would be taken where nobody chooses; none is where columns are too alike


def preview_columns(columns: Mapping[str, Sequence[Any]]) -> tuple[ColumnPreview, ...]:
    """Each column, judged by the first 1,000 rows."""
    guess = guess_text(columns)
    return tuple(_preview(name, values, name == guess) for name, values in columns.items())


def text_column(columns: Mapping[str, Sequence[Any]], name: str, wanted: str | None = None) -> str:
    """The name of the text column. Raises InputError, which lists the columns, where it is not clear."""
    if wanted is not None:
        if wanted not in columns:
            raise no_column(name, wanted, columns)
        return wanted
    guess = guess_text(columns)
    if guess is not None:
        return guess
    raise InputError(
        f"{name} has {len(columns)} columns, and it is not clear which one is the text: {', '.join(columns)[:500]}.",
        "One column named text or sentence was expected, or one whose texts are much longer than the others.",
        "Name the column to take, or rename it.",
    )


def guess_text(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """The column that is most likely the text, None where two are alike or none is text."""
    if len(columns) == 1:
        return next(iter(columns))
    previews = [_preview(name, values, False) for name, values in columns.items()]
    texts = {preview.name: preview.mean_characters for preview in previews if preview.is_text}
    for wanted in TEXT_NAMES:
        named = [name for name in texts if name.casefold() == wanted]
        if named:
            return named[0] if len(named) == 1 else None
    for wanted in TEXT_NAMES:  # so named, though some of its first rows hold no text: those are bad rows
        named = [name for name in columns if name.casefold() == wanted]
        if len(named) == 1:
            return named[0]
    longest = sorted(texts, key=lambda name: -texts[name])
    if len(longest) > 1 and texts[longest[0]] < CLEARLY_LONGER * texts[longest[1]]:
        return None
    return longest[0] if longest else None


def as_text(value: Any) -> str:
    """A value of another column: text as it is (what cannot be carried cleaned), nothing as "", lists and objects as JSON."""
    if value is None or value != value:  # NaN is not equal to itself
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = value if isinstance(value, str) else None
    if text is None:
        text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)
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
    """Whether a value could be a sentence: it has letters and is no address."""
    return re.search(r"[^\W\d_]", value) is not None and re.match(r"\s*\w+://\S*\s*$", value) is None


def no_column(name: str, wanted: str, columns: Iterable[str]) -> InputError:
    return InputError(
        f"{name} has no column {wanted[:80]!r}.",
        f"One of its columns was expected: {', '.join(columns)[:500]}.",
        "Choose one of them, or rename it.",
    )
