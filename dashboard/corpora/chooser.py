"""Choosing the session's corpus: the demo, an upload, a file of the server, or a dataset of the hub."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora import hub_datasets
from components.retrieval.corpora.readers.table import unreadable
from dashboard import settings, state
from dashboard.corpora import current
from dashboard.ui import messages

AUTOMATIC = "(chosen automatically)"


def choose() -> None:
    """Draw the choice of a corpus, and make the chosen one the session's."""
    sources = {"demo": "Demo corpus", "upload": "Upload a file", "hub": "Hugging Face dataset"}
    if settings.free_models_allowed():
        sources["path"] = "File on this machine"
    # Streamlit forgets a widget's value while another view is open: the choice is kept under a key of its own.
    st.session_state["corpus_way"] = st.session_state.get("_corpus_way", "demo")
    source_kind = st.segmented_control(
        "Corpus",
        list(sources),
        format_func=sources.__getitem__,
        key="corpus_way",
        required=True,
        on_change=lambda: st.session_state.update(_corpus_way=st.session_state["corpus_way"]),
    )
    if source_kind not in sources or source_kind == "demo":  # a browser may send what was not offered
        if state.get("corpus"):
            st.info(f"**{messages.escape(current.corpus().name)}** is in use.")
            st.button("Use the demo corpus", key="use_demo", on_click=current.choose, args=(None,))
        return
    source: Path | bytes | tuple[Path, ...] | None = None
    name = identity = ""
    if source_kind == "upload":
        limits = reading.browser_limits()
        file = st.file_uploader(
            f"A file: .txt, .csv, .tsv, .jsonl, .json, .parquet, also .gz; up to {limits.bytes / 1e6:,.0f} MB",
            key="corpus_file",
            max_upload_size=max(1, limits.bytes // 1_000_000),
        )
        if file is not None:
            source, name, identity = file.getvalue(), file.name, file.file_id
    elif source_kind == "hub":
        dataset = st.text_input(
            "Dataset", key="corpus_dataset", placeholder="embedding-data/sentence-compression", max_chars=200
        ).strip()
        if dataset and st.button("Download", key="fetch_dataset"):
            st.session_state["_dataset"] = dataset
        if dataset and st.session_state.get("_dataset") == dataset:
            source, name = _downloaded_once(dataset), dataset
    elif source_kind == "path":  # offered only where the operator allows it
        path = st.text_input("Path of a file on this machine", key="corpus_path", max_chars=1_000).strip()
        if path:
            try:
                source, name = Path(path).expanduser(), Path(path).name
                source.stat()
            except (OSError, RuntimeError, ValueError) as problem:
                raise unreadable(path[:80], problem) from problem
    if source is not None:
        _read(source, name, identity)


def _downloaded_once(name: str) -> tuple[Path, ...]:
    """The files of a dataset; the session remembers them, so that other clicks on this page ask the hub nothing."""
    kept = st.session_state.get("_dataset_files")
    if kept is None or kept[0] != name or not all(path.exists() for path in kept[1]):
        st.session_state["_dataset_files"] = kept = (name, _downloaded(name))
    return kept[1]


def _downloaded(name: str) -> tuple[Path, ...]:
    """The files of a dataset, with progress; a click elsewhere stops the download."""
    text = f"Downloading {messages.escape(name)}"
    bar = st.progress(0.0, text=text)

    def report_progress(done: int, total: int) -> None:
        bar.progress(min(1.0, done / max(1, total)), text=f"{text}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB")

    files = hub_datasets.fetch_dataset(name, progress=report_progress, limits=reading.browser_limits())
    bar.empty()
    return files


def _read(source: Path | bytes | tuple[Path, ...], name: str, identity: str) -> None:
    """Draw the choice of encoding and text column, and read the corpus on a click."""
    with st.container(horizontal=True):
        typed = st.text_input("Encoding", key="corpus_encoding", placeholder="chosen automatically", max_chars=40)
        encoding = typed.strip() or None
        columns = _columns(source[0] if isinstance(source, tuple) else source, name, encoding, identity)
        text_columns = [column for column in columns if column.is_text] or columns
        names = {column.name: f"{column.name}: {str(next(iter(column.examples), ''))[:60]}" for column in text_columns}
        column = st.selectbox(
            "Text column",
            [AUTOMATIC, *names],
            format_func=lambda option: names.get(option, option),
            key="corpus_column",
        )
    if st.button("Use this corpus", key="use_corpus", type="primary"):
        with st.spinner("Reading …"):
            corpus = reading.read_corpus(source, name, None if column == AUTOMATIC else column, encoding)
        current.choose(corpus)


def _columns(source: Path | bytes, name: str, encoding: str | None, identity: str) -> tuple[reading.ColumnPreview, ...]:
    """The file's columns; the session remembers them, so that a large file is not read again on every click."""
    version = None
    if isinstance(source, Path) and source.is_file():
        status = source.stat()
        version = (str(source), status.st_size, status.st_mtime_ns)
    key = (name, encoding, identity, version)
    kept = st.session_state.get("_columns")
    if kept is None or kept[0] != key:
        st.session_state["_columns"] = kept = (key, reading.columns_of(source, name, encoding))
    return kept[1]
