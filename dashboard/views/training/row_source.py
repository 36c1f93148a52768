"""The rows to train on: those that come with the dashboard, a file, or the session's corpus; and their names for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.errors import UserError
from components.retrieval.corpora.readers.limits import never
from components.retrieval.corpora.rows.roles import LABEL, NEGATIVE, UnclearColumns
from components.training import data as training_data
from dashboard import caching, navigation
from dashboard.corpora import current as current_corpus
from dashboard.corpora import dialect_menu, row_readings, uploads
from dashboard.corpora.row_readings import NO_COLUMN, ReadingChoice
from dashboard.ui import controls, figures, messages, page_header
from dashboard.ui.waiting import frame

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsStopped
    from components.retrieval.corpora.columns import ColumnPreview
    from components.training.data import TrainingData
    from components.training.run_folder import RunFolder

    Chosen = Mapping[str, str] | None  # our columns to the table's; None where their names are to tell
    Load = Callable[[ReadingChoice, IsStopped], TrainingData]
    Found = TrainingData | tuple[ColumnPreview, ...]  # rows, or the columns of a table that are not recognised

NAMES = {
    "demo:pairs": "Headlines and sentences",
    "demo:scored": "Scored pairs",
    "demo:nli": "Premises and hypotheses",
    "demo:not": "Sentences and negations",
    "file": "Your file",
    "corpus": "The corpus in use",
}
ROLES = {  # our columns to what a person chooses
    "anchor": "First text or query",
    "positive": "Second text or answer",
    NEGATIVE: "Wrong answer",
    LABEL: "Score or class",
}
EXAMPLES_SHOWN = 2  # of each column


def name_of(rows: TrainingData) -> str:
    """The name of some rows for people."""
    return NAMES.get(rows.name, rows.name)


def name_data(run: RunFolder) -> None:
    """Name the data of a run in the page's first line."""
    with suppress(UserError):
        source = run.settings().data
        page_header.measures(NAMES.get(source, source))


def read(source: str) -> TrainingData | None:
    """The rows of a source, one of NAMES; None where there are none, with the reason or what to do drawn."""
    try:
        if source == "corpus":
            return _of_corpus()
        return _of_file() if source == "file" else _demo(source)
    except UserError as problem:
        messages.explain(problem, "reading the rows")
        return None


@cache
def _demo(source: str) -> TrainingData:
    """The data that comes with the dashboard; it is small."""
    return training_data.load(source)


def _of_file() -> TrainingData | None:
    file = uploads.uploader(
        "training",
        "A file with pairs, triplets, scored or labelled pairs: .csv, .tsv, .jsonl, .json, .parquet, also .gz",
        key="training_file",
    )

    written = dialect_menu.of_upload("training", file)

    def load_from(
        file: UploadedFile | uploads.StoredFile, choice: ReadingChoice, is_stopped: IsStopped
    ) -> TrainingData:
        return training_data.load(
            file.getvalue(),
            file.name,
            choice.columns,
            is_stopped=is_stopped,
            part=choice.part,
            dialect=written.dialect,
            encoding=written.encoding,
        )

    found = uploads.kept(
        "training",
        caching.training_files(),
        file,
        lambda given, stop: _loaded(partial(load_from, given), stop),
        variant=written.as_text,
    )
    if found is None:
        st.caption(
            "Columns are recognised by their names: anchor and positive (and negative), sentence1 and sentence2 with a "
            "score or a label, premise and hypothesis with a label, or sentence alone. Others can be chosen."
        )
        return None
    key = st.session_state["_training"]
    return _recognised(found, uploads.varied(key, written.as_text), partial(load_from, uploads.stored(key)[0]))


def _of_corpus() -> TrainingData | None:
    """The rows of the session's corpus, which may come from the hub or from a file of the server; not those of the demo."""
    corpus = current_corpus.corpus()
    if corpus is current_corpus.demo():  # Evaluate measures with it
        st.info(
            "**The demo corpus is never trained on,** because the dashboard measures with it. Choose a corpus of your own: a "
            "file, or a data set of the Hugging Face hub.",
            icon=":material/database:",
        )
        if st.button("Choose a corpus", key="choose_corpus", icon=":material/search:"):
            navigation.go_to("corpus")
        return None
    columns = {corpus.report.text_column: corpus.texts, **corpus.columns}
    key = f"corpus {current_corpus.key_of(corpus)}"

    def load(choice: ReadingChoice, _: IsStopped) -> TrainingData:
        return training_data.from_columns(columns, corpus.name, choice.columns, part=choice.part)

    return _recognised(caching.training_files().get(key, lambda: _loaded(load, never)), key, load)


def _loaded(load: Load, is_stopped: IsStopped) -> Found:
    try:
        return load(ReadingChoice(), is_stopped)
    except UnclearColumns as problem:
        return problem.columns  # and not the problem itself, which holds the whole table


def _recognised(found: Found, key: str, load: Load) -> TrainingData | None:
    """The rows, as they were recognised or as a person chose; of columns that tell nothing once a person has chosen."""

    def read(choice: ReadingChoice) -> TrainingData | None:
        name = f"{key} {sorted((choice.columns or {}).items())} {choice.part}"
        rows = None
        with frame.figure("read_rows"):
            rows = uploads.read_once(caching.training_files(), name, partial(load, choice))
        assert not isinstance(rows, tuple)
        return rows

    if isinstance(found, tuple):
        chosen = _chosen(found)
        return None if chosen is None else read(ReadingChoice(chosen))
    return row_readings.shown(found, lambda rows: rows.reading, key, ROLES, _kind_of, read)


def _chosen(columns: tuple[ColumnPreview, ...]) -> Chosen:
    """Which column holds what, from four lists; None as long as no first text is chosen."""
    st.info(
        "**Which columns hold what?** Their names do not tell. One text alone, two texts that belong together, two with a "
        "score or a class, or a query with a correct and a wrong answer can be trained on.",
        icon=":material/view_column:",
    )
    offered = [NO_COLUMN, *(column.name for column in columns)]
    with st.container(horizontal=True, gap="small"):
        first, second, third, label = (
            controls.checked(st.selectbox, name, key=f"column_{number}", default=NO_COLUMN, options=offered)
            for number, name in enumerate(ROLES.values())
        )
    figures.plain_table(
        pd.DataFrame(
            [{"column": column.name, "examples": " · ".join(column.examples[:EXAMPLES_SHOWN])} for column in columns]
        )
    )
    if first == NO_COLUMN or (second == NO_COLUMN and (third, label) != (NO_COLUMN, NO_COLUMN)):
        return None
    chosen = dict(zip(ROLES, (first, second, third, label), strict=True))
    return _kind_of({ours: theirs for ours, theirs in chosen.items() if theirs != NO_COLUMN})


def _kind_of(chosen: Mapping[str, str]) -> Mapping[str, str]:
    """The columns of one kind of rows, of those that a person chose."""
    if set(chosen) == {"anchor"}:
        return {"sentence": chosen["anchor"]}
    has_wrong_answers = any(ours.partition("_")[0] == NEGATIVE for ours in chosen)
    if LABEL in chosen and not has_wrong_answers:
        return {
            {"anchor": "sentence1", "positive": "sentence2"}.get(ours, ours): theirs for ours, theirs in chosen.items()
        }
    return {ours: theirs for ours, theirs in chosen.items() if ours != LABEL}
