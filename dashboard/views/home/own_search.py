"""A person's own queries with their right texts, by a file or pasted: they become the corpus, and the failed ones are shown."""

from __future__ import annotations

import csv
import io
import re
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import InputError
from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora.column_names import is_question
from components.retrieval.corpora.columns import ID_COLUMN, TEXT_COLUMN, TITLE_COLUMN, is_collection
from components.retrieval.corpora.corpus import PAIR_COLUMN
from dashboard import access, caching, navigation, state
from dashboard.corpora import current, uploads
from dashboard.ui import controls, messages
from dashboard.ui.waiting import frame
from dashboard.views.home import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsCancelled
    from components.retrieval.corpora.columns import ColumnPreview
    from components.retrieval.corpora.corpus import Corpus

VIEW = "failed-search"
PASTED = "pasted rows.csv"
MOST_PASTED = 50_000  # characters
FEWEST = 2  # rows: a search fails if another text comes before the right one
QUERY, TEXT = "query", "text"  # the columns of what was pasted
# The first that a row has. Each begins where white space or hyphens begin: else every one of many would look at all others.
_BETWEEN = tuple(re.compile(rf"(?<!\s)\s*{sign}\s*") for sign in (r"\t", "→", r"(?:=|(?<!-)-+)?>"))
_EXAMPLE = "my parcel is broken > How to report a damaged delivery\ncancel my plan > Ending a subscription"


def draw() -> None:
    """Draw the card, below its title."""
    how = (
        "Drop a table (CSV) with queries and their right texts, or paste rows."
        if access.uploads_allowed()
        else "This server takes no files: its operator can allow them."
    )
    st.caption(
        f"Which queries fail, why, and what helps. {how}",
        help=uploads.how_long_kept() if access.uploads_allowed() else None,
    )
    messages.guarded(_choices, "reading your queries")


def _choices() -> None:
    with st.container(horizontal=True, gap="small", key="start_own"):
        file = uploads.uploader(
            uploads.CORPUS,
            "A table with queries and their right texts",
            key="start_file",
            is_kept=False,  # the card's help says how long: it has no room for a line more
            label_visibility="collapsed",
        )
        if access.uploads_allowed():
            with st.popover("Paste rows", key="start_paste"):
                _paste()
    if file is not None:
        _uploaded(file)


def _paste() -> None:
    typed = st.text_area(
        "One row a line: query > right text", key="start_rows", placeholder=_EXAMPLE, max_chars=MOST_PASTED
    )
    st.caption(uploads.how_long_kept())
    if st.button("Find the failed queries", key="start_rows_use", type="primary"):
        content = as_table(typed)
        digest = caching.kept_files().keep(content, caching.person())
        _open(
            reading.read_corpus(content, PASTED, TEXT),
            QUERY,
            PASTED,
            "" if digest is None else f"{PASTED} {digest}",
            TEXT,
        )


def as_table(typed: str) -> bytes:
    """Pasted rows as a CSV file with the columns of queries and texts. Raises InputError, which names the first wrong row."""
    rows = []
    for count, line in enumerate(typed.splitlines(), start=1):
        if not line.strip():
            continue
        between = next((sign for sign in _BETWEEN if sign.search(line.strip())), _BETWEEN[-1])
        query, *text = between.split(line.strip())
        if len(text) > 1:
            raise InputError(
                f"Row {count} has several signs between query and text: “{line.strip()[:60]}”.",
                "Only one can be meant.",
                "Put a tab between the two, as rows of a spreadsheet have it.",
            )
        if not query or not text or not text[0]:
            raise InputError(
                f"Row {count} is no query with a text: “{line.strip()[:60]}”.",
                "Each row has a query, the sign >, and the text that should be found.",
                "For example: cancel my plan > Ending a subscription.",
            )
        rows.append((query, text[0]))
    if len(rows) < FEWEST:
        raise InputError(
            f"There {'is one row' if rows else 'are no rows'}.",
            f"At least {FEWEST} are needed: a search fails if another text comes before the right one.",
            "Paste one row a line: query > right text.",
        )
    file = io.StringIO()
    csv.writer(file).writerows([(QUERY, TEXT), *rows])
    return file.getvalue().encode()


def _uploaded(file: UploadedFile) -> None:
    """Read a file; where its columns say it, its failed queries are shown at once, else a person chooses them."""
    key = uploads.key_of(file)
    columns: tuple[ColumnPreview, ...] | None = None
    with frame.figure("start_columns"):
        columns = uploads.read_once(caching.column_previews(), (key, None), partial(_preview, file))
    if columns is None:
        return
    has_titles = is_collection(column.name for column in columns)  # of documents, which stand before their texts
    if has_titles:
        columns = tuple(column for column in columns if column.name not in {ID_COLUMN, TITLE_COLUMN})
    names = [column.name for column in columns if column.is_text]
    if has_titles and len(names) < FEWEST:
        _offer_documents(file, key)
        return
    if len(names) < FEWEST:
        raise InputError(
            f"{uploads.file_names(key)} has {len(names)} column{'' if len(names) == 1 else 's'} with text.",
            "Two are needed: the queries, and the texts that should be found.",
            "Add a column, or paste rows.",
        )
    text, query = guessed(columns)
    is_clear = bool(text and query)
    if not is_clear:
        st.caption("Which column is which?")
        text = _column("Right texts", "start_text", names, text or names[-1])
        query = _column("Queries", "start_query", [name for name in names if name != text], query)
        if not st.button("Find the failed queries", key="start_file_use", type="primary"):
            return
    named = None if has_titles and text == TEXT_COLUMN else text
    corpus = _corpus_of(file, key, named)
    if corpus is not None:
        _open(corpus, query, corpus.name, key, named)


def _corpus_of(file: UploadedFile, key: str, column: str | None) -> Corpus | None:
    """The corpus in a file, kept as the session's upload; None as long as it is read, or where it cannot be."""
    corpus: Corpus | None = None
    with frame.figure("start_corpus"):
        corpus = uploads.read_once(caching.read_corpora(), (key, None, column), partial(_read, file, column))
    if corpus is not None:
        uploads.keep(file)
        st.session_state[f"_{uploads.CORPUS}"] = (key, None, column)
    return corpus


def _offer_documents(file: UploadedFile, key: str) -> None:
    """Documents without queries, as in BEIR's corpus.jsonl: they can be searched, but no query of theirs can fail."""
    st.caption(
        f"**{messages.escape(uploads.file_names(key))}** holds documents with titles and no queries. “Graded relevance” reads "
        "it with its queries and judgements."
    )
    if not st.button("Search these documents", key="start_documents_use", type="primary"):
        return
    corpus = _corpus_of(file, key, None)
    if corpus is not None:
        current.choose(corpus, current.Source(corpus.name, key, sentences=len(corpus)))
        navigation.go_to(examples.SEARCH_VIEW)


def _preview(file: UploadedFile, is_cancelled: IsCancelled) -> tuple[ColumnPreview, ...]:
    return reading.columns_of(file.getvalue(), file.name, None, is_cancelled)


def _read(file: UploadedFile, column: str | None, is_cancelled: IsCancelled) -> Corpus:
    return reading.read_corpus(file.getvalue(), file.name, column, is_cancelled=is_cancelled)


def guessed(columns: Sequence[ColumnPreview]) -> tuple[str, str]:
    """The columns of the right texts and of the queries, each empty where it is not clear."""
    text = next((column.name for column in columns if column.is_guess), "")
    others = [column.name for column in columns if column.is_text and column.name != text]
    named = [name for name in others if is_question(name) or name.casefold() == PAIR_COLUMN]
    query = named[0] if len(named) == 1 else others[0] if len(others) == 1 and text else ""
    if not text and query and len(others) == FEWEST:  # of two columns the other one
        text = next(name for name in others if name != query)
    return text, query


def _column(label: str, key: str, names: Sequence[str], default: str) -> str:
    chosen = default if default in names else names[0]
    return str(controls.checked(st.selectbox, label, options=names, key=key, default=chosen))


def _open(corpus: Corpus, query: str, name: str, upload: str, column: str | None) -> None:
    """Make this the session's corpus, read by this column, and show its failed queries."""
    current.choose(corpus, current.Source(name, upload, column=column, sentences=len(corpus)) if upload else None)
    state.put("typed_query", "")
    state.put("failure_cause", "all")
    navigation.go_to(VIEW, query_column=query)
