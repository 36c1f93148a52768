"""Choosing the session's corpus: the demo, an upload, a path, or a dataset of the hub."""

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
    """Which corpus: the demo, an upload, a dataset of the hub, or a file of the server."""
    ways = {"demo": "Demo corpus", "upload": "Upload a file", "hub": "Hugging Face dataset"}
    if settings.free_models_allowed():
        ways["path"] = "File on this machine"
    # The widget is gone while another view is open: what was chosen is kept beside it.
    st.session_state["corpus_way"] = st.session_state.get("_corpus_way", "demo")
    way = st.segmented_control(
        "Corpus",
        list(ways),
        format_func=ways.__getitem__,
        key="corpus_way",
        required=True,
        on_change=lambda: st.session_state.update(_corpus_way=st.session_state["corpus_way"]),
    )
    if way == "demo":
        if state.get("corpus"):
            st.info(f"**{messages.escape(current.corpus().name)}** is in use now.")
            st.button("Use the demo corpus", key="use_demo", on_click=current.choose, args=(None,))
        return
    source: Path | bytes | tuple[Path, ...] | None = None
    name = identity = ""
    if way == "upload":
        limits = reading.browser_limits()
        file = st.file_uploader(
            f"A file: .txt, .csv, .tsv, .jsonl, .json, .parquet, also .gz; up to {limits.bytes / 1e6:,.0f} MB",
            key="corpus_file",
            max_upload_size=max(1, limits.bytes // 1_000_000),
        )
        if file is not None:
            source, name, identity = file.getvalue(), file.name, file.file_id
    elif way == "hub":
        named = st.text_input(
            "Dataset", key="corpus_dataset", placeholder="embedding-data/sentence-compression", max_chars=200
        )
        if named and st.button("Fetch it", key="fetch_dataset"):
            st.session_state["_dataset"] = named.strip()
        if named and st.session_state.get("_dataset") == named.strip():
            source, name = _fetched_once(named.strip()), named.strip()
    else:
        typed = st.text_input("Path of a file on this machine", key="corpus_path", max_chars=1_000)
        if typed:
            try:
                source, name = Path(typed.strip()).expanduser(), Path(typed.strip()).name
                source.stat()
            except (OSError, RuntimeError, ValueError) as problem:
                raise unreadable(typed.strip()[:80], problem) from problem
    if source is not None:
        _read(source, name, identity)


def _fetched_once(name: str) -> tuple[Path, ...]:
    """The files of a dataset, asked for once a session: other clicks on this page ask nobody."""
    kept = st.session_state.get("_dataset_files")
    if kept is None or kept[0] != name or not all(path.exists() for path in kept[1]):
        st.session_state["_dataset_files"] = kept = (name, _fetched(name))
    return kept[1]


def _fetched(name: str) -> tuple[Path, ...]:
    """The files of a dataset, with progress; a click elsewhere stops the download."""
    bar = st.progress(0.0, text=f"Fetching {messages.escape(name)}")

    def tell(done: int, total: int) -> None:
        bar.progress(
            min(1.0, done / max(1, total)),
            text=f"Fetching {messages.escape(name)}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB",
        )

    files = hub_datasets.fetch_dataset(name, progress=tell, limits=reading.browser_limits())
    bar.empty()
    return files


def _read(source: Path | bytes | tuple[Path, ...], name: str, identity: str) -> None:
    """Column and encoding, then the corpus."""
    with st.container(horizontal=True):
        encoding = (
            st.text_input("Encoding", key="corpus_encoding", placeholder="chosen automatically", max_chars=40).strip()
            or None
        )
        columns = _columns(source[0] if isinstance(source, tuple) else source, name, encoding, identity)
        offered = [column for column in columns if column.is_text] or columns
        examples = {column.name: str(next(iter(column.examples), ""))[:60] for column in offered}
        options = [AUTOMATIC, *examples]
        column = st.selectbox(
            "Text column",
            options,
            format_func=lambda option: option if option not in examples else f"{option}: {examples[option]}",
            key="corpus_column",
        )
    if st.button("Use this corpus", key="use_corpus", type="primary"):
        with st.spinner("Reading …"):
            corpus = reading.read_corpus(source, name, None if column == options[0] else column, encoding)
        current.choose(corpus)


def _columns(source: Path | bytes, name: str, encoding: str | None, identity: str) -> tuple[reading.ColumnPreview, ...]:
    """The file's columns, looked at once: a large upload is not read again for every click."""
    state_of_file = None
    if isinstance(source, Path) and source.is_file():
        facts = source.stat()
        state_of_file = (str(source), facts.st_size, facts.st_mtime_ns)
    key = (name, encoding, identity, state_of_file)
    kept = st.session_state.get("_columns")
    if kept is None or kept[0] != key:
        st.session_state["_columns"] = kept = (key, reading.columns_of(source, name, encoding))
    return kept[1]
