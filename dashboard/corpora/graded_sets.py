"""Collections with graded relevance: the demo's, uploaded files, or a folder on the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.retrieval.evaluation.graded import collection
from dashboard import access, caching, state
from dashboard.corpora import current, uploads
from dashboard.ui import controls

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.retrieval.evaluation.graded.collection import FieldedSet, GradedSet

DEMO_GRADES = (
    "Each headline is a query. Its own document has grade 2, and every other document on the same topic has grade 1."
)
FIELD_NAMES = {"text": "Text", "title": "Title", "description": "Description", "narrative": "Narrative"}
ALL_FIELDS = "all"


def choose_source() -> str:
    """Draw the choice of the collection and return it."""
    sources = {"demo": "Demo news by topic", "file": "Your files"}
    if access.server_files_allowed():
        sources["path"] = "Folder on this machine"
    return controls.choice("graded_source", "Collection", sources)


def collection_of(source: str, field_slot: DeltaGenerator) -> GradedSet | None:
    """The collection of a source in the chosen fields, which are offered in `field_slot`.

    None as long as it is not chosen, which is drawn. Raises NotReady while a folder is read.
    """
    if source == "demo":
        return caching.graded_sets().get("demo", lambda: collection.demo_graded(current.demo()))
    files = _uploaded() if source == "file" else _folder()
    if files is None:
        return None
    with field_slot:
        query_field, document_fields = _fields(files)
    # The files themselves are in the key: a folder that is read anew may have other content.
    return caching.graded_sets().get(
        (files, query_field, document_fields), lambda: files.chosen(query_field, document_fields)
    )


def folder_of(graded: GradedSet) -> tuple[str, ...]:
    """The folder of a collection for a command, with the fields that are searched; none for one that is no folder."""
    if not graded.report.files or state.get("graded_source") != "path":
        return ()
    fields = ("--query-field", graded.query_field, "--document-fields", ",".join(graded.document_fields))
    return str(st.session_state["_graded_path"]).removeprefix("path "), *fields


def _fields(files: FieldedSet) -> tuple[str, tuple[str, ...]]:
    """The field of the queries and those of the documents that are searched, of those that the files have."""
    query_field = controls.pick(
        "graded_query_field",
        "Field of the queries",
        {field: FIELD_NAMES[field] for field in files.queries},
        "What is searched for. TREC's topics have a title of a few words, a description in a sentence, and a narrative that "
        "says what is relevant.",
        default=next(iter(files.queries)),
    )
    existing = tuple(files.documents)
    offered = {field: FIELD_NAMES[field] for field in existing}
    if len(existing) > 1:
        offered = {ALL_FIELDS: " and ".join(offered.values()).capitalize(), **offered}
    chosen = controls.pick(
        "graded_document_fields",
        "Fields of the documents",
        offered,
        "What is embedded and searched. Documents that have nothing in it are left out.",
        default=next(iter(offered)),
    )
    return query_field, existing if chosen == ALL_FIELDS else (chosen,)


def _folder() -> FieldedSet | None:
    # Streamlit forgets a widget's value while another view is open: the text is kept under a key of its own.
    st.session_state.setdefault("graded_path", st.session_state.get("_graded_typed", ""))
    typed = st.text_input(
        "Path of a folder with corpus, queries and judgements (BEIR or TREC)", key="graded_path", max_chars=1_000
    ).strip()
    st.session_state["_graded_typed"] = typed
    if not typed:
        return None
    path = access.server_path(typed)
    key = f"path {path}"
    is_asked = st.button("Read the folder", key="read_graded", type="primary")
    if is_asked:
        st.session_state["_graded_path"] = key
    if st.session_state.get("_graded_path") != key:
        return None
    return uploads.read_once(
        caching.graded_files(),
        key,
        lambda is_stopped: collection.read_folder_fields(path, is_stopped=is_stopped),
        anew=is_asked,
    )


def _uploaded() -> FieldedSet | None:
    files = uploads.uploader(
        "graded",
        "A folder as .zip, or three files: documents (corpus.jsonl), queries (queries.jsonl), judgements (qrels)",
        accept_multiple_files=True,
        key="graded_files",
        help="BEIR: corpus.jsonl with _id, title and text; queries.jsonl with _id and text; qrels/test.tsv; the folder "
        "with them can be packed as one .zip. TREC: judgements "
        "as lines of “query 0 document grade”, and topics with <top>, <num>, <title>, <desc> and <narr>. Files may be "
        "compressed with gzip.",
    )
    read = uploads.kept(
        "graded",
        caching.graded_files(),
        files,
        lambda files, is_stopped: collection.read_fields(
            {file.name: file.getvalue() for file in files}, is_stopped=is_stopped
        ),
        several=True,
    )
    if read is None:
        st.caption("Choose the .zip, or all three files together. Their names say which is which.")
    return read
