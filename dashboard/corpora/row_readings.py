"""What was read of a file of rows, as a person sees it: counts, columns, three rows, and menus to choose otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from components.retrieval.corpora.rows.parts import ALL
from dashboard.corpora import dialect_menu
from dashboard.ui import controls, figures, messages

if TYPE_CHECKING:
    from components.retrieval.corpora.rows.reading import RowUse

NO_COLUMN = "none"
Read = TypeVar("Read")


@dataclass(frozen=True)
class ReadingChoice:
    """What a person chose in place of what was recognised; None where they left it."""

    columns: Mapping[str, str] | None = None
    part: str | None = None

    def __bool__(self) -> bool:
        return self.columns is not None or self.part is not None


def shown(
    found: Read,
    reading_of: Callable[[Read], RowUse | None],
    key: str,
    roles: Mapping[str, str],
    kind_of: Callable[[Mapping[str, str]], Mapping[str, str]],
    read: Callable[[ReadingChoice], Read | None],
) -> Read | None:
    """Draw what was read, and give what a person's choice of columns and part makes of it: `found` where they left both.

    `roles`: our columns to their names for people, which have a menu each. `kind_of` makes of the chosen columns those of one
    kind of rows, and `read` reads the file so, which may draw an error and give None.
    """
    reading = reading_of(found)
    if reading is None:
        return found
    title = reading.counts()
    icon = ":material/help:" if reading.is_guess else ":material/table_rows:"
    with st.expander(f"**{title}**", expanded=reading.is_guess, icon=icon, key="rows_read"):
        if reading.is_guess:
            st.markdown("**Are these the right columns?** Another choice is as plausible.")
        choice = _menus(reading, key, roles, kind_of)
        now = read(choice) if choice else found
        for other in reading.otherwise:
            st.markdown(
                f"**How the file is written is a guess.** If {other.in_words}, choose it behind “{dialect_menu.TITLE}”."
            )
        if now is not None:
            current = reading_of(now)
            assert current is not None
            _told(current)
        return now


def _menus(
    reading: RowUse, key: str, roles: Mapping[str, str], kind_of: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> ReadingChoice:
    """A menu for each of our columns and each further one that was recognised, and one for the part where the file names parts.

    Further columns are those of wrong answers: "negative_2" and so on.
    """
    mark = hashlib.sha256(key.encode()).hexdigest()[:8]  # another file begins with what was recognised of it
    aliases = {"sentence": "anchor", "sentence1": "anchor", "sentence2": "positive"}
    recognised = {
        ours if ours in roles else aliases.get(ours, ours): theirs for ours, theirs in reading.columns.items()
    }
    further = {}
    for ours in recognised:
        first, _, number = ours.partition("_")
        if ours not in roles and first in roles and number:
            further[ours] = f"{roles[first]} {number}"
    menus = {**roles, **further}
    offered = [NO_COLUMN, *reading.known]
    chosen = {}
    with st.container(horizontal=True, gap="small", key="row_columns"):
        for ours, title in menus.items():
            default = recognised.get(ours, NO_COLUMN)
            chosen[ours] = controls.checked(
                st.selectbox,
                title,
                key=f"read_{ours}_{mark}",
                default=default if default in offered else NO_COLUMN,
                options=offered,
            )
        part = None
        if reading.part is not None:
            parts = [*reading.part.counts, ALL]
            usual = reading.part.used
            picked = controls.checked(
                st.selectbox, f"Rows ({reading.part.column})", key=f"read_part_{mark}", default=usual, options=parts
            )
            part = None if picked == usual else picked
    before = {ours: recognised.get(ours, NO_COLUMN) for ours in menus}
    if chosen == before:
        return ReadingChoice(None, part)
    return ReadingChoice(kind_of({ours: theirs for ours, theirs in chosen.items() if theirs != NO_COLUMN}), part)


def _told(reading: RowUse) -> None:
    """The sentences, and three rows as they stand in the file beside what was read of them."""
    st.markdown("\n".join(f"- {messages.escape(sentence)}" for sentence in reading.sentences()))
    if reading.preview:
        import pandas as pd

        rows = [
            {
                "row": row.row,
                "as it stands in the file": row.given,
                "read as": "  ·  ".join(f"{ours}: {text}" for ours, text in row.read.items())
                or f"left out: {row.reason}",
            }
            for row in reading.preview
        ]
        with st.container(key="rows_as_read"):
            figures.plain_table(pd.DataFrame(rows), key="rows_preview")
