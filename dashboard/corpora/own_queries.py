"""A person's own queries with their right texts, by a file, pasted, or marked in Search: the failed ones are shown.

The right texts become the corpus, unless they name texts of the session's corpus, by its own ids or by their beginnings: then
the queries join that corpus. Of a collection with graded relevance all documents are the corpus.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from itertools import chain
from itertools import count as numbers
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import InputError
from components.numbers import counted
from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora.columns import ID_COLUMN, TEXT_COLUMN, TITLE_COLUMN, is_collection, list_of_turns
from components.retrieval.corpora.rows import roles
from components.retrieval.corpora.texts import hash_of
from components.retrieval.evaluation.graded import archive, collection
from components.retrieval.evaluation.graded.rows import rows_of_graded
from dashboard import access, caching, state
from dashboard.corpora import current, dialect_menu, marks, uploads
from dashboard.declared import table
from dashboard.ui import controls, messages
from dashboard.ui.waiting import frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsStopped
    from components.retrieval.corpora.columns import ColumnPreview
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.evaluation.graded.collection import FieldedSet, GradedSet

    GoTo = Callable[..., None]  # opens a view, with settings: navigation.go_to

VIEW, SEARCH_VIEW = "failed-search", "hits"
PASTED, _JOINED, _OF_GRADED = current.MADE_HERE
MOST_PASTED = 50_000  # characters
FEWEST = 2  # rows: a search fails if another text comes before the right one
QUERY, TEXT = "query", "text"  # the columns of what was pasted, and of a collection with graded relevance
OWN_QUERY = "own query"  # the column of own queries where another one is called QUERY
MOST_BAD = 10  # wrong pasted rows of a kind that are named
MOST_NAMED = 3  # rows that are named because they cannot be used
_TO_JOIN = "_queries_to_join"  # session key: the corpus, and what `with_queries` is asked
LEAST_BEGINNING = 12  # characters that name a text
# The first that a row has. Each begins where white space or hyphens begin: else every one of many would look at all others.
_BETWEEN = tuple(re.compile(rf"(?<!\s)\s*{sign}\s*") for sign in (r"\t", "→", r"(?:=|(?<!-)-+)?>"))
AS_FOUND = dialect_menu.FormChoice()
_EXAMPLE = "my parcel is broken > How to report a damaged delivery\ncancel my plan > Ending a subscription"


@dataclass(frozen=True)
class QueryRow:
    """A query and what should be found, as it was pasted."""

    line: int  # from 1
    query: str
    right: str  # a text, its beginning, or its id


def file_and_rows(where: str, go_to: GoTo) -> None:
    """Draw a card's two buttons: a file, or pasted rows; what is given becomes the corpus. `where` keys the widgets."""
    with st.container(horizontal=True, gap="small", key=f"{where}_own"):
        file = uploads.uploader(
            uploads.CORPUS,
            "A table with queries and their right texts",
            key=f"{where}_file",
            is_kept=False,  # the card's help says how long: it has no room for a line more
            label_visibility="collapsed",
        )
        if access.uploads_allowed():
            with st.popover("Paste rows", key=f"{where}_paste"):
                _paste(where, go_to)
    if file is not None:
        _uploaded(file, where, go_to)


def all_ways(corpus: Corpus, where: str, go_to: GoTo) -> None:
    """Draw a panel with every way to give queries, also to texts of the session's `corpus`. `where` keys the widgets."""
    if access.uploads_allowed():
        file = uploads.uploader(
            uploads.CORPUS,
            "A table with queries and their right texts or ids, or a collection with graded relevance as .zip",
            key=f"{where}_file",
        )
        if file is not None:
            messages.guarded(lambda: _uploaded(file, where, go_to, corpus), "reading your queries")
        messages.guarded(lambda: _paste(where, go_to, corpus), "reading your rows")
    else:
        st.caption("This server takes no files and no rows: its operator decides that.")
    judged = marks.judgements(corpus).marks
    marked = [(query, row) for query, own in judged.items() for row, is_right in own.items() if is_right]
    if marked:
        count = counted(len({query for query, _ in marked}), "query that you marked", "queries that you marked")
        if st.button(f"Use {count} in Search", key=f"{where}_marks", icon=":material/check:"):
            st.session_state[_TO_JOIN] = (current.key_of(corpus), tuple(marked))
    key, asked = st.session_state.get(_TO_JOIN, ("", ()))
    if key == current.key_of(corpus):
        _join(corpus, asked, go_to)


def _paste(where: str, go_to: GoTo, corpus: Corpus | None = None) -> None:
    """The field for pasted rows; those that name texts of a `corpus` join it."""
    typed = st.text_area(
        f"One row a line: query > right text{'' if corpus is None else ' or id'}",
        key=f"{where}_rows",
        placeholder=_EXAMPLE,
        max_chars=MOST_PASTED,
    )
    found: list[tuple[str, int]] | None = []  # None: the rows are wrong
    if typed.strip():  # said here, also on Start, where the field lies over the card
        try:
            rows = pasted_rows(typed) if corpus is not None else rows_of_table(typed)
            found = [] if corpus is None else _read_out(corpus, rows)
        except InputError as problem:
            found = None
            messages.explain(problem, "reading your rows")
    if corpus is None:  # else the uploader says it
        st.caption(uploads.how_long_kept())
    if st.button("Find the failed queries", key=f"{where}_rows_use", type="primary") and found is not None:
        if corpus is not None and found:
            st.session_state[_TO_JOIN] = (current.key_of(corpus), tuple(found))
        else:
            _open_table(as_table(typed), go_to)


def _read_out(corpus: Corpus, rows: Sequence[QueryRow]) -> list[tuple[str, int]]:
    """The queries of the rows with the rows of the corpus that they name; what is named and what is not is drawn."""
    named = rows_named(corpus, [row.right for row in rows])
    found = [(row.query, place) for row, place in zip(rows, named, strict=True) if place is not None]
    count = counted(len(rows), "row")
    if not found:
        st.caption(f"{count}; none names a text of this corpus: the right texts become a corpus of their own.")
        return []
    lost = [row for row, place in zip(rows, named, strict=True) if place is None]
    st.markdown(f"**{count}, {len(found):,} with a right text of {messages.escape(corpus.name)}**")
    for row in lost[:MOST_NAMED]:
        st.caption(f"Row {row.line} names “{messages.escape(row.right[:60])}”, which the corpus lacks.")
    if len(lost) > MOST_NAMED:
        st.caption(f"{len(lost) - MOST_NAMED:,} more rows name no text of it. All of them are left out.")
    return found


def rows_named(corpus: Corpus, names: Sequence[str]) -> list[int | None]:
    """The row of the text that each name names: an own id, the whole text, or a beginning that no other text has; else None."""
    ids, texts, in_order = caching.text_names().get(current.key_of(corpus), lambda: _names_of(corpus))

    def row_of(name: str) -> int | None:
        folded = " ".join(name.split()).casefold()
        found = ids.get(folded, texts.get(folded))
        begins = folded.removesuffix("…").removesuffix("...").rstrip()
        if found is not None or len(begins) < LEAST_BEGINNING:
            return found
        place = bisect_left(in_order, begins)
        fitting = [text for text in in_order[place : place + 2] if text.startswith(begins)]
        return texts[fitting[0]] if len(fitting) == 1 else None

    return [row_of(name) for name in names]


def _names_of(corpus: Corpus) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """The own ids and the texts of a corpus as they are compared, each with its first row, and these texts in order."""
    ids: dict[str, int] = {}
    for row, own in enumerate(current.own_ids(corpus)):
        ids.setdefault(own.strip().casefold(), row)
    texts: dict[str, int] = {}
    for row, text in enumerate(corpus.texts):
        texts.setdefault(" ".join(text.split()).casefold(), row)
    return ids, texts, sorted(texts)


def with_queries(corpus: Corpus, asked: Sequence[tuple[str, int]]) -> tuple[bytes, str]:
    """A corpus as JSON lines with its column of own queries, whose name is returned; `asked`: queries with the rows of their
    right texts.

    They join the own queries that the corpus has already; one that it has gets the texts asked for now, and no others. A text
    with several queries is repeated; equal texts are one text wherever ranks are counted.
    """
    column, texts = _own_column(corpus), corpus.texts
    right: dict[str, set[str]] = {}
    for query, row in asked:
        right.setdefault(query.strip(), set()).add(texts[row])
    earlier = [(query, row) for row, query in enumerate(corpus.columns.get(column, ())) if query.strip()]
    kept = [(query, row) for query, row in earlier if texts[row] in right.get(query.strip(), {texts[row]})]
    known = {(query.strip(), texts[row]) for query, row in kept}
    of_row: dict[int, list[str]] = {}
    for query, row in (
        *kept,
        *(pair for pair in dict.fromkeys(asked) if (pair[0].strip(), texts[pair[1]]) not in known),
    ):
        of_row.setdefault(row, []).append(query)
    lines = []
    for row, text in enumerate(texts):
        others = {name: values[row] for name, values in corpus.columns.items() if name != column}
        lines += [{_text_of(corpus): text, column: query, **others} for query in of_row.get(row, [""])]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode(errors="replace"), column


def _own_column(corpus: Corpus) -> str:
    """The column with a corpus's own queries: its first one if some have joined it, else one that it does not have yet."""
    first = next(iter(corpus.columns), "")
    if corpus.name.endswith(_JOINED) and first.startswith((QUERY, OWN_QUERY)):
        return first
    names = chain((QUERY, OWN_QUERY), (f"{OWN_QUERY} {number}" for number in numbers(2)))
    return next(name for name in names if name not in {*corpus.columns, _text_of(corpus)})


def _text_of(corpus: Corpus) -> str:
    return corpus.report.text_column


def _join(corpus: Corpus, asked: Sequence[tuple[str, int]], go_to: GoTo) -> None:
    """Let queries join a corpus, and show those that fail; while the corpus is read with them, its progress is drawn."""
    joined = None
    with frame.figure("join_queries"):
        key = (current.key_of(corpus), hashlib.sha256(repr(asked).encode()).hexdigest())
        joined = uploads.read_once(caching.joined_corpora(), key, partial(_joined, corpus, asked, caching.person()))
    if joined is None:
        return
    st.session_state.pop(_TO_JOIN, None)
    read, column, upload = joined
    if current.key_of(read) == current.key_of(corpus):  # opened again, it would join once more: its file is still here
        st.caption(f"The corpus has these queries already, in the column “{messages.escape(column)}”.")
    else:
        _open(read, column, read.name, upload if uploads.are_kept(upload) else "", _text_of(corpus), go_to)


def _joined(
    corpus: Corpus, asked: Sequence[tuple[str, int]], person: str, is_stopped: IsStopped
) -> tuple[Corpus, str, str]:
    """A corpus with the queries that join it, their column, and its upload, which is kept for the person."""
    content, column = with_queries(corpus, asked)
    name = corpus.name if corpus.name.endswith(_JOINED) else f"{corpus.name.removesuffix('.jsonl')}{_JOINED}"
    joined = reading.read_corpus(content, name, _text_of(corpus), is_stopped=is_stopped)
    return joined, column, _kept(content, name, person)


def _open_table(content: bytes, go_to: GoTo) -> None:
    """Open pasted rows."""
    corpus = reading.read_corpus(content, PASTED, TEXT)
    _open(corpus, QUERY, PASTED, _kept(content, PASTED, caching.person()), TEXT, go_to)


def _kept(content: bytes, name: str, person: str) -> str:
    """The key of the upload under which the content is kept from now on; "" where it is too large, or no files are taken."""
    if not access.uploads_allowed():  # a corpus with its marked queries is then in memory only
        return ""
    digest = caching.kept_files().keep(content, person)
    return "" if digest is None else f"{name} {digest}"


def pasted_rows(typed: str) -> list[QueryRow]:
    """The rows of a pasted text. Raises InputError, which names the wrong ones."""
    rows = []
    several: list[str] = []  # the wrong rows of each of two kinds, in words
    incomplete: list[str] = []
    for count, line in enumerate(typed.splitlines(), start=1):
        if not line.strip():
            continue
        between = next((sign for sign in _BETWEEN if sign.search(line.strip())), _BETWEEN[-1])
        query, *text = between.split(line.strip())
        if len(text) > 1:
            several.append(f"Row {count} has several signs between query and text: “{line.strip()[:60]}”.")
        elif not query or not text or not text[0]:
            incomplete.append(f"Row {count} is no query with a text: “{line.strip()[:60]}”.")
        else:
            rows.append(QueryRow(count, query, text[0]))
    if not several and not incomplete:
        return rows
    named = [*several[:MOST_BAD], *incomplete[:MOST_BAD]]
    more = len(several) + len(incomplete) - len(named)
    named += [f"And {counted(more, 'more row')}."] if more else []
    ways = {
        "Put a tab between the two, as rows of a spreadsheet have it.": several,
        "Write for example: cancel my plan > Ending a subscription.": incomplete,
    }
    raise InputError(
        " ".join(named),
        "Each row has a query, one sign >, and the text that should be found.",
        " ".join(way for way, wrong in ways.items() if wrong),
    )


def rows_of_table(typed: str) -> list[QueryRow]:
    """The rows of a pasted text that becomes a corpus. Raises InputError, which names the wrong ones."""
    rows = pasted_rows(typed)
    if len(rows) < FEWEST:
        raise InputError(
            f"There {'is one row' if rows else 'are no rows'}.",
            f"At least {FEWEST} are needed: a search fails if another text comes before the right one.",
            "Paste one row a line: query > right text.",
        )
    return rows


def as_table(typed: str) -> bytes:
    """Pasted rows as a CSV file with the columns of queries and texts. Raises InputError, as `rows_of_table` does."""
    rows = rows_of_table(typed)
    file = io.StringIO()
    csv.writer(file).writerows([(QUERY, TEXT), *((row.query, row.right) for row in rows)])
    return file.getvalue().encode()


def _uploaded(file: UploadedFile, where: str, go_to: GoTo, of: Corpus | None = None) -> None:
    """Read a file; where its columns say it, its failed queries are shown at once, else a person chooses them.

    Where it names texts of the corpus `of` by its own ids, its queries join that corpus. A .zip is a collection with graded
    relevance.
    """
    key = uploads.key_of(file)
    if archive.is_archive(file.name):
        found: FieldedSet | None = None
        with frame.figure("start_graded"):
            found = uploads.read_once(caching.graded_files(), key, partial(_collection, file))
        if found is not None:
            open_graded(found.chosen(), go_to)
        return
    written = dialect_menu.of_upload(uploads.CORPUS, file)
    columns: tuple[ColumnPreview, ...] | None = None
    with frame.figure("start_columns"):
        columns = uploads.read_once(caching.column_previews(), (key, *_way(written)), partial(_preview, file, written))
    if columns is None:
        return
    has_titles = is_collection(column.name for column in columns)  # of documents, which stand before their texts
    if has_titles:
        columns = tuple(column for column in columns if column.name not in {ID_COLUMN, TITLE_COLUMN})
    names = [column.name for column in columns if column.is_text]
    ids = [column.name for column in columns if column.name.strip().lower() in current.ID_COLUMNS]
    text, query = roles.guessed_pair(columns)
    if of is not None and current.own_ids(of) and ids and (not (text and query) or {text, query} & {*ids}):
        names = list(dict.fromkeys((*names, *ids)))
        others = [name for name in names if name != ids[0]]
        text, query = ids[0], query if query in others else others[0] if len(others) == 1 else ""
    if has_titles and len(names) < FEWEST:
        _offer_documents(file, key, written, where, go_to)
        return
    if len(names) < FEWEST:
        for column in columns:
            if column.has_turns:
                raise list_of_turns(uploads.file_names(key), column.name)
        raise InputError(
            f"{uploads.file_names(key)} has {len(names)} column{'' if len(names) == 1 else 's'} with text.",
            "Two are needed: the queries, and the texts that should be found.",
            _how_to_get_two([column.name for column in columns]),
        )
    is_clear = bool(text and query)
    if not is_clear:
        st.caption("Which column is which?")
        text, query = roles.offered_pair(names, text, query)
        text = _column("Right texts", f"{where}_text", names, text)
        query = _column("Queries", f"{where}_query", [name for name in names if name != text], query)
        if not st.button("Find the failed queries", key=f"{where}_file_use", type="primary"):
            return
    # A guess is read as one, so that the corpus says why it is this column.
    is_guess = is_clear and any(column.name == text and column.is_guess for column in columns)
    named = None if is_guess or (has_titles and text == TEXT_COLUMN) else text
    corpus = _corpus_of(file, key, named, written)
    if corpus is None:
        return
    if is_clear and corpus.report.otherwise:
        other = " or ".join(choice.in_words for choice in corpus.report.otherwise)
        st.caption(f"How the file is written is a guess: if {other}, choose it behind “{dialect_menu.TITLE}”.")
        if not st.button("Find the failed queries", key=f"{where}_file_use", type="primary"):
            return
    if of is not None and current.own_ids(of):
        named_rows = zip(corpus.columns[query], rows_named(of, corpus.texts), strict=True)
        asked = [(typed, row) for typed, row in named_rows if row is not None and typed.strip()]
        if len(asked) == len(corpus):
            _join(of, asked, go_to)
            return
    _open(corpus, query, corpus.name, key, named, go_to, written)


def _how_to_get_two(columns: Sequence[str]) -> str:
    """How a file gets its second column; where all of it is one, another sign may separate its fields."""
    if len(columns) > 1:
        return "Choose another file, or paste rows."
    return (
        f"Its only column is “{columns[0][:80]}”. Add one, or paste rows. If a sign separates several fields there, save the "
        f"file with commas, semicolons, tabs or vertical bars between them (see “{dialect_menu.TITLE}”)."
    )


def _way(written: dialect_menu.FormChoice) -> tuple[str | None, ...]:
    """How a file is read, as part of the key of what is read so."""
    return (written.encoding, *filter(None, (written.dialect.as_text,)))


def _corpus_of(file: UploadedFile, key: str, column: str | None, written: dialect_menu.FormChoice) -> Corpus | None:
    """The corpus in a file, kept as the session's upload; None as long as it is read, or where it cannot be."""
    corpus: Corpus | None = None
    with frame.figure("start_corpus"):
        encoding, *dialect = _way(written)
        kept_as = (key, encoding, column, *dialect)
        corpus = uploads.read_once(caching.read_corpora(), kept_as, partial(_read, file, column, written))
    if corpus is not None:
        uploads.keep(file)
        st.session_state[f"_{uploads.CORPUS}"] = kept_as
    return corpus


def _offer_documents(file: UploadedFile, key: str, written: dialect_menu.FormChoice, where: str, go_to: GoTo) -> None:
    """Documents without queries, as in BEIR's corpus.jsonl: they can be searched, but no query of theirs can fail."""
    st.caption(
        f"**{messages.escape(uploads.file_names(key))}** holds documents with titles and no queries. Diagnose's “Graded "
        "relevance” reads it with its queries and judgements."
    )
    if not st.button("Search these documents", key=f"{where}_documents_use", type="primary"):
        return
    corpus = _corpus_of(file, key, None, written)
    if corpus is not None:
        current.choose(corpus, _source(corpus, corpus.name, key, None, written))
        go_to(SEARCH_VIEW)


def offer_graded(graded: GradedSet, go_to: GoTo) -> None:
    """Draw the button that shows the failed queries of a collection with graded relevance."""
    if st.button("Which of these queries fail?", key="graded_failed", icon=":material/troubleshoot:"):
        st.session_state[_TO_JOIN] = ("graded", graded.content_hash)
    if st.session_state.get(_TO_JOIN) == ("graded", graded.content_hash):
        open_graded(graded, go_to)


def open_graded(graded: GradedSet, go_to: GoTo) -> None:
    """Let the documents of a collection be the corpus, with its queries, and show those that fail.

    Its progress is drawn while it is read. Raises InputError where no query can be looked into.
    """
    found = rows_of_graded(graded)
    joined = None
    with frame.figure("join_graded"):
        key = ("graded", graded.name, graded.content_hash, hash_of(graded.ids))
        joined = uploads.read_once(caching.joined_corpora(), key, partial(_of_graded, graded, caching.person()))
    if joined is None:
        return
    st.session_state.pop(_TO_JOIN, None)
    read, column, upload = joined
    left_out = [f"Left out: {count:,} {reason}." for reason, count in graded.report.left_out.items()]
    state.notice(" ".join((*found.notes, *left_out)), table.place_of(VIEW))
    _open(read, column, read.name, upload if uploads.are_kept(upload) else "", TEXT, go_to)


def _of_graded(graded: GradedSet, person: str, is_stopped: IsStopped) -> tuple[Corpus, str, str]:
    """The documents of a collection with its queries, as `_joined` gives a corpus."""
    lines = []
    for row in rows_of_graded(graded).rows:
        own = {"id": graded.ids[row.document]} if graded.ids else {}
        grade = {"grade": str(row.grade or "")}
        lines.append(json.dumps({TEXT: graded.documents[row.document], QUERY: row.query, **own, **grade}))
    content, name = "\n".join(lines).encode(), f"{graded.name[: uploads.MOST_NAME - 20]}{_OF_GRADED}"
    return reading.read_corpus(content, name, TEXT, is_stopped=is_stopped), QUERY, _kept(content, name, person)


def _collection(file: UploadedFile, is_stopped: IsStopped) -> FieldedSet:
    return collection.read_fields({file.name: file.getvalue()}, is_stopped=is_stopped)


def _preview(file: UploadedFile, written: dialect_menu.FormChoice, is_stopped: IsStopped) -> tuple[ColumnPreview, ...]:
    return reading.columns_of(file.getvalue(), file.name, written.encoding, is_stopped, written.dialect)


def _read(file: UploadedFile, column: str | None, written: dialect_menu.FormChoice, is_stopped: IsStopped) -> Corpus:
    return reading.read_corpus(
        file.getvalue(), file.name, column, written.encoding, is_stopped=is_stopped, dialect=written.dialect
    )


def _column(label: str, key: str, names: Sequence[str], default: str) -> str:
    chosen = default if default in names else names[0]
    return str(controls.checked(st.selectbox, label, options=names, key=key, default=chosen))


def _source(
    corpus: Corpus, name: str, upload: str, column: str | None, written: dialect_menu.FormChoice
) -> current.CorpusSource:
    return current.CorpusSource(
        name,
        upload,
        encoding=written.encoding,
        column=column,
        sentences=len(corpus),
        dialect=written.dialect.as_text,
    )


def _open(
    corpus: Corpus,
    query: str,
    name: str,
    upload: str,
    column: str | None,
    go_to: GoTo,
    written: dialect_menu.FormChoice = AS_FOUND,
) -> None:
    """Make this the session's corpus, read by this column, and show its failed queries."""
    current.choose(corpus, _source(corpus, name, upload, column, written) if upload else None)
    state.put("typed_query", "")
    state.put("failure_cause", "all")
    state.put("failed_trait", "")
    go_to(VIEW, query_column=query)
