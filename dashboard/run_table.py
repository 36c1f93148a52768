"""Runs as a table: measures, intervals, significance; saved, loaded, and exported."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from components.retrieval import metrics
from components.retrieval.run_record import Run, read_runs, write_runs
from dashboard import caching, feedback


def results(runs: Sequence[Run], measure: str, reference: int) -> pd.DataFrame:
    """A row a run: all measures in per cent, the chosen one's interval and its difference to the reference run.

    The p-values are of paired randomisation tests on the chosen measure, adjusted for their number (Holm); none where
    the run is on other data than the reference.
    """
    judge = metrics.MEASURES[measure]
    own = judge(runs[reference].ranks)
    comparable = [at for at, run in enumerate(runs) if at != reference and paired(run, runs[reference])]
    adjusted = metrics.holm([metrics.randomisation_test(judge(runs[at].ranks), own) for at in comparable])
    p_values = dict(zip(comparable, adjusted, strict=True))
    rows = []
    for at, run in enumerate(runs):
        values = judge(run.ranks)
        judged = metrics.interval(values)
        rows.append(
            {
                "run": run.name,
                measure: 100 * judged.value,
                "95 % interval": f"{100 * judged.low:.1f} – {100 * judged.high:.1f}",
                "difference": 100 * float(values.mean() - own.mean()) if at in p_values else None,
                "p (Holm)": metrics.shown_p(p_values[at])
                if at in p_values
                else ("reference" if at == reference else "other data"),
                **{
                    name: 100 * float(each(run.ranks).mean())
                    for name, each in metrics.MEASURES.items()
                    if name != measure
                },
                "ms a query": run.milliseconds,
                "index MB": None if run.index_bytes is None else run.index_bytes / 1e6,
                "queries": run.data.queries,
                "data": run.data.name,
            }
        )
    # Numbers throughout: a column of nothing but None would be exported as text.
    return pd.DataFrame(rows).astype({"difference": float, "ms a query": float, "index MB": float})


def paired(run: Run, other: Run) -> bool:
    """Whether two runs had the same queries and documents, so that they can be compared query by query."""
    return run.data.content_hash == other.data.content_hash and run.data.queries == other.data.queries


def show(table: pd.DataFrame) -> None:
    """The table as it is looked at."""
    numbers = [name for name in table.columns if name in metrics.MEASURES or name == "difference"]
    config = {name: st.column_config.NumberColumn(format="%.2f") for name in numbers}
    config["ms a query"] = st.column_config.NumberColumn(format="%.2f", help="Median of some queries, one at a time")
    config["index MB"] = st.column_config.NumberColumn(format="%.2f", help="What is kept of the sentences")
    config["p (Holm)"] = st.column_config.TextColumn(
        help="How often chance alone makes a difference this large (paired randomisation test, adjusted for the number of "
        "comparisons). Below 0.05 one usually believes it."
    )
    st.dataframe(table, hide_index=True, key="runs_table", column_config=config)


def exports(runs: Sequence[Run], table: pd.DataFrame) -> None:
    """The runs as JSON, their table as CSV, Markdown and LaTeX."""
    rounded = table.round(2)
    with st.container(horizontal=True, key="run_exports"):
        feedback.download(rounded, "runs")
        st.download_button(
            "Markdown table",
            markdown(rounded),
            "bert-internals-runs.md",
            "text/markdown",
            key="runs_markdown",
            icon=":material/download:",
            on_click="ignore",
        )
        st.download_button(
            "LaTeX table",
            latex(rounded),
            "bert-internals-runs.tex",
            "application/x-tex",
            key="runs_latex",
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
            help="With model revisions, settings, seed, versions and every query's rank, to be loaded again below.",
        )


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table; a name cannot open another cell or row, and what is not known stays empty."""
    plain = table.map(lambda value: _one_line(value).replace("|", "\\|") if isinstance(value, str) else value)
    return plain.astype(object).where(table.notna(), None).to_markdown(index=False)


def latex(table: pd.DataFrame) -> str:
    """A LaTeX table; every sign that LaTeX reads is escaped."""
    names = {name: _escaped(name) for name in table.columns}
    text = table.select_dtypes(exclude="number").columns
    plain = table.assign(**{name: table[name].map(_escaped) for name in text})
    return plain.rename(columns=names).to_latex(index=False, float_format="%.2f", na_rep="")


def _escaped(value: object) -> str:
    signs = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "<": "$<$", ">": "$>$"}
    signs["|"] = r"\textbar{}"
    return "".join(signs.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in _one_line(value))


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


def loaded() -> list[Run]:
    """The runs that this session loaded from files, those that are still kept."""
    kept = [caching.saved_runs().get(key) for key in st.session_state.get("_saved_runs", ())]
    return [run for runs in kept if runs is not None for run in runs]


def loading() -> None:
    """A place to bring saved runs back."""
    panel = st.expander("Load saved runs", icon=":material/upload_file:", key="load_runs", on_change="rerun")
    if not panel.open:
        return
    with panel:
        files = st.file_uploader(
            "Runs saved on this page (.json)", type=["json"], accept_multiple_files=True, key="run_files"
        )
        keys = []
        for file in files:
            key = f"{file.name} {file.size} {file.file_id}"
            keys.append(key)
            if caching.saved_runs().get(key) is None:
                caching.saved_runs().put(key, read_runs(file.getvalue(), file.name))
        if files and st.session_state.get("_saved_runs") != keys:
            st.session_state["_saved_runs"] = keys
            st.rerun(scope="fragment")
        if st.session_state.get("_saved_runs"):
            st.caption(f"{len(loaded())} loaded runs stand in the table above.")
            st.button("Take them out", key="drop_runs", on_click=lambda: st.session_state.pop("_saved_runs", None))
