"""Collections with graded relevance: the demo's, uploaded files, or a folder on the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.retrieval.evaluation.graded import collection
from dashboard import access, caching
from dashboard.corpora import current, uploads
from dashboard.ui import controls

if TYPE_CHECKING:
    from components.retrieval.evaluation.graded.collection import GradedSet

DEMO_GRADES = (
    "Each headline is a query. Its own sentence has grade 2, and every other sentence on the same topic has grade 1."
)


def choose_source(setting: str = "graded_source") -> str:
    """Draw the choice of the collection, kept under a setting, and return it."""
    sources = {"demo": "Demo news by topic", "file": "Your files"}
    if access.server_files_allowed():
        sources["path"] = "Folder on this machine"
    return controls.choice(setting, "Collection", sources)


def collection_of(source: str) -> GradedSet | None:
    """The collection of a source; None while it is not chosen or not read, which is drawn."""
    if source == "demo":
        return caching.graded_sets().get("demo", lambda: collection.demo_graded(current.demo()))
    if source == "file":
        return _uploaded()
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
        caching.graded_sets(),
        key,
        lambda is_cancelled: collection.read_graded_folder(path, is_cancelled=is_cancelled),
        anew=is_asked,
    )


def _uploaded() -> GradedSet | None:
    files = uploads.uploader(
        "graded",
        "Three files: the documents (corpus.jsonl), the queries (queries.jsonl or .tsv) and the judgements (qrels)",
        accept_multiple_files=True,
        key="graded_files",
        help="BEIR: corpus.jsonl with _id, title and text; queries.jsonl with _id and text; qrels/test.tsv. TREC: judgements "
        "as lines of “query 0 document grade”. Files may be compressed with gzip.",
    )
    graded = uploads.kept(
        "graded",
        caching.graded_sets(),
        files,
        lambda files, is_cancelled: collection.read_graded(
            {file.name: file.getvalue() for file in files}, is_cancelled=is_cancelled
        ),
    )
    if graded is None:
        st.caption("Choose all three together. Their names say which is which.")
    return graded
