"""The Search page's other views: the corpus itself, many queries at once, and its most similar pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import bars
from components.retrieval import corpus as reading
from components.retrieval import corpus_hub
from components.retrieval.corpus_facts import corpus_facts
from components.retrieval.corpus_table import unreadable
from components.retrieval.static_vectors import read_static_vectors
from dashboard import caching, controls, corpora, embedding_jobs, feedback, settings, state

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpus import Corpus

AUTOMATIC = "(chosen automatically)"


def corpus(backend: Backend) -> None:
    """Choose a corpus, and see what it holds."""
    choose()
    if state.get("corpus"):
        st.button("Search it", key="search_it", on_click=state.put, args=("search_view", "results"))
    found = corpora.current()
    st.subheader(feedback.escape(found.name), anchor=False)
    _report(found)
    lengths = caching.corpus_lengths(found.content_hash, backend.spec.key, backend.revision, found, backend)
    limit = backend.own_max_length
    facts = corpus_facts(found, lengths, limit)
    left, middle, right = st.columns(3)
    left.metric("Sentences", f"{len(found):,}")
    middle.metric("Tokens in a sentence (median)", f"{np.median(lengths):.0f}")
    right.metric(f"Longer than {limit} tokens", f"{facts.truncated:,} ({100 * facts.truncated_share:.1f} %)")
    counts, edges = facts.histogram()
    feedback.figure(
        bars.count_bars(edges, counts, "How long the sentences are", controls.scale()),
        key="corpus_lengths",
        alt=f"Histogram of the sentences' lengths in tokens, median {np.median(lengths):.0f}",
        read=f"Tokens of {feedback.escape(backend.spec.title)}, special tokens included. What is longer than {limit} is cut "
        "when the corpus is embedded.",
        not_shown="Which words are lost where a sentence is cut.",
        table=lambda: pd.DataFrame({"number": range(len(lengths)), "tokens": lengths}),
    )
    st.markdown("**The first sentences**")
    shown = {"text": list(found.texts[:8])}
    rows = range(len(shown["text"]))
    st.dataframe(pd.DataFrame(shown | feedback.beside(shown, found.columns, rows)), key="corpus_examples")
    embedding_jobs.index_of(backend, found, "corpus")
    _kept()


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
            st.info(f"**{feedback.escape(corpora.current().name)}** is in use now.")
            st.button("Use the demo corpus", key="use_demo", on_click=corpora.choose, args=(None,))
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
    bar = st.progress(0.0, text=f"Fetching {feedback.escape(name)}")

    def tell(done: int, total: int) -> None:
        bar.progress(
            min(1.0, done / max(1, total)),
            text=f"Fetching {feedback.escape(name)}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB",
        )

    found = corpus_hub.fetch_dataset(name, progress=tell, limits=reading.browser_limits())
    bar.empty()
    return found


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
            found = reading.read_corpus(source, name, None if column == options[0] else column, encoding)
        corpora.choose(found)


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


def _report(found: Corpus) -> None:
    report = found.report
    if len(report.text_column.split()) > 3:
        st.warning(
            f"The first line was taken for the name of the column: “{feedback.escape(report.text_column[:120])}”. If it is a "
            "sentence, put a line with a name above it, or save the file as .txt."
        )
    if report.encoding_guessed:
        st.caption(
            f"Read as {feedback.escape(report.encoding)}, which is a guess. Wrong letters? Name the encoding above."
        )
    if report.bad_count:
        with st.expander(f"{report.bad_count:,} of {report.rows:,} rows could not be used", icon=":material/warning:"):
            st.dataframe(
                pd.DataFrame([{"row": row.row, "reason": row.reason} for row in report.bad_rows]), hide_index=True
            )
            if report.bad_count > len(report.bad_rows):
                st.caption(f"The first {len(report.bad_rows)} of them.")
    if report.cleaned:
        st.caption(f"{report.cleaned:,} sentences had control characters or half characters, which were taken out.")
    if report.left_out:
        st.caption(f"Columns that were not kept: {feedback.escape(', '.join(report.left_out))}.")
    if report.duplicates:
        example = report.duplicate_examples[0][:80] if report.duplicate_examples else ""
        st.caption(
            f"{report.duplicates:,} sentences were there before, such as “{feedback.escape(example)}”; all are kept."
        )


def _kept() -> None:
    panel = st.expander("Kept on disk, and word vectors", icon=":material/database:", key="kept", on_change="rerun")
    if not panel.open:
        return
    with panel:
        shelf = caching.index_shelf()
        count, size = shelf.usage()
        st.markdown(f"{count} embedded corpora, {size / 1e6:,.0f} MB of at most {shelf.limit / 1e6:,.0f} MB.")
        if st.button("Remove them all", key="clear_cache", icon=":material/delete:"):
            st.success(f"{shelf.clear() / 1e6:,.0f} MB freed.")
        file = st.file_uploader(
            "Word vectors for the static baseline: GloVe, fastText or word2vec as text",
            key="static_file",
            help="Without a file, the model's own input embeddings serve.",
        )
        if file is None:
            st.session_state.pop("_static", None)
        else:
            key = f"{file.name} {file.size} {file.file_id}"
            if caching.static_vectors().get(key) is None:
                vectors = read_static_vectors(file.getvalue(), file.name)
                caching.static_vectors().put(key, vectors)
                st.session_state["_static"] = key
            found = caching.static_vectors().get(key)
            if found is not None:
                st.caption(
                    f"{len(found.places):,} words of {found.matrix.shape[1]} numbers; {found.bad_lines:,} bad lines."
                )
