"""Runs as a table: measures, intervals, significance; saved, loaded, and exported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.metrics import Float64
from components.retrieval.evaluation.run_record import Run, read_runs, write_runs
from dashboard import caching
from dashboard.corpora import uploads
from dashboard.ui import figures

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


@dataclass(frozen=True, eq=False)
class Compared:
    """Some runs' measure against that of one of them."""

    reference: int
    p_values: Mapping[int, float]  # run's place to adjusted p; none for the reference and for runs on other data
    shown: tuple[str, ...]  # what stands in the table for each run

    @property
    def unsure(self) -> list[int]:
        """Places of the runs that one cannot tell from the reference."""
        return [row for row, p in self.p_values.items() if p >= metrics.ALPHA]


def against(values: Sequence[Float64], reference: int, paired: Sequence[bool], picked: bool) -> Compared:
    """Paired randomisation tests of runs' values [query] against one run's, adjusted for their number (Holm).

    `paired` says which runs had the same queries; `picked`, that the reference is the best of them: then every pair of
    runs counts as a comparison, for the best was found on these queries.
    """
    others = [row for row, same in enumerate(paired) if same and row != reference]
    raw = [metrics.randomisation_test(values[row], values[reference]) for row in others]
    count = len(others) + 1
    adjusted = metrics.holm(raw, count * (count - 1) // 2 if picked else None)
    shown = ["other data"] * len(values)
    shown[reference] = "reference"
    for row, p, each in zip(others, adjusted, raw, strict=True):
        shown[row] = metrics.shown_p(p, each)
    return Compared(reference, dict(zip(others, adjusted, strict=True)), tuple(shown))


def results(
    runs: Sequence[Run], measure: str, reference: int, picked: bool, names: Sequence[str] | None = None
) -> tuple[pd.DataFrame, Compared]:
    """A row a run: all measures in per cent, the chosen one's interval and its difference to the reference run.

    `names` stand in the table instead of the runs' own.
    """
    judge = metrics.MEASURES[measure]
    values = [judge(run.ranks) for run in runs]
    compared = against(values, reference, [paired(run, runs[reference]) for run in runs], picked)
    rows = []
    for row, run in enumerate(runs):
        judged = metrics.interval(values[row])
        own = row == reference or row in compared.p_values
        rows.append(
            {
                "run": names[row] if names is not None else run.name,
                measure: 100 * judged.value,
                "95 % interval": f"{100 * judged.low:.1f} – {100 * judged.high:.1f}",
                "difference": 100 * float(values[row].mean() - values[reference].mean()) if own else np.nan,
                "p (Holm)": compared.shown[row],
                **{
                    name: 100 * float(each(run.ranks).mean())
                    for name, each in metrics.MEASURES.items()
                    if name != measure
                },
                "ms a query": np.nan if run.milliseconds is None else run.milliseconds,
                "index MB": np.nan if run.index_bytes is None else run.index_bytes / 1e6,
                "queries": run.data.queries,
                "data": run.data.name,
            }
        )
    return pd.DataFrame(rows), compared


def paired(run: Run, other: Run) -> bool:
    """Whether two runs had the same queries and documents, so that they can be compared query by query."""
    return run.data.content_hash == other.data.content_hash and len(run.ranks) == len(other.ranks)


def show(table: pd.DataFrame) -> None:
    """The table as it is looked at."""
    numbers = [name for name in table.columns if name in metrics.MEASURES or name == "difference"]
    config = {name: st.column_config.NumberColumn(format="%.2f") for name in numbers}
    config["ms a query"] = st.column_config.NumberColumn(format="%.2f", help="Median of some queries, one at a time")
    config["index MB"] = st.column_config.NumberColumn(format="%.2f", help="What is kept of the sentences")
    config["p (Holm)"] = st.column_config.TextColumn(
        help="How often chance alone makes a difference this large (paired randomisation test, adjusted for the number of "
        "comparisons; all pairs of runs count where the reference is the best). Below 0.05 one usually believes it."
    )
    st.dataframe(table, hide_index=True, key="runs_table", column_config=config)


def exports(runs: Sequence[Run], table: pd.DataFrame) -> None:
    """The runs as JSON, their table as CSV, Markdown and LaTeX; the last two are made when they are asked for."""
    rounded = table.round(2)
    with st.container(horizontal=True, key="run_exports"):
        figures.download(rounded, "runs")
        for label, ending, kind, content in (
            ("Markdown table", "md", "text/markdown", lambda: markdown(rounded)),
            ("LaTeX table", "tex", "application/x-tex", lambda: latex(rounded)),
        ):
            st.download_button(
                label,
                content,
                f"bert-internals-runs.{ending}",
                kind,
                key=f"runs_{ending}",
                icon=":material/download:",
                on_click="ignore",
            )
        st.download_button(
            "Save the runs (JSON)",
            write_runs(runs),
            "bert-internals-runs.json",
            "application/json",
            key="runs_json",
            icon=":material/save:",
            on_click="ignore",
            help="With model revisions, settings, versions and every query's rank, to be loaded again below.",
        )


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table; text in it is shown as typed, on one line."""

    def plain(value: object) -> str:
        return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", _one_line(value))

    columns = _text_columns(table)
    shown = table.assign(**{name: table[name].map(plain) for name in columns}).rename(columns=plain)
    return (
        shown.astype(object)
        .where(shown.notna(), None)
        .to_markdown(index=False, disable_numparse=[table.columns.get_loc(name) for name in columns], missingval="")
    )


def latex(table: pd.DataFrame) -> str:
    """A LaTeX table; every sign that LaTeX reads is escaped."""
    plain = table.assign(**{name: table[name].map(_latex) for name in _text_columns(table)})
    return plain.rename(columns=_latex).to_latex(index=False, float_format="%.2f", na_rep="")


def _text_columns(table: pd.DataFrame) -> list[str]:
    return [str(name) for name in table.select_dtypes(exclude="number").columns]


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


def _latex(value: object) -> str:
    signs = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        '"': r"\textquotedbl{}",
    }
    return "".join(signs.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in _one_line(value))


def loaded() -> list[Run]:
    """The runs that this session loaded from files, those that are still kept."""
    kept = [caching.saved_runs().find(key) for key in st.session_state.get("_saved_runs", ())]
    return [run for runs in kept if runs is not None for run in runs]


def loading() -> None:
    """A place to bring saved runs back. Before the runs are used: what is chosen here counts in the same run."""
    panel = st.expander("Load saved runs", icon=":material/upload_file:", key="load_runs", on_change="rerun")
    if panel.open:
        with panel:
            _uploads()
    keys = st.session_state.get("_saved_runs", ())
    if any(caching.saved_runs().find(key) is None for key in keys):
        st.warning("Some loaded runs are not kept on this server any more: load their files again.")
        st.session_state["_saved_runs"] = tuple(key for key in keys if caching.saved_runs().find(key) is not None)


def _uploads() -> None:
    # Streamlit empties an uploader only by giving it another key.
    number = st.session_state.setdefault("_run_uploader", 0)
    files = st.file_uploader(
        "Runs saved on this page (.json)", type=["json"], accept_multiple_files=True, key=f"run_files_{number}"
    )
    for file in files:
        key = uploads.added(caching.saved_runs(), file, _read)
        known = st.session_state.get("_saved_runs", ())
        if key is not None and key not in known:
            st.session_state["_saved_runs"] = (*known, key)
    if st.session_state.get("_saved_runs"):
        count = len(loaded())
        st.caption(f"{count} loaded run{' stands' if count == 1 else 's stand'} in the table.")
        st.button("Take them out", key="drop_runs", on_click=_drop)


def _read(file: UploadedFile) -> tuple[Run, ...]:
    return read_runs(file.getvalue(), file.name)


def _drop() -> None:
    st.session_state.pop("_saved_runs", None)
    st.session_state["_run_uploader"] = st.session_state.get("_run_uploader", 0) + 1
