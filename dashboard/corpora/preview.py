"""How a corpus was read: its first rows as they stand in the file beside what was read, and sentences on the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard.corpora import dialect_menu
from dashboard.ui import figures, messages

if TYPE_CHECKING:
    from components.retrieval.corpora.corpus import Corpus, SampleRow

MOST_COLUMNS = 5  # of one row that are shown
MOST_CHARACTERS = 240  # of a row in the file, and of each value
VISIBLE = str.maketrans({"\t": " ⇥ ", "\n": " ↵ ", "\r": " ↵ "})  # what is blank in a table


def draw(corpus: Corpus, key: str) -> None:
    """Draw the first rows and the sentences of a corpus's report."""
    report = corpus.report
    rows = [
        {
            "row": str(sample.row),
            "in the file": _short(sample.written).translate(VISIBLE),
            "what was read": _read(sample, report.text_column),
        }
        for sample in report.samples
    ]
    if rows:
        import pandas as pd

        with st.container(key="rows_as_read"):
            figures.plain_table(pd.DataFrame(rows), key=key)
    say(corpus, "the menu “Text column”")


def say(corpus: Corpus, how_to_choose: str = "") -> None:
    """Draw the sentences of a corpus's report, with how another text column is chosen."""
    report = corpus.report
    said = report.sentences(tuple(corpus.columns), how_to_choose)
    if report.otherwise:
        other = " or ".join(choice.in_words for choice in report.otherwise)
        said.append(f"How the file is written is a guess: if {other}, choose it behind “{dialect_menu.TITLE}”.")
    st.caption(messages.escape(" ".join(said)))


def _read(sample: SampleRow, text_column: str) -> str:
    if sample.refused:
        return f"refused: {sample.refused}"
    values = {text_column: sample.text, **sample.columns}
    shown = [f"{name}: {_short(value)}" for name, value in list(values.items())[:MOST_COLUMNS]]
    more = len(values) - len(shown)
    return "  ·  ".join([*shown, *([f"and {more} more columns"] if more > 0 else [])])


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
