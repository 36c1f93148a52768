"""Choosing the session's corpus: the demo, an upload, a file of the server, or a dataset of the hub."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora import hub_datasets
from components.retrieval.corpora.readers.limits import browser_limits
from components.retrieval.corpora.readers.places import is_of_documents
from components.retrieval.corpora.readers.separated_rows import DialectChoice
from dashboard import access, caching, state
from dashboard.corpora import current, dialect_menu, uploads
from dashboard.jobs import requests
from dashboard.ui import controls, messages
from dashboard.ui.waiting import frame, progress

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.corpora.columns import ColumnPreview
    from components.retrieval.corpora.corpus import Corpus

AUTOMATIC = "(chosen automatically)"


@dataclass(frozen=True, eq=False)
class _Source:
    """What a person chose to read a corpus from."""

    name: str
    key: str  # names the content, which is read once for all sessions
    content: Callable[[], Path | bytes | tuple[Path, ...]]
    file: UploadedFile | None = None  # if it is an upload
    paths: tuple[Path, ...] = ()  # else its files on this machine
    is_of_hub: bool = False

    def as_note(
        self, corpus: Corpus, encoding: str | None, column: str | None, dialect: DialectChoice
    ) -> current.CorpusSource:
        """How a corpus was read from it."""
        return current.CorpusSource(
            self.name,
            self.key if self.file is not None else "",
            tuple(str(path.absolute()) for path in self.paths),
            self.is_of_hub,
            encoding,
            column,
            len(corpus),
            dialect.as_text,
        )


def choose() -> Corpus | None:
    """Draw the choice of a corpus, and make it the session's on a click; returns one that was read but is not in use."""
    sources = {"demo": "Demo corpus", "upload": "Upload a file", "hub": "Hugging Face dataset"}
    if access.server_files_allowed():
        sources["path"] = "File on this machine"
    # Streamlit forgets a widget's value while another view is open: the choice is kept under a key of its own.
    st.session_state["corpus_way"] = st.session_state.get("_corpus_way", _way_of(state.get("corpus")))
    source_kind = controls.checked(
        st.segmented_control,
        "Corpus",
        options=sources,
        format_func=sources.__getitem__,
        key="corpus_way",
        default="demo",
        required=True,
        on_choice=lambda source_kind: st.session_state.update(_corpus_way=source_kind),
    )
    if source_kind == "demo":
        if state.get("corpus"):
            with st.container(horizontal=True, vertical_alignment="center"):
                _say_in_use()
                if st.button("Use the demo corpus", key="use_demo"):
                    _use(None)
        return None
    # A path is offered only where the operator allows it.
    source = {"upload": _uploaded, "hub": _dataset, "path": _file}[source_kind]()
    is_upload = source_kind == "upload"
    found = _read(source) if source is not None else _read_before() if is_upload else None
    if found is None or current.key_of(found[0]) == state.get("corpus"):
        if state.get("corpus"):
            _say_in_use()
        return None
    corpus, note = found
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(f"Use {_these(len(corpus))}", key="use_corpus", type="primary"):
            _use(corpus, note)
        st.caption(f"**{messages.escape(corpus.name)}** is not in use yet.", width="content")
    return corpus


def _way_of(key: str) -> str:
    """The way by which the corpus of a key was chosen: also in a session that has it by a link."""
    source = current.source_of(key) if key else None
    if source is None:
        return "upload" if key else "demo"
    return "hub" if source.is_of_hub else "path" if source.paths else "upload"


def _say_in_use() -> None:
    st.markdown(f"**{messages.escape(current.name_in_use())}** is in use.", width="content")


def _these(count: int) -> str:
    return f"these {count:,} sentences" if count > 1 else "this sentence"


def _use(corpus: Corpus | None, note: current.CorpusSource | None = None) -> None:
    current.choose(corpus, note)
    st.rerun()  # the whole page: its first line names the corpus


def _uploaded() -> _Source | None:
    file = uploads.uploader(
        uploads.CORPUS, "A file: .txt, .csv, .tsv, .jsonl, .json, .parquet, also .gz", key="corpus_file"
    )
    if file is None:
        return None
    key = uploads.key_of(file)
    return _Source(uploads.file_names(key), key, file.getvalue, file)


def _read_before() -> tuple[Corpus, current.CorpusSource] | None:
    """The corpus of an upload that was read before its view was left, and how it was read."""
    before = st.session_state.get(f"_{uploads.CORPUS}")
    if not before:
        return None
    upload, encoding, column, *chosen = before
    dialect = DialectChoice.of_text("".join(chosen))

    def read(file: uploads.StoredFile, is_stopped: IsStopped) -> Corpus:
        return reading.read_corpus(file.getvalue(), file.name, column, encoding, is_stopped=is_stopped, dialect=dialect)

    corpus = None
    with frame.figure("read_before"):
        corpus = uploads.again(caching.read_corpora(), upload, read, key=before)
    uploads.earlier(uploads.CORPUS, uploads.file_names(upload), is_here=corpus is not None)
    if corpus is None:
        return None
    return corpus, current.CorpusSource(corpus.name, upload, (), False, encoding, column, len(corpus), dialect.as_text)


def _file() -> _Source | None:
    typed = st.text_input("Path of a file on this machine", key="corpus_path", max_chars=1_000).strip()
    if not typed:
        return None
    path = access.server_path(typed)
    status = path.stat()
    return _Source(
        path.name, f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}", lambda: path, paths=(path,)
    )


def _dataset() -> _Source | None:
    """The dataset of which a person requested the download, once its files are here; else how far the download is."""
    typed = st.text_input("Dataset", key="corpus_dataset", placeholder=hub_datasets.EXAMPLE, max_chars=200).strip()
    if not typed:
        return None
    jobs, name, person = caching.datasets(), hub_datasets.dataset_name(typed), caching.person()
    if st.button("Download", key="fetch_dataset"):
        st.session_state["_dataset"] = name
        before = jobs.find(name)
        if before is not None:
            jobs.drop([before])  # the hub may have another version by now
            jobs.forget(before, person)
    if st.session_state.get("_dataset") != name:
        return None
    limits = browser_limits()

    def download(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[Path, ...]:
        return hub_datasets.fetch_dataset(name, progress=report_progress, is_stopped=is_stopped, limits=limits)

    job = jobs.request(name, f"Downloading {name}", download, person=person)
    paths: tuple[Path, ...] | None = None
    with frame.figure("dataset"):
        paths = requests.result_of(
            jobs,
            job,
            doing="downloading the dataset",
            stop_key="stop_dataset",
            again_key="again_dataset",
            unit=progress.BYTES,
        )
    if paths is None:
        return None
    found = paths
    if all(map(is_of_documents, found)):
        st.caption("Its documents alone are read: queries and judgements beside them are left out.")
    return _Source(name, " ".join(map(str, found)), lambda: found, paths=found, is_of_hub=True)


def _read(source: _Source) -> tuple[Corpus, current.CorpusSource] | None:
    """Draw the choice of encoding, text column and dialect, and read the corpus; None as long as it is not clear how."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    typed = row.text_input("Encoding", key="corpus_encoding", placeholder="chosen automatically", max_chars=40)
    encoding = typed.strip() or None
    column_place, menus = row.container(), row.container(width="content")  # the columns are read as the menus say
    dialect = dialect_menu.draw([path.name for path in source.paths] or [source.name], source.key, menus)
    way = (dialect.as_text,) if dialect else ()  # part of the key of what is read so
    columns: tuple[ColumnPreview, ...] | None = None
    with frame.figure("columns"):
        columns = uploads.read_once(
            caching.column_previews(), (source.key, encoding, *way), partial(_preview, source, encoding, dialect)
        )
    if columns is None:
        return None
    text_columns = [column for column in columns if column.is_text] or columns
    names = {column.name: f"{column.name}: {str(next(iter(column.examples), ''))[:60]}" for column in text_columns}
    chosen = controls.checked(
        column_place.selectbox,
        "Text column",
        options=[AUTOMATIC, *names],
        format_func=lambda option: names.get(option, option),
        key="corpus_column",
        default=AUTOMATIC,
    )
    guessed = [column.name for column in text_columns if column.is_guess or len(text_columns) == 1]
    if chosen == AUTOMATIC and len(guessed) != 1:
        st.info("Several columns could be the text. Choose the column with the sentences.", icon=":material/table:")
        return None
    column = guessed[0] if chosen == AUTOMATIC else chosen
    is_guess = chosen == AUTOMATIC and any(one.is_guess for one in columns)
    named = None if is_guess else column  # so that the corpus says why it is this one, and has titles before its texts
    key = (source.key, encoding, named, *way)
    corpus = None
    with frame.figure("read_corpus"):
        corpus = uploads.read_once(
            caching.read_corpora(),
            key,
            lambda is_stopped: reading.read_corpus(
                source.content(), source.name, named, encoding, is_stopped=is_stopped, dialect=dialect
            ),
        )
    if corpus is None:
        return None
    if source.file is not None:
        uploads.keep(source.file)
        st.session_state[f"_{uploads.CORPUS}"] = key
    return corpus, source.as_note(corpus, encoding, named, dialect)


def _preview(
    source: _Source, encoding: str | None, dialect: DialectChoice, is_stopped: IsStopped
) -> tuple[ColumnPreview, ...]:
    content = source.content()
    first = content[0] if isinstance(content, tuple) else content
    return reading.columns_of(first, source.name, encoding, is_stopped, dialect)


def choose_query_column(corpus: Corpus, column: str | None, **options: Any) -> None:
    """The menu of the column with the queries; `column` is the current one, `options` are those of `controls.bind`."""
    controls.bind(
        "query_column",
        st.selectbox,
        "Column with the queries",
        options={name: current.shown_column(name) for name in corpus.columns},
        to_widget=lambda _: column,
        **{"placeholder": "Choose a column", **options},
    )
